"""An entry of keyed state: with its values, or as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from keygroups._checks import record_repr, show
from keygroups.errors import SavepointError
from keygroups.savepoint._files.feed import Feed

# Flink: FullSnapshotUtil.FIRST_BIT_IN_BYTE_MASK, END_OF_KEY_GROUP_MARK; of canonical savepoints.
LAST_OF_STATE = 0x80  # set in the first byte of the key that is the last of its state
END_OF_KEY_GROUP = 0xFFFF  # in the place of a state's number

_Bytes = bytes  # StateEntry has a field `bytes`, which hides the type


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
    all three. Where a key is read that only the job writes, such as a POJO with a collection in
    it, it is the bytes of the key; else it is None.
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

    def __repr__(self) -> str:
        return record_repr(self)


class EncodedEntry(NamedTuple):
    """An entry as the bytes that a canonical savepoint frames.

    `state` is the number of its state, `key` all after the key group: of the stream's key, of the
    namespace and of the user key.
    """

    key_group: int
    state: int
    key: bytes
    value: bytes


Entry = TypeVar("Entry", StateEntry, EncodedEntry)
NativeEntries = Callable[[Feed, int, int], Iterator[Entry]]
"""Reads so many entries of a key group in the hashmap backend's own format, of a MAP the maps."""


@dataclass(frozen=True)
class EntryReader(Generic[Entry]):
    """Reads the entries of one state.

    `framed` takes the key group and the bytes of the key, all after the key group, and of the
    value, as RocksDB and canonical savepoints frame them. It raises IndexError, struct.error or
    ValueError for bytes that are no entry of the state. `native` is None where the job's own
    classes are needed; `make_native` makes it where it is asked for, as most formats do not.
    """

    framed: Callable[[int, bytes, bytes], Entry]
    make_native: Callable[[], NativeEntries[Entry] | None]

    @cached_property
    def native(self) -> NativeEntries[Entry] | None:
        """The reader of the hashmap backend's own format."""
        return self.make_native()


def not_an_entry(name: str, key: bytes, error: Exception) -> SavepointError:
    """Return the error for a key of RocksDB; `name` is what its files are called."""
    return SavepointError(f"{name}: key {show(key)} is no entry: {error}")
