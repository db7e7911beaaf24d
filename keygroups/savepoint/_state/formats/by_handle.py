"""The format of keyed state by the class of its handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keygroups._serializers.data_input import ReadingContext
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    KeyedHandle,
    KeyGroupsHandle,
    RawTimersHandle,
    RocksDBHandle,
)
from keygroups.savepoint._state.formats.changelog import Changelog
from keygroups.savepoint._state.formats.format import Format
from keygroups.savepoint._state.formats.key_group_streams import KeyGroupStreams
from keygroups.savepoint._state.formats.rocksdb import RocksDBFiles
from keygroups.savepoint._state.formats.timers import RawTimers


def _changelog(files: Files, handle: ChangelogHandle, context: ReadingContext) -> Changelog:
    bases = [format_of(files, base, context) for base in handle.materialized]
    return Changelog(files, handle, bases, context)


FORMATS: dict[type[KeyedHandle], Callable[[Files, Any, ReadingContext], Format]] = {
    KeyGroupsHandle: KeyGroupStreams,
    RawTimersHandle: RawTimers,
    RocksDBHandle: RocksDBFiles,
    ChangelogHandle: _changelog,
}


def format_of(files: Files, handle: KeyedHandle, context: ReadingContext) -> Format:
    """Return the format of the keyed state behind a handle, whose snapshots a context reads."""
    return FORMATS[type(handle)](files, handle, context)
