"""What reading the formats of keyed state has in common, whatever becomes of an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from keygroups.savepoint._files.feed import Feed
from keygroups.savepoint._state.header import StateDescriptor


class HasKeyGroup(Protocol):
    """An entry in any form."""

    @property
    def key_group(self) -> int:
        """Its key group."""


Entry = TypeVar("Entry", bound=HasKeyGroup)

Decode = Callable[[int, bytes, int, int, bytes, int, int], Entry]
"""Reads an entry of RocksDB or of a canonical savepoint.

It takes the key group, the bytes that hold the key with where it starts, after the key group,
and where it ends; and the same for the value. It raises IndexError, struct.error or ValueError
for bytes that are no entry of the state.
"""
NativeEntries = Callable[[Feed, int, int], Iterator[Entry]]
"""Reads the entries of the hashmap backend's own format: of a key group, so many."""


@dataclass(frozen=True)
class EntryReaders(Generic[Entry]):
    """What makes the readers of a state from its descriptor and the subtask.

    `native` makes None where the job's own classes are needed.
    """

    decoder: Callable[[StateDescriptor, int], Decode[Entry]]
    native: Callable[[StateDescriptor, int], NativeEntries[Entry] | None]
