"""Operators that are removed, renamed, copied and merged; all else stays as Flink wrote it."""

from __future__ import annotations

import copy
import pickle
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.damaged_files import digests
from support.bytes.expected_savepoints import LONGS
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import POINTS, Point, point
from support.inside.savepoints import StreamHandle

from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import (
    DELETE,
    Operator,
    OperatorId,
    Savepoint,
    SavepointEditor,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, STRING

COUNTS = [ValueStateDescriptor("count", LONG)]
# With files of their own, of each format and version; one that is unaligned, in flight.
WHOLE = [
    "1.14.6-heap-canonical",
    "1.17.2-heap-native",
    "2.3.0-files-canonical",
    "2.3.0-heap-checkpoint",
    "2.3.0-rocksinc-native",
    "2.3.0-unaligned-checkpoint",
]
# With files in other folders: RocksDB's, changes, merged ones, timers beside RocksDB.
SCATTERED = [
    *("1.17.2-rocksinc-checkpoint", "1.20.5-merged-checkpoint", "2.3.0-changelog-checkpoint"),
    *("2.3.0-heaptimers-checkpoint", "2.3.0-merged-checkpoint", "2.3.0-rocksresc-checkpoint"),
]


def edit(old: Any, new: Path) -> SavepointEditor:
    return SavepointWriter.from_existing_savepoint(old, new)


def written(path: Path, *uids: str, key: str = "ann") -> Path:
    """Write a savepoint of operators with the same state, an entry each."""
    with SavepointWriter(path) as writer:
        for number, uid in enumerate(uids):
            writer.add_operator(uid, STRING, COUNTS, 128, parallelism=3).write(
                "count", key, number
            )
    return path


def counts(savepoint: Savepoint | Path) -> dict[str, dict[str, int]]:
    """Return the entries of each operator by its id."""
    if isinstance(savepoint, Path):
        savepoint = read_savepoint(savepoint)
    return {
        operator.operator_id: {entry.key: entry.value for entry in operator.entries()}
        for operator in savepoint.operators
    }


def ids(*uids: str) -> list[str]:
    return [str(OperatorId.of_uid(uid)) for uid in uids]


def streams(savepoint: Savepoint) -> Iterator[StreamHandle]:
    """Yield every handle of a stream that `_metadata` has."""
    for operator in savepoint.metadata.operators:
        fields = [*operator.as_read.values()]
        fields += (field for subtask in operator.subtasks for field in subtask.as_read.values())
        for field in fields:
            for _, _, text in field.places:
                if isinstance(text, StreamHandle):
                    yield text


def contents(operator: Operator) -> tuple[list[str], list[str]]:
    entries = [repr(entry) for entry in operator.entries()]
    return entries, [repr(state) for state in operator.operator_state()]


# All that is not edited


def check_the_same(known: Point, new: Path) -> None:
    old = known.read()
    before = digests(known.root)
    with edit(old, new):
        pass
    assert digests(known.root) == before
    assert digests(new) == digests(known.path), known


@pytest.mark.parametrize("name", WHOLE)
def test_an_edit_that_changes_nothing_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    check_the_same(point(name), tmp_path / "new")


@pytest.mark.slow
def test_of_every_point_with_its_own_files(tmp_path: Path) -> None:
    whole = [
        known
        for known in (*POINTS, *JOB_POINTS)
        if all(one.is_relative or one.data is not None for one in streams(known.read()))
    ]
    for number, known in enumerate(whole):
        check_the_same(known, tmp_path / str(number))
    assert len(whole) > 150


def check_gathered(known: Point, folder: Path) -> None:
    """Check that files of other folders come in, once each, and that nothing else is needed."""
    old = known.read()
    with edit(old, folder):
        pass
    new = read_savepoint(folder)
    files = {one for one in streams(new) if one.data is None}
    assert all(one.is_relative for one in files)
    assert {one.path for one in files} == {path.name for path in folder.iterdir()} - {"_metadata"}
    assert len(files) == len({one for one in streams(old) if one.data is None})
    for before, after in zip(old.operators, new.operators):
        assert after.operator_id == before.operator_id
        assert [one.bytes for one in after.subtasks] == [one.bytes for one in before.subtasks]
        if known.archive != "jobs":  # others have some of the job's own classes
            assert contents(after) == contents(before)
    with edit(folder, folder.with_name(f"{folder.name}-again")):
        pass
    assert digests(folder.with_name(f"{folder.name}-again")) == digests(folder)


@pytest.mark.parametrize("name", SCATTERED)
def test_files_of_other_folders_come_in(name: str, tmp_path: Path) -> None:
    check_gathered(point(name), tmp_path / "new")


@pytest.mark.slow
def test_of_every_point_with_files_elsewhere(tmp_path: Path) -> None:
    scattered = [known for known in (*POINTS, *JOB_POINTS) if known.moved]
    for number, known in enumerate(scattered):
        check_gathered(known, tmp_path / str(number))
    assert len(scattered) > 30


def test_what_hooks_on_the_master_wrote(tmp_path: Path) -> None:
    """And a coordinator that is a file, and the properties, which are any object."""
    operator = sb.operator([], coordinator=sb.relative("coordinator", 3), uid="a")
    data = sb.metadata([operator], master_states=[b"abc", b""], properties=b"\xac\xed\0\5t\0\1x")
    old = tmp_path / "old"
    old.mkdir()
    (old / "_metadata").write_bytes(data)
    (old / "coordinator").write_bytes(b"abc")
    with edit(old, tmp_path / "new"):
        pass
    assert digests(tmp_path / "new") == digests(old)


@pytest.mark.parametrize("version", [2, 3])
def test_versions(version: int, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    operator = sb.operator([sb.subtask(version=version)], version=version)
    (old / "_metadata").write_bytes(sb.metadata([operator], version=version))
    with edit(old, tmp_path / "new"):
        pass
    newer = sb.operator([sb.subtask(version=3)], version=3)
    expected = sb.metadata([newer], version=3)
    assert (tmp_path / "new" / "_metadata").read_bytes() == expected


def test_at_a_url(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    old = point("2.3.0-rocksinc-checkpoint").read()
    store = fsspec.filesystem("memory")
    try:
        with SavepointWriter.from_existing_savepoint(old, "memory://edited/new") as writer:
            writer.add_operator("new", STRING, COUNTS, 128, 3).write("count", "ann", 7)
        new = read_savepoint("memory://edited/new")
        with edit(new, tmp_path / "back") as writer:
            writer.remove_operator("new")
        with edit(old, tmp_path / "direct"):
            pass
        back, direct = read_savepoint(tmp_path / "back"), read_savepoint(tmp_path / "direct")
        assert [contents(one) for one in back.operators] == [
            contents(one) for one in direct.operators
        ]
    finally:
        store.rm("/edited", recursive=True)


# Names of files


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["a", "b-2.sst", "000012.sst"], 3),
        (["a", "A", "aA"], 2),  # a file system may make two
        (["_Metadata", "a"], 1),
        ([".a.0123.writing", "..a", "a b", "é", "a:b", "C:", "x" * 201], 0),
    ],
)
def test_names_of_files(names: list[str], kept: int, tmp_path: Path) -> None:
    """A file keeps its name if no file system takes it for anything else; its bytes in any case.

    No two of them are in one state, so that a file system that folds case has both.
    """
    old = tmp_path / "old"
    subtasks = []
    for number, name in enumerate(names):
        data = f"{number}".encode()
        handle = sb.operator_state([("x", 0, [])], sb.relative(name, len(data)))
        subtasks.append(sb.subtask(number, managed_operator=handle))
    sb.write(old, [sb.operator(subtasks, parallelism=len(names))])
    for number, name in enumerate(names):
        (old / name).write_text(f"{number}")
    with edit(old, tmp_path / "new"):
        pass
    paths = [one.path for one in streams(read_savepoint(tmp_path / "new"))]
    assert sum(path == name for path, name in zip(paths, names)) == kept
    assert len({path.lower() for path in paths}) == len(names)
    assert [(tmp_path / "new" / path).read_text() for path in paths] == [
        str(number) for number in range(len(names))
    ]
    assert len(list((tmp_path / "new").iterdir())) == len(names) + 1


def test_a_file_in_a_folder_of_the_savepoint(tmp_path: Path) -> None:
    old = tmp_path / "old"
    handle = sb.operator_state([("x", 0, [])], sb.relative("a/b", 1))
    sb.write(old, [sb.operator([sb.subtask(managed_operator=handle)])])
    (old / "a").mkdir()
    (old / "a" / "b").write_bytes(b"x")
    with edit(old, tmp_path / "new"):
        pass
    (stream,) = streams(read_savepoint(tmp_path / "new"))
    assert "/" not in stream.path
    assert (tmp_path / "new" / stream.path).read_bytes() == b"x"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "", ".", "a/../../secret", "a\0b"])
def test_hostile_names(path: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s")
    handle = sb.operator_state([("x", 0, [])], sb.relative(path, 1))
    old = sb.write(tmp_path / "old", [sb.operator([sb.subtask(managed_operator=handle)])])
    with (
        pytest.raises(SavepointError, match=r"is not in the savepoint|cannot be opened"),
        edit(old, tmp_path / "new"),
    ):
        pass
    assert not (tmp_path / "new").exists()
    assert {one.name for one in tmp_path.iterdir()} == {"old", "secret"}


# Operators


def test_an_operator_is_removed(tmp_path: Path) -> None:
    old = written(tmp_path / "old", "by-user", "by-session", "by-item")
    with edit(old, tmp_path / "new") as writer:
        writer.remove_operator("by-session")
    before = counts(old)
    del before[OperatorId.of_uid("by-session")]
    assert counts(tmp_path / "new") == before
    assert len(list((tmp_path / "new").iterdir())) == 3  # nor are its files there
    assert str(writer.report()) == (
        f"savepoint: {tmp_path / 'new'}\n{ids('by-user')[0]}: copied as it is\n"
        f"{ids('by-item')[0]}: copied as it is\nby-session: removed"
    )


def test_operators_get_other_uids(tmp_path: Path) -> None:
    """Two swap theirs; one is named by its id."""
    old = written(tmp_path / "old", "a", "b", "c")
    with edit(old, tmp_path / "new") as writer:
        writer.change_operator_identifier("a", "between")
        writer.change_operator_identifier("b", "a")
        writer.change_operator_identifier("between", "b")
        writer.change_operator_identifier(OperatorId.of_uid("c"), "d")
        with pytest.raises(InvalidValueError, match="operator must be an operator's uid, name or"):
            writer.remove_operator("c")
    assert counts(tmp_path / "new") == dict(
        zip(ids("b", "a", "d"), [{"ann": n} for n in range(3)])
    )
    renamed = [(one.old_operator, one.operator) for one in writer.report().operators]
    assert renamed == [("a", "b"), ("b", "a"), (OperatorId.of_uid("c"), "d")]
    assert str(writer.report()).endswith(f"d: copied as it is, renamed from {ids('c')[0]}")
    assert [one.uid for one in read_savepoint(old).operators] == [None] * 3


def test_a_uid_of_flink_2(tmp_path: Path) -> None:
    """`_metadata` has it, and the name, which stays."""
    known = point("2.3.0-heap-canonical")
    old = known.read()
    with edit(old, tmp_path / "new") as writer:
        writer.change_operator_identifier("by-string", "by-text")
        writer.add_operator("new", STRING, COUNTS, 32_768, 2).write("count", "ann", 7)
    new = read_savepoint(tmp_path / "new")
    before, after = old.operator("by-string"), new.operator("by-text")
    assert (after.uid, after.name, after.operator_id) == (
        *("by-text", before.name),
        OperatorId.of_uid("by-text"),
    )
    assert contents(after) == contents(before)
    assert [one.uid for one in new.operators if one.name is None] == ["new"]
    assert [entry.value for entry in new.operator("new").entries()] == [7]
    others = [one for one in old.metadata.operators if one.uid != "by-string"]
    assert [one for one in new.metadata.operators if one.uid not in ("by-text", "new")] == others
    assert (new.version, new.metadata.properties) == (6, old.metadata.properties)


def test_uids_that_were_given_are_listed(tmp_path: Path) -> None:
    """Of a version of `_metadata` that has none: those of new operators, of old ones, of both."""
    new = SavepointWriter(tmp_path / "new")
    with pytest.raises(InvalidValueError, match="savepoint must be asked for after the with bl"):
        new.savepoint()
    with new as writer:
        for uid in ("a", "b", "c"):
            writer.add_operator(uid, STRING, COUNTS, 128, 3).write("count", "ann", 7)
    assert labels(new.savepoint()) == ["a", "b", "c"]
    assert labels(read_savepoint(tmp_path / "new")) == ids("a", "b", "c")
    passed = SavepointWriter.from_existing_savepoint(
        tmp_path / "new", tmp_path / "edited", uids=["a", "b"]
    )
    with passed as editor:
        editor.change_operator_identifier("b", "user")
        editor.add_operator("d", STRING, COUNTS, 128, 3)
    assert labels(editor.savepoint()) == ["a", "user", *ids("c"), "d"]
    of_ann = {"ann": 7}
    entries = [of_ann, of_ann, of_ann, {}]
    assert counts(editor.savepoint()) == dict(zip(ids("a", "user", "c", "d"), entries))
    assert [edited.old_operator for edited in editor.report().operators] == [
        *("a", "b", *ids("c"), None),
    ]
    with pytest.raises(InvalidValueError, match=r"uids must be of the 3 operators .*got 'user'"):
        SavepointWriter.from_existing_savepoint(tmp_path / "new", tmp_path / "d", uids=["user"])


def test_ids_are_no_uids(tmp_path: Path) -> None:
    """An operator of a template may be named by its id, which tells no uid."""
    old = written(tmp_path / "old", "a", "b")
    with SavepointWriter(tmp_path / "new", template=old) as writer:
        writer.add_operator("a")
        writer.add_operator(ids("b")[0])
    assert labels(writer.savepoint()) == ["a", *ids("b")]


def labels(savepoint: Savepoint) -> list[str]:
    return [operator.label for operator in savepoint.operators]


def test_operators_of_another_job(tmp_path: Path) -> None:
    one = written(tmp_path / "one", "a", "b", key="ann")
    two = written(tmp_path / "two", "a", "c", key="bob")
    with edit(one, tmp_path / "new") as writer:
        writer.add_operator_from(two, "c")
        writer.add_operator_from(read_savepoint(two), "a", "d")
        writer.add_operator_from(str(one), "a", "e")
        writer.add_operator_from(one, "b", "f")
        writer.remove_operator("f")
        writer.add_operator("g", STRING, COUNTS, 128, 1).write("count", "cid", 5)
    assert counts(tmp_path / "new") == dict(
        zip(
            ids("a", "b", "c", "d", "e", "g"),
            [{"ann": 0}, {"ann": 1}, {"bob": 1}, {"bob": 0}, {"ann": 0}, {"cid": 5}],
        )
    )
    lines = str(writer.report()).splitlines()[3:]
    assert lines == [
        f"c: copied as it is, from {two}",
        f"d: copied as it is, from {two}, renamed from a",
        f"e: copied as it is, from {one}, renamed from a",
        "g: new",
    ]


@pytest.mark.parametrize("name", [*SCATTERED, "2.3.0-files-canonical"])
def test_an_operator_twice(name: str, tmp_path: Path) -> None:
    """Each has files of its own, which the reader demands, and inline streams of other names."""
    old = point(name).read()
    uid = next(one.label for one in old.operators if one.states)
    with edit(old, tmp_path / "new") as writer:
        writer.add_operator_from(old, uid, "again")
    new = read_savepoint(tmp_path / "new")
    assert contents(new.operator("again")) == contents(old.operator(uid))
    names = Counter(one.name for one in streams(new) if one.data is not None and one.name)
    assert max(names.values(), default=1) == 1
    kept = [one for one in new.metadata.operators if one.operator_id != OperatorId.of_uid("again")]
    assert len(kept) == len(old.metadata.operators)


def test_inline_streams_of_one_name(tmp_path: Path) -> None:
    """In three savepoints, of which one comes back: each is its own; an empty one has no name."""
    paths = []
    for number in range(3):
        subtasks = [
            sb.subtask(managed_operator=sb.operator_state([("x", 0, [])], stream))
            for stream in (sb.inline(b"%d" % number, "state"), sb.EMPTY_SEGMENT)
        ]
        operators = [
            sb.operator([subtask], uid=f"{number}{at}", operator_id=bytes([number, at] + [0] * 14))
            for at, subtask in enumerate((subtasks[0], subtasks[0], subtasks[1]))
        ]
        paths.append(sb.write(tmp_path / f"old{number}", operators))
    with edit(paths[0], tmp_path / "new") as writer:
        for name in ("10", "20", "11", "12"):
            writer.add_operator_from(paths[int(name[0])], name)
    names = [(one.data, one.name) for one in streams(read_savepoint(tmp_path / "new"))]
    assert [data for data, _ in names] == [b"0", b"0", b"", b"1", b"2", b"1", b""]
    assert [name for _, name in names[:3]] == ["state", "state", ""]
    _, _, _, one, two, again, empty = (name for _, name in names)
    assert one == again
    assert len({"state", one, two, empty}) == 4


def test_keyed_state_and_names_are_edited_together(tmp_path: Path) -> None:
    old = written(tmp_path / "old", "a", "b")
    other = written(tmp_path / "other", "c", "d")
    with edit(old, tmp_path / "new") as writer:
        operator = writer.operator("a")
        operator.map_entries("count", lambda entry: entry.value + 40)
        writer.change_operator_identifier("a", "z")
        assert writer.operator("z") is operator
        operator.rename_state("count", "sum")
        writer.add_operator_from(other, "d")
        writer.operator("d").map_entries("count", lambda entry: DELETE)
        writer.operator("b")  # nobody asks it anything
        gone = writer.operator("b")
        writer.remove_operator("b")
        with pytest.raises(InvalidValueError, match="b cannot be edited any more"):
            gone.remove_state("count")
    new = read_savepoint(tmp_path / "new")
    assert counts(new) == {OperatorId.of_uid("z"): {"ann": 40}, OperatorId.of_uid("d"): {}}
    assert [state.name for state in new.operator("z").states] == ["sum"]
    assert str(writer.report()).splitlines()[1:] == [
        "z: its state changed, renamed from a",
        "  sum: 0 entries kept, 1 changed, 0 deleted, 0 added, renamed from count",
        f"d: its state changed, from {other}",
        "  count: 0 entries kept, 0 changed, 1 deleted, 0 added",
        "b: removed",
    ]
    with pytest.raises(InvalidValueError, match="cannot be edited any more: it is written"):
        operator.remove_state("count")


def test_a_state_that_is_removed_is_reported(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "old") as writer:
        states = [*COUNTS, ValueStateDescriptor("seen", LONG)]
        writer.add_operator("a", STRING, states, 128, 1).write("seen", "ann", 1)
    with edit(tmp_path / "old", tmp_path / "new") as editor:
        editor.operator("a").remove_state("seen")
    assert "\n  seen: removed" in str(editor.report())


# Versions


KRYO = sb.kryo_of("java.util.BitSet")


def of_version(folder: Path, version: int, snapshot: bytes = LONGS.snapshot, **state: Any) -> Path:
    """Write a savepoint of a version with an operator by its name."""
    folder.mkdir()
    header = sb.i32(6) + b"\0" + sb.i32(2) + LONGS.snapshot + sb.i16(1)
    data = header + sb.state("count", "VALUE", snapshot)
    keyed = sb.canonical(0, [0] * 128, sb.inline(data, folder.name))
    subtask = sb.subtask(managed_keyed=keyed, version=version, **state)
    operator = sb.operator(
        [subtask],
        operator_id=bytes.fromhex(OperatorId.of_uid(folder.name)),
        uid=folder.name,
        version=version,
    )
    (folder / "_metadata").write_bytes(sb.metadata([operator], version=version))
    return folder


@pytest.mark.parametrize(("base", "other"), [(3, 6), (6, 3), (4, 5), (5, 4), (3, 4)])
def test_the_newest_version_is_written(base: int, other: int, tmp_path: Path) -> None:
    one, two = of_version(tmp_path / "one", base), of_version(tmp_path / "two", other)
    with edit(one, tmp_path / "new") as writer:
        writer.add_operator_from(two, "two")
    new = read_savepoint(tmp_path / "new")
    assert new.version == max(base, other)
    assert [one.operator_id for one in new.operators] == ids("one", "two")
    assert all([state.name for state in one.states] == ["count"] for one in new.operators)
    expected = ["one" if base >= 5 else "", "two" if max(base, other) >= 5 else ""]
    assert [one.uid for one in new.metadata.operators] == expected


def channel(code: bytes, size: int = 1) -> bytes:
    return code + sb.i32(0, 0, 0) + sb.i32(0) + sb.i64(size) + sb.inline(b"x", "channel")


@pytest.mark.parametrize(
    ("base", "other", "named"), [(4, 6, "one"), (6, 4, "two"), (3, 4, None), (5, 6, None)]
)
def test_values_of_kryo_stay_with_their_flink(
    base: int, other: int, named: str | None, tmp_path: Path
) -> None:
    one = of_version(tmp_path / "one", base, KRYO)
    two = of_version(tmp_path / "two", other, KRYO)
    with edit(one, tmp_path / "new") as writer:
        writer.operator("one")  # its uid, which older versions do not have
        if named is None:
            writer.add_operator_from(two, "two")
        else:
            with pytest.raises(SavepointError, match=f"{named} cannot be in one .*: Kryo wrote"):
                writer.add_operator_from(two, "two")
            if named == "one":
                writer.remove_operator("one")
                writer.add_operator_from(two, "two")
    assert read_savepoint(tmp_path / "new").version == max(base, other if named != "two" else 0)


def test_timers_on_the_heap_beside_rocksdb(tmp_path: Path) -> None:
    """Raw state, in which no other serializers are than in the managed: it goes to Flink 2."""
    old = point("1.20.5-heaptimers-checkpoint").read()
    newer = of_version(tmp_path / "newer", 6)
    with edit(old, tmp_path / "new") as writer:
        writer.add_operator_from(newer, "newer")
    new = read_savepoint(tmp_path / "new")
    assert (old.version, new.version) == (4, 6)
    assert [contents(one) for one in new.operators[:-1]] == [
        contents(one) for one in old.operators
    ]


def test_elements_of_kryo(tmp_path: Path) -> None:
    """Of operator state, which is looked into as far as its header."""
    head, newer = sb.i32(5) + KRYO, of_version(tmp_path / "newer", 6)
    end = len(head)
    for name, offsets in (
        ("in-header", [end, end + 1]),
        ("in-header-alone", []),
        ("in-elements", [4, end, end + 1]),
    ):
        state = sb.operator_state([("list", 0, offsets)], sb.inline(head + b"xy", "list"))
        old = of_version(tmp_path / name, 4, managed_operator=state)
        with edit(old, tmp_path / f"new-{name}") as writer:
            writer.operator(name)  # its uid
            if name == "in-elements":
                writer.add_operator_from(newer, "newer")
                continue
            with pytest.raises(SavepointError, match=f"{name} cannot be in one .*: Kryo wrote"):
                writer.add_operator_from(newer, "newer")


def test_data_in_flight(tmp_path: Path) -> None:
    """It is copied with its job, is not another job's, and not of a newer version."""
    old = of_version(tmp_path / "old", 5, inputs=[channel(b"")])
    newer = of_version(tmp_path / "newer", 6)
    with edit(old, tmp_path / "new") as writer:
        with pytest.raises(SavepointError, match=r"old cannot be added to .*in-flight data of an"):
            writer.add_operator_from(old, "old", "again")
        with pytest.raises(
            SavepointError, match=r"old cannot be in one .*: it has .* in-flight data"
        ):
            writer.add_operator_from(newer, "newer")
    assert digests(tmp_path / "new") == digests(old)


# What is refused


def test_arguments(tmp_path: Path) -> None:
    old = written(tmp_path / "old", "a", "b")
    for path in (old, old / "new", f"{old}/../old/x"):
        with pytest.raises(InvalidValueError, match="path must be"):
            edit(old, path)  # type: ignore[arg-type]  # a text is a path as well
    with pytest.raises(InvalidValueError, match="allow must be left out for a Sav"):
        SavepointWriter.from_existing_savepoint(read_savepoint(old), tmp_path / "new", allow=[old])
    with edit(old, tmp_path / "new") as writer:
        for call in (
            lambda: writer.remove_operator("c"),
            lambda: writer.operator("c"),
            lambda: writer.change_operator_identifier("c", "d"),
            lambda: writer.add_operator_from(old, "c"),
        ):
            with pytest.raises(InvalidValueError, match="operator must be an operator's uid, nam"):
                call()
        for uid in ("", "b", "a"):
            with pytest.raises(InvalidValueError, match="new_uid must be one of the job's, and"):
                writer.change_operator_identifier("a", uid)
            with pytest.raises(InvalidValueError, match="uid must be one of the job's, and new"):
                writer.add_operator_from(old, "a", uid)
        with pytest.raises(InvalidValueError, match="operator 'a' must be new here, or get anoth"):
            writer.add_operator_from(old, "a")
        with pytest.raises(InvalidValueError, match="uid must be one of the job's, and new here"):
            writer.add_operator("b", STRING, COUNTS, 128, 1)
        with pytest.raises(InvalidTypeError, match="new_uid must be a str"):
            writer.change_operator_identifier("a", 5)  # type: ignore[arg-type]  # a user may do so
        with pytest.raises(InvalidTypeError, match="path must be a str or a path"):
            writer.add_operator_from(5, "a")  # type: ignore[arg-type]  # a user may do so
        with pytest.raises(InvalidValueError, match="the report must be asked for after the with"):
            writer.report()
    assert digests(tmp_path / "new") == digests(old)  # whatever was refused
    for late in (
        lambda: writer.remove_operator("a"),
        lambda: writer.operator("a"),
        lambda: writer.change_operator_identifier("a", "d"),
        lambda: writer.add_operator_from(old, "a", "d"),
        lambda: writer.add_operator("d", STRING, COUNTS, 128, 1),
        writer.__enter__,
    ):
        with pytest.raises(InvalidValueError, match="nothing can be added after the block"):
            late()
    assert not list(tmp_path.glob(".*"))


def test_the_new_savepoint_is_not_in_one_it_is_made_of(tmp_path: Path) -> None:
    one, two = written(tmp_path / "one", "a"), written(tmp_path / "two", "b")
    with (
        pytest.raises(InvalidValueError, match="path must be outside the savepoint"),
        edit(one, two / "new") as writer,
    ):
        writer.add_operator_from(two, "b")
    assert not list(two.glob(".*"))
    assert not (two / "new").exists()


def test_no_operator_is_left(tmp_path: Path) -> None:
    old = written(tmp_path / "old", "a")
    with (
        pytest.raises(InvalidValueError, match="must have an operator, and all are removed"),
        edit(old, tmp_path / "new") as writer,
    ):
        writer.remove_operator("a")
    assert not (tmp_path / "new").exists()
    with edit(old, tmp_path / "new") as writer:
        writer.remove_operator("a")
        writer.add_operator("a", STRING, COUNTS, 128, 1).write("count", "bob", 2)
    assert counts(tmp_path / "new") == {OperatorId.of_uid("a"): {"bob": 2}}


def test_two_editors_of_one_savepoint(tmp_path: Path) -> None:
    old = read_savepoint(written(tmp_path / "old", "a", "b"))
    with edit(old, tmp_path / "one") as one, edit(old, tmp_path / "two") as two:
        one.remove_operator("a")
        two.change_operator_identifier("a", "c")
    assert [*counts(tmp_path / "one")] == ids("b")
    assert [*counts(tmp_path / "two")] == ids("c", "b")


def test_an_editor_is_one(tmp_path: Path) -> None:
    with edit(written(tmp_path / "old", "a"), tmp_path / "new") as writer:
        for way in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(InvalidTypeError, match="a SavepointEditor cannot be copied or pi"):
                way(writer)
    assert [*counts(tmp_path / "new")] == ids("a")


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """It is found out when it is copied, and nothing is left."""
    old = tmp_path / "old"
    shutil.copytree(written(tmp_path / "whole", "a", "b"), old)
    gone = next(path for path in old.iterdir() if path.name != "_metadata")
    gone.unlink()
    with (
        pytest.raises(SavepointError, match="cannot be opened: No such file"),
        edit(old, tmp_path / "new") as writer,
    ):
        operator = writer.operator("a")
    assert {path.name for path in tmp_path.iterdir()} == {"old", "whole"}
    with pytest.raises(InvalidValueError, match="the report must be asked for after"):
        writer.report()
    with pytest.raises(InvalidValueError, match="cannot be edited any more"):
        operator.remove_state("count")
