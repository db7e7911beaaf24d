"""The differences of two savepoints: of operators, states, entries, splits and committables.

`Savepoint.compare` with another returns a `SavepointComparison`, with an `OperatorComparison` for
each operator; in it is a `StateComparison` for each state, which counts the entries that are
equal, changed, only here and only there, and has a few of them, each an `EntryDifference`. A split
of a source that differs is a `SplitDifference`, a transaction or file that a sink is to commit a
`CommittableDifference`, and any other property, such as a parallelism, a `Change`.
`Savepoint.differences` yields all entries that differ. The savepoints may have different formats
and parallelisms. `keygroups.spark.compare_savepoints` compares on executors, and `keygroups diff
OLD NEW` in a shell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from keygroups._checks import record_repr, show
from keygroups._show.tables import Section, date_text, html_sections
from keygroups.errors import printable, short
from keygroups.savepoint._comparison.value_texts import change_text, text_change
from keygroups.savepoint._sinks.committables import Committable, committed_text
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaSplit
from keygroups.savepoint._sources.split_layouts import ConnectorSplit
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.operator_state import OperatorStateElement

__all__ = [
    "Change",
    "CommittableDifference",
    "EntryDifference",
    "OperatorComparison",
    "SavepointComparison",
    "SplitDifference",
    "StateComparison",
]
__dir__ = __all__.copy

_WIDTH = 80  # characters of a line; paths alone may be longer
_PARTS = (60, 40, 28, 20)  # characters of a key or a value: the first that makes a line fit
_AROUND = 8  # characters of an arrow, of "..." on both sides and of spaces
_SPLITS = 20  # lines of an operator's splits, and of what it is to commit
_NAMES = {"key": "key", "key_bytes": "key bytes", "namespace": " in", "user_key": ", user key"}
_LONGEST = 60  # characters of a field of a split, of the name of a committable
_SHOWN = 50  # entries in a table
_COUNTS = ("equal", "changed", "touched", "only_here", "only_there")


class Change(NamedTuple):
    """A property of an operator or a state whose value differs in the other savepoint."""

    name: str
    here: Any
    there: Any

    def __repr__(self) -> str:
        return record_repr(self)

    def __str__(self) -> str:
        return self._text(None)

    def _text(self, most: int | None) -> str:
        """Return both values; of longer ones than `most` characters the part that differs."""
        own, other = map(_property_text, (self.here, self.there))
        name = self.name.replace("_", " ")
        if own == other:  # Serializers of one name have different snapshots.
            return printable(f"{name}: {own}, with another snapshot")
        return printable(f"{name}: {text_change(own, other, most or len(own) + len(other))}")


def _property_text(value: Any) -> str:
    return "none" if value is None else str(value)


class EntryDifference(NamedTuple):
    """An entry that differs between two savepoints, or that only one of them has.

    `kind` is "only_here", "only_there", "changed" where the value is another, or "touched" where
    it is the same and the time of its last access another. `here` and `there` are the entry in
    either savepoint, a StateEntry of keyed state and an OperatorStateElement of operator state,
    None where it is not. An element of a list or union state is there or not; its subtask is no
    difference. `operator` is the label of the operator.
    """

    operator: str
    state: str
    kind: str
    here: StateEntry | OperatorStateElement | None
    there: StateEntry | OperatorStateElement | None

    def __str__(self) -> str:
        return self._line(_WIDTH, has_none=True)

    def _line(self, width: int, has_none: bool = False) -> str:
        """Return a line of at most `width` characters; of long values the part that differs.

        With `has_none` an entry of one side alone says so: "1 -> none" is only here.
        """
        line = ""
        for most in _PARTS:
            line = self._text(most, has_none)
            if len(line) <= width:
                break
        return short(line, width)

    def _text(self, most: int, has_none: bool) -> str:
        """Return key and values as text, each of about `most` characters."""
        entry = self.there if self.here is None else self.here
        assert entry is not None
        named = [
            (label, getattr(entry, name, None))
            for name, label in _NAMES.items()
            if name != "key_bytes" or entry.key is None
        ]
        text = "".join(
            f"{label} {short(show(value), most)}" for label, value in named if value is not None
        )
        text, values = text or "element", self._values(entry, most)
        if not has_none or not self.kind.startswith("only"):
            timer = isinstance(entry, StateEntry) and entry.timestamp is not None
            return f"{text} {values}" if timer else f"{text}: {values}"
        sides = [values, "none"] if self.there is None else ["none", values]
        return f"{text}: {' -> '.join(sides)}"

    def _values(self, entry: StateEntry | OperatorStateElement, most: int) -> str:
        """Return the value, of both sides if both have the entry; of a timer when it fires."""
        if isinstance(entry, StateEntry) and entry.timestamp is not None:
            return f"at {entry.timestamp} ({date_text(entry.timestamp)})"
        if self.here is None or self.there is None:
            return short(show(entry.value), most)
        times = [getattr(side, "last_access", None) for side in (self.here, self.there)]
        if self.kind == "touched" and times[0] is not None:
            return f"last access {times[0]} -> last access {times[1]}"
        return change_text(self.here.value, self.there.value, most)


class SplitDifference(NamedTuple):
    """A split of a source that differs between two savepoints, or that only one of them has.

    `kind` is "only_here", "only_there" or "changed", `here` and `there` are the split in either
    savepoint. Who has it is no difference.
    """

    kind: str
    here: KafkaSplit | FileSplit | ConnectorSplit | None
    there: KafkaSplit | FileSplit | ConnectorSplit | None

    def __str__(self) -> str:
        split = self.there if self.here is None else self.here
        assert split is not None
        if isinstance(split, KafkaSplit):
            cluster = "" if split.cluster is None else f"{split.cluster}: "
            name = f"{cluster}{split.topic}/{split.partition}"
            names: Sequence[str] = ["offset", "stopping_offset", "is_assigned"]
        elif isinstance(split, ConnectorSplit):
            name, names = split.name, ["position"]
        else:
            name, names = split.split_id, ["path", "offset", "length", "position"]
        sides = [side for side in (self.here, self.there) if side is not None]
        fields = [side._asdict() for side in sides]
        if len(sides) > 1:
            fields = [_fields_of(side) for side in sides]
            names = [*dict.fromkeys(chain(*fields))]
        texts = []
        for field in names:
            values = [side.get(field) for side in fields]
            if values[0] != values[-1]:
                texts.append(f"{field} {change_text(values[0], values[1], _LONGEST)}")
            elif len(values) == 1 and values[0] is not None:
                texts.append(f"{field} {short(show(values[0]), _LONGEST)}")
        which = {"only_here": " -> none", "only_there": "none -> "}.get(self.kind, "")
        shown = ", ".join(texts)
        if which:
            shown = f"{which}{shown}" if self.here is None else f"{shown}{which}"
        return printable(f"split {name}: {shown}")


def _fields_of(split: KafkaSplit | FileSplit | ConnectorSplit) -> dict[str, Any]:
    """Return the fields that may differ between two savepoints."""
    if isinstance(split, ConnectorSplit):
        return {"version": split.version, **split.fields}
    return {name: value for name, value in split._asdict().items() if name != "subtask"}


class CommittableDifference(NamedTuple):
    """A transaction or file that a restore commits of one of two savepoints, or of both otherwise.

    `kind` is "only_here", "only_there" or "changed", `here` and `there` are the committable in
    either savepoint. Who has it is no difference.
    """

    kind: str
    here: Committable | None
    there: Committable | None

    def __str__(self) -> str:
        sides = [side for side in (self.here, self.there) if side is not None]
        texts = [f"committable {short(committed_text(sides[0].committable), _LONGEST)}"]
        for field in ("checkpoint_id", "writer_subtask", "state", "retries"):
            values = [getattr(side, field) for side in sides]
            if values[0] != values[-1]:
                texts.append(f"{field} {change_text(values[0], values[1], _LONGEST)}")
        if len(sides) == 1 and sides[0].checkpoint_id is not None:
            texts.append(f"checkpoint {sides[0].checkpoint_id:,}")
        return printable(", ".join(texts))


@dataclass(frozen=True)
class StateComparison:
    """A state in two savepoints; `kind` is that of StateDescriptor, or the mode of operator state.

    `changes` are of its descriptor, `has_ttl` and the serializers among them; one named "state"
    says that it is in one savepoint alone. `equal`, `changed`, `touched`, `only_here` and
    `only_there` are how many entries are that, as EntryDifference says, `examples` some of them.
    """

    state: str
    kind: str
    changes: tuple[Change, ...]
    equal: int
    changed: int
    touched: int
    only_here: int
    only_there: int
    examples: tuple[EntryDifference, ...]

    @property
    def has_differences(self) -> bool:
        """Whether anything is not the same."""
        return bool(self.changes) or self.differing > 0

    @property
    def differing(self) -> int:
        """Count of entries that are not the same."""
        return self.changed + self.touched + self.only_here + self.only_there

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self, width: int = _WIDTH) -> Iterator[str]:
        yield short(f"{self.state}: {self.kind}", width)
        counts = {name: getattr(self, name) for name in _COUNTS}
        texts = [f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count]
        yield f"  {', '.join(texts) or 'no entries'}"
        for change in self.changes:
            yield short(f"  {change._text((width - len(change.name)) // 2 - _AROUND)}", width)
        for difference in self.examples:
            start = f"    {difference.kind.replace('_', ' '):<10} "
            yield start + difference._line(width - len(start))
        if len(self.examples) < self.differing:
            yield f"    and {self.differing - len(self.examples):,} more"


@dataclass(frozen=True)
class OperatorComparison:
    """An operator in two savepoints, found by its id.

    `operator` is its uid, name or id. `only` is "only_here" or "only_there" for one that is in
    one savepoint alone, else None. `changes` are of parallelism, max_parallelism and
    is_fully_finished, and of what a source's enumerator has, as `SourceSplits` does in
    `enumerator_fields`; `states` are its keyed states, timers among them, and `operator_states`
    the others. `splits` are those of a source that are not the same, where they can be decoded;
    what its readers hold of them is an operator state too. `coordinator` is "equal", "changed",
    "only_here" or "only_there", as the state of its coordinator is, None where it has none.
    `has_channel_state` says that an unaligned checkpoint has in-flight data of it, which is not
    compared. `committables` are what a sink is to commit, as `splits` are.
    """

    operator: str
    operator_id: str
    only: str | None
    changes: tuple[Change, ...]
    states: tuple[StateComparison, ...]
    operator_states: tuple[StateComparison, ...]
    splits: tuple[SplitDifference, ...]
    coordinator: str | None
    has_channel_state: bool
    committables: tuple[CommittableDifference, ...] = ()

    @property
    def has_differences(self) -> bool:
        """Whether anything is not the same."""
        return (
            self.only is not None
            or bool(self.changes)
            or bool(self.splits)
            or bool(self.committables)
            or self.coordinator not in (None, "equal")
            or any(state.has_differences for state in self._all())
        )

    def _all(self) -> tuple[StateComparison, ...]:
        """Return the keyed and the operator states."""
        return self.states + self.operator_states

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        texts = [*map(str, self.changes)]
        if self.only is not None:
            texts = [self.only.replace("_", " ")]
        elif not self.has_differences:
            texts = ["equal"]
        yield short(f"{self.operator}: {', '.join(texts)}" if texts else self.operator, _WIDTH)
        equal = []
        for state in self._all():
            if state.has_differences:
                yield from (f"  {line}" for line in state._lines(_WIDTH - 2))
            else:
                equal.append(state.equal)
        if equal:
            yield f"  equal: {len(equal)} states, {sum(equal):,} entries"
        yield from (short(f"  {line}", _WIDTH) for line in self._split_lines())
        if self.coordinator is not None:
            yield f"  coordinator: {self.coordinator.replace('_', ' ')}"
        if self.has_channel_state:
            yield "  in-flight data of an unaligned checkpoint is not compared"

    def _split_lines(self) -> Iterator[str]:
        """Yield the lines of the splits of a source, and of what a sink is to commit."""
        for name, differences in (("splits", self.splits), ("committables", self.committables)):
            for difference in differences[:_SPLITS]:
                yield f"{difference.kind.replace('_', ' '):<10} {difference}"
            if len(differences) > _SPLITS:
                yield f"and {len(differences) - _SPLITS:,} {name} more"

    def _properties(self) -> Iterator[tuple[str, str, str]]:
        """Yield rows of what differs besides entries: the operator, the state or "", a text."""
        for change in self.changes:
            yield self.operator, "", str(change)
        if self.only is not None:
            yield self.operator, "", self.only.replace("_", " ")
        for state in self._all():
            for change in state.changes:
                yield self.operator, state.state, str(change)
        for line in self._split_lines():
            yield self.operator, "", line
        if self.coordinator is not None:
            yield self.operator, "", f"coordinator: {self.coordinator.replace('_', ' ')}"
        if self.has_channel_state:
            yield self.operator, "", "in-flight data of an unaligned checkpoint is not compared"


@dataclass(frozen=True)
class SavepointComparison:
    """Two savepoints, `here` and `there` by their paths, compared operator by operator.

    `str()` says what is not the same, with some entries of each state; `has_differences` whether
    there is anything. `operators` are those of both, the ones that are only there last.
    """

    here: str
    there: str
    operators: tuple[OperatorComparison, ...]

    @property
    def has_differences(self) -> bool:
        """Whether anything is not the same."""
        return any(operator.has_differences for operator in self.operators)

    def __str__(self) -> str:
        return "\n".join([*self._head(), *map(str, self._differing())])

    def _differing(self) -> list[OperatorComparison]:
        """Return the operators with differences, or with in-flight data, which is not compared."""
        return [
            operator
            for operator in self.operators
            if operator.has_differences or operator.has_channel_state
        ]

    def _head(self) -> list[str]:
        paths = f"here:  {printable(self.here)}", f"there: {printable(self.there)}"
        return [*paths, self._summary()]

    def _summary(self) -> str:
        differing = sum(operator.has_differences for operator in self.operators)
        result = f"{differing} with differences" if differing else "all equal"
        return f"{len(self.operators)} operators, {result}"

    def __repr__(self) -> str:
        return f"<SavepointComparison: {self._summary()}>"

    def _repr_html_(self) -> str:
        return html_sections(self._sections())

    def _sections(self) -> Iterator[Section]:
        """Yield the tables of a notebook: properties, counts of entries, examples, as `str()`."""
        yield Section(self._head())
        properties = [row for operator in self._differing() for row in operator._properties()]
        if properties:
            caption = "Properties that differ"
            yield Section([], ("operator", "state", "property"), properties, (1, 2), caption)
        states = [(by.operator, state) for by in self.operators for state in by._all()]
        rows = [
            (operator, state.state, *(f"{getattr(state, name):,}" for name in _COUNTS))
            for operator, state in states
            if state.has_differences
        ]
        equal = [state.equal for _, state in states if not state.has_differences]
        texts = [f"equal: {len(equal):,} states, {sum(equal):,} entries"] if equal else []
        header = ("operator", "state", *(name.replace("_", " ") for name in _COUNTS))
        caption = "Entries of states that differ" if rows else ""
        yield Section(texts, header if rows else (), rows, (1,), caption)
        entries = [
            (entry.operator, entry.state, entry.kind.replace("_", " "), str(entry))
            for _, state in states
            for entry in state.examples
        ]
        if entries:
            shown = entries[:_SHOWN]
            caption = "Entries that differ"
            left_out = sum(state.differing for _, state in states) - len(shown)
            if left_out:
                caption += f"; {left_out:,} others are left out"
            names = ("operator", "state", "which", "entry")
            yield Section([], names, shown, (1, 2, 3), caption)
