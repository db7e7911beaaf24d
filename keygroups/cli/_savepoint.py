"""The command that reads savepoints and checkpoints, and writes them anew."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from keygroups._checks import show
from keygroups.cli import _state
from keygroups.cli._html import check_html, write_html
from keygroups.cli._key_groups import rescale_data
from keygroups.cli._key_text import check_text, parse_key
from keygroups.cli._parser import AddCommand, Arguments, to_int
from keygroups.cli._reading import add_ends, add_options, moved_places, read
from keygroups.cli._streams import (
    complain,
    json_line,
    key_data,
    lines_of,
    of_each_line,
    record_data,
    value_data,
)
from keygroups.errors import InvalidValueError

if TYPE_CHECKING:
    from keygroups.savepoint import (
        EditedOperator,
        EditReport,
        OperatorEditor,
        OperatorReport,
        Savepoint,
    )


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_savepoint)
    add("path", metavar="PATH", help="a savepoint or checkpoint, or the URL of one")
    named = "only the operator of this uid, name or id, or the one to edit; may be repeated"
    add("--operator", action="append", metavar="UID", help=named)
    _add_looking(add)
    _state.add_options(add)
    _add_writing(add)
    add_options(add)


def _add_looking(add: Arguments) -> None:
    """Add the options of what is printed, or shown on a page."""
    add.begin("look at it")
    more = "the parallelism to rescale to (default: one more than the operator's), or to write for"
    add("--parallelism", type=to_int, metavar="N", help=more)
    top = "how many key groups and keys are named (default: 5)"
    add("--top", type=to_int, default=5, metavar="N", help=top)
    whole = "read all entries: each state's entries, keys, bytes, heaviest keys, ages and timers"
    add("--full", action="store_true", help=whole)
    add_ends(add)
    page = "write what it holds as a page for a browser to this new file"
    add("--html", metavar="FILE", help=page)


def _add_writing(add: Arguments) -> None:
    """Add the options of what is written anew."""
    add.begin("write it anew")
    add("--output", metavar="PATH", help="the new folder, or its URL, that this is written to")
    new = "write the savepoint anew with this max parallelism"
    add("--set-max-parallelism", type=to_int, metavar="N", help=new)
    doomed = "write it without the keys in this file, one a line, of each --operator"
    add("--delete-keys", action="append", default=[], metavar="FILE", help=doomed)
    less = "write it without this operator; may be repeated"
    add("--remove-operator", action="append", default=[], metavar="UID", help=less)
    other = "write it with another uid of an operator; may be repeated"
    add("--rename-operator", action="append", default=[], metavar="OLD=NEW", help=other)
    clean = "remove what killed commands left beside --output, untouched for an hour"
    add("--clean", action="store_true", help=clean)
    copied = "make a checkpoint that was copied to there one that Flink restores there"
    add("--relocate", metavar="PATH", help=copied)


def _savepoint(options: argparse.Namespace) -> Iterator[str]:
    """Print the contents of a savepoint or checkpoint, its heavy keys, and a rescale of it.

    JSON: path, kind, version, checkpoint_id, operators (of all: operator_id, uid, name,
    parallelism, max_parallelism, bytes, and in_flight_data of an unaligned checkpoint, by channel:
    direction, subtask, gate, channel, bytes) and reports (of those with keyed state, of sources,
    and of those that are named: operator_id, states, key_group_bytes, heaviest_key_groups,
    heaviest_keys with key, key_group, subtask, entries and bytes, unknown_keys, which is why there
    are none of these, warnings, rescale, whose members are those of plan --load, splits and
    enumerator, its fields, null for all but sources, committables and writers, null for all but
    sinks, and unread, which is why there are no states, or why key_group_bytes and rescale are
    null; without keyed state they are null too). What cannot be read of one operator is said
    there, and all others follow. Damage, keys in key groups that are not theirs and windows
    without timers are looked for by `keygroups verify`.

    With --ends the splits of Kafka have how many records are behind them, the end of FILE less the
    offset. JSON: lag of splits.

    With --full all entries of keyed state are read, and there is also what each state has, as
    Savepoint.summary says it, of each --operator, else of all. JSON: also summary, with path,
    checkpoint_id, at, the epoch milliseconds that ages and waits are counted from, and operators
    (operator, operator_id, parallelism, max_parallelism, bytes, states, operator_states,
    key_group_bytes, imbalance, splits, committables, in_flight_bytes, inline_bytes,
    coordinator_bytes, unread). Each of the states has state, kind, entries, elements, keys, bytes,
    heaviest_keys, last_access and timers (null, or earliest, latest and counts) and unread.

    With --html all this is in a page that has pictures and loads nothing, with every parallelism
    from half to twice the operator's: of each --operator, else of the 20 with the most bytes.

    With --set-max-parallelism it is written anew to --output; JSON: path, operators (of all:
    operator, old_max_parallelism, new_max_parallelism, parallelism, and states with state,
    subtask, entries and bytes), and left: operators without state that --operator does not name.

    With --remove-operator, --delete-keys and --rename-operator it is edited, in this order, and
    all else copied as it is. FILE, or - for standard input, has keys as `keygroups trace -` takes
    them, of the type that each operator's keys have. An OLD with a = in it has to be an id. NEW is
    a uid of the job; id:HEX is an id, as of an operator of Flink SQL whose plan has changed, and
    uid:NEW a uid that looks like an id or such a prefix. JSON: path, operators (of all: operator,
    null if it was removed, old_operator, path, is_added, states of those that were written anew,
    with state, new_name, kept, changed, deleted and added, and deleted_keys, null or with_entries,
    without_entries, which are the keys that had none, and may_be_in: operators and places where
    nobody has searched for them).

    Beside --output a folder .NAME.<32 hexadecimal digits>.writing is made, and renamed at the
    end. One that a killed command left there is named on standard error; --clean removes those
    of this NAME in which nothing was written for an hour. Beside FILE of --export and --html it
    is a file of such a name, which the next one names too.

    With --relocate a checkpoint that was copied gets a _metadata that Flink restores there: PATH
    is the old one or the copy, and --moved says where the files are of which the copy's place
    does not. JSON: path to operators, as above.

    With --export the entries of one state become a table in FILE, which is there when all of it
    is: those of Operator.to_arrow_batch_reader. A .jsonl, or - for standard output, has an object
    on each line, which needs no PyArrow, as a .csv of numbers and text: key_group, subtask, key,
    bytes, and namespace, user_key, value, last_access, timestamp and key_bytes as far as the state
    has them. JSON: path, operator_id, state, entries. With --key it prints what the states of an
    operator have for a key, as text that `keygroups trace` takes. JSON: operator_id, key,
    key_group, subtask, and states, by name, of those that have something. Both read the only
    operator with keyed state if there is no --operator.

    Values in JSON: what JSON has as that; Decimals, dates, times and UUIDs as text; bytes as
    {"base64": ...}; a POJO, or a row with names, as an object of its fields, any other row, tuple
    or set as a list; a map whose keys are no text as a list of pairs; else as Python shows it.

    All this is done by one process in bounded memory. For savepoints of many gigabytes
    keygroups.spark has read_keyed_state, key_sizes, change_max_parallelism and edit_savepoint,
    which read on executors.

    Files that it names are read in its own folder, for a checkpoint chk-N in shared, taskowned
    and the checkpoints beside it, where --moved leads, and in what --allow names. OLD=NEW is
    parted at its =; if it has more of them, at the only one before a / or a URL.
    """
    from keygroups.savepoint import operator_reports

    [savepoint] = read(options, options.path, ends=options.ends)
    _check_options(options)
    if _state.is_asked(options):
        yield from _state.state_lines(savepoint, options)
        return
    if options.output is not None:
        if options.clean:
            _clean(options.output)
        write, to_data = (_edit, _edit_data) if _is_edit(options) else (_rescale, _rescale_data)
        written = write(savepoint, options)
        yield json_line(to_data(written)) if options.json else str(written)
        return
    if options.html is not None:
        yield write_html(savepoint, options)
        return
    if options.relocate is not None:
        from keygroups.savepoint import relocate

        copy = relocate(savepoint, options.relocate, moved_places(options))
        yield json_line(_savepoint_data(copy)) if options.json else str(copy)
        return
    # This finds the operators that were named, so that their names are in the list of all too.
    reports = operator_reports(savepoint, options.operator, options.parallelism, options.top)
    if options.json:
        data = _savepoint_data(savepoint)
        if options.full:
            data["summary"] = savepoint.summary(options.operator, top=options.top).to_dict()
        yield json_line(data | {"reports": [_report_data(report) for report in reports]})
        return
    yield str(savepoint)
    if options.full:
        yield f"\n{savepoint.summary(options.operator, top=options.top)}"
    for report in reports:
        yield f"\n{report}"
    yield "\nkeygroups verify looks for damage, misplaced keys and windows without timers"


def _is_edit(options: argparse.Namespace) -> bool:
    return bool(options.delete_keys or options.remove_operator or options.rename_operator)


def _check_options(options: argparse.Namespace) -> None:
    """Raise for options that do not go together, and for outputs in the process's memory."""
    _state.check_options(options)
    check_html(options)
    edits = "--remove-operator, --delete-keys and --rename-operator"
    if _is_edit(options):
        if options.output is None:
            raise InvalidValueError(f"{edits} go with --output")
        if options.set_max_parallelism is not None or options.parallelism is not None:
            raise InvalidValueError(f"{edits} go without --set-max-parallelism and --parallelism")
        if bool(options.delete_keys) != bool(options.operator):
            raise InvalidValueError("--delete-keys and --operator go together in an edit")
        if len(options.delete_keys) > 1:
            raise InvalidValueError(
                "--delete-keys must not be repeated, as it deletes keys of each --operator"
            )
    elif (options.set_max_parallelism is None) != (options.output is None):
        raise InvalidValueError(f"--set-max-parallelism, or {edits}, and --output go together")
    if options.clean and options.output is None:
        raise InvalidValueError("--clean goes with --output")
    if options.relocate is not None and (options.output is not None or options.operator):
        raise InvalidValueError("--relocate goes without --output and --operator")
    for name in ("output", "relocate"):
        place = getattr(options, name)
        if place is not None and place.startswith("memory://"):
            raise InvalidValueError(
                f"{name} must outlast the command, got {show(place)}, which is in its memory"
            )


def _rescale(savepoint: Savepoint, options: argparse.Namespace) -> EditReport:
    from keygroups.savepoint import change_max_parallelism

    target = (options.set_max_parallelism, options.output, options.parallelism)
    return change_max_parallelism(savepoint, *target, options.operator)


def _edit(savepoint: Savepoint, options: argparse.Namespace) -> EditReport:
    """Write the savepoint with the operators and without the keys that the options name."""
    from keygroups.savepoint import SavepointWriter

    renamed = [_renamed(text) for text in options.rename_operator]
    with SavepointWriter.from_existing_savepoint(savepoint, options.output) as writer:
        for name in options.remove_operator:
            writer.remove_operator(name)
        for path in options.delete_keys:
            lines = [*lines_of(path)]
            operators = {writer.operator(name): name for name in options.operator}
            for operator, name in operators.items():
                keys = of_each_line(lines, _key_reader(name, operator))
                operator.delete_keys(key for _, key in keys)
        for old, new in renamed:
            writer.change_operator_identifier(old, new)
    return writer.report()


def _renamed(text: str) -> tuple[str, str]:
    from keygroups.savepoint import OperatorId

    old, _, new = check_text("rename-operator", text).partition("=")
    if not old or not new:
        raise InvalidValueError(f"rename-operator must be such as OLD=NEW, got {show(text)}")
    kind, _, name = new.partition(":")
    if kind == "id":
        return old, OperatorId(name)
    return old, OperatorId.of_uid(name) if kind == "uid" else new


def _key_reader(name: str, operator: OperatorEditor) -> Callable[[str], Any]:
    """Return the function that parses keys of an operator from text."""
    key_type = next((state.key_type for state in operator.states), None)
    if key_type is None:
        states = ", ".join(map(str, operator.states)) or "none"
        raise InvalidValueError(
            f"operator {show(name)} must have keys that can be written as text, got the states "
            f"{states}"
        )
    return lambda text: parse_key(text, key_type)


def _clean(output: str) -> None:
    """Remove the leftovers of killed commands beside an output, and name them."""
    from keygroups.savepoint._files.output_folder import OutputFolder

    for folder in OutputFolder("output", output).remove_leftovers():
        complain(f"keygroups savepoint: {folder} is removed")


def _savepoint_data(savepoint: Savepoint) -> dict[str, Any]:
    """Return the JSON of a savepoint and its operators."""
    names = ("operator_id", "uid", "name", "parallelism", "max_parallelism")
    operators = [
        {
            **{name: getattr(operator, name) for name in names},
            "bytes": sum(subtask.bytes for subtask in operator.subtasks),
            "in_flight_data": [channel._asdict() for channel in operator.in_flight_data],
        }
        for operator in savepoint.operators
    ]
    head = ("path", "kind", "version", "checkpoint_id")
    return {name: getattr(savepoint, name) for name in head} | {"operators": operators}


def _report_data(report: OperatorReport) -> dict[str, Any]:
    """Return the JSON of the keyed state of an operator."""
    from keygroups.savepoint._state.header import exact_state

    load, rescale = report.key_group_bytes, report.rescale
    keys = [size._asdict() | {"key": key_data(size.key)} for size in report.heaviest_keys]
    return {
        "operator_id": report.operator.operator_id,
        "states": [exact_state(state) for state in report.states],
        "key_group_bytes": load and load.weights,
        "heaviest_key_groups": report.heaviest_key_groups,
        "heaviest_keys": keys,
        "unknown_keys": report.unknown_keys,
        "warnings": report.warnings,
        "rescale": rescale and rescale_data(rescale),
        "unread": report.unread,
        "splits": report.source and [record_data(split) for split in report.source.splits],
        "enumerator": report.source and value_data(report.source.enumerator_fields),
        "committables": report.sink and [record_data(what) for what in report.sink.committables],
        "writers": report.sink and [record_data(writer) for writer in report.sink.writers],
    }


def _rescale_data(report: EditReport) -> dict[str, Any]:
    """Return the JSON of a re-keyed savepoint's report."""
    names = ("operator", "old_max_parallelism", "new_max_parallelism", "parallelism")
    operators = [
        {name: getattr(operator, name) for name in names}
        | {"states": [state._asdict() for state in operator.written]}
        for operator in report.operators
    ]
    return {"path": report.path, "operators": operators, "left": report.left}


def _edit_data(report: EditReport) -> dict[str, Any]:
    """Return the JSON of an edited savepoint's report."""
    return {"path": report.path, "operators": [*map(_operator_data, report.operators)]}


def _operator_data(operator: EditedOperator) -> dict[str, Any]:
    names = ("operator", "old_operator", "path", "is_added")
    counts = ("state", "new_name", "kept", "changed", "deleted", "added")
    data: dict[str, Any] = {name: getattr(operator, name) for name in names}
    data["states"] = [{name: getattr(state, name) for name in counts} for state in operator.states]
    keys = operator.deleted_keys
    data["deleted_keys"] = None
    if keys is not None:
        data["deleted_keys"] = {
            "with_entries": keys.with_entries,
            "without_entries": [*map(key_data, keys.without_entries)],
            "may_be_in": [trace._asdict() for trace in keys.may_be_in],
        }
    return data
