"""Counts the entries of keyed state that are read by columns, on any machine.

Of a state with one entry a key nothing is held but the heaviest keys. Where a key has several, as
in a map or in windows, those of one key group are held and joined: its entries follow one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

try:
    import numpy as np
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "a summary needs NumPy and PyArrow: pip install 'keygroups[arrays]'", name=error.name
    ) from None
from numpy.typing import NDArray

from keygroups._checks import exact_repr
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups._values.rows import TtlValue
from keygroups.errors import SavepointError
from keygroups.progress import Meter
from keygroups.savepoint._columns.batches import typed_columns
from keygroups.savepoint._columns.columns import ArrowColumn
from keygroups.savepoint._columns.readers.parts import Column, Ints
from keygroups.savepoint._state.entry_columns import EntryColumns
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.native_columns import taken
from keygroups.savepoint._summary.times import TimesTally
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.savepoint.entries import KeySize

_HELD = 1 << 16  # entries of a state that are held before those of one key are joined
_VIEWS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}  # 0.0 and -0.0 are two keys


class StateTally:
    """The counts of a state in some key groups; it may be pickled.

    `elements` is None where the bytes do not say how many there are, `keys` where they do not say
    what is of the key. `heaviest` are the heaviest keys, in order.
    """

    def __init__(self, top: int, times: TimesTally) -> None:
        self.top = top
        self.times = times
        self.entries = self.bytes = 0
        self.elements: int | None = 0
        self.keys: int | None = 0
        self.heaviest: list[KeySize] = []

    def join(self, other: StateTally) -> None:
        """Add the counts of other key groups."""
        self.entries += other.entries
        self.bytes += other.bytes
        self.elements = _sum(self.elements, other.elements)
        self.keys = _sum(self.keys, other.keys)
        self.times.join(other.times)
        self.keep(other.heaviest)

    def keep(self, keys: Iterable[KeySize]) -> None:
        """Keep the heaviest keys; of equal ones those of the lowest key groups."""
        ranked = sorted([*self.heaviest, *keys], key=lambda key: (-key.bytes, key.key_group))
        self.heaviest = ranked[: self.top]


def _sum(count: int | None, other: int | None) -> int | None:
    return None if count is None or other is None else count + other


class OperatorTally:
    """The counts of some key groups of an operator; it may be pickled.

    `states` are those that were read, by name, `unread` the errors of the others. `key_groups` has
    the bytes of each key group.
    """

    def __init__(self) -> None:
        self.states: dict[str, StateTally] = {}
        self.unread: dict[str, str] = {}
        self.key_groups: Counter[int] = Counter()

    def join(self, other: OperatorTally) -> None:
        """Add the counts of other key groups or states."""
        for name, state in other.states.items():
            if name in self.states:
                self.states[name].join(state)
            else:
                self.states[name] = state
        self.unread = {**other.unread, **self.unread}
        self.key_groups += other.key_groups


@dataclass(frozen=True)
class SummaryTask:
    """Counts the entries that a task reads; it may be pickled.

    `at` is the time that ages are counted from, in epoch milliseconds, `top` how many of the
    heaviest keys of a state are kept.
    """

    read: ReadTask
    at: int
    top: int

    def run(self, meter: Meter | None = None) -> OperatorTally:
        """Return the OperatorTally; a state that cannot be read costs only its own numbers.

        A meter counts the bytes of the first attempt, of all states at once.
        """
        try:
            return self._counted(self.read, meter)
        except SavepointError as error:
            whole = str(error)
        tally = OperatorTally()
        try:
            names = [state.name for state in self.read.format.states()]
        except SavepointError:
            names = []
            tally.unread[""] = whole
        for name in names:
            try:
                tally.join(self._counted(replace(self.read, states=frozenset([name]))))
            except SavepointError as error:
                tally.unread[name] = str(error)
        return tally

    def _counted(self, read: ReadTask, meter: Meter | None = None) -> OperatorTally:
        counters: dict[str, _StateCounter] = {}
        tally = OperatorTally()
        for task in ahead([read], meter=meter):
            for entries in task.columns():
                name = entries.state.name
                if not entries.count:  # maps without an entry
                    continue
                if name not in counters:
                    times = TimesTally.of(entries.state.value_serializer is None, self.at)
                    counters[name] = _StateCounter(entries.state, read.subtask, self.top, times)
                sizes = counters[name].add(entries)
                _add_sizes(tally.key_groups, _numbers(entries.columns["key_group"]), sizes)
        tally.states = {name: counter.finished() for name, counter in counters.items()}
        return tally


def _add_sizes(weights: Counter[int], key_groups: Ints, sizes: Ints) -> None:
    """Add the bytes of entries to those of their key groups."""
    first = int(key_groups.min())
    # Sums below 2**53, which floats hold exactly, as a batch has some megabytes.
    sums = np.bincount(key_groups - first, sizes).astype(np.int64)
    for group in np.flatnonzero(sums).tolist():
        weights[first + group] += int(sums[group])


def _numbers(column: Column) -> NDArray[np.int64]:
    """Return the numbers of a column that has no null."""
    return np.asarray(column, np.int64)


class _StateCounter:
    """Counts the entries of one state that one subtask wrote, a batch after the other."""

    def __init__(self, state: StateDescriptor, subtask: int, top: int, times: TimesTally) -> None:
        self._tally = StateTally(top, times)
        self._state = state
        self._subtask = subtask
        self._key_column = typed_columns(state)[0]
        self._has_one_entry = (
            state.kind not in ("MAP", "PRIORITY_QUEUE")
            and state.namespace_serializer is VOID_NAMESPACE
        )
        self._held: list[_Held] = []
        self._most = _HELD

    def add(self, entries: EntryColumns) -> Ints:
        """Count some entries; return their sizes in bytes."""
        columns, tally = entries.columns, self._tally
        sizes = _numbers(columns["bytes"])
        tally.entries += entries.count
        tally.bytes += int(sizes.sum())
        self._count_elements(columns.get("value"), entries.count)
        time = "last_access" if self._state.value_serializer is not None else "timestamp"
        tally.times.add(columns.get(time))
        if self._has_keys(columns):
            keys = columns.get("key")  # None where all keys are null
            if not isinstance(keys, pa.Array):
                keys = [None] * entries.count if keys is None else [*keys]
            held = _Held(keys, _numbers(columns["key_group"]), sizes)
            if self._has_one_entry:
                self._weigh(held)
            else:
                self._hold(held)
        return sizes

    def finished(self) -> StateTally:
        """Return the counts of all that was added."""
        self._join(is_all=True)
        return self._tally

    def _count_elements(self, values: Column | None, count: int) -> None:
        """Count the elements of lists, each with its time, and the entries of maps."""
        tally = self._tally
        if self._state.kind == "MAP":
            tally.elements = tally.entries
        elif self._state.kind != "LIST" or tally.elements is None:
            tally.elements = None
        elif isinstance(values, pa.Array) and pa.types.is_list(values.type):
            elements = values.flatten()
            tally.elements += len(elements)
            if self._state.has_ttl:
                tally.times.add(elements.field("last_access"))
        elif isinstance(values, (list, tuple)) and all(type(value) is list for value in values):
            tally.elements += sum(map(len, values))
            held = (element for value in values for element in value)
            tally.times.add(
                [element.last_access for element in held if isinstance(element, TtlValue)]
            )
        else:  # Bytes that only the job can part into elements.
            tally.elements = None

    def _has_keys(self, columns: Mapping[str, Column]) -> bool:
        """Tell whether the bytes say what is of the key, in these entries and all before."""
        if self._tally.keys is None:
            return False
        apart = columns.get("key_bytes")
        pairs = () if apart is None else zip(columns["key"], apart)
        if any(key is None and encoded is not None for key, encoded in pairs):
            self._tally.keys, self._tally.heaviest, self._held = None, [], []
            return False
        return True

    def _hold(self, held: _Held) -> None:
        """Hold entries whose keys may have others, until it is worth joining them."""
        self._held.append(held)
        if sum(len(some.sizes) for some in self._held) >= self._most:
            self._join(is_all=False)

    def _join(self, is_all: bool) -> None:
        """Join the entries of each key; count the keys of the key groups that are whole."""
        if not self._held:
            return
        joined = _joined(self._held, self._key_column)
        self._held = []
        if not is_all:
            is_last = joined.key_groups == joined.key_groups[-1]
            self._held = [joined.some(np.flatnonzero(is_last))]
            self._most = max(_HELD, 2 * len(self._held[0].sizes))
            joined = joined.some(np.flatnonzero(~is_last))
        self._weigh(joined)

    def _weigh(self, keys: _Held) -> None:
        """Count keys that have all their entries, and keep the heaviest."""
        tally, sizes = self._tally, keys.sizes
        assert tally.keys is not None
        tally.keys += len(sizes)
        rows = np.arange(len(sizes))
        if len(tally.heaviest) == tally.top:
            rows = np.flatnonzero(sizes > tally.heaviest[-1].bytes)
        rows = rows[np.argsort(-sizes[rows], kind="stable")[: tally.top]]
        if len(rows):
            tally.keep(keys.sizes_of(rows, self._subtask, self._key_column))


@dataclass(frozen=True)
class _Held:
    """Keys with their key groups and sizes in bytes, and how many entries each row is of."""

    keys: Column
    key_groups: Ints
    sizes: Ints
    counts: Ints | None = None

    def some(self, rows: Ints) -> _Held:
        """Return the rows of some numbers."""
        counts = None if self.counts is None else self.counts[rows]
        keys = taken(self.keys, pa.array(rows))
        return _Held(keys, self.key_groups[rows], self.sizes[rows], counts)

    def sizes_of(self, rows: Ints, subtask: int, column: ArrowColumn | None) -> list[KeySize]:
        """Return the KeySizes of some rows."""
        chosen = self.some(rows)
        counts = chosen.all_counts.tolist()
        groups, sizes = chosen.key_groups.tolist(), chosen.sizes.tolist()
        return [
            KeySize(key, key_group, subtask, count, size)
            for key, key_group, count, size in zip(chosen.values(column), groups, counts, sizes)
        ]

    @property
    def all_counts(self) -> Ints:
        """The number of entries of each row."""
        return np.ones(len(self.sizes), np.int64) if self.counts is None else self.counts

    def values(self, column: ArrowColumn | None) -> list[Any]:
        """Return the keys as values of Python."""
        if column is None or not isinstance(self.keys, pa.Array):
            keys: list[Any] = self.keys
            return keys
        return column.restore(self.keys)


def _joined(some: Sequence[_Held], column: ArrowColumn | None) -> _Held:
    """Return a row for each key, in the order in which the keys came."""
    if all(isinstance(held.keys, pa.Array) for held in some):
        keys: Column = pa.concat_arrays([held.keys for held in some])
        parts = _parts(keys)
    else:
        keys = [key for held in some for key in held.values(column)]
        parts = None
    if parts is None:
        values = keys.to_pylist() if isinstance(keys, pa.Array) else keys
        parts = [pa.array([exact_repr(value) for value in values], pa.large_string())]
    groups, sizes, counts = (
        np.concatenate(numbers)
        for numbers in zip(*((held.key_groups, held.sizes, held.all_counts) for held in some))
    )
    by = [str(number) for number in range(len(parts) + 1)]
    table = pa.table(
        [*parts, groups, np.arange(len(sizes)), sizes, counts], [*by, "row", "size", "count"]
    )
    joined = table.group_by(by).aggregate([("row", "min"), ("size", "sum"), ("count", "sum")])
    rows = joined["row_min"].to_numpy()
    order = np.argsort(rows)  # Arrow does not keep the order of all groups.
    rows = rows[order]
    sizes, counts = (joined[name].to_numpy()[order] for name in ("size_sum", "count_sum"))
    return _Held(taken(keys, pa.array(rows)), groups[rows], sizes, counts)


def _parts(array: pa.Array) -> list[pa.Array] | None:
    """Return arrays whose values are equal where those of one are, None where none are known."""
    if isinstance(array, pa.StructArray):
        parts = [array.is_valid()]
        for of_field in map(_parts, array.flatten()):
            if of_field is None:
                return None
            parts += of_field
        return parts
    if array.type in _VIEWS:
        return [array.view(_VIEWS[array.type])]
    return None if pa.types.is_nested(array.type) else [array]
