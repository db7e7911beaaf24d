"""What a Flink job's savepoint holds, where its state is heavy, and what a rescale would move.

    python examples/inspect_savepoint.py [PATH] [--operator UID] [--parallelism N] [--top N]

PATH is a savepoint, a checkpoint, or the URL of either; without one, that of examples/data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from keygroups import KeyGroupsError, RescalePlan, compute_operator_index_for_key_group
from keygroups.reports import RescaleReport
from keygroups.savepoint import Operator, Savepoint, read_savepoint

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
        for uid in options.operator or ():  # which names it in the list of all, too
            savepoint.operator(uid)
        print(savepoint)
        for operator in chosen(savepoint, options.operator):
            print("", *report(operator, options.parallelism, options.top), sep="\n")
    except KeyGroupsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


def chosen(savepoint: Savepoint, names: list[str] | None) -> list[Operator]:
    """Return the operators to report: those that were named, else all with keyed state."""
    if names:
        return [savepoint.operator(name) for name in names]
    keyed = (
        one for one in savepoint.operators if any(part.key_groups for part in one.subtasks)
    )
    return list(keyed)


def report(operator: Operator, parallelism: int | None, top: int) -> Iterator[str]:
    """Yield the lines about one operator."""
    groups, old = operator.max_parallelism, operator.parallelism
    yield f"== {operator.label}: {len(operator.states)} states"
    for state in operator.states:
        yield f"  {state}"
    load = operator.key_group_bytes()
    yield f"key groups with the most bytes, of {sum(load.weights):,} in all:"
    for key_group in sorted(range(groups), key=lambda one: -load.weights[one])[:top]:
        subtask = compute_operator_index_for_key_group(groups, old, key_group)
        yield f"  {load.weights[key_group]:>12,}  key group {key_group}, subtask {subtask}"
    yield "keys with the most bytes:"
    for key in operator.key_sizes(top):
        yield (
            f"  {key.bytes:>12,}  {key.key!r:.60}, {key.entries} entries, "
            f"key group {key.key_group}, subtask {key.subtask}"
        )
    new = min(old + 1, groups) if parallelism is None else parallelism
    yield f"rescale to {new}, weight in bytes:"
    yield str(RescaleReport(RescalePlan(groups, old, new), load))


if __name__ == "__main__":
    sys.exit(main())
