"""The file with the keyed state of one subtask, in the format of canonical savepoints."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from typing import BinaryIO

from keygroups._checks import INT_MAX
from keygroups._serializers.data_output import i32, u16
from keygroups.errors import InvalidValueError
from keygroups.key_group_range import KeyGroupRange
from keygroups.savepoint._state.entries import END_OF_KEY_GROUP, LAST_OF_STATE, EncodedEntry
from keygroups.state_keys import key_group_prefix_bytes

_END = u16(END_OF_KEY_GROUP)
_BUFFERED = 1 << 16  # bytes that are written at once


class KeyedStateFile:
    """Writes entries as they come, key group by key group and state by state; holds one back.

    `size` is how many bytes that are, `offsets` where each key group of the subtask starts, 0
    for one without entries; `entries` and `bytes` are how many each state has, by its number.
    `name_entry` is what an error calls an entry. All methods raise InvalidValueError for an entry
    whose key or value has more bytes than Java counts.

    Flink: FullSnapshotAsyncWriter.writeKVStateData.
    """

    def __init__(
        self,
        file: BinaryIO,
        name: str,
        header: bytes,
        max_parallelism: int,
        key_groups: KeyGroupRange,
        name_entry: Callable[[EncodedEntry], str],
    ) -> None:
        self.offsets = [0] * len(key_groups)
        self.size = 0
        self.entries: Counter[int] = Counter()
        self.bytes: Counter[int] = Counter()
        self.name = name
        self._file = file
        self._prefix_bytes = key_group_prefix_bytes(max_parallelism)
        self._key_groups = key_groups
        self._least = key_groups.start_key_group  # the lowest key group that may come next
        self._name_entry = name_entry
        self._pending: list[bytes | memoryview] = []
        self._buffered = 0
        self._key_group = -1
        self._prefix = self._last_prefix = b""
        self._state = -1
        self._key = self._value = b""  # the entry held back, none if its key is empty
        self._write(header)

    def add(self, entry: EncodedEntry) -> None:
        """Write an entry; a key group has its entries by this method, or all by `add_framed`.

        Raises InvalidValueError where key groups do not come in order or are not the subtask's,
        and where the same key comes twice in a row.
        """
        key_group, state, key, value = entry
        if key_group != self._key_group:
            self._end_key_group()
            self._start_key_group(key_group)
            self._write(u16(state))
        elif state != self._state:
            self._write_entry(self._last_prefix)
            self._write(u16(state))
        elif key == self._key:
            raise self.twice(entry)
        else:
            self._write_entry(self._prefix)
        self._state, self._key, self._value = state, key, value

    def add_framed(
        self, key_group: int, state: int, entries: int, data: bytes | memoryview
    ) -> None:
        """Write so many entries of a state and key group as they stand in the file.

        Those of one state may come in several pieces; the last of them has its mark. Raises
        InvalidValueError where key groups do not come in order or are not the subtask's.
        """
        if key_group != self._key_group:
            self._end_key_group()
            self._start_key_group(key_group)
            self._write(u16(state))
        elif state != self._state:
            self._write(u16(state))
        self._state = state
        self.entries[state] += entries
        self.bytes[state] += len(data)
        self._write(data)

    def twice(self, entry: EncodedEntry) -> InvalidValueError:
        """Build the error for an entry whose key comes twice."""
        return InvalidValueError(f"each key must come once, got {self._name_entry(entry)} twice")

    def too_long(self, entry: EncodedEntry, size: int) -> InvalidValueError:
        """Build the error for an entry whose key, with its key group, or value has so many bytes.

        The value is not looked at.
        """
        return InvalidValueError(
            f"key and value must have at most {INT_MAX} bytes each, as Java counts no more, got "
            f"{size} in {self._name_entry(entry)}"
        )

    def finish(self) -> None:
        """Write what is held back."""
        self._end_key_group()
        self._flush()

    def _start_key_group(self, key_group: int) -> None:
        # A subtask may have thousands of key groups, and each but a few dozen entries.
        if not self._least <= key_group <= self._key_groups.end_key_group:
            raise InvalidValueError(
                f"key groups must be of {self._key_groups} and come in order, got {key_group} "
                f"after {self._key_group if self._key_group >= 0 else 'none'}"
            )
        self._key_group = self._least = key_group
        self.offsets[key_group - self._key_groups.start_key_group] = self.size
        prefix = key_group.to_bytes(self._prefix_bytes, "big")
        self._prefix, self._last_prefix = prefix, bytes((prefix[0] | LAST_OF_STATE,)) + prefix[1:]

    def _end_key_group(self) -> None:
        if self._state >= 0:
            if self._key:
                self._write_entry(self._last_prefix)
            self._write(_END)
            self._state, self._key = -1, b""

    def _write_entry(self, prefix: bytes) -> None:
        key, value = self._key, self._value
        try:
            data = b"".join((i32(len(prefix) + len(key)), prefix, key, i32(len(value)), value))
        except struct.error:
            entry = EncodedEntry(self._key_group, self._state, key, b"")
            raise self.too_long(entry, max(len(prefix) + len(key), len(value))) from None
        self.entries[self._state] += 1
        self.bytes[self._state] += len(data)
        # What `_write` does, without a call for each entry.
        self._pending.append(data)
        self.size += len(data)
        self._buffered += len(data)
        if self._buffered >= _BUFFERED:
            self._flush()

    def _write(self, data: bytes | memoryview) -> None:
        self._pending.append(data)
        self.size += len(data)
        self._buffered += len(data)
        if self._buffered >= _BUFFERED:
            self._flush()

    def _flush(self) -> None:
        self._file.write(b"".join(self._pending))
        self._pending, self._buffered = [], 0
