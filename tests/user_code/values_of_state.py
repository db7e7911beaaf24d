"""Values of savepoints, and serializers of a job's own, in a user's hands."""

from __future__ import annotations

import datetime as dt

from typing_extensions import assert_type

from keygroups import savepoint
from keygroups.savepoint import values


def values_of_java(value: object) -> object:
    if isinstance(value, (savepoint.Pojo, values.Pojo)):
        assert_type(value.java_class, str)
        fields: dict[str, object] = {name: value[name] for name in value}
        return fields["id"] if "id" in value else value.total
    if isinstance(value, (values.Left, values.Right, values.Some, values.Success)):
        return value.value
    if isinstance(value, values.Failure):
        assert_type((value.java_class, value.data), tuple[str, bytes])
    if isinstance(value, values.Instant):
        assert_type((value.epoch_second, value.nano), tuple[int, int])
    days = [values.LocalDate(100_000, 1, 1), values.MonthDay(2, 29), values.YearMonth(2024, 2)]
    times = values.LocalTime(1, 2, 3, 4), values.LocalDateTime(1, 2, 3, 4, 5, 6, 7)
    spans = values.Duration(1, 2), values.Period(1, 2, 3)
    zoned = values.ZonedDateTime(dt.datetime(2024, 1, 1), 3600, "Europe/Berlin")
    offset = values.OffsetTime(dt.time(), 0), values.OffsetDateTime(dt.datetime(2024, 1, 1), 0)
    calendar = values.Calendar(0, "UTC", True, 1, 1, 0)
    assert_type((zoned.zone, calendar.time_zone), tuple[str, str])
    return days, times, spans, offset, values.Locale("de", "DE", "").country


def values_of_flink(value: object) -> object:
    if isinstance(value, (values.TaggedUnion, values.StreamRecord)):
        return value.value
    if isinstance(value, values.BufferEntry):
        assert_type(value.has_been_joined, bool)
    if isinstance(value, (values.Watermark, values.WatermarkStatus, values.RecordAttributes)):
        return value
    if isinstance(value, values.LatencyMarker):
        assert_type(value.subtask_index, int)
    pending = values.TransactionHolder("a", 0)
    state = values.TwoPhaseCommitState(pending, [], None)
    hint = values.NextTransactionalIdHint(5, 1)
    assert_type(hint.last_parallelism, int)
    assert_type(state.pending_transaction, values.TransactionHolder | None)
    rows = values.Row([1], "+U"), values.TtlValue(0, 5), values.TimestampData(0, 1)
    windows = values.TimeWindow(0, 5), values.GlobalWindow(), values.CountWindow(3)
    infos = values.MetaSqnInfo(1, 2), values.RowSqnInfo(1, 2), values.WindowKey(5, "a")
    node = values.Node((1,), 1, None, None, None, 0)
    bitmap = values.Bitmap(bytes.fromhex("3a300000 00000000"))
    assert_type((3 in bitmap, len(bitmap), list(bitmap)), tuple[bool, int, list[int]])
    return rows, windows, infos, node.row, values.Variant(b"\0", b"\1\0\0").metadata


def values_of_cep(state: values.NFAState) -> None:
    match: values.ComputationState = state.partial_matches[0]
    assert_type(match.version, values.DeweyNumber)
    before: values.NodeId | None = match.previous_buffer_entry
    event = values.EventId(1, 5)
    edge = values.SharedBufferEdge(before or values.NodeId(event, "start"), match.version)
    locked = values.Lockable(1, edge)
    assert_type(values.SharedBufferNode([locked]).edges, list[values.Lockable])


class MoneySerializer(savepoint.Serializer):
    """A serializer of the job's own: cents, in eight bytes."""

    name, snapshot = "MONEY", "com.example.MoneySerializerSnapshot"
    size = 8

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[int, int]:
        return int.from_bytes(data[pos : pos + 8], "big", signed=True), pos + 8


def a_savepoint_with_money(path: str) -> None:
    own: dict[str, type[savepoint.Serializer]] = {MoneySerializer.snapshot: MoneySerializer}
    found = savepoint.read_savepoint(path, serializers=own)
    assert_type(found, savepoint.Savepoint)
