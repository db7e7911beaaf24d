"""A store that RocksDB of the Flink that is tested leaves, against what it reads of it itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bytes.rocksdb_stores import first_letters, store
from support.flink.flink_sql import FlinkSql

pytestmark = pytest.mark.flink


def test_range_deletions_end_with_their_files(flink_sql: FlinkSql, tmp_path: Path) -> None:
    folder = tmp_path / "db"
    live = flink_sql.range_deletions(folder)
    assert len(live) == 240
    names = [*folder.glob("*.sst"), *folder.glob("MANIFEST-*")]
    files = {file.name: file.read_bytes() for file in names}
    assert first_letters(store(tmp_path / "store", files)) == live
