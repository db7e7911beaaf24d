"""Savepoints made after one of the job: what they take from it, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import savepoint_bytes as sb
from job_points import job_point
from real_savepoints import point

from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import (
    MapStateDescriptor,
    Operator,
    OperatorWriter,
    Row,
    Savepoint,
    SavepointWriter,
    StateEntry,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint._state.new_states import NewState
from keygroups.types import LONG, SQL_ROW, STRING, KeyType

JOBS = {  # of SQL: how many entries, timers among them, their operators have
    "sqlagg": 400,
    "sqljoin": 285,
    "sqlmatch": 76,
    "sqlmini": 180,
    "sqlover": 196,
    "sqlrank": 150,
    "sqltjoin": 99,
    "sqlup": 78,
    "sqlwin": 189,
}


def framed(operator: Operator) -> dict[tuple[str, int, bytes], bytes]:
    """Return the bytes of all values, by state, key group and bytes of the key."""
    return {
        (state, key_group, key): value
        for task in operator.tasks()
        for state, key_group, _, key, value in task.framed_entries()
    }


def headers(operator: Operator) -> set[bytes]:
    """Return what the headers say of the key, and of each state."""
    found = set()
    for task in operator.tasks():
        for handle in task.handles:
            header = task.header(handle)
            found |= {header.key_bytes, *header.state_bytes}
    return found


def write_again(writer: OperatorWriter, entry: StateEntry) -> None:
    if entry.kind == "PRIORITY_QUEUE":
        writer.write_timer_of(entry)
    else:
        writer.write(
            *(entry.state, entry.key, entry.value, entry.user_key, entry.last_access),
            entry.namespace,
        )


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("flink", ["2.3.0", pytest.param("1.20.5", marks=pytest.mark.slow)])
def test_the_state_of_sql_jobs_from_its_values(job: str, flink: str, tmp_path: Path) -> None:
    """All bytes are those that Flink wrote: of headers, keys, values and timers."""
    old = job_point(f"{flink}-{job}-hashmap-canonical").read()
    with SavepointWriter(tmp_path / "new", template=old) as writer:
        for operator in old.operators:
            if operator.states:
                new = writer.add_operator(operator.operator_id)
                for entry in operator.entries():
                    write_again(new, entry)
    entries = 0
    for operator in read_savepoint(tmp_path / "new").operators:
        known = old.operator(operator.operator_id)
        assert framed(operator) == framed(known)
        assert headers(operator) == headers(known)
        entries += len(framed(known))
    assert entries == JOBS[job]
