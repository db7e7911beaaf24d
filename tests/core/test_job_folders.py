"""The checkpoints in a job's folder, on disk and in a store."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest

from keygroups.errors import SavepointError
from keygroups.savepoint import job_files, read_savepoint
from keygroups.savepoint._files import job_folders

UTC = dt.timezone.utc
checkpoints_in, time_of = job_folders.checkpoints_in, job_folders.time_of


@pytest.mark.parametrize(
    ("info", "time"),
    [
        ({"mtime": 86_400.5}, dt.datetime(1970, 1, 2, 0, 0, 0, 500_000, UTC)),
        (
            {"LastModified": dt.datetime(2026, 1, 2, tzinfo=UTC)},
            dt.datetime(2026, 1, 2, tzinfo=UTC),
        ),
        ({"created": dt.datetime(2026, 1, 2)}, dt.datetime(2026, 1, 2, tzinfo=UTC)),
        ({"updated": "2026-01-02T03:04:05Z"}, dt.datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),
        ({"last_modified": 86_400}, dt.datetime(1970, 1, 2, tzinfo=UTC)),
        ({"mtime": 0, "LastModified": 5}, dt.datetime(1970, 1, 1, tzinfo=UTC)),
        (
            {"mtime": None, "LastModified": "2026-01-02T03:04:05+02:00"},
            dt.datetime(2026, 1, 2, 1, 4, 5, 0, UTC),
        ),
        ({"updated": "yesterday"}, None),
        ({"mtime": None, "size": 5}, None),
    ],
)
def test_times_as_stores_tell_them(info: dict[str, Any], time: dt.datetime | None) -> None:
    """fsspec: `info` of local, s3fs, adlfs, gcsfs and memory."""
    assert time_of(info) == time


def test_in_a_store() -> None:
    fsspec = pytest.importorskip("fsspec", reason="the extra savepoint")
    memory = fsspec.filesystem("memory")
    try:
        for name in ("chk-7/_metadata", "chk-8/_metadata", "shared/a"):
            memory.pipe_file(f"/job-of-folders/{name}", b"")
        found = checkpoints_in("memory://job-of-folders")
        assert [each.path for each in found] == [
            f"memory://job-of-folders/{name}" for name in ("chk-8", "chk-7")
        ]
        assert all(each.written and each.written.tzinfo for each in found)
        with pytest.raises(SavepointError, match=r"folder of a job .*: name one of chk-8 \("):
            read_savepoint("memory://job-of-folders")
        assert checkpoints_in("memory://no-such-folder") == []
    finally:
        memory.rm("/job-of-folders", recursive=True)


def test_folders_that_a_store_ends_with_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some stores list them so; of what has no _metadata, or no time, less is told."""
    times = {"/job/chk-7/_metadata": {"mtime": 60}, "/job/chk-8/_metadata": {}}

    class Store:
        listed: ClassVar[list[dict[str, Any]]] = []  # a cache, as s3fs has one

        @classmethod
        def invalidate_cache(cls) -> None:
            cls.listed = [{"name": f"/job/{name}"} for name in ("chk-7/", "shared/", "chk-8")]

        @classmethod
        def ls(cls, path: str, detail: bool) -> list[dict[str, Any]]:
            assert (path, detail) == ("/job", True)
            return cls.listed

        @staticmethod
        def info(path: str) -> dict[str, Any]:
            if path not in times:
                raise FileNotFoundError(path)
            return times[path]

    monkeypatch.setattr(job_folders, "filesystem_of", lambda _: (Store, "/job"))
    seven, eight = checkpoints_in("x://job")
    assert seven == ("x://job/chk-7", dt.datetime(1970, 1, 1, 0, 1, tzinfo=UTC))
    assert eight == ("x://job/chk-8", None)
    assert [str(seven), str(eight)] == ["chk-7 (1970-01-01 00:01 UTC)", "chk-8"]
    monkeypatch.setattr(job_folders, "_MOST", 1)
    assert checkpoints_in("x://job") == [seven]
    assert job_folders.all_checkpoints_in("x://job") == [seven, eight]


@pytest.mark.parametrize("count", [1, 10, 11, 14])
def test_as_many_as_a_message_names(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten, the newest first, of so many that are looked into."""
    monkeypatch.setattr(job_folders, "_MOST", 12)
    for number in range(count):
        (tmp_path / f"chk-{number}").mkdir()
        (tmp_path / f"chk-{number}" / "_metadata").touch()
        os.utime(tmp_path / f"chk-{number}" / "_metadata", (number, number))
    with pytest.raises(SavepointError) as caught:
        read_savepoint(tmp_path)
    start = f"{tmp_path}: it has no _metadata, but is the folder of a job or of savepoints: name "
    text = str(caught.value)
    assert text.startswith(f"{start}one of ")
    if count < 12:
        names = [f"chk-{number} (1970-01-01 00:00 UTC)" for number in range(count)[::-1]]
        more = ", and 1 older ones" if count > 10 else ""
        assert text == f"{start}one of {', '.join(names[:10])}{more}"
    else:
        assert text.endswith(", and 2 older ones")


def test_what_is_no_folder_of_a_job(tmp_path: Path) -> None:
    assert checkpoints_in(str(tmp_path)) == []
    (tmp_path / "chk-1").mkdir()
    assert checkpoints_in(str(tmp_path)) == []
    with pytest.raises(SavepointError, match=r"/_metadata: cannot be opened: No such file"):
        read_savepoint(tmp_path)


def test_all_that_are_there_or_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a checkpoint that was passed over needs would be nobody's, and deleted."""
    for name in ("chk-7", "chk-8"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_metadata").touch()
    monkeypatch.setattr(job_folders, "_MOST", 1)
    assert len(checkpoints_in(str(tmp_path))) == 1
    assert len(job_folders.all_checkpoints_in(str(tmp_path))) == 2
    look = os.lstat

    def refused(path: Any) -> os.stat_result:
        if str(path).endswith("chk-8/_metadata"):
            raise PermissionError(13, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(os, "lstat", refused)
    with pytest.raises(SavepointError, match="cannot be opened: Permission denied"):
        job_files(tmp_path)
