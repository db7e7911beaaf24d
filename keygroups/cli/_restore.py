"""The command that says whether a savepoint restores in a job."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keygroups.cli._parser import FAULT, AddCommand
from keygroups.cli._reading import add_options, read
from keygroups.cli._streams import json_line

if TYPE_CHECKING:
    from keygroups.savepoint import OperatorRestore


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_restore)
    add("old", metavar="OLD", help="the savepoint or checkpoint to restore, or the URL of one")
    add("new", metavar="NEW", help="one of the job as it is now, such as one of a test run")
    add_options(add)


def _restore(options: argparse.Namespace) -> Iterator[str]:
    """Print whether a savepoint restores in the job that wrote another one, and why not.

    Of each operator and state that Flink minds: its verdict about the serializers, which is as is,
    reconfigured, after migration, unknown, where it depends on what no savepoint has, or
    incompatible; the field and the rule; and after -> the method of the editor that mends it.
    Headers alone are read.

    The status is 0 if it restores or nobody knows, and 1 if Flink refuses it.

    JSON: path, job, restores (true, false, or null where it is not known), verdict, operators (of
    both: operator, operator_id, only, which is null, only_here or only_there, verdict, reasons,
    remedy, states). Each state has state, kind, only, verdict, reasons and remedy.
    """
    old, new = read(options, options.old, options.new)
    report = old.restore_report(new)
    if report.restores is False:
        options.status = FAULT
    if not options.json:
        yield str(report)
        return
    head = {name: getattr(report, name) for name in ("path", "job", "restores", "verdict")}
    yield json_line(head | {"operators": [*map(_operator_data, report.operators)]})


def _operator_data(operator: OperatorRestore) -> dict[str, Any]:
    names = ("operator", "operator_id", "only", "verdict", "reasons", "remedy")
    data = {name: getattr(operator, name) for name in names}
    return data | {"states": [vars(state) for state in operator.states]}
