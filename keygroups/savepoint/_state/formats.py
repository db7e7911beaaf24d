"""The format of keyed state by the class of its handle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keygroups._serializers.data_input import ReadingContext
from keygroups.errors import SavepointError
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    KeyedHandle,
    KeyGroupsHandle,
    RawTimersHandle,
    RocksDBHandle,
)
from keygroups.savepoint._state.entries import Entry, EntryReader
from keygroups.savepoint._state.format import Format, Selection
from keygroups.savepoint._state.header import KeyedHeader
from keygroups.savepoint._state.key_group_streams import KeyGroupStreams
from keygroups.savepoint._state.layouts import Layout
from keygroups.savepoint._state.rocksdb import RocksDBFiles
from keygroups.savepoint._state.timers import RawTimers


class Changelog(Format):
    """Keyed state of the changelog backend, of which only the size is known.

    Flink: ChangelogStateBackendHandleImpl.
    """

    def __init__(self, files: Files, handle: ChangelogHandle, context: ReadingContext) -> None:
        self._files = files
        self._handle = handle
        self._context = context

    @property
    def bytes(self) -> int:
        """How many bytes what was materialized and the changes have."""
        nested = (format_of(self._files, part, self._context).bytes for part in self._handle.parts)
        return self._handle.size + sum(nested)

    def header(self) -> KeyedHeader:
        """Raise SavepointError."""
        raise self._error()

    def weights(self) -> Mapping[int, int]:
        """Nothing is known of them."""
        return {}

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        raise self._error()

    def _error(self) -> SavepointError:
        return SavepointError(
            f"{self._files.base}: a checkpoint of the changelog backend (state.changelog.enabled, "
            "before Flink 2.0 state.backend.changelog.enabled) has changes that are to be "
            "replayed, which is not done here: take a canonical savepoint, which has none"
        )


FORMATS: dict[type[KeyedHandle], Callable[[Files, Any, ReadingContext], Format]] = {
    KeyGroupsHandle: KeyGroupStreams,
    RawTimersHandle: RawTimers,
    RocksDBHandle: RocksDBFiles,
    ChangelogHandle: Changelog,
}


def format_of(files: Files, handle: KeyedHandle, context: ReadingContext) -> Format:
    """Return the format of the keyed state behind a handle, whose snapshots a context reads."""
    return FORMATS[type(handle)](files, handle, context)
