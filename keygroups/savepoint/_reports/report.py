"""Reports of operators: their states, heaviest keys and key groups, and a rescale's moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest

from keygroups._checks import check_class, check_int, check_str, exact_repr, iterate
from keygroups._show.tables import Section, html_sections, text_table
from keygroups.errors import KeyGroupsError, SavepointError, printable, short
from keygroups.hashing import finalise
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.load import KeyGroupLoad
from keygroups.reports import RescaleReport
from keygroups.rescale import RescalePlan
from keygroups.savepoint._key_sizes import UnknownKeysError
from keygroups.savepoint._operator import (
    Operator,
    has_keyed_state,
    missing_timers,
    operator_lines,
    readable,
)
from keygroups.savepoint._operator_states import is_sink, is_source
from keygroups.savepoint._operator_tables import key_sizes_section, states_section
from keygroups.savepoint._reports.connectors import sink_sections, splits_section
from keygroups.savepoint._savepoint import Savepoint
from keygroups.savepoint._sinks.committables import SinkState
from keygroups.savepoint._sources.source_splits import SourceSplits
from keygroups.savepoint._state.formats.format import NotFramedError
from keygroups.savepoint._state.header import PYTHON_STATE, StateDescriptor
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint.entries import KeySize

NO_KEYED_STATE = "no keyed state"
_LONGEST_KEY = 100  # characters in a table


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """The keyed state of an operator, its heaviest key groups and keys; `str()` says it.

    `key_group_bytes` is the load of the key groups in bytes, `heaviest_key_groups` and
    `heaviest_keys` are the heaviest first, `rescale` is the rescale of that load, `states` are the
    operator's. Where the keys cannot be told from the bytes, or the entries from one another,
    there are none of them, and `unknown_keys` says why. `unread` says what else cannot be read,
    as of a file that is damaged or elsewhere: then there are no states, or no load and no rescale,
    which are None. `warnings` are of what is seen in passing: windows without any timer, and heavy
    keys that are in a key group that is not theirs. `Savepoint.verify` looks for all. `source` has
    the splits of a source, `sink` what a sink has open, None of all other operators. An operator
    without keyed state has neither load nor rescale.
    """

    operator: Operator
    key_group_bytes: KeyGroupLoad | None
    heaviest_key_groups: tuple[int, ...]
    heaviest_keys: tuple[KeySize, ...]
    rescale: RescaleReport | None
    unknown_keys: str | None = None
    states: tuple[StateDescriptor, ...] = ()
    unread: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    source: SourceSplits | None = None
    sink: SinkState | None = None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        advices = advices_of_states(self.states)
        lines = [*operator_lines(self.operator), *self.unread, *advices]
        sections = [Section(lines), warnings_section(self)]
        sections += self.connector_sections()
        if self.has_keyed_state:
            sections += [states_section(self.states), key_groups_section(self), keys_section(self)]
        else:
            sections.append(Section([NO_KEYED_STATE]))
        head = html_sections(sections)
        return head if self.rescale is None else f"{head}{self.rescale._repr_html_()}"

    @property
    def has_keyed_state(self) -> bool:
        """Whether a subtask of the operator wrote keyed state."""
        return has_keyed_state(self.operator)

    def connector_sections(self) -> list[Section]:
        """Return the tables of a source's splits and of what a sink has open."""
        sections = [] if self.source is None else [splits_section(self.source)]
        return sections if self.sink is None else [*sections, *sink_sections(self.sink)]

    def _lines(self) -> Iterator[str]:
        if self.has_keyed_state:
            are_known = self.states or not self.unread
            kind = f"{len(self.states)} states" if are_known else "its states are not known"
        else:
            kind = NO_KEYED_STATE if self.sink is None else "sink"
            kind = kind if self.source is None else "source"
        yield f"== {printable(self.operator.label)}: {kind}"
        for reason in self.unread:
            yield f"  {printable(reason)}"
        for section in self.connector_sections():
            yield f"  {section.texts[0]}"
            rows = [section.header, *section.rows] if section.header else []
            yield from (f"  {line}" for line in text_table(rows, section.left_columns))
        if self.has_keyed_state:
            yield from self._keyed_lines()

    def _keyed_lines(self) -> Iterator[str]:
        load = self.key_group_bytes
        for state in self.states:
            yield f"  {state}"
        yield from (f"  {advice}" for advice in advices_of_states(self.states))
        for warning in self.warnings:
            yield f"warning: {printable(warning)}"
        if load is not None:
            yield f"key groups with the most bytes, of {sum(load.weights):,} in all:"
        for size, key_group, subtask in _heavy_key_groups(self):
            yield f"  {size:>12,}  key group {key_group}, subtask {subtask}"
        if self.unknown_keys not in self.unread:
            yield "keys with the most bytes:"
        if self.unknown_keys not in (None, *self.unread):
            yield f"  {self.unknown_keys}"
        for key in self.heaviest_keys:
            yield (
                f"  {key.bytes:>12,}  {exact_repr(key.key):.60}, {key.entries} entries, "
                f"key group {key.key_group}, subtask {key.subtask}"
            )
        if self.rescale is not None:
            yield f"rescale to {self.rescale.plan.new_parallelism}, weight in bytes:"
            yield str(self.rescale)


def _heavy_key_groups(report: OperatorReport) -> Iterator[tuple[float, int, int]]:
    """Yield the bytes, the key group and the subtask of each of the heaviest key groups."""
    groups, parallelism = report.operator.max_parallelism, report.operator.parallelism
    load = report.key_group_bytes
    if load is None:
        return
    for key_group in report.heaviest_key_groups:
        subtask = compute_operator_index_for_key_group(groups, parallelism, key_group)
        yield load.weights[key_group], key_group, subtask


def advices_of_states(states: Sequence[StateDescriptor]) -> list[str]:
    """Return lines of advice: how values are read that no header tells the types of."""
    if any(state.name.startswith(PYTHON_STATE) for state in states):
        return ["PyFlink: give the job's descriptors, `as_pyflink`, to read values and keys"]
    return []


def warnings_section(report: OperatorReport) -> Section:
    """Return a section of the warnings, of which most operators have none."""
    return Section([f"warning: {warning}" for warning in report.warnings])


def key_groups_section(report: OperatorReport) -> Section:
    """Return the table of the heaviest key groups."""
    total = (report.key_group_bytes and report.key_group_bytes.total) or 1
    rows = [
        (str(key_group), str(subtask), f"{size:,}", f"{size / total:.1%}")
        for size, key_group, subtask in _heavy_key_groups(report)
    ]
    header = ("key group", "subtask", "bytes", "share")
    return Section([], header, rows, caption="The key groups with the most bytes of keyed state")


def keys_section(report: OperatorReport) -> Section:
    """Return the table of the heaviest keys, or why there is none."""
    if report.unknown_keys is not None:
        return Section([report.unknown_keys])
    return key_sizes_section(report.heaviest_keys)


def operator_reports(
    savepoint: Savepoint,
    operators: Iterable[str] | None = None,
    parallelism: int | None = None,
    top: int = 5,
) -> Iterator[OperatorReport]:
    """Return an iterator over the reports of operators, each read when it is asked for.

    `operators` are uids, names or ids, None all with keyed state, sources and sinks. `parallelism`
    is the one to rescale to, 1..max_parallelism, None one more than the operator's; `top` is how
    many key groups and keys are named, at least 1. State that is damaged, elsewhere or not read
    here is no error: its report says so, and those of others follow. Raises InvalidValueError or
    InvalidTypeError for an argument, and ParallelismError.
    """
    check_class("savepoint", savepoint, Savepoint, "a Savepoint")
    top = check_int("top", top, 1, 2**31 - 1)
    if operators is None:
        chosen = [operator for operator in savepoint.operators if is_reported(operator)]
    else:
        names = iterate("operators", "names", operators)
        chosen = [savepoint.operator(check_str("operator", name)) for name in names]
    return (_report(operator, parallelism, top) for operator in chosen)


def is_reported(operator: Operator) -> bool:
    """Return whether an operator has state that its report shows."""
    return has_keyed_state(operator) or is_source(operator) or is_sink(operator)


def _report(operator: Operator, parallelism: int | None, top: int) -> OperatorReport:
    groups, old = operator.max_parallelism, operator.parallelism
    new = min(old + 1, groups) if parallelism is None else parallelism
    plan = RescalePlan(groups, old, new)  # It refuses a parallelism before anything is read.
    unread: list[str] = []
    source = readable(operator.source_splits, unread) if is_source(operator) else None
    sink = readable(operator.sink_state, unread) if is_sink(operator) else None
    if not has_keyed_state(operator):
        return OperatorReport(
            operator, None, (), (), None, unread=tuple(unread), source=source, sink=sink
        )
    states = readable(lambda: operator.states, unread) or ()
    load = readable(operator.key_group_bytes, unread)
    heaviest: list[int] = []
    if load is not None:
        heaviest = nlargest(top, range(groups), key=load.weights.__getitem__)
    keys: tuple[KeySize, ...] = ()
    unknown_keys = None
    try:
        keys = tuple(operator.key_sizes(top))
    except SavepointError as error:
        unknown_keys = str(error)
        if (
            not isinstance(error, (UnknownKeysError, NotFramedError))
            and unknown_keys not in unread
        ):
            unread.append(unknown_keys)
    missing = readable(lambda: missing_timers(operator), unread)
    warnings = [] if missing is None else [missing]
    return OperatorReport(
        operator,
        load,
        tuple(heaviest),
        keys,
        None if load is None else RescaleReport(plan, load),
        unknown_keys,
        states,
        tuple(unread),
        (*warnings, *_foreign_keys(operator, keys)),
        source,
        sink,
    )


def _foreign_keys(operator: Operator, keys: Sequence[KeySize]) -> Iterator[str]:
    """Yield a warning for each of some keys that is in the key group of another."""
    hasher = key_hasher(operator.states[0].key_serializer) if keys else None
    if hasher is None:
        return
    for key in keys:
        with suppress(KeyGroupsError):  # A null has no key group: `verify` counts it as a fault.
            own = finalise(hasher(key.key)) % operator.max_parallelism
            if own != key.key_group:
                yield (
                    f"key {short(exact_repr(key.key), _LONGEST_KEY)} is in key group "
                    f"{key.key_group}, and its own is {own}: Flink loses what is there on a "
                    "restore; keygroups verify counts such keys"
                )
