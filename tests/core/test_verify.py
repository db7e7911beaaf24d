"""Savepoint.verify: nothing is at fault in what Flink wrote, and each kind of fault is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import FORMATS, POINTS, Point, point, true_lines
from support.bytes.sample_savepoints import savepoint_folder
from support.html_tables import shown
from support.inside.savepoints import ReadTask, RocksDBHandle, VerifyTask, spill, verify_operator
from support.inside.savepoints import task as task_module

from keygroups import assign_to_key_group
from keygroups.cli import main
from keygroups.errors import RestoreWarning
from keygroups.savepoint import (
    EventTimeSessionWindows,
    ReducingStateDescriptor,
    Savepoint,
    SavepointVerification,
    SavepointWriter,
    TimeWindow,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.savepoint._operator import missing_timers
from keygroups.savepoint._verification.faults import Tally
from keygroups.savepoint.verifying import FaultCount, OperatorVerification, StateFault
from keygroups.types import LONG, STRING

WINDOW = sb.snapshot(f"{sb.WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot", 3)
TEXT, NUMBER = sb.simple("String"), sb.simple("Long")
CONTENTS = sb.state("window-contents", "REDUCING", NUMBER, namespace=WINDOW)
TIMERS = sb.state(
    "_timer_state/event_window-timers", "", sb.timer_of(TEXT, WINDOW), backend_type=3
)
MERGING = sb.state("merging-window-set", "LIST", sb.list_of(sb.tuple_of(WINDOW, WINDOW)))
COUNT = sb.state("count", "VALUE", NUMBER)
SLICES = sb.state("window-aggs", "VALUE", NUMBER, namespace=NUMBER)
SLICE_TIMERS = sb.state(
    "_timer_state/event_window-timers", "", sb.timer_of(TEXT, NUMBER), backend_type=3
)
BUFFER, RIGHT_BUFFER = (
    sb.state(f"{side}_BUFFER", "MAP", sb.map_of(NUMBER, NUMBER)) for side in ("LEFT", "RIGHT")
)
CLEANUP = sb.state("_timer_state/event_CLEANUP_TIMER", "", sb.timer_of(TEXT, TEXT), backend_type=3)
A = assign_to_key_group("a", 128, STRING)
FIVE = sb.i64(5)
GONE = "windows without a timer"

Entries = Sequence[tuple[int, Sequence[tuple[bytes, bytes]]]]


def key(text: str, *parts: bytes) -> bytes:
    """Return the key of an entry, in the key group of "a"."""
    return bytes([A, len(text) + 1]) + text.encode() + b"".join(parts)


def timer(text: str, namespace: bytes, time: int = 9) -> bytes:
    return bytes([A, 0x80]) + bytes(6) + bytes([time, len(text) + 1]) + text.encode() + namespace


def window(start: int, end: int) -> bytes:
    return sb.i64(start, end)


def written(folder: Path, states: Sequence[bytes], entries: Entries) -> Path:
    """Write a savepoint of one operator with one key group."""
    header = sb.keyed_header(TEXT, states)
    stream = sb.inline(header + (sb.canonical_key_group(entries) if entries else b""))
    offsets = [len(header) if entries else 0]
    task = sb.subtask(managed_keyed=sb.canonical(A, offsets, stream))
    return sb.write(folder / "s", [sb.operator([task], uid="op")])


def verified(folder: Path, states: Sequence[bytes], entries: Entries) -> list[tuple[object, ...]]:
    """Return kind, state and window of each fault."""
    folder.mkdir(exist_ok=True)
    report = read_savepoint(written(folder, states, entries)).verify()
    assert report.operators[0].entries == sum(len(of_state) for _, of_state in entries)
    return [
        (count.kind, example.state, example.namespace)
        for operator in report.operators
        for count in operator.faults
        for example in count.examples
        if count.count == len(count.examples)
    ]


# Points that Flink wrote

# The newest Flink wrote each kind of job and format; those of before are for the nightly run.
EVERY_POINT = pytest.mark.parametrize(
    "real",
    [
        pytest.param(real, marks=[] if str(real).startswith("2.3") else pytest.mark.slow)
        for real in (*POINTS, *FORMATS, *JOB_POINTS)
    ],
    ids=str,
)


@EVERY_POINT
def test_nothing_is_at_fault_in_what_flink_wrote(real: Point) -> None:
    """Windows of all kinds, SQL, timers on the heap, changelogs, every format."""
    report = read_savepoint(real.path, real.moved).verify()
    assert not report.has_faults, str(report)
    assert [count for by in report.operators for count in by.faults] == []
    assert "no fault" in repr(report)


def test_all_entries_are_read() -> None:
    real = point("2.3.0-files-canonical")
    report = read_savepoint(real.path).verify()
    assert sum(by.entries for by in report.operators) == sum(1 for _ in true_lines(real.entries))
    assert report.files == len({*real.path.iterdir()}) - 1
    assert report.bytes == sum(
        path.stat().st_size for path in real.path.iterdir() if path.name != "_metadata"
    )


def test_sessions_that_are_written(tmp_path: Path) -> None:
    """The windows of a set are found with the window that holds their contents."""
    sums = ReducingStateDescriptor("window-contents", LONG)
    with SavepointWriter(tmp_path / "s") as writer:
        windows = writer.add_window_operator(
            "op", STRING, EventTimeSessionWindows(50), sums, 128, 3
        )
        for start in (0, 200, 400):
            windows.write("a", TimeWindow(start, start + 100), 5)
    report = read_savepoint(tmp_path / "s").verify(["op"])
    assert (report.operators[0].entries, report.operators[0].faults) == (7, ())


# Each kind of fault


def test_a_key_in_a_foreign_key_group(tmp_path: Path) -> None:
    b = assign_to_key_group("b", 128, STRING)
    states: Entries = [(0, [(key("a", b"\0"), FIVE), (key("b", b"\0"), FIVE)])]
    report = read_savepoint(written(tmp_path, [COUNT], states)).verify()
    [count] = report.operators[0].faults
    [fault] = count.examples
    assert (count.kind, fault.key, fault.key_group, fault.subtask) == (
        "foreign_key_group",
        "b",
        A,
        0,
    )
    assert fault.message == f"its own is key group {b}"
    assert (fault.state, fault.namespace) == (None, None)
    assert repr(fault).startswith("StateFault(kind='foreign_key_group', message='its own")
    assert repr(count).startswith("FaultCount(kind='foreign_key_group', count=1, examples=(Sta")
    assert f"key 'b', key group {A}, subtask 0: its own is key group {b}" in str(report)


def test_many_faults_of_a_kind() -> None:
    """The sample has Integers in key group 3, whatever their hash."""
    report = read_savepoint(savepoint_folder(100)).verify()
    [count] = report.operators[0].faults
    own = sum(assign_to_key_group(number, 128) == 3 for number in range(100))
    assert (count.count, len(count.examples)) == (100 - own, 5)
    assert str(report).endswith(f"    and {100 - own - 5} more")
    assert report._repr_html_().count("its own is key group") == 5


def test_an_entry_that_is_there_twice(tmp_path: Path) -> None:
    entry = (key("a", b"\0"), FIVE)
    of_state: Entries = [(0, [entry, (key("a", b"\0"), sb.i64(6))])]
    assert verified(tmp_path, [COUNT], of_state) == [("duplicate", "count", None)]


USER_1, USER_2 = ((key("a", b"\0", sb.i64(user_key)), b"\0" + FIVE) for user_key in (1, 2))
ENTRY = key("a", b"\0"), FIVE


@pytest.mark.parametrize(
    ("states", "entries", "state"),
    [
        ([BUFFER], [(0, [USER_1, USER_2, USER_1])], "LEFT_BUFFER"),
        (
            [COUNT, sb.state("sum", "VALUE", NUMBER)],
            [(0, [ENTRY]), (1, [ENTRY]), (0, [ENTRY])],
            "count",
        ),
    ],
)
def test_an_entry_that_is_there_again_behind_others(
    states: list[bytes], entries: Entries, state: str, tmp_path: Path
) -> None:
    """Of another user key, and of another state of the same key."""
    found = verified(tmp_path, states, entries)
    assert [fault for fault in found if fault[0] == "duplicate"] == [("duplicate", state, None)]


W, V, BEFORE_1970 = window(0, 60), window(60, 120), window(-60, 0)


@pytest.mark.parametrize(
    ("contents", "timers", "fault"),
    [
        ([W, V], [W, V], []),
        ([W, BEFORE_1970], [W, BEFORE_1970], []),
        ([W, V], [W], [("window_without_timer", "window-contents", TimeWindow(60, 120))]),
        (
            [W],
            [W, V],
            [("timer_without_window", "_timer_state/event_window-timers", TimeWindow(60, 120))],
        ),
    ],
)
def test_windows_and_timers(
    contents: list[bytes], timers: list[bytes], fault: list[tuple[object, ...]], tmp_path: Path
) -> None:
    entries: Entries = [
        (0, [(key("a", one), FIVE) for one in contents]),
        (1, [(timer("a", one), b"") for one in timers]),
    ]
    assert verified(tmp_path, [CONTENTS, TIMERS], entries) == fault


def test_a_timer_of_another_key_clears_no_window(tmp_path: Path) -> None:
    entries: Entries = [(0, [(key("a", W), FIVE)]), (1, [(timer("b", W), b"")])]
    kinds = [kind for kind, *_ in verified(tmp_path, [CONTENTS, TIMERS], entries)]
    assert kinds == ["foreign_key_group", "window_without_timer", "timer_without_window"]


@pytest.mark.parametrize(
    ("pairs", "contents", "timers", "kinds"),
    [
        ([(W, V)], [V], [W], []),
        ([(W, V)], [V], [V], ["window_without_timer", "timer_without_window"]),
        ([(W, V)], [V, W], [W], ["contents_without_window"]),
        ([(W, V)], [], [W], ["window_without_contents"]),
        ([(BEFORE_1970, V)], [V], [BEFORE_1970], []),
        ([(W, BEFORE_1970)], [BEFORE_1970], [W], []),
    ],
)
def test_sets_of_merging_windows(
    pairs: list[tuple[bytes, bytes]],
    contents: list[bytes],
    timers: list[bytes],
    kinds: list[str],
    tmp_path: Path,
) -> None:
    """A set has the window that fires, and the one under which its contents are kept."""
    merging = [(key("a", b"\0"), b",".join(first + second for first, second in pairs))]
    members = [merging, [(key("a", one), FIVE) for one in contents]]
    members.append([(timer("a", one), b"") for one in timers])
    entries: Entries = [(number, some) for number, some in enumerate(members) if some]
    states = [MERGING, CONTENTS, TIMERS]
    assert [kind for kind, *_ in verified(tmp_path, states, entries)] == kinds


def named_as_set(kind: str, value: bytes) -> bytes:
    return sb.state("merging-window-set", kind, value)


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (named_as_set("LIST", sb.list_of(NUMBER)), FIVE),
        (named_as_set("LIST", sb.list_of(sb.tuple_of(NUMBER, NUMBER))), FIVE * 2),
        (named_as_set("VALUE", sb.tuple_of(WINDOW, WINDOW)), W + W),
        (named_as_set("LIST", sb.list_of(sb.ttl_of(sb.tuple_of(WINDOW, WINDOW)))), FIVE + W + W),
    ],
)
def test_a_state_of_the_job_that_has_the_name_of_the_set(
    state: bytes, value: bytes, tmp_path: Path
) -> None:
    """Its values are no windows, or not those that fire."""
    assert not verified(tmp_path, [state], [(0, [(key("a", b"\0"), value)])])


@pytest.mark.parametrize(
    ("states", "value", "of_timer"),
    [
        ([SLICES, SLICE_TIMERS], key("a", FIVE), timer("a", sb.i64(7))),
        ([BUFFER, CLEANUP], key("a", b"\0", FIVE), timer("a", b"\x02l")),
    ],
)
def test_keys_that_have_timers_of_some_window(
    states: list[bytes], value: bytes, of_timer: bytes, tmp_path: Path
) -> None:
    """The slices of SQL's windows, and a join's buffers, are cleared by timers of another name."""
    is_map = states[0] == BUFFER
    content = [(value, b"\0" * is_map + FIVE)]
    assert verified(tmp_path / "a", states, [(0, content), (1, [(of_timer, b"")])]) == []
    [(kind, _, namespace)] = verified(tmp_path / "b", states, [(0, content)])
    assert (kind, namespace) == ("window_without_timer", None)


def test_what_may_be_left_is_no_fault(tmp_path: Path) -> None:
    path = written(tmp_path, [CONTENTS, TIMERS], [(1, [(timer("a", W), b"")])])
    report = read_savepoint(path).verify()
    assert not report.has_faults
    assert repr(report).endswith(" 1 operators, 1 entries: no fault>")
    assert "1 timers of windows without contents" in str(report)


# Damage


def test_a_file_that_is_gone_or_cut(tmp_path: Path) -> None:
    shutil.copytree(point("2.3.0-files-canonical").path, tmp_path / "s")
    first, second, *_ = sorted(
        path for path in (tmp_path / "s").iterdir() if path.name != "_metadata"
    )
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    report = read_savepoint(tmp_path / "s").verify()
    [count] = report.faults
    assert (count.kind, count.count) == ("file", 2)
    assert {path.name in str(count) for path in (first, second)} == {True}
    unreadable = [count for by in report.operators for count in by.faults]
    assert {count.kind for count in unreadable} == {"unreadable"}
    assert "key groups more" in str(unreadable[0].examples[0])  # one place, not one a key group


def test_five_of_the_files_that_are_gone_are_named(tmp_path: Path) -> None:
    states = [sb.operator_state([("s", 0, [])], sb.relative(f"f{n}", 9)) for n in range(6)]
    subtasks = [sb.subtask(n, managed_operator=state) for n, state in enumerate(states)]
    path = sb.write(tmp_path / "s", [sb.operator(subtasks, parallelism=6)])
    [count] = read_savepoint(path).verify([]).faults
    assert (count.kind, count.count, len(count.examples)) == ("file", 6, 5)


def test_the_last_byte_of_each_file_is_read(tmp_path: Path) -> None:
    """A store that tells no sizes is asked for it; of an empty file for nothing."""
    pytest.importorskip("fsspec", reason="the extra savepoint")
    from support.bytes.counted_store import counted_store

    states = [
        sb.operator_state([(f"s{size}", 0, [])], sb.relative(f"f{size}", size))
        for size in (0, 1, 9)
    ]
    subtasks = [sb.subtask(n, managed_operator=state) for n, state in enumerate(states)]
    files = {f"f{size}": b"x" * size for size in (0, 1, 9)}
    with counted_store() as store:
        store.files = {f"folder/{name}": content for name, content in files.items()}
        store.files["folder/_metadata"] = sb.metadata([sb.operator(subtasks, parallelism=3)])
        savepoint = read_savepoint("counted://folder")
        store.asked.clear()
        report = savepoint.verify([])
        assert (report.files, report.bytes, report.faults) == (3, 10, ())
        assert sorted(store.reads()) == [("folder/f1", 0, 1), ("folder/f9", 8, 9)]


@pytest.mark.long
def test_very_many_damaged_key_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How often some are tried is bounded, as each time all offsets are looked at."""
    header = sb.keyed_header(TEXT, [COUNT])
    content = sb.canonical_key_group([(0, [(b"\0\0\2a", b"")])])
    offsets = [len(header) + len(content) * place for place in range(4_000)]
    keyed = sb.canonical(0, offsets, sb.inline(header + content * 4_000))
    tasks = [sb.operator([sb.subtask(managed_keyed=keyed)], max_parallelism=4_000)]
    savepoint = read_savepoint(sb.write(tmp_path, tasks))
    tries = []
    verified = VerifyTask._verified

    def counted(*arguments: Any) -> Tally:
        tries.append(arguments)
        return verified(*arguments)

    monkeypatch.setattr(VerifyTask, "_verified", counted)
    [operator] = savepoint.verify().operators
    # All at first, 512 spans, and what is left of the halves: one of each size, 2,000 to 1.
    assert 1 + 512 < len(tries) <= 1 + 512 + 12
    assert [count.kind for count in operator.faults] == ["unreadable"]
    assert operator.faults[0].count > 100


@pytest.mark.parametrize(
    ("most", "spans"),
    [
        (1, [(0, 7), (0, 3), (0, 1), (2, 3), (4, 7)]),
        (2, [(0, 7), (0, 3), (0, 1), (0, 0), (1, 1), (2, 3), (4, 7)]),
    ],
)
def test_how_damage_is_narrowed_down(
    most: int, spans: list[tuple[int, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By halves, the lower first; behind so many spans each that is left counts as a whole."""
    keyed = sb.canonical(0, [*range(100, 108)], sb.relative("gone", 9_000))
    path = sb.write(tmp_path / "s", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="op")])
    [task] = read_savepoint(path).operator("op").tasks()
    tried = []
    verified = VerifyTask._verified

    def noted(self: VerifyTask, read: ReadTask, meter: Any = None) -> Tally:
        tried.append((min(read.key_groups), max(read.key_groups)))
        return verified(self, read, meter)

    monkeypatch.setattr(VerifyTask, "_verified", noted)
    monkeypatch.setattr(task_module, "_MOST_TRIES", most)
    [count] = VerifyTask(task).run().counts
    assert tried == spans
    [fault] = count.examples
    assert (count.count, fault.key_group, fault.state) == (1, 0, None)
    assert fault.message.endswith("and 7 key groups more")


def test_damage_in_two_ranges_of_key_groups(tmp_path: Path) -> None:
    """All of both are verified where a task has key groups with others between them."""
    keyed = sb.canonical(0, [*range(100, 108)], sb.relative("gone", 9_000))
    path = sb.write(tmp_path / "s", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="op")])
    [task] = read_savepoint(path).operator("op").tasks(None, [1, 2, 5])
    [count] = VerifyTask(task).run().counts
    [fault] = count.examples
    assert fault.key_group == 1
    assert fault.message.endswith("and 2 key groups more")


def test_damage_in_a_key_group_leaves_the_others(tmp_path: Path) -> None:
    """One value is cut short: its key group alone cannot be read."""
    b = assign_to_key_group("b", 128, STRING)
    low, high = sorted([(A, b"\2a\0"), (b, b"\2b\0")])
    header = sb.keyed_header(TEXT, [COUNT])
    groups = [
        sb.canonical_key_group([(0, [(bytes([group]) + encoded, value)])])
        for (group, encoded), value in ((low, FIVE), (high, b"\1"))
    ]
    offsets = [0] * (high[0] - low[0] + 1)
    offsets[0], offsets[-1] = len(header), len(header) + len(groups[0])
    stream = sb.inline(header + b"".join(groups))
    task = sb.subtask(managed_keyed=sb.canonical(low[0], offsets, stream))
    report = read_savepoint(sb.write(tmp_path / "s", [sb.operator([task], uid="op")])).verify()
    [count] = report.operators[0].faults
    assert (report.operators[0].entries, count.kind, count.count) == (1, "unreadable", 1)
    assert count.examples[0].key_group == high[0]
    assert "is no entry" in count.examples[0].message


def test_how_many_key_groups_cannot_be_read_for_the_same_reason(tmp_path: Path) -> None:
    """It is said once, of the first of them, with the number of the others if there are any."""
    messages = {}
    for count in (1, 2, 5):
        stream = sb.relative("gone", 9_000)
        keyed = sb.canonical(3, [*range(100, 100 + count)], stream)
        folder = tmp_path / str(count) / "s"
        folder.parent.mkdir()
        path = sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="op")])
        [fault_count] = read_savepoint(path).verify().operators[0].faults
        [fault] = fault_count.examples
        assert (fault_count.kind, fault.key_group) == ("unreadable", 3)
        messages[count] = fault.message.replace(str(folder.parent), "")
    assert "key groups more" not in messages[1]
    assert messages[2] == f"{messages[1]}, and 1 key groups more"
    assert messages[5] == f"{messages[1]}, and 4 key groups more"


def test_a_flipped_bit_of_rocksdb(tmp_path: Path) -> None:
    """The checksum of its block does not match, and the rest is verified."""
    folder = tmp_path / "s"
    shutil.copytree(point("2.3.0-rocksinc-native").path, folder)
    [task, *_] = read_savepoint(folder).operator("by-string").tasks()
    [handle] = task.handles
    assert isinstance(handle, RocksDBHandle)
    sst = next(stream.data for name, stream in handle.shared if name.endswith(".sst"))
    assert sst is not None
    metadata = folder / "_metadata"
    damaged = bytes([sst[0] ^ 1]) + sst[1:]
    metadata.write_bytes(metadata.read_bytes().replace(sst, damaged))
    report = read_savepoint(folder).verify()
    assert "checksum" in str(report)
    assert report.faults == ()


def test_operator_state_that_is_damaged(tmp_path: Path) -> None:
    """A header that is none, where the keyed state is whole."""
    state = sb.operator_state([("list", 0, [9])], sb.inline(b"\1" * 20))
    path = sb.write(tmp_path / "s", [sb.operator([sb.subtask(managed_operator=state)], uid="op")])
    report = read_savepoint(path).verify()
    [count] = report.operators[0].faults
    assert (count.kind, count.examples[0].subtask) == ("unreadable", 0)
    assert "version of operator state" in str(report)


def test_what_a_task_on_another_machine_verifies(tmp_path: Path) -> None:
    """16 MiB at most, of more than one key group."""
    sizes = [8 << 20, 8 << 20, 1 << 20]
    offsets = [100, 100 + sizes[0], 100 + sizes[0] + sizes[1]]
    keyed = sb.canonical(0, offsets, sb.relative("gone", 100 + sum(sizes)))
    path = sb.write(tmp_path / "s", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="op")])
    parts: list[Any] = []

    def run(functions: list[Any]) -> list[Tally]:
        parts.extend(functions)
        return []

    report = verify_operator(read_savepoint(path).operator("op"), run)
    assert [[*part.__self__.read.key_groups] for part in parts] == [[0, 1], [2]]
    assert (report.operator, report.entries, report.faults) == ("op", 0, ())


# State that nobody can tell


def test_keys_whose_hash_is_not_known() -> None:
    report = read_savepoint(point("2.3.0-pojo-canonical").path).verify()
    assert not report.has_faults
    assert "not verified: the key groups of keys, as the hash of POJO(G$Pj" in str(report)
    assert "not verified" in report._repr_html_()


def test_a_key_that_is_none(tmp_path: Path) -> None:
    """A number beyond the precision of the key's type has no hash."""
    null = bytes([A, 0, 0])
    report = read_savepoint(written(tmp_path, [COUNT], [(0, [(null, FIVE)])])).verify()
    [count] = report.operators[0].faults
    assert count.kind == "foreign_key_group"
    assert "no key" in str(report)


def test_one_operator_at_fault_is_enough(tmp_path: Path) -> None:
    """The other is whole; and of what a notebook shows, text stands to the left."""
    header = sb.keyed_header(TEXT, [COUNT])
    tasks = []
    for name in ("a", "b"):
        entry = bytes([A, 2]) + name.encode() + b"\0", FIVE
        content = sb.canonical_key_group([(0, [entry])])
        keyed = sb.canonical(A, [len(header)], sb.inline(header + content))
        own_id = name.encode() * 16
        tasks.append(sb.operator([sb.subtask(managed_keyed=keyed)], operator_id=own_id, uid=name))
    report = read_savepoint(sb.write(tmp_path, tasks)).verify()
    assert [operator.has_faults for operator in report.operators] == [False, True]
    assert report.faults == ()
    assert report.has_faults
    page = shown(report)
    assert page.rows[0] == page.left == ["operator", "fault", "place"]
    assert [row[0] for row in page.rows[1:]] == ["b"]


def test_states_that_are_hidden_are_named_in_their_order(tmp_path: Path) -> None:
    """On the heap: of a value of which only the job knows the end, and all behind it."""
    own = sb.snapshot("org.example.ValueSerializerSnapshot", 1)
    names = ("first", "second", "third", "fourth")
    states = [sb.state(name, "VALUE", own if name == "second" else NUMBER) for name in names]
    header = sb.keyed_header(TEXT, states)
    content = sb.i32(A)
    for number, name in enumerate(names):
        value = b"any" if name == "second" else FIVE
        content += number.to_bytes(2, "big") + sb.i32(1) + b"\0\2a" + value
    keyed = sb.native(A, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="op")
    report = read_savepoint(sb.write(tmp_path, [task])).verify()
    [operator] = report.operators
    assert (operator.entries, operator.faults) == (1, ())
    [text] = operator.unverified
    assert text.startswith("states second, third, fourth: ")


def test_a_map_on_the_heap_whose_keys_only_the_job_reads(tmp_path: Path) -> None:
    """Its user keys and values are known, but not where they begin."""
    header = sb.keyed_header(sb.kryo_of("a.B"), [sb.state("m", "MAP", sb.map_of(TEXT, NUMBER))])
    content = sb.i32(A) + sb.i16(0) + sb.i32(1) + b"\0any" + sb.i32(1) + b"\2u\0" + FIVE
    keyed = sb.native(A, [len(header)], sb.inline(header + content))
    report = read_savepoint(sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)])]))
    [operator] = report.verify().operators
    assert (operator.entries, operator.faults) == (0, ())
    assert operator.unverified[-1].startswith("states m: ")
    assert "(nothing here reads KRYO(a.B))" in operator.unverified[-1]


def test_states_that_only_the_job_reads_hide_others() -> None:
    """On the heap nothing says how long such a value is."""
    real = next(one for one in JOB_POINTS if one.name == "1.20.5-shop-hashmap-native")
    report = read_savepoint(real.path, real.moved).verify()
    assert not report.has_faults
    text, *_ = [text for by in report.operators for text in by.unverified]
    assert text.startswith("states ")
    assert "takes the job's own classes to read" in text


@pytest.mark.parametrize(
    ("serializer", "encoded"),
    [
        (sb.pojo_of("a.P", {"n": sb.simple("Int")}), b"\4" + sb.utf("a.Q") + b"any"),
        (sb.kryo_of("a.B"), b"any"),
    ],
)
def test_keys_of_which_nobody_can_tell_where_they_end(
    serializer: bytes, encoded: bytes, tmp_path: Path
) -> None:
    """Before a namespace and a user key that are text: what is there twice is found all the same.

    The first is of a subclass of a POJO.
    """
    header = sb.keyed_header(serializer, [sb.state("m", "MAP", sb.map_of(TEXT, NUMBER))])
    entry = (bytes([A]) + encoded + b"\0\2a", b"\0" + FIVE)
    content = sb.canonical_key_group([(0, [entry, entry])])
    task = sb.subtask(managed_keyed=sb.canonical(A, [len(header)], sb.inline(header + content)))
    report = read_savepoint(sb.write(tmp_path / "s", [sb.operator([task], uid="op")])).verify()
    [count] = report.operators[0].faults
    assert (count.kind, count.count, count.examples[0].state) == ("duplicate", 1, None)
    assert count.examples[0].message == ""
    assert count.examples[0].key == encoded + b"\0\2a"
    assert "is not known here" in str(report)


def test_operator_state_that_only_the_job_reads(tmp_path: Path) -> None:
    """Its bytes are there, and no more can be said of them."""
    of_job = sb.kryo_of("java.lang.Object")
    info = sb.meta_info("rules", 2, {}, {"KEY_SERIALIZER": TEXT, "VALUE_SERIALIZER": of_job})
    header = sb.operator_header([], [info])
    entries = b"\2a" + b"\1\0a.\xc3\1" + b"\2b" + b"\1\0a.\xc3\1"
    stream = sb.inline(header + sb.i32(2) + entries)
    state = sb.operator_state([("rules", 2, [len(header)])], stream)
    path = sb.write(tmp_path / "s", [sb.operator([sb.subtask(managed_operator=state)], uid="op")])
    report = read_savepoint(path).verify()
    assert not report.has_faults
    assert not report.operators[0].unverified


def test_the_first_faults_of_all_subtasks_are_examples(tmp_path: Path) -> None:
    """Five in all, and no key group of a foreign key is counted twice."""
    header = sb.keyed_header(TEXT, [COUNT])
    subtasks = []
    for index, names in enumerate(("abcd", "efgh")):
        foreign = [(bytes([index, 2]) + name.encode() + b"\0", FIVE) for name in names]
        stream = sb.inline(header + sb.canonical_key_group([(0, foreign)]))
        subtasks.append(
            sb.subtask(index, managed_keyed=sb.canonical(index, [len(header)], stream))
        )
    path = sb.write(tmp_path / "s", [sb.operator(subtasks, uid="op", parallelism=2)])
    assert not {assign_to_key_group(name, 128, STRING) for name in "abcdefgh"} & {0, 1}
    report = read_savepoint(path).verify()
    [operator] = report.operators
    [count] = operator.faults
    assert (operator.entries, count.count) == (8, 8)
    assert [(fault.key, fault.subtask) for fault in count.examples] == [
        *((name, 0) for name in "abcd"),
        ("e", 1),
    ]
    assert str(count).splitlines()[-1] == "  and 3 more"
    assert repr(report).endswith(" 1 operators, 8 entries: 8 faults>")


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (StateFault("file", "it is gone"), "it is gone"),
        (StateFault("duplicate", "", "s"), "state s"),
        (
            StateFault("duplicate", "why", "s", 1, 3, "k", TimeWindow(0, 5)),
            "state s, key 'k', window TimeWindow(start=0, end=5), key group 3, subtask 1: why",
        ),
        (
            StateFault("duplicate", "a\x1b", "s\x1b", 0, 0),
            r"state s\x1b, key group 0, subtask 0: a\x1b",
        ),
        (StateFault("duplicate", "", None, None, None, "k" * 98), f"key '{'k' * 98}'"),
        (
            StateFault("duplicate", "", None, None, None, "k" * 99),
            f"key '{'k' * 49}...{'k' * 46}'",
        ),
        (
            StateFault("duplicate", "", None, None, None, None, "w" * 98),
            f"window '{'w' * 98}'",
        ),
    ],
)
def test_texts_of_faults(fault: StateFault, text: str) -> None:
    """Each place by its name; keys and windows of at most 100 characters."""
    assert str(fault) == text


def test_texts_of_counts() -> None:
    """How many are left out, if any are."""
    fault = StateFault("file", "gone")
    assert str(FaultCount("file", 1_234, (fault, fault))).splitlines() == [
        "1,234 files that are not there as _metadata says",
        "  gone",
        "  gone",
        "  and 1,232 more",
    ]
    assert str(FaultCount("duplicate", 1, (fault,))) == "1 entries that are there twice\n  gone"


@pytest.mark.parametrize("size", [100, 101])
def test_texts_of_reports(size: int) -> None:
    """Operators without anything to tell are left out; a name has at most 100 characters."""
    fault, harmless = StateFault("file", "gone"), StateFault("timer_without_window", "")
    counts = FaultCount("file", 1, (fault,)), FaultCount("timer_without_window", 1, (harmless,))
    whole = OperatorVerification("whole", "0" * 32, 7, (), ())
    faulty = OperatorVerification("x" * size, "1" * 32, 1_000, counts, ())
    unknown = OperatorVerification("unknown", "2" * 32, 5, (), ("keys", "values"))
    name = "x" * 100 if size == 100 else "x" * 50 + "..." + "x" * 47
    report = SavepointVerification("/a", 2, 3_000, counts[:1], (whole, faulty, unknown))
    assert str(report).splitlines() == [
        "verified: /a",
        "2 files of 3,000 bytes, 3 operators, 1,012 entries: 2 faults",
        "  1 files that are not there as _metadata says",
        "    gone",
        f"{name}: 1,000 entries",
        "  1 files that are not there as _metadata says",
        "    gone",
        "  1 timers of windows without contents",
        "    ",
        "unknown: 5 entries",
        "  not verified: keys",
        "  not verified: values",
    ]
    page = shown(report)
    assert page.paragraphs == [
        "/a",
        "2 files of 3,000 bytes, 3 operators, 1,012 entries: 2 faults",
        "unknown: not verified: keys",
        "unknown: not verified: values",
    ]
    assert page.rows == [
        ["operator", "fault", "place"],
        ["", "1 files that are not there as _metadata says", "gone"],
        [name, "1 files that are not there as _metadata says", "gone"],
        [name, "1 timers of windows without contents", ""],
    ]
    assert page.left == page.rows[0]
    assert [by.has_faults for by in (whole, faulty, unknown)] == [False, True, False]
    for faults, operators, has_faults in [
        (counts, (), True),
        (counts[1:], (), False),
        ((), (whole, faulty), True),
        ((), (whole, unknown), False),
    ]:
        assert SavepointVerification("/a", 2, 3, faults, operators).has_faults == has_faults


def test_notes_are_bounded() -> None:
    tally = Tally()
    for number in range(60):
        tally.leave_out(f"{number}")
    assert len(tally.unverified) == 50


# Warnings of what is seen in passing


def native(folder: Path, states: Sequence[bytes], entries: Entries) -> Savepoint:
    """Write a savepoint that says of itself that it is in native format."""
    properties = read_savepoint(point("2.3.0-rocksinc-native").path).metadata.properties
    path = written(folder, states, entries)
    data = (path / "_metadata").read_bytes().removesuffix(sb.NO_PROPERTIES) + properties
    (path / "_metadata").write_bytes(data)
    return read_savepoint(path)


@pytest.mark.parametrize(
    ("states", "name"),
    [
        ([CONTENTS], "window-contents"),
        ([COUNT, SLICES], "window-aggs"),
        ([BUFFER], "LEFT_BUFFER"),
        ([RIGHT_BUFFER], "RIGHT_BUFFER"),
    ],
)
def test_native_savepoints_that_lack_timers(
    states: list[bytes], name: str, tmp_path: Path
) -> None:
    """Flink leaves those on the heap out, and restores windows that nothing fires."""
    savepoint = native(tmp_path, states, [])
    message = f"has no timers, .* fires or clears {name}: Flink"
    with pytest.warns(RestoreWarning, match=message) as warned:
        assert savepoint.check_restore("op", 1, 128) == 128
    assert [warning.filename for warning in warned] == [__file__]
    [report] = operator_reports(savepoint)
    [warning] = report.warnings
    assert name in warning
    for text in (str(report), report._repr_html_(), html_report(savepoint)):
        assert f"warning: {warning}" in text


@pytest.mark.parametrize(
    "states",
    [[CONTENTS, TIMERS], [MERGING, COUNT], [SLICES, SLICE_TIMERS], [BUFFER, CLEANUP]],
)
def test_states_with_timers_need_no_warning(states: list[bytes], tmp_path: Path) -> None:
    savepoint = native(tmp_path, states, [])
    assert savepoint.check_restore("op", 1, 128) == 128
    assert [report.warnings for report in operator_reports(savepoint)] == [()]


def test_a_restore_needs_no_header_that_is_gone(tmp_path: Path) -> None:
    """What else `_metadata` says of an operator is told without it."""
    savepoint = native(tmp_path, [CONTENTS[:-1] + b"x"], [])
    assert savepoint.check_restore("op", 1, 128) == 128


@EVERY_POINT
def test_flink_wrote_timers(real: Point) -> None:
    """Of windows and joins, in every format: nothing is warned of."""
    for operator in read_savepoint(real.path, real.moved).operators:
        assert missing_timers(operator) is None


def test_heavy_keys_in_a_foreign_key_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = assign_to_key_group("b", 128, STRING)
    null = bytes([A, 0, 0]), FIVE
    entries: Entries = [(0, [(key("a", b"\0"), FIVE), (key("b", b"\0"), FIVE), null])]
    path = str(written(tmp_path, [COUNT], entries))
    assert main(["savepoint", path]) == 0
    out = capsys.readouterr().out
    assert out.count("warning: ") == 1
    assert f"warning: key 'b' is in key group {A}, and its own is {b}: Flink loses" in out
    assert "keygroups verify looks for damage" in out
    assert main(["savepoint", path, "--json"]) == 0
    [report] = json.loads(capsys.readouterr().out)["reports"]
    assert len(report["warnings"]) == 1


# The rest


def test_it_is_done_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted in files there is the same to be found."""
    windows = [window(60 * number, 60 * number + 60) for number in range(40)]
    entries: Entries = [
        (0, [(key("a", one), FIVE) for one in windows]),
        (1, [(timer("a", one), b"") for one in windows[1:]]),
    ]
    monkeypatch.setattr(spill, "_HELD", 1000)
    assert verified(tmp_path, [CONTENTS, TIMERS], entries) == [
        ("window_without_timer", "window-contents", TimeWindow(0, 60))
    ]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, [CONTENTS, TIMERS], [(0, [(key("a", W), FIVE)])]))
    assert main(["verify", path]) == 1
    out, err = capsys.readouterr()
    assert GONE in out
    assert not err
    assert main(["verify", path, "--json", "--operator", "op"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["has_faults"], data["faults"]) == (True, [])
    [fault] = data["operators"][0]["faults"]
    assert (fault["kind"], fault["count"], fault["is_fault"]) == ("window_without_timer", 1, True)
    [example] = fault["examples"]
    assert (example["key"], example["key_group"], example["subtask"]) == ("a", A, 0)
    assert example["namespace"] == "TimeWindow(start=0, end=60)"
    assert main(["verify", str(point("2.3.0-files-canonical").path)]) == 0
    assert "no fault" in capsys.readouterr().out


def test_what_is_asked(tmp_path: Path) -> None:
    savepoint = read_savepoint(point("2.3.0-files-canonical").path)
    chosen: SavepointVerification = savepoint.verify(["by-string"])
    assert [by.operator for by in chosen.operators] == ["by-string"]
    seen: list[str] = []
    read_savepoint(savepoint.path, progress=lambda state: seen.append(state.work)).verify()
    assert "verify by-string" in seen
