"""The key of an entry, found by the bytes that this library writes for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from keygroups._checks import exact_repr
from keygroups._serializers.base import (
    Serializer,
    UnreadableError,
    check_writable,
    checked_write,
)
from keygroups._serializers.compounds import TupleSerializer
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups._values.java_values import Pojo
from keygroups.errors import KeyGroupsError, UnsupportedKeyTypeError
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.layouts import layout_of
from keygroups.state_keys import composite_key_reader, timer_key_reader

ONE_FORM = frozenset(("BYTE", "SHORT", "INT", "LONG", "STRING", "CHAR"))
"""Types of which equal values have the same bytes."""


def has_one_form(serializer: Serializer) -> bool:
    """Return whether equal keys have the same bytes, of which none start as those of another."""
    if isinstance(serializer, TupleSerializer):
        return all(map(has_one_form, serializer.parts))
    # Rows of Flink SQL are equal if their bytes are; these come after their length.
    return serializer.name in ONE_FORM or isinstance(serializer, RowDataSerializer)


def is_written(serializer: Serializer) -> bool:
    """Return whether the keys of a serializer are written here, with all that is in them."""
    try:
        check_writable(serializer, is_key=True)
    except UnsupportedKeyTypeError:
        return False
    return True


def sought_key(serializer: Serializer, key: Any) -> bytes | str:
    """Return the bytes of a key; the text of `identity` where nobody here writes it.

    Of what only the job reads they are the key itself, as entries have it. Raises what
    `checked_write` raises.
    """
    try:
        return checked_write("key", serializer, key, is_key=True)
    except KeyGroupsError:
        if type(key) is bytes:
            return key
        if serializer.read is not None and not is_written(serializer):
            return identity(key)
        raise


class SoughtKeys(NamedTuple):
    """Keys to find: by their bytes, and by what they are read as where nobody here writes them.

    `values` are the texts of `identity`, with the bytes that stand for the key.
    """

    encoded: set[bytes]
    values: dict[str, bytes]

    def add(self, key: bytes | str) -> bytes:
        """Add a key in the form of `sought_key`; return the bytes by which it is found."""
        if isinstance(key, bytes):
            self.encoded.add(key)
            return key
        token = b"value " + key.encode("utf-8", "surrogatepass")
        return self.values.setdefault(key, token)


FindKey = Callable[[bytes, SoughtKeys], "bytes | None"]


def identity(value: Any) -> str:
    """Return a text that two values have in common only if they are equal, and of equal types.

    Maps and sets are in Java's order, which is no difference.
    """
    if isinstance(value, Pojo):
        return f"{value.java_class}{identity(value._asdict())}"
    if isinstance(value, dict):
        items = (f"{identity(key)}: {identity(held)}" for key, held in value.items())
        return f"{{{', '.join(sorted(items))}}}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(identity, value)))}}}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(map(identity, value))})"
    return exact_repr(value)


def key_finder(state: StateDescriptor) -> FindKey:
    """Return a FindKey for a state: it returns the sought bytes of an entry's key, or None.

    It raises UnreadableError where only the job can tell where the key ends.
    """
    start = layout_of(state).before_key
    read = state.key_serializer.read
    write = state.key_serializer.write_key or state.key_serializer.write
    if not state.key_serializer.writes_keys:
        write = None
    whole = _unreadable_key_reader(state, start)

    def find(key: bytes, sought: SoughtKeys) -> bytes | None:
        keys = sought.encoded
        if read is None:
            encoded = whole(key)
            return encoded if encoded in keys else None
        try:
            value, end = read(key, start)
        except UnreadableError:
            encoded = whole(key)
            return encoded if encoded in keys else None
        encoded = key[start:end]
        if encoded in keys:
            return encoded
        if sought.values:
            by_value = sought.values.get(identity(value))
            if by_value is not None:
                return by_value
        if write is not None:
            # Java may have written an equal key in other bytes, as it does with BigInteger.ZERO.
            with suppress(KeyGroupsError):
                encoded = write(value)
        return encoded if encoded in keys else None

    return find


def _unreadable_key_reader(state: StateDescriptor, start: int) -> Callable[[bytes], bytes]:
    """Return a reader of the bytes of a key that only the job can read."""
    key, namespace = state.key_serializer, state.namespace_serializer
    if start:
        read = timer_key_reader(key, namespace)
    else:
        read = composite_key_reader(key, namespace, state.user_key_serializer)

    def read_whole(data: bytes) -> bytes:
        encoded, _, _, key_bytes, _ = read(data, start, len(data))
        if key_bytes is not None or not isinstance(encoded, bytes):
            raise UnreadableError("the bytes do not say where the key ends")
        return encoded

    return read_whole
