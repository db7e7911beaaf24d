"""Edits the keyed state of one subtask, on another machine too.

Entries that keep key and key group go to the new file at once. Those that get another key,
namespace or user key ("moved" entries) go to a file beside it. A second task then writes the file
of the subtask that has their key group once more: it reads the new file, and takes them in.

Where the max parallelism or the parallelism changes, every entry moves: `EditTask.entries` yields
all of them, and the caller sorts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.hashing import finalise
from keygroups.progress import Meter
from keygroups.savepoint._edits.moved_entries import (
    MovedEntries,
    MovedWriter,
    merged,
    moved_entries,
)
from keygroups.savepoint._edits.steps import (
    BY_COLUMNS,
    AnyStep,
    FunctionError,
    MapBatches,
    StepContext,
    applied,
)
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.layouts import layout_of
from keygroups.savepoint._state.writing.spill import sorted_entries
from keygroups.savepoint._state.writing.write_task import WriteTask, WrittenFile
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.state_keys import key_group_prefix_bytes

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from keygroups.savepoint._state.entry_columns import EntryColumns

LEAST_OF_COLUMNS = 1 << 21
"""Bytes of state from which on it takes less time to import NumPy and PyArrow than not to."""
_SORTED = 1 << 22  # bytes of entries that are sorted at once, in about 20 times as much memory


class StatePlan(NamedTuple):
    """The plan for one old state: its number in the new header, and the steps for its entries.

    Each step stands with the state as the steps before it leave it.
    """

    number: int
    steps: tuple[tuple[StateDescriptor, AnyStep], ...]


class StateCounts(NamedTuple):
    """The numbers of entries of a state that one subtask changed, deleted and added."""

    changed: int
    deleted: int
    added: int


class EditedFile(NamedTuple):
    """The new file of a subtask, None if it has no entries, and the counts of its edits.

    `counts` are by the old names of the states. `deleted_keys` are the bytes of those deleted keys
    that had entries here; `moved` has the moved entries by the subtask they are for.
    """

    subtask: int
    written: WrittenFile | None
    counts: Mapping[str, StateCounts]
    deleted_keys: frozenset[bytes]
    moved: Mapping[int, tuple[MovedEntries, ...]]


@dataclass(frozen=True)
class EditTask:
    """Edits the keyed state of one subtask; picklable if the functions are, and repeatable.

    `read` reads the old entries, and `write` writes the file of the same subtask. `plans` are by
    the names of the states in the old savepoint. With `is_anew` every entry moves: `write` may be
    any WriteTask of the operator, with another max parallelism than `read`. That has to be a
    divisor of the old one where the hash of the keys is not known.

    `moved` are entries that moved to the subtask, in files beside those that `read` reads, which
    then are new: their entries stay, and there is no step.
    """

    read: ReadTask
    write: WriteTask
    parallelism: int
    plans: Mapping[str, StatePlan]
    is_anew: bool = False
    moved: tuple[MovedEntries, ...] = ()

    @property
    def bytes(self) -> int:
        """About how many bytes there are to read."""
        return self.read.bytes_to_read + sum(moved.size for moved in self.moved)

    def metered(self, meter: Meter | None) -> EditTask:
        """Return the same task, which counts the bytes that it reads."""
        return replace(self, read=replace(self.read, files=self.read.files.metered(meter)))

    def run(self, scratch: Path | None = None) -> EditedFile:
        """Write the file of the subtask, and one for entries that move if there are any.

        The sort of `moved` spills to files in `scratch`. Raises SavepointError where state is
        damaged or a file cannot be written, InvalidValueError and InvalidTypeError for what a
        function returns and is no entry, InvalidValueError where two entries have one key, and
        what a function raises.
        """
        try:
            return self._run_by_merge(scratch) if self.moved else self._run()
        except FunctionError as error:
            raised = error.error
        raise raised

    def _run_by_merge(self, scratch: Path | None) -> EditedFile:
        moved = sorted_entries(moved_entries(self.moved, self.read.files), scratch)
        with closing(moved):
            entries = merged(self.read.encoded_entries(self._numbers), moved)
            return Edits(self).done(self.write.write(entries))

    def _run(self) -> EditedFile:
        if self._has_batches and not self.is_anew:
            return self._written_by_columns()
        edited = self._run_by_columns() if self._has_columns else None
        return self._run_by_entries() if edited is None else edited

    @property
    def _has_batches(self) -> bool:
        """Whether a step takes entries as columns alone."""
        steps = chain.from_iterable(plan.steps for plan in self.plans.values())
        return any(isinstance(step, MapBatches) for _, step in steps)

    @property
    def _plans_by_columns(self) -> dict[str, StatePlan]:
        """The plans of which each step takes entries as columns, and leaves their keys."""
        return {
            name: plan
            for name, plan in self.plans.items()
            if all(isinstance(step, BY_COLUMNS) for _, step in plan.steps)
        }

    @property
    def _has_columns(self) -> bool:
        """Whether all steps take columns, and entries are enough to import NumPy and PyArrow."""
        return (
            not self.is_anew
            and self.read.bytes >= LEAST_OF_COLUMNS
            and self.read.format.has_framed_columns
            and len(self._plans_by_columns) == len(self.plans)
        )

    def _run_by_columns(self) -> EditedFile | None:
        """Write entries edited as columns; None where that is left to `_run_by_entries`.

        That is so without NumPy and PyArrow, and where something is wrong, which it names.
        """
        try:
            import numpy  # noqa: F401  # This and PyArrow are of an extra.
            import pyarrow  # noqa: F401
        except ModuleNotFoundError:
            return None
        try:
            return self._written_by_columns()
        except KeyGroupsError:
            return None

    def _written_by_columns(self) -> EditedFile:
        """Write entries edited as columns, and those of states with other steps among them."""
        from keygroups.savepoint._edits.column_edits import write_edited

        write, edits = self.write, Edits(self)
        prefix_bytes = key_group_prefix_bytes(write.max_parallelism)
        with write.open() as file, closing(MovedWriter(write, self.parallelism)) as moved:
            parts = self._edited(self.read.split(_SORTED), edits, moved)
            write_edited(parts, self._new_numbers, file, prefix_bytes)
            moved.flush()
        return edits.done(write.written(file) if file.entries else None, moved.written)

    def _edited(
        self, reads: Iterable[ReadTask], edits: Edits, moved: MovedWriter | None = None
    ) -> Iterator[Iterator[EntryColumns]]:
        """Return the edited entries of each part of `read`, with the states of the new header.

        Those that get another key go to `moved` if there is one.
        """
        from keygroups.savepoint._edits.column_edits import ColumnEdits
        from keygroups.savepoint._state.framed_columns import framed_chunks

        states, plans = self.write.states, self._plans_by_columns
        names, others = frozenset(plans), self.plans.keys() - plans.keys()
        columns = ColumnEdits(plans, states, edits.place, edits.count_columns)

        def edited(read: ReadTask) -> Iterator[EntryColumns]:
            if names:
                alone = replace(read, states=names) if others else read
                yield from map(columns.edited, alone.framed_columns())
            if others:
                rest = replace(read, states=frozenset(others)).encoded_entries(self._numbers)
                after = edits.all(rest) if moved is None else _staying(rest, edits, moved)
                yield from framed_chunks(states, read.subtask, after)

        return map(edited, reads)

    def _run_by_entries(self) -> EditedFile:
        write, edits = self.write, Edits(self)
        if self.is_anew:
            with closing(MovedWriter(write, self.parallelism)) as moved:
                for entry in self.entries(edits):
                    moved.add(entry)
                moved.flush()
            return edits.done(moved=moved.written)
        with write.open() as file, closing(MovedWriter(write, self.parallelism)) as moved:
            for old in self.read.encoded_entries(self._numbers):
                after = edits.entries(old)
                if after is None:
                    file.add(old)
                    continue
                for entry in after:
                    stays = entry.key == old.key and entry.key_group == old.key_group
                    (file if stays else moved).add(entry)
            moved.flush()
        return edits.done(write.written(file) if file.entries else None, moved.written)

    def entries(self, edits: Edits | None = None) -> Iterator[EncodedEntry]:
        """Yield the edited entries in the order of the old key groups, with the new key groups.

        `edits` applies the steps and counts them; plans without steps need none. Raises what
        `run` raises, FunctionError for an error of a user's function, and SavepointError where an
        entry stands in another key group than its key hashes to.
        """
        if edits is not None and self._has_batches:
            from keygroups.savepoint._columns.entry_batches import entries_of

            yield from chain.from_iterable(map(entries_of, self.batches(edits)))
            return
        entries = self.read.encoded_entries(self._numbers)
        yield from self._rekeyed(entries if edits is None else edits.all(entries))

    def batches(self, edits: Edits | None = None) -> Iterator[RecordBatch]:
        """Yield the entries of `entries` as batches of Arrow, in no order.

        Takes NumPy and PyArrow.
        """
        from keygroups.savepoint._edits.rekeyed_columns import rekeyed_batches

        return rekeyed_batches(
            self.read.framed_columns()
            if edits is None
            else next(self._edited([self.read], edits)),
            self._numbers if edits is None else self._new_numbers,
            None if self._key is None else self._key.key_type,
            (self.read.max_parallelism, self.write.max_parallelism),
            self._rekeyed,
        )

    def _rekeyed(self, entries: Iterable[EncodedEntry]) -> Iterator[EncodedEntry]:
        """Yield entries in their old key groups with their new ones."""
        new, serializer = self.write.max_parallelism, self._key
        hasher = None if serializer is None else key_hasher(serializer)
        make = tuple.__new__  # EncodedEntry's own one calls it
        if serializer is None or hasher is None:
            # Where `new` divides `old`, (hash % old) % new == hash % new, so that no hash is
            # needed: a key in key group 77 of 128 goes to 77 % 32 = 13 of 32.
            for key_group, number, encoded, value in entries:
                yield make(EncodedEntry, (key_group % new, number, encoded, value))
            return
        starts = [layout_of(state).before_key for state in self.write.states]
        hashed = self._key_hash(serializer, hasher)
        # Entries of a MAP repeat their key, and hashing it may take long: the last result is used
        # again. The bytes tell, as 0.0 == -0.0 in Python, and they are two keys in Java.
        last, last_key_group, last_new = b"", -1, -1
        for entry in entries:
            key_group, number, encoded, value = entry
            start = starts[number]
            if key_group != last_key_group or not encoded.startswith(last, start):
                scrambled, end = hashed(entry, start)
                last, last_key_group, last_new = encoded[start:end], key_group, scrambled % new
            yield make(EncodedEntry, (last_new, number, encoded, value))

    def _key_hash(
        self, serializer: Serializer, hasher: Callable[[Any], int]
    ) -> Callable[[EncodedEntry, int], tuple[int, int]]:
        """Return a function from an entry and the start of its key to its hash and the end."""
        read, old = serializer.read, self.read.max_parallelism
        assert read is not None  # a key with a hash is read here

        def hashed(entry: EncodedEntry, start: int) -> tuple[int, int]:
            key_group, number, encoded, _ = entry
            try:
                key, end = read(encoded, start)
            except (*TRUNCATED, ValueError) as error:
                raise self._no_hash(entry, error) from None
            try:
                scrambled = finalise(hasher(key))
            except KeyGroupsError as error:  # it is null, or exceeds its type's precision
                raise self._no_hash(entry, error) from None
            if scrambled % old != key_group:
                raise SavepointError(
                    f"{self.read.files.base}: key {show(key)} of state {self._names[number]!r} "
                    f"is in key group {key_group}, and of key group {scrambled % old} by its hash "
                    f"as {serializer.key_type or serializer!r}"
                )
            return scrambled, end

        return hashed

    def _no_hash(self, entry: EncodedEntry, error: Exception) -> SavepointError:
        where = f"state {self._names[entry.state]!r} in key group {entry.key_group}"
        return SavepointError(f"{self.read.files.base}: a key of {where}: {error}")

    @property
    def _numbers(self) -> dict[str, int]:
        """The numbers of the states in the new header, by their old names."""
        return {name: plan.number for name, plan in self.plans.items()}

    @property
    def _new_numbers(self) -> dict[str, int]:
        """The same by their new names."""
        return {state.name: number for number, state in enumerate(self.write.states)}

    @property
    def _names(self) -> dict[int, str]:
        return {plan.number: name for name, plan in self.plans.items()}

    @property
    def _key(self) -> Serializer | None:
        """The serializer of the new savepoint's keys, None if all states were removed."""
        states = self.write.states
        return states[0].key_serializer if states else None


def _staying(
    entries: Iterable[EncodedEntry], edits: Edits, moved: MovedWriter
) -> Iterator[EncodedEntry]:
    """Yield the edited entries that keep their keys; the others go to `moved`."""
    for old in entries:
        for entry in edits.all([old]):
            if entry.key == old.key and entry.key_group == old.key_group:
                yield entry
            else:
                moved.add(entry)


class Edits:
    """The steps of a task, bound to one subtask, with the counts of what they did.

    `applied` has the steps of each state by its number, joined to one Apply; `place` is theirs.
    """

    def __init__(self, task: EditTask) -> None:
        read = task.read
        self._subtask = read.subtask
        self._plans = task.plans
        self.place = StepContext(read.files.base, read.subtask, read.max_parallelism, set())
        self.applied = {
            plan.number: applied(
                [(state, step) for state, step in plan.steps if not isinstance(step, MapBatches)],
                self.place,
            )
            for plan in task.plans.values()
        }
        self._changed: Counter[int] = Counter()
        self._deleted: Counter[int] = Counter()
        self._added: Counter[int] = Counter()

    def all(self, entries: Iterable[EncodedEntry]) -> Iterator[EncodedEntry]:
        """Yield the entries that some become."""
        for old in entries:
            after = self.entries(old)
            if after is None:
                yield old
            else:
                yield from after

    def entries(self, old: EncodedEntry) -> Iterable[EncodedEntry] | None:
        """Return the entries that an old one becomes, and count them; None: it stays."""
        apply = self.applied[old.state]
        entries = None if apply is None else apply(old)
        if type(entries) is not tuple:
            return None if entries is None else self._counted(entries, old)
        # It is there already: no generator has to run for it.
        self._count(old.state, len(entries), entries[:1] != (old,))
        return entries

    def _counted(
        self, entries: Iterable[EncodedEntry], old: EncodedEntry
    ) -> Iterator[EncodedEntry]:
        count, is_changed = 0, True
        for entry in entries:
            if not count and entry == old:
                is_changed = False
            count += 1
            yield entry
        self._count(old.state, count, is_changed)

    def _count(self, state: int, entries: int, is_changed: bool) -> None:
        """Count what an entry of a state became: so many entries, the first changed or not."""
        if entries:
            self._changed[state] += is_changed
            if entries > 1:
                self._added[state] += entries - 1  # three, the old one first, are 2 added
        else:
            self._deleted[state] += 1

    def count_columns(self, state: int, changed: int, deleted: int) -> None:
        """Count how many entries of a state were changed and deleted as columns."""
        self._changed[state] += changed
        self._deleted[state] += deleted

    def done(
        self,
        written: WrittenFile | None = None,
        moved: Mapping[int, Iterable[MovedEntries]] = MappingProxyType({}),
    ) -> EditedFile:
        """Return the EditedFile of the subtask, once all of its entries were edited."""
        counts = {
            name: StateCounts(
                self._changed[plan.number], self._deleted[plan.number], self._added[plan.number]
            )
            for name, plan in self._plans.items()
        }
        return EditedFile(
            self._subtask,
            written,
            counts,
            frozenset(self.place.deleted),
            {subtask: tuple(entries) for subtask, entries in moved.items()},
        )
