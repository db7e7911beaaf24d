"""From the key and the value of an entry to the bytes of a canonical savepoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from keygroups._checks import LONG_MAX, LONG_MIN, check_class, check_int, show
from keygroups._serializers.base import Serializer, checked_write
from keygroups._serializers.data_output import i64
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups._values.checks import refused_key
from keygroups._values.rows import TtlValue
from keygroups.assignment import compute_key_group_for_key_hash
from keygroups.errors import InvalidValueError, UnsupportedKeyTypeError
from keygroups.hashing import hash_code
from keygroups.savepoint._files.files import OpenStream
from keygroups.savepoint._metadata.handles import StreamHandle
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor, read_keyed_header
from keygroups.state_keys import composite_key_reader

_Encode = Callable[[Any, Any, "int | None"], tuple[bytes, bytes]]
"""From user key, value and last access to the bytes after the key, and those of the value."""

_VOID = b"\0"  # the namespace of state without windows
_NOT_NULL, _NULL = b"\0", b"\1"  # before a value in a MAP
_DELIMITER = b","  # between the elements of a LIST
_EARLIEST = 10**12  # 2001-09-09 as epoch milliseconds; as seconds a time of year 33658
_DAY = 86_400_000


class EncodedEntry(NamedTuple):
    """An entry as bytes: `key` is all after the key group, `state` the state's number."""

    key_group: int
    state: int
    key: bytes
    value: bytes


class EntryEncoder:
    """Writes the entries of an operator as bytes; it is made where it is used, from a header.

    `states` are the operator's, a state's number is its place there. `allow_any_last_access` is
    that of `SavepointWriter.add_operator`.
    """

    def __init__(
        self, header: bytes, max_parallelism: int, allow_any_last_access: bool = False
    ) -> None:
        found = _read(header)
        key = found.key_serializer
        if key.key_type is None or key.write is None:
            raise UnsupportedKeyTypeError(f"keys of {key} cannot be written: only the job can")
        self.states = found.states
        self._header = header
        self._max_parallelism = max_parallelism
        self._key_type, self._write_key = key.key_type, key.write
        self._encoders = [_encoder(state, allow_any_last_access) for state in found.states]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._header, self._max_parallelism)

    def encode(
        self,
        state: int,
        key: Any,
        value: Any,
        user_key: Any = None,
        last_access: int | None = None,
    ) -> EncodedEntry:
        """Return an entry of the state with this number, as bytes with its key group.

        `user_key` is the key in a MAP, None in other states; `last_access` the epoch
        milliseconds of a state with a time to live, which elements of a LIST may have
        themselves, as a TtlValue. Raises InvalidTypeError or InvalidValueError for what is no
        entry of the state.
        """
        code = hash_code(key, self._key_type)  # which checks the key too
        rest, encoded = self._encoders[state](user_key, value, last_access)
        key_group = compute_key_group_for_key_hash(code, self._max_parallelism)
        return EncodedEntry(key_group, state, self._write_key(key) + rest, encoded)

    def encode_key(self, key: Any) -> bytes:
        """Return the bytes of a key that is known to be of its type, as one with a key group is.

        Raises InvalidValueError for None, and for a null within that Flink does not write.
        """
        if key is None:
            raise refused_key(key)
        return self._write_key(key)

    def encode_value(
        self, state: int, value: Any, user_key: Any = None, last_access: int | None = None
    ) -> tuple[bytes, bytes]:
        """Return what follows the key in the bytes of an entry's key, and those of its value.

        The arguments are those of `encode`, and so is what is raised.
        """
        return self._encoders[state](user_key, value, last_access)

    def key_group(self, key: Any) -> int:
        """Return the key group of a key."""
        return compute_key_group_for_key_hash(
            hash_code(key, self._key_type), self._max_parallelism
        )


def joined_lists(
    entries: Iterable[EncodedEntry], states: Collection[int]
) -> Iterator[EncodedEntry]:
    """Yield entries; those of a key that follow one another in some LIST states become one."""
    for (key_group, state, key), parts in groupby(entries, itemgetter(0, 1, 2)):
        if state in states:
            value = _DELIMITER.join(part.value for part in parts)
            yield EncodedEntry(key_group, state, key, value)
        else:
            yield from parts


def name_of(entry: EncodedEntry, header: bytes) -> str:
    """Return what an error calls an entry: its key and its state."""
    state = _read(header).states[entry.state]
    read = composite_key_reader(
        state.key_serializer, state.namespace_serializer, state.user_key_serializer
    )
    key, _, user_key, _, _ = read(entry.key, 0, len(entry.key))
    text = f"key {show(key)} in state {state.name!r}"
    return text if user_key is None else f"{text} with the user key {show(user_key)}"


def _read(header: bytes) -> KeyedHeader:
    stream = OpenStream(StreamHandle(len(header), header), None, "the header")
    return read_keyed_header(stream, stream.size)


def _encoder(state: StateDescriptor, allow_any_last_access: bool) -> _Encode:
    name, has_ttl = f"{state.kind} state {state.name!r}", state.has_ttl
    value_name, user_key_name = f"value of {name}", f"user key of {name}"
    serializer, key_serializer = state.value_serializer, state.user_key_serializer
    if serializer is None or state.namespace_serializer is not VOID_NAMESPACE:

        def refuse(user_key: Any, value: Any, last_access: int | None) -> tuple[bytes, bytes]:
            raise InvalidValueError(
                f"entries of {state} cannot be written: it is of timers or windows"
            )

        return refuse

    def write(value: Any, last_access: int | None) -> bytes:
        if last_access is None and not has_ttl:
            return _write(value_name, serializer, value)
        if last_access is None or not has_ttl:
            raise InvalidValueError(
                f"last_access must be {'epoch milliseconds' if has_ttl else 'None'}, as the "
                f"{name} has {'a' if has_ttl else 'no'} time to live, got {show(last_access)}"
            )
        millis = check_int("last_access", last_access, LONG_MIN, LONG_MAX)
        if not allow_any_last_access:
            _check_time(millis)
        return i64(millis) + _write(value_name, serializer, value)

    def encode_value(user_key: Any, value: Any, last_access: int | None) -> tuple[bytes, bytes]:
        _check_no_user_key(user_key, name)
        _check_not_none(value_name, value)
        return _VOID, write(value, last_access)

    def encode_list(user_key: Any, value: Any, last_access: int | None) -> tuple[bytes, bytes]:
        _check_no_user_key(user_key, name)
        written = []
        for element in check_class(value_name, value, list, "a list"):
            millis = last_access
            if isinstance(element, TtlValue):
                millis, element = element
            _check_not_none(value_name, element)
            written.append(write(element, millis))
        if not written:
            raise InvalidValueError(f"{value_name} must have elements: an empty list is no entry")
        return _VOID, _DELIMITER.join(written)

    if key_serializer is None:
        return encode_list if state.kind == "LIST" else encode_value

    def encode_map(user_key: Any, value: Any, last_access: int | None) -> tuple[bytes, bytes]:
        _check_not_none(user_key_name, user_key)
        # Flink's heap backend writes a null too, so that one has to be possible.
        written = write(value, last_access)
        is_null = value is None and not has_ttl
        rest = _VOID + _write(user_key_name, key_serializer, user_key)
        return rest, _NULL if is_null else _NOT_NULL + written

    return encode_map


def _check_time(last_access: int) -> None:
    """Refuse seconds and microseconds, by which Flink hides a value, or never does."""
    latest = int(time.time() * 1000) + _DAY
    if not _EARLIEST <= last_access <= latest:
        raise InvalidValueError(
            f"last_access must be epoch milliseconds, from {_EARLIEST}, in 2001, to {latest}, "
            f"tomorrow, got {last_access}: pass allow_any_last_access=True if that is meant"
        )


def _write(name: str, serializer: Serializer, value: Any) -> bytes:
    if value is None and serializer.write is not None:
        if serializer.takes_null:
            return serializer.write(value)
        raise InvalidValueError(f"{name} must not be None: a {serializer} writes no null")
    return checked_write(name, serializer, value)


def _check_no_user_key(user_key: Any, name: str) -> None:
    if user_key is not None:
        raise InvalidValueError(f"user_key must be None in the {name}, got {show(user_key)}")


def _check_not_none(name: str, value: Any) -> None:
    if value is None:
        raise InvalidValueError(f"{name} must not be None: Flink keeps no null there")
