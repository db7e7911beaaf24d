"""Which files a savepoint needs, and which nobody needs in the folder of a job."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import FORMATS, POINTS, Point

from keygroups.cli import main
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import JobFile, JobFiles, job_files, read_savepoint, savepoint_files
from keygroups.savepoint._reports.stored_files import delete_unused

UTC = dt.timezone.utc
OLD = (86_400, 86_400)
MERGED = [point for point in (*POINTS, *FORMATS) if "merged" in point.path.name]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["files", *arguments])
    return status, *capsys.readouterr()


def keyed(*streams: bytes) -> list[bytes]:
    """Return subtasks whose keyed state is in these streams, an empty header in each."""
    return [
        sb.subtask(number, managed_keyed=sb.canonical(number, [0], stream))
        for number, stream in enumerate(streams)
    ]


def job(folder: Path) -> Path:
    """Write a job's folder: chk-7 and chk-8, with a file of both, and files of nobody."""
    for name in ("shared", "taskowned", "chk-7", "chk-8", "chk-9"):
        (folder / name).mkdir(parents=True)
    for name, size in {
        "shared/both": 5,
        "shared/of-7": 6,
        "shared/nobody": 70,
        "taskowned/a": 8,
        "chk-8/own": 9,
        "chk-9/aborted": 10,
    }.items():
        (folder / name).write_bytes(bytes(size))
        os.utime(folder / name, OLD)
    both = sb.absolute(f"file:{folder}/shared/both", 5)
    of_7 = sb.absolute(f"file:{folder}/shared/of-7", 6)
    own = sb.absolute(f"file:{folder}/chk-8/own", 9)
    for name, streams in {"chk-7": (both, of_7), "chk-8": (both, own)}.items():
        sb.write(folder / name, [sb.operator(keyed(*streams), uid="a", parallelism=2)])
    return folder


# --- of one savepoint -------------------------------------------------------------------------


@pytest.mark.parametrize("point", [*POINTS[::9], *FORMATS, *MERGED], ids=lambda point: point.name)
def test_files_of_flink_are_those_it_wrote(point: Point) -> None:
    """Each is there with all its bytes, and there is no other beside `_metadata`."""
    files = savepoint_files(point.read())
    assert all(file.bytes is not None and 0 < file.used_bytes <= file.bytes for file in files)
    written = {path.resolve() for path in point.path.rglob("*") if path.is_file()}
    named = {Path(file.path).resolve() for file in files if not file.is_shared}
    assert {path for path in written if path.name != "_metadata"} == named


def test_what_a_file_is_used_for(tmp_path: Path) -> None:
    (tmp_path / "merged").write_bytes(bytes(100))
    segments = [sb.segment(f"{tmp_path}/merged", start, 10) for start in (0, 50)]
    lists = sb.operator_state([("o", 0, [])], sb.relative("lists", 7))
    flying = b"\1" + sb.i32(0, 1, 2, 2) + sb.i64(5, 6) + sb.i64(7) + sb.relative("flying", 4)
    channel = sb.subtask(0, managed_operator=lists, inputs=[flying])
    operators = [
        sb.operator(keyed(*segments), uid="a", parallelism=2),
        sb.operator([channel], uid="b", operator_id=b"\1" * 16, coordinator=sb.relative("c", 3)),
        sb.operator(keyed(sb.inline(b"")), uid="c", operator_id=b"\2" * 16),
    ]
    (tmp_path / "c").write_bytes(bytes(3))
    files = savepoint_files(read_savepoint(sb.write(tmp_path, operators)))
    assert [file[1:] for file in files] == [
        (100, 20, "keyed state", ("a",), (0, 1), False),
        (3, 3, "coordinator", ("b",), (), False),
        (None, 4, "in-flight data", ("b",), (0,), False),
        (None, 7, "operator state", ("b",), (0,), False),
    ]
    assert files[0].path == f"{tmp_path}/merged"
    wrong: Any = tmp_path
    with pytest.raises(InvalidTypeError, match=r"^savepoint must be a Savepoint, got "):
        savepoint_files(wrong)


def test_a_file_that_may_not_be_read_has_its_path(tmp_path: Path) -> None:
    operators = [sb.operator(keyed(sb.absolute("/elsewhere/a", 5)))]
    [file] = savepoint_files(read_savepoint(sb.write(tmp_path, operators)))
    assert (file.path, file.bytes, file.is_shared) == ("/elsewhere/a", None, True)


def test_files_in_a_store() -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra savepoint")
    memory = fsspec.filesystem("memory")
    try:
        task = keyed(sb.relative("a", 5), sb.relative("gone", 6))
        metadata = sb.metadata([sb.operator(task, parallelism=2)])
        memory.pipe_file("/stored-files/chk-1/_metadata", metadata)
        memory.pipe_file("/stored-files/chk-1/a", bytes(5))
        memory.pipe_file("/stored-files/shared/nobody", bytes(7))
        files = savepoint_files(read_savepoint("memory://stored-files/chk-1"))
        assert [(file.path.rpartition("/")[2], file.bytes) for file in files] == [
            ("a", 5),
            ("gone", None),
        ]
        found = job_files("memory://stored-files")
        assert [file.path for file in found.unused] == ["memory://stored-files/shared/nobody"]
        later = dt.datetime.now(UTC) + dt.timedelta(hours=1)
        assert len(delete_unused(found, job_files("memory://stored-files"), later)) == 1
        assert not memory.exists("/stored-files/shared/nobody")
        assert memory.exists("/stored-files/chk-1/a")
    finally:
        memory.rm("/stored-files", recursive=True)


def test_a_store_that_lists_what_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra savepoint")
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/stored-files/chk-1/_metadata", sb.metadata([]))
    listed = {"/stored-files/chk-1/_metadata": {"size": 5}, "/elsewhere/a": {"size": 7}}
    monkeypatch.setattr(type(memory), "find", lambda *_, **__: listed)
    try:
        assert [file.bytes for file in job_files("memory://stored-files").files] == [5]
    finally:
        memory.store.clear()


# --- of a job ---------------------------------------------------------------------------------


def test_who_needs_a_file(tmp_path: Path) -> None:
    found = job_files(job(tmp_path / "job"))
    assert sorted(found.checkpoints) == ["chk-7", "chk-8"]
    used = {file.path[len(f"{tmp_path}/job/") :]: file.used_by for file in found.files}
    assert used == {
        "chk-7/_metadata": ("chk-7",),
        "chk-8/_metadata": ("chk-8",),
        "shared/both": ("chk-7", "chk-8"),
        "shared/of-7": ("chk-7",),
        "chk-8/own": ("chk-8",),
        "shared/nobody": (),
        "taskowned/a": (),
        "chk-9/aborted": (),
    }
    unused = {Path(file.path).name: file.bytes for file in found.unused}
    assert unused == {"nobody": 70, "aborted": 10}
    assert {file.written for file in found.unused} == {dt.datetime(1970, 1, 2, tzinfo=UTC)}


def test_nothing_is_unused_where_a_checkpoint_is_not_read(tmp_path: Path) -> None:
    folder = job(tmp_path / "job")
    (folder / "chk-9" / "_metadata").write_bytes(b"damaged")
    found = job_files(folder)
    [(name, reason)] = found.unread
    assert (name, "_metadata" in reason, found.unused) == ("chk-9", True, ())
    assert "not read, so that nothing is known to be unused: chk-9" in str(found)


def test_nothing_is_unused_without_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "a").touch()
    found = job_files(tmp_path)
    assert (len(found.files), found.unused) == (1, ())


def test_files_of_a_job_that_was_restored(tmp_path: Path) -> None:
    """It may use files of the folder still, by their path or, moved, by their own names."""
    folder = job(tmp_path / "job")
    for number, path in enumerate((f"file:{folder}/shared/nobody", "s3://old/shared/nobody")):
        other = tmp_path / f"other-{number}"
        other.mkdir()
        sb.write(other / "chk-1", [sb.operator(keyed(sb.absolute(path, 70)))])
        found = job_files(folder, others=[other])
        assert {Path(file.path).name for file in found.unused} == {"aborted"}
        [used] = [file for file in found.files if file.path.endswith("nobody")]
        assert used.used_by == (f"{other}/chk-1",)


def test_folders_that_are_none(tmp_path: Path) -> None:
    folder = job(tmp_path / "job")
    with pytest.raises(InvalidValueError, match=r"^folder must be that of a job, got '.*/chk-7'"):
        job_files(folder / "chk-7")
    with pytest.raises(SavepointError, match="cannot be opened: No such file"):
        job_files(tmp_path / "nowhere")
    wrong: Any = 5
    for arguments in ({"folder": wrong}, {"folder": folder, "others": [wrong]}):
        with pytest.raises(InvalidTypeError, match=r"^folder.* must be a str or a path, got 5"):
            job_files(**arguments)


def test_what_holds_several_jobs_is_no_job(tmp_path: Path) -> None:
    folder = job(tmp_path / "jobs" / "job")
    with pytest.raises(InvalidValueError, match=r"got '.*/jobs', the folder above 'job/chk-[78]'"):
        job_files(folder.parent)


def test_other_jobs_that_are_none(tmp_path: Path) -> None:
    """What they need would be nobody's, and deleted."""
    folder = job(tmp_path / "jobs" / "job")
    with pytest.raises(SavepointError, match="/nowhere: cannot be opened: No such file"):
        job_files(folder, others=[tmp_path / "nowhere"])
    for other in (folder.parent, folder / "chk-7"):
        with pytest.raises(InvalidValueError, match=r"others must be .* with checkpoints, got '"):
            job_files(folder, others=[other])
    twice: list[list[str | Path]] = [[folder], [job(tmp_path / "b"), f"{tmp_path}/b/"]]
    for others in twice:
        with pytest.raises(InvalidValueError, match=r"^others must have each other folder once"):
            job_files(folder, others=others)


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_what_the_tasks_use_by_a_url(scheme: str, tmp_path: Path) -> None:
    found = job_files(f"{scheme}{job(tmp_path / 'job')}/")
    assert {Path(file.path).name for file in found.unused} == {"nobody", "aborted"}
    assert [Path(file.path).name for file in found.files if file.is_owned_by_tasks] == ["a"]


def test_links_are_no_files(tmp_path: Path) -> None:
    folder = job(tmp_path / "job")
    (folder / "shared" / "link").symlink_to(tmp_path)
    assert not any(file.path.endswith("link") for file in job_files(folder).files)


def test_only_what_two_looks_find_is_deleted(tmp_path: Path) -> None:
    """What a checkpoint has named since, what was written anew, what is young: all stay."""
    folder = job(tmp_path / "job")
    for name in ("named", "anew"):
        (folder / "shared" / name).write_bytes(b"a")
        os.utime(folder / "shared" / name, OLD)
    (folder / "shared" / "young").touch()
    first = job_files(folder)
    sb.write(
        folder / "chk-10",
        [sb.operator(keyed(sb.absolute(f"file:{folder}/shared/named", 1)))],
    )
    os.utime(folder / "shared" / "anew", (90_000, 90_000))
    before = dt.datetime.now(UTC) - dt.timedelta(hours=1)
    deleted = delete_unused(first, job_files(folder), before)
    assert sorted(Path(file.path).name for file in deleted) == ["aborted", "nobody"]
    rest = {path.name for path in folder.rglob("*") if path.is_file()}
    assert rest == {"_metadata", "both", "of-7", "own", "a", "named", "anew", "young"}
    unknown = JobFile("/a", 5, None, (), False)
    looks = (JobFiles("/", ("chk-1",), (), (unknown,)),) * 2
    assert delete_unused(*looks, before) == []


# --- shown ------------------------------------------------------------------------------------


def test_as_text_and_html(tmp_path: Path) -> None:
    found = job_files(job(tmp_path / "job"))
    lines = str(found).splitlines()
    assert lines[1].startswith("8 files of ")
    assert lines[1].endswith("2 checkpoints; 2 files of 80 bytes that none of them needs")
    assert lines[3].split() == [
        f"{tmp_path}/job/shared/nobody",
        "70",
        "1970-01-02",
        "00:00",
        "nobody",
    ]
    assert repr(found).startswith("<JobFiles: 8 files of")
    assert "shared/nobody" in found._repr_html_()
    files = tuple(JobFile(f"/{n}", n, None, (), True) for n in range(60))
    many = JobFiles("/", ("chk-1",), (), files)
    assert str(many).splitlines()[-1] == "and 10 files more, which are smaller"
    assert "tasks" in str(many)
    assert "<table" not in JobFiles("/", (), (), ())._repr_html_()
    assert len(str(JobFiles("/", (), (), ())).splitlines()) == 2


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = job(tmp_path / "job")
    status, out, _ = run(capsys, str(folder / "chk-8"))
    assert (status, out.splitlines()[1:]) == (
        0,
        [
            f"{folder}/chk-8/own: 9 of 9 bytes, keyed state of a, 1",
            f"{folder}/shared/both: 5 of 5 bytes, keyed state of a, 0, shared",
            "2 files, 14 bytes used",
        ],
    )
    _, out, _ = run(capsys, str(folder / "chk-8"), "--json")
    assert [file["bytes"] for file in json.loads(out)["files"]] == [9, 5]
    (folder / "chk-8" / "own").unlink()
    assert "own: missing, keyed state" in run(capsys, str(folder / "chk-8"))[1]
    _, out, _ = run(capsys, str(folder))
    assert out.endswith("\n2 files of 80 bytes that nobody needs are older than 24 hours\n")
    _, out, _ = run(capsys, str(folder), "--json", "--older-than", "1e6")
    data = json.loads(out)
    assert (data["unused"], data["deleted"], len(data["files"])) == ([], [], 7)
    assert (folder / "shared" / "nobody").exists()
    _, out, _ = run(capsys, str(folder), "--delete")
    assert f"deleted: {folder}/shared/nobody" in out
    assert not (folder / "shared" / "nobody").exists()
    assert (folder / "shared" / "both").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["chk-7", "--delete"], 2, "--delete and --other go with the folder of a job"),
        (["chk-7", "--other", "x"], 2, "--delete and --other go with the folder of a job"),
        (["", "--older-than", "-1"], 2, "--older-than must be at least 0 hours, got -1.0"),
        (["", "--older-than", "nan"], 2, "--older-than must be at least 0 hours, got nan"),
        (["nowhere"], 1, "No such file"),
    ],
)
def test_what_the_command_refuses(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    says: str,
) -> None:
    folder = job(tmp_path / "job")
    ended = run(capsys, f"{folder}/{arguments[0]}", *arguments[1:])
    assert ended[:2] == (status, "")
    assert says in ended[2]
