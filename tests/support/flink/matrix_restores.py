"""What jobs find that real Flink restores from the points of `matrix_points.py`, edited or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any
from uuid import UUID

from keygroups.savepoint import OperatorId, Pojo, Savepoint, read_savepoint
from support.bytes.matrix_points import LINE, SERIALIZERS
from support.bytes.version_points import Content, content
from support.flink.flink_points import Seen, is_event_timer, java_operators, misplaced, row_of
from support.flink.flink_restores import FlinkRestores, Task


def java(value: Any) -> Any:
    """Return a value as `StateJson.java` writes it; all numbers here are longs."""
    if isinstance(value, tuple):
        return {"list": [java(element) for element in value]}
    if isinstance(value, Pojo):
        return {"class": value.java_class, "text": _text(value)}
    if isinstance(value, UUID):
        return {"class": "java.util.UUID", "text": str(value)}
    return {"long": value} if isinstance(value, int) else value


def _text(value: Pojo) -> str:
    """The toString of the classes in `Matrix.java`."""
    if value.java_class == LINE:
        return f"{value.sku}={value.amount}"
    assert isinstance(value.date, date)
    return f"{value.name} on {value.date}"


def rows_of(contents: Mapping[str, Content]) -> Counter[Seen]:
    """Return the rows that a job finds in each operator, by the rule of the seed job."""
    return Counter(
        row_of(
            {
                "operator": OperatorId.of_uid(uid),
                "state": state,
                "kind": kind,
                "key": java(key),
                "namespace": {"void": True},
                "user_key": java(user_key),
                "value": java(value),
                "timestamp": timestamp,
            }
        )
        for uid, entries in contents.items()
        for state, kind, key, _, user_key, value, timestamp, _ in entries.elements()
    )


def restored(
    restores: FlinkRestores,
    new: Savepoint,
    contents: Mapping[str, Content],
    backend: str,
    max_parallelism: int,
) -> Savepoint:
    """Return the rows of a job that found all: in its backend, and as its timers fired."""
    task = Task(new.path, java_operators(new), backend, 3, max_parallelism, ends=True)
    done = restores.restore(task)
    assert done.refused is None
    assert done.unsaved is None
    expected = rows_of(contents)
    rows = [*done.found("backend")]
    assert Counter(map(row_of, rows)) == expected
    assert not [*misplaced(rows, max_parallelism, 3)]
    timers = Counter({row: count for row, count in expected.items() if is_event_timer(row)})
    assert Counter(map(row_of, done.found("fired"))) == timers
    assert done.path is not None
    own = read_savepoint(done.path, serializers=SERIALIZERS)
    for uid, entries in contents.items():
        assert content(own.operator(f"at {OperatorId.of_uid(uid)}")) == entries
    print(f"{restores.version} {backend}: {len(rows)} entries, {timers.total()} timers fired")
    return own
