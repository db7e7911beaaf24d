"""What a user asks of a savepoint: its operators, where its files are, and bad arguments."""

from __future__ import annotations

import ast
import io
import pickle
import re
import shutil
import subprocess
import sys
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point, true_entries
from support.html_tables import shown
from support.inside.savepoints import files as files_module

import keygroups
from keygroups import KeyGroupLoad, KeyGroupRange, RescalePlan
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    RestoreWarning,
    SavepointError,
)
from keygroups.savepoint import (
    Operator,
    Savepoint,
    SavepointWriter,
    Subtask,
    ValueStateDescriptor,
    change_max_parallelism,
    read_savepoint,
)
from keygroups.types import LONG, STRING

HEAP = point("2.3.0-heap-canonical")
FILES = point("2.3.0-files-canonical")
INCREMENTAL = point("2.3.0-rocksinc-checkpoint")
OLD = point("1.20.5-heap-canonical")


def test_what_one_process_does_names_spark() -> None:
    """Where it may take too long, or all of a state is in memory."""
    source = Path(keygroups.__file__).parent / "spark" / "__init__.py"
    (of_spark,) = (
        {element.value for element in node.value.elts if isinstance(element, ast.Constant)}
        for node in ast.parse(source.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    )
    reads = (Operator.entries, Operator.to_arrow_batch_reader, Operator.to_arrow)
    functions: dict[Any, str] = {
        **dict.fromkeys((*reads, Operator.to_pandas, Operator.to_polars), "read_keyed_state"),
        Operator.key_sizes: "key_sizes",
        Savepoint.compare: "compare_savepoints",
        Savepoint.differences: "compare_savepoints",
        change_max_parallelism: "change_max_parallelism",
        SavepointWriter.from_existing_savepoint: "edit_savepoint",
    }
    for function, name in functions.items():
        assert name in of_spark
        assert f"`keygroups.spark.{name}`" in (function.__doc__ or "")


def test_savepoint() -> None:
    savepoint = HEAP.read()
    assert (savepoint.version, savepoint.checkpoint_id) == (6, 2)
    assert savepoint.kind == "canonical savepoint"
    assert repr(savepoint) == f"<Savepoint {HEAP.path}>"
    first, headings, *rows, advice = str(savepoint).splitlines()
    assert advice.startswith("set max parallelism in the job, to 128: ")
    assert first == f"canonical savepoint 2, 25 operators: {HEAP.path}"
    assert headings.split()[:4] == ["operator", "parallelism", "max", "bytes"]
    assert len(rows) == 25
    (by_string,) = (row.split() for row in rows if row.startswith("by-string "))
    in_use = {entry[4] for entry in true_entries(HEAP.entries) if entry[0] == BY_STRING}
    assert by_string[1:3] == ["3", "128"]
    assert by_string[4] == str(len(in_use))


BY_STRING = "43c502db369b106061a4c7c72c012f5f"


def test_operators() -> None:
    """By uid, by name, by id; in 1.20, which stored neither, by what the caller knows."""
    savepoint = HEAP.read()
    by_string = savepoint.operator("by-string")
    assert by_string is savepoint.operator(BY_STRING)
    assert (by_string.uid, by_string.label) == ("by-string", "by-string")
    assert repr(by_string) == "<Operator by-string>"
    assert savepoint.operator("EventTimeSessionWindows").uid == "session"
    old = OLD.read()
    assert old.operator(BY_STRING).label == BY_STRING
    assert old.operator("by-string").uid == "by-string"
    assert old.operator(BY_STRING).label == "by-string"
    with pytest.raises(InvalidValueError, match=r"operator must be an operator's uid.*got 'no'"):
        old.operator("no")
    with pytest.raises(InvalidValueError, match=r"one operator by its uid.*got 'Sink: Unnamed'"):
        savepoint.operator("Sink: Unnamed")
    wrong: Any = 5
    with pytest.raises(InvalidTypeError, match="operator must be a str, got 5"):
        savepoint.operator(wrong)


def test_uids() -> None:
    """Those that Flink 2.3 stored of the same job; its operators without one have no uid."""
    uids = {one.operator_id: one.uid for one in HEAP.read().operators if one.uid}
    old = read_savepoint(OLD.path, uids=iter(uids.values()))
    assert {one.operator_id: one.uid for one in old.operators if one.uid} == uids
    assert uids[BY_STRING] == "by-string"
    assert len(uids) < len(old.operators)
    assert "by-string" in str(old)
    assert {one.uid for one in read_savepoint(OLD.path, uids=[]).operators} == {None}
    assert "uids=[...]" in str(read_savepoint(OLD.path))
    assert "uids=[...]" not in str(old)


def test_uids_that_no_operator_has() -> None:
    """The report names them, as far as there is room; one that is there twice is refused."""
    wrong: Any
    numbers = ", ".join(repr(str(number)) for number in range(10))
    found = read_savepoint(OLD.path, uids=["by-string", *map(str, range(12))])
    assert found.operator("by-string").uid == "by-string"
    assert found.unknown_uids == tuple(map(str, range(12)))
    warning = f"warning: no operator has the uids {numbers} and 2 more"
    assert warning in str(found).splitlines()
    assert "warning: no operator has the uids '7'" in str(read_savepoint(OLD.path, uids=["7"]))
    assert "warning" not in str(read_savepoint(OLD.path, uids=["by-string"]))
    for wrong in (["0", "0"], ["by-string", "by-string"]):
        with pytest.raises(InvalidValueError, match=f"uids must differ, got '{wrong[0]}' twice"):
            read_savepoint(OLD.path, uids=wrong)
    with pytest.raises(InvalidValueError, match="got more than 1,000 that no operator has, such"):
        read_savepoint(OLD.path, uids=map(str, count()))
    with pytest.raises(InvalidValueError, match=rf"got {numbers} and 2 more, which no operator"):
        SavepointWriter.from_existing_savepoint(OLD.path, "/new", uids=map(str, range(12)))
    for wrong in ("by-string", 5):
        with pytest.raises(InvalidTypeError, match="uids must be an iterable of str, got"):
            read_savepoint(OLD.path, uids=wrong)
    wrong = ["by-string", b"by-string"]
    with pytest.raises(InvalidTypeError, match="uid in uids must be a str, got b'by-string'"):
        read_savepoint(OLD.path, uids=wrong)


def test_a_stored_uid_finds_its_operator(tmp_path: Path) -> None:
    """One of another id too, as `setUidHash` gives."""
    operators = [sb.operator([], uid="a"), sb.operator([], operator_id=b"b" * 16)]
    savepoint = read_savepoint(sb.write(tmp_path, operators))
    assert savepoint.operator("a") is savepoint.operators[0]


def test_subtasks() -> None:
    operator = HEAP.read().operator("by-string")
    ranges = [KeyGroupRange(0, 42), KeyGroupRange(43, 85), KeyGroupRange(86, 127)]
    sizes = [
        line["stream"]["size"]
        for line in HEAP.truth("metadata")
        if line["record"] == "managed_keyed" and line["operator"] == BY_STRING
    ]
    assert [one.key_groups for one in operator.subtasks] == ranges
    assert sorted(one.bytes for one in operator.subtasks) == sorted(sizes)
    assert [one.subtask_index for one in operator.subtasks] == [0, 1, 2]
    sources = HEAP.read().operator("offsets")
    assert {one.key_groups for one in sources.subtasks} == {None}
    assert sources.subtasks[0].bytes > 0
    assert isinstance(sources.subtasks[0], Subtask)


def test_finished() -> None:
    extra = point("2.3.0-extraheap-checkpoint").read()
    assert extra.operator("src-finished").is_fully_finished
    assert extra.operator("src-finished").subtasks == ()
    (half,) = extra.operator("src-half-finished").subtasks
    assert half.is_finished
    assert half.key_groups is None


def test_load_and_plan() -> None:
    """The bytes of key groups go where loads go."""
    operator = HEAP.read().operator("by-string")
    load = operator.key_group_bytes()
    assert isinstance(load, KeyGroupLoad)
    assert load.imbalance(3) >= 1
    assert RescalePlan(128, 3, 4).moved_weight(load) > 0
    rocks = INCREMENTAL.read().operator("by-string")
    weights = rocks.key_group_bytes().weights
    sizes: dict[int, int] = {}
    for entry in rocks.entries():
        sizes[entry.key_group] = sizes.get(entry.key_group, 0) + entry.bytes
    assert {group: weight for group, weight in enumerate(weights) if weight} == sizes


def test_a_line_without_its_file(tmp_path: Path) -> None:
    """The hashmap backend's own format takes the header to tell what is in use."""
    one = point("2.3.0-files-checkpoint")
    (tmp_path / "_metadata").write_bytes((one.path / "_metadata").read_bytes())
    lines = str(read_savepoint(tmp_path)).splitlines()
    (by_string,) = (line.split() for line in lines if line.startswith("by-string "))
    assert by_string[-2:] == ["-", "-"]
    assert by_string[3] != "0"


def test_entries_of_some() -> None:
    operator = HEAP.read().operator("by-string")
    true = [entry for entry in true_entries(HEAP.entries) if entry[0] == BY_STRING]
    groups = sorted({entry[4] for entry in true})[:2]
    found = list(operator.entries(["count", "visits"], groups))
    expected = [one for one in true if one[2] in ("count", "visits") and one[4] in groups]
    assert len(found) == len(expected) > 0
    assert [entry.key_group for entry in found] == sorted(entry.key_group for entry in found)
    assert list(operator.entries([])) == []
    assert list(operator.entries(None, [])) == []


def test_tasks_can_be_pickled() -> None:
    operator = HEAP.read().operator("by-string")
    tasks = pickle.loads(pickle.dumps(operator.tasks()))
    assert [list(task.entries()) for task in tasks] == [
        list(task.entries()) for task in operator.tasks()
    ]


def test_key_sizes() -> None:
    """Against a sum over all entries."""
    operator = HEAP.read().operator("by-string")
    sizes: dict[str, list[int]] = {}
    for entry in operator.entries():
        size = sizes.setdefault(entry.key, [0, 0])
        size[0] += 1
        size[1] += entry.bytes
    (first, *_), more = operator.key_sizes(1), operator.key_sizes(1000)
    assert first.bytes == max(size for _, size in sizes.values())
    assert {one.key: [one.entries, one.bytes] for one in more} == sizes
    assert [one.bytes for one in more] == sorted((one.bytes for one in more), reverse=True)
    assert len(operator.key_sizes()) == 10


def test_keys_that_are_equal_in_python_only(tmp_path: Path) -> None:
    """0.0 and -0.0 are two keys of Flink's."""
    data = sb.keyed_header(sb.simple("Double"), [sb.state("count", "VALUE", sb.simple("Long"))])
    entries = [(b"\0" + sign + bytes(8), sb.i64(1)) for sign in (b"\0", b"\x80")]
    content = sb.canonical_key_group([(0, entries)])
    keyed = sb.canonical(0, [len(data)], sb.inline(data + content))
    operators = [sb.operator([sb.subtask(managed_keyed=keyed)])]
    (operator,) = read_savepoint(sb.write(tmp_path, operators)).operators
    assert sorted(str(one.key) for one in operator.key_sizes()) == ["-0.0", "0.0"]


def test_check_restore() -> None:
    savepoint = HEAP.read()
    with pytest.warns(RestoreWarning, match="to 128: where it is not set"):
        assert savepoint.check_restore("by-string", 128) == 128
    assert savepoint.check_restore(savepoint.operator("by-string"), 4, 128) == 128
    with pytest.raises(ParallelismError):
        savepoint.check_restore("by-string", 129)


def test_states() -> None:
    operator = HEAP.read().operator("by-string")
    assert {state.key_type for state in operator.states} == {STRING}
    assert operator.states is operator.states
    assert HEAP.read().operator("offsets").states == ()


BAD: list[tuple[Any, type[KeyGroupsError], str]] = [
    (lambda op: op.entries(["no"]), InvalidValueError, r"states must be of by-string, .*'no'"),
    (lambda op: op.entries("count"), InvalidTypeError, "states must be an iterable of names"),
    (lambda op: op.entries([5]), InvalidTypeError, "state must be a str, got 5"),
    (lambda op: op.entries(None, [128]), InvalidValueError, "key group must be .* got 128"),
    (lambda op: op.entries(None, [-1]), InvalidValueError, "key group must be .* got -1"),
    (lambda op: op.entries(None, ["a"]), InvalidTypeError, "key group must be .* got 'a'"),
    (lambda op: op.entries(None, 5), InvalidTypeError, "key_groups must be an iterable of ints"),
    (lambda op: op.entries(None, [5] * 129), InvalidValueError, "key_groups must be at most 128"),
    (lambda op: op.key_sizes(0), InvalidValueError, "top must be from 1 to 2147483647, got 0"),
    (lambda op: op.key_sizes("a"), InvalidTypeError, "top must be .* got 'a'"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_arguments(number: int) -> None:
    call, error, message = BAD[number]
    with pytest.raises(error, match=message):
        call(HEAP.read().operator("by-string"))


def test_states_without_end() -> None:
    with pytest.raises(InvalidValueError, match="states must be at most 13 names"):
        HEAP.read().operator("by-string").entries(repeat("count"))
    with pytest.raises(InvalidValueError, match="at most 20 names, all that either side has"):
        HEAP.read().compare(HEAP.read(), states=repeat("count"))


def test_states_of_an_operator_without_any() -> None:
    with pytest.raises(InvalidValueError, match="which has none, got 'count'"):
        HEAP.read().operator("offsets").entries(["count"])


def test_bad_paths() -> None:
    untyped: Any = read_savepoint
    for path in (5, b"bytes", None):
        with pytest.raises(InvalidTypeError, match="path must be a str or a path"):
            untyped(path)
    with pytest.raises(InvalidTypeError, match="moved must be a mapping of paths, got 5"):
        untyped("a", 5)
    with pytest.raises(InvalidTypeError, match="path in moved must be a str, got 5"):
        untyped("a", {5: "b"})
    with pytest.raises(InvalidTypeError, match="path in moved must be a str or a path, got 5"):
        untyped("a", {"b": 5})
    with pytest.raises(SavepointError, match="no/such/_metadata: cannot be opened"):
        read_savepoint("no/such")
    with pytest.raises(SavepointError, match="cannot be opened"):
        read_savepoint("nul\0byte")


# Where files are


def same(savepoint: Savepoint, uid: str = "by-string") -> bool:
    entries = {entry.key for entry in savepoint.operator(uid).entries()}
    return entries == {entry.key for entry in FILES.read().operator(uid).entries()}


def test_ways_to_a_savepoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder, its file, a URL of either; relative to where one is."""
    path = FILES.path
    for way in (path, f"{path}/", path / "_metadata", path.as_uri(), f"{path.as_uri()}/_metadata"):
        assert same(read_savepoint(way))
    monkeypatch.chdir(path)
    for way in (".", "_metadata", "./_metadata"):
        assert same(read_savepoint(way))


def test_quoted_urls(tmp_path: Path) -> None:
    folder = tmp_path / "a b%c"
    shutil.copytree(FILES.path, folder)
    assert same(read_savepoint(folder))
    assert same(read_savepoint(folder.as_uri()))


def test_fsspec() -> None:
    """Any file system, here one in memory."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in FILES.path.iterdir():
        with memory.open(f"/savepoint-ab12/{path.name}", "wb") as file:
            file.write(path.read_bytes())
    assert same(read_savepoint("memory://savepoint-ab12"))
    assert same(read_savepoint("memory://savepoint-ab12/_metadata"))
    with pytest.raises(SavepointError, match="memory://other/_metadata: cannot be opened"):
        read_savepoint("memory://other")
    with pytest.raises(KeyGroupsError, match="fsspec knows no nosuch://, nor any package for it"):
        read_savepoint("nosuch://a")


def test_fsspec_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(KeyGroupsError, match=r"fsspec: pip install 'keygroups\[savepoint\]'"):
        read_savepoint("memory://savepoint")


def test_moved(tmp_path: Path) -> None:
    """The files of a checkpoint are where it says, unless it is told that they moved."""
    one = point("2.3.0-merged-checkpoint")
    expected = len(list(one.read().operator("by-string").entries()))
    assert expected > 0
    ((old, new),) = one.moved.items()
    message = rf"is not in the savepoint: pass allow=\['{re.escape(old)}"
    with pytest.raises(SavepointError, match=message):
        list(read_savepoint(one.path).operator("by-string").entries())
    for prefix in (old, f"{old}/", f"file:{old}"):
        for place in (new, f"{new}/", Path(new), Path(new).as_uri()):
            moved: Any = {"/other": str(tmp_path), prefix: place}
            found = read_savepoint(one.path, moved).operator("by-string").entries()
            assert len(list(found)) == expected
    with pytest.raises(SavepointError, match="is not in the savepoint"):  # no part of a name
        list(read_savepoint(one.path, {old[:-1]: new}).operator("by-string").entries())


def test_moved_files_of_their_own(tmp_path: Path) -> None:
    """A path may be all of a file's, or have the scheme of a URL and quoted characters."""
    header = sb.keyed_header(sb.simple("Int"), [])
    (tmp_path / "here").write_bytes(header)
    for path, prefix in (("/a/b", "/a/b"), ("s3://a/b%20c", "/a/b c"), ("s3://a/b", "s3://a/b")):
        keyed = sb.canonical(0, [0], sb.absolute(path, len(header)))
        sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)])])
        (operator,) = read_savepoint(tmp_path, {prefix: str(tmp_path / "here")}).operators
        assert operator.states == ()
    with pytest.raises(SavepointError, match=f"^{re.escape(str(tmp_path))}/none/b: cannot"):
        assert read_savepoint(tmp_path, {"s3://a/": f"{tmp_path}/none/"}).operators[0].states


def keyed_in(stream: bytes, folder: Path) -> Operator:
    keyed = sb.canonical(0, [0], stream)
    sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    (operator,) = read_savepoint(folder).operators
    return operator


@pytest.mark.parametrize(
    "path", ["../secret", "a/../../secret", "..", "/etc/passwd", "", ".", "a\\..\\secret"]
)
def test_paths_outside(path: str, tmp_path: Path) -> None:
    """A relative path names a file in the savepoint's own folder, and is not opened otherwise."""
    (tmp_path / "secret").write_bytes(bytes(100))
    operator = keyed_in(sb.relative(path, 50), tmp_path / "savepoint")
    with pytest.raises(SavepointError, match="is not in the savepoint"):
        _ = operator.states


def test_missing_and_short_files(tmp_path: Path) -> None:
    operator = keyed_in(sb.relative("data", 50), tmp_path)
    with pytest.raises(SavepointError, match=r"/data: cannot be opened: .*No such file"):
        _ = operator.states
    (tmp_path / "data").write_bytes(bytes(49))
    with pytest.raises(SavepointError, match=r"/data: the file has 49 bytes, its handle says 50$"):
        _ = operator.states
    (tmp_path / "data").unlink()
    (tmp_path / "data").mkdir()
    with pytest.raises(SavepointError, match="/data: cannot be opened: it is no regular file"):
        _ = operator.states


def test_segments(tmp_path: Path) -> None:
    """From somewhere in a file on, which has more in it after the segment too."""
    header = sb.keyed_header(sb.simple("Int"), [])
    (tmp_path / "all").write_bytes(b"before" + header + b"after")
    stream = sb.segment(f"file:{tmp_path}/all", 6, len(header))
    assert keyed_in(stream, tmp_path).states == ()


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong while reading is a SavepointError too, with the offset."""

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError("the disk is gone")

    operator = keyed_in(sb.relative("data", 50), tmp_path)
    (tmp_path / "data").write_bytes(bytes(50))
    monkeypatch.setattr(files_module, "_opened", lambda name, path: Broken())
    with pytest.raises(SavepointError, match="data, offset 0: the disk is gone"):
        _ = operator.states


def test_reads_beyond_a_stream(tmp_path: Path) -> None:
    """A stream ends where it is said to end, whatever else is in its file."""
    (tmp_path / "data").write_bytes(bytes(99))
    keyed = sb.rocksdb(0, 1, sb.segment(f"{tmp_path}/data", 0, 3))
    sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    (operator,) = read_savepoint(tmp_path).operators
    with pytest.raises(
        SavepointError, match=r"data, offset 0: 4 bytes were to follow, and 3 are left"
    ):
        _ = operator.states


def test_raw_and_managed_of_other_key_groups(tmp_path: Path) -> None:
    """Each is read where it has key groups, together key group by key group."""
    header = sb.keyed_header(sb.simple("Int"), [sb.state("c", "VALUE", sb.simple("Int"))])
    parts = {
        group: sb.canonical_key_group([(0, [(bytes([group]) + sb.i32(7) + b"\0", sb.i32(group))])])
        for group in (0, 2)
    }
    offsets = [len(header), 0, len(header) + len(parts[0])]
    managed = sb.canonical(0, offsets, sb.inline(header + parts[0] + parts[2]))
    timers = b"\xf1\xcd\x85\x9f" + sb.i32(2, 1) + sb.utf("t") + sb.simple("Int") + sb.NONE
    timers += sb.i32(1, 7) + b"\0" + sb.i64(9) + sb.i32(0)
    raw = sb.native(1, [0], sb.inline(timers))
    task = sb.subtask(managed_keyed=managed, raw_keyed=raw)
    (operator,) = read_savepoint(sb.write(tmp_path, [sb.operator([task])])).operators
    assert [entry.key_group for entry in operator.entries()] == [0, 1, 2]
    assert [entry.key_group for entry in operator.entries(None, [1, 2])] == [1, 2]


# What it needs


def test_local_files_need_no_library(tmp_path: Path) -> None:
    """None of those that the extra brings; nor what the adapter needs."""
    data = sb.keyed_header(sb.simple("Int"), [sb.state("c", "VALUE", sb.simple("Int"))])
    content = sb.canonical_key_group([(0, [(b"\0" + sb.i32(7) + b"\0", sb.i32(5))])])
    keyed = sb.canonical(0, [len(data)], sb.inline(data + content))
    sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    code = (
        "import sys\n"
        "for name in ('fsspec', 'cramjam', 'google_crc32c', 'xxhash', 'numpy', 'pyspark'):\n"
        "    sys.modules[name] = None\n"
        "from keygroups.savepoint import read_savepoint\n"
        "(operator,) = read_savepoint(sys.argv[1]).operators\n"
        "print([entry.value for entry in operator.entries()])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "[5]\n"


def test_nothing_is_imported_before_it_is_needed() -> None:
    """The libraries by the reader, and the reader by the core."""
    code = (
        "import sys, keygroups, keygroups.state_keys, keygroups.rescale\n"
        "print(any(name.startswith('keygroups.savepoint') for name in sys.modules))\n"
        "import keygroups.savepoint\n"
        "print({'fsspec', 'cramjam', 'google_crc32c', 'xxhash', 'numpy', 'pyspark'}"
        " & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\nset()\n"


@pytest.mark.parametrize(
    "passed",
    [
        {"moved": {}},
        {"uids": []},
        {"allow": []},
        {"serializers": {}},
        {"progress": False},
        {"moved": {}, "progress": False},
    ],
)
def test_what_a_savepoint_was_read_with(passed: dict[str, Any], tmp_path: Path) -> None:
    """It is for `read_savepoint` alone, whatever it is."""
    message = f"^{' and '.join(passed)} must be left out for a Savepoint"
    with pytest.raises(InvalidValueError, match=message):
        SavepointWriter.from_existing_savepoint(HEAP.read(), tmp_path / "new", **passed)


def test_operators_to_verify() -> None:
    savepoint = HEAP.read()
    with pytest.raises(
        InvalidTypeError, match=r"^operators must be an iterable of names, got 'a'"
    ):
        savepoint.verify("a")
    with pytest.raises(InvalidTypeError, match=r"^operator must be a str, got 5"):
        savepoint.verify([5])  # type: ignore[list-item]  # A user may do so.


def test_uids_are_asked_for_where_no_operator_has_a_name(tmp_path: Path) -> None:
    """One name is enough, and without operators none is asked for."""
    unnamed, named, labelled = (
        sb.operator([], operator_id=bytes([number]) * 16, uid=uid, name=name)
        for number, (uid, name) in enumerate([("", ""), ("", "map"), ("u", "")])
    )
    for number, (operators, is_asked_for) in enumerate(
        [([], False), ([unnamed], True), ([unnamed, named], False), ([labelled, unnamed], False)]
    ):
        savepoint = read_savepoint(sb.write(tmp_path / str(number), operators))
        assert ("uids=[...]" in str(savepoint)) is is_asked_for


def test_a_notebook_shows_what_text_does() -> None:
    """The headline first, then the tables, then advice."""
    savepoint = HEAP.read()
    lines = str(savepoint).splitlines()
    assert shown(savepoint).paragraphs == [lines[0], lines[-1]]


def test_key_groups_that_an_operator_does_not_have(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "s") as writer:
        states = [ValueStateDescriptor("cnt", LONG)]
        writer.add_operator("by-user", STRING, states, 128, 1).write("cnt", "x", 1)
    operator = read_savepoint(tmp_path / "s").operator("by-user")
    assert len([*operator.entries(key_groups=range(128))]) == 1
    for key_groups, says in [
        ([128], "key group must be from 0 to 127, got 128"),
        ([-1], "key group must be from 0 to 127, got -1"),
        ([0] * 129, "key_groups must be at most 128 ints, all that by-user has, got more"),
    ]:
        with pytest.raises(InvalidValueError, match=says):
            operator.entries(key_groups=key_groups)


def test_operators_that_are_no_names(tmp_path: Path) -> None:
    says = "^operators must be an iterable of names, got 5$"
    with pytest.raises(InvalidTypeError, match=says):
        change_max_parallelism(HEAP.path, 64, tmp_path / "new", operators=5)  # type: ignore[arg-type]
