"""The keys of PyFlink's jobs: a Row of one field, which the job does not see."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keygroups import types as kt
from keygroups._serializers.base import Serializer
from keygroups._serializers.collections import ListSerializer, MapSerializer
from keygroups._serializers.compounds import PyFlinkSerializer, RowSerializer, TupleSerializer
from keygroups._serializers.jvm.time import (
    SqlDateSerializer,
    SqlTimeSerializer,
    SqlTimestampSerializer,
)
from keygroups._serializers.pyflink import (
    PickledKeySerializer,
    SqlDateKeySerializer,
    SqlTimeKeySerializer,
    SqlTimestampKeySerializer,
)
from keygroups.state_keys import serializer_of

_MakeStored = Callable[[Sequence[Serializer]], Serializer]
_MADE: dict[type[kt.KeyType], _MakeStored] = {
    kt.SQL_DATE: lambda parts: SqlDateKeySerializer(SqlDateSerializer()),
    kt.SQL_TIME: lambda parts: SqlTimeKeySerializer(SqlTimeSerializer()),
    kt.SQL_TIMESTAMP: lambda parts: SqlTimestampKeySerializer(SqlTimestampSerializer()),
    kt.TUPLE: TupleSerializer,
    kt.ROW: RowSerializer,
    kt.LIST: lambda parts: ListSerializer(*parts),
    kt.MAP: lambda parts: MapSerializer(*parts),
}


def written_key(key_type: kt.PYFLINK) -> Serializer:
    """Return the serializer of keys to write, which hash as PyFlink's job hashes them."""
    if isinstance(key_type.element, kt.PickledKey):
        return PyFlinkSerializer(key_type, PickledKeySerializer(key_type.protocol))
    return PyFlinkSerializer(key_type, _part(key_type.element))


def stored_key(key_type: kt.PYFLINK) -> Serializer:
    """Return the serializer of keys of a savepoint.

    Those of java.sql hash by their milliseconds there, of which any have a hash.
    """
    element = _part(key_type.element)
    return PyFlinkSerializer(None if element.key_hash else key_type, element)


def pickled_key(in_process: bool) -> Serializer:
    """Return the serializer of keys that `key_by` pickles, as it has no key type.

    Savepoints of process mode have pickles of protocol 5, those of thread mode of 4.
    """
    return PyFlinkSerializer(None, PickledKeySerializer(5 if in_process else 4))


def _part(key_type: kt.KeyType) -> Serializer:
    """Return the serializer of a key or a part of it, as the job has it."""
    make = _MADE.get(type(key_type))
    if make is None:
        return serializer_of(key_type)
    return make([_part(part) for part in key_type.parts])
