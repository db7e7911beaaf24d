"""A value as state holds it in bytes, here alone: with a time, between commas, after a mark.

    VALUE, REDUCING, AGGREGATING   [last access] value
    LIST                           [last access] element "," [last access] element "," ...
    MAP                            0 [last access] value, or 1 for a null

The time of the last access is there with a time to live. A LIST of SHORT with 1 and 258 is
`00 01 2c 01 02`, the value null of a MAP `01`, of a MAP of SHORT 258 is `00 01 02`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from keygroups._checks import LONG_MAX, LONG_MIN, check_class, check_int, show
from keygroups._serializers import scalars
from keygroups._serializers.base import Read, Serializer, UnreadableError, checked_write
from keygroups._serializers.data_output import i64
from keygroups._serializers.pyflink import ChunkSerializer
from keygroups._serializers.scalars import LONG, read_bytes, read_count, read_int, read_long
from keygroups._values.rows import TtlValue
from keygroups.errors import InvalidValueError
from keygroups.savepoint._state.header import (
    StateDescriptor,
    framed_state,
    stored_serializer,
)
from keygroups.savepoint._state.skips import skip_of

ReadWhole = Callable[[bytes, int], "tuple[Any, int | None]"]
"""Reads a value that bytes are from a position to their end, and its last access."""
WriteValue = Callable[[Any, "int | None"], bytes]
"""Writes a value and its last access; raises InvalidTypeError or InvalidValueError."""
Split = Callable[[bytes], tuple[Any, Any]]
"""Splits the bytes of a value: its times of last access, None where it has none, and the rest."""

SEPARATOR = b","  # between the elements of a LIST; Flink: ListDelimitedSerializer.DELIMITER
joined_elements = SEPARATOR.join
"""Joins the bytes of elements to those of a LIST, and those of lists to one."""
_SEPARATOR = SEPARATOR[0]
# Flink: RocksDBMapState.serializeValueNullSensitive, MapSerializer.
_NOT_NULL, _NULL = b"\0", b"\1"
_TIME_BYTES = 8

# The classes of Python whose values a serializer writes as they are, or raises struct.error for.
_EXACT: dict[type[Serializer], type] = {
    scalars.BooleanSerializer: bool,
    scalars.ByteSerializer: int,
    scalars.ShortSerializer: int,
    scalars.IntSerializer: int,
    scalars.LongSerializer: int,
    scalars.DoubleSerializer: float,
    scalars.StringSerializer: str,
}

_EARLIEST = 10**12  # 2001-09-09 as epoch milliseconds; as seconds a time of year 33658
_DAY = 86_400_000


class StoredValue:
    """The value of a VALUE, REDUCING or AGGREGATING state, of the latter the accumulator.

    Its bytes are those that RocksDB and canonical savepoints frame. `serializer` is that of a
    value with its last access, `name` and `value_name` are what errors call the state and its
    value. `time_bytes` is how many bytes the time of a last access takes, 0 where there is none.

    Flink: TtlStateFactory.TtlSerializer.
    """

    null: bytes | None = None
    before_value = b""
    """The bytes of a null, None where there is none, and those before a value and its time."""

    def __init__(self, state: StateDescriptor) -> None:
        assert state.value_serializer is not None
        self.value_serializer = state.value_serializer
        self.time_bytes = _TIME_BYTES if state.has_ttl else 0
        self.serializer = stored_serializer(state)
        self.name = f"{state.kind} state {state.name!r}"
        self.value_name = f"value of {self.name}"

    def parts(self) -> list[tuple[str, Serializer]] | None:
        """Return the parts of a stored value in their order, without `before_value`.

        Each has its name in StateEntry. None is returned where something else is between.
        """
        value = ("value", self.value_serializer)
        return [("last_access", LONG), value] if self.time_bytes else [value]

    def reader(self) -> ReadWhole:
        """Return a reader of a value; what only the job can read is bytes."""
        read, has_time = self.value_serializer.read, bool(self.time_bytes)

        def read_whole(data: bytes, pos: int) -> tuple[Any, int | None]:
            last_access = None
            if has_time:
                last_access, pos = read_long(data, pos)
            if read is None:
                return data[pos:], last_access
            try:
                value, end = read(data, pos)
            except UnreadableError:
                return data[pos:], last_access
            if end != len(data):
                raise ValueError(f"a value of {end - pos} bytes in {len(data) - pos}")
            return value, last_access

        return read_whole

    def framer(self) -> Read | None:
        """Return a reader of the bytes of a value from those of the hashmap backend.

        It reads no more of them than it takes to find their end, as their frame says it elsewhere.
        It is None where the job's own classes are needed for that.
        """
        if self.serializer.read is None:
            return None
        skip = skip_of(self.serializer)

        def read(data: bytes, pos: int) -> tuple[bytes, int]:
            end = skip(data, pos)
            return _between(data, pos, end), end

        return read

    def splitter(self) -> Split:
        """Return a function that takes the time of the last access from the bytes of a value."""
        size = self.time_bytes
        return lambda value: (value[:size], value[size:])

    def retimed(self, last_access: int | None) -> Callable[[bytes], bytes]:
        """Return a function from the bytes of a value to those with another last access.

        None is none at all. It raises IndexError, struct.error, ValueError or UnreadableError for
        bytes that are no value, InvalidValueError for a null that cannot have a time.
        """
        time, size = _time(last_access), self.time_bytes

        def change(value: bytes) -> bytes:
            _check_has_time(value, size)
            return time + value[size:]

        return change

    def writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of values; the argument is that of `SavepointWriter.add_operator`."""
        name, write = self.value_name, self._timed_writer(allow_any_last_access)
        if self.value_serializer.none_is_value:
            return write
        # Nearly all values are of this class: they need no check but the writer's own.
        exact = None if self.time_bytes else _EXACT.get(type(self.value_serializer))
        write_exact = self.value_serializer.write

        def write_value(value: Any, last_access: int | None) -> bytes:
            if type(value) is exact and last_access is None and write_exact is not None:
                try:
                    return write_exact(value)
                except struct.error:  # an int beyond the type, which `write` names
                    pass
            check_not_none(name, value)
            return write(value, last_access)

        return write_value

    def _timed_writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of what `serializer` has the bytes of."""
        write, has_time = self._write, bool(self.time_bytes)

        def write_stored(value: Any, last_access: int | None) -> bytes:
            if last_access is None and not has_time:
                return write(value)
            if last_access is None or not has_time:
                raise InvalidValueError(
                    f"last_access must be {'epoch milliseconds' if has_time else 'None'}, as the "
                    f"{self.name} has {'a' if has_time else 'no'} time to live, got "
                    f"{show(last_access)}"
                )
            millis = check_int("last_access", last_access, LONG_MIN, LONG_MAX)
            if not allow_any_last_access:
                check_time(millis)
            return i64(millis) + write(value)

        return write_stored

    def _write(self, value: Any) -> bytes:
        serializer = self.value_serializer
        if value is None and serializer.takes_null and serializer.write is not None:
            return serializer.write(value)
        return checked_write(self.value_name, serializer, value)


class StoredList(StoredValue):
    """The elements of a LIST state, with a comma between two; on the heap after their number.

    With a time to live each element has the time of its own last access.

    Flink: ListDelimitedSerializer; ListSerializer on the heap.
    """

    def parts(self) -> None:
        """Return None: the elements are as many as there are."""

    def reader(self) -> ReadWhole:
        """Return a reader of a list; what only the job can read is bytes."""
        if self.serializer.read is None:
            return lambda data, pos: (data, None)
        read_elements = elements_reader(self.serializer.read)

        def read_list(data: bytes, pos: int) -> tuple[Any, None]:
            try:
                return read_elements(data, pos), None
            except UnreadableError:
                return data, None

        return read_list

    def framer(self) -> Read | None:
        """Return a reader of the bytes of a list from those of the hashmap backend."""
        if self.serializer.read is None:
            return None
        skip = skip_of(self.serializer)

        def read(data: bytes, pos: int) -> tuple[bytes, int]:
            count, pos = read_count(data, pos)
            elements = []
            for _ in range(count):
                end = skip(data, pos)
                elements.append(_between(data, pos, end))
                pos = end
            return joined_elements(elements), pos

        return read

    def splitter(self) -> Split:
        """Return a function from a list's bytes to those of the values of its elements.

        For times it gives all of the bytes, as two lists with the same values differ in nothing
        else. What only the job can read is not split.
        """
        read, size = self.serializer.read, self.time_bytes
        if read is None or not size:
            return lambda value: (None, value)

        def read_value(data: bytes, pos: int) -> tuple[bytes, int]:
            _, end = read(data, pos)
            return data[pos + size : end], end

        read_elements = elements_reader(read_value)

        def split(value: bytes) -> tuple[Any, Any]:
            try:
                return value, read_elements(value, 0)
            except UnreadableError:
                return None, value

        return split

    def retimed(self, last_access: int | None) -> Callable[[bytes], bytes]:
        """Return a function from the bytes of a list to those with another last access."""
        read, time, size = self.serializer.read, _time(last_access), self.time_bytes
        assert read is not None  # The verb has checked it.

        def read_element(data: bytes, pos: int) -> tuple[bytes, int]:
            _, end = read(data, pos)
            return time + data[pos + size : end], end

        read_elements = elements_reader(read_element)
        return lambda value: joined_elements(read_elements(value, 0))

    def writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of lists, whose elements may each be a TtlValue."""
        name, write = self.value_name, super().writer(allow_any_last_access)

        def write_elements(value: Any, last_access: int | None) -> bytes:
            written = []
            for element in check_class(name, value, list, "a list"):
                millis = last_access
                if isinstance(element, TtlValue):
                    millis, element = element
                written.append(write(element, millis))
            if not written:
                raise InvalidValueError(f"{name} must have elements: an empty list is no entry")
            return joined_elements(written)

        return write_elements


class StoredMapValue(StoredValue):
    """The value of a user key in a MAP state, after a mark of null.

    Flink: RocksDBMapState; MapSerializer on the heap.
    """

    null, before_value = _NULL, _NOT_NULL

    def reader(self) -> ReadWhole:
        """Return a reader of a value; what only the job can read is bytes."""
        read_value = super().reader()

        def read_map_value(data: bytes, pos: int) -> tuple[Any, int | None]:
            # After a null its serialized form may follow, which the hashmap backend writes.
            return (None, None) if data[pos] else read_value(data, pos + 1)

        return read_map_value

    def item_reader(self, user_key: Serializer) -> Read | None:
        """Return a reader of a user key, value and last access from those of the hashmap backend.

        It is None where the job's own classes are needed.
        """
        reads = all_reads(user_key, self.value_serializer)
        if reads is None:
            return None
        (read_user_key, read_value), has_time = reads, bool(self.time_bytes)

        def read(data: bytes, pos: int) -> tuple[tuple[Any, Any, int | None], int]:
            user_key, pos = read_user_key(data, pos)
            is_null = data[pos]
            pos += 1
            value = last_access = None
            if not is_null:
                if has_time:
                    last_access, pos = read_long(data, pos)
                value, pos = read_value(data, pos)
            return (user_key, value, last_access), pos

        return read

    def item_framer(self, user_key: Serializer) -> Read | None:
        """Return a reader of the bytes of a user key, and of those that RocksDB has of a value.

        It reads those of the hashmap backend, and is None where the job's own classes are needed.
        """
        if all_reads(user_key, self.serializer) is None:
            return None
        skip_user_key, skip_value = skip_of(user_key), skip_of(self.serializer)

        def read(data: bytes, pos: int) -> tuple[tuple[bytes, bytes], int]:
            middle = skip_user_key(data, pos)
            if data[middle]:
                return (data[pos:middle], _NULL), middle + 1
            end = skip_value(data, middle + 1)
            return (data[pos:middle], _between(data, middle, end)), end

        return read

    def splitter(self) -> Split:
        """Return a function that takes the time of the last access from the bytes of a value."""
        start = 1 + self.time_bytes

        def split(value: bytes) -> tuple[Any, Any]:
            if value[:1] not in (b"", _NOT_NULL):
                return None, _NULL  # The hashmap backend writes more after the mark of a null.
            return value[1:start], value[:1] + value[start:]

        return split

    def retimed(self, last_access: int | None) -> Callable[[bytes], bytes]:
        """Return a function from the bytes of a value to those with another last access."""
        serializer, time, start = self.value_serializer, _time(last_access), 1 + self.time_bytes
        null = serializer.encode(None) if serializer.takes_null else None

        def change(value: bytes) -> bytes:
            mark, rest = value[:1], value[start:]
            if value[0]:  # The reader takes any but 0 for the mark of a null too.
                if not time:
                    return value
                # With a time to live it is the value after the time that is null.
                if null is None:
                    raise InvalidValueError(
                        f"a null cannot have a time to live: a {serializer} writes none"
                    )
                return _NOT_NULL + time + null
            _check_has_time(value, start)
            if not time and rest == null and not serializer.none_is_value:
                return _NULL
            return mark + time + rest

        return change

    def writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of values; a null too, which Flink's heap backend writes."""
        write, has_time = self._timed_writer(allow_any_last_access), bool(self.time_bytes)
        none_is_value = self.value_serializer.none_is_value

        def write_value(value: Any, last_access: int | None) -> bytes:
            written = write(value, last_access)
            is_null = value is None and not has_time and not none_is_value
            return _NULL if is_null else _NOT_NULL + written

        return write_value


class StoredElement(StoredValue):
    """A value of PyFlink's process mode, where Flink has a LIST of one array of bytes."""

    def __init__(self, state: StateDescriptor) -> None:
        super().__init__(framed_state(state))

    def framer(self) -> Read:
        """Return a reader of the bytes of a value from those of the hashmap backend."""
        read = super().framer()
        assert read is not None  # all of PyFlink's types are read here

        def read_only(data: bytes, pos: int) -> tuple[bytes, int]:
            return read(data, read_one(data, pos))

        return read_only


class StoredChunks(StoredList):
    """The elements of a list of PyFlink's process mode: arrays of bytes, of some elements each.

    With a time to live each array has the time of its last access, and so have its elements.
    """

    def __init__(self, state: StateDescriptor) -> None:
        assert state.value_serializer is not None
        chunk = ChunkSerializer(state.value_serializer)
        super().__init__(replace(state, value_serializer=chunk, is_python=False))

    def reader(self) -> ReadWhole:
        """Return a reader of all elements."""
        read_chunks = super().reader()

        def read_list(data: bytes, pos: int) -> tuple[Any, None]:
            return elements_of_chunks(read_chunks(data, pos)[0]), None

        return read_list

    def splitter(self) -> Split:
        """Return a function from a list's bytes to those of its elements, however they are cut.

        For times it gives all of the bytes, if they have any, as lists do.
        """
        size = self.time_bytes

        def read_chunk(data: bytes, pos: int) -> tuple[bytes, int]:
            return read_bytes(data, pos + size)

        read_chunks = elements_reader(read_chunk)
        return lambda value: (value if size else None, b"".join(read_chunks(value, 0)))

    def writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of lists, whose elements may each be a TtlValue: an array for each."""
        name, write = self.value_name, super().writer(allow_any_last_access)

        def write_elements(value: Any, last_access: int | None) -> bytes:
            elements = check_class(name, value, list, "a list")
            return write([*map(_as_chunk, elements)], last_access)

        return write_elements


def _as_chunk(element: Any) -> Any:
    if isinstance(element, TtlValue):
        return TtlValue(element.last_access, [element.value])
    return [element]


def elements_of_chunks(chunks: list[Any]) -> list[Any]:
    """Return the elements of chunks, each with the time of its chunk if that has one."""
    elements: list[Any] = []
    for chunk in chunks:
        if isinstance(chunk, TtlValue):
            elements += [TtlValue(chunk.last_access, element) for element in chunk.value]
        else:
            elements += chunk
    return elements


def read_one(data: bytes, pos: int) -> int:
    """Read the number of arrays of bytes that a value of PyFlink's is, which has to be 1."""
    count, pos = read_int(data, pos)
    if count != 1:
        raise ValueError(f"a value of {count} arrays of bytes, of which it has one")
    return pos


def _stored_item(state: StateDescriptor) -> StoredMapValue:
    """Return the StoredMapValue of a map of PyFlink's process mode."""
    return StoredMapValue(framed_state(state))


def stored_value(state: StateDescriptor) -> StoredValue:
    """Return the StoredValue of a state, which no timers have."""
    if state.is_python:
        return _OF_PYTHON.get(state.kind, StoredElement)(state)
    return _STORED.get(state.kind, StoredValue)(state)


_STORED: dict[str, type[StoredValue]] = {"LIST": StoredList, "MAP": StoredMapValue}
_OF_PYTHON: dict[str, Callable[[StateDescriptor], StoredValue]] = {
    "LIST": StoredChunks,
    "MAP": _stored_item,
}


def elements_reader(read: Read) -> Callable[[bytes, int], list[Any]]:
    """Return a reader of the elements of a LIST from a position on, each as `read` has it.

    A job of the hashmap backend may empty a list in place: its savepoints have it without bytes.
    """

    def read_elements(data: bytes, pos: int) -> list[Any]:
        elements: list[Any] = []
        if pos == len(data):
            return elements
        while True:
            element, pos = read(data, pos)
            elements.append(element)
            if pos == len(data):
                return elements
            if data[pos] != _SEPARATOR:
                raise ValueError("elements of a list that are not separated by commas")
            pos += 1

    return read_elements


def all_reads(*serializers: Serializer) -> Sequence[Read] | None:
    """Return the readers of serializers, None where the job's own classes are needed for one."""
    reads = [serializer.read for serializer in serializers if serializer.read is not None]
    return reads if len(reads) == len(serializers) else None


def _between(data: bytes, pos: int, end: int) -> bytes:
    """Return the bytes that a skip passed over; raises IndexError where some are missing."""
    if end > len(data):
        raise IndexError("too few bytes")
    return data[pos:end]


def _time(last_access: int | None) -> bytes:
    return b"" if last_access is None else i64(last_access)


def _check_has_time(value: bytes, size: int) -> None:
    """Raise ValueError for bytes that end before the value."""
    if len(value) < size:
        raise ValueError(f"{len(value)} bytes, of which {size} are before a value")


def check_not_none(name: str, value: Any) -> None:
    """Refuse a null where Flink keeps none."""
    if value is None:
        raise InvalidValueError(f"{name} must not be None: Flink keeps no null there")


def check_time(last_access: int) -> None:
    """Refuse seconds and microseconds, by which Flink hides a value, or never does."""
    latest = int(time.time() * 1000) + _DAY
    if not _EARLIEST <= last_access <= latest:
        raise InvalidValueError(
            f"last_access must be epoch milliseconds, from {_EARLIEST}, in 2001, to {latest}, "
            f"tomorrow, got {last_access}: pass allow_any_last_access=True if that is meant"
        )
