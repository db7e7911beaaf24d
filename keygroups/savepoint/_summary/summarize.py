"""Makes the summary of a savepoint: reads its keyed states by columns, and its other state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from keygroups.load import KeyGroupLoad
from keygroups.savepoint._metadata.handles import OperatorStateHandle, StreamHandle
from keygroups.savepoint._operator import (
    Operator,
    bytes_of,
    has_keyed_state,
    readable,
)
from keygroups.savepoint._operator_states import is_sink, is_source
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.operator_state import read_encoded_operator_state
from keygroups.savepoint._summary.tally import OperatorTally, SummaryTask
from keygroups.savepoint._tasks.read import TASK_BYTES
from keygroups.savepoint.summaries import OperatorStateSummary, OperatorSummary, StateSummary

RunSummaryTasks = Callable[[list[Callable[[], OperatorTally]]], Iterable[OperatorTally]]
"""Calls functions elsewhere, each of which may be pickled, and returns what they return."""


def summarize_operator(
    operator: Operator, at: int, top: int, run: RunSummaryTasks | None
) -> OperatorSummary:
    """Return the OperatorSummary of an operator; `run` runs its tasks elsewhere, None here."""
    unread: list[str] = []
    states: tuple[StateSummary, ...] = ()
    load = None
    if has_keyed_state(operator):
        described = readable(lambda: operator.states, unread) or ()
        tally = OperatorTally()
        for counted in _tallies(operator, at, top, run) if described else ():
            tally.join(counted)
        states = tuple(_state_summary(state, tally) for state in described)
        unread += dict.fromkeys(tally.unread.values())
        load = KeyGroupLoad(operator.max_parallelism, tally.key_groups)
    source = readable(operator.source_splits, unread) if is_source(operator) else None
    sink = readable(operator.sink_state, unread) if is_sink(operator) else None
    coordinator = operator._coordinator
    return OperatorSummary(
        operator.label,
        operator.operator_id,
        operator.parallelism,
        operator.max_parallelism,
        bytes_of(operator),
        states,
        tuple(readable(lambda: _operator_states(operator), unread) or ()),
        load,
        None if source is None else len(source.splits),
        None if sink is None else len(sink.committables),
        sum(channel.bytes for channel in operator.in_flight_data),
        sum(len(stream.data or b"") for stream in _streams(operator)),
        None if coordinator is None else coordinator.size,
        tuple(unread),
    )


def _tallies(
    operator: Operator, at: int, top: int, run: RunSummaryTasks | None
) -> Iterable[OperatorTally]:
    if run is not None:
        parts = [part for task in operator.tasks() for part in task.split(TASK_BYTES)]
        return run([SummaryTask(part, at, top).run for part in parts])
    return _run(operator, [SummaryTask(task, at, top) for task in operator.tasks()])


def _run(operator: Operator, tasks: list[SummaryTask]) -> Iterator[OperatorTally]:
    with operator._measured("summarize", [task.read for task in tasks]) as meter:
        for task in tasks:
            yield task.run(meter)


def _state_summary(state: StateDescriptor, tally: OperatorTally) -> StateSummary:
    """Return the summary of a state: without numbers if a part of it cannot be read."""
    error = tally.unread.get(state.name, tally.unread.get(""))
    if error is not None:
        return StateSummary(state.name, state.kind, None, None, None, None, unread=error)
    counted = tally.states.get(state.name)
    if counted is None:  # No subtask has an entry of it.
        elements = 0 if state.kind in ("LIST", "MAP") else None
        return StateSummary(state.name, state.kind, 0, elements, 0, 0)
    times = counted.times.finished()
    is_timer = state.value_serializer is None
    return StateSummary(
        state.name,
        state.kind,
        counted.entries,
        counted.elements,
        counted.keys,
        counted.bytes,
        tuple(counted.heaviest),
        None if is_timer else times,
        times if is_timer else None,
    )


def _operator_states(operator: Operator) -> list[OperatorStateSummary]:
    """Return the summaries of operator states, whose elements are counted and not decoded."""
    modes: dict[str, str] = {}
    counts: dict[str, Counter[str]] = {}
    handles = operator._operator_state_handles()
    plan = ((handle.stream, [(0, handle.stream.size)]) for _, handle, _ in handles)
    with operator._files.ahead(plan) as files:
        for _, handle, is_raw in handles:
            for state in read_encoded_operator_state(files, handle, is_raw, operator._context):
                sizes = [len(element) + len(value) for element, value in state.elements]
                name, count = state.state, counts.setdefault(state.state, Counter())
                modes.setdefault(name, "RAW" if is_raw else state.mode)
                count["subtasks"] += bool(sizes)
                count["bytes"] += sum(sizes)
                is_copy = modes[name] == "BROADCAST"
                others = count["elements"]
                count["elements"] = max(others, len(sizes)) if is_copy else others + len(sizes)
    return [
        OperatorStateSummary(
            name, modes[name], count["elements"], count["bytes"], count["subtasks"]
        )
        for name, count in counts.items()
    ]


def _streams(operator: Operator) -> Iterator[StreamHandle]:
    """Yield the streams that `_metadata` names of an operator, the coordinator's too."""
    fields = [field for subtask in operator._subtasks for field in subtask.as_read.values()]
    for field in fields:
        for _, _, named in field.places:
            stream = named.stream if isinstance(named, OperatorStateHandle) else named
            if isinstance(stream, StreamHandle):
                yield stream
    if operator._coordinator is not None:
        yield operator._coordinator
