"""Savepoints that are edited here, restored by real Flink, which finds what the edit leaves.

What that is follows from what Flink had read in the recorded points, entry by entry; no edit is
read back by the library alone. `pytest -rP` shows how much was compared.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from support.bytes.real_savepoints import Point, point
from support.flink.flink_oracle import version_numbers
from support.flink.flink_points import (
    Seen,
    content,
    is_event_timer,
    is_timer,
    java_operators,
    misplaced,
    newest_point,
    operator_state,
    row_of,
    true_rows,
    with_state,
)
from support.flink.flink_restores import BACKENDS, FlinkRestores, State, Task
from support.flink.restore_table import RestoreTable
from support.flink.written_savepoints import DAY

from keygroups.savepoint import (
    DELETE,
    OperatorId,
    Savepoint,
    SavepointEditor,
    SavepointWriter,
    StateEntry,
    read_savepoint,
)
from keygroups.types import INT, LONG, STRING, TUPLE

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.17", "the API of its job"),
]

NOW = int(time.time() * 1000)
EVENT_TIMERS = "_timer_state/event_user-timers"


class Row(NamedTuple):
    """What `row_of` returns, by names."""

    operator: str
    state: str
    kind: str
    key: Any
    namespace: Any
    user_key: Any
    value: Any
    last_access: int | None
    timestamp: int | None


class Edit(NamedTuple):
    """An edit: what is done, and what becomes of an entry that Flink had read.

    `renamed` are new uids by the ids that operators had; `adds` says that it takes in `ADDED`.
    """

    do: Callable[[SavepointEditor, Point], None]
    expected: Callable[[Row], Iterable[Row]]
    renamed: Mapping[str, str] = MappingProxyType({})
    adds: bool = False


def of(uid: str, *states: str) -> Callable[[Row], bool]:
    """Return a test of the entries of an operator, or of some of its states."""
    operator_id = OperatorId.of_uid(uid)
    return lambda row: row.operator == operator_id and (not states or row.state in states)


# --- whole operators ----------------------------------------------------------------------


def remove_operators(writer: SavepointEditor, one: Point) -> None:
    writer.remove_operator(OperatorId.of_uid("session"))
    writer.remove_operator("broadcast")


def without_operators(row: Row) -> Iterable[Row]:
    return () if of("session")(row) else (row,)


RENAMED: dict[str, str] = {
    OperatorId.of_uid("by-string"): "by-name",
    OperatorId.of_uid("by-tuple"): "by-pair",
}


def change_identifiers(writer: SavepointEditor, one: Point) -> None:
    for name, uid in RENAMED.items():
        writer.change_operator_identifier(name, uid)


def with_identifiers(row: Row) -> Iterable[Row]:
    uid = RENAMED.get(row.operator)
    yield row if uid is None else row._replace(operator=OperatorId.of_uid(uid))


EXTRA = {
    "counts": ("extraheap-canonical", "count-window"),
    "string-namespace": ("extraheap-canonical", "string-namespace"),
}
# By the version of a point its new operators: their uids, from where, and their old uids.
ADDED = {
    "1.17.2": {
        "others": ("rocks-canonical", "by-string"),
        "minutes": ("rescaled-canonical", "tumbling"),
    },
    "1.20.5": EXTRA,
    "2.3.0": EXTRA,
}


def add_operators(writer: SavepointEditor, one: Point) -> None:
    for uid, (name, old_uid) in ADDED[one.flink].items():
        other = point(f"{one.flink}-{name}")
        writer.add_operator_from(other.read(), old_uid, None if uid == old_uid else uid)


def unchanged(row: Row) -> Iterable[Row]:
    yield row


# --- keys ---------------------------------------------------------------------------------


def pair_of(number: int) -> Any:
    """Return the key that one becomes: of another type, of another key group."""
    return DELETE if number % 3 == 0 else (f"number {number}", number + 2**40)


def at_home(name: str) -> str:
    return f"{name}@home"


def map_keys(writer: SavepointEditor, one: Point) -> None:
    writer.operator("by-int").map_keys(pair_of, TUPLE(STRING, LONG))
    writer.operator("session").map_keys(at_home)


def with_other_keys(row: Row) -> Iterable[Row]:
    if of("by-int")(row):
        key = pair_of(row.key[1])
        if key is not DELETE:
            yield row._replace(key=("tuple", (key[0], ("long", key[1]))))
    elif of("session")(row):
        yield row._replace(key=at_home(row.key))
    else:
        yield row


# --- states -------------------------------------------------------------------------------


def remove_states(writer: SavepointEditor, one: Point) -> None:
    for name in ("byCity", "count", EVENT_TIMERS):
        writer.operator("by-string").remove_state(name)
    for name in ("window-contents", "_timer_state/event_window-timers"):
        writer.operator("tumbling").remove_state(name)
    writer.operator("tumbling").remove_state("_timer_state/processing_window-timers")


def without_states(row: Row) -> Iterable[Row]:
    is_gone = of("by-string", "byCity", "count", EVENT_TIMERS)(row) or of("tumbling")(row)
    return () if is_gone else (row,)


NEW_NAMES = {"count": "total", "ttlMap": "latest", "visits": "Besuche 📈", "mean": "count"}


def rename_states(writer: SavepointEditor, one: Point) -> None:
    operator = writer.operator("by-long")
    for name, new_name in NEW_NAMES.items():
        operator.rename_state(name, new_name)


def with_names(row: Row) -> Iterable[Row]:
    is_renamed = of("by-long", *NEW_NAMES)(row)
    yield row._replace(state=NEW_NAMES[row.state]) if is_renamed else row


def set_ttls(writer: SavepointEditor, one: Point) -> None:
    operator = writer.operator("by-string")
    for name in ("count", "history", "byCity", "sum", "mean", "ttlMap"):
        operator.set_ttl(name, last_access=NOW)
    for name in ("visits", "label"):
        operator.set_ttl(name, has_ttl=False)
    writer.operator("by-int").set_ttl("visits", last_access=NOW)
    writer.operator("by-int").set_ttl("ttlMap", has_ttl=False)


def with_ttls(row: Row) -> Iterable[Row]:
    value = row.value
    if of("by-string", "count", "byCity", "ttlMap", "sum", "mean")(row):
        row = row._replace(last_access=NOW)
    elif of("by-string", "history")(row):
        row = row._replace(value=("list", tuple(("ttl", NOW, one) for one in value[1])))
    elif of("by-int", "visits")(row):
        row = row._replace(value=("list", tuple(("ttl", NOW, one[2]) for one in value[1])))
    elif of("by-string", "visits")(row):
        row = row._replace(value=("list", tuple(one[2] for one in value[1])))
    elif of("by-string", "label")(row) or of("by-int", "ttlMap")(row):
        row = row._replace(last_access=None)
    yield row


# --- entries ------------------------------------------------------------------------------


DOOMED = ("by-long", "by-tuple", "sliding-list", "tumbling")


def is_doomed(row: Row) -> bool:
    """Choose half of the keys by what they are, the same in each point."""
    if of("by-long")(row):
        return bool(row.key[1] % 2 == 0)
    if of("by-tuple")(row):
        return bool(row.key[1][1][1] < 0)
    return any(of(uid)(row) for uid in DOOMED) and sum(map(ord, row.key)) % 2 == 0


def delete_keys(writer: SavepointEditor, one: Point) -> None:
    rows = [Row(*row) for row in true_rows(one)]
    for uid in DOOMED:
        keys: list[Any] = sorted({row.key for row in rows if of(uid)(row) and is_doomed(row)})
        assert keys
        if uid == "by-long":
            keys = [key[1] for key in keys]
        if uid == "by-tuple":
            keys = [(key[1][0], key[1][1][1]) for key in keys]
        writer.operator(uid).delete_keys(keys)


def without_keys(row: Row) -> Iterable[Row]:
    return () if is_doomed(row) else (row,)


def next_value(entry: StateEntry) -> Any:
    """Add one to what is odd, and delete the rest."""
    return entry.value + 1 if entry.value % 2 else DELETE


def copied_city(entry: StateEntry) -> list[StateEntry]:
    """Leave each under its user key, and a copy under another."""
    return [entry, entry._replace(user_key=f"{entry.user_key} once more", value=-1)]


def another_key(entry: StateEntry) -> StateEntry:
    """Give the state of a key to another, mostly of another key group."""
    return entry._replace(key=f"{entry.key} and more")


def doubled(entry: StateEntry) -> list[Any]:
    return [*entry.value, *entry.value]


def map_entries(writer: SavepointEditor, one: Point) -> None:
    operator = writer.operator("by-string")
    operator.map_entries("count", next_value)
    operator.map_entries("byCity", copied_city)
    operator.map_entries("pair", another_key)
    operator.map_entries("label", another_key)
    operator.map_entries("history", doubled)
    writer.operator("by-int").map_entries("sum", lambda entry: entry.value)  # the value stays


def with_entries(row: Row) -> Iterable[Row]:
    if of("by-string", "count")(row):
        odd = row.value[1] % 2
        return (row._replace(value=("long", row.value[1] + 1)),) if odd else ()
    if of("by-string", "byCity")(row):
        again = row._replace(user_key=f"{row.user_key} once more", value=("long", -1))
        return row, again
    if of("by-string", "pair", "label")(row):
        return (row._replace(key=f"{row.key} and more"),)
    if of("by-string", "history")(row):
        return (row._replace(value=("list", row.value[1] * 2)),)
    return (row,)


def all_at_once(writer: SavepointEditor, one: Point) -> None:
    for edit in EDITS:
        edit.do(writer, one)


def with_all(row: Row) -> Iterable[Row]:
    rows = [row]
    for edit in EDITS:
        rows = [new for old in rows for new in edit.expected(old)]
    return rows


# The identifiers change last, as `of` names operators by their old ones.
EDITS = [
    Edit(map_keys, with_other_keys),
    Edit(remove_operators, without_operators),
    Edit(add_operators, unchanged, adds=True),
    Edit(map_entries, with_entries),
    Edit(rename_states, with_names),
    Edit(set_ttls, with_ttls),
    Edit(delete_keys, without_keys),
    Edit(remove_states, without_states),
    Edit(change_identifiers, with_identifiers, RENAMED),
]
ALL = Edit(all_at_once, with_all, RENAMED, adds=True)
QUICK = {("heap-canonical", all_at_once), ("heap-canonical", delete_keys)}


def runs() -> list[Any]:
    """Return point, edit, backend and parallelism; what is not edited has its own format."""
    found = []
    for name in ("heap-canonical", "rocks-canonical", "heap-native"):
        for number, edit in enumerate((*EDITS, ALL)):
            for backend in BACKENDS if "canonical" in name else ["hashmap"]:
                is_quick = (name, edit.do) in QUICK and (backend == "rocksdb") == (edit is ALL)
                marks = [] if is_quick else [pytest.mark.slow]
                one_id = f"{name}-{edit.do.__name__}-{backend}"
                values = (name, edit, backend, 1 + number % 4)
                found.append(pytest.param(*values, marks=marks, id=one_id))
    return found


@pytest.fixture(scope="module")
def table() -> Iterator[RestoreTable]:
    """What the tests here have compared with one Flink; `-rP` shows it with the last of them."""
    found = RestoreTable()
    yield found
    print(found)


def rows_of_added(one: Point) -> Counter[Seen]:
    """Return the entries that Flink had read of operators in other points, with their new ids."""
    found: Counter[Seen] = Counter()
    for uid, (name, old_uid) in ADDED[one.flink].items():
        for row, count in true_rows(point(f"{one.flink}-{name}")).items():
            if of(old_uid)(Row(*row)):
                found[(OperatorId.of_uid(uid), *row[1:])] += count
    return found


@pytest.mark.parametrize(("name", "edit", "backend", "parallelism"), runs())
def test_flink_finds_what_an_edit_leaves(
    restores: FlinkRestores,
    name: str,
    edit: Edit,
    backend: str,
    parallelism: int,
    tmp_path: Path,
    table: RestoreTable,
) -> None:
    one = newest_point(name, restores.version)
    old = one.read()
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "edited") as writer:
        edit.do(writer, one)
    new = read_savepoint(tmp_path / "edited")
    uids_of_added = ADDED[one.flink] if edit.adds else {}
    expected = rows_of_added(one) if edit.adds else Counter()
    for row, count in true_rows(one).items():
        for edited in edit.expected(Row(*row)):
            expected[tuple(edited)] += count
    operators = java_operators(new)
    for task_operator in operators:  # under the uid that the job has from now on
        uids = {OperatorId.of_uid(uid): uid for uid in (*edit.renamed.values(), *uids_of_added)}
        if task_operator["id"] in uids:
            task_operator["uid"] = uids[task_operator["id"]]
    labels = {operator["id"]: operator.get("uid", operator["id"]) for operator in operators}
    target = old.operators[0].max_parallelism
    restored = restores.restore(Task(new.path, operators, backend, parallelism, target, ends=True))
    assert restored.refused is None
    kept = Counter({row: n for row, n in expected.items() if not is_timer(row)})
    fired = Counter({row: n for row, n in expected.items() if is_event_timer(row)})
    ids = {label: operator_id for operator_id, label in labels.items()}
    for way, rows in {"backend": expected, "keyed": kept, "fired": fired}.items():
        found = [row | {"operator": ids[row["operator"]]} for row in restored.found(way)]
        assert Counter(map(row_of, found)) == rows
        assert not list(misplaced(found, target, parallelism))
    own = restored.read()

    def in_own(operator_id: str) -> str:
        label = labels[operator_id]
        return f"at {label}" if label == operator_id else label

    assert content(own, in_own, new) == expected
    olds: dict[str, str] = {OperatorId.of_uid(uid): old_id for old_id, uid in edit.renamed.items()}
    added = set(map(OperatorId.of_uid, uids_of_added))
    for operator in with_state(new):
        operator_id = operator.operator_id
        if operator_id in added:
            continue
        was = old.operator(olds.get(operator_id, operator_id))
        assert operator_state(own.operator(in_own(operator_id))) == operator_state(was)
    states, keys = ({(row[0], row[part]) for row in expected} for part in (1, 3))
    table.add(restores.version, backend, parallelism, len(states), len(keys), expected.total())


def without_times(row: Row) -> Seen:
    """Return an entry as a job sees it, whether it has a time to live or not."""
    value = row.value
    if row.kind == "LIST":
        elements = (element[2] if element[0] == "ttl" else element for element in value[1])
        value = "list", tuple(elements)
    return tuple(row._replace(value=value, last_access=None))


def check_typed(
    cluster: FlinkRestores,
    one: Point,
    new: Savepoint,
    uids: tuple[str, str],
    states: list[State],
    backend: str,
) -> None:
    """Have a job with descriptors of its own find states of an operator: its old and new uid."""
    old_uid, uid = uids
    operators: list[dict[str, Any]] = [
        {"uid": uid, "key": "STRING", "states": [state.java() for state in states]}
    ]
    for operator in with_state(new):
        if operator.operator_id != OperatorId.of_uid(uid):
            operators.append({"id": operator.operator_id})
    restored = cluster.restore(Task(new.path, operators, backend, 2, 128))
    assert restored.refused is None
    rows = (Row(*row) for row in true_rows(one).elements())
    named = of(old_uid, *(state.name for state in states))
    expected = Counter(without_times(row._replace(operator=uid)) for row in rows if named(row))
    assert len({row[1] for row in expected}) == len(states)
    for way in ("backend", "keyed"):
        found = [row for row in restored.found(way) if row["operator"] == uid]
        assert Counter(map(row_of, found)) == expected
    print(f"{cluster.version} {backend}: {expected.total():,} entries of {len(states)} states")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_job_has_the_new_times_to_live(
    restores: FlinkRestores, backend: str, tmp_path: Path
) -> None:
    """The job's own descriptors are restored from what the edit says of the states."""
    states = [
        State("count", "VALUE", LONG, ttl=DAY),
        State("history", "LIST", INT, ttl=DAY),
        State("byCity", "MAP", LONG, STRING, ttl=DAY),
        State("sum", "REDUCING", LONG, ttl=DAY),
        State("ttlMap", "MAP", STRING, INT, ttl=DAY),
        State("visits", "LIST", STRING),
        State("label", "VALUE", STRING),
    ]
    one = newest_point("rocks-canonical", restores.version)
    old = one.read()
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "edited") as writer:
        set_ttls(writer, one)
    new = read_savepoint(tmp_path / "edited")
    check_typed(restores, one, new, ("by-string", "by-string"), states, backend)


@pytest.mark.parametrize(
    "name", ["rocksinc-native", "rocksinc-checkpoint", "rocksresc-checkpoint"]
)
def test_flink_restores_copied_files_of_rocksdb(
    restores: FlinkRestores, name: str, tmp_path: Path
) -> None:
    """What is not edited stays in RocksDB's files, which are copied."""
    if name.startswith("rocksresc") and version_numbers(restores.version) < (1, 20):
        pytest.skip(f"no point {name} of a version that Flink {restores.version} restores")
    states = [
        State("count", "VALUE", LONG),
        State("history", "LIST", INT),
        State("byCity", "MAP", LONG, STRING),
        State("sum", "REDUCING", LONG),
    ]
    one = newest_point(name, restores.version)
    with SavepointWriter.from_existing_savepoint(one.read(), tmp_path / "edited") as writer:
        writer.change_operator_identifier("by-string", "by-name")
    new = read_savepoint(tmp_path / "edited")
    check_typed(restores, one, new, ("by-string", "by-name"), states, "rocksdb")
