"""Of which key an entry is, by the bytes that this library writes for the key."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress

from keygroups._serializers.base import Serializer, UnreadableError
from keygroups._serializers.compounds import TupleSerializer
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups.errors import KeyGroupsError
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


FindKey = Callable[[bytes, Container[bytes]], "bytes | None"]


def key_finder(state: StateDescriptor) -> FindKey:
    """Return what finds the key of an entry among some, by its bytes as they are written here."""
    start = layout_of(state).before_key
    read = state.key_serializer.read
    write = state.key_serializer.write_key or state.key_serializer.write
    whole = _unreadable_key_reader(state, start)

    def find(key: bytes, keys: Container[bytes]) -> bytes | None:
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
        encoded, _, _, left, _ = read(data, start, len(data))
        if left is not None or not isinstance(encoded, bytes):
            raise ValueError("the bytes do not say where the key ends")
        return encoded

    return read_whole
