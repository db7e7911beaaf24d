"""Edits the keyed state of one subtask, on another machine too.

Entries that stay where they are go to the new file at once. Those that get another key, namespace
or user key go to a file beside it, and then to the file of the subtask that has their key group:
its entries and these are written once more, sorted where some came.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from keygroups._serializers.data_input import ReadingContext
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.progress import Meter
from keygroups.savepoint._edits.steps import Apply, Framed, FunctionError, Place, Step, applied
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import KeyGroupsHandle, StreamHandle
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile
from keygroups.savepoint._state.writing.spill import packed, sorted_entries, unpacked
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.savepoint._tasks.write import WriteTask, WrittenFile

_BUFFERED = 1 << 24  # bytes of entries that moved which are held before they are written


class StatePlan(NamedTuple):
    """What becomes of a state: its number in the new header, and what is done to its entries.

    Each step is with the state as it is before that.
    """

    number: int
    steps: tuple[tuple[StateDescriptor, Step], ...]


class StateCounts(NamedTuple):
    """How many entries of a state were changed and deleted, and came in addition, in a subtask."""

    changed: int
    deleted: int
    added: int


class MovedEntries(NamedTuple):
    """Entries for a subtask: `size` bytes of a file, from `start` on."""

    file: str
    start: int
    size: int


class EditedFile(NamedTuple):
    """The file of a subtask, None if it has no entries, and what was done.

    `entries` are by the old name of a state how many there were, `counts` what became of them.
    `deleted_keys` are the keys that had entries, as bytes; `moved` are entries by the subtask that
    they are for.
    """

    subtask: int
    written: WrittenFile | None
    entries: Mapping[str, int]
    counts: Mapping[str, StateCounts]
    deleted_keys: frozenset[bytes]
    moved: Mapping[int, tuple[MovedEntries, ...]]


@dataclass(frozen=True)
class EditTask:
    """Edits what one subtask wrote; it may be pickled, if the functions may, and tried again.

    `plans` are by the names that the states have in the old savepoint.
    """

    read: ReadTask
    write: WriteTask
    parallelism: int
    plans: Mapping[str, StatePlan]

    def metered(self, meter: Meter | None) -> EditTask:
        """Return the same task, which counts the bytes that it reads."""
        return replace(self, read=replace(self.read, files=self.read.files.metered(meter)))

    def run(self) -> EditedFile:
        """Write the file of the subtask, and one for entries that move if there are any.

        Raises SavepointError where state is damaged or a file cannot be written, InvalidValueError
        and InvalidTypeError for what a function returns and is no entry, and what it raises.
        """
        try:
            return self._run()
        except FunctionError as error:
            raised = error.error
        raise raised

    def _run(self) -> EditedFile:
        write = self.write
        place = Place(self.read.files.base, write.subtask, write.max_parallelism, set())
        states = {
            name: _EditedState(plan.number, applied(plan.steps, place))
            for name, plan in self.plans.items()
        }
        with write.open() as file, closing(_MovedWriter(write, self.parallelism)) as moved:
            for name, key_group, _, key, value in self.read.framed_entries(has_keys=False):
                state = states[name]
                state.entries += 1
                entries = None if state.apply is None else state.apply(key_group, key, value)
                if entries is None:
                    file.add(EncodedEntry(key_group, state.number, key, value))
                else:
                    state.take(entries, (key_group, key, value), file, moved)
            moved.flush()
        return EditedFile(
            write.subtask,
            write.written(file) if file.entries else None,
            {name: state.entries for name, state in states.items()},
            {name: state.counts() for name, state in states.items()},
            frozenset(place.deleted),
            {subtask: tuple(entries) for subtask, entries in moved.written.items()},
        )


class _EditedState:
    """What is done to a state in one subtask, and to how many entries it was."""

    def __init__(self, number: int, apply: Apply | None) -> None:
        self.number = number
        self.apply = apply
        self.entries = self.changed = self.deleted = self.added = 0

    def take(
        self, entries: Iterable[Framed], old: Framed, file: KeyedStateFile, moved: _MovedWriter
    ) -> None:
        """Write the entries that an old one becomes."""
        old_key_group, old_key, old_value = old
        count = 0
        for key_group, key, value in entries:
            entry = EncodedEntry(key_group, self.number, key, value)
            is_there = key == old_key and key_group == old_key_group
            if is_there:
                file.add(entry)
            else:
                moved.add(entry)
            if not count and not (is_there and value == old_value):
                self.changed += 1
            count += 1
        if count:
            self.added += count - 1
        else:
            self.deleted += 1

    def counts(self) -> StateCounts:
        """Return to how many entries something was done."""
        return StateCounts(self.changed, self.deleted, self.added)


class _MovedWriter:
    """Writes entries to a file, made when the first comes, and remembers for whom they are."""

    def __init__(self, task: WriteTask, parallelism: int) -> None:
        self.written: dict[int, list[MovedEntries]] = {}
        self._task = task
        self._parallelism = parallelism
        self._closing = ExitStack()
        self._file: BinaryIO | None = None
        self._size = 0
        self._held: dict[int, bytearray] = {}
        self._held_size = 0
        self._name = f"{task.operator_id}-{task.subtask}-{uuid.uuid4().hex}.moved"

    def add(self, entry: EncodedEntry) -> None:
        """Take an entry."""
        subtask = compute_operator_index_for_key_group(
            self._task.max_parallelism, self._parallelism, entry.key_group
        )
        data = packed(entry)
        self._held.setdefault(subtask, bytearray()).extend(data)
        self._held_size += len(data)
        if self._held_size >= _BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        for subtask, data in self._held.items():
            if self._file is None:
                self._file = self._closing.enter_context(self._task.folder.create(self._name))
            self._file.write(data)
            moved = MovedEntries(self._name, self._size, len(data))
            self.written.setdefault(subtask, []).append(moved)
            self._size += len(data)
        self._held, self._held_size = {}, 0

    def close(self) -> None:
        """Close the file."""
        self._closing.close()


@dataclass(frozen=True)
class MergeTask:
    """Writes the file of a subtask once more, with entries that came; it may be pickled.

    `files` opens those of the new savepoint, `written` is the handle of the subtask's, if there
    is one, whose header is read with `context`.
    """

    files: Files
    context: ReadingContext
    write: WriteTask
    written: KeyGroupsHandle | None
    moved: tuple[MovedEntries, ...]

    @property
    def bytes(self) -> int:
        """How many bytes there are to read."""
        written = 0 if self.written is None else self.written.stream.size
        return written + sum(moved.size for moved in self.moved)

    def metered(self, meter: Meter | None) -> MergeTask:
        """Return the same task, which counts the bytes that it reads."""
        return replace(self, files=self.files.metered(meter))

    def run(self, scratch: Path | None = None) -> WrittenFile:
        """Write the file; what is sorted is meanwhile in files in a folder.

        Raises InvalidValueError where two entries have one key, SavepointError where a file
        cannot be read or written.
        """
        came = sorted_entries(self._moved_entries(), scratch)
        with closing(came):
            return self.write.write(_merged(self._written_entries(), came))

    def _written_entries(self) -> Iterator[EncodedEntry]:
        if self.written is None:
            return
        numbers = {state.name: number for number, state in enumerate(self.write.states)}
        key_groups = self.written.key_groups
        task = ReadTask(
            self.files,
            self.context,
            (self.written,),
            self.write.subtask,
            self.write.max_parallelism,
            KeyGroupRanges.of([(key_groups.start_key_group, key_groups.end_key_group)]),
            None,
        )
        for name, key_group, _, key, value in task.framed_entries(has_keys=False):
            yield EncodedEntry(key_group, numbers[name], key, value)

    def _moved_entries(self) -> Iterator[EncodedEntry]:
        for file, start, size in self.moved:
            stream = StreamHandle(size, path=file, is_relative=True, is_segment=True, start=start)
            with self.files.open(stream) as opened:
                data = opened.read(0, size)
            yield from unpacked(data)


def _merged(
    written: Iterator[EncodedEntry], came: Iterator[EncodedEntry]
) -> Iterator[EncodedEntry]:
    """Yield all by key group, and those of a key group sorted if some came."""
    ahead = next(came, None)
    for key_group, of_key_group in groupby(written, lambda entry: entry.key_group):
        while ahead is not None and ahead.key_group < key_group:
            yield ahead
            ahead = next(came, None)
        if ahead is None or ahead.key_group > key_group:
            yield from of_key_group
        else:
            entries = [*of_key_group]
            while ahead is not None and ahead.key_group == key_group:
                entries.append(ahead)
                ahead = next(came, None)
            yield from sorted(entries)
    if ahead is not None:
        yield ahead
        yield from came
