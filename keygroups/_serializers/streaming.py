"""The serializers of Flink's streaming runtime and of its keyed state: timers, TTL, unions."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from keygroups._checks import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, check_int, show
from keygroups._serializers.base import (
    STATE,
    STREAMING,
    Composite,
    Read,
    Serializer,
    check_and_write,
    checked_write,
    read_versioned_snapshot,
    total_size,
    writers,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, i64
from keygroups._serializers.records import LONG as LONG_FIELD
from keygroups._serializers.records import many, nullable, option, part, record
from keygroups._serializers.scalars import LONG, read_int, read_long
from keygroups._values.checks import expect, expect_bool, expect_fields
from keygroups._values.rows import TtlValue
from keygroups._values.sql import MetaSqnInfo, RowSqnInfo
from keygroups._values.streaming import (
    BufferEntry,
    LatencyMarker,
    RecordAttributes,
    StreamRecord,
    TaggedUnion,
    TransactionHolder,
    TwoPhaseCommitState,
    Watermark,
    WatermarkStatus,
)
from keygroups.errors import InvalidTypeError, InvalidValueError

_SINK = "functions.sink."
_TWO_PHASE = "TwoPhaseCommitSinkFunction$StateSerializerSnapshot"
_MULTISET = "org.apache.flink.table.runtime.sequencedmultisetstate.linked."
_STATUSES = (0, -1)  # WatermarkStatus.ACTIVE_STATUS, IDLE_STATUS


def _long(name: str, number: object) -> bytes:
    return i64(check_int(name, number, LONG_MIN, LONG_MAX))


# --- keyed state ----------------------------------------------------------------------------


class TtlSerializer(Composite):
    """A value with the time of its last access before it."""

    name, snapshot = "TTL", f"{STATE}ttl.TtlStateFactory$TtlSerializerSnapshot"
    outer_versions, arity = (2,), 2

    def __init__(self, value: Serializer) -> None:
        self.parts = (value,)
        self.size = total_size((LONG, value))
        super().__init__(value)

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [write], name = reads, writers(self.parts, None), str(self)

        def read_ttl(data: bytes, pos: int) -> tuple[TtlValue, int]:
            last_access, pos = read_long(data, pos)
            value, pos = read(data, pos)
            return TtlValue(last_access, value), pos

        def write_ttl(value: Any) -> bytes:
            last_access, inner = expect(name, value, TtlValue, "a TtlValue")
            return _long("last_access of a TtlValue", last_access) + write(inner)

        self.read, self.write = read_ttl, write_ttl

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: None) -> Serializer:
        _, value = nested
        return cls(value)

    def nested(self) -> tuple[Serializer, ...]:
        return LONG, *self.parts


class AsyncTtlSerializer(TtlSerializer):
    """The TTL serializer of the asynchronous state of Flink 2, with the same bytes."""

    snapshot = f"{STATE}v2.ttl.TtlStateFactory$TtlSerializerSnapshot"


class Wrapper(Serializer):
    """A serializer with the values of an inner one, its first argument."""

    def __init__(self, inner: Serializer, *arguments: object) -> None:
        self.parts = (inner,)
        self.size, self.takes_null = inner.size, inner.takes_null
        self.read, self.write, self.key_type = inner.read, inner.write, inner.key_type
        super().__init__(inner, *arguments)


class TtlAwareSerializer(Wrapper):
    """A value of state that may get or lose its time to live, in Flink 2.1 and later."""

    name, snapshot, versions = "TTL_AWARE", f"{STATE}ttl.TtlAwareSerializerSnapshot", (1,)

    def __init__(self, inner: Serializer, has_ttl: bool) -> None:
        self.has_ttl = has_ttl
        super().__init__(inner, has_ttl)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        has_ttl = cursor.bool()
        return cls(read_versioned_snapshot(cursor, depth + 1), has_ttl)

    def contents(self) -> bytes:
        [inner] = self.parts
        return bytes([self.has_ttl]) + inner.versioned_snapshot()


class SingleThreadAccessCheckingSerializer(Wrapper, Composite):
    """A serializer of a JVM with assertions, as in Flink's tests."""

    name, outer_versions = "SINGLE_THREAD", (1,)
    snapshot = (
        "org.apache.flink.api.common.typeutils.SingleThreadAccessCheckingTypeSerializer"
        "$SingleThreadAccessCheckingTypeSerializerSnapshot"
    )


def unwrapped(serializer: Serializer) -> Serializer:
    """Return the serializer inside of any wrappers."""
    while isinstance(serializer, Wrapper):
        [serializer] = serializer.parts
    return serializer


class TimerSerializer(Composite):
    """A timer: its time with the sign bit flipped, key, namespace."""

    name, snapshot = "TIMER", f"{STREAMING}operators.TimerSerializerSnapshot"
    outer_versions, arity = (2,), 2

    def __init__(self, key: Serializer, namespace: Serializer) -> None:
        self.parts = (key, namespace)
        self.size = total_size((LONG, key, namespace))
        super().__init__(key, namespace)

    def bind(self, reads: Sequence[Read]) -> None:
        (read_key, read_namespace), name = reads, str(self)
        key_part, namespace_part = self.parts
        write_namespace = partial(check_and_write, namespace_part)

        def read_timer(data: bytes, pos: int) -> tuple[tuple[int, Any, Any], int]:
            flipped, pos = read_long(data, pos)
            key, pos = read_key(data, pos)
            namespace, pos = read_namespace(data, pos)
            return (flipped ^ LONG_MIN, key, namespace), pos

        def write_timer(value: Any) -> bytes:
            timestamp, key, namespace = expect_fields(name, 3, value)
            millis = check_int("timestamp of a timer", timestamp, LONG_MIN, LONG_MAX)
            written = checked_write("key", key_part, key, is_key=True)
            return i64(millis ^ LONG_MIN) + written + write_namespace(namespace)

        self.read, self.write = read_timer, write_timer


# --- operators ------------------------------------------------------------------------------


class UnionSerializer(Composite):
    """An element of a join or a coGroup: the number of its input, 1 or 2, then its value."""

    name, snapshot = "UNION", f"{STREAMING}datastream.CoGroupedStreams$UnionSerializerSnapshot"
    outer_versions, arity = (2,), 2

    def bind(self, reads: Sequence[Read]) -> None:
        reads_by_input = dict(enumerate(reads, 1))
        name, writes = str(self), writers(self.parts, None)

        def read_union(data: bytes, pos: int) -> tuple[TaggedUnion, int]:
            number = data[pos]
            read = reads_by_input.get(number)
            if read is None:
                raise ValueError(f"an element of input {number}")
            value, pos = read(data, pos + 1)
            return TaggedUnion(number, value), pos

        def write_union(value: Any) -> bytes:
            number, element = expect(name, value, TaggedUnion, "a TaggedUnion")
            number = check_int("input of a TaggedUnion", number, 1, 2)
            return bytes([number]) + writes[number - 1](element)

        self.read, self.write = read_union, write_union


class BufferEntrySerializer(Composite):
    """An element of an interval join: a flag, set once it has been joined, then the element."""

    name, outer_versions = "BUFFER_ENTRY", (2,)
    snapshot = f"{STREAMING}operators.co.IntervalJoinOperator$BufferEntrySerializerSnapshot"

    def bind(self, reads: Sequence[Read]) -> None:
        [read], [write], name = reads, writers(self.parts, None), str(self)

        def read_entry(data: bytes, pos: int) -> tuple[BufferEntry, int]:
            has_been_joined = data[pos] != 0
            element, pos = read(data, pos + 1)
            return BufferEntry(element, has_been_joined), pos

        def write_entry(value: Any) -> bytes:
            element, has_been_joined = expect(name, value, BufferEntry, "a BufferEntry")
            flag = expect_bool("BOOLEAN in a BufferEntry", has_been_joined)
            return bytes([flag]) + write(element)

        self.read, self.write = read_entry, write_entry


class StreamElementSerializer(Composite):
    """An element of a stream: a tag, then a record, a watermark or another mark.

    Flink: StreamElementSerializer.serialize.
    """

    name, outer_versions = "STREAM_ELEMENT", (2,)
    snapshot = (
        "org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer"
        "$StreamElementSerializerSnapshot"
    )

    def bind(self, reads: Sequence[Read]) -> None:
        [read_value], [write_value], name = reads, writers(self.parts, None), str(self)

        def read_with_timestamp(data: bytes, pos: int) -> tuple[StreamRecord, int]:
            timestamp, pos = read_long(data, pos)
            value, pos = read_value(data, pos)
            return StreamRecord(value, timestamp), pos

        def read_without_timestamp(data: bytes, pos: int) -> tuple[StreamRecord, int]:
            value, pos = read_value(data, pos)
            return StreamRecord(value), pos

        known = ", ".join(sorted(cls.__name__ for cls in _WRITE_MARK))
        by_tag: list[Read] = [read_with_timestamp, read_without_timestamp, *_MARKS]

        def read_element(data: bytes, pos: int) -> tuple[Any, int]:
            tag = data[pos]
            if tag >= len(by_tag):
                raise ValueError(f"an element of a stream with the tag {tag}")
            return by_tag[tag](data, pos + 1)

        def write_element(element: Any) -> bytes:
            if isinstance(element, StreamRecord):
                if element.timestamp is None:
                    return b"\1" + write_value(element.value)
                timestamp = _long("timestamp of a StreamRecord", element.timestamp)
                return b"\0" + timestamp + write_value(element.value)
            write = _WRITE_MARK.get(type(element))
            if write is None:
                raise InvalidTypeError(
                    f"key of type {name} must be a StreamRecord, {known}, got {show(element)}"
                )
            return write(element)

        self.read, self.write = read_element, write_element


def _read_watermark(data: bytes, pos: int) -> tuple[Watermark, int]:
    timestamp, pos = read_long(data, pos)
    return Watermark(timestamp), pos


_latency = struct.Struct(">q16si")


def _read_latency(data: bytes, pos: int) -> tuple[LatencyMarker, int]:
    marked_time, operator_id, subtask = _latency.unpack_from(data, pos)
    return LatencyMarker(marked_time, operator_id.hex(), subtask), pos + _latency.size


def _write_latency(marker: LatencyMarker) -> bytes:
    operator_id: object = marker.operator_id
    if not isinstance(operator_id, str) or not re.fullmatch("[0-9a-f]{32}", operator_id):
        raise InvalidValueError(
            "operator_id of a LatencyMarker must be 32 hexadecimal digits, got "
            f"{show(operator_id)}"
        )
    return b"\3" + _latency.pack(
        check_int("marked_time of a LatencyMarker", marker.marked_time, LONG_MIN, LONG_MAX),
        bytes.fromhex(operator_id),
        check_int("subtask_index of a LatencyMarker", marker.subtask_index, INT_MIN, INT_MAX),
    )


def _read_status(data: bytes, pos: int) -> tuple[WatermarkStatus, int]:
    status, pos = read_int(data, pos)
    if status not in _STATUSES:
        raise ValueError(f"a watermark status of {status}")
    return WatermarkStatus(status), pos


def _write_status(status: WatermarkStatus) -> bytes:
    return b"\4" + i32(check_int("status of a WatermarkStatus", status.status, -1, 0))


def _read_attributes(data: bytes, pos: int) -> tuple[RecordAttributes, int]:
    return RecordAttributes(data[pos] != 0), pos + 1


def _write_attributes(attributes: RecordAttributes) -> bytes:
    return bytes([5, expect_bool("BOOLEAN in RecordAttributes", attributes.is_backlog)])


_MARKS: list[Read] = [_read_watermark, _read_latency, _read_status, _read_attributes]
"""Readers by their tags less 2."""
_WRITE_MARK: dict[type, Callable[[Any], bytes]] = {
    Watermark: lambda mark: b"\2" + _long("timestamp of a Watermark", mark.timestamp),
    LatencyMarker: _write_latency,
    WatermarkStatus: _write_status,
    RecordAttributes: _write_attributes,
}


class TwoPhaseCommitSerializer(Composite):
    """State of a sink of two-phase commits: the pending transaction, those to commit, context.

    With `can_be_pending_null` a flag before the pending transaction says whether there is one:
    before outer version 3 no state has it, in version 3 each has, and later ones say it.
    """

    name, snapshot = "TWO_PHASE_COMMIT", f"{STREAMING}{_SINK}{_TWO_PHASE}"
    outer_versions, arity = (1, 2, 3, 4), 2

    def __init__(
        self, transaction: Serializer, context: Serializer, can_be_pending_null: bool = True
    ) -> None:
        self.parts = (transaction, context)
        self.can_be_pending_null = can_be_pending_null
        super().__init__(transaction, context, can_be_pending_null)

    def bind(self, reads: Sequence[Read]) -> None:
        transaction, context = map(part, self.parts)
        holder = record(TransactionHolder, transaction, LONG_FIELD)
        pending = nullable(holder) if self.can_be_pending_null else holder
        state = record(TwoPhaseCommitState, pending, many(holder), option(context))
        self.read, self.write = state.named(self.name)

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> bool:
        return outer_version == 3 or (outer_version > 3 and cursor.bool())

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: bool) -> Serializer:
        transaction, context = nested
        return cls(transaction, context, outer)

    def outer(self) -> bytes:
        return bytes([self.can_be_pending_null])


class LegacyTwoPhaseCommitSerializer(TwoPhaseCommitSerializer):
    """The serializer of two-phase commits in Flink 2, with the same bytes."""

    snapshot = f"{STREAMING}{_SINK}legacy.{_TWO_PHASE}"


# --- the table runtime's multisets ----------------------------------------------------------


class _TwoLongs(Composite):
    """Two longs, the arguments of `value_class`.

    `least(first)` is the least second one: Flink refuses to read a lower one.
    """

    outer_versions, arity, size = (0,), 2, 16
    value_class: type[MetaSqnInfo] | type[RowSqnInfo]
    least: Callable[[int], int]

    def bind(self, reads: Sequence[Read]) -> None:
        name, value_class, least = self.name, self.value_class, self.least

        def read_longs(data: bytes, pos: int) -> tuple[Any, int]:
            first, pos = read_long(data, pos)
            second, pos = read_long(data, pos)
            return value_class(first, second), pos

        def write_longs(value: Any) -> bytes:
            first, second = expect(name, value, value_class, f"a {value_class.__name__}")
            first_name, second_name = value_class._fields
            data = _long(first_name, first)
            return data + i64(check_int(second_name, second, least(first), LONG_MAX))

        self.read, self.write = read_longs, write_longs

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: None) -> Serializer:
        if nested != [LONG, LONG]:
            raise cursor.error(f"{cls.name} is made of two LONG, got {nested}")
        return cls()

    def nested(self) -> tuple[Serializer, ...]:
        return LONG, LONG


class MetaSqnInfoSerializer(_TwoLongs):
    name, snapshot = (
        "META_SQN_INFO",
        f"{_MULTISET}MetaSqnInfoSerializer$MetaSqnInfoSerializerSnapshot",
    )
    value_class, least = MetaSqnInfo, staticmethod(lambda high_sqn: 0)


class RowSqnInfoSerializer(_TwoLongs):
    name, snapshot = (
        "ROW_SQN_INFO",
        f"{_MULTISET}RowSqnInfoSerializer$RowSqnInfoSerializerSnapshot",
    )
    value_class, least = RowSqnInfo, staticmethod(lambda first_sqn: first_sqn)
