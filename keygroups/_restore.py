"""What a savepoint allows the job that is restored from it."""

from __future__ import annotations

import warnings

from keygroups._checks import check_bounds, check_max_parallelism, show
from keygroups._restore_advice import restore_advice
from keygroups.errors import ParallelismError, RestoreWarning


def check_restore(
    savepoint_max_parallelism: int, parallelism: int, max_parallelism: int | None = None
) -> int:
    """Return the max parallelism that a job restored from a savepoint runs with.

    `savepoint_max_parallelism` is the operator's in the savepoint or checkpoint, 1..32768;
    `parallelism` and `max_parallelism` are those of the restored job. Where that sets None, the
    savepoint's is kept, with a RestoreWarning: a chained operator that is not in the savepoint
    may set it back, and keyed state is lost. One that is set must be the same, and the
    parallelism at most that. Raises ParallelismError.

    Flink: StateAssignmentOperation.checkParallelismPreconditions.

    >>> check_restore(128, 90, 128)
    128
    >>> check_restore(128, 90, 256)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    keygroups.errors.ParallelismError: max_parallelism must be 128, that of the savepoint, ...
    """
    kept = check_bounds("savepoint_max_parallelism", savepoint_max_parallelism)
    if max_parallelism is not None and check_max_parallelism(max_parallelism) != kept:
        raise ParallelismError(
            f"max_parallelism must be {kept}, that of the savepoint, got {show(max_parallelism)}: "
            "keygroups.savepoint.change_max_parallelism writes a savepoint with another"
        )
    check_bounds("parallelism", parallelism, kept, "the max parallelism of the restored state")
    if max_parallelism is None:
        warnings.warn(restore_advice({"": kept}), RestoreWarning, stacklevel=2)
    return kept
