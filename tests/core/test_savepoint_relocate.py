"""A checkpoint that was copied elsewhere: its paths lead to the copies, all else is as it was."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.damaged_files import digests
from support.bytes.hostile_savepoints import watched
from support.bytes.real_savepoints import POINTS, Point, point
from support.inside.savepoints import StreamHandle, job_folder

from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import Operator, Savepoint, read_savepoint, relocate

SCATTERED = [
    *("1.17.2-rocksinc-checkpoint", "1.20.5-merged-checkpoint", "2.3.0-changelog-checkpoint"),
    *("2.3.0-heaptimers-checkpoint", "2.3.0-merged-checkpoint", "2.3.0-rocksresc-checkpoint"),
]


def said(savepoint: Savepoint) -> Iterator[object]:
    """Yield every handle and folder that `_metadata` names."""
    for operator in savepoint.metadata.operators:
        fields = [*operator.as_read.values()]
        fields += (field for subtask in operator.subtasks for field in subtask.as_read.values())
        for field in fields:
            yield from (one for _, _, one in field.places)


def absolute_paths(savepoint: Savepoint) -> list[str]:
    """Return the absolute paths of files and folders."""
    return [
        one.path if isinstance(one, StreamHandle) else str(one)
        for one in said(savepoint)
        if isinstance(one, str)
        or (isinstance(one, StreamHandle) and one.data is None and not one.is_relative)
    ]


def contents(operator: Operator) -> tuple[list[str], list[str]]:
    entries = [repr(entry) for entry in operator.entries()]
    return entries, [repr(state) for state in operator.operator_state()]


def copied_job(known: Point, job: Path) -> Path:
    """Copy a checkpoint with the files that it shares, as in the folder of its job; return it."""
    old = known.read()
    shutil.copytree(known.path, job / "chk-7")
    for stream in said(old):
        if isinstance(stream, StreamHandle) and stream.data is None and not stream.is_relative:
            start = job_folder(stream.path)
            rest = stream.path[len(start) + 1 :] if start else stream.path.split("/", 4)[-1]
            (job / rest).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(old.files.path_of(stream), job / rest)
    return job / "chk-7"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("s3://bucket/flink/0a1b/chk-7/_metadata", "s3://bucket/flink/0a1b"),
        ("/data/0a1b/shared/2c3d", "/data/0a1b"),
        ("/data/shared/flink/0a1b/taskowned/2c3d", "/data/shared/flink/0a1b"),
        ("/old/chk-1/0a1b/chk-12/2c3d", "/old/chk-1/0a1b"),
        ("/savepoints/savepoint-0a1b/2c3d", None),
    ],
)
def test_folder_of_a_job_is_above_the_last_of_the_folders_that_flink_names(
    path: str, folder: str | None
) -> None:
    assert job_folder(path) == folder


@pytest.mark.parametrize(
    "name",
    [*SCATTERED, pytest.param(None, marks=pytest.mark.slow)],
)
def test_real_checkpoints(name: str | None, tmp_path: Path) -> None:
    """With no word of where their files are but the folder, where they are of one job."""
    known = [point(name)] if name else [one for one in POINTS if one.moved]
    for number, one in enumerate(known):
        job = tmp_path / str(number)
        check_relocated(one, job)


def check_relocated(known: Point, job: Path) -> None:
    old, copy = known.read(), copied_job(known, job)
    moved = None
    if any(job_folder(path) is None for path in absolute_paths(old)):  # the log of changes
        moved = {"/".join(path.split("/")[:4]): str(job) for path in absolute_paths(old)}
    size = len(read_savepoint(copy).metadata.operators)
    new = relocate(copy, copy, moved)
    assert len(new.operators) == size
    paths = absolute_paths(new)
    assert paths
    assert all(path.startswith(f"file:{job}/") for path in paths)
    for before, after in zip(old.operators, new.operators):
        assert contents(after) == contents(before)
    # Nothing but paths is other, of the same kinds in the same order.
    assert [type(one) for one in said(new)] == [type(one) for one in said(old)]
    assert new.metadata.properties == old.metadata.properties
    whole = digests(job)
    assert relocate(copy, copy, moved).path == str(copy)
    assert digests(job) == whole
    # From the checkpoint as it was, to the same copy.
    assert relocate(old, copy, moved).path == str(copy)
    assert digests(job) == whole


JOB = "hdfs://name:8020/flink/0123"


def write_job(job: Path, files: dict[str, bytes], old: str = JOB, **state: Any) -> Path:
    """Write a checkpoint whose `_metadata` names files of another place, which are here too."""
    subtasks = []
    for number, (path, data) in enumerate(files.items()):
        (job / path).parent.mkdir(parents=True, exist_ok=True)
        (job / path).write_bytes(data)
        handle = sb.operator_state([("x", 0, [])], sb.absolute(f"{old}/{path}", len(data)))
        subtasks.append(sb.subtask(number, managed_operator=handle))
    (job / "chk-5").mkdir(exist_ok=True)
    operator = sb.operator(subtasks, parallelism=max(1, len(subtasks)), **state)
    return sb.write(job / "chk-5", [operator])


def test_own_files_become_relative(tmp_path: Path) -> None:
    files = {"chk-5/a": b"a", "chk-5/b/c": b"bb", "shared/d": b"ddd", "chk-4/e": b"e"}
    copy = write_job(tmp_path, files, coordinator=sb.absolute(f"{JOB}/chk-5/a b", 1))
    (copy / "a b").write_bytes(b"x")
    new = relocate(copy, copy)
    streams = [one for one in said(new) if isinstance(one, StreamHandle)]
    assert [(one.path, one.is_relative, one.size) for one in streams] == [
        ("a b", True, 1),
        ("a", True, 1),
        ("b/c", True, 2),
        (f"file:{tmp_path}/shared/d", False, 3),
        (f"file:{tmp_path}/chk-4/e", False, 1),
    ]


def test_bytes(tmp_path: Path) -> None:
    """All of them, against what the layout says: a segment keeps what is around its path."""
    segment = b"\x0f" + sb.i64(3, 4) + sb.i32(1) + sb.utf(f"{JOB}/shared/s") + sb.utf("logical")
    states = sb.i32(1) + sb.utf("x") + b"\0" + sb.i32(1) + sb.i64(0)
    merged = b"\x11" + states + sb.utf(f"{JOB}/taskowned/t") + sb.utf(f"{JOB}/shared") + b"\0"
    keyed = sb.rocksdb(
        0, 128, sb.inline(b"m"), [("1.sst", sb.absolute(f"{JOB}/shared/1", 2))], [], code=5
    )
    subtask = sb.subtask(managed_operator=merged + segment, managed_keyed=keyed)
    copy = sb.write(
        write_job(tmp_path, {"shared/s": b"0123456789", "shared/1": b"12"}),
        [sb.operator([subtask])],
    )
    relocate(copy, copy)
    new = f"file:{tmp_path}"
    segment = b"\x0f" + sb.i64(3, 4) + sb.i32(1) + sb.utf(f"{new}/shared/s") + sb.utf("logical")
    merged = b"\x11" + states + sb.utf(f"{new}/taskowned/t") + sb.utf(f"{new}/shared") + b"\0"
    keyed = sb.rocksdb(
        0, 128, sb.inline(b"m"), [("1.sst", sb.absolute(f"{new}/shared/1", 2))], [], code=5
    )
    subtask = sb.subtask(managed_operator=merged + segment, managed_keyed=keyed)
    assert (copy / "_metadata").read_bytes() == sb.metadata([sb.operator([subtask])])


def test_from_the_old_checkpoint_to_a_copy_without_metadata(tmp_path: Path) -> None:
    old = write_job(tmp_path / "old", {"shared/a": b"a", "chk-5/b": b"b"})
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    before = digests(tmp_path / "old")
    copy = tmp_path / "new" / "chk-5"
    (copy / "_metadata").unlink()
    relocate(old, f"{copy}/")
    assert absolute_paths(read_savepoint(copy)) == [f"file:{tmp_path}/new/shared/a"]
    assert digests(tmp_path / "old") == before
    assert {path.name for path in copy.iterdir()} == {"_metadata", "b"}


@pytest.mark.parametrize("prefix", [JOB, f"{JOB}/", f"{JOB}/shared", JOB[6:]])
def test_moved(prefix: str, tmp_path: Path) -> None:
    """Prefixes as `read_savepoint` takes them, to a place that is not the job's."""
    copy, elsewhere = write_job(tmp_path / "job", {"shared/a": b"a"}), tmp_path / "elsewhere"
    rest = "" if prefix.endswith("shared") else "/shared"
    elsewhere.mkdir()
    shutil.move(tmp_path / "job" / "shared", f"{elsewhere}{rest}/")
    place = str(elsewhere / "shared") if not rest else str(elsewhere)
    new = relocate(copy, copy, {prefix: place})
    assert absolute_paths(new) == [f"file:{elsewhere}/shared/a"]
    (stream,) = (one for one in said(new) if isinstance(one, StreamHandle))
    with new.files.open(stream) as opened:
        assert opened.read(0, 1) == b"a"


def test_nothing_is_guessed_beside_what_is_told(tmp_path: Path) -> None:
    copy = write_job(tmp_path, {"shared/a": b"a"})
    with pytest.raises(SavepointError, match=f"of 1 folders are now: pass .* for '{JOB}'$"):
        relocate(copy, copy, {f"{JOB}/chk-5": str(copy)})
    assert absolute_paths(relocate(copy, copy, {})) == [f"file:{tmp_path}/shared/a"]


def test_a_folder_of_which_it_is_not_told_where_it_is(tmp_path: Path) -> None:
    """As of merged files, whose handle names their folder too."""
    states = sb.i32(1) + sb.utf("x") + b"\0" + sb.i32(1) + sb.i64(0)
    merged = b"\x11" + states + sb.utf(f"{JOB}/taskowned/t") + sb.utf("s3://old/a") + b"\0"
    segment = sb.segment(f"{JOB}/taskowned/t", 0, 1)
    copy = sb.write(tmp_path, [sb.operator([sb.subtask(managed_operator=merged + segment)])])
    with pytest.raises(SavepointError, match=r"1 folders are now: .* for 's3://old'$"):
        relocate(copy, copy, {JOB: str(tmp_path)})


@pytest.mark.parametrize("named", ["file", "folder"])
def test_a_new_path_that_is_too_long(named: str, tmp_path: Path) -> None:
    paths = {"file": f"{JOB}/shared/s", "folder": f"{JOB}/shared"}
    long = {paths[named]: "s3://" + "a" * 65_531, JOB: str(tmp_path)}
    states = sb.i32(1) + sb.utf("x") + b"\0" + sb.i32(1) + sb.i64(0)
    folders = sb.utf(f"{JOB}/taskowned/t") + sb.utf(paths["folder"])
    merged = b"\x11" + states + folders + b"\0" + sb.segment(paths["file"], 0, 1)
    copy = sb.write(tmp_path, [sb.operator([sb.subtask(managed_operator=merged)])])
    before = digests(tmp_path)
    message = f"^{named} must take at most 65535 bytes, got 65536: "
    with pytest.raises(InvalidValueError, match=message):
        relocate(copy, copy, long)
    assert digests(tmp_path) == before


def test_several_jobs_are_named_once_each(tmp_path: Path) -> None:
    """Of a job that went on from the checkpoint of another, with its files."""
    copy = write_job(tmp_path, {"shared/a": b"a", "shared/b": b"b"})
    subtasks = [
        sb.subtask(number, managed_operator=sb.operator_state([], sb.absolute(path, 1)))
        for number, path in enumerate(
            [f"{JOB}/shared/a", f"{JOB}/shared/b", "s3://b/old/shared/c", "s3://b/log/d"]
        )
    ]
    sb.write(copy, [sb.operator(subtasks, parallelism=4)])
    before = digests(tmp_path)
    with pytest.raises(SavepointError) as caught:
        relocate(copy, copy)
    assert str(caught.value).endswith(
        "it is not known where the files of 3 folders are now: pass moved={old: new} "
        f"for '{JOB}', 's3://b/old', 's3://b/log'"
    )
    assert digests(tmp_path) == before
    moved = {JOB: str(tmp_path), "s3://b/old": str(tmp_path), "s3://b/log": str(tmp_path)}
    (tmp_path / "shared" / "c").write_bytes(b"c")
    (tmp_path / "d").write_bytes(b"d")
    assert len(absolute_paths(relocate(copy, copy, moved))) == 4


def test_every_file_has_to_be_there(tmp_path: Path) -> None:
    copy = write_job(tmp_path, {f"shared/{number:02}": b"a" for number in range(30)})
    (tmp_path / "shared" / "07").unlink()
    (tmp_path / "shared" / "08").write_bytes(b"longer")
    before = digests(tmp_path)
    with pytest.raises(SavepointError, match="2 of 30 files are not there, such as ") as caught:
        relocate(copy, copy)
    assert f"{tmp_path}/shared/07: cannot be opened: No such file" in str(caught.value)
    assert "/shared/08: the file has 6 bytes, its handle says 1" in str(caught.value)
    assert digests(tmp_path) == before


def test_another_checkpoint_is_not_replaced(tmp_path: Path) -> None:
    one = write_job(tmp_path / "one", {"shared/a": b"a"})
    two = write_job(tmp_path / "two", {"shared/a": b"a", "shared/b": b"b"})
    before = digests(tmp_path)
    with pytest.raises(InvalidValueError, match=r"new_folder must be of a copy of .*/one/chk-5"):
        relocate(one, two)
    assert digests(tmp_path) == before


def test_it_is_replaced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written leaves what was there, and nothing beside it."""
    copy = write_job(tmp_path, {"shared/a": b"a"})
    before = digests(tmp_path)
    with monkeypatch.context() as patched:

        def fail(number: int) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr(os, "fsync", fail)
        with pytest.raises(SavepointError, match="_metadata: cannot be written: No space left on"):
            relocate(copy, copy)
    assert digests(tmp_path) == before
    with pytest.raises(SavepointError, match="nowhere/_metadata: cannot be written: No such file"):
        relocate(sb.write(tmp_path / "empty", [sb.operator([])]), tmp_path / "nowhere")


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "file:///etc/passwd", f"{JOB}/shared/../../../secret", "http://h/x"),
        *(f"{JOB}/shared/", f"{JOB}/shared/a\0b", f"{JOB}//etc/passwd", "relative", ""),
    ],
)
def test_hostile_paths(path: str, tmp_path: Path) -> None:
    copy = write_job(tmp_path / "x" / "job", {"shared/a": b"a"})
    (tmp_path / "secret").write_bytes(b"s")
    handle = sb.operator_state([("x", 0, [])], sb.absolute(path, 1))
    sb.write(copy, [sb.operator([sb.subtask(managed_operator=handle)])])
    before, job = digests(tmp_path), str(tmp_path / "x" / "job")
    for moved in (None, {JOB: job}):
        refused = pytest.raises(SavepointError, match=r"it is not known where|files are not th")
        with watched() as seen, refused:
            relocate(copy, copy, moved)
        assert {path for _, path in seen} <= {f"{copy}/_metadata", f"{job}/shared/passwd"}
    assert digests(tmp_path) == before


def test_at_a_url(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    old = write_job(tmp_path, {"shared/a": b"a", "chk-5/b": b"b"})
    store = fsspec.filesystem("memory")
    store.put(f"{tmp_path}/", "/relocated/job/", recursive=True)
    try:
        new = relocate(old, "memory://relocated/job/chk-5")
        assert absolute_paths(new) == ["memory://relocated/job/shared/a"]
        assert [one.path for one in said(new) if isinstance(one, StreamHandle)][1] == "b"
    finally:
        store.rm("/relocated", recursive=True)


def test_arguments(tmp_path: Path) -> None:
    copy = write_job(tmp_path, {"shared/a": b"a"})
    with pytest.raises(InvalidTypeError, match="new_folder must be a str or a path, got 5"):
        relocate(copy, 5)  # type: ignore[arg-type]  # a user may do so
    with pytest.raises(InvalidValueError, match="new_folder must name a folder or file, got ''"):
        relocate(copy, "")
    with pytest.raises(InvalidTypeError, match="moved must be a mapping of paths"):
        relocate(copy, copy, [])  # type: ignore[arg-type]  # a user may do so
    with pytest.raises(InvalidValueError, match="path in moved must name a folder or file"):
        relocate(copy, copy, {JOB: ""})
    with pytest.raises(SavepointError, match="_metadata: cannot be opened"):
        relocate(tmp_path / "none", copy)
    older = sb.metadata([sb.operator([], version=2)], version=2)
    (copy / "_metadata").write_bytes(older)
    assert relocate(copy, copy).version == 3
