"""Savepoints compared, and keys weighed, on Spark: as in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from support.bytes.real_savepoints import point
from support.bytes.sample_savepoints import savepoint_folder

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.savepoint import (
    ListStateDescriptor,
    Savepoint,
    SavepointWriter,
    StateEntry,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.spark import (
    compare_savepoints,
    key_sizes,
    savepoint,
    summarize_savepoint,
    verify_savepoint,
)
from keygroups.types import DOUBLE, STRING

pytest.importorskip("pyarrow")

TIME = 1_700_000_000_000
Entry = tuple[str, Any, Any, int]


def written(path: Path, groups: int, entries: list[Entry]) -> Savepoint:
    with SavepointWriter(path) as writer:
        states = [
            ValueStateDescriptor("sum", DOUBLE, has_ttl=True),
            ListStateDescriptor("names", STRING, has_ttl=True),
        ]
        operator = writer.add_operator("by-price", DOUBLE, states, groups, 3, sort=True)
        for state, key, value, time in entries:
            operator.write(state, key, value, last_access=time)
    return read_savepoint(path)


@pytest.mark.long
@pytest.mark.parametrize("groups", [128, 96])
def test_differences(spark: SparkSession, tmp_path: Path, groups: int) -> None:
    """Of each kind; 0.0 is not -0.0, as a key and as a value, and NaN is itself."""
    nan = float("nan")
    entries: list[Entry] = [
        *(("sum", float(number), 1.0, TIME) for number in range(50)),
        *(("sum", -0.0, 0.0, TIME), ("sum", nan, nan, TIME), ("names", 1.5, ["a"], TIME)),
        ("names", 2.5, ["b"], TIME),
    ]
    others: list[Entry] = [
        *(("sum", float(number), 1.0, TIME) for number in range(1, 49)),
        *(("sum", 49.0, 2.0, TIME), ("sum", 50.0, 1.0, TIME), ("sum", nan, nan, TIME + 5)),
        *(("sum", -0.0, -0.0, TIME), ("names", 1.5, ["a", "c"], TIME)),
        ("names", 2.5, ["b"], TIME),
    ]
    old, new = written(tmp_path / "old", 128, entries), written(tmp_path / "new", groups, others)
    df = compare_savepoints(spark, old, tmp_path / "new", "by-price")
    assert df.columns == [
        *("key_group", "state", "key", "namespace", "user_key", "timestamp", "kind"),
        *("old_value", "new_value", "old_last_access", "new_last_access", "key_bytes"),
    ]
    rows = df.select(
        "state", "key", "kind", "old_value", "new_value", "old_last_access", "new_last_access"
    )

    def value(struct: Any, state: str) -> Any:
        of_state = struct and struct[state]
        return (
            of_state and of_state if state == "sum" else of_state and [e.value for e in of_state]
        )

    found = [
        (state, key, kind, *(value(side, state) for side in sides), *times)
        for state, key, kind, *rest in rows.collect()
        for sides, times in [(rest[:2], rest[2:])]
    ]
    expected: list[Any] = [
        ("sum", 0.0, "only_here", 1.0, None, TIME, None),
        ("sum", 49.0, "changed", 1.0, 2.0, TIME, TIME),
        ("sum", 50.0, "only_there", None, 1.0, None, TIME),
        ("sum", nan, "touched", nan, nan, TIME, TIME + 5),
        ("sum", -0.0, "changed", 0.0, -0.0, TIME, TIME),
        ("names", 1.5, "changed", ["a"], ["a", "c"], None, None),
    ]
    assert Counter(map(repr, found)) == Counter(map(repr, expected))
    of_list = compare_savepoints(spark, old, new, "by-price", ["names"])
    assert of_list.schema["old_value"].dataType.typeName() == "array"
    assert of_list.count() == 1
    assert compare_savepoints(spark, old, old, "by-price").count() == 0


def test_an_operator_of_one_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    old = written(tmp_path / "old", 128, [("sum", 1.0, 5.0, TIME)])
    new = point("2.3.0-heap-canonical").read()
    for pair, kind in (((old, new), "only_here"), ((new, old), "only_there")):
        df = compare_savepoints(spark, *pair, "by-price")
        assert [(row["key"], row["kind"]) for row in df.collect()] == [(1.0, kind)]


@pytest.mark.slow
def test_real_points(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers and windows among them; in several tasks."""
    monkeypatch.setattr("keygroups.savepoint._jobs.questions.TASK_BYTES", 20_000)
    old, new = (point(f"2.3.0-{name}-canonical").read() for name in ("heap", "rocks"))
    df = compare_savepoints(spark, old, new, "by-string")
    parts = df.select(F.spark_partition_id().alias("part")).distinct().count()
    assert parts > 1
    found = Counter(
        (row["key_group"], row["state"], row["key"], row["kind"], row["timestamp"])
        for row in df.collect()
    )
    expected: Counter[Any] = Counter()
    for item in old.differences(new, ["by-string"]):
        entry = item.here or item.there
        if isinstance(entry, StateEntry):
            expected[entry.key_group, item.state, entry.key, item.kind, entry.timestamp] += 1
    assert found == expected
    assert found.total() > 500


def test_arguments(spark: SparkSession, tmp_path: Path) -> None:
    old = point("2.3.0-heap-canonical").read()
    with pytest.raises(InvalidValueError, match="operator must be an operator's uid, name or id"):
        compare_savepoints(spark, old, old, "nobody")
    with pytest.raises(InvalidValueError, match="states must be of by-string, which has"):
        compare_savepoints(spark, old, old, "by-string", ["nothing"])
    with pytest.raises(InvalidTypeError, match="states must be"):
        compare_savepoints(spark, old, old, "by-string", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="spark must be"):
        compare_savepoints(None, old, old, "by-string")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="top must be from 1 to"):
        key_sizes(spark, old, "by-string", 0)
    with pytest.raises(InvalidValueError, match="operator must be an operator's uid, name or id"):
        key_sizes(spark, old, "nobody")


@pytest.mark.long
@pytest.mark.parametrize("name", ["by-string", "by-long"])
def test_key_sizes(spark: SparkSession, name: str) -> None:
    """All keys weigh what they do in one process, the heaviest first."""
    operator = point("2.3.0-heap-canonical").read()
    expected = operator.operator(name).key_sizes(top=10_000)
    rows = [tuple(row) for row in key_sizes(spark, operator, name, top=10_000).collect()]
    assert Counter(rows) == Counter(map(tuple, expected))
    assert [row[-1] for row in rows] == [size.bytes for size in expected]
    top = key_sizes(spark, operator.path, name, top=3)
    assert [row["bytes"] for row in top.collect()] == [size.bytes for size in expected[:3]]


@pytest.mark.long
def test_verification(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same is at fault as in one process, in however many tasks that is found."""
    monkeypatch.setattr("keygroups.savepoint._verification.verify.TASK_BYTES", 4096)
    whole = point("2.3.0-heap-canonical").read()
    assert verify_savepoint(spark, whole) == whole.verify()
    assert verify_savepoint(spark, whole.path, ["by-string"]).operators[0].entries > 0
    of_sample = read_savepoint(savepoint_folder(50))
    assert verify_savepoint(spark, of_sample) == of_sample.verify()
    assert verify_savepoint(spark, of_sample).has_faults
    with pytest.raises(InvalidValueError, match="operator must be an operator's uid, name or id"):
        verify_savepoint(spark, whole, ["nobody"])


@pytest.mark.long
def test_summary(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are those of one process, in however many tasks they are counted."""
    monkeypatch.setattr("keygroups.savepoint._summary.summarize.TASK_BYTES", 4096)
    whole, at = point("2.3.0-heap-canonical").read(), datetime(2026, 11, 26, tzinfo=timezone.utc)
    assert summarize_savepoint(spark, whole, top=3, at=at) == whole.summary(top=3, at=at)
    [summed] = summarize_savepoint(spark, whole.path, ["by-string"]).operators
    assert summed.states


def test_sizes_of_zeros_and_of_no_keys(spark: SparkSession, tmp_path: Path) -> None:
    """0.0 and -0.0 are two keys, as in Java; an operator without keys has none."""
    entries: list[Entry] = [("sum", key, 1.0, TIME) for key in (0.0, -0.0, float("nan"))]
    old = written(tmp_path / "old", 128, entries)
    rows = key_sizes(spark, old, "by-price").collect()
    assert Counter(repr(row["key"]) for row in rows) == {"0.0": 1, "-0.0": 1, "nan": 1}
    assert {row["entries"] for row in rows} == {1}
    empty = written(tmp_path / "empty", 128, [])
    assert key_sizes(spark, empty, "by-price").collect() == []


def test_without_arrow(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savepoint, "find_spec", lambda name: None)
    old = point("2.3.0-heap-canonical").read()
    calls: list[Callable[[], object]] = [
        lambda: compare_savepoints(spark, old, old, "a"),
        lambda: key_sizes(spark, old, "a"),
        lambda: verify_savepoint(spark, old),
        lambda: summarize_savepoint(spark, old),
    ]
    for call in calls:
        with pytest.raises(ModuleNotFoundError, match=r"needs NumPy and PyArrow: pip install"):
            call()
