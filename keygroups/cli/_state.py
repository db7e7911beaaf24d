"""The options of the command `savepoint` that read keyed state: --export and --key."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from keygroups._checks import exact_repr, show
from keygroups._show.tables import text_table
from keygroups.assignment import trace_key
from keygroups.cli._json_values import (
    EntryWriter,
    json_lines,
    value_data,
    write_csv,
    write_json_lines,
)
from keygroups.cli._key_text import check_text, parse_key, parse_key_type
from keygroups.cli._new_file import new_file
from keygroups.cli._parser import Arguments
from keygroups.cli._streams import json_line
from keygroups.errors import InvalidValueError, KeyGroupsError, printable

if TYPE_CHECKING:
    from keygroups.savepoint import Operator, Savepoint, StateDescriptor

_ROW_GROUP = 64 << 20
"""Bytes of Arrow, in memory, that make a row group of Parquet, about."""


def add_options(add: Arguments) -> None:
    """Add the options of the command `savepoint`."""
    add.begin("read keyed state")
    file = "write the entries of --state to a new file: .parquet, .arrow, .feather, .csv or .jsonl"
    file += "; - prints JSON Lines"
    add("--export", metavar="FILE", help=file)
    add("--state", metavar="NAME", help="the state of --export, or the only one that --key reads")
    add("--key", metavar="KEY", help="what keyed state has for this key")
    add("--type", metavar="TYPE", help="the type of --key (default: what the savepoint says)")


def is_asked(options: argparse.Namespace) -> bool:
    """Return whether the options ask for a state or a key."""
    return options.export is not None or options.key is not None


def check_options(options: argparse.Namespace) -> None:
    """Raise InvalidValueError for options that do not go together."""
    if options.export is not None and options.key is not None:
        raise InvalidValueError("--export goes without --key")
    if options.state is not None and not is_asked(options):
        raise InvalidValueError("--state goes with --export or --key")
    if options.type is not None and options.key is None:
        raise InvalidValueError("--type goes with --key")
    if is_asked(options) and (options.output is not None or options.relocate is not None):
        raise InvalidValueError("--export and --key go without --output and --relocate")


def state_lines(savepoint: Savepoint, options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines about an export, or the state of a key."""
    operator = _operator(savepoint, options.operator)
    if options.key is not None:
        yield from _look_up(operator, options)
        return
    described = _one_state(operator, options.state)
    if options.export == "-":
        yield from json_lines(described, operator.entries([described.name]))
        return
    count = _export(operator, described, options.export)
    names = {"operator_id": operator.operator_id, "state": described.name}
    if options.json:
        yield json_line({"path": options.export, **names, "entries": count})
        return
    yield printable(f"{count:,} entries of {described.name}: {options.export}")


def _operator(savepoint: Savepoint, names: list[str] | None) -> Operator:
    """Return the operator of --operator, or the only one with keyed state."""
    if names is not None:
        if len(names) > 1:
            raise InvalidValueError("--operator must be one with --export and --key")
        return savepoint.operator(names[0])
    keyed = [operator for operator in savepoint.operators if operator.tasks()]
    if len(keyed) != 1:
        from keygroups.savepoint._named_operators import labels_of

        labels = ", ".join(labels_of(keyed)) or "none"
        raise InvalidValueError(
            f"--operator must name the one to read, of those with keyed state: {labels}"
        )
    return keyed[0]


# --- --key ------------------------------------------------------------------------------------


def _look_up(operator: Operator, options: argparse.Namespace) -> Iterator[str]:
    key_type = next((state.key_type for state in operator.states), None)
    if options.type is not None:
        from keygroups._serializers.base import exact_type

        printed = {exact_type(state.key_serializer) for state in operator.states}
        asked = key_type if options.type in printed else parse_key_type(options.type)
        if asked != key_type:
            raise InvalidValueError(
                f"type must be that of the keys of {operator.label}, {key_type}, got {asked}"
            )
    if not operator.states:
        operator.get(options.key)  # It raises, as there is no state.
    if key_type is None:
        keys = operator.states[0].key_serializer
        raise InvalidValueError(
            f"key must be text of a key type, and the keys of {operator.label} are of {keys}: "
            "Operator.get takes one as StateEntry has it"
        )
    key = parse_key(options.key, key_type)
    states = operator.get(key)
    if options.state is not None:
        value = operator.get(key, options.state)
        states = {} if value is None else {options.state: value}
    trace = trace_key(key, operator.max_parallelism, operator.parallelism, key_type)
    place = {"key_group": trace.key_group, "subtask": trace.subtask}
    if options.json:
        data = {"operator_id": operator.operator_id, "key": value_data(key), **place}
        values = {name: value_data(value) for name, value in states.items()}
        yield json_line(data | {"states": values})
        return
    head = f"key {exact_repr(key)} of {operator.label}, key group {place['key_group']}, subtask"
    yield printable(f"{head} {place['subtask']}{'' if states else ': nothing'}")
    from keygroups.savepoint._operator_tables import contents_text

    rows = [(name, contents_text(name, value)) for name, value in states.items()]
    yield from map(printable, text_table(rows, left_columns=(0, 1)))


# --- --export ---------------------------------------------------------------------------------


def _export(operator: Operator, state: StateDescriptor, text: str) -> int:
    """Write the entries of a state to a file, and return their number."""
    path = Path(check_text("export", text))
    ending = path.suffix.lower()
    if ending not in (*_WRITERS, _LINES):
        raise InvalidValueError(
            f"export must be a file that ends in {', '.join((*_WRITERS, _LINES))}, got "
            f"{show(text)}"
        )
    if ending == _LINES:
        return _export_entries(operator, state, path, write_json_lines)
    try:
        reader = operator.to_arrow_batch_reader(state.name)
    except ModuleNotFoundError as error:
        if ending == ".csv":
            return _export_entries(operator, state, path, write_csv)
        raise KeyGroupsError(str(error)) from None
    write = _WRITERS[ending]
    from pyarrow import ArrowException

    try:
        with new_file("export", path) as file:
            return write(file, reader)
    except KeyGroupsError:
        raise
    except (ArrowException, OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise KeyGroupsError(f"export {show(text)} cannot be written: {why}") from None


def _export_entries(
    operator: Operator, state: StateDescriptor, path: Path, write: EntryWriter
) -> int:
    """Write the entries of a state without PyArrow, and return their number."""
    try:
        with new_file("export", path) as file:
            return write(file, state, operator.entries([state.name]))
    except (OSError, ValueError) as error:
        if isinstance(error, KeyGroupsError):
            raise
        why = getattr(error, "strerror", None) or error
        raise KeyGroupsError(f"export {show(str(path))} cannot be written: {why}") from None


def _one_state(operator: Operator, name: str | None) -> StateDescriptor:
    """Return the state of a name, or the only one besides timers."""
    if name is not None:
        operator.entries([name])  # It raises for a name that is none.
        [found] = [state for state in operator.states if state.name == name]
        return found
    states = [state for state in operator.states if state.kind != "PRIORITY_QUEUE"]
    if len(states) != 1:
        named = ", ".join(state.name for state in states) or "none"
        raise InvalidValueError(f"--state must name the one to export, of {named}")
    return states[0]


def _write_parquet(file: IO[bytes], reader: Any) -> int:
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

    count = size = 0
    held: list[Any] = []
    with ParquetWriter(file, reader.schema) as writer:
        for batch in reader:
            held.append(batch)
            count += batch.num_rows
            size += batch.nbytes
            if size >= _ROW_GROUP:
                writer.write_table(Table.from_batches(held))
                held, size = [], 0
        if held:
            writer.write_table(Table.from_batches(held))
    return count


def _write_batches(writer: Any, reader: Any) -> int:
    count = 0
    with writer:
        for batch in reader:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _write_arrow(file: IO[bytes], reader: Any) -> int:
    from pyarrow import ipc

    return _write_batches(ipc.new_file(file, reader.schema), reader)


def _write_csv(file: IO[bytes], reader: Any) -> int:
    from pyarrow import csv, types

    for field in reader.schema:
        if types.is_nested(field.type) or types.is_binary(field.type):
            raise InvalidValueError(
                f"export must be .parquet, .arrow or .feather, as a .csv has no column of "
                f"{field.type}, which {field.name} is"
            )
    return _write_batches(csv.CSVWriter(file, reader.schema), reader)


_LINES = ".jsonl"
_WRITERS: dict[str, Callable[[IO[bytes], Any], int]] = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
    ".csv": _write_csv,
}
