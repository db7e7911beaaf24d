"""The command that verifies a savepoint."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from keygroups.cli._parser import FAULT, AddCommand
from keygroups.cli._reading import add_options, read
from keygroups.cli._streams import json_line, key_data

if TYPE_CHECKING:
    from keygroups.savepoint import FaultCount


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_verify)
    add("path", metavar="PATH", help="a savepoint or checkpoint, or the URL of one")
    named = "only the operator of this uid, name or id; may be repeated"
    add("--operator", action="append", metavar="UID", help=named)
    add_options(add)


def _verify(options: argparse.Namespace) -> Iterator[str]:
    """Print missing files, damage and misplaced entries of a savepoint or checkpoint.

    All of it is read: that each file is there and of its size, checksums, the order of RocksDB's
    files, that each key is in its own key group and no entry there twice, that windows and the
    buffers of interval joins have timers, that sets of merging windows agree with their contents.
    Help of Savepoint.verify has more. This is done by one process in bounded memory; for
    savepoints of many gigabytes keygroups.spark.verify_savepoint reads on executors.

    The status is 0 if nothing is at fault, and 1 if anything is.

    JSON: path, files and bytes (of what _metadata names), has_faults, faults (of files), operators
    (operator_id, operator, entries, has_faults, faults, unverified: what takes the job's classes).
    A fault has kind, count, is_fault, which is false for what a job may leave, and examples: of
    the first few message, state, subtask, key_group, key and namespace, null if it has none.
    """
    [savepoint] = read(options, options.path)
    report = savepoint.verify(options.operator)
    if report.has_faults:
        options.status = FAULT
    if not options.json:
        yield str(report)
        return
    operators = [
        vars(operator)
        | {"has_faults": operator.has_faults, "faults": _fault_data(operator.faults)}
        for operator in report.operators
    ]
    yield json_line(
        vars(report)
        | {
            "has_faults": report.has_faults,
            "faults": _fault_data(report.faults),
            "operators": operators,
        }
    )


def _fault_data(counts: Sequence[FaultCount]) -> list[dict[str, Any]]:
    return [
        {
            "kind": count.kind,
            "count": count.count,
            "is_fault": count.is_fault,
            "examples": [
                {name: _plain(name, value) for name, value in fault._asdict().items()}
                for fault in count.examples
            ],
        }
        for count in counts
    ]


def _plain(name: str, value: Any) -> Any:
    return key_data(value) if name in ("key", "namespace") and value is not None else value
