"""Savepoints that are written anew: every entry of real ones, in the key group of its key.

What the entries of the real ones are is held against Flink in test_savepoint_points.py; what the
library reads of them is the expected side here, with the key group that Flink's keys have under
another max parallelism. `pytest -rP` shows how many were moved.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.damaged_files import digests
from support.bytes.expected_savepoints import (
    BY_STRING,
    COUNT,
    STRINGS,
    expected_files,
    keys_by_group,
    longs_by,
)
from support.bytes.job_points import JOB_POINTS, job_point
from support.bytes.older_metadata import NO_TIMERS, as_version_2
from support.bytes.real_savepoints import FORMATS, POINTS, Point, point
from support.inside.savepoints import (
    EditedKeyedState,
    EditTask,
    KeyGroupsHandle,
    StreamHandle,
)

from keygroups import assign_to_key_group, compute_operator_index_for_key_group
from keygroups.cli import main
from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint import (
    EditReport,
    Operator,
    OperatorId,
    Savepoint,
    SavepointWriter,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)
from keygroups.types import STRING

CHANNELS = "unaligned-checkpoint"  # in-flight data
READABLE = [one.name for one in (*POINTS, *FORMATS) if not one.name.endswith(CHANNELS)]
UNKNOWN_KEYS = ("2.3.0-pojo-canonical", "1.20.5-pojo-canonical")
QUICK = [
    "2.3.0-heap-native",
    "2.3.0-rocksresc-native",
    "2.3.0-files-canonical",
    "2.3.0-extraheap-canonical",
    "2.3.0-pyflink-canonical",
    "1.20.5-sqlrocks-canonical",
    "1.14.6-rocks-canonical",
    "1.20.5-changelog-checkpoint",
]
MAX_PARALLELISMS = [1, 2, 3, 64, 127, 128, 129, 200, 4096, 32767, 32768]


def some(names: Sequence[str], quick: Sequence[str]) -> list[Any]:
    """Return all, but as slow what is not among the quick ones."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in names]


def shown(entry: Any, key_group: int, subtask: int) -> str:
    """Return an entry with its place, and without how many bytes it took."""
    return repr(entry._replace(key_group=key_group, subtask=subtask, bytes=0))


def entries_of(operator: Operator) -> Counter[str]:
    return Counter(shown(one, one.key_group, one.subtask) for one in operator.entries())


def expected_entries(operator: Operator, max_parallelism: int, parallelism: int) -> Counter[str]:
    """Return the entries to be found under another max parallelism, of another parallelism."""
    key_types = {state.name: state.key_type for state in operator.states}
    found: Counter[str] = Counter()
    for entry in operator.entries():
        key_type = key_types[entry.state]
        if key_type is None:  # a hash that only the job knows
            assert operator.max_parallelism % max_parallelism == 0
            key_group = entry.key_group % max_parallelism
        else:
            key_group = assign_to_key_group(entry.key, max_parallelism, key_type)
        subtask = compute_operator_index_for_key_group(max_parallelism, parallelism, key_group)
        found[shown(entry, key_group, subtask)] += 1
    return found


def stream_of(savepoint: Savepoint, stream: StreamHandle | None) -> bytes | None:
    if stream is None:
        return None
    with savepoint.files.open(stream) as opened:
        return b"".join(opened.chunks(0, stream.size))


def copied(savepoint: Savepoint, index: int) -> list[Any]:
    """Return all that is to be copied of an operator: all but its keyed state."""
    operator, metadata = savepoint.operators[index], savepoint.metadata.operators[index]
    return [
        *(operator.operator_id, operator.name, metadata.uid, operator.is_fully_finished),
        stream_of(savepoint, metadata.coordinator),
        [(one.state, one.mode, one.subtask, one.elements) for one in operator.operator_state()],
        [subtask.subtask_index for subtask in operator.subtasks if subtask.is_finished],
    ]


def check(old: Savepoint, new: Savepoint, report: EditReport) -> int:
    """Hold a savepoint against the one it was made of; return how many entries it has."""
    assert len(old.operators) == len(new.operators) == len(report.operators)
    assert (old.version, old.checkpoint_id) == (new.version, new.checkpoint_id)
    count = 0
    for index, (before, after, text) in enumerate(
        zip(old.operators, new.operators, report.operators)
    ):
        assert copied(old, index) == copied(new, index)
        places = (after.max_parallelism, after.parallelism)
        found = entries_of(after)
        assert found == expected_entries(before, *places), before
        count += found.total()
        assert text.operator == before.label
        assert text.old_max_parallelism == before.max_parallelism
        assert (text.new_max_parallelism, text.parallelism) == places
        # Each entry has two lengths and its key group beside its key and value.
        framing = 8 + (1 if after.max_parallelism <= 128 else 2)
        counts: Counter[tuple[str, int]] = Counter()
        sizes: Counter[tuple[str, int]] = Counter()
        counts_of: Counter[str] = Counter()
        for entry in after.entries():
            counts_of[entry.state] += 1
            counts[entry.state, entry.subtask] += 1
            sizes[entry.state, entry.subtask] += entry.bytes + framing
        assert {(one.state, one.subtask): one.entries for one in text.written} == counts
        assert {(one.state, one.subtask): one.bytes for one in text.written} == sizes
        assert [one[2:] for one in text.states] == [
            (counts_of[one.state], 0, 0, 0) for one in text.states
        ]
    return count


def largest_parallelism(one: Point) -> int:
    return max(operator.parallelism for operator in one.read().operators)


def change(one: Point, max_parallelism: int, path: Path) -> int:
    before = digests(one.path.parent)
    least = largest_parallelism(one)
    old = one.read()
    operators = None
    if max_parallelism < least:  # operator state stays where it is
        operators = [
            operator.operator_id
            for operator in old.operators
            if not list(operator.operator_state())
            and not any(subtask.is_finished for subtask in operator.subtasks)
        ]
    parallelism = max_parallelism if max_parallelism < least else None
    if {operator.max_parallelism for operator in old.operators} - {1} == {max_parallelism}:
        report = convert_to_canonical(old, path)
    else:
        report = change_max_parallelism(old, max_parallelism, path, parallelism, operators)
    assert str(path) in str(report)
    assert digests(one.path.parent) == before
    return check(old, read_savepoint(path), report)


@pytest.mark.long
@pytest.mark.parametrize("name", some(READABLE, QUICK))
def test_max_parallelisms(name: str, tmp_path: Path) -> None:
    """Each entry, timer and window of each point; all else as it was."""
    one = point(name)
    wanted = MAX_PARALLELISMS
    if name in UNKNOWN_KEYS:
        wanted = [number for number in wanted if 128 % number == 0]
    if name in QUICK:
        wanted = [3, 129, 4096] if name == QUICK[0] else [wanted[QUICK.index(name)]]
    counts = [change(one, number, tmp_path / str(number)) for number in wanted]
    assert len(set(counts)) == 1
    print(f"{one}: {sum(counts):,} entries of {len(counts)} max parallelisms")


JOBS = [
    (one.name, number)
    for one in JOB_POINTS
    for number in {"canonical": [64, 4096], "native": [64]}.get(one.kind, [])
]
QUICK_JOBS = [("2.3.0-wincep-hashmap-canonical", 4096), ("1.20.5-sqlup-rocksdb-native", 64)]
OWN_KEYS = "keys"  # the job with keys of classes of its own, among others
OWN_VALUES = [  # Kryo's, without lengths
    *("1.20.5-keys-hashmap-native", "1.20.5-kitchen-hashmap-native"),
    "1.20.5-shop-hashmap-native",
]


@pytest.mark.parametrize(
    ("name", "max_parallelism"),
    [pytest.param(*pair, marks=[] if pair in QUICK_JOBS else pytest.mark.slow) for pair in JOBS],
)
def test_jobs(name: str, max_parallelism: int, tmp_path: Path) -> None:
    """Those of jobs as production has them; of keys that only the job hashes what can be."""
    one = job_point(name)
    assert len(JOBS) == 135
    if one.job == OWN_KEYS and max_parallelism > 128:
        with pytest.raises(SavepointError, match="hash"):
            change_max_parallelism(one.read(), max_parallelism, tmp_path / "all")
        return
    if name in OWN_VALUES:
        with pytest.raises(SavepointError, match="takes the job's own classes to read"):
            change_max_parallelism(one.read(), max_parallelism, tmp_path / "all")
        return
    count = change(one, max_parallelism, tmp_path / "new")
    print(f"{one}: {count:,} entries")


QUICK_PARALLELISMS = list(zip(QUICK, [7, None, 7, 1, 2, 128, 1]))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "parallelism"),
    [
        pytest.param(*pair, marks=[] if pair in QUICK_PARALLELISMS else pytest.mark.slow)
        for pair in product(READABLE, [None, 1, 2, 7, 128])
    ],
)
def test_convert(name: str, parallelism: int | None, tmp_path: Path) -> None:
    """At the own max parallelism, of any parallelism."""
    one = point(name)
    old = one.read()
    path = tmp_path / "savepoint"
    if parallelism is not None and any(
        subtask.is_finished for operator in old.operators for subtask in operator.subtasks
    ):
        with pytest.raises(SavepointError, match="has subtasks that are finished, and others"):
            convert_to_canonical(old, path, parallelism)
        return
    report = convert_to_canonical(old, path, parallelism)
    new = read_savepoint(path)
    assert check(old, new, report) > 0
    for before, after in zip(old.operators, new.operators):
        assert after.max_parallelism == before.max_parallelism
        has_state = any(True for _ in before.operator_state())
        expected = before.parallelism if has_state or parallelism is None else parallelism
        assert after.parallelism == expected


def canonical_streams(savepoint: Savepoint) -> dict[tuple[str, int], tuple[Any, bytes]]:
    """Return the offsets and the bytes of canonical keyed state by operator and subtask."""
    found = {}
    for operator in savepoint.metadata.operators:
        for subtask in operator.subtasks:
            handle = subtask.managed_keyed
            if isinstance(handle, KeyGroupsHandle) and handle.is_canonical:
                data = stream_of(savepoint, handle.stream)
                assert data is not None
                found[operator.operator_id, subtask.index] = (handle.offsets, data)
    return found


@pytest.mark.parametrize("flink", ["1.20.5", "2.3.0"])
def test_timers_on_the_heap(flink: str, tmp_path: Path) -> None:
    """Raw in a checkpoint of RocksDB, they become what Flink's own savepoint has."""
    convert_to_canonical(point(f"{flink}-heaptimers-checkpoint").read(), tmp_path / "new")
    new = read_savepoint(tmp_path / "new")
    timers = 0
    for operator in point(f"{flink}-heaptimers-canonical").read().operators:
        converted = new.operator(operator.operator_id)
        assert entries_of(converted) == entries_of(operator)
        timers += sum(entry.timestamp is not None for entry in converted.entries())
        for expected, task in zip(operator.tasks(), converted.tasks()):
            theirs, ours = (
                dict(zip([state.name for state in header.states], header.state_bytes))
                for header in (one.format.headers()[0] for one in (expected, task))
            )
            assert ours == theirs
    assert timers > 20


CANONICAL = [one.name for one in POINTS if one.kind == "canonical"]


@pytest.mark.parametrize(
    ("names", "streams", "is_compressed"),
    [
        pytest.param(["2.3.0-heap-canonical", "1.14.6-rocks-canonical"], 42, 0, id="some"),
        pytest.param(CANONICAL, 474, 24, id="all", marks=pytest.mark.slow),
    ],
)
def test_the_same_bytes(
    names: list[str], streams: int, is_compressed: int, tmp_path: Path
) -> None:
    """At its own max parallelism Flink's own keyed state comes out byte for byte.

    What is compressed is written without that.
    """
    same = different = 0
    for name in names:
        old = point(name).read()
        convert_to_canonical(old, tmp_path / name)
        new = canonical_streams(read_savepoint(tmp_path / name))
        for place, (offsets, data) in canonical_streams(old).items():
            if data[4]:
                different += 1
            else:
                assert new[place] == (offsets, data)
                same += 1
    assert (same, different) == (streams - is_compressed, is_compressed)


ROCKS = [
    name
    for name in CANONICAL
    if "rocks" in name and "extra" not in name and "snappy" not in name and "sql" not in name
]


@pytest.mark.parametrize("name", some(ROCKS, ["2.3.0-rocks-canonical"]))
def test_there_and_back(name: str, tmp_path: Path) -> None:
    """RocksDB's order is that of the writer: to 4096 and back its files are the same again."""
    old = point(name).read()
    groups = old.operators[0].max_parallelism
    change_max_parallelism(old, 4096, tmp_path / "wide")
    change_max_parallelism(tmp_path / "wide", groups, tmp_path / "back")
    assert canonical_streams(old)
    assert canonical_streams(read_savepoint(tmp_path / "back")) == canonical_streams(old)


# Which operators, and how many files


NOTHING_CHANGES: list[tuple[int, int | None, list[str] | None, str]] = [
    (128, None, None, r"\['by-string', 'sink'\] have it already: use"),
    (128, None, ["by-string"], r"\['by-string'\] have it already: use"),
    (128, 2, ["by-string"], r"\['by-string'\] have it already, and parallelism 2 changes none"),
    (64, None, [], "no operator is chosen: use"),
    (1, None, ["all"], r"\['all'\] have it already: use"),
]


@pytest.mark.parametrize(("groups", "parallelism", "operators", "why"), NOTHING_CHANGES)
def test_what_changes_nothing(
    groups: int, parallelism: int | None, operators: list[str] | None, why: str, tmp_path: Path
) -> None:
    """Every operator that is chosen has it; another parallelism is a change."""
    of_one = sb.operator([], max_parallelism=1, uid="all", operator_id=b"a" * 16)
    sink = sb.operator([], parallelism=4, uid="sink", operator_id=b"t" * 16)
    old = small(tmp_path / "old", [0, 100], of_one, sink)
    new = tmp_path / "new"
    message = f"new_max_parallelism {groups} changes nothing, as {why}"
    with pytest.raises(InvalidValueError, match=message):
        change_max_parallelism(old, groups, new, parallelism, operators)
    editor = SavepointWriter.from_existing_savepoint(old, new)
    with pytest.raises(InvalidValueError, match=message):
        editor.set_max_parallelism(groups, parallelism=parallelism, operators=operators)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    convert_to_canonical(old, new)
    assert check(old, read_savepoint(new), convert_to_canonical(old, tmp_path / "again")) == 2


def test_a_change_of_parallelism_alone(tmp_path: Path) -> None:
    """Of one operator is enough."""
    sink = sb.operator([], parallelism=2, uid="sink", operator_id=b"t" * 16)
    old = small(tmp_path / "old", [0, 100], sink)
    change_max_parallelism(old, 128, tmp_path / "three", parallelism=3)
    assert [one.parallelism for one in read_savepoint(tmp_path / "three").operators] == [3, 3]
    change_max_parallelism(old, 128, tmp_path / "one", 3, operators=["sink"])
    assert [one.parallelism for one in read_savepoint(tmp_path / "one").operators] == [2, 3]
    change_max_parallelism(old, 64, tmp_path / "64", operators=["sink"])
    assert [one.max_parallelism for one in read_savepoint(tmp_path / "64").operators] == [128, 64]


HEAP = point("2.3.0-heap-canonical")


def test_some_operators(tmp_path: Path) -> None:
    """By uid, name or id; the others stay as they are."""
    old = HEAP.read()
    by_int = old.operator("by-int").operator_id
    wanted = ["by-string", by_int, "EventTimeSessionWindows"]
    report = change_max_parallelism(old, 4096, tmp_path / "new", operators=wanted)
    new = read_savepoint(tmp_path / "new")
    check(old, new, report)
    moved = {one.label for one in new.operators if one.max_parallelism == 4096}
    assert moved == {"by-string", "by-int", "session"}
    assert {one.max_parallelism for one in new.operators} == {128, 4096}
    before, after = canonical_streams(old), canonical_streams(new)
    by_long = old.operator("by-long").operator_id
    for subtask in range(3):
        assert after[by_long, subtask] == before[by_long, subtask]
        assert after[BY_STRING, subtask] != before[BY_STRING, subtask]


def small(folder: Path, key_groups: list[int], *others: bytes) -> Savepoint:
    """Return a savepoint of Flink 2.3's layout with an operator of a few longs, and others."""
    entries = longs_by(keys_by_group(128, *key_groups))
    tasks = [
        sb.subtask(
            one.subtask,
            managed_keyed=sb.canonical(one.first, one.offsets, sb.inline(one.content)),
        )
        for one in expected_files(STRINGS, [COUNT], entries, 128, 2)
    ]
    item = bytes.fromhex(BY_STRING)
    keyed = sb.operator(tasks, parallelism=2, operator_id=item, uid="by-string")
    return read_savepoint(sb.write(folder, [keyed, *others]))


def test_operators_that_cannot_be_parallel(tmp_path: Path) -> None:
    """As of windowAll: a max parallelism of 1 stays, unless it is asked for."""
    task = sb.subtask(managed_keyed=sb.canonical(0, [0], sb.inline(header())))
    one = sb.operator([task], max_parallelism=1, uid="all", operator_id=b"a" * 16)
    old = small(tmp_path / "old", [0, 100], one)
    change_max_parallelism(old, 256, tmp_path / "new")
    assert [op.max_parallelism for op in read_savepoint(tmp_path / "new").operators] == [256, 1]
    change_max_parallelism(old, 256, tmp_path / "all", operators=["all"])
    assert [op.max_parallelism for op in read_savepoint(tmp_path / "all").operators] == [128, 256]


def header() -> bytes:
    return sb.keyed_header(STRINGS.snapshot, [COUNT.header])


@pytest.mark.parametrize("parallelism", [None, 1, 2, 3, 64, 200])
@pytest.mark.parametrize("max_parallelism", [200, 1000])
def test_parallelism(parallelism: int | None, max_parallelism: int, tmp_path: Path) -> None:
    """Of operators without operator state; those with it, and their finished subtasks, stay."""
    listed = sb.meta_info("list", 1, {}, {"VALUE_SERIALIZER": sb.simple("Int")})
    start = sb.operator_header([listed], [])
    state = sb.operator_state([("list", 0, [len(start)])], sb.inline(start + sb.i32(5)))
    source = sb.operator(
        [sb.subtask(1, managed_operator=state), sb.i32(-1)],  # subtask 0 is finished
        parallelism=2,
        uid="source",
        operator_id=b"s" * 16,
    )
    sink = sb.operator([], parallelism=4, uid="sink", operator_id=b"t" * 16)
    old = small(tmp_path / "old", [0, 63, 64, 127], source, sink)
    report = change_max_parallelism(old, max_parallelism, tmp_path / "new", parallelism)
    new = read_savepoint(tmp_path / "new")
    assert check(old, new, report) == 4
    assert [one.max_parallelism for one in new.operators] == [max_parallelism] * 3
    assert [one.parallelism for one in new.operators] == [parallelism or 2, 2, parallelism or 4]


def test_key_groups_of_unknown_keys(tmp_path: Path) -> None:
    """They are those of before, modulo a divisor: in the index the old ones are Flink's."""
    old = point("2.3.0-pojo-canonical").read()
    change_max_parallelism(old, 32, tmp_path / "new")
    new = read_savepoint(tmp_path / "new").operator("pojo")
    groups = Counter(entry.key_group % 32 for entry in old.operator("pojo").entries())
    assert Counter(entry.key_group for entry in new.entries()) == groups


def test_keys_of_a_class_that_cannot_be_read(tmp_path: Path) -> None:
    """A POJO of a subclass; its bytes are those of before."""
    pojo = sb.pojo_of("A", {"id": sb.simple("Int")})
    head = sb.keyed_header(pojo, [sb.state("count", "VALUE", sb.simple("Long"))])
    keys = [b"\4" + bytes([number]) for number in range(3)]  # 4 says: of a subclass
    group = sb.canonical_key_group([(0, [(b"\x63" + key + b"\0", sb.i64(7)) for key in keys])])
    offsets = [0] * 128
    offsets[0x63] = len(head)
    task = sb.subtask(managed_keyed=sb.canonical(0, offsets, sb.inline(head + group)))
    old = read_savepoint(sb.write(tmp_path / "old", [sb.operator([task], uid="a")]))
    change_max_parallelism(old, 64, tmp_path / "new")
    (handle,) = read_savepoint(tmp_path / "new").operators[0].tasks()[0].handles
    assert isinstance(handle, KeyGroupsHandle)
    assert handle.offsets[0x23] == len(head)
    moved = [(b"\x23" + key + b"\0", sb.i64(7)) for key in keys]
    content = stream_of(read_savepoint(tmp_path / "new"), handle.stream)
    assert content == head + sb.canonical_key_group([(0, moved)])


# The report


def test_report(tmp_path: Path) -> None:
    path = tmp_path / "new"
    old = small(tmp_path / "old", [0, 63, 64, 127], sb.operator([], uid="sink", max_parallelism=1))
    report = change_max_parallelism(old, 4096, path, parallelism=3)
    assert report.path == str(path)
    written = report.operators[0].written
    sizes = sum(one.bytes for one in written)
    assert str(report).splitlines() == [
        f"savepoint: {path}",
        "by-string: written anew, max parallelism 128 -> 4096",
        f"  count: 4 entries, {sizes} bytes, in {len(written)} subtasks",
        "sink: copied as it is",
        "set max parallelism in the job, to 4096: where it is not set, a new operator in the "
        "chain can make Flink lose keyed state",
    ]
    stateless = read_savepoint(sb.write(tmp_path / "none", [sb.operator([], uid="sink")]))
    report = convert_to_canonical(stateless, tmp_path / "other")
    assert str(report).splitlines()[1:] == ["sink: copied as it is"]


# Tasks


@pytest.mark.parametrize("name", ["2.3.0-heap-native", "2.3.0-rocksresc-checkpoint"])
def test_tasks(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickled they read and write what they do here, in any order, and once more if asked."""
    old = point(name).read()

    def write(operator: EditedKeyedState) -> None:
        tasks: list[EditTask] = pickle.loads(pickle.dumps(operator.tasks))
        entries = sorted(entry for task in tasks for entry in task.entries())
        for subtask in reversed(range(operator.parallelism)):
            task = pickle.loads(pickle.dumps(operator.task(subtask)))
            part = [one for one in entries if one.key_group in task.key_groups]
            task.write(part)  # It stands for a first try.
            if part:
                operator.add(pickle.loads(pickle.dumps(task.write(part))))

    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.set_max_parallelism(256)
        monkeypatch.setattr(editor, "_write_keyed_state", write)
    change_max_parallelism(old, 256, tmp_path / "expected")
    expected = canonical_streams(read_savepoint(tmp_path / "expected"))
    assert canonical_streams(read_savepoint(tmp_path / "new")) == expected
    assert len(list((tmp_path / "new").iterdir())) == len(list((tmp_path / "expected").iterdir()))


# Timers on the heap, beside RocksDB


def test_raw_state_without_timers(tmp_path: Path) -> None:
    """An operator that uses none has raw state all the same: the managed one says its keys."""
    data = sb.keyed_header(sb.simple("String"), [sb.state("s", "VALUE", sb.simple("Long"))])
    group = assign_to_key_group("a", 128, STRING)
    entry = (bytes([group]) + b"\2a\0", sb.i64(5))
    keyed = sb.canonical(
        group, [len(data)], sb.inline(data + sb.canonical_key_group([(0, [entry])]))
    )
    raw = sb.native(group, [0], sb.inline(NO_TIMERS, "raw"))
    subtasks = [sb.subtask(managed_keyed=keyed, raw_keyed=raw)]
    alone = [sb.subtask(raw_keyed=raw)]
    operators = [
        sb.operator(tasks, uid=uid, operator_id=bytes.fromhex(OperatorId.of_uid(uid)))
        for uid, tasks in (("by-user", subtasks), ("stateless", alone))
    ]
    old = read_savepoint(sb.write(tmp_path / "old", operators))
    change_max_parallelism(old, 4096, tmp_path / "moved")
    convert_to_canonical(old, tmp_path / "canonical")
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "edited") as editor:
        editor.operator("by-user").map_entries("s", lambda entry: entry.value)
        with pytest.raises(InvalidValueError, match="state must be of stateless, which has none"):
            editor.operator("stateless").remove_state("s")
    for name in ("moved", "canonical", "edited"):
        by_user, stateless = read_savepoint(tmp_path / name).operators
        assert [(entry.key, entry.value) for entry in by_user.entries()] == [("a", 5)]
        assert list(stateless.entries()) == []


# Version 2 of `_metadata`, of Flink before 1.11


def told(savepoint: Savepoint) -> list[object]:
    """Return all that a savepoint holds but the names of files."""
    return [
        (
            *(operator.operator_id, operator.parallelism, operator.max_parallelism),
            [*map(str, operator.states), *map(repr, operator.operator_state())],
            sorted(map(repr, operator.entries())),
        )
        for operator in savepoint.operators
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", ["1.14.6-heap-canonical", "1.14.6-rocks-canonical"])
def test_version_2_of_metadata(name: str, tmp_path: Path) -> None:
    """What is written of it is the same as of version 3, which Flink restores."""
    newer = point(name).read()
    assert newer.version == 3
    old = tmp_path / "old"
    shutil.copytree(point(name).path, old)
    (old / "_metadata").write_bytes(as_version_2(newer.metadata))
    older = read_savepoint(old)
    assert older.version == 2
    assert told(older) == told(newer)

    def edited(savepoint: Savepoint, path: Path) -> None:
        with SavepointWriter.from_existing_savepoint(savepoint, path) as editor:
            editor.operator("by-string").delete_keys(["user-1"])
            editor.change_operator_identifier("by-long", "by-number")

    def merged(savepoint: Savepoint, path: Path) -> None:
        with SavepointWriter.from_existing_savepoint(savepoint, path) as editor:
            editor.add_operator_from(savepoint, "by-string", "again")

    verbs: dict[str, Callable[[Savepoint, Path], object]] = {
        "moved": lambda savepoint, path: change_max_parallelism(savepoint, 256, path),
        "canonical": convert_to_canonical,
        "edited": edited,
        "merged": merged,
    }
    for verb, call in verbs.items():
        call(older, tmp_path / verb)
        call(newer, tmp_path / f"{verb}-3")
        of_older, of_newer = (read_savepoint(tmp_path / item) for item in (verb, f"{verb}-3"))
        assert (of_older.version, of_older.checkpoint_id) == (3, newer.checkpoint_id)
        assert told(of_older) == told(of_newer)
        assert told(of_older)


def test_operators_without_state_that_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a job chains one to an operator that was changed, both have to have the same."""
    data = sb.keyed_header(sb.simple("String"), [sb.state("s", "VALUE", sb.simple("Long"))])
    group = assign_to_key_group("a", 128, STRING)
    entry = (bytes([group]) + b"\2a\0", sb.i64(5))
    keyed = sb.inline(data + sb.canonical_key_group([(0, [entry])]))
    listed = sb.meta_info("list", 1, {}, {"VALUE_SERIALIZER": sb.simple("Int")})
    start = sb.operator_header([listed], [])
    held = sb.operator_state([("list", 0, [len(start)])], sb.inline(start + sb.i32(1)))
    subtasks = {
        "by-user": [sb.subtask(managed_keyed=sb.canonical(group, [len(data)], keyed))],
        "map": [],
        "filter": [sb.subtask()],
        "list": [sb.subtask(managed_operator=held)],
        "single": [],
    }
    operators = [
        sb.operator(
            tasks,
            uid=uid,
            operator_id=bytes.fromhex(OperatorId.of_uid(uid)),
            max_parallelism=1 if uid == "single" else 128,
        )
        for uid, tasks in subtasks.items()
    ]
    old = read_savepoint(sb.write(tmp_path / "old", operators))
    report = change_max_parallelism(old, 4096, tmp_path / "new", operators=["by-user"])
    assert report.left == ("map", "filter")
    reports = (
        "operators without state keep their max parallelism: map, filter; where the job has an"
    )
    for text in (str(report), report._repr_html_()):
        assert reports in text
    both = ["by-user", "map"]
    assert change_max_parallelism(old, 4096, tmp_path / "b", operators=both).left == ("filter",)
    assert change_max_parallelism(old, 4096, tmp_path / "all").left == ()
    assert convert_to_canonical(old, tmp_path / "canonical").left == ()
    arguments = ["--set-max-parallelism", "4096", "--operator", "by-user", "--json"]
    output = ["--output", str(tmp_path / "command")]
    assert main(["savepoint", str(tmp_path / "old"), *arguments, *output]) == 0
    assert json.loads(capsys.readouterr().out)["left"] == ["map", "filter"]


def test_many_operators_that_are_left() -> None:
    labels = tuple(f"map {number}" for number in range(30))
    assert "map 9 and 20 more; where" in str(EditReport("/new", (), labels))
