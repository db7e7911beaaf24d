"""The command that compares two savepoints."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from itertools import compress
from typing import TYPE_CHECKING, Any

from keygroups.cli._parser import WRONG_ARGUMENT, AddCommand
from keygroups.cli._reading import add_options, read
from keygroups.cli._streams import json_line, key_data, record_data
from keygroups.errors import InvalidValueError

if TYPE_CHECKING:
    from keygroups.savepoint import (
        Change,
        EntryDifference,
        OperatorComparison,
        Savepoint,
        SavepointGrowth,
        SplitDifference,
        StateComparison,
    )
    from keygroups.savepoint.comparing import CommittableDifference

_DIFFERENT = 1  # the status of diff and cmp for different files


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_diff)
    add("old", metavar="OLD", help="a savepoint or checkpoint, or the URL of one")
    later = "the one that it is compared with, or several later ones, in order, for a trend"
    add("new", metavar="NEW", nargs="+", help=later)
    named = "only the operator of this uid, name or id; may be repeated"
    add("--operator", action="append", metavar="UID", help=named)
    named = "only the states of this name; may be repeated"
    add("--state", action="append", metavar="STATE", help=named)
    status = "end with 1 if anything is not the same, and with 2 for whatever is at fault"
    add("--exit-code", action="store_true", help=status)
    add_options(add)


def _diff(options: argparse.Namespace) -> Iterator[str]:
    """Print the differences between two savepoints or checkpoints of a job.

    "here" is OLD, "there" NEW. Of each operator and state that are not the same: how many entries
    are equal, changed (another value), touched (another time of last access, for a time to live),
    only here and only there, and a few of those that are not equal. Formats and parallelisms may
    be any. All of both is read, in this process: for savepoints of many gigabytes
    keygroups.spark.compare_savepoints reads on executors.

    With the extra `arrays` there is also the growth of each state in bytes, entries and elements,
    the one that grew most first. Of more than two points there is that alone, as a trend.

    The status is 0 whatever is found. With --exit-code it is that of diff: 0 if all is the same,
    1 if not, 2 for a wrong argument and for a file or standard output at fault.

    JSON: here, there, has_differences, operators (of all: operator, operator_id, only, which is
    null, only_here or only_there, changes with name, here and there, states and operator_states,
    splits of sources, committables of sinks, coordinator, has_channel_state). Each state has
    state, kind, changes, equal, changed, touched, only_here, only_there and examples: kind, here
    and there, each null or with key_group, subtask, key, namespace, user_key, value, last_access
    and timestamp, as far as such an entry has them. growth, null without the extra, has paths,
    states (operator, operator_id, state, kind, growth, and bytes, entries and elements at each
    point) and key_groups (operator, key_group, bytes at each point); of more than two points these
    are all there is.
    """
    if options.exit_code:
        options.fault = WRONG_ARGUMENT  # The status 1 means _DIFFERENT here.
        if len(options.new) > 1:
            raise InvalidValueError("--exit-code goes with two savepoints, got more")
    old, *others = read(options, options.old, *options.new)
    if len(others) > 1:
        trend = _growth([old, *others], options)
        yield json_line(trend.to_dict()) if options.json else str(trend)
        return
    [new] = others
    report = old.compare(new, options.operator, options.state)
    if options.exit_code and report.has_differences:
        options.status = _DIFFERENT
    growth = _growth([old, new], options) if _has_arrays() else None
    if options.json:
        names = ("here", "there", "has_differences")
        operators = [*map(_operator_data, report.operators)]
        data = {name: getattr(report, name) for name in names} | {"operators": operators}
        yield json_line(data | {"growth": None if growth is None else growth.to_dict()})
        return
    yield str(report)
    if growth is not None and any(state.has_grown for state in growth.states):
        yield f"\n{growth}"


def _has_arrays() -> bool:
    """Tell whether the extra is installed that growth takes, which the rest does not."""
    return all(find_spec(name) is not None for name in ("numpy", "pyarrow"))


def _growth(points: Sequence[Savepoint], options: argparse.Namespace) -> SavepointGrowth:
    """Return the growth of the operators and the states that the options name."""
    from keygroups.savepoint import SavepointGrowth

    names = options.operator
    if names is None:
        growth = SavepointGrowth.of(point.summary(top=1) for point in points)
    else:
        known = [{by: _has_operator(point, by) for by in names} for point in points]
        for name in names:
            if not any(of_point[name] for of_point in known):
                points[-1].operator(name)  # raises the error that names the operators
        growth = SavepointGrowth.of(
            point.summary([*compress(of_point, of_point.values())], top=1)
            for point, of_point in zip(points, known)
        )
    if options.state is None:
        return growth
    states = tuple(state for state in growth.states if state.state in options.state)
    return replace(growth, states=states)


def _has_operator(point: Savepoint, name: str) -> bool:
    with suppress(InvalidValueError):
        point.operator(name)
        return True
    return False


def _operator_data(operator: OperatorComparison) -> dict[str, Any]:
    return vars(operator) | {
        "changes": [*map(_change_data, operator.changes)],
        "states": [*map(_state_data, operator.states)],
        "operator_states": [*map(_state_data, operator.operator_states)],
        "splits": [*map(_side_data, operator.splits)],
        "committables": [*map(_side_data, operator.committables)],
    }


def _state_data(state: StateComparison) -> dict[str, Any]:
    return vars(state) | {
        "changes": [*map(_change_data, state.changes)],
        "examples": [*map(_difference_data, state.examples)],
    }


def _change_data(change: Change) -> dict[str, Any]:
    """Return the JSON of a change: numbers and booleans as such, types as text."""
    return {
        name: value if value is None or isinstance(value, int) else str(value)
        for name, value in change._asdict().items()
    }


def _side_data(difference: SplitDifference | CommittableDifference) -> dict[str, Any]:
    sides = {name: getattr(difference, name) for name in ("here", "there")}
    return {"kind": difference.kind} | {
        name: None if side is None else record_data(side) for name, side in sides.items()
    }


def _difference_data(difference: EntryDifference) -> dict[str, Any]:
    sides = {name: getattr(difference, name) for name in ("here", "there")}
    return {"kind": difference.kind} | {
        name: None if entry is None else _entry_data(entry._asdict())
        for name, entry in sides.items()
    }


def _entry_data(entry: dict[str, Any]) -> dict[str, Any]:
    names = ("key_group", "subtask", "key", "namespace", "user_key", "value", "last_access")
    return {
        name: None if entry[name] is None else key_data(entry[name])
        for name in (*names, "timestamp")
        if name in entry
    }
