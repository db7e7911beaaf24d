"""Files that are not where `_metadata` says: found by their names, or told of in one error."""

from __future__ import annotations

import os
import pickle
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point, seen_entry, true_entries
from support.inside.savepoints import found_files

from keygroups.errors import SavepointError
from keygroups.savepoint import Savepoint, SavepointWriter, read_savepoint

NAMES = [str(UUID(int=number)) for number in range(8)]
OLD = "s3://old/job"


def operator(path: str, stream: bytes | None = None) -> bytes:
    """Return an operator whose coordinator's state is a file of three bytes."""
    written = stream or sb.absolute(path, 3)
    return sb.operator([], operator_id=md5(path.encode()).digest(), uid=path, coordinator=written)


def savepoint(folder: Path | str, *paths: str, **options: Any) -> Savepoint:
    """Write a `_metadata` that names files, and return what reads them."""
    local = Path(str(folder).removeprefix("file://"))
    local.mkdir(parents=True, exist_ok=True)
    sb.write(local, [*map(operator, paths)])
    return read_savepoint(folder, **options)


def put(*paths: Path) -> None:
    """Write files, each with the start of its name."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(path.name[-3:].encode())


def values(savepoint: Savepoint) -> dict[str, bytes | None]:
    """Return the contents of the files by their paths in `_metadata`."""
    return {str(one.uid): one.coordinator_state() for one in savepoint.operators}


def expected(*paths: str) -> dict[str, bytes]:
    return {path: path[-3:].encode() for path in paths}


def refusal(savepoint: Savepoint, path: str) -> str:
    """Return why a file is not read."""
    with pytest.raises(SavepointError) as caught:
        savepoint.operator(path).coordinator_state()
    return str(caught.value)


# Found


@pytest.mark.parametrize(
    ("name", "beside", "chk"),
    [
        ("2.3.0-changelog-checkpoint", "point/files", "point"),
        ("2.3.0-merged-checkpoint", "taskowned/job_1_tm_2", "chk-7"),
        pytest.param("1.20.5-changelog-checkpoint", "shared", "chk-7", marks=pytest.mark.slow),
        pytest.param("1.20.5-merged-checkpoint", "point/a/b", "point", marks=pytest.mark.slow),
        pytest.param("2.3.0-rocksresc-checkpoint", "shared", "chk-7", marks=pytest.mark.slow),
    ],
)
def test_real_checkpoints_that_were_copied(
    name: str, beside: str, chk: str, tmp_path: Path
) -> None:
    """What Flink read is read from a copy, whatever its folders are called; edited, too."""
    known = point(name)
    shutil.copytree(known.path, tmp_path / chk)
    for folder in known.moved_folders:
        shutil.copytree(known.root / folder, tmp_path / beside, dirs_exist_ok=True)
    copy = read_savepoint(tmp_path / chk)
    assert copy.files.elsewhere.found
    assert not copy.files.elsewhere.lost
    with SavepointWriter.from_existing_savepoint(copy, tmp_path / "new"):
        pass
    for read in (copy, read_savepoint(tmp_path / "new")):
        assert Counter(
            seen_entry(one, states[entry.state], entry)
            for one in read.operators
            for states in [{state.name: state for state in one.states}]
            for entry in one.entries()
        ) == Counter(true_entries(known.entries))


def test_folders_of_a_job(tmp_path: Path) -> None:
    """Only what may be read anyway is looked into: another job's, or a checkpoint's, is not."""
    paths = [f"{OLD}/shared/{NAMES[1]}", f"{OLD}/chk-5/{NAMES[2]}", f"{OLD}/chk-6/{NAMES[3]}"]
    put(tmp_path / "job/shared/a" / NAMES[1], tmp_path / "job/chk-7" / NAMES[2])
    put(tmp_path / "job/chk-6" / NAMES[3], tmp_path / "job/other" / NAMES[3])
    found = savepoint(tmp_path / "job/chk-7", *paths)
    assert found.operator(paths[0]).coordinator_state() == b"001"
    assert found.operator(paths[1]).coordinator_state() == b"002"
    assert "is not in the savepoint" in refusal(found, paths[2])
    shutil.move(tmp_path / "job/chk-7", tmp_path / "job/point")
    assert f"as in moved={{'{OLD}/shared': ...," in refusal(
        read_savepoint(tmp_path / "job/point"), paths[0]
    )


def test_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a relative path, a link or a URL; the tasks of another machine know it too."""
    path = f"{OLD}/shared/{NAMES[1]}"
    folder = tmp_path / "job" / "chk-7"
    put(tmp_path / "job" / "shared" / NAMES[1])
    assert values(savepoint(folder, path)) == expected(path)
    (tmp_path / "latest").symlink_to(folder)
    monkeypatch.chdir(folder)
    for way in (".", "_metadata", "../chk-7", tmp_path / "latest", folder.as_uri()):
        assert values(read_savepoint(way)) == expected(path)
    files = read_savepoint("../chk-7").files
    assert {root for root, _ in files.elsewhere.found.values()} == {str(tmp_path / "job")}
    files = read_savepoint(folder).files
    copied = pickle.loads(pickle.dumps(files))
    assert (copied, copied.elsewhere) == (files, files.elsewhere)
    assert copied.elsewhere.found


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """It may be read, and its files lie in another."""
    path = f"file:{tmp_path}/job/shared/{NAMES[1]}"
    put(tmp_path / "job/chk-7/files" / NAMES[1])
    assert values(savepoint(tmp_path / "job/chk-7", path)) == expected(path)


def test_what_is_there_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, shared = f"{tmp_path}/job/chk-7/{NAMES[1]}", f"file:{tmp_path}/job/shared/{NAMES[2]}"
    moved = f"{OLD}/shared/{NAMES[3]}"
    put(*(tmp_path / "job" / name for name in (f"chk-7/{NAMES[1]}", f"shared/{NAMES[2]}")))
    put(tmp_path / "now" / NAMES[3])
    monkeypatch.setattr("os.scandir", None)
    passed = {f"{OLD}/shared": str(tmp_path / "now")}
    found = savepoint(tmp_path / "job/chk-7", own, shared, moved, moved=passed)
    assert values(found) == expected(own, shared, moved)


def test_in_a_store() -> None:
    """In the savepoint's folder, and at the same place in the folder of the job."""
    from fsspec.implementations.memory import MemoryFileSystem

    paths = [f"{OLD}/chk-7/{NAMES[1]}", f"{OLD}/shared/b/{NAMES[2]}", f"{OLD}/shared/{NAMES[3]}"]
    paths += [f"s3://other/{NAMES[4]}"]
    store = MemoryFileSystem()
    folder = "/found-files/job"
    store.pipe(f"{folder}/chk-7/_metadata", sb.metadata([*map(operator, paths)]))
    store.pipe(f"{folder}/chk-7/a/{NAMES[1]}", b"001")
    store.pipe(f"{folder}/shared/b/{NAMES[2]}", b"002")
    store.pipe(f"{folder}/shared/c/{NAMES[3]}", b"003")
    try:
        found = read_savepoint(f"memory:/{folder}/chk-7")
        assert found.operator(paths[0]).coordinator_state() == b"001"
        assert found.operator(paths[1]).coordinator_state() == b"002"
        advice = f"as in moved={{'{OLD}/shared': ..., 's3://other': ...}}"
        for path in paths[2:]:
            assert refusal(found, path).endswith(advice)
    finally:
        store.rm("/found-files", recursive=True)


def test_a_store_is_asked_for_nothing_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    names = ["shared/../../secret", "shared/a?b", "shared/%2e%2e", "shared/a\\b", "shared//a"]
    paths = [f"{OLD}/{name}/{NAMES[1]}" for name in (*names, "shared::memory://secret")]
    asked: list[str] = []
    store = MemoryFileSystem()
    try:
        for path in (*paths, f"{OLD}/shared/{NAMES[1]}"):
            store.pipe("/found-files/chk-7/_metadata", sb.metadata([operator(path)]))
            with monkeypatch.context() as patched:
                patched.setattr(MemoryFileSystem, "exists", lambda _, path: asked.append(path))
                found = read_savepoint("memory://found-files/chk-7")
            assert "is not in the savepoint" in refusal(found, path)
    finally:
        store.rm("/found-files", recursive=True)
    assert asked == [f"/found-files/shared/{NAMES[1]}"]


def test_a_store_is_asked_for_files_of_ten_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    paths = [f"{OLD}/shared/{number:02}/{NAMES[1]}" for number in range(12)]
    asked: list[str] = []
    store = MemoryFileSystem()
    store.pipe("/found-files/chk-7/_metadata", sb.metadata([*map(operator, paths)]))
    try:
        with monkeypatch.context() as patched:
            patched.setattr(MemoryFileSystem, "exists", lambda _, path: asked.append(path))
            read_savepoint("memory://found-files/chk-7")
    finally:
        store.rm("/found-files", recursive=True)
    assert asked == [f"/found-files/shared/{number:02}/{NAMES[1]}" for number in range(10)]


def test_too_many_files_in_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    path = f"{OLD}/{NAMES[1]}"
    store = MemoryFileSystem()
    store.pipe("/found-files/_metadata", sb.metadata([operator(path)]))
    monkeypatch.setattr(found_files, "_MOST", 4)
    try:
        for name in NAMES[1:4]:
            store.pipe(f"/found-files/{name}", b"001")
        assert values(read_savepoint("memory://found-files")) == expected(path)
        store.pipe(f"/found-files/{NAMES[4]}", b"004")
        assert "is not in the savepoint" in refusal(read_savepoint("memory://found-files"), path)
    finally:
        store.rm("/found-files", recursive=True)


def test_a_server_is_asked_for_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers may name any host; a store's answer of another folder is no file either."""
    from fsspec.implementations.memory import MemoryFileSystem

    path = f"{OLD}/{NAMES[1]}"
    store = MemoryFileSystem()
    store.pipe("/found-files/_metadata", sb.metadata([operator(path)]))
    store.pipe(f"/found-files/{NAMES[1]}", b"001")
    try:
        assert values(read_savepoint("memory://found-files")) == expected(path)
        with monkeypatch.context() as patched:
            patched.setattr(MemoryFileSystem, "find", lambda *_: [f"/other-files/{NAMES[1]}"])
            found = read_savepoint("memory://found-files")
        assert "is not in the savepoint" in refusal(found, path)
        monkeypatch.setattr(MemoryFileSystem, "protocol", ("http", "https"))
        assert "is not in the savepoint" in refusal(read_savepoint("memory://found-files"), path)
    finally:
        store.rm("/found-files", recursive=True)


# Not sure


def test_files_in_several_folders(tmp_path: Path) -> None:
    """Copies of all of them in two folders; or some in each."""
    paths = [f"{OLD}/shared/{name}" for name in NAMES[1:3]]
    for name in ("a", "b"):
        put(*(tmp_path / name / file for file in NAMES[1:3]))
    for number in range(6):
        put(tmp_path / str(number) / NAMES[3])
    found = savepoint(tmp_path, *paths, f"{OLD}/other/{NAMES[3]}")
    folders = f"'{tmp_path}/a' or '{tmp_path}/b'"
    advice = f"as in moved={{'{OLD}/shared': {folders}, '{OLD}/other': ...}}"
    assert refusal(found, paths[0]).endswith(advice)
    shutil.rmtree(tmp_path / "b")
    found = read_savepoint(tmp_path)
    assert [found.operator(path).coordinator_state() for path in paths] == [b"001", b"002"]


def test_files_of_one_name(tmp_path: Path) -> None:
    """Which of two is there nobody knows; nor whether one is that which has any other name."""
    put(tmp_path / "a" / NAMES[1], tmp_path / "b" / NAMES[2], tmp_path / "c" / "1.sst")
    paths = [f"{OLD}/{name}" for name in (f"x/{NAMES[1]}", f"y/{NAMES[1]}", "z/1.sst")]
    found = savepoint(tmp_path, *paths)
    reports = [("x", "a"), ("y", "a"), ("z", "c")]
    listed = ", ".join(f"'{OLD}/{old}': '{tmp_path}/{new}'" for old, new in reports)
    for path in paths:
        assert refusal(found, path).endswith(f"to say where it is now, as in moved={{{listed}}}")
    own = sb.relative(NAMES[2], 3)
    sb.write(tmp_path, [operator("own", own), operator(f"{OLD}/{NAMES[2]}")])
    assert "is not in the savepoint" in refusal(read_savepoint(tmp_path), f"{OLD}/{NAMES[2]}")


@pytest.mark.parametrize("count", [3, 4])
def test_files_of_one_name_that_their_folders_tell_apart(count: int, tmp_path: Path) -> None:
    """Of up to three the one is taken that has the others of its folder beside it."""
    paths = [f"{OLD}/x/{name}" for name in NAMES[1:3]]
    put(*(tmp_path / folder / NAMES[1] for folder in "abcd"[:count]), tmp_path / "b" / NAMES[2])
    copied = savepoint(tmp_path, *paths)
    if count == 3:
        assert values(copied) == expected(*paths)
        return
    assert f"as in moved={{'{OLD}/x': ...}}" in refusal(copied, paths[0])


def test_links_are_no_files(tmp_path: Path) -> None:
    put(tmp_path / "secrets" / NAMES[1])
    folder = tmp_path / "point"
    found = savepoint(folder, f"{OLD}/{NAMES[1]}")
    (folder / "a").symlink_to(tmp_path / "secrets")
    (folder / NAMES[1]).symlink_to(tmp_path / "secrets" / NAMES[1])
    assert "is not in the savepoint" in refusal(read_savepoint(folder), f"{OLD}/{NAMES[1]}")
    # Nor is one that was put there after the look.
    (folder / NAMES[1]).unlink()
    put(folder / "b" / NAMES[1])
    found = read_savepoint(folder)
    shutil.rmtree(folder / "b")
    (folder / "b").symlink_to(tmp_path / "secrets")
    assert "is not in the savepoint" in refusal(found, f"{OLD}/{NAMES[1]}")


@pytest.mark.parametrize("name", ["shared", "taskowned"])
def test_folders_of_a_job_that_are_links(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not listed, and nobody is told to allow where they lead; whoever does so may."""
    path, secrets = f"{OLD}/{name}/{NAMES[1]}", tmp_path / "secrets"
    put(secrets / NAMES[1])
    folder = tmp_path / "job" / "chk-7"
    savepoint(folder, path)
    (tmp_path / "job" / name).symlink_to(secrets)
    listed: list[str] = []
    scandir = os.scandir

    def noted(path: Any) -> Any:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noted)
    found = read_savepoint(folder)
    others = {f"{tmp_path}/job/{other}" for other in ("shared", "taskowned") if other != name}
    assert {*listed} == {str(folder), *others}
    assert str(secrets) not in refusal(found, path)
    own = f"{tmp_path}/job/{name}/{NAMES[1]}"
    message = refusal(savepoint(folder, own), own)
    assert message.endswith(f"is not in the savepoint: a link leads to '{secrets / NAMES[1]}'")
    assert values(savepoint(folder, own, allow=[secrets])) == expected(own)


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{OLD}/{NAMES[1]}"
    put(*(tmp_path / name for name in NAMES[1:6]))
    monkeypatch.setattr(found_files, "_MOST", 7)
    assert values(savepoint(tmp_path, path)) == expected(path)
    put(tmp_path / NAMES[6])
    assert "is not in the savepoint" in refusal(read_savepoint(tmp_path), path)


@pytest.mark.parametrize("others", [99_998, 99_999])
def test_a_hundred_thousand_files(
    others: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are as many, none is taken. `_metadata` is one of them."""
    path = f"{OLD}/{NAMES[1]}"
    found = savepoint(tmp_path, path)
    put(tmp_path / NAMES[1])
    scandir = os.scandir
    other: Any = SimpleNamespace(is_dir=lambda **_: False, is_file=lambda **_: False)

    @contextmanager
    def with_others(folder: Any) -> Iterator[Iterator[Any]]:
        with scandir(folder) as entries:
            yield chain(entries, repeat(other, others - 1))

    monkeypatch.setattr(os, "scandir", with_others)
    found = read_savepoint(tmp_path)
    if others == 99_998:
        assert values(found) == expected(path)
    else:
        assert "is not in the savepoint" in refusal(found, path)


def test_a_file_that_is_moved_by_itself(tmp_path: Path) -> None:
    """To a folder that is not there: of the others it is told where they may be, no more."""
    paths = [f"{OLD}/shared/{name}" for name in NAMES[1:3]]
    put(*(tmp_path / "files" / name for name in NAMES[1:3]))
    found = savepoint(tmp_path, *paths, moved={paths[0]: str(tmp_path / "gone" / NAMES[1])})
    reports = f"as in moved={{'{OLD}/shared': '{tmp_path}/files'}}"
    assert refusal(found, paths[1]).endswith(reports)


# Told


def test_every_folder_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    """With where its files are, if that is known; also where the caller named another place."""
    paths = [f"{OLD}/{item}/{name}" for item in ("shared", "chk-5") for name in NAMES[1:3]]
    put(*(tmp_path / "files" / name for name in NAMES[1:3]))
    moved = {f"{OLD}/shared": str(tmp_path / "gone")}
    found = savepoint(tmp_path, *paths[:2], f"{OLD}/chk-5/{NAMES[3]}", moved=moved)
    advice = f"moved={{'{OLD}/shared': '{tmp_path}/files', '{OLD}/chk-5': ...}}"
    name = f"{tmp_path}/gone/{NAMES[2]}"
    text = f"No such file or directory: pass {advice} to say where it is now"
    assert refusal(found, paths[1]) == f"{name}: cannot be opened: {text}"
    assert refusal(found, f"{OLD}/chk-5/{NAMES[3]}").endswith(f"is now, as in {advice}")
    moved = {f"{OLD}/shared": str(tmp_path / "files"), f"{OLD}/chk-5": str(tmp_path / "files")}
    put(tmp_path / "files" / NAMES[3])
    assert len(values(read_savepoint(tmp_path, moved))) == 3


@pytest.mark.parametrize(
    "old",
    ["C:\\flink\\ckpt", "C:/flink/ckpt", "c:\\flink\\", "/C:/flink/ckpt", "file:/C:/flink/ckpt"],
)
def test_files_of_a_drive(old: str, tmp_path: Path) -> None:
    """Java's File has C:\\flink as file:/C:/flink, which is what Flink writes."""
    drive = old.lstrip("/").removeprefix("file:/")[0]
    rest = "" if old.endswith("\\") else "/ckpt"
    path = f"file:/{drive}:/flink{rest}/{NAMES[1]}"
    put(tmp_path / "files" / NAMES[1])
    assert (
        len(values(savepoint(tmp_path / "job", path, moved={old: str(tmp_path / "files")}))) == 1
    )


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """Its folder is there: no other place is told."""
    path = f"file:{tmp_path}/{NAMES[1]}"
    assert refusal(savepoint(tmp_path, path), path).endswith(": No such file or directory")


def test_files_that_are_allowed(tmp_path: Path) -> None:
    """One by one: their folder is no other than it says."""
    paths = [f"{tmp_path}/old/{name}" for name in NAMES[1:3]]
    put(*map(Path, paths))
    put(*(tmp_path / "point" / name for name in NAMES[1:3]))
    found = savepoint(tmp_path / "point", *paths, allow=[paths[1]])
    assert found.operator(paths[1]).coordinator_state() == b"002"
    assert refusal(found, paths[0]).endswith("or moved to say where it is now")


@pytest.mark.parametrize(
    ("room", "reports"),
    [
        (40, "{'s3://a': ..., 's3://bb': ..., 's3://c': ...}"),  # 13, 14 and 13 characters
        (39, "{'s3://a': ..., 's3://bb': ...}, and so on for 1 more"),
        (27, "{'s3://a': ..., 's3://bb': ...}, and so on for 1 more"),
        (26, "{'s3://a': ...}, and so on for 2 more"),
        (1, "{'s3://a': ...}, and so on for 2 more"),
    ],
)
def test_how_many_folders_a_message_has_room_for(
    room: int, reports: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_files, "_SHOWN", room)
    paths = [f"s3://{name}/{NAMES[1]}" for name in ("a", "bb", "c")]
    assert refusal(savepoint(tmp_path, *paths), paths[0]).endswith(f"as in moved={reports}")


def test_a_message_has_room_for_some(tmp_path: Path) -> None:
    paths = [f"s3://old/{number:05}\n\x1b{'x' * 500}/{NAMES[1]}" for number in range(50)]
    paths += [f"s3://old/{number:05}/{NAMES[1]}" for number in range(50)]
    for passed in (paths, paths[::-1]):
        reports = refusal(savepoint(tmp_path, *passed), passed[-1])
        shown = len(re.findall(r"': \.\.\.", reports))
        assert reports.endswith(f"}}, and so on for {100 - shown} more")
        assert shown
        assert reports.isprintable()
        assert len(reports) < 2000
