"""A value as state holds it: by itself, or after the time of its last access."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from keygroups._checks import LONG_MAX, LONG_MIN, check_int, show
from keygroups._serializers.base import UnreadableError, checked_write
from keygroups._serializers.data_output import i64
from keygroups._serializers.scalars import read_long
from keygroups.errors import InvalidValueError
from keygroups.savepoint._state.header import StateDescriptor, stored_serializer

ReadWhole = Callable[[bytes, int], "tuple[Any, int | None]"]
"""Reads a value that bytes are from a position to their end, and its last access."""
WriteValue = Callable[[Any, "int | None"], bytes]
"""Writes a value and its last access; raises InvalidTypeError or InvalidValueError."""

_EARLIEST = 10**12  # 2001-09-09 as epoch milliseconds; as seconds a time of year 33658
_DAY = 86_400_000


class StoredValue:
    """The value of a state, an element of a LIST, a value in a MAP.

    Of a state with a time to live it is the last access in epoch milliseconds, then the value.
    `serializer` is that of all of it, `name` and `value_name` are what errors call the state and
    its value.

    Flink: TtlStateFactory.TtlSerializer.
    """

    def __init__(self, state: StateDescriptor) -> None:
        assert state.value_serializer is not None
        self.value_serializer = state.value_serializer
        self.has_time = state.has_ttl
        self.serializer = stored_serializer(state)
        self.name = f"{state.kind} state {state.name!r}"
        self.value_name = f"value of {self.name}"

    def reader(self) -> ReadWhole:
        """Return a reader of a value; what only the job can read is bytes."""
        read, has_time = self.value_serializer.read, self.has_time

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

    def writer(self, allow_any_last_access: bool) -> WriteValue:
        """Return a writer of values; the argument is that of `SavepointWriter.add_operator`."""
        write, has_time = self._write, self.has_time

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


def check_time(last_access: int) -> None:
    """Refuse seconds and microseconds, by which Flink hides a value, or never does."""
    latest = int(time.time() * 1000) + _DAY
    if not _EARLIEST <= last_access <= latest:
        raise InvalidValueError(
            f"last_access must be epoch milliseconds, from {_EARLIEST}, in 2001, to {latest}, "
            f"tomorrow, got {last_access}: pass allow_any_last_access=True if that is meant"
        )
