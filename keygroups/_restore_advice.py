"""What a job has to set so that it finds the keyed state that it restores."""

from __future__ import annotations

from collections.abc import Mapping

from keygroups._printable import printable


def restore_advice(max_parallelisms: Mapping[str, int]) -> str:
    """Return the advice for operators with keyed state, by their max parallelisms.

    Flink takes over the savepoint's only until a chained operator that is not in the savepoint
    sets its chain back to the job's default: StateAssignmentOperation, seen in 1.17.2 to 2.3.0.
    """
    which = str(next(iter(max_parallelisms.values())))
    if len(set(max_parallelisms.values())) > 1:
        which = ", ".join(
            f"{number} of {printable(name)}" for name, number in max_parallelisms.items()
        )
    return (
        f"set max parallelism in the job, to {which}: where it is not set, a new operator in the "
        "chain can make Flink lose keyed state"
    )
