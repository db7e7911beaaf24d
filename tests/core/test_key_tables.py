"""`Operator.to_arrow(by_key=True)`: a row of each key, by the tables of its states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import Point, point

from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    SavepointWriter,
    StateDescriptor,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import INT, STRING

pytest.importorskip("pyarrow")

POINTS = ["2.3.0-heap-canonical", "1.20.5-rocks-canonical"]
Held = dict[str, dict[str, Any]]


def of_rows(rows: list[dict[str, Any]], state: StateDescriptor) -> Any:
    """Return the contents of a state for a key, by the rows of its table, one for each entry."""
    if "namespace" in rows[0]:
        by_namespace: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            by_namespace.setdefault(repr(row.pop("namespace")), []).append(row)
        return sorted((name, of_rows(own, state)) for name, own in by_namespace.items())
    if state.value_serializer is None:
        return sorted(row["timestamp"] for row in rows)
    if "user_key" in rows[0]:
        return sorted((repr(row["user_key"]), of_entry(row)) for row in rows)
    [row] = rows
    return of_entry(row)


def of_entry(row: dict[str, Any]) -> Any:
    if "last_access" not in row or row["last_access"] is None:
        return repr(row["value"])
    return repr({"last_access": row["last_access"], "value": row["value"]})


def in_order(value: Any, state: StateDescriptor, has_namespace: bool) -> Any:
    """Return a value of the table as `of_rows` has it."""
    if has_namespace:
        return sorted((repr(name), in_order(held, state, False)) for name, held in value)
    if state.value_serializer is None:
        return value
    if state.user_key_serializer is not None:
        return sorted((repr(user_key), repr(held)) for user_key, held in value)
    return repr(value)


def by_tables(operator: Operator) -> Held:
    """Return the contents of each key by state, of the tables of single states."""
    found: Held = {}
    for state in operator.states:
        by_key: dict[str, list[dict[str, Any]]] = {}
        for row in operator.to_arrow(state).to_pylist():
            by_key.setdefault(repr(row["key"]), []).append(row)
        for key, rows in by_key.items():
            found.setdefault(key, {})[state.name] = of_rows(rows, state)
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", POINTS)
def test_a_row_has_what_the_tables_of_the_states_have(name: str) -> None:
    old: Point = point(name)
    compared = 0
    for operator in old.read().operators:
        if not operator.states:
            continue
        states = {state.name: state for state in operator.states}
        table = operator.to_arrow(by_key=True)
        assert table.column_names == ["key", *states]
        expected = by_tables(operator)
        found: Held = {}
        for row in table.to_pylist():
            key = repr(row.pop("key"))
            assert key not in found
            found[key] = {
                state: in_order(held, states[state], has_namespace(states[state]))
                for state, held in row.items()
                if held is not None
            }
        assert found == expected
        compared += len(found)
    assert compared > 100


def has_namespace(state: StateDescriptor) -> bool:
    return str(state.namespace_serializer) != "VOID_NAMESPACE"


TIME = 1_700_000_000_000
STATES = [
    ValueStateDescriptor("count", INT, has_ttl=True),
    ListStateDescriptor("tags", STRING),
    MapStateDescriptor("notes", STRING, STRING),
    TimerServiceDescriptor(),
]


@pytest.fixture
def by_user(tmp_path: Path) -> Operator:
    with SavepointWriter(tmp_path / "0") as writer:
        by = writer.add_operator("by-user", STRING, STATES, 128, 2, sort=True)
        by.write("count", "ann", 5, last_access=TIME)
        by.write("tags", "ann", ["x", "y"])
        by.write("notes", "bob", None, user_key="a")
        for time in (TIME, 9):
            by.write_timer("bob", time)
    return read_savepoint(tmp_path / "0").operator("by-user")


def test_the_columns(by_user: Operator) -> None:
    rows = {row.pop("key"): row for row in by_user.to_arrow(by_key=True).to_pylist()}
    timers = dict.fromkeys(state.name for state in by_user.states[3:])
    fired = {"_timer_state/event_user-timers": [9, TIME]}
    assert rows == {
        "ann": {
            "count": {"last_access": TIME, "value": 5},
            "tags": ["x", "y"],
            "notes": None,
            **timers,
        },
        "bob": {"count": None, "tags": None, "notes": [("a", None)], **timers, **fired},
    }


def test_a_state_and_some_key_groups(by_user: Operator) -> None:
    table = by_user.to_arrow("tags", by_key=True)
    assert table.to_pydict() == {"key": ["ann"], "tags": [["x", "y"]]}
    [key_group] = {entry.key_group for entry in by_user.entries(["tags"])}
    others = [number for number in range(128) if number != key_group]
    assert by_user.to_arrow("tags", others, by_key=True).num_rows == 0
    assert by_user.to_arrow("tags", others, by_key=True).schema == table.schema


def test_what_is_refused(by_user: Operator, tmp_path: Path) -> None:
    with pytest.raises(InvalidTypeError, match=r"^by_key must be a bool, got 1"):
        by_user.to_arrow(by_key=1)  # type: ignore[arg-type]  # A user may do so.
    with SavepointWriter(tmp_path / "1") as writer:
        by = writer.add_operator("a", STRING, [ValueStateDescriptor("key", INT)], 128, 1)
        by.write("key", "ann", 5)
    with pytest.raises(InvalidValueError, match=r"^the name 'key' is there twice"):
        read_savepoint(tmp_path / "1").operator("a").to_arrow(by_key=True)


def one_value(
    folder: Path, value: bytes, data: bytes, key: bytes = sb.simple("String"), *keys: bytes
) -> Operator:
    """Write a state of a value, under the key "a" or some others."""
    keyed = sb.keyed_header(key, [sb.state("s", "VALUE", value)])
    entries = [(b"\3" + each + b"\0", data) for each in keys or [b"\2a"]]
    key_group = sb.canonical_key_group([(0, entries)])
    handle = sb.canonical(3, [len(keyed)], sb.inline(keyed + key_group))
    operator = sb.operator([sb.subtask(managed_keyed=handle)], uid="by")
    return read_savepoint(sb.write(folder, [operator])).operator("by")


POJO = sb.pojo_of("x.P", {"id": sb.simple("Int")})


def test_values_of_classes_that_are_not_known(tmp_path: Path) -> None:
    """All bytes of a state are a column of bytes, and some of them are none."""
    of_job = one_value(tmp_path / "2", sb.kryo_of("a.D"), b"\1\2\3")
    assert of_job.to_arrow(by_key=True).to_pydict() == {"key": ["a"], "s": [b"\1\2\3"]}
    of_any = sb.kryo_of("java.lang.Object")
    number = one_value(tmp_path / "3", of_any, b"\2\x0e").to_arrow(by_key=True)
    assert number.to_pydict() == {"key": ["a"], "s": ["7"]}
    for value, data in ((POJO, b"\4" + sb.utf("x.Q") + b"12"), (of_any, b"\1\0a\xe21")):
        operator = one_value(tmp_path / f"{len(data)}", value, data)
        assert [*operator.entries_by_key()] == [("a", {"s": data})]
        with pytest.raises(InvalidValueError, match=r"^column 's': .* is nothing that a column"):
            operator.to_arrow(by_key=True)


def test_keys_of_any_class(tmp_path: Path) -> None:
    """They are text, which is no key where only the job reads it, or two keys have the same."""
    of_any, number = sb.kryo_of("java.lang.Object"), sb.simple("Int")
    seven, as_long, of_job = b"\2\x0e", b"\x09\x0e", b"\1\0a\xe21"
    by_text = one_value(tmp_path / "0", number, sb.i32(5), of_any, seven)
    assert by_text.to_arrow(by_key=True).to_pydict() == {"key": ["7"], "s": [5]}
    for keys, says in (((of_job,), "holds unchanged"), ((seven, as_long), "have one text")):
        operator = one_value(tmp_path / f"{len(keys)}", number, sb.i32(5), of_any, *keys)
        with pytest.raises(InvalidValueError, match=rf"^column 'key': .* {says}"):
            operator.to_arrow(by_key=True)
