"""What a Flink job's savepoint holds, where its state is heavy, and what a rescale would move.

    python examples/inspect_savepoint.py [PATH] [--operator UID] [--parallelism N] [--top N]

PATH is a savepoint, a checkpoint, or the URL of either; without one, that of examples/data.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from keygroups import KeyGroupsError
from keygroups.savepoint import operator_reports, read_savepoint

DATA = Path(__file__).parent / "data" / "savepoint"


def main(arguments: list[str] | None = None) -> int:
    """Print the report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default=str(DATA), help="a savepoint or checkpoint")
    parser.add_argument(
        "--operator",
        action="append",
        metavar="UID",
        help="only the operator of this uid, name or id; may be repeated",
    )
    parser.add_argument(
        "--parallelism",
        type=int,
        metavar="N",
        help="the parallelism to rescale to (default: one more than the operator's)",
    )
    parser.add_argument(
        "--top", type=int, default=5, metavar="N", help="how many key groups and keys (default: 5)"
    )
    options = parser.parse_args(arguments)
    try:
        savepoint = read_savepoint(options.path)
        # This finds the operators that were named, so that their names are in the list of all too.
        reports = operator_reports(savepoint, options.operator, options.parallelism, options.top)
        print(savepoint)
        for report in reports:
            print(f"\n{report}")
    except KeyGroupsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
