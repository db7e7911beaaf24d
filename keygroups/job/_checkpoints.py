"""The completed checkpoints and savepoints of a job, from /jobs/:jobid/checkpoints."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, NamedTuple

from keygroups._checks import LONG_MAX
from keygroups.job._rest import Rest, member

# NonPersistentMetadataCheckpointStorageLocation.EXTERNAL_POINTER: it is in the JobManager's memory
_NOT_IN_A_FILE = "<checkpoint-not-externally-addressable>"
_STATUSES = ("IN_PROGRESS", "COMPLETED", "FAILED")  # Flink: CheckpointStatsStatus

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST = datetime.max.replace(tzinfo=timezone.utc)
_LONGS = range(LONG_MAX + 1)
_MILLISECONDS = range((_LAST - _EPOCH) // timedelta(milliseconds=1) + 1)


class CompletedCheckpoint(NamedTuple):
    """A checkpoint or savepoint that a job has completed, as Flink's REST API tells of it.

    `path` is the server's word, a URL for `read_savepoint`; None where the state is in the
    JobManager's memory alone. `triggered` is when it began, in UTC; `state_size` is in bytes.
    Flink has deleted what `is_discarded`.
    """

    checkpoint_id: int
    is_savepoint: bool
    path: str | None
    triggered: datetime
    state_size: int
    is_discarded: bool


def read_checkpoints(rest: Rest, job_path: str) -> tuple[CompletedCheckpoint, ...]:
    """Return the completed checkpoints that Flink remembers, the newest first, or raise JobError.

    Flink: CheckpointingStatistics. Its history has the last ten of all, unless
    web.checkpoints.history says otherwise, and `latest` those that may have left it.
    """
    path = f"{job_path}/checkpoints"
    where, answer = rest.url + path, rest.get(path)
    latest = member(where, answer, "latest", dict)
    listed = [latest[name] for name in ("completed", "savepoint") if latest.get(name) is not None]
    completed = {}
    for entry in (*listed, *member(where, answer, "history", list)):
        if member(where, entry, "status", str, _STATUSES.__contains__) == "COMPLETED":
            checkpoint = _checkpoint(where, entry)
            completed[checkpoint.checkpoint_id] = checkpoint
    return tuple(completed[number] for number in sorted(completed, reverse=True))


def _checkpoint(where: str, entry: Any) -> CompletedCheckpoint:
    read = partial(member, where, entry)
    path = None if entry.get("external_path") is None else read("external_path", str, len)
    milliseconds = read("trigger_timestamp", int, _MILLISECONDS.__contains__)
    return CompletedCheckpoint(
        read("id", int, _LONGS.__contains__),
        read("is_savepoint", bool),
        None if path == _NOT_IN_A_FILE else path,
        _EPOCH + timedelta(milliseconds=milliseconds),
        read("state_size", int, _LONGS.__contains__),
        read("discarded", bool),
    )
