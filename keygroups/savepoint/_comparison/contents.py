"""Contents of values without the times of last access, so that two can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from keygroups._checks import exact_repr
from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups._serializers.compatibility import serializers_in
from keygroups._serializers.jvm.kryo import KryoSerializer
from keygroups._values.bitmaps import Bitmap
from keygroups._values.java_values import Pojo
from keygroups._values.rows import Row
from keygroups.errors import SavepointError
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor, exact_state
from keygroups.savepoint._state.layouts import layout_of
from keygroups.savepoint._state.stored_values import stored_value

Contents = tuple[Any, Any]
"""Times of last access in a value, None where they do not count, and the rest of it.

Times are compared only where the rest is the same, so they may be the bytes of the whole value.
"""
ContentsOf = Callable[[EncodedEntry], Contents]

_OF_SEVERAL_FORMS = frozenset(
    ("BIG_INT", "BIG_DEC", "MAP", "SET", "SQL_MAP", "NULL_AWARE_MAP", "PYTHON_MAP")
)
_SQL_MAPS = frozenset(("MAP", "MULTISET"))  # logical types


def contents_readers(
    own: StateDescriptor, other: StateDescriptor
) -> tuple[ContentsOf, ContentsOf] | None:
    """Return a ContentsOf for a state in either savepoint, None for timers, without values.

    Two values are the same if their contents are equal. Under the same serializers the bytes are
    compared, unless the values have maps or sets in them, whose order says nothing and is another
    one after a restore, or numbers such as BigInteger.ZERO, of which another object has other
    bytes. Else values are decoded and compared with their classes: 0.0 is not -0.0, 1 not True.
    Values that only the job can read then differ from all of another serializer.
    """
    if own.value_serializer is None:
        return None
    if _stored_alike(own, other):
        contents = _bytes_of(own) if has_one_form(own.value_serializer) else _of_decoded(own)
        return contents, contents
    counts_times = own.has_ttl and other.has_ttl
    is_same_type = own.value_serializer == other.value_serializer
    first, second = (
        _of_decoded(state, counts_times, "" if is_same_type else side)
        for state, side in ((own, "own"), (other, "other"))
    )
    return first, second


def has_one_form(serializer: Serializer) -> bool:
    """Return whether equal values have the same bytes.

    Flink: BigIntSerializer, BigDecSerializer, of which some numbers are a mark or in full. Kryo
    has references too, to objects that may as well be written twice.
    """
    return all(map(_has_one_form, serializers_in(serializer)))


def _has_one_form(serializer: Serializer) -> bool:
    """Return whether equal values have the same bytes, as far as those in them have."""
    if isinstance(serializer, KryoSerializer):
        return serializer.key_type is not None
    if not serializer.writes_keys or serializer.name in _OF_SEVERAL_FORMS:
        return False
    return _SQL_MAPS.isdisjoint(kind.name for field in serializer.fields for kind in field.walk())


def _stored_alike(own: StateDescriptor, other: StateDescriptor) -> bool:
    return (own.value_serializer, own.has_ttl) == (other.value_serializer, other.has_ttl)


def _of_bytes(entry: EncodedEntry) -> Contents:
    return None, entry.value


def _bytes_of(state: StateDescriptor) -> ContentsOf:
    """Return the ContentsOf that takes the times of last access from the bytes of a value."""
    if not state.has_ttl and state.kind != "MAP" and not state.is_python:
        return _of_bytes
    split = stored_value(state).splitter()

    def contents(entry: EncodedEntry) -> Contents:
        try:
            return split(entry.value)
        except (*TRUNCATED, ValueError) as error:
            raise no_entry(state, entry, error) from None

    return contents


def _of_decoded(
    state: StateDescriptor, counts_times: bool = True, unreadable: str = ""
) -> ContentsOf:
    """Return the ContentsOf that decodes values; `unreadable` marks those that stay bytes."""
    read = layout_of(state).decoding(0).framed

    def contents(entry: EncodedEntry) -> Contents:
        try:
            decoded = read(entry.key_group, entry.key, entry.value)
        except (*TRUNCATED, ValueError) as error:
            raise no_entry(state, entry, error) from None
        value: Any = decoded.value
        times: Any = decoded.last_access
        if state.kind == "LIST" and state.has_ttl and isinstance(value, list):
            times = [element.last_access for element in value]
            value = [element.value for element in value]
        if unreadable and isinstance(value, bytes):
            return None, (unreadable, value)
        return times if counts_times else None, exact(value)

    return contents


def no_entry(state: StateDescriptor, entry: EncodedEntry, error: Exception) -> SavepointError:
    """Return the error for bytes that are no entry of a state."""
    return SavepointError(
        f"key group {entry.key_group}: no entry of {exact_state(state)}: {error}"
    )


def exact(value: Any) -> Any:
    """Return a stand-in for a value that is equal only to that of the same value and class.

    That of 1 is (int, "1"), of 1.0 (float, "1.0"): they differ, although 1 == 1.0 in Python.
    """
    cls = type(value)
    if cls is dict:
        return cls, frozenset((exact(key), exact(held)) for key, held in value.items())
    if cls in (set, frozenset):
        return set, frozenset(map(exact, value))
    if cls is Pojo:
        return cls, value.java_class, exact(value._asdict())
    if cls is Row:
        return cls, value.row_kind, tuple(map(exact, value))
    if isinstance(value, (list, tuple)):
        return cls, tuple(map(exact, value))
    if cls is Bitmap or vars(object)["__repr__"] is cls.__repr__:
        return cls, value  # The class defines its own equality.
    if is_dataclass(value):
        return cls, tuple(exact(getattr(value, field.name)) for field in fields(value))
    return cls, exact_repr(value)
