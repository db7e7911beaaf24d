"""Edits the keyed state of one subtask, on another machine too.

Entries that stay where they are go to the new file at once. Those that get another key, namespace
or user key go to a file beside it, and then to the file of the subtask that has their key group:
its entries and these are written once more, sorted where some came.

Where the key groups or the subtasks become others, no entry has a place to stay in:
`EditTask.entries` yields all of them for whoever sorts them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import Serializer
from keygroups._serializers.data_input import ReadingContext
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.hashing import finalise
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.progress import Meter
from keygroups.savepoint._edits.steps import Apply, Framed, FunctionError, Place, Step, applied
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import KeyGroupsHandle, StreamHandle
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.layouts import layout_of
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

    `counts` are by the old name of a state what became of its entries. `deleted_keys` are the keys
    that had entries, as bytes; `moved` are entries by the subtask that they are for.
    """

    subtask: int
    written: WrittenFile | None
    counts: Mapping[str, StateCounts]
    deleted_keys: frozenset[bytes]
    moved: Mapping[int, tuple[MovedEntries, ...]]


@dataclass(frozen=True)
class EditTask:
    """Edits what one subtask wrote; it may be pickled, if the functions may, and tried again.

    `read` reads it, and `write` writes the file of the same subtask. `plans` are by the names that
    the states have in the old savepoint. With `is_anew` all entries get a new place: the max
    parallelism of `write` may be another than that of `read`, and any `write` of the operator will
    do. Where the key group of a key cannot be computed, the new one is a divisor of the old.
    """

    read: ReadTask
    write: WriteTask
    parallelism: int
    plans: Mapping[str, StatePlan]
    is_anew: bool = False

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
        write, edits = self.write, Edits(self)
        if self.is_anew:
            with closing(_MovedWriter(write, self.parallelism)) as moved:
                for entry in self.entries(edits):
                    moved.add(entry)
                moved.flush()
            return edits.done(moved=moved.written)
        states = edits.states
        with write.open() as file, closing(_MovedWriter(write, self.parallelism)) as moved:
            for name, key_group, _, key, value in self.read.framed_entries(has_keys=False):
                state = states[name]
                entries = None if state.apply is None else state.apply(key_group, key, value)
                if entries is None:
                    file.add(EncodedEntry(key_group, state.number, key, value))
                else:
                    state.take(entries, (key_group, key, value), file, moved)
            moved.flush()
        return edits.done(write.written(file) if file.entries else None, moved.written)

    def entries(self, edits: Edits | None = None) -> Iterator[EncodedEntry]:
        """Yield what the entries become, in the order of the old key groups, with their new ones.

        `edits` are what counts them, which plans without steps do not need. Raises what `run`
        raises, a FunctionError for what a function does, and SavepointError where the key group of
        a key is not the one it stands in.
        """
        if edits is not None:
            yield from self._edited_entries(edits)
            return
        numbers = {name: plan.number for name, plan in self.plans.items()}
        rekey = self._rekey()
        last_key, last_key_group, new = object(), -1, -1
        for state, key_group, key, encoded_key, encoded_value in self.read.framed_entries():
            # The user keys of a MAP have one key, which may be long to hash. Other keys than texts
            # may be two in Java and one in Python.
            if key_group != last_key_group or (
                key is not last_key and (type(key) is not str or key != last_key)
            ):
                last_key, last_key_group, new = key, key_group, rekey(state, key_group, key)
            yield EncodedEntry(new, numbers[state], encoded_key, encoded_value)

    def _edited_entries(self, edits: Edits) -> Iterator[EncodedEntry]:
        rekey, key_group_of, states = self._rekey(), self._key_group_of(), edits.states
        for name, key_group, key, old_key, old_value in self.read.framed_entries():
            state = states[name]
            entries = None if state.apply is None else state.apply(key_group, old_key, old_value)
            if entries is None:
                group = rekey(name, key_group, key)
                yield EncodedEntry(group, state.number, old_key, old_value)
                continue
            count, is_changed = 0, True
            for step_group, new_key, value in entries:
                if new_key == old_key and step_group == key_group:
                    group = rekey(name, key_group, key)
                    if not count and value == old_value:
                        is_changed = False
                else:
                    group = key_group_of(state.number, step_group, new_key)
                yield EncodedEntry(group, state.number, new_key, value)
                count += 1
            state.count(count, is_changed)

    def _rekey(self) -> Callable[[str, int, Any], int]:
        """Return a function from a state, an old key group and a key to the new key group."""
        old, new, serializer = self.read.max_parallelism, self.write.max_parallelism, self._key
        hasher = None if serializer is None else key_hasher(serializer)
        if serializer is None or hasher is None:
            # Whatever the hash is: where b divides a, (hash mod a) mod b is hash mod b.
            return lambda state, key_group, key: key_group % new
        base, key_type = self.read.files.base, serializer.key_type or serializer

        def rekey(state: str, key_group: int, key: Any) -> int:
            try:
                scrambled = finalise(hasher(key))
            except KeyGroupsError as error:  # of a null, or a number beyond the key's precision
                raise SavepointError(
                    f"{base}: a key of state {state!r} in key group {key_group}: {error}"
                ) from None
            if scrambled % old != key_group:
                raise SavepointError(
                    f"{base}: key {show(key)} of state {state!r} is in key group {key_group}, and "
                    f"of key group {scrambled % old} by its hash as {key_type!r}"
                )
            return scrambled % new

        return rekey

    def _key_group_of(self) -> Callable[[int, int, bytes], int]:
        """Return a function from what a step made to its key group.

        It takes the number of a state, the key group under the old max parallelism and the bytes
        of the key, which are read once more: a step tells no hash.
        """
        old, new, serializer = self.read.max_parallelism, self.write.max_parallelism, self._key
        hasher = None if serializer is None else key_hasher(serializer)
        if serializer is None or hasher is None or old == new:
            return lambda number, key_group, key: key_group % new
        read = serializer.read
        assert read is not None  # as the step has computed a key group
        starts = [layout_of(state).before_key for state in self.write.states]
        return lambda number, key_group, key: finalise(hasher(read(key, starts[number])[0])) % new

    @property
    def _key(self) -> Serializer | None:
        """The serializer of keys in the end, None where no state is left."""
        states = self.write.states
        return states[0].key_serializer if states else None


class Edits:
    """What a task does to the entries of one subtask, and to how many it was."""

    def __init__(self, task: EditTask) -> None:
        read = task.read
        self._subtask = read.subtask
        self._place = Place(read.files.base, read.subtask, read.max_parallelism, set())
        self.states = {
            name: _EditedState(plan.number, applied(plan.steps, self._place))
            for name, plan in task.plans.items()
        }

    def done(
        self,
        written: WrittenFile | None = None,
        moved: Mapping[int, Iterable[MovedEntries]] = MappingProxyType({}),
    ) -> EditedFile:
        """Return what was done, when it is, with the files that have the entries."""
        return EditedFile(
            self._subtask,
            written,
            {name: state.counts() for name, state in self.states.items()},
            frozenset(self._place.deleted),
            {subtask: tuple(entries) for subtask, entries in moved.items()},
        )


class _EditedState:
    """What is done to a state in one subtask, and to how many entries it was."""

    def __init__(self, number: int, apply: Apply | None) -> None:
        self.number = number
        self.apply = apply
        self.changed = self.deleted = self.added = 0

    def take(
        self, entries: Iterable[Framed], old: Framed, file: KeyedStateFile, moved: _MovedWriter
    ) -> None:
        """Write the entries that an old one becomes."""
        old_key_group, old_key, old_value = old
        count = 0
        is_changed = True
        for key_group, key, value in entries:
            entry = EncodedEntry(key_group, self.number, key, value)
            is_there = key == old_key and key_group == old_key_group
            if is_there:
                file.add(entry)
            else:
                moved.add(entry)
            if not count and is_there and value == old_value:
                is_changed = False
            count += 1
        self.count(count, is_changed)

    def count(self, entries: int, is_changed: bool) -> None:
        """Count what an entry became: so many, of which the first may be as it was."""
        if entries:
            self.changed += is_changed
            self.added += entries - 1
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
