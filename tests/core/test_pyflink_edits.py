"""Savepoints of PyFlink jobs edited and written with the job's own keys, types and names."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.bytes.pyflink_points import write_native
from support.bytes.pyflink_states import states_of_each_kind
from support.bytes.real_savepoints import corpus

from keygroups import types as kt
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    DELETE,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorEditor,
    SavepointEditor,
    SavepointWriter,
    TimerServiceDescriptor,
    TtlValue,
    ValueStateDescriptor,
    change_max_parallelism,
    pyflink,
    read_savepoint,
)
from keygroups.savepoint.descriptors import StateDescriptor
from keygroups.types import BIG_DEC, INT, LONG, PYFLINK, STRING

TIME = 1_790_000_000_000
NAMES = ["value", "list", "map", "maplp", "reducing", "aggregating"]


def old(point: str = "2.3.0-states-s1") -> Path:
    return corpus("pyflink") / point / "savepoint"


def job(path: Path, uid: str = "kinds", has_ttl: bool = False) -> Operator:
    return read_savepoint(path).operator(uid).as_pyflink(LONG, states_of_each_kind(has_ttl))


def edited(
    path: Path, tmp_path: Path, uid: str = "kinds"
) -> tuple[SavepointEditor, OperatorEditor]:
    editor = SavepointWriter.from_existing_savepoint(path, tmp_path / "new")
    return editor, editor.operator(uid).as_pyflink(LONG, states_of_each_kind(uid == "ttl"))


def all_of(operator: Operator) -> dict[int, Any]:
    return {key: operator.get(key) for key in range(7) if operator.get(key)}


def headers(operator: Operator) -> list[str]:
    """Return the states as Flink finds them."""
    return sorted(map(str, operator.states))


@pytest.mark.parametrize("uid", ["kinds", "ttl"])
def test_the_format_of_the_hashmap_backend(uid: str, tmp_path: Path) -> None:
    plain = read_savepoint(old()).operator(uid)
    native = write_native(plain, tmp_path / "native")
    has_ttl = uid == "ttl"
    expected, read = job(old(), uid, has_ttl), job(native, uid, has_ttl)
    assert read.states == expected.states
    assert all_of(read) == all_of(expected)
    assert len(all_of(read)) == 5
    for name in NAMES:
        tables = [
            operator.to_arrow(name).select(["key", "value"]).to_pylist()
            for operator in (read, expected)
        ]
        assert tables[0] == tables[1]
    difference = read_savepoint(native).compare(read_savepoint(old()), [uid])
    assert not any(state.changed for state in difference.operators[0].states)
    # A value of two arrays of bytes is none.
    data = (native / "_metadata").read_bytes()
    start = b"\0" + b"\0" + (4).to_bytes(8, "big") + b"\0\0\0\1"
    assert start in data
    (native / "_metadata").write_bytes(data.replace(start, start[:-1] + b"\2"))
    with pytest.raises(Exception, match="a value of 2 arrays of bytes, of which it has one"):
        list(job(native, uid, has_ttl).entries())


@pytest.mark.parametrize("is_native", [False, True])
def test_verbs(is_native: bool, tmp_path: Path) -> None:
    path = old()
    if is_native:
        path = write_native(read_savepoint(path).operator("kinds"), tmp_path / "native")
    before = all_of(job(path))
    editor, operator = edited(path, tmp_path)
    with editor:
        operator.delete_keys([4])
        operator.map_entries("value", lambda entry: entry.value + entry.key)
        operator.map_entries("list", lambda entry: [*entry.value, "é"])
        operator.map_entries(
            "map",
            lambda entry: (
                DELETE if entry.user_key == "m0" else entry._replace(user_key="ñ" + entry.user_key)
            ),
        )
        operator.map_entries("maplp", lambda entry: {"p": entry.value, "none": None})
        operator.map_entries("reducing", lambda entry: entry.value)
        operator.map_entries("aggregating", lambda entry: (1, 2))
    after = all_of(job(tmp_path / "new"))
    assert [*after] == [0, 1, 2, 3]
    for key, held in after.items():
        was = before[key]
        assert held["value"] == was["value"] + key
        assert held["list"] == [*was["list"], "é"]
        assert held["map"] == {"ñm1": 1, "ñm2": 2}
        assert held["maplp"] == {
            user_key: {"p": pair, "none": None} for user_key, pair in was["maplp"].items()
        }
        assert held["reducing"] == was["reducing"]
        assert held["aggregating"] == (1, 2)
    plain = read_savepoint(tmp_path / "new").operator("kinds")
    assert headers(plain) == headers(read_savepoint(path).operator("kinds"))
    [report] = [item for item in editor.report().operators if item.deleted_keys]
    assert report.deleted_keys is not None
    assert report.deleted_keys.without_entries == ()
    assert {state.state: state.changed for state in report.states}["reducing"] == 0


def test_a_wrong_value_is_named(tmp_path: Path) -> None:
    editor, operator = edited(old(), tmp_path)
    operator.map_entries("list", lambda entry: [5])
    with pytest.raises(InvalidTypeError, match="SQL_STRING must be a str, got 5"), editor:
        pass
    editor, operator = edited(old(), tmp_path / "second")
    with pytest.raises(InvalidTypeError, match="must be an int, got 'a'"):
        operator.delete_keys(["a"])
    operator.delete_keys([1])
    with pytest.raises(InvalidValueError, match="as_pyflink must come before other verbs"):
        operator.as_pyflink(LONG, states_of_each_kind())


def test_time_to_live(tmp_path: Path) -> None:
    before = all_of(job(old()))
    editor, operator = edited(old(), tmp_path)
    with editor:
        for name in NAMES:
            operator.set_ttl(name, last_access=TIME)
        operator.rename_state("value", "total")
    plain = read_savepoint(tmp_path / "new").operator("kinds")
    states = {state.name: str(state) for state in plain.states}
    assert states["python-state-total"] == ("python-state-total: LIST <ROW(LONG), BYTES> with TTL")
    assert states["python-state-map"] == (
        "python-state-map: MAP <ROW(LONG), BYTE_ARRAY_WRAPPER, BYTES> with TTL"
    )
    timed = plain.as_pyflink(
        LONG, [ValueStateDescriptor("total", LONG, has_ttl=True), *states_of_each_kind(True)[1:]]
    )
    for key, was in before.items():
        held = timed.get(key)
        assert held["total"] == TtlValue(TIME, was["value"])
        assert held["list"] == [TtlValue(TIME, element) for element in was["list"]]
        assert held["map"] == {k: TtlValue(TIME, v) for k, v in was["map"].items()}
    editor = SavepointWriter.from_existing_savepoint(tmp_path / "new", tmp_path / "third")
    with editor:
        operator = editor.operator("kinds").as_pyflink(
            LONG,
            [ValueStateDescriptor("total", LONG, has_ttl=True), *states_of_each_kind(True)[1:]],
        )
        operator.rename_state("total", "value")
        for name in NAMES:
            operator.set_ttl(name, has_ttl=False)
    assert all_of(job(tmp_path / "third")) == before
    same = read_savepoint(tmp_path / "third").operator("kinds")
    assert headers(same) == headers(read_savepoint(old()).operator("kinds"))


def test_keys_and_another_max_parallelism(tmp_path: Path) -> None:
    before = all_of(job(old()))
    editor, operator = edited(old(), tmp_path)
    with editor:
        operator.map_keys(lambda key: key + 2)
    assert {key - 2: held for key, held in all_of(job(tmp_path / "new")).items()} == before
    editor, operator = edited(old(), tmp_path / "typed")
    with editor:
        operator.map_keys(lambda key: f"user-{key}", PYFLINK(STRING))
    plain = read_savepoint(tmp_path / "typed" / "new").operator("kinds")
    texts = plain.as_pyflink(STRING, states_of_each_kind())
    assert texts.get("user-3") == before[3]
    change_max_parallelism(old(), 720, tmp_path / "rekeyed", operators=["kinds"])
    rekeyed = job(tmp_path / "rekeyed")
    assert rekeyed.max_parallelism == 720
    assert all_of(rekeyed) == before


@pytest.mark.parametrize("has_ttl", [False, True])
def test_new_state(has_ttl: bool, tmp_path: Path) -> None:
    """A savepoint from nothing has the states and the bytes of PyFlink's own."""
    uid = "ttl" if has_ttl else "kinds"
    source = job(old(), uid, has_ttl)
    states = [*states_of_each_kind(has_ttl), TimerServiceDescriptor()]
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator(uid, PYFLINK(LONG), states, 128, 2, sort=True)
        for entry in source.entries(NAMES):
            operator.write(entry.state, entry.key, entry.value, entry.user_key, entry.last_access)
    new = job(tmp_path / "new", uid, has_ttl)
    assert all_of(new) == all_of(source)
    plain = [read_savepoint(path).operator(uid) for path in (tmp_path / "new", old())]
    assert headers(plain[0]) == headers(plain[1])
    for left, right in zip(*map(state_bytes, plain), strict=True):
        assert left == right
    compared = read_savepoint(tmp_path / "new").compare(read_savepoint(old()), [uid])
    changed = {state.state for state in compared.operators[0].states if state.changed}
    assert changed <= {"python-state-list"}  # an array for each element, where PyFlink has one


def state_bytes(operator: Operator) -> list[bytes]:
    """Return the part of the header about each state, by name."""
    task = operator.tasks()[0]
    header = task.format.headers()[0]
    named = sorted(zip([state.name for state in header.states], header.state_bytes))
    return [header.key_bytes, *(data for _, data in named)]


def test_new_state_by_tables(tmp_path: Path) -> None:
    source = job(old())
    with SavepointWriter(tmp_path / "new") as writer:
        states = states_of_each_kind()
        operator = writer.add_operator("kinds", PYFLINK(LONG), states, 128, 2, sort=True)
        for name in NAMES:
            if name != "maplp":  # Arrow has it as text.
                operator.write_table(name, source.to_arrow(name))
    new = job(tmp_path / "new")
    for key in range(5):
        expected = source.get(key)
        del expected["maplp"]
        assert new.get(key) == expected


def test_keys_to_write(tmp_path: Path) -> None:
    day = date(2024, 2, 29)
    key_type = PYFLINK(kt.TUPLE(STRING, kt.SQL_DATE("UTC")))
    states = [ValueStateDescriptor("n", pyflink.ROW(STRING, pyflink.SQL_DATE))]
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator("a", key_type, states, 128, 2)
        operator.write("n", ("a", day), (None, day))
        operator = writer.add_operator("b", PYFLINK(kt.SQL_DATE("UTC")), states, 128, 2)
        operator.write("n", day, ("b", None))
    whole = read_savepoint(tmp_path / "new")
    read = whole.operator("a").as_pyflink(key_type.element, states)
    assert str(whole.operator("a").states[0]) == (
        "python-state-n: LIST <ROW(TUPLE(STRING, SQL_DATE)), BYTES>"
    )
    assert read.get(("a", day), "n") == (None, day)
    assert read.to_arrow("n").to_pylist()[0]["key"] == {"f0": "a", "f1": day}
    by_day = whole.operator("b").as_pyflink(kt.SQL_DATE("UTC"), states)
    assert by_day.get(day, "n") == ("b", None)
    assert "no fault" in repr(whole.verify())


REFUSED: list[tuple[Any, Any, type[Exception], str]] = [
    ("LONG", [], InvalidTypeError, "key_type must be a key type such as LONG, .* or PICKLED, got"),
    (pyflink.PICKLED, [], InvalidTypeError, r"which are ROW\(LONG\), got PICKLED"),
    (INT, [], InvalidTypeError, r"which are ROW\(LONG\), got INT"),
    (kt.SQL_ROW("BIGINT"), [], InvalidTypeError, "key_type must be that of the operator's keys"),
    (kt.UUID, [], UnsupportedKeyTypeError, "PYFLINK cannot hold UUID"),
    (LONG, ["value"], InvalidTypeError, "states must be descriptors such as .*, got 'value'"),
    (LONG, [ValueStateDescriptor("n", LONG)], InvalidValueError, "of kinds, .*value.*got 'n'"),
    (LONG, [ValueStateDescriptor("value", LONG)] * 2, InvalidValueError, "differ in name"),
    (
        LONG,
        [ValueStateDescriptor("map", LONG)],
        InvalidValueError,
        "state 'map' must be of the kind that the savepoint has, in which it is a MAP, got a VAL",
    ),
    (
        LONG,
        [MapStateDescriptor("value", LONG, LONG)],
        InvalidValueError,
        "in which it is a LIST, got a MAP",
    ),
    (
        LONG,
        [ValueStateDescriptor("value", LONG, has_ttl=True)],
        InvalidValueError,
        "has_ttl of state 'value' must be False, as in the savepoint, got True",
    ),
    (
        LONG,
        [ValueStateDescriptor("value", kt.SET(LONG))],
        UnsupportedKeyTypeError,
        r"value_type SET\(LONG\) is no type of PyFlink's state",
    ),
]


@pytest.mark.parametrize(("key_type", "states", "error", "message"), REFUSED)
def test_wrong_declarations(
    key_type: Any, states: Any, error: type[Exception], message: str
) -> None:
    operator = read_savepoint(old()).operator("kinds")
    with pytest.raises(error, match=message):
        operator.as_pyflink(key_type, states)


WRONG_TYPES: list[tuple[Any, str]] = [
    (
        ValueStateDescriptor("value", INT),
        "VALUE <PYFLINK.*: 4 of 8 bytes are a INT, if it is declared as in ",
    ),
    (ListStateDescriptor("list", LONG), "LIST <.*: [0-9]+ bytes are too few for a LONG"),
    (
        MapStateDescriptor("map", LONG, LONG),
        "MAP <.*: 6 bytes are too few for a LONG, if it is declared",
    ),
    (MapStateDescriptor("map", STRING, STRING), "MAP <.*: 4 of 8 bytes are a SQL_STRING"),
    (ValueStateDescriptor("value", BIG_DEC), "VALUE <.*no text of a Decimal, if it is declared"),
    (ValueStateDescriptor("value", pyflink.LIST(STRING)), "VALUE <.*: 4 of 8 bytes are a ARRAY"),
]


@pytest.mark.parametrize(("state", "message"), WRONG_TYPES)
def test_types_that_the_bytes_do_not_have(state: Any, message: str) -> None:
    operator = read_savepoint(old()).operator("kinds").as_pyflink(LONG, [state])
    match = f"_metadata .*offset [0-9]+: no entry of {state.name}: {message}"
    with pytest.raises(Exception, match=match):
        list(operator.entries([state.name]))


def test_declarations_of_thread_mode(tmp_path: Path) -> None:
    path = old("1.20.5-states-thread")
    operator = read_savepoint(path).operator("kinds")
    with pytest.raises(InvalidTypeError, match=r"'value' must be .* LONG, got SQL_ST"):
        operator.as_pyflink(LONG, [ValueStateDescriptor("value", STRING)])
    with pytest.raises(InvalidValueError, match="it is a VALUE, got a LIST"):
        operator.as_pyflink(LONG, [ListStateDescriptor("value", LONG)])
    with pytest.raises(InvalidTypeError, match=r"which has LONG, got SQL_STRING"):
        operator.as_pyflink(LONG, [MapStateDescriptor("map", STRING, STRING)])
    editor, edits = edited(path, tmp_path)
    with editor:
        edits.map_entries("maplp", lambda entry: entry.value[::-1])
        edits.map_entries("map", lambda entry: entry.value + 1)
        edits.delete_keys([0])
    new = job(tmp_path / "new")
    assert new.get(0) == {}
    assert new.get(1)["maplp"] == {n: (n, "p") for n in range(4)}
    assert new.get(1)["map"] == {"m0": 4, "m1": 2, "m2": 3}


def test_an_operator_that_is_declared_anew() -> None:
    first = read_savepoint(old()).operator("kinds").as_pyflink(LONG, states_of_each_kind()[:1])
    second = first.as_pyflink(LONG, states_of_each_kind())
    assert second == job(old())
    assert second != first
    assert {state.name for state in first.states if state.is_python} == {"value"}
    undeclared = next(state for state in first.states if state.name == "python-state-list")
    assert isinstance(undeclared, StateDescriptor)
    assert not undeclared.is_python


def test_a_savepoint_as_its_job_has_it(tmp_path: Path) -> None:
    """Comparing and editing take it; a list is the same however PyFlink has cut it."""
    declared = {"kinds": (LONG, states_of_each_kind()), "ttl": (LONG, states_of_each_kind(True))}
    before = read_savepoint(old()).as_pyflink(declared)
    with SavepointWriter.from_existing_savepoint(before, tmp_path / "new") as editor:
        operator = editor.operator("kinds")
        operator.map_entries("value", lambda entry: entry.value + (entry.key == 3))
        operator.map_entries("list", lambda entry: [*entry.value, "x"])
        editor.operator("ttl").set_ttl("list", last_access=TIME)
    middle = read_savepoint(tmp_path / "new").as_pyflink(declared)
    shown = [str(difference) for difference in before.differences(middle, ["kinds"], ["value"])]
    assert shown == ["key 3: 6 -> 7"]
    touched = before.compare(middle, ["ttl"], ["list"]).operators[0].states[0]
    assert (touched.touched, touched.changed) == (5, 0)
    with SavepointWriter.from_existing_savepoint(middle, tmp_path / "third") as editor:
        editor.operator("kinds").map_entries("list", lambda entry: entry.value[:-1])
    after = read_savepoint(tmp_path / "third").as_pyflink(declared)
    lists = before.compare(after, ["kinds"], ["list"]).operators[0].states[0]
    assert (lists.equal, lists.changed) == (5, 0)
    plain = read_savepoint(old()).compare(read_savepoint(tmp_path / "third"), ["kinds"])
    cut = {state.state: state.changed for state in plain.operators[0].states}
    assert cut["python-state-list"] == 5
    states = [ListStateDescriptor("list", pyflink.LIST(kt.BYTE))]
    other = read_savepoint(old()).as_pyflink({"kinds": (LONG, states)})
    with pytest.raises(SavepointError, match="no entry of list: LIST"):
        before.compare(other, ["kinds"], ["list"])
    assert "no fault" in repr(before.verify(["kinds", "ttl"]))


def test_declared_operators_that_are_none() -> None:
    savepoint = read_savepoint(old())
    with pytest.raises(InvalidTypeError, match=r"declared must map operators to .*, got 5"):
        savepoint.as_pyflink(5)  # type: ignore[arg-type]  # A user may do so.
    wrong: list[Any] = [LONG, (LONG,), (LONG, [], [])]
    for job in wrong:
        with pytest.raises(InvalidTypeError, match="have a key type and descriptors for 'kinds'"):
            savepoint.as_pyflink({"kinds": job})
    with pytest.raises(InvalidValueError, match=r"operator must be .*, got 'no'"):
        savepoint.as_pyflink({"no": (LONG, [])})
    with pytest.raises(InvalidTypeError, match=r"^operator must be a str, got 5"):
        savepoint.as_pyflink({5: (LONG, [])})  # type: ignore[dict-item]  # A user may do so.
