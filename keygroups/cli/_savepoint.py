"""The command that reads savepoints and checkpoints, and writes them anew."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keygroups._checks import show
from keygroups.cli._key_groups import rescale_data
from keygroups.cli._parser import AddCommand, to_int
from keygroups.cli._streams import complain, json_line
from keygroups.errors import InvalidValueError

if TYPE_CHECKING:
    from keygroups.savepoint import OperatorReport, RewriteReport, Savepoint


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_savepoint)
    add("path", metavar="PATH", help="a savepoint or checkpoint, or the URL of one")
    named = "only the operator of this uid, name or id; may be repeated"
    add("--operator", action="append", metavar="UID", help=named)
    more = "the parallelism to rescale to (default: one more than the operator's), or to write for"
    add("--parallelism", type=to_int, metavar="N", help=more)
    top = "how many key groups and keys are named (default: 5)"
    add("--top", type=to_int, default=5, metavar="N", help=top)
    new = "write the savepoint anew with this max parallelism"
    add("--set-max-parallelism", type=to_int, metavar="N", help=new)
    add("--output", metavar="PATH", help="the new folder, or its URL, that this is written to")
    more = "also read files in this folder that the savepoint names; may be repeated"
    add("--allow", action="append", default=[], metavar="PREFIX", help=more)
    left = "remove what killed commands left beside --output, untouched for an hour"
    add("--clean", action="store_true", help=left)


def _savepoint(options: argparse.Namespace) -> Iterator[str]:
    """Print what a savepoint or checkpoint holds, where it is heavy, what a rescale would move.

    JSON: path, kind, version, checkpoint_id, operators (of all: operator_id, uid, name,
    parallelism, max_parallelism, bytes) and reports (of those with keyed state, or named:
    operator_id, states, key_group_bytes, heaviest_key_groups, heaviest_keys with key, key_group,
    subtask, entries and bytes, unknown_keys, which is why there are none of these, and rescale,
    whose members are those of plan --load).

    With --set-max-parallelism it is written anew to --output, beside which a folder
    .NAME.<32 hexadecimal digits>.writing is made, and renamed at the end. One that a killed
    command left there is named on standard error; --clean removes those of this NAME in which
    nothing was written for an hour. JSON: path, operators (of all: operator,
    old_max_parallelism, new_max_parallelism, parallelism, and states with state, subtask,
    entries and bytes).

    Files that it names are read in its own folder, for a checkpoint chk-N in shared, taskowned
    and the checkpoints beside it, and in what --allow names.
    """
    from keygroups.savepoint import change_max_parallelism, operator_reports, read_savepoint

    savepoint = read_savepoint(options.path, allow=options.allow)
    if (options.set_max_parallelism is None) != (options.output is None):
        raise InvalidValueError("--set-max-parallelism and --output go together")
    if options.clean and options.output is None:
        raise InvalidValueError("--clean goes with --output")
    if options.output is not None:
        _check_output(options.output, options.clean)
        to = (options.set_max_parallelism, options.output, options.parallelism, options.operator)
        written = change_max_parallelism(savepoint, *to)
        yield json_line(_rewrite_data(written)) if options.json else str(written)
        return
    # This finds the operators that were named, so that their names are in the list of all too.
    reports = operator_reports(savepoint, options.operator, options.parallelism, options.top)
    if options.json:
        data = _savepoint_data(savepoint)
        yield json_line(data | {"reports": [_report_data(report) for report in reports]})
        return
    yield str(savepoint)
    for report in reports:
        yield f"\n{report}"


def _check_output(output: str, clean: bool) -> None:
    """Refuse a place that is gone with the process, and remove what others left beside it."""
    from keygroups.savepoint._files.output_folder import OutputFolder

    if output.startswith("memory://"):
        raise InvalidValueError(
            f"output must outlast the command, got {show(output)}, which is in its memory"
        )
    if clean:
        for folder in OutputFolder("output", output).remove_leftovers():
            complain(f"keygroups savepoint: {folder} is removed")


def _savepoint_data(savepoint: Savepoint) -> dict[str, Any]:
    """Return the operators of a savepoint."""
    names = ("operator_id", "uid", "name", "parallelism", "max_parallelism")
    operators = [
        {
            **{name: getattr(operator, name) for name in names},
            "bytes": sum(subtask.bytes for subtask in operator.subtasks),
        }
        for operator in savepoint.operators
    ]
    head = ("path", "kind", "version", "checkpoint_id")
    return {name: getattr(savepoint, name) for name in head} | {"operators": operators}


def _report_data(report: OperatorReport) -> dict[str, Any]:
    """Return the keyed state of an operator."""
    from keygroups.savepoint._state.header import exact_state

    keys = [
        # Text and numbers are as JSON has them, any other key as Python shows it.
        size._asdict() | {"key": size.key if isinstance(size.key, (str, int)) else repr(size.key)}
        for size in report.heaviest_keys
    ]
    return {
        "operator_id": report.operator.operator_id,
        "states": [exact_state(state) for state in report.operator.states],
        "key_group_bytes": report.key_group_bytes.weights,
        "heaviest_key_groups": report.heaviest_key_groups,
        "heaviest_keys": keys,
        "unknown_keys": report.unknown_keys,
        "rescale": rescale_data(report.rescale),
    }


def _rewrite_data(report: RewriteReport) -> dict[str, Any]:
    """Return what was written of a savepoint."""
    operators = [
        vars(operator) | {"states": [state._asdict() for state in operator.states]}
        for operator in report.operators
    ]
    return {"path": report.path, "operators": operators}
