"""Summaries of savepoints: the contents of each state of each operator, and their growth.

`Savepoint.summary` returns a `SavepointSummary`, with an `OperatorSummary` for each operator; in
it are a `StateSummary` for each keyed state, with its entries, keys, bytes and heaviest keys and a
`TimeCounts` of its times, and an `OperatorStateSummary` for each operator state.
`SavepointGrowth.of` takes the summaries of two or more points of a job, and has a `StateGrowth`
for each state, the one that grew most first. `keygroups.spark.summarize_savepoint` reads on
executors; in a shell `keygroups savepoint --full PATH` prints a summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from keygroups._checks import check_class, exact_repr, has_digits, iterate, record_repr
from keygroups._show.tables import Section, data_frame, date_text, html_sections, text_table
from keygroups.errors import InvalidValueError, printable, short
from keygroups.load import KeyGroupLoad
from keygroups.savepoint.entries import KeySize
from keygroups.skew import HOT

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "KeyGroupGrowth",
    "OperatorStateSummary",
    "OperatorSummary",
    "SavepointGrowth",
    "SavepointSummary",
    "StateGrowth",
    "StateSummary",
    "TimeCounts",
]
__dir__ = __all__.copy

_LABEL = 100  # characters of a name or a key
_SHOWN = 200  # rows of a table
_GROUPS = 5  # key groups of an operator
_COUNTS = ("entries", "elements", "keys", "bytes")
_OPERATORS = ("operator", "parallelism", "max", "bytes", "key groups", "imbalance")
_PARTS = ("in flight", "in _metadata", "coordinator", "splits", "committables")


class TimeCounts(NamedTuple):
    """The numbers of times of a state, of last accesses or of timers.

    `earliest` and `latest` are epoch milliseconds, of timers those that fire: None where none
    does. `counts` are pairs of a name and a number; each time is counted once, under the first
    name that it fits. Last accesses are "within an hour", "within a day", "within 7 days", "within
    30 days" and "within a year" before the summary's time, or "older". Timers are "due" at that
    time, fire "within an hour", "within a day" or "within 7 days" after it, "later", or "never":
    those of Long.MAX_VALUE, as of a GlobalWindow.
    """

    earliest: int | None
    latest: int | None
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class StateSummary:
    """A keyed state: `entries`, of a MAP a user key each, and their `bytes` before compression.

    `kind` is that of StateDescriptor. `elements` are those of all lists of a LIST, and the entries
    of a MAP, None for other kinds, and where only the job can part them. `keys` is how many
    different keys have something in it, `heaviest_keys` the KeySizes of some; `keys` is None where
    the bytes do not say what is of the key. `last_access` are the times of state with a time to
    live, `timers` when timers fire. `unread` says why the state cannot be read: all numbers are
    None then.
    """

    state: str
    kind: str
    entries: int | None
    elements: int | None
    keys: int | None
    bytes: int | None
    heaviest_keys: tuple[KeySize, ...] = ()
    last_access: TimeCounts | None = None
    timers: TimeCounts | None = None
    unread: str | None = None

    def __repr__(self) -> str:
        return record_repr(self)


@dataclass(frozen=True)
class OperatorStateSummary:
    """An operator state: its elements and their bytes.

    `mode` is SPLIT_DISTRIBUTE, UNION or BROADCAST, whose `elements` are the entries of one
    subtask's copy, or "RAW". `bytes` are those of all subtasks, and `subtasks` how many have some.
    """

    state: str
    mode: str
    elements: int
    bytes: int
    subtasks: int


@dataclass(frozen=True)
class OperatorSummary:
    """An operator: its keyed and operator states, and all else that the savepoint has of it.

    `operator` is its uid, name or id, `bytes` the size of its state in files. `key_group_bytes`
    has the bytes of the entries of each key group, None without keyed state. `splits` is how many
    splits a source has, `committables` what a sink is to commit, None of others.
    `in_flight_bytes` are those of an unaligned checkpoint, `inline_bytes` those of state in
    `_metadata` itself, `coordinator_bytes` those of the coordinator, None without one. `unread`
    says what cannot be read.
    """

    operator: str
    operator_id: str
    parallelism: int
    max_parallelism: int
    bytes: int
    states: tuple[StateSummary, ...]
    operator_states: tuple[OperatorStateSummary, ...]
    key_group_bytes: KeyGroupLoad | None
    splits: int | None
    committables: int | None
    in_flight_bytes: int
    inline_bytes: int
    coordinator_bytes: int | None
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _text(summary_sections([self]))

    def _repr_html_(self) -> str:
        return html_sections(summary_sections([self]))

    @property
    def imbalance(self) -> float | None:
        """The bytes of the heaviest subtask's entries over the mean, None without keyed state."""
        load = self.key_group_bytes
        return None if load is None else load.imbalance(self.parallelism)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as values of JSON; a key that is no text or int is its repr."""
        load = self.key_group_bytes
        return vars(self) | {
            "states": [_state_data(state) for state in self.states],
            "operator_states": [*map(vars, self.operator_states)],
            "key_group_bytes": None if load is None else [*load.weights],
            "imbalance": self.imbalance,
            "unread": [*self.unread],
        }


@dataclass(frozen=True)
class SavepointSummary:
    """A savepoint's operators with what each of their states holds; `str()` shows tables.

    `at` is the time that the ages of last accesses and the waits of timers are counted from, in
    epoch milliseconds. `operators` are those with state.
    """

    path: str
    checkpoint_id: int
    at: int
    operators: tuple[OperatorSummary, ...]

    def __str__(self) -> str:
        return _text(self._sections())

    def __repr__(self) -> str:
        return f"<SavepointSummary: {self._headline()}>"

    def _repr_html_(self) -> str:
        return html_sections(self._sections())

    def _headline(self) -> str:
        states = [state for operator in self.operators for state in operator.states]
        entries, size = (
            sum(getattr(state, name) or 0 for state in states) for name in ("entries", "bytes")
        )
        return printable(
            f"{len(self.operators):,} operators, {len(states):,} keyed states, {entries:,} "
            f"entries of {size:,} bytes: {self.path}"
        )

    def _sections(self) -> Iterator[Section]:
        yield Section([self._headline(), f"ages and waits are counted from {date_text(self.at)}"])
        yield from summary_sections(self.operators)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as values of JSON; a key that is no text or int is its repr."""
        return vars(self) | {"operators": [operator.to_dict() for operator in self.operators]}

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each keyed state.

        The columns are operator, operator_id, state, kind, entries, elements, keys, bytes,
        earliest and latest, of the last accesses or the timers, in epoch milliseconds.
        """
        rows = []
        for operator, state in _states_of(self.operators):
            times = state.last_access or state.timers
            bounds = (None, None) if times is None else (times.earliest, times.latest)
            names = (operator.operator, operator.operator_id, state.state, state.kind)
            rows.append((*names, *_counts(state), *bounds))
        columns = ("operator", "operator_id", "state", "kind", *_COUNTS, "earliest", "latest")
        return data_frame(columns, rows).astype(dict.fromkeys(columns[4:], "Int64"))


def _states_of(
    operators: Iterable[OperatorSummary],
) -> Iterator[tuple[OperatorSummary, StateSummary]]:
    for operator in operators:
        for state in operator.states:
            yield operator, state


def _counts(state: StateSummary) -> tuple[int | None, ...]:
    return tuple(getattr(state, name) for name in _COUNTS)


def _state_data(state: StateSummary) -> dict[str, Any]:
    times = {name: getattr(state, name) for name in ("last_access", "timers")}
    return (
        vars(state)
        | {name: value and _times_data(value) for name, value in times.items()}
        | {"heaviest_keys": [_key_data(key) for key in state.heaviest_keys]}
    )


def _times_data(times: TimeCounts) -> dict[str, Any]:
    return times._asdict() | {"counts": dict(times.counts)}


def _key_data(size: KeySize) -> dict[str, Any]:
    key = size.key
    is_plain = isinstance(key, str) or (type(key) is int and has_digits(key))
    return size._asdict() | {"key": key if is_plain else exact_repr(key)}


# --- growth -----------------------------------------------------------------------------


class StateGrowth(NamedTuple):
    """A state at several points: its bytes, entries and elements at each, the oldest first.

    `kind` is that of a StateSummary, or the mode of an operator state, whose entries are its
    elements. A number is 0 where a point has no such state, and None where it is not known.
    """

    operator: str
    operator_id: str
    state: str
    kind: str
    bytes: tuple[int | None, ...]
    entries: tuple[int | None, ...]
    elements: tuple[int | None, ...]

    @property
    def has_grown(self) -> bool:
        """Whether bytes, entries or elements are not the same at all points, or not known."""
        sizes = self.bytes, self.entries, self.elements
        return None in self.bytes or any(len({*of_points}) > 1 for of_points in sizes)

    @property
    def growth(self) -> int | None:
        """The bytes at the last point less those at the first, None where one is not known."""
        return _growth(self.bytes)


class KeyGroupGrowth(NamedTuple):
    """The bytes of a key group of an operator at several points, the oldest first."""

    operator: str
    key_group: int
    bytes: tuple[int, ...]


@dataclass(frozen=True)
class SavepointGrowth:
    """The growth of state over two or more points of a job, by `SavepointGrowth.of`.

    `paths` are those of the points, the oldest first. `states` are in the order of their growth in
    bytes, the largest first, those last whose growth is not known. `key_groups` are those that
    grew most, at most five of an operator whose max parallelism stayed. Bytes are those of entries
    before compression, which are less in one format than in another. `str()` shows tables.
    """

    paths: tuple[str, ...]
    states: tuple[StateGrowth, ...]
    key_groups: tuple[KeyGroupGrowth, ...]

    @classmethod
    def of(cls, summaries: Iterable[SavepointSummary]) -> SavepointGrowth:
        """Return the growth over the summaries of two or more points, the oldest first.

        Raises InvalidTypeError for what is no SavepointSummary, InvalidValueError for fewer.

        >>> from tempfile import mkdtemp
        >>> from keygroups.savepoint import ListStateDescriptor, SavepointWriter, read_savepoint
        >>> from keygroups.types import LONG, STRING
        >>> folder, ids = mkdtemp(), [ListStateDescriptor("ids", LONG)]
        >>> for name, count in [("old", 10), ("new", 1000)]:
        ...     with SavepointWriter(f"{folder}/{name}") as writer:
        ...         by_user = writer.add_operator("by-user", STRING, ids, 128, parallelism=3)
        ...         by_user.write("ids", "ann", [*range(count)])
        >>> points = [read_savepoint(f"{folder}/{name}").summary() for name in ("old", "new")]
        >>> [ids] = SavepointGrowth.of(points).states
        >>> ids.bytes, ids.growth, ids.elements
        ((94, 9004), 8910, (10, 1000))
        """
        points = [
            check_class("summary in summaries", summary, SavepointSummary, "a SavepointSummary")
            for summary in iterate("summaries", "SavepointSummaries", summaries)
        ]
        if len(points) < 2:
            raise InvalidValueError(f"summaries must be of 2 points or more, got {len(points)}")
        ids = dict.fromkeys(by.operator_id for point in points for by in point.operators)
        operators = [
            [
                next((by for by in point.operators if by.operator_id == operator_id), None)
                for point in points
            ]
            for operator_id in ids
        ]
        states = [growth for of_points in operators for growth in _state_growths(of_points)]
        states.sort(key=lambda state: (state.growth is None, -(state.growth or 0)))
        groups = (group for of_points in operators for group in _group_growths(of_points))
        return cls(tuple(point.path for point in points), tuple(states), tuple(groups))

    def __str__(self) -> str:
        return _text(self._sections())

    def __repr__(self) -> str:
        return f"<SavepointGrowth: {len(self.states):,} states at {len(self.paths):,} points>"

    def _repr_html_(self) -> str:
        return html_sections(self._sections())

    def _sections(self) -> Iterator[Section]:
        numbers = [f"bytes {number}" for number in range(1, len(self.paths) + 1)]
        yield Section(
            [printable(f"{number}: {path}") for number, path in enumerate(self.paths, 1)]
        )
        grown = [state for state in self.states if state.has_grown]
        rows = [
            (
                short(state.operator, _LABEL),
                short(state.state, _LABEL),
                *("?" if size is None else f"{size:,}" for size in state.bytes),
                *(_signed(sizes) for sizes in (state.bytes, state.entries, state.elements)),
            )
            for state in grown[:_SHOWN]
        ]
        caption = _caption("Growth of states, the largest first", len(rows), len(grown))
        header = ("operator", "state", *numbers, "growth", "entries", "elements")
        same = len(self.states) - len(grown)
        texts = [f"{same:,} states have as many bytes, entries and elements"] if same else []
        yield Section(texts, header if rows else (), rows, (0, 1), caption if rows else "", 1)
        rows = [
            (
                short(group.operator, _LABEL),
                str(group.key_group),
                *(f"{size:,}" for size in group.bytes),
                _signed(group.bytes),
            )
            for group in self.key_groups[:_SHOWN]
        ]
        if rows:
            caption = _caption("Key groups that grew most", len(rows), len(self.key_groups))
            header = ("operator", "key group", *numbers, "growth")
            yield Section([], header, rows, (0,), caption, named_by=1)

    def to_dict(self) -> dict[str, Any]:
        """Return the growth as values of JSON."""
        return vars(self) | {
            "states": [state._asdict() | {"growth": state.growth} for state in self.states],
            "key_groups": [group._asdict() for group in self.key_groups],
        }

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each state and point.

        The columns are path, operator, operator_id, state, kind, bytes, entries, elements.
        """
        columns = ("path", "operator", "operator_id", "state", "kind", *_COUNTS_OF_GROWTH)
        rows = [
            (path, *state[:4], *(getattr(state, name)[number] for name in _COUNTS_OF_GROWTH))
            for state in self.states
            for number, path in enumerate(self.paths)
        ]
        return data_frame(columns, rows).astype(dict.fromkeys(_COUNTS_OF_GROWTH, "Int64"))


_COUNTS_OF_GROWTH = ("bytes", "entries", "elements")


def _growth(sizes: Sequence[int | None]) -> int | None:
    first, last = sizes[0], sizes[-1]
    return None if first is None or last is None else last - first


def _signed(sizes: Sequence[int | None]) -> str:
    """Return the growth with its sign; "" where none of the sizes is known."""
    growth = _growth(sizes)
    if growth is None:
        return "" if set(sizes) <= {None, 0} else "?"
    return f"{growth:+,}"


def _state_growths(points: Sequence[OperatorSummary | None]) -> Iterator[StateGrowth]:
    """Yield the growth of each keyed and operator state of an operator, None where it is not."""
    operator = [point for point in points if point is not None][-1]
    named: dict[tuple[bool, str], list[StateSummary | OperatorStateSummary | None]] = {}
    for number, point in enumerate(points):
        states: Sequence[StateSummary | OperatorStateSummary] = ()
        if point is not None:
            states = [*point.states, *point.operator_states]
        for state in states:
            of_points = named.setdefault(
                (isinstance(state, StateSummary), state.state), [None] * len(points)
            )
            of_points[number] = state
    # A state that is not there has no bytes, unless it is what cannot be read.
    absent = [None if point is not None and point.unread else 0 for point in points]
    for at_points in named.values():
        last = [state for state in at_points if state is not None][-1]
        is_keyed = isinstance(last, StateSummary)
        yield StateGrowth(
            operator.operator,
            operator.operator_id,
            last.state,
            last.kind if isinstance(last, StateSummary) else last.mode,
            *(
                tuple(
                    size if state is None else getattr(state, name)
                    for state, size in zip(at_points, absent)
                )
                for name in ("bytes", "entries" if is_keyed else "elements", "elements")
            ),
        )


def _group_growths(points: Sequence[OperatorSummary | None]) -> list[KeyGroupGrowth]:
    """Return the key groups of an operator that grew most, none where they are others."""
    loads = [None if point is None else point.key_group_bytes for point in points]
    known = [load for load in loads if load is not None]
    if len(known) < len(points) or len({load.max_parallelism for load in known}) > 1:
        return []
    label = next(point.operator for point in reversed(points) if point is not None)
    sizes = zip(*(load.weights for load in known))
    grown = (
        KeyGroupGrowth(label, key_group, tuple(map(int, of_points)))
        for key_group, of_points in enumerate(sizes)
        if of_points[-1] > of_points[0]
    )
    return nlargest(_GROUPS, grown, key=lambda group: group.bytes[-1] - group.bytes[0])


# --- tables -----------------------------------------------------------------------------


def _text(sections: Iterable[Section]) -> str:
    """Return sections as text, each table under its caption."""
    lines: list[str] = []
    for section in sections:
        lines += ["", *([f"{section.caption}:"] if section.caption else []), *section.texts]
        if section.header:
            rows = [section.header, *section.rows]
            lines += [f"  {line}" for line in text_table(rows, section.left_columns)]
    return "\n".join(lines[1:])


def summary_sections(operators: Sequence[OperatorSummary]) -> Iterator[Section]:
    """Yield the tables of some operators: the operators, their states, keys and times."""
    yield _operators_section(operators)
    unread = [
        printable(f"{short(operator.operator, _LABEL)}: {reason}")
        for operator in operators
        for reason in operator.unread
    ]
    if unread:
        yield Section(unread, caption="What cannot be read")
    states = sorted(_states_of(operators), key=lambda pair: -(pair[1].bytes or 0))
    if states:
        yield _states_section(states)
        yield from _keys_sections(states)
        yield from _times_sections(states, "last_access", "Last accesses of state with a TTL")
        yield from _times_sections(states, "timers", "Timers, by when they fire")
    yield from _operator_states_sections(operators)


def _operators_section(operators: Sequence[OperatorSummary]) -> Section:
    rows = []
    for operator in operators[:_SHOWN]:
        load = operator.key_group_bytes
        used = None if load is None else sum(weight > 0 for weight in load.weights)
        numbers = (operator.parallelism, operator.max_parallelism, operator.bytes, used)
        imbalance = "" if operator.imbalance is None else f"{operator.imbalance:.2f}"
        others = (
            operator.in_flight_bytes or None,
            operator.inline_bytes or None,
            operator.coordinator_bytes,
            operator.splits,
            operator.committables,
        )
        cells = [*map(_number, numbers), imbalance, *map(_number, others)]
        rows.append((short(operator.operator, _LABEL), *cells))
    hot = {
        index: "hot"
        for index, operator in enumerate(operators[:_SHOWN])
        if (operator.imbalance or 0) >= HOT
    }
    caption = _caption("Operators, with bytes of files", len(rows), len(operators))
    header = (*_OPERATORS, *_PARTS)
    return Section([], header, rows, (0,), caption, marks=hot)


def _states_section(states: Sequence[tuple[OperatorSummary, StateSummary]]) -> Section:
    total = sum(state.bytes or 0 for _, state in states) or 1
    rows = [
        (
            *_names(operator, state),
            "timers" if state.kind == "PRIORITY_QUEUE" else state.kind,
            *("?" if state.unread else _number(count) for count in _counts(state)),
            "?" if state.bytes is None else f"{state.bytes / total:.1%}",
        )
        for operator, state in states[:_SHOWN]
    ]
    caption = _caption("Keyed states, the heaviest first", len(rows), len(states))
    header = ("operator", "state", "kind", *_COUNTS, "share")
    return Section([], header, rows, (0, 1, 2), caption, named_by=1)


def _keys_sections(states: Sequence[tuple[OperatorSummary, StateSummary]]) -> Iterator[Section]:
    rows = [
        (
            *_names(operator, state),
            short(exact_repr(key.key), _LABEL),
            *map(_number, (key.key_group, key.subtask, key.entries, key.bytes)),
        )
        for operator, state in states
        for key in state.heaviest_keys
    ]
    if rows:
        header = ("operator", "state", "key", "key group", "subtask", "entries", "bytes")
        caption = _caption("The heaviest keys of each state", len(rows[:_SHOWN]), len(rows))
        yield Section([], header, rows[:_SHOWN], (0, 1, 2), caption, named_by=2)


def _times_sections(
    states: Sequence[tuple[OperatorSummary, StateSummary]], name: str, caption: str
) -> Iterator[Section]:
    timed = [
        (operator, state, times)
        for operator, state in states
        if (times := getattr(state, name)) is not None
    ]
    if timed:
        header = ("operator", "state", "first", "last", *(name for name, _ in timed[0][2].counts))
        rows = [
            (
                *_names(operator, state),
                *("" if time is None else date_text(time) for time in times[:2]),
                *(_number(count) for _, count in times.counts),
            )
            for operator, state, times in timed[:_SHOWN]
        ]
        yield Section([], header, rows, (0, 1), _caption(caption, len(rows), len(timed)), 1)


def _operator_states_sections(operators: Sequence[OperatorSummary]) -> Iterator[Section]:
    rows = [
        (
            short(operator.operator, _LABEL),
            short(state.state, _LABEL),
            state.mode,
            *map(_number, (state.elements, state.bytes, state.subtasks)),
        )
        for operator in operators
        for state in operator.operator_states
    ]
    if rows:
        header = ("operator", "state", "mode", "elements", "bytes", "subtasks")
        caption = _caption("Operator states", len(rows[:_SHOWN]), len(rows))
        yield Section([], header, rows[:_SHOWN], (0, 1, 2), caption, named_by=1)


def _names(operator: OperatorSummary, state: StateSummary) -> tuple[str, str]:
    return short(operator.operator, _LABEL), short(state.state, _LABEL)


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _caption(caption: str, shown: int, count: int) -> str:
    return caption if shown == count else f"{caption}; {count - shown:,} others are left out"
