"""What is called on a savepoint of a stranger and on each of its operators, whatever they say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from keygroups.cli import main
from keygroups.errors import KeyGroupsError
from keygroups.savepoint import (
    Operator,
    Savepoint,
    SavepointWriter,
    change_max_parallelism,
    convert_to_canonical,
    describe_sql_state,
    html_report,
    operator_reports,
    read_savepoint,
)

Call = Callable[[Savepoint, Operator, Path], object]


class CommandError(KeyGroupsError):
    """The command has refused something, in one line."""


def _shown(*values: object) -> None:
    """Show values as text, in a notebook and in UTF-8."""
    for value in values:
        assert (str(value) + repr(value)).replace("\n", "").isprintable()
        value._repr_html_().encode()  # type: ignore[attr-defined]  # IPython asks for it


def _get(_: Savepoint, operator: Operator, __: Path) -> object:
    for entry in operator.entries():
        return operator.get(entry.key)
    return operator.get("a")


def _edit(savepoint: Savepoint, operator: Operator, new: Path) -> None:
    with SavepointWriter.from_existing_savepoint(savepoint, new) as editor:
        name = operator.states[0].name if operator.states else "s"
        editor.operator(operator.operator_id).map_entries(name, lambda entry: entry.value)
    _shown(editor.report())
    assert not savepoint.compare(read_savepoint(new)).has_differences


def _converted(savepoint: Savepoint, _: Operator, new: Path) -> None:
    _shown(convert_to_canonical(savepoint, new))


def _rewritten(savepoint: Savepoint, _: Operator, new: Path) -> None:
    _shown(change_max_parallelism(savepoint, 7, new))


def _command(*options: str) -> Call:
    """Return a function that runs the command savepoint; NEW among the options is a new file."""

    def call(savepoint: Savepoint, operator: Operator, new: Path) -> None:
        arguments = [option.replace("NEW", str(new)) for option in options]
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = main(
                ["savepoint", savepoint.path, "--operator", operator.operator_id, *arguments]
            )
        text, error = out.getvalue(), err.getvalue()
        assert (text + error).replace("\n", "").isprintable()
        if status:
            assert error.count("\n") == 1
            raise CommandError(error)
        if "--json" in options:
            json.loads(text, parse_constant=_refuse)
        if "--export" in options:
            assert new.with_suffix(options[1][3:]).is_file()

    return call


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _exhausted(values: Iterator[Any]) -> int:
    return sum(1 for _ in values)


CALLS: dict[str, Call] = {
    "states": lambda _, operator, __: list(map(str, operator.states)),
    "subtasks": lambda _, operator, __: operator.subtasks,
    "entries": lambda _, operator, __: _exhausted(operator.entries()),
    "operator_state": lambda _, operator, __: _exhausted(operator.operator_state()),
    "source_splits": lambda _, operator, __: operator.source_splits(),
    "sink_state": lambda _, operator, __: operator.sink_state(),
    "key_sizes": lambda _, operator, __: operator.key_sizes(2),
    "key_group_bytes": lambda _, operator, __: operator.key_group_bytes(),
    "compare": lambda savepoint, operator, __: _shown(
        savepoint.compare(savepoint, [operator.operator_id])
    ),
    "verify": lambda savepoint, operator, __: _shown(savepoint.verify([operator.operator_id])),
    "restore_report": lambda savepoint, _, __: _shown(savepoint.restore_report(savepoint)),
    "check_restore": lambda savepoint, operator, __: savepoint.check_restore(
        operator, 1, operator.max_parallelism
    ),
    "shown": lambda savepoint, operator, __: _shown(savepoint, operator),
    "to_arrow": lambda _, operator, __: operator.to_arrow(),
    "get": _get,
    "differences": lambda savepoint, operator, __: [
        str(difference) for difference in savepoint.differences(savepoint, [operator.operator_id])
    ],
    "reports": lambda savepoint, operator, __: _shown(
        *operator_reports(savepoint, [operator.operator_id])
    ),
    "html_report": lambda savepoint, operator, __: html_report(
        savepoint, [operator.operator_id]
    ).encode(),
    "describe_sql_state": lambda _, operator, __: describe_sql_state(operator),
    "convert_to_canonical": _converted,
    "command": _command(),
    "command, JSON": _command("--json"),
    "command, Parquet": _command("--export", "NEW.parquet"),
    "command, CSV": _command("--export", "NEW.csv"),
}
"""Calls on an operator, by name; a path is new."""
MORE_CALLS: dict[str, Call] = CALLS | {
    "to_pandas": lambda _, operator, __: operator.to_pandas(),
    "to_polars": lambda _, operator, __: operator.to_polars(),
    "map_entries": _edit,
    "change_max_parallelism": _rewritten,
    "command, key": _command("--key", "a"),
    "command, key, JSON": _command("--key", "a", "--json"),
    "command, HTML": _command("--html", "NEW.html"),
    "command, Arrow": _command("--export", "NEW.arrow"),
}
"""Those, and calls that do as others do, with other names."""


def removed(folder: Path) -> None:
    """Remove what the calls have written."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
