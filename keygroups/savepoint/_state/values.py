"""A value as state holds it: by itself, or after the time of its last access."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from keygroups._checks import LONG_MAX, LONG_MIN, check_int, show
from keygroups._serializers.compounds import NOT_NULL, checked_write
from keygroups._serializers.data_output import i64
from keygroups._serializers.scalars import Serializer, UnreadableError, read_long
from keygroups.errors import InvalidValueError
from keygroups.savepoint._state.header import StateDescriptor, stored_serializer

ReadWhole = Callable[[bytes, int], "tuple[Any, int | None]"]
"""Reads a value that bytes are from a position to their end, and its last access."""
WriteValue = Callable[[Any, "int | None"], bytes]
"""Writes a value and its last access; raises InvalidTypeError or InvalidValueError."""

_EARLIEST = 10**12  # 2001-09-09 as epoch milliseconds; as seconds a time of year 33658
_DAY = 86_400_000


class StoredValue:
    """The value of a state without a time to live, an element of a LIST, a value in a MAP.

    `serializer` is that of all that is stored, `name` and `value_name` are what errors call the
    state and its value.
    """

    def __init__(self, state: StateDescriptor) -> None:
        assert state.value_serializer is not None
        self._value_serializer: Serializer = state.value_serializer
        self.serializer = stored_serializer(state)
        self.name = f"{state.kind} state {state.name!r}"
        self.value_name = f"value of {self.name}"

    def reader(self) -> ReadWhole:
        """Return a reader of a value; what only the job can read is bytes."""
        read = self._value_serializer.read

        def read_whole(data: bytes, pos: int) -> tuple[Any, int | None]:
            if read is None:
                return data[pos:], None
            try:
                value, end = read(data, pos)
            except UnreadableError:
                return data[pos:], None
            if end != len(data):
                raise ValueError(f"a value of {end - pos} bytes in {len(data) - pos}")
            return value, None

        return read_whole

    def writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of values; the argument is that of `SavepointWriter.add_operator`."""
        write = self._write

        def write_value(value: Any, last_access: int | None) -> bytes:
            if last_access is not None:
                raise InvalidValueError(
                    f"last_access must be None, as the {self.name} has no time to live, got "
                    f"{show(last_access)}"
                )
            return write(value)

        return write_value

    def is_null(self, value: Any) -> bool:
        """Tell whether a MAP marks a value as null."""
        return value is None

    def _write(self, value: Any) -> bytes:
        serializer = self._value_serializer
        if value is None and serializer.write is not None:
            if serializer.name not in NOT_NULL:
                return serializer.write(value)
            raise InvalidValueError(
                f"{self.value_name} must not be None: a {serializer} writes no null"
            )
        return checked_write(self.value_name, serializer, value)


class StoredTtlValue(StoredValue):
    """A value after its last access in epoch milliseconds, of a state with a time to live.

    Flink: TtlStateFactory.TtlSerializer.
    """

    def reader(self) -> ReadWhole:
        """Return a reader of a value and its last access."""
        read_whole = super().reader()

        def read_after_time(data: bytes, pos: int) -> tuple[Any, int | None]:
            last_access, pos = read_long(data, pos)
            return read_whole(data, pos)[0], last_access

        return read_after_time

    def writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of values, which have to have a last access."""
        write = self._write

        def write_after_time(value: Any, last_access: int | None) -> bytes:
            if last_access is None:
                raise InvalidValueError(
                    f"last_access must be epoch milliseconds, as the {self.name} has a time to "
                    "live, got None"
                )
            millis = check_int("last_access", last_access, LONG_MIN, LONG_MAX)
            if not allow_any_last_access:
                _check_time(millis)
            return i64(millis) + write(value)

        return write_after_time

    def is_null(self, value: Any) -> bool:
        """Return False: a value with its time is no null, whatever it is."""
        return False


def stored_value(state: StateDescriptor) -> StoredValue:
    """Return how a state, which is none of timers, holds a value."""
    return (StoredTtlValue if state.has_ttl else StoredValue)(state)


def _check_time(last_access: int) -> None:
    """Refuse seconds and microseconds, by which Flink hides a value, or never does."""
    latest = int(time.time() * 1000) + _DAY
    if not _EARLIEST <= last_access <= latest:
        raise InvalidValueError(
            f"last_access must be epoch milliseconds, from {_EARLIEST}, in 2001, to {latest}, "
            f"tomorrow, got {last_access}: pass allow_any_last_access=True if that is meant"
        )
