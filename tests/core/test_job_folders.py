"""The checkpoints in a job's folder, on disk and in a store."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from keygroups.errors import SavepointError
from keygroups.savepoint import read_savepoint
from keygroups.savepoint._files.job_folders import checkpoints_in, time_of

UTC = dt.timezone.utc


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


def test_what_is_no_folder_of_a_job(tmp_path: Path) -> None:
    assert checkpoints_in(str(tmp_path)) == []
    (tmp_path / "chk-1").mkdir()
    assert checkpoints_in(str(tmp_path)) == []
    with pytest.raises(SavepointError, match=r"/_metadata: cannot be opened: No such file"):
        read_savepoint(tmp_path)
