"""What a job has to set so that it finds the keyed state that it restores."""

from __future__ import annotations

from collections.abc import Mapping


def restore_advice(max_parallelisms: Mapping[str, int]) -> list[str]:
    """Return the line about operators with keyed state and their max parallelisms, if any.

    Flink takes over the savepoint's only until a chained operator that is not in the savepoint
    sets its chain back to the job's default: StateAssignmentOperation, seen in 1.17.2 to 2.3.0.
    """
    groups = sorted(set(max_parallelisms.values()))
    if not groups:
        return []
    which = str(groups[0])
    if len(groups) > 1:
        which = ", ".join(f"{number} of {name}" for name, number in max_parallelisms.items())
    return [
        f"set max parallelism in the job, to {which}: where it is not set, a new operator in the "
        "chain can make Flink lose keyed state"
    ]
