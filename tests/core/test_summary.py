"""Savepoint.summary: its numbers are those of the entries, read one by one; growth of several."""

from __future__ import annotations

import json
import pickle
import sys
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import POINTS, point
from support.inside.answers import date_text
from support.inside.columns import entry_columns
from support.inside.savepoints import summarized
from support.inside.values import exact_repr

from keygroups import assign_to_key_group
from keygroups.cli import main
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint import (
    KafkaOffsets,
    KeySize,
    ListStateDescriptor,
    MapStateDescriptor,
    Savepoint,
    SavepointGrowth,
    SavepointSummary,
    SavepointWriter,
    StateEntry,
    StateSummary,
    TimerServiceDescriptor,
    TtlValue,
    ValueStateDescriptor,
    html_report,
    read_savepoint,
)
from keygroups.savepoint._summary import tally as tallies
from keygroups.types import DOUBLE, LIST, LONG, STRING, TUPLE, KeyType

AT = datetime(2026, 11, 21, 20, tzinfo=timezone.utc)
MILLIS = int(AT.timestamp()) * 1000
HOUR, DAY = 3_600_000, 86_400_000
NEVER = 2**63 - 1
TOP = 3
# Each format, kinds of state, TTL, timers, windows, and keys of Python alone and of SQL.
READ = {
    *("2.3.0-heap-canonical", "2.3.0-heap-native", "2.3.0-rocksinc-checkpoint"),
    *("2.3.0-changelog-checkpoint", "2.3.0-pojo-canonical", "2.3.0-rowkey-native"),
    *("2.3.0-heaptimers-checkpoint", "1.20.5-sqlagg-rocksdb-checkpoint"),
    *("2.3.0-win-rocksdb-canonical", "2.3.0-keys-hashmap-canonical"),
    *("2.3.0-merged-checkpoint", "2.3.0-sqltjoin-hashmap-native"),  # and a map without entries
}
FOLDER = Path(__file__).parents[2] / "examples" / "data" / "savepoint"


def counted(entries: list[StateEntry]) -> tuple[Any, ...]:
    """Return the counts of a state, its heaviest keys, last accesses and timers."""
    keys: dict[Any, list[Any]] = {}
    for entry in entries:
        size = keys.setdefault((entry.key_group, exact_repr(entry.key)), [entry, 0, 0])
        size[1] += 1
        size[2] += entry.bytes
    heaviest = sorted(keys.values(), key=lambda size: (-size[2], size[0].key_group))[:TOP]
    elements, times = None, [entry.last_access for entry in entries]
    if entries[0].kind == "MAP":
        elements = len(entries)
    if entries[0].kind == "LIST":
        elements = sum(len(entry.value) for entry in entries)
        held = [element for entry in entries for element in entry.value]
        times = [element.last_access for element in held if type(element) is TtlValue]
    sizes = [
        KeySize(first.key, first.key_group, first.subtask, count, size)
        for first, count, size in heaviest
    ]
    counts = (len(entries), elements, len(keys), sum(entry.bytes for entry in entries))
    known = sorted(time for time in times if time is not None)
    return counts, sizes, known, sorted(entry.timestamp or 0 for entry in entries)


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(READ))
def test_numbers_are_those_of_the_entries(name: str) -> None:
    [real] = [real for real in [*POINTS, *JOB_POINTS] if real.name == name]
    savepoint = real.read()
    summary = savepoint.summary(top=TOP, at=AT)
    for summed in summary.operators:
        by_state = defaultdict(list)
        for entry in savepoint.operator(summed.operator_id).entries():
            by_state[entry.state].append(entry)
        assert {state.state for state in summed.states} >= by_state.keys()
        for state in summed.states:
            counts = (state.entries, state.elements, state.keys, state.bytes)
            assert state.unread is None
            if state.state not in by_state:
                assert (state.entries, state.keys, state.bytes) == (0, 0, 0)
                continue
            expected, heaviest, accesses, timers = counted(by_state[state.state])
            assert counts == expected
            assert [*state.heaviest_keys] == heaviest
            for times, all_times in [
                (state.last_access, accesses),
                (state.timers, timers if state.kind == "PRIORITY_QUEUE" else []),
            ]:
                assert (times is None) == (not all_times)
                if times is not None:
                    assert times[:2] == (all_times[0], all_times[-1])
                    assert sum(count for _, count in times.counts) == len(all_times)
        if summed.key_group_bytes is not None:
            sizes = sum(state.bytes or 0 for state in summed.states)
            assert summed.key_group_bytes.total == sizes


def written(folder: Path, states: list[Any], rows: Any, key_type: Any = STRING) -> Savepoint:
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator("by-user", key_type, states, 128, parallelism=1, sort=True)
        for state, key, value, *more in rows:
            operator.write(state, key, value, *more)
    return read_savepoint(folder)


def state_of(savepoint: Savepoint, **arguments: Any) -> StateSummary:
    [operator] = savepoint.summary(**arguments).operators
    [state] = operator.states
    return state


AGES = [
    ("within an hour", [MILLIS + 5, MILLIS, MILLIS - HOUR]),
    ("within a day", [MILLIS - HOUR - 1, MILLIS - DAY]),
    ("within 7 days", [MILLIS - DAY - 1, MILLIS - 7 * DAY]),
    ("within 30 days", [MILLIS - 7 * DAY - 1, MILLIS - 30 * DAY]),
    ("within a year", [MILLIS - 30 * DAY - 1, MILLIS - 365 * DAY]),
    ("older", [MILLIS - 365 * DAY - 1, 0]),
]
WAITS = [
    ("due", [-5, MILLIS]),
    ("within an hour", [MILLIS + 1, MILLIS + HOUR]),
    ("within a day", [MILLIS + HOUR + 1, MILLIS + DAY]),
    ("within 7 days", [MILLIS + DAY + 1, MILLIS + 7 * DAY]),
    ("later", [MILLIS + 7 * DAY + 1, NEVER - 1]),
    ("never", [NEVER]),
]


@pytest.mark.parametrize(("name", "times"), AGES)
def test_ages(tmp_path: Path, name: str, times: list[int]) -> None:
    states = [ValueStateDescriptor("count", LONG, has_ttl=True)]
    with SavepointWriter(tmp_path / "s") as writer:
        operator = writer.add_operator(
            *("by-user", LONG, states, 128, 1), sort=True, allow_any_last_access=True
        )
        for key, time in enumerate(times):
            operator.write("count", key, 1, last_access=time)
    state = state_of(read_savepoint(tmp_path / "s"), at=AT)
    assert state.last_access is not None
    assert state.last_access[:2] == (min(times), max(times))
    assert dict(state.last_access.counts) == {**dict.fromkeys(dict(AGES), 0), name: len(times)}
    assert [age for age, _ in state.last_access.counts] == [age for age, _ in AGES]


def timers(folder: Path, times: list[int]) -> Savepoint:
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator("t", LONG, [TimerServiceDescriptor()], 128, 1, sort=True)
        for time in times:
            operator.write_timer(7, time)
    return read_savepoint(folder)


@pytest.mark.parametrize(("name", "times"), WAITS)
def test_waits_of_timers(tmp_path: Path, name: str, times: list[int]) -> None:
    [operator] = timers(tmp_path / "s", times).summary(at=AT).operators
    [counts] = [state.timers for state in operator.states if state.timers]
    assert dict(counts.counts) == {**dict.fromkeys(dict(WAITS), 0), name: len(times)}
    assert [wait for wait, _ in counts.counts] == [wait for wait, _ in WAITS]
    firing = [time for time in times if time < NEVER]
    assert counts[:2] == ((min(firing), max(firing)) if firing else (None, None))


def test_states_without_an_entry(tmp_path: Path) -> None:
    """Lists and maps have no element then; other kinds have none ever."""
    states = [
        *(ValueStateDescriptor("value", LONG), ListStateDescriptor("list", LONG)),
        *(MapStateDescriptor("map", LONG, LONG), ValueStateDescriptor("other", LONG)),
    ]
    with SavepointWriter(tmp_path / "s") as writer:
        writer.add_operator("by", LONG, states, 128, 1).write("other", 1, 1)
    [operator] = read_savepoint(tmp_path / "s").summary().operators
    shown = {state.state: (state.entries, state.elements, state.keys) for state in operator.states}
    assert [shown[name] for name in ("value", "list", "map")] == [
        *((0, None, 0), (0, 0, 0), (0, 0, 0)),
    ]
    assert [state.bytes for state in operator.states if state.state != "other"] == [0, 0, 0]


def test_the_wait_is_counted_from_now(tmp_path: Path) -> None:
    tomorrow = datetime.now(timezone.utc) + timedelta(hours=23)
    summary = timers(tmp_path / "s", [int(tomorrow.timestamp() * 1000)]).summary()
    [counts] = [state.timers for state in summary.operators[0].states if state.timers]
    assert dict(counts.counts)["within a day"] == 1


@pytest.mark.parametrize("held", [4, 1 << 16])
def test_a_key_whose_entries_stand_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(tallies, "_HELD", held)
    keys = [0.0, -0.0, float("nan"), *map(float, range(2, 20))]
    rows = [("m", key, (1, user)) for user in range(3) for key in keys]
    with SavepointWriter(tmp_path / "s") as writer:
        operator = writer.add_operator("m", DOUBLE, [MapStateDescriptor("m", LONG, LONG)], 1, 1)
        for _, key, value in rows:
            operator.write("m", key, *value)
    state = state_of(read_savepoint(tmp_path / "s"), top=30)
    assert (state.keys, state.entries, state.elements) == (len(keys), len(rows), len(rows))
    assert {repr(size.key): size.entries for size in state.heaviest_keys} == {
        repr(key): 3 for key in keys
    }


def test_a_key_of_more_entries_than_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one key, although a key group before it is whole."""
    monkeypatch.setattr(tallies, "_HELD", 4)
    monkeypatch.setattr(entry_columns, "ROWS", 8)
    first, second = 1, next(key for key in range(2, 99) if assign_to_key_group(key, 2, LONG))
    assert assign_to_key_group(first, 2, LONG) == 0
    with SavepointWriter(tmp_path / "s") as writer:
        operator = writer.add_operator("m", LONG, [MapStateDescriptor("m", LONG, LONG)], 2, 1)
        operator.write("m", first, 1, 1)
        for user in range(40):
            operator.write("m", second, 1, user)
    state = state_of(read_savepoint(tmp_path / "s"), top=5)
    assert (state.keys, state.entries) == (2, 41)
    assert [(size.key, size.entries) for size in state.heaviest_keys] == [
        *((second, 40), (first, 1)),
    ]


def test_keys_that_no_batch_of_arrow_holds(tmp_path: Path) -> None:
    lone, folder = "\ud800", tmp_path / "s"
    rows = [("m", key, 1, user) for key in (lone, "b") for user in range(2)]
    state = state_of(written(folder, [MapStateDescriptor("m", LONG, LONG)], rows))
    assert (state.keys, state.entries) == (2, 4)
    assert {size.key for size in state.heaviest_keys} == {lone, "b"}


@pytest.mark.parametrize("key_type", [LIST(LONG), TUPLE(LIST(LONG), LONG)], ids=str)
def test_keys_that_are_lists(tmp_path: Path, key_type: KeyType) -> None:
    keys: list[Any] = [[1, 2], [1, 3]]
    if isinstance(key_type, TUPLE):
        keys = [(key, 7) for key in keys]
    rows = [("m", key, 1, user) for key in keys for user in range(2)]
    states = [MapStateDescriptor("m", LONG, LONG)]
    heaviest = state_of(written(tmp_path / "s", states, rows, key_type)).heaviest_keys
    assert sorted((size.key, size.entries) for size in heaviest) == [(key, 2) for key in keys]


def test_all_else_that_there_is(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "s") as writer:
        offsets = KafkaOffsets({("clicks", number): 5 for number in range(3)})
        writer.add_source("clicks", offsets, 128, parallelism=2)
    [source] = read_savepoint(tmp_path / "s").summary().operators
    assert (source.splits, source.committables, source.states) == (3, None, ())
    assert (source.imbalance, source.key_group_bytes) == (None, None)
    assert "SourceReaderState" in str(source)
    [state] = source.operator_states
    assert (state.state, state.elements, state.subtasks) == ("SourceReaderState", 3, 2)
    assert (source.coordinator_bytes or 0) > 0
    unaligned = point("2.3.0-unaligned-checkpoint").read().summary()
    assert sum(by.in_flight_bytes for by in unaligned.operators) > 0


def test_operator_states_are_those_of_the_elements() -> None:
    savepoint = point("2.3.0-heap-canonical").read()
    modes = set()
    for operator in savepoint.summary().operators:
        elements: dict[str, list[int]] = defaultdict(list)
        for entry in savepoint.operator(operator.operator_id).operator_state():
            elements[entry.state].append(len(entry.elements))
        for state in operator.operator_states:
            add = max if state.mode == "BROADCAST" else sum
            assert state.elements == add(elements[state.state])
            assert state.subtasks == sum(map(bool, elements[state.state]))
            modes.add(state.mode)
    assert modes == {"BROADCAST", "SPLIT_DISTRIBUTE", "UNION"}


# --- state that is not read -------------------------------------------------------------


def test_damage_costs_only_its_own_state(tmp_path: Path) -> None:
    """A header tells of two states; the entry of one is cut short."""
    text, number = sb.simple("String"), sb.simple("Long")
    states = [sb.state("bad", "VALUE", number), sb.state("good", "VALUE", number)]
    header = sb.keyed_header(text, states)
    key = bytes([97, 2]) + b"a\0"
    stream = header + sb.canonical_key_group([(0, [(key, b"\0\0")]), (1, [(key, sb.i64(5))])])
    task = sb.subtask(managed_keyed=sb.canonical(97, [len(header)], sb.inline(stream)))
    savepoint = read_savepoint(sb.write(tmp_path / "s", [sb.operator([task], uid="op")]))
    summary = savepoint.summary()
    [operator] = summary.operators
    bad, good = operator.states
    assert (good.entries, good.keys, good.unread) == (1, 1, None)
    assert (bad.entries, bad.keys) == (None, None)
    assert operator.unread == (bad.unread,)
    assert "bad" in str(bad.unread)
    assert "What cannot be read:" in str(summary)
    assert summary.to_dict()["operators"][0]["states"][0]["unread"] == bad.unread
    growth = SavepointGrowth.of([summary, summary])
    assert [state.growth for state in growth.states] == [0, None]
    assert "?" in str(growth)


def test_a_header_that_is_damaged(tmp_path: Path) -> None:
    task = sb.subtask(managed_keyed=sb.canonical(0, [9], sb.inline(b"nothing..")))
    savepoint = read_savepoint(sb.write(tmp_path / "s", [sb.operator([task], uid="op")]))
    [operator] = savepoint.summary().operators
    assert (operator.states, len(operator.unread)) == ((), 1)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    rows = [("count", key, 5) for key in range(9)]
    savepoint = written(tmp_path / "s", [ValueStateDescriptor("count", LONG)], rows, LONG)
    assert savepoint.operator("by-user").states
    for file in (tmp_path / "s").iterdir():
        file.unlink()
    [operator] = savepoint.summary().operators
    [state] = operator.states
    assert (state.entries, operator.unread) == (None, (state.unread,))


def test_keys_that_only_the_job_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kryo's key before a String: what is of the key and what of the namespace is not known."""
    monkeypatch.setattr(entry_columns, "ROWS", 1)  # Each key group is a batch.
    key, value = sb.kryo_of("shop.Key"), sb.simple("Long")
    states = [sb.state("m", "MAP", sb.map_of(sb.simple("String"), value))]
    header = sb.keyed_header(key, states)
    groups = [
        sb.canonical_key_group([(0, [(bytes([group, 1, 2, 3]) + b"\0\x02a", b"\0" + sb.i64(5))])])
        for group in (97, 98)
    ]
    offsets = [len(header), len(header) + len(groups[0])]
    stream = sb.inline(header + b"".join(groups))
    task = sb.subtask(managed_keyed=sb.canonical(97, offsets, stream))
    savepoint = read_savepoint(sb.write(tmp_path / "s", [sb.operator([task], uid="op")]))
    state = state_of(savepoint)
    assert (state.entries, state.keys, state.heaviest_keys) == (2, None, ())
    assert "heaviest keys" not in str(savepoint.summary())


def test_lists_that_only_the_job_parts(tmp_path: Path) -> None:
    states = [sb.state("l", "LIST", sb.list_of(sb.snapshot("shop.ItemSnapshot", 1)))]
    header = sb.keyed_header(sb.simple("String"), states)
    stream = header + sb.canonical_key_group([(0, [(bytes([97, 2]) + b"a\0", b"\x07\x08")])])
    task = sb.subtask(managed_keyed=sb.canonical(97, [len(header)], sb.inline(stream)))
    savepoint = read_savepoint(sb.write(tmp_path / "s", [sb.operator([task], uid="op")]))
    state = state_of(savepoint)
    assert (state.entries, state.elements, state.keys) == (1, None, 1)


def test_parts_that_run_elsewhere_have_the_same_numbers() -> None:
    savepoint = read_savepoint(FOLDER)

    def run(tasks: list[Any]) -> list[Any]:
        pickled = [pickle.dumps(task) for task in reversed(tasks)]
        return [pickle.loads(pickle.dumps(pickle.loads(task)())) for task in pickled]

    assert summarized(savepoint, None, TOP, AT, run) == savepoint.summary(top=TOP, at=AT)


# --- arguments, text, command -----------------------------------------------------------


def test_arguments_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    savepoint = read_savepoint(FOLDER)
    with pytest.raises(InvalidValueError, match="at must have a time zone"):
        savepoint.summary(at=datetime(2026, 1, 1))
    with pytest.raises(InvalidTypeError, match="at must be a datetime, got 5"):
        savepoint.summary(at=5)  # type: ignore[arg-type]  # A user may do so.
    with pytest.raises(InvalidValueError, match="top must be from 1"):
        savepoint.summary(top=0)
    with pytest.raises(InvalidValueError, match="operator must be an operator's uid"):
        savepoint.summary(["nobody"])
    with pytest.raises(InvalidValueError, match="2 points or more, got 1"):
        SavepointGrowth.of([savepoint.summary(["by-string"])])
    for name in ("tally", "summarize"):
        monkeypatch.delitem(sys.modules, f"keygroups.savepoint._summary.{name}")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'keygroups\[arrays\]'$"):
        savepoint.summary()


def test_dates() -> None:
    """The texts of GNU date, of -u -d @<seconds>."""
    assert date_text(0) == "1970-01-01 00:00:00Z"
    assert date_text(1_795_291_200_123) == "2026-11-21 20:00:00.123Z"
    assert date_text(-1) == "1969-12-31 23:59:59.999Z"
    assert date_text(NEVER) == f"{NEVER:,}"


def test_summary_as_json_and_as_a_frame() -> None:
    pd = pytest.importorskip("pandas")
    summary = read_savepoint(FOLDER).summary(["by-string"], at=AT)
    data = json.loads(json.dumps(summary.to_dict()))
    assert (data["at"], data["checkpoint_id"]) == (MILLIS, 2)
    [operator] = data["operators"]
    states = {state["state"]: state for state in operator["states"]}
    assert states["ttlMap"]["heaviest_keys"][0]["key"] == "user-89019"
    assert states["ttlMap"]["last_access"]["counts"]["within an hour"] == 100
    assert sum(operator["key_group_bytes"]) == 14532
    frame = summary.to_pandas().set_index("state")
    assert (frame.loc["ttlMap", "entries"], frame.loc["ttlMap", "keys"]) == (100, 25)
    assert frame.loc["count", "elements"] is pd.NA
    assert "ttlMap" in str(summary.operators[0])
    reports: list[Any] = [summary, *summary.operators]
    for report in reports:
        assert "ttlMap" in report._repr_html_()
    assert "13 keyed states" in repr(summary)
    assert repr(summary.operators[0].states[0]).startswith("StateSummary(state=")


def test_keys_are_values_of_json(tmp_path: Path) -> None:
    rows = [("c", key, 1) for key in (5, -5)]
    summary = written(tmp_path / "s", [ValueStateDescriptor("c", LONG)], rows, LONG).summary()
    [state] = summary.to_dict()["operators"][0]["states"]
    assert {size["key"] for size in state["heaviest_keys"]} == {5, -5}
    others = [("c", 1.5, 1)]
    summary = written(tmp_path / "t", [ValueStateDescriptor("c", LONG)], others, DOUBLE).summary()
    [state] = summary.to_dict()["operators"][0]["states"]
    assert [size["key"] for size in state["heaviest_keys"]] == ["1.5"]


def test_the_command_has_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["savepoint", str(FOLDER), "--full", "--operator", "by-string"]) == 0
    text = capsys.readouterr().out
    assert "13 keyed states, 461 entries of 14,532 bytes" in text
    assert main(["savepoint", str(FOLDER), "--full", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    by_uid = {operator["operator"]: operator for operator in summary["operators"]}
    assert len(by_uid["by-string"]["states"]) == 13
    page = tmp_path / "page.html"
    assert main(["savepoint", str(FOLDER), "--full", "--html", str(page)]) == 0
    assert "Keyed states, the heaviest first" in page.read_text()


def test_what_takes_reading_is_said_and_filled() -> None:
    savepoint = point("2.3.0-rocksinc-checkpoint").read()
    [hint] = [line for line in str(savepoint).splitlines() if line.startswith("-: ")]
    assert (
        hint == "-: entries have to be read for it, as summary() does (keygroups savepoint --full)"
    )
    plain, full = html_report(savepoint), html_report(savepoint, full=True)
    assert hint.replace("(", "").split(" as ")[0] in plain
    assert "-: entries" not in full
    assert "-: entries" not in str(read_savepoint(FOLDER))
    summary = savepoint.summary()
    assert all(by.imbalance for by in summary.operators if by.states)


# --- growth -----------------------------------------------------------------------------


def points(tmp_path: Path) -> list[SavepointSummary]:
    """Return three points: a list grows, a count stays, a map comes, another operator goes."""
    summaries = []
    for number in range(3):
        with SavepointWriter(tmp_path / str(number)) as writer:
            states: list[Any] = [
                ListStateDescriptor("ids", LONG),
                ValueStateDescriptor("count", LONG),
            ]
            if number:
                states.append(MapStateDescriptor("items", LONG, LONG))
            operator = writer.add_operator("by-user", STRING, states, 128, 1, sort=True)
            operator.write("ids", "ann", [*range(10**number)])
            operator.write("count", "ann", number)
            if number:
                operator.write("items", "ann", 1, 1)
            else:
                other = writer.add_operator("old", STRING, states[:1], 128, 1, sort=True)
                other.write("ids", "bob", [1])
        savepoint = read_savepoint(tmp_path / str(number))
        savepoint.operator("by-user")
        if not number:
            savepoint.operator("old")
        summaries.append(savepoint.summary())
    return summaries


def test_growth(tmp_path: Path) -> None:
    growth = SavepointGrowth.of(points(tmp_path))
    found = {(state.operator, state.state): state for state in growth.states}
    assert [*found] == [
        ("by-user", "ids"),
        ("by-user", "items"),
        ("by-user", "count"),
        ("old", "ids"),
    ]
    ids, items, count, old = found.values()
    assert (ids.bytes, ids.growth, ids.elements) == ((13, 94, 904), 891, (1, 10, 100))
    assert (items.entries, items.has_grown) == ((0, 1, 1), True)
    assert (count.growth, count.has_grown) == (0, False)
    assert (old.growth, old.bytes) == (-13, (13, 0, 0))
    [group] = growth.key_groups
    assert group.bytes[-1] - group.bytes[0] == 891 + (items.growth or 0)
    text = str(growth)
    assert "1 states have as many bytes, entries and elements" in text
    assert json.loads(json.dumps(growth.to_dict()))["states"][0]["growth"] == 891
    assert "+891" in growth._repr_html_()
    assert repr(growth) == "<SavepointGrowth: 4 states at 3 points>"


def test_growth_as_a_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    frame = SavepointGrowth.of(points(tmp_path)).to_pandas()
    assert [*frame[frame.state == "ids"].elements[:3]] == [1, 10, 100]


def test_key_groups_of_another_max_parallelism_have_no_growth(tmp_path: Path) -> None:
    summaries = []
    for number, groups in enumerate((128, 256)):
        with SavepointWriter(tmp_path / str(number)) as writer:
            states = [ListStateDescriptor("ids", LONG)]
            operator = writer.add_operator("by-user", STRING, states, groups, 1, sort=True)
            operator.write("ids", "ann", [*range(1 + number)])
        summaries.append(read_savepoint(tmp_path / str(number)).summary())
    growth = SavepointGrowth.of(summaries)
    assert (growth.key_groups, growth.states[0].growth) == ((), 9)


def test_the_command_shows_growth_and_trends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    points(tmp_path)
    names = [str(tmp_path / str(number)) for number in range(3)]
    assert main(["diff", *names]) == 0
    trend = capsys.readouterr().out
    assert "bytes 3" in trend
    assert "+891" in trend
    assert main(["diff", names[0], names[2]]) == 0
    assert "+891" in capsys.readouterr().out
    assert main(["diff", *names, "--json", "--operator", "old", "--state", "ids"]) == 0
    [state] = json.loads(capsys.readouterr().out)["states"]
    assert (state["operator"], state["growth"]) == ("old", -13)
    assert main(["diff", names[0], names[0]]) == 0
    assert "all equal" in capsys.readouterr().out
    assert main(["diff", *names, "--exit-code"]) == 2
    assert "--exit-code goes with two savepoints" in capsys.readouterr().err
    assert main(["diff", *names, "--operator", "nobody"]) != 0
    assert "operator must be" in capsys.readouterr().err
    monkeypatch.setattr("keygroups.cli._diff.find_spec", lambda name: None)
    assert main(["diff", names[0], names[2], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["growth"] is None
