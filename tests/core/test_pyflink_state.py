"""State of PyFlink's jobs as these declare it: what real ones wrote, in both modes.

The savepoints are in `tests/vectors/pyflink.tar.xz`, each with what its job says that it wrote.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import corpus
from support.bytes.real_savepoints import point as real_point
from support.inside.values import to_instant

from keygroups import types as kt
from keygroups.errors import InvalidValueError, SavepointError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    ReducingStateDescriptor,
    Row,
    Savepoint,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    html_report,
    operator_reports,
    pyflink,
    read_savepoint,
)
from keygroups.savepoint.values import Instant
from keygroups.types import BIG_DEC, BIG_INT, DOUBLE, INSTANT, INT, LONG, STRING

PROCESS, THREAD = "2.3.0-states-s1", "1.20.5-states-thread"
KEYS, KEYS_OF_THREADS = "2.3.0-keys-mp128", "1.20.5-keys-thread-mp1000"
UDAF = "2.3.0-sql-udaf-hashmap-wrong-keys"
PICKLED_KEYS = "2.3.0-pickled-memo"

TYPES: dict[str, Any] = {
    "boolean": kt.BOOLEAN,
    "byte": kt.BYTE,
    "short": kt.SHORT,
    "int": INT,
    "long": LONG,
    "float": kt.FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "char": kt.CHAR,
    "bigint": BIG_INT,
    "bigdec": BIG_DEC,
    "sqldate": pyflink.SQL_DATE,
    "sqltime": pyflink.SQL_TIME,
    "sqlts": pyflink.SQL_TIMESTAMP,
    "instant": INSTANT,
    "pickled": pyflink.PICKLED,
    "bytes": pyflink.PRIMITIVE_ARRAY(kt.BYTE),
    "ints": pyflink.PRIMITIVE_ARRAY(INT),
    "strings": pyflink.LIST(STRING),
    "objs": pyflink.LIST(STRING),
    "list": kt.LIST(LONG),
    "liststr": kt.LIST(STRING),
    "map": kt.MAP(STRING, LONG),
    "tuple": kt.TUPLE(STRING, LONG),
    "row": kt.ROW(STRING, LONG),
    "rownamed": pyflink.ROW(STRING, LONG, names=["s", "n"]),
    "nested": pyflink.TUPLE(
        pyflink.LIST(pyflink.TUPLE(STRING, DOUBLE)), pyflink.MAP(LONG, kt.ROW(INT, STRING))
    ),
}
KEY_TYPES: dict[str, Any] = {
    **{name: getattr(kt, name) for name in ("BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT")},
    **{name: getattr(kt, name) for name in ("DOUBLE", "STRING", "BIG_DEC", "INSTANT")},
    **{name: getattr(kt, name)("UTC") for name in ("SQL_DATE", "SQL_TIME", "SQL_TIMESTAMP")},
    "TUPLE": kt.TUPLE(STRING, INT),
    "NESTED": kt.TUPLE(kt.TUPLE(STRING, LONG), DOUBLE),
    "ROW": kt.ROW(STRING, INT),
    "ROW_NAMED": kt.ROW(STRING, LONG),
    "LIST": kt.LIST(LONG),
    "LIST_STR": kt.LIST(STRING),
    "MAP": kt.MAP(STRING, LONG),
    "PICKLED": pyflink.PICKLED,
}


@lru_cache
def truth(name: str) -> dict[str, Any]:
    text = (corpus("pyflink") / name / "truth.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def savepoint(name: str) -> Savepoint:
    return read_savepoint(corpus("pyflink") / name / "savepoint")


def plain(value: Any) -> Any:
    """Return a value in the form of the truth."""
    if isinstance(value, Row):
        names = [*value.names] or None
        return {"row": [*map(plain, value)], "names": names, "kind": value.row_kind}
    if isinstance(value, dict):
        return {"dict": [[plain(key), plain(held)] for key, held in value.items()]}
    if isinstance(value, Instant):
        return {"instant": [*value]}
    if isinstance(value, tuple):
        return {"tuple": [*map(plain, value)]}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, (datetime, time)):
        return {type(value).__name__: value.isoformat(timespec="microseconds").replace("T", " ")}
    if isinstance(value, (Decimal, date)):
        return {type(value).__name__: str(value)}
    return [*map(plain, value)] if hasattr(value, "__iter__") and type(value) is not str else value


def kinds(point: str, uid: str = "kinds", has_ttl: bool = False) -> Operator:
    states = [
        ValueStateDescriptor("value", LONG, has_ttl=has_ttl),
        ListStateDescriptor("list", STRING, has_ttl=has_ttl),
        MapStateDescriptor("map", STRING, LONG, has_ttl=has_ttl),
        MapStateDescriptor("maplp", LONG, pyflink.PICKLED, has_ttl=has_ttl),
        ReducingStateDescriptor("reducing", LONG, has_ttl=has_ttl),
        AggregatingStateDescriptor("aggregating", pyflink.TUPLE(LONG, LONG), has_ttl=has_ttl),
    ]
    return savepoint(point).operator(uid).as_pyflink(LONG, states)


def last_seen(point: str, operator: str) -> dict[int, Any]:
    """Return the values that the job saw of each key when its last element came."""
    return {line[1]: line[2:] for line in truth(point)["seen"] if line[0] == operator}


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize(("point", "count"), [(PROCESS, 135), (THREAD, 75)])
def test_values_of_every_type(point: str, count: int) -> None:
    """Of thread mode those that PyFlink itself wrote: its errors are in the truth."""
    written, seen = truth(point)["types"], last_seen(point, "types")
    states = [ValueStateDescriptor(f"v-{name}", TYPES[name]) for name in written]
    operator = savepoint(point).operator("types").as_pyflink(LONG, states)
    assert {state.name for state in states} < {state.name for state in operator.states}
    read = 0
    for name, values in written.items():
        for key, value in enumerate(values):
            held = operator.get(key, f"v-{name}")
            if seen[key][0][name] is None:
                assert plain(held) == value, name
                read += 1
            else:
                assert held is None
    assert read == count


@pytest.mark.parametrize("has_ttl", [False, True])
@pytest.mark.parametrize("point", [PROCESS, THREAD])
def test_states_of_every_kind(point: str, has_ttl: bool) -> None:
    uid = "ttl" if has_ttl else "kinds"
    operator = kinds(point, uid, has_ttl)
    times = set()

    def value(held: Any) -> Any:
        if not has_ttl:
            return held
        times.add(held.last_access)
        return held.value

    seen = last_seen(point, uid)
    assert len(seen) == 5
    for key, (before, number) in seen.items():
        assert number == 3  # the last element, which the job then added to all of them
        held = operator.get(key)
        assert value(held["value"]) == before["value"] + 3
        assert [*map(value, held["list"])] == [*before["list"], "n3"]
        assert {k: value(v) for k, v in held["map"].items()} == {**before["map"], "m0": 3}
        pairs = {int(k): tuple(v) for k, v in before["maplp"].items()}
        assert {k: value(v) for k, v in held["maplp"].items()} == {**pairs, 3: ("p", 3)}
        assert value(held["reducing"]) == before["reducing"] + 3
        total, count = value(held["aggregating"])
        assert (total - 3) / (count - 1) == before["aggregating"]
    assert all(1_790_000_000_000 < time < 1_800_000_000_000 for time in times)
    assert bool(times) == has_ttl


@pytest.mark.parametrize("point", [PROCESS, THREAD])
def test_both_streams_of_a_connected_one(point: str) -> None:
    states = [ValueStateDescriptor("left", LONG), MapStateDescriptor("right", STRING, DOUBLE)]
    operator = savepoint(point).operator("co").as_pyflink(LONG, states)
    seen = {**last_seen(point, "co1"), **last_seen(point, "co2")}
    for key in seen:
        held = operator.get(key)
        assert held["left"] == 6
        assert held["right"] == {"r0": 0.0, "r1": 0.5, "r2": 1.0, "r3": 1.5}


def test_timers_and_windows_of_the_job() -> None:
    timers = (
        savepoint(PROCESS)
        .operator("timers")
        .as_pyflink(LONG, [ValueStateDescriptor("n", LONG), TimerServiceDescriptor()])
    )
    for key, [before] in last_seen(PROCESS, "timers").items():
        held = timers.get(key)
        assert held["n"] == before + 1 == 4
        fires = [10_004_000 - 1000 * (4 - key) + n for n in range(4)]
        assert held["_timer_state/event_user-timers"][0] in (fires[0], 10_000_000 + 1000 * key)
    element = pyflink.TUPLE(STRING, LONG, LONG)
    for uid, sizes in (("tumble", {4}), ("session", {4}), ("count", {3, 1})):
        states = [ListStateDescriptor("window-contents", element)]
        windows = savepoint(PROCESS).operator(uid).as_pyflink(LONG, states)
        for key in range(5):
            by_window = windows.get(key, "window-contents")
            assert {len(held) for held in by_window.values()} == sizes
            numbers = [row[2] for held in by_window.values() for row in held]
            assert sorted(numbers) == [0, 1, 2, 3]
            assert all(row[:2] == (uid, key) for held in by_window.values() for row in held)
    window = pyflink.TUPLE(LONG, LONG)
    merging = MapStateDescriptor("merging-window-set", window, window)
    sessions = savepoint(PROCESS).operator("session").as_pyflink(LONG, [merging])
    for key in range(5):
        assert sessions.get(key, "merging-window-set") == {(0, 103_000): (0, 100_000)}


def test_broadcast_state() -> None:
    states = [
        ValueStateDescriptor("n", LONG),
        MapStateDescriptor("rules", STRING, LONG),
        MapStateDescriptor("rules2", LONG, pyflink.PICKLED),
    ]
    operator = savepoint(PROCESS).operator("bc").as_pyflink(LONG, states)
    entries = [*operator.operator_state()]
    assert {entry.state for entry in entries} == {"rules", "rules2"}
    for entry in entries:
        if entry.state == "rules":
            assert entry.elements == {f"rule{n}": 10 + n for n in range(3)}
        else:
            assert entry.elements == {n: {"v": 10 + n} for n in range(3)}
    assert [key for line in truth(PROCESS)["seen"] if line[0] == "bcb" for key in line[2:]]
    assert len([*operator.operator_state(["rules"])]) == 2
    with pytest.raises(InvalidValueError, match="has rules2, rules, got 'python-state-rules'"):
        operator.operator_state(["python-state-rules"])
    wrong = [MapStateDescriptor("rules", STRING, INT)]
    operator = savepoint(PROCESS).operator("bc").as_pyflink(LONG, wrong)
    with pytest.raises(SavepointError, match="no entry of broadcast state 'rules'"):
        [*operator.operator_state(["rules"])]


@pytest.mark.parametrize("point", [KEYS, KEYS_OF_THREADS])
def test_keys_of_every_type(point: str) -> None:
    """Each is in the subtask that the job says, and is what the job saw."""
    seen = {(line[0], line[1]): line[2:] for line in truth(point)["seen"]}
    whole, read = savepoint(point), 0
    for name, key_type in KEY_TYPES.items():
        if not any(of_type == name for of_type, _ in seen):
            continue  # thread mode has fewer
        states = [ValueStateDescriptor("cnt", LONG)]
        operator = whole.operator(f"by-{name}").as_pyflink(key_type, states)
        for entry in operator.entries(["cnt"]):
            subtask, shown = seen[name, entry.value - 1000]
            assert entry.subtask == subtask
            if name == "BIG_DEC":  # 1 and 1.0 are one key in PyFlink
                assert entry.key == Decimal(shown[9:-2])
            elif (name, entry.value) == ("SQL_TIMESTAMP", 1005):
                # PyFlink reads one before 1970 with a fraction a second earlier than is stored.
                assert entry.key == datetime(1969, 12, 23, 2, 12, 17, 999_000)
                assert shown == "datetime.datetime(1969, 12, 23, 2, 12, 16, 999000)"
            else:
                is_pickled = name == "PICKLED"
                own = repr(entry.key) if is_pickled else of_job(entry.key)
                assert own == (shown if is_pickled else re.sub("f[01]=|[za]=", "", shown))
            read += 1
            if not isinstance(key_type, kt.MAP):
                assert operator.get(entry.key, "cnt") == entry.value
    assert read == {KEYS: 208, KEYS_OF_THREADS: 126}[point]


@pytest.mark.parametrize("name", ["PK_MEMO", "PK_UUID"])
def test_pickled_keys_that_have_several_pickles(name: str) -> None:
    """Such a key is the bytes of its pickle, by which it is found; equal ones are two keys."""
    seen = {line[1]: line[2:] for line in truth(PICKLED_KEYS)["seen"] if line[0] == name}
    states = [ValueStateDescriptor("cnt", LONG)]
    operator = savepoint(PICKLED_KEYS).operator(f"by-{name}").as_pyflink(pyflink.PICKLED, states)
    assert "cnt: VALUE <PYFLINK(PICKLED_KEY), LONG>" in map(str, operator.states)
    keys = []
    for entry in operator.entries(["cnt"]):
        subtask, shown = seen[entry.value - 1000]
        assert entry.subtask == subtask
        assert operator.get(entry.key, "cnt") == entry.value
        keys.append(entry.key)
        if not isinstance(entry.key, pyflink.Pickle):
            assert repr(entry.key) == shown
    assert Counter(type(key).__name__ for key in keys) == (
        {"Pickle": 10} if name == "PK_MEMO" else {"Pickle": 4, "int": 1, "float": 1, "bool": 1}
    )
    assert len({*map(repr, keys)}) == len(keys)
    verified = savepoint(PICKLED_KEYS).as_pyflink({f"by-{name}": (pyflink.PICKLED, states)})
    assert "no fault" in repr(verified.verify([f"by-{name}"]))
    with pytest.raises(UnsupportedKeyTypeError, match="has other pickles too, by 'zz zz1'"):
        operator.get(("zz zz1", "zz zz1"), "cnt")


def test_edits_of_pickled_keys(tmp_path: Path) -> None:
    """Keys that are equal in Python, 1 and 1.0 and True, are three of PyFlink's."""
    path = corpus("pyflink") / PICKLED_KEYS / "savepoint"
    states = [ValueStateDescriptor("cnt", LONG)]
    with SavepointWriter.from_existing_savepoint(path, tmp_path / "new") as editor:
        operator = editor.operator("by-PK_UUID").as_pyflink(pyflink.PICKLED, states)
        operator.delete_keys([1.0])
        operator.map_keys(lambda key: ("moved", key) if key is True else key)
    new = read_savepoint(tmp_path / "new").operator("by-PK_UUID")
    edited = new.as_pyflink(pyflink.PICKLED, states)
    assert edited.get(1, "cnt") == 1005
    assert edited.get(("moved", True), "cnt") == 1006
    assert edited.get(1.0, "cnt") is None
    assert edited.get(True, "cnt") is None
    assert "no fault" in repr(read_savepoint(tmp_path / "new").verify())


def of_job(key: Any) -> str:
    """Return the text of a key as the job prints it."""
    if isinstance(key, Row):
        return f"Row({', '.join(map(repr, key))})"
    if isinstance(key, Instant) or getattr(key, "tzinfo", None) is not None:
        return f"Instant<{', '.join(map(str, to_instant('key', key)))}>"
    return repr(key)


def test_reports_say_how_values_are_read() -> None:
    advice = "PyFlink: give the job's descriptors, `as_pyflink`"
    whole = savepoint(PROCESS)
    declared = whole.as_pyflink(
        {
            "co": (
                LONG,
                [ValueStateDescriptor("left", LONG), MapStateDescriptor("right", STRING, DOUBLE)],
            )
        }
    )
    for read, is_advised in ((whole, True), (declared, False)):
        [report] = operator_reports(read, ["co"])
        for text in (str(report), report._repr_html_(), html_report(read, ["co"])):
            assert (
                advice.replace("'", "") in text.replace("&#x27;", "").replace("'", "")
            ) == is_advised
    [report] = operator_reports(savepoint(THREAD), ["co"])
    assert "PyFlink" not in str(report)


def test_a_changelog() -> None:
    """It has states of its own in bytes, whose types no declaration replaces."""
    operator = real_point("2.3.0-plain-rocksdb-changelog-checkpoint").read().operator("counter")
    with pytest.raises(UnsupportedKeyTypeError, match="operator 'counter' has a changelog, whose"):
        operator.as_pyflink(LONG, [ValueStateDescriptor("count", LONG)])
