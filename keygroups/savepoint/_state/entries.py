"""An entry of keyed state, and how the bytes of its key and its value become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from keygroups._checks import LONG_MIN
from keygroups._serializers.base import UnreadableError
from keygroups._serializers.scalars import read_long
from keygroups._values.rows import TtlValue
from keygroups.savepoint._state.entry_readers import Decode
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.state_keys import composite_key_reader, timer_key_reader

_COMMA = 0x2C
_Bytes = bytes  # by another name where a field has that one


class StateEntry(NamedTuple):
    """One entry of keyed state: of a MAP, one of its user keys; of timers, one timer.

    `kind` is VALUE, LIST, MAP, REDUCING, AGGREGATING or PRIORITY_QUEUE. `namespace` is None for
    state without one, a TimeWindow or GlobalWindow for that of windows. `value` is a list for
    LIST, the accumulator for AGGREGATING, None for timers. `last_access`, of state with a time to
    live, and `timestamp`, of timers, are epoch milliseconds; a LIST with a time to live has a
    TtlValue an element. `bytes` is how many bytes the entry takes as it was written, before
    compression.

    What only the job's own classes can read, a key too, is the bytes that Flink wrote. Where these
    do not say what is of the key and what of the namespace or the user key behind it, such as one
    of Kryo before a string, the parts that are not known are None, and `key_bytes` is the bytes of
    all three; else `key_bytes` is None.
    """

    state: str
    kind: str
    key_group: int
    subtask: int
    key: Any
    namespace: Any
    user_key: Any
    value: Any
    last_access: int | None
    timestamp: int | None
    bytes: int
    key_bytes: _Bytes | None = None


def entry_decoder(state: StateDescriptor, subtask: int) -> Decode[StateEntry]:
    """Make what reads an entry of RocksDB or of a canonical savepoint."""
    name, kind = state.name, state.kind
    read_key = composite_key_reader(
        state.key_serializer, state.namespace_serializer, state.user_key_serializer
    )
    if kind == "PRIORITY_QUEUE":
        return _timer_decoder(state, subtask)
    assert state.value_serializer is not None
    read_value = value_reader(state)

    def decode(
        key_group: int, keys: bytes, key: int, key_end: int, values: bytes, value: int, end: int
    ) -> StateEntry:
        found, namespace, user_key, key_bytes, key_stop = read_key(keys, key, key_end)
        if key_stop != key_end:
            raise ValueError(f"a key of {key_stop - key} bytes in {key_end - key}")
        result, last_access = read_value(values, value, end)
        return StateEntry(
            name,
            kind,
            key_group,
            subtask,
            found,
            namespace,
            user_key,
            result,
            last_access,
            None,
            key_end - key + end - value,
            key_bytes,
        )

    return decode


def _timer_decoder(state: StateDescriptor, subtask: int) -> Decode[StateEntry]:
    name, kind = state.name, state.kind
    read_key = timer_key_reader(state.key_serializer, state.namespace_serializer)

    def decode(
        key_group: int, keys: bytes, key: int, key_end: int, values: bytes, value: int, end: int
    ) -> StateEntry:
        flipped, start = read_long(keys, key)
        found, namespace, _, key_bytes, key_stop = read_key(keys, start, key_end)
        if key_stop != key_end or value != end:
            raise ValueError(f"a timer of {key_stop - key} bytes in {key_end - key}")
        return StateEntry(
            name,
            kind,
            key_group,
            subtask,
            found,
            namespace,
            None,
            None,
            None,
            flipped ^ LONG_MIN,
            key_end - key,
            key_bytes,
        )

    return decode


def value_reader(state: StateDescriptor) -> Callable[[bytes, int, int], tuple[Any, int | None]]:
    """Make what reads the value of an entry, which has an end, and its last access."""
    assert state.value_serializer is not None
    read = state.value_serializer.read
    has_ttl = state.has_ttl

    def read_value(data: bytes, pos: int, end: int) -> tuple[Any, int | None]:
        last_access = None
        if has_ttl:
            last_access, pos = read_long(data, pos)
        if read is None:
            return data[pos:end], last_access
        try:
            value, stop = read(data, pos)
        except UnreadableError:
            return data[pos:end], last_access
        if stop != end:
            raise ValueError(f"a value of {stop - pos} bytes in {end - pos}")
        return value, last_access

    def read_map_value(data: bytes, pos: int, end: int) -> tuple[Any, int | None]:
        # After a null its serialized form may follow, which the hashmap backend writes.
        return (None, None) if data[pos] else read_value(data, pos + 1, end)

    def read_elements(data: bytes, pos: int, end: int) -> tuple[Any, None]:
        start, elements = pos, []
        while True:
            last_access = 0
            if has_ttl:
                last_access, pos = read_long(data, pos)
            if read is None:
                return data[start:end], None
            try:
                element, pos = read(data, pos)
            except UnreadableError:
                return data[start:end], None
            elements.append(TtlValue(last_access, element) if has_ttl else element)
            if pos == end:
                return elements, None
            if pos > end or data[pos] != _COMMA:
                raise ValueError("elements of a list that are not separated by commas")
            pos += 1

    return {"MAP": read_map_value, "LIST": read_elements}.get(state.kind, read_value)
