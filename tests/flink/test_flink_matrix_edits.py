"""Edits of what Kryo wrote, of keys that decode and do not encode, and of timers on the heap.

Real Flink restores each: timers that were deleted and moved fire as the edit says, keys and
entries that were deleted are not found, and a job with other key groups finds the rest in them.
What is to be found follows from the seed job, and from the edit.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.bytes.matrix_points import (
    MAX_PARALLELISM,
    SERIALIZERS,
    UIDS,
    Cell,
    counted,
    expected,
    line,
    line_of,
    read,
    uuid_of,
)
from support.bytes.version_points import KEYS, TIME, Content
from support.flink.flink_oracle import flink_jar, version_numbers
from support.flink.flink_restores import BACKENDS, FlinkRestores
from support.flink.flink_sql import FlinkSql, jdk_folder
from support.flink.matrix_restores import restored

from keygroups.savepoint import (
    DELETE,
    Pojo,
    SavepointEditor,
    StateEntry,
    change_max_parallelism,
    read_savepoint,
)

pytestmark = [pytest.mark.flink, pytest.mark.flink_since("1.18", "a later one than of the points")]

SLOW = pytest.mark.slow
TIMERS = "_timer_state/event_user-timers"
DAY = "Matrix$Day"
EDITED = [
    Cell("1.13.6", "rocksdb-full", "sync", "heap", "checkpoint"),
    Cell("1.18.1", "hashmap", "sync", "own", "native"),
    Cell("1.18.1", "rocksdb", "sync", "heap", "checkpoint"),
    Cell("2.3.0", "hashmap", "sync", "own", "native"),
    Cell("2.3.0", "rocksdb", "sync", "heap", "checkpoint"),
    Cell("2.3.0", "forst", "async", "heap", "native"),
]
"""Native Kryo, and timers on the heap of RocksDB and ForSt."""
REKEYED = ("plain", "lines", "by-uuid")


def moved_timer(timer: StateEntry) -> Any:
    """Delete the first timer of a key, and move the last one."""
    assert timer.timestamp is not None
    return {TIME + 1: DELETE, TIME + 3: TIME + 1_000}.get(timer.timestamp, timer.timestamp)


def with_moved_timers(entries: Content) -> Content:
    """Return the entries that the edit leaves."""
    found: Content = Counter()
    for row in entries.elements():
        if row[6] == TIME + 3:
            row = (*row[:6], TIME + 1_000, row[7])
        if row[6] != TIME + 1:
            found[row] += 1
    return found


def without(entries: Content, keys: list[Any]) -> Content:
    return Counter({row: count for row, count in entries.items() if row[2] not in keys})


def without_rows(entries: Content, state: str, place: int, value: Any) -> Content:
    """Return the entries but those of a state that have a value in a place."""
    return Counter(
        {row: count for row, count in entries.items() if row[0] != state or row[place] != value}
    )


def sold_out(old: Pojo) -> Pojo:
    """Make a new object for Kryo to write."""
    return line(f"{old.sku}, é", -1)


def with_sold_out(entries: Content) -> Content:
    """Return the entries with new lines under the user key 1."""
    return Counter(
        tuple(sold_out(cell) if isinstance(cell, Pojo) and row[4] == 1 else cell for cell in row)
        if row[0] == "by-number"
        else row
        for row in entries.elements()
    )


def check_version(restores: FlinkRestores, cell: Cell) -> None:
    flink, wrote = version_numbers(restores.version), version_numbers(cell.version)
    if flink < wrote or flink[0] != wrote[0]:
        pytest.skip(f"Flink {restores.version} does not read Kryo of {cell.version}")


QUICK = ("1.18.1-hashmap-sync-own-native", "2.3.0-rocksdb-sync-heap-checkpoint")
each_cell = pytest.mark.parametrize(
    ("cell", "backend"),
    [
        pytest.param(
            cell,
            backend,
            id=f"{cell.name}-{backend}",
            marks=[] if (cell.name, backend) in {(one, "hashmap") for one in QUICK} else SLOW,
        )
        for cell in EDITED
        for backend in BACKENDS
    ],
)


@each_cell
def test_edited(restores: FlinkRestores, cell: Cell, backend: str, tmp_path: Path) -> None:
    check_version(restores, cell)
    with SavepointEditor(read(cell), tmp_path / "new") as editor:
        for uid in ("plain", "by-uuid", "by-line"):
            editor.operator(uid).map_timers(TIMERS, moved_timer)
        editor.operator("lines").map_entries(
            "by-number",
            lambda entry: {1: sold_out(entry.value), 2: DELETE}.get(entry.user_key, entry.value),
        )
        editor.operator("by-uuid").delete_keys([uuid_of("k1")])
        editor.operator("by-line").delete_keys([line_of("k2")])
        editor.operator("by-line").map_entries(
            "count", lambda entry: DELETE if entry.key.sku == "k0" else entry
        )
    present = expected(cell)
    by_line = without(with_moved_timers(present["by-line"]), [line_of("k2")])
    contents = {
        "plain": with_moved_timers(present["plain"]),
        "lines": with_sold_out(without_rows(present["lines"], "by-number", 4, 2)),
        "by-uuid": without(with_moved_timers(present["by-uuid"]), [uuid_of("k1")]),
        "by-line": without_rows(by_line, "count", 2, line_of("k0")),
    }
    assert contents != present
    new = read_savepoint(tmp_path / "new", serializers=SERIALIZERS)
    restored(restores, new, contents, backend, MAX_PARALLELISM)


@each_cell
def test_keyed_anew(restores: FlinkRestores, cell: Cell, backend: str, tmp_path: Path) -> None:
    """Without the operator whose keys only the job hashes."""
    check_version(restores, cell)
    with SavepointEditor(read(cell), tmp_path / "known") as editor:
        editor.remove_operator("by-line")
    known = read_savepoint(tmp_path / "known", serializers=SERIALIZERS)
    change_max_parallelism(known, 200, tmp_path / "new")
    new = read_savepoint(tmp_path / "new", serializers=SERIALIZERS)
    present = expected(cell)
    restored(restores, new, {uid: present[uid] for uid in REKEYED}, backend, 200)


def day_of(key: str) -> Pojo:
    return Pojo(DAY, {"date": date(1970, 1, 1) + timedelta(len(key)), "name": key})


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        pytest.param(kind, backend, marks=[] if (kind, backend) == ("native", "hashmap") else SLOW)
        for kind in ("canonical", "native", "checkpoint")
        for backend in BACKENDS
    ],
)
def test_keys_that_decode_and_do_not_encode(
    restores: FlinkRestores, backend: str, kind: str, tmp_path: Path
) -> None:
    """A POJO with a LocalDate, by which keys, entries and timers are deleted."""
    jar, jdk = flink_jar(), jdk_folder()
    assert jar is not None
    assert jdk is not None
    task: dict[str, object] = {
        "folder": (tmp_path / "old").as_uri(),
        "options": BACKENDS[backend],
        "keys": KEYS,
        "numbers": 3,
        "parallelism": 2,
        "max_parallelism": MAX_PARALLELISM,
        "flood": 0,
        "has_days": True,
        "kind": kind,
    }
    classes = tmp_path / "classes"
    classes.mkdir()
    [answer] = FlinkSql(jdk, jar.parent, classes).matrix([task], is_async=False)
    old = read_savepoint(
        answer["path"].removeprefix("file:"), uids=[*UIDS, "by-day"], serializers=SERIALIZERS
    )
    with SavepointEditor(old, tmp_path / "new") as editor:
        for uid in UIDS:
            editor.remove_operator(uid)
        operator = editor.operator("by-day")
        operator.delete_keys([day_of("k1")])
        operator.map_entries("count", lambda entry: DELETE if entry.key.name == "k2" else entry)
        operator.map_timers(TIMERS, moved_timer)
    new = read_savepoint(tmp_path / "new", serializers=SERIALIZERS)
    entries = with_moved_timers(counted([day_of(key) for key in KEYS if key != "k1"], True))
    contents = {"by-day": without_rows(entries, "count", 2, day_of("k2"))}
    restored(restores, new, contents, backend, MAX_PARALLELISM)
