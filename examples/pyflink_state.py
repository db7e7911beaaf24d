"""Read, mend and write the state of a PyFlink job, as the job itself declares it.

    python examples/pyflink_state.py [--savepoint DIR] [--output DIR]

The job counts the clicks of each user. Its savepoint has arrays of bytes, so that the job's own
descriptors are given, and the names, keys and values are then those of the job. A user is
forgotten, and the clicks of a day that was counted twice are taken off. Without --savepoint one
is written that the job would have left; without --output the new one goes to a temporary
directory. Neither Flink nor Spark is needed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from keygroups import KeyGroupsError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, PYFLINK, STRING

UID, KEY_TYPE = "clicks-by-user", LONG
STATES = [
    ValueStateDescriptor("count", LONG),
    ListStateDescriptor("pages", STRING),
    MapStateDescriptor("by-day", STRING, LONG),
]
FORGOTTEN, COUNTED_TWICE = 2, "2026-11-01"
JOB = """\
clicks.key_by(lambda click: click.user, key_type=Types.LONG()) \\
    .process(CountClicks()) \\
    .uid("clicks-by-user")
# in CountClicks.open:
self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))
self.pages = context.get_list_state(ListStateDescriptor("pages", Types.STRING()))
self.by_day = context.get_map_state(MapStateDescriptor("by-day", Types.STRING(), Types.LONG()))"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; an error that the user can put right is one line and status 2."""
    parser = argparse.ArgumentParser(
        prog="pyflink_state", description="Mend the state of a PyFlink job that counts clicks."
    )
    parser.add_argument("--savepoint", type=Path, metavar="DIR", help="a savepoint of that job")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the new one goes")
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp())
    try:
        old = options.savepoint or made_up(folder / "old")
        mend(old, options.output or folder / "new")
    except (KeyGroupsError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


def made_up(path: Path) -> Path:
    """Write the savepoint of a job that has counted the clicks of three users."""
    with SavepointWriter(path) as writer:
        users = writer.add_operator(UID, PYFLINK(KEY_TYPE), STATES, 128, 2, sort=True)
        for user in range(1, 4):
            users.write("count", user, 30 + user)
            users.write("pages", user, ["/", f"/shop/{user}"])
            for day, count in (("2026-10-31", 10 + user), (COUNTED_TWICE, 20)):
                users.write("by-day", user, count, day)
    return path


def mend(old: Path, new: Path) -> None:
    """Write the mended savepoint, and print what was there before and is there now."""
    print(f"The job:\n{JOB}\n\nIts state in {old}:")
    show(read_savepoint(old).operator(UID).as_pyflink(KEY_TYPE, STATES))
    twice: dict[int, int] = {}
    with SavepointWriter.from_existing_savepoint(old, new) as editor:
        before = read_savepoint(old).operator(UID).as_pyflink(KEY_TYPE, STATES)
        for entry in before.entries(["by-day"]):
            if entry.user_key == COUNTED_TWICE:
                twice[entry.key] = entry.value // 2
        users = editor.operator(UID).as_pyflink(KEY_TYPE, STATES)
        users.delete_keys([FORGOTTEN])
        users.map_entries("count", lambda entry: entry.value - twice.get(entry.key, 0))
        users.map_entries(
            "by-day",
            lambda entry: entry.value // (2 if entry.user_key == COUNTED_TWICE else 1),
        )
    print(f"\nMended, without user {FORGOTTEN}, in {new}:")
    show(read_savepoint(new).operator(UID).as_pyflink(KEY_TYPE, STATES))
    print(f"\nThe job goes on from it: `flink run -s {new} -py job.py`")


def show(users: Operator) -> None:
    """Print the state of each user."""
    for user in sorted({entry.key for entry in users.entries(["count"])}):
        held = users.get(user)
        days = [f"{day}: {count}" for day, count in sorted(held.get("by-day", {}).items())]
        pages = ", ".join(held.get("pages", []))
        print(f"  user {user}: {held['count']} clicks, {', '.join(days)}; saw {pages}")


if __name__ == "__main__":
    main()
