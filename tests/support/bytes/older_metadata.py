"""`_metadata` of version 2, as Flink before 1.11 wrote it, of what a newer one says."""

from __future__ import annotations

from support.bytes import savepoint_bytes as sb
from support.inside.savepoints import Metadata, SubtaskState

_FIELDS = {
    "managed_operator": sb.i32(0),
    "raw_operator": sb.i32(0),
    "managed_keyed": b"\0",
    "raw_keyed": b"\0",
}
NO_TIMERS = sb.i32(0xF1CD859F - (1 << 32), 2, 0)
"""A key group of raw keyed state in which there is no timer service."""


def as_version_2(metadata: Metadata, has_raw_state: bool = False) -> bytes:
    """Return the bytes of `_metadata` of version 3 as version 2 has the same.

    With `has_raw_state` keyed operators have raw state without timers besides, as beside RocksDB.
    """
    operators = []
    for operator in metadata.operators:
        subtasks = [_subtask(subtask, has_raw_state) for subtask in operator.subtasks]
        operators.append(
            sb.operator(
                subtasks,
                parallelism=operator.parallelism,
                max_parallelism=operator.max_parallelism,
                operator_id=bytes.fromhex(operator.operator_id),
                version=2,
            )
        )
    return sb.metadata(operators, version=2, checkpoint_id=metadata.checkpoint_id)


def _subtask(subtask: SubtaskState, has_raw_state: bool) -> bytes:
    fields = {
        name: bytes(subtask.as_read[name].data) if name in subtask.as_read else empty
        for name, empty in _FIELDS.items()
    }
    keyed = subtask.managed_keyed
    if has_raw_state and keyed is not None and keyed.key_groups:
        count = len(keyed.key_groups)
        stream = sb.inline(NO_TIMERS * count, f"raw-{keyed.key_groups.start_key_group}")
        offsets = range(0, len(NO_TIMERS) * count, len(NO_TIMERS))
        fields["raw_keyed"] = sb.native(keyed.key_groups.start_key_group, offsets, stream)
    # How long the checkpoint took, and the state of Flink 1.1.
    return sb.i32(subtask.index) + sb.i64(17) + sb.i32(0) + b"".join(fields.values())
