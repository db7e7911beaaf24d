"""`keygroups.spark.state`: what it refuses, where state is put, and what Spark makes of it.

That its changelog is Flink's is shown in `tests/flink/test_flink_group_aggregate.py`, outside of
Spark. Queries need pandas and protobuf, so they are marked `extras`.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import pytest
from support.flink.group_histories import (
    ROUTING,
    InMemoryHandle,
    pack_of,
    random_history,
    rows_in,
    told_by_us,
    told_together,
    values,
)

import keygroups
from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.types import LONG, STRING, TUPLE

pytest.importorskip("pyspark")

import pyspark
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.utils import is_remote

try:
    from pyspark.errors import StreamingQueryException
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor
except ImportError:  # older than Spark 4.0
    StatefulProcessor = object  # type: ignore[assignment, misc]

from support.inside.adapter import PORTABLE, Retention, landing_of, lands_on, query_checks
from support.spark.state_queries import finish, state_settings

from keygroups.spark.dataframe import key_group_column, key_tree
from keygroups.spark.state import GroupAggregate, group_aggregate, read_state, state_accesses

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

HAS_API = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)
needs_api = pytest.mark.skipif(not HAS_API, reason="PySpark before 4.1")
SCHEMA = T.StructType(
    [
        T.StructField("kind", T.StringType()),
        T.StructField("app", T.StringType()),
        T.StructField("seq", T.LongType()),
        T.StructField("user", T.LongType()),
        T.StructField("price", T.FloatType()),
    ]
)
USERS = {"views": ("count", "*"), "users": ("count_distinct", "user")}
USERS_OF_V = {"n": ("count", "*"), "users": ("count_distinct", "v")}
FOREVER = Retention(None, None, False)
MINUTE = timedelta(minutes=1)


def test_pyspark_before_4_1_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")
    for call in (
        lambda: GroupAggregate(SCHEMA, USERS),
        lambda: group_aggregate(None, "app", None, 128, 4),  # type: ignore[arg-type]
    ):
        with pytest.raises(KeyGroupsError, match=r"PySpark has from 4\.1 on: this is 4\.0\.5"):
            call()


@pytest.mark.skipif(HAS_API, reason="PySpark has it")
def test_this_pyspark_is_named() -> None:
    with pytest.raises(KeyGroupsError, match=rf"4\.1 on: this is {pyspark.__version__}"):
        GroupAggregate(SCHEMA, USERS)


@needs_api
@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (
            {"schema": T.StructType(SCHEMA.fields[1:])},
            InvalidValueError,
            "kind has no column 'kind'",
        ),
        ({"kind": "op"}, InvalidValueError, "kind has no column 'op': there are kind, app"),
        ({"kind": "user"}, InvalidTypeError, "kind must be a string column"),
        ({"schema": "app string"}, InvalidTypeError, "schema must be a StructType"),
        ({"aggregates": {}}, InvalidValueError, "at least one, got none"),
        ({"aggregates": [("n", "count")]}, InvalidTypeError, "aggregates must be a dict"),
        ({"aggregates": {"n": "count"}}, InvalidTypeError, "aggregates must be of tuples"),
        ({"aggregates": {"n": ("avg", "user")}}, InvalidValueError, "count, sum, min, max"),
        ({"aggregates": {"n": ("sum", "*")}}, InvalidValueError, r"has no column '\*'"),
        ({"aggregates": {"n": ("sum", "app")}}, InvalidTypeError, "integer type or double"),
        ({"aggregates": {"n": ("min", "price")}}, InvalidTypeError, "got 'price' of float"),
        ({"aggregates": {"Kind": ("count", "*")}}, InvalidValueError, "different names"),
        ({"order_by": "offset"}, InvalidValueError, "order_by has no column 'offset'"),
        (
            {"order_by": ["seq", "lists"]},
            InvalidTypeError,
            r"numbers, times, text or binary, got 'lists' of array<bigint>$",
        ),
        ({"state_ttl": timedelta(0)}, InvalidValueError, "state_ttl must be above 0"),
        ({"state_ttl": timedelta(microseconds=1500)}, InvalidValueError, "whole milliseconds"),
        ({"state_ttl": 1000}, InvalidTypeError, "must be a datetime.timedelta, got 1000"),
        ({"update_type": "OnReadAndWrite"}, InvalidValueError, "without one"),
        (
            {"state_ttl": MINUTE, "update_type": "Disabled"},
            InvalidValueError,
            "OnCreateAndWrite, OnReadAndWrite, got 'Disabled'",
        ),
        ({"idle_retention": MINUTE}, InvalidTypeError, "must be a tuple"),
        (
            {"idle_retention": (MINUTE, 6 * MINUTE - timedelta(milliseconds=1))},
            InvalidValueError,
            "max at least 5 minutes above its min",
        ),
        ({"idle_retention": (timedelta(0), timedelta(0))}, InvalidValueError, "min above 1 ms"),
        (
            {"idle_retention": (MINUTE, 6 * MINUTE), "state_ttl": MINUTE},
            InvalidValueError,
            "must not be given both",
        ),
        ({"mini_batch": 1}, InvalidTypeError, "mini_batch must be a bool"),
    ],
)
def test_bad_processors(options: dict[str, Any], error: type[Exception], says: str) -> None:
    lists = T.StructField("lists", T.ArrayType(T.LongType()))
    schema = T.StructType([*SCHEMA.fields, lists])
    arguments: dict[str, Any] = {"schema": schema, "aggregates": USERS, **options}
    with pytest.raises(error, match=says):
        GroupAggregate(**arguments)


@needs_api
def test_least_retention_is_taken() -> None:
    GroupAggregate(SCHEMA, USERS, idle_retention=(MINUTE, 6 * MINUTE))
    GroupAggregate(SCHEMA, USERS, state_ttl=timedelta(milliseconds=1))


@needs_api
def test_kind_and_order_of_rows() -> None:
    """What only the rows can tell fails the query."""

    def run(rows: list[tuple[Any, ...]], **options: Any) -> list[Any]:
        key = T.StructType([SCHEMA["app"]])
        processor = GroupAggregate(SCHEMA, USERS, **options)._with_key(key, SCHEMA.names, ROUTING)
        processor.init(cast(Any, InMemoryHandle()))
        made = [T.Row(*SCHEMA.names)(*row, 0.0) for row in rows]
        changes = processor.handleInputRows((17, 1), iter([pack_of(made)]), Clock())
        return rows_in(["app", *processor.result_schema.names], changes)

    kept = ("+I", "maps", 1, 7)
    with pytest.raises(InvalidValueError, match=r"kind must be one of \+I, -U, \+U, -D, got 'I'"):
        run([("I", "maps", 1, 7)])
    with pytest.raises(InvalidValueError, match="got None"):
        run([(None, "maps", 1, 7)])
    with pytest.raises(InvalidValueError, match="order_by must be given where rows retract"):
        run([kept, ("-D", "maps", 2, 7)])
    with pytest.raises(InvalidValueError, match="must not be null or NaN, got None"):
        run([kept, ("-D", "maps", None, 7)], order_by="seq")
    with pytest.raises(
        InvalidValueError, match="must differ among the rows of a key, got 1 twice"
    ):
        run([kept, kept], order_by="seq")
    in_order = run([("-D", "maps", 2, 7), kept], order_by=["seq", "user"])
    assert [tuple(row) for row in in_order] == [("maps", "+I", 1, 1), ("maps", "-D", 1, 1)]


@needs_api
def test_order_of_moments() -> None:
    """Spark gives them in the session's zone, whose clocks show an hour of autumn twice."""
    zone = ZoneInfo("America/New_York")
    schema = T.StructType([*SCHEMA.fields[:2], T.StructField("at", T.TimestampType())])
    key = T.StructType([schema["app"]])
    processor = GroupAggregate(schema, {"n": ("count", "*")}, order_by="at")
    processor = processor._with_key(key, schema.names, ROUTING)

    def run(*rows: tuple[str, datetime | None]) -> list[tuple[Any, ...]]:
        processor.init(cast(Any, InMemoryHandle()))
        made = [T.Row(*schema.names)(kind, "maps", at) for kind, at in rows]
        changes = processor.handleInputRows((17, 1), iter([pack_of(made)]), Clock())
        return [tuple(row)[1:] for row in rows_in(["app", "kind", "n"], changes)]

    first = datetime(2024, 11, 3, 5, 30, tzinfo=timezone.utc).astimezone(zone)
    shown_before = datetime(2024, 11, 3, 6, 0, tzinfo=timezone.utc).astimezone(zone)
    shown_again = datetime(2024, 11, 3, 6, 30, tzinfo=timezone.utc).astimezone(zone)
    # Python compares what clocks in New York show.
    assert shown_before < first == shown_again
    expected = [("+I", 1), ("-D", 1), ("+I", 1)]
    for rows in permutations([("+I", first), ("-D", shown_before), ("+I", shown_again)]):
        assert run(*rows) == expected
    with pytest.raises(InvalidValueError, match="must differ among the rows of a key"):
        run(("+I", first), ("+I", first))
    with pytest.raises(InvalidValueError, match="must not be null or NaN, got None"):
        run(("+I", first), ("+I", None))


@needs_api
def test_order_of_numbers_that_are_none() -> None:
    schema = T.StructType([*SCHEMA.fields[:2], T.StructField("at", T.DoubleType())])
    processor = GroupAggregate(schema, {"n": ("count", "*")}, order_by="at")
    processor = processor._with_key(T.StructType([schema["app"]]), schema.names, ROUTING)
    processor.init(cast(Any, InMemoryHandle()))
    rows = [T.Row(*schema.names)("+I", "maps", at) for at in (2.0, float("nan"), 1.0)]
    with pytest.raises(InvalidValueError, match="must not be null or NaN, got nan"):
        [*processor.handleInputRows((17, 1), iter([pack_of(rows)]), Clock())]


class Clock:
    """Spark's TimerValues."""

    def getCurrentProcessingTimeInMs(self) -> int:
        return 0


@pytest.mark.long
def test_hash_of_a_group_is_its_subtask(spark: SparkSession) -> None:
    rows = [(f"k{n}", n * n * 7919 - 2**40) for n in range(3000)]
    df = spark.createDataFrame(rows, "s string, n bigint")
    wrong: list[Column] = []
    for names, key_type in ((["s"], TUPLE(STRING)), (["n", "s"], TUPLE(LONG, STRING))):
        for parallelism in (1, 3, 128):
            subtask = F.col(f"subtask_{len(wrong)}")
            key_group = key_group_column(df, key_tree(df, names), 128, key_type)
            routed = PORTABLE.operator_index(F.col("key_group"), 128, parallelism)
            df = df.withColumn("key_group", key_group).withColumn(f"subtask_{len(wrong)}", routed)
            columns = [F.col(name) for name in names]
            landing = lands_on(PORTABLE, columns, subtask, parallelism)
            right = F.hash(*columns, landing).eqNullSafe(subtask) & landing.isNotNull()
            wrong.append(F.count_if(~right).alias(f"wrong_{len(wrong)}"))
    (counts,) = df.select(*wrong).collect()
    assert list(counts) == [0] * 6


def test_landing_of_two_ints(spark: SparkSession) -> None:
    pairs = [(n, s) for n in (-1, 0, 7, -(2**31), 2**31 - 1) for s in (0, 1, 5, 127, 32767)]
    rows = [(number, landing_of(number, subtask), subtask) for number, subtask in pairs]
    df = spark.createDataFrame(rows, "number int, landing int, subtask int")
    assert df.where(F.hash("number", "landing") == F.col("subtask")).count() == len(pairs)


def test_a_batch_reads_and_writes_the_state_of_a_key_once() -> None:
    """10 rows of a key in a batch, row by row too: the table and a page are read, a page written.

    Without retention, with all values in the record.
    """
    for mini_batch in (False, True):
        handle = InMemoryHandle()
        history = [(now, [("+I", 7)] * 10) for now in range(20)]
        (reports,) = told_together(
            ["count(*)", "count_distinct"], "BIGINT", FOREVER, mini_batch, [history], handle
        )
        assert reports[-1][-1] == repr(("+U", 200, 1))
        assert (handle.reads, handle.writes) == (40, 21)  # the table is written once


def test_state_accesses_wants_a_progress() -> None:
    with pytest.raises(InvalidTypeError, match="must be a StreamingQueryProgress, got None"):
        state_accesses(None)


# --- queries --------------------------------------------------------------------------------


@pytest.fixture
def stream(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with what a query needs, and as it was before afterwards."""
    pytest.importorskip("pandas")
    pytest.importorskip("google.protobuf")
    with state_settings(spark):
        yield spark


def put(folder: Path, number: int, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(hidden, (number, number))  # Spark orders files by it
    hidden.rename(folder / f"{number:03}.json")


def read(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema("kind string, app string, seq int, v bigint")
    return reader.option("maxFilesPerTrigger", 1).option("maxFileAge", "99999d").json(str(folder))


def run(changes: DataFrame, place: Path) -> Any:
    """Run a query until no file is left; the changes of batch N are in out/batch=N."""
    if is_remote():
        pytest.skip("foreachBatch runs on the server there")
    out = str(place / "out")

    def write(batch: DataFrame, number: int) -> None:
        numbered = batch.withColumn("partition", F.spark_partition_id())
        numbered = numbered.withColumn("at", F.monotonically_increasing_id())
        numbered.write.mode("overwrite").parquet(f"{out}/batch={number}")

    writer = (
        changes.writeStream.foreachBatch(write)
        .outputMode("update")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
    )
    for tries_left in reversed(range(10)):
        query = writer.start()
        try:
            finish(query)
            break
        except StreamingQueryException as error:
            # Spark waits ten seconds for a Python process, which a busy machine may exceed.
            if "Python worker failed to connect back" not in str(error) or not tries_left:
                raise
    return query


def read_changes(spark: SparkSession, place: Path) -> list[Any]:
    return spark.read.parquet(str(place / "out")).orderBy("batch", "at").collect()


@pytest.mark.extras
@needs_api
def test_state_is_in_the_partition_of_its_subtask(stream: SparkSession, tmp_path: Path) -> None:
    rows = [{"kind": "+I", "app": f"app-{n % 40}", "seq": n, "v": n % 7} for n in range(400)]
    put(tmp_path / "in", 0, rows)
    source = read(stream, tmp_path / "in")
    processor = GroupAggregate(source.schema, {"n": ("count", "*")}, mini_batch=True)
    writer = group_aggregate(source, "app", processor, 128, 3).writeStream.format("memory")
    writer = writer.queryName("changes").outputMode("update").trigger(availableNow=True)
    finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start())
    found = {row.app: (row.kind, row.n) for row in stream.table("changes").collect()}
    assert found == {f"app-{n}": ("+I", 10) for n in range(40)}
    assert_placed(stream, tmp_path)


@pytest.mark.extras
@needs_api
def test_null_keys_fail_or_are_dropped(stream: SparkSession, tmp_path: Path) -> None:
    rows = [{"kind": "+I", "app": app, "seq": n, "v": n} for n, app in enumerate(["a", None])]
    put(tmp_path / "in", 0, rows)
    source = read(stream, tmp_path / "in")
    processor = GroupAggregate(source.schema, {"n": ("count", "*")})
    with pytest.raises(InvalidValueError, match="nulls must be one of raise, drop, got 'null'"):
        group_aggregate(source, "app", processor, 128, 3, nulls="null")
    says = "key must not be null, which Flink refuses: pass nulls='drop' to leave out the rows"
    with pytest.raises(Exception, match=says):
        run(group_aggregate(source, "app", processor, 128, 3), tmp_path / "raise")
    run(group_aggregate(source, "app", processor, 128, 3, nulls="drop"), tmp_path / "drop")
    assert [row.app for row in read_changes(stream, tmp_path / "drop")] == ["a"]


def assert_placed(spark: SparkSession, place: Path) -> None:
    kept = read_state(spark, str(place / "checkpoint")).collect()
    for entry in kept:
        subtask = keygroups.assign_key_to_parallel_operator(entry.key.app, 128, 3)
        assert entry.partition_id == subtask
        assert entry.key_group == keygroups.assign_to_key_group(entry.key.app, 128)
    assert {entry.partition_id for entry in kept} == {0, 1, 2}


NAMES = ["count(*)", "sum", "min", "max", "count_distinct"]
RESULTS = {
    name.strip("(*)"): (name.removesuffix("(*)"), "*" if "*" in name else "v") for name in NAMES
}


def put_histories(
    folder: Path, histories: dict[str, dict[int, list[tuple[str, Any]]]], chance: random.Random
) -> None:
    """Put a file for each batch, with the rows of all keys in no order."""
    for number in range(1 + max(max(batches) for batches in histories.values())):
        rows = [
            {"kind": kind, "app": app, "seq": seq, "v": value}
            for app, batches in histories.items()
            for seq, (kind, value) in enumerate(batches.get(number, []))
        ]
        chance.shuffle(rows)
        put(folder, number, rows)


def assert_histories(
    changes: Iterable[Any],
    histories: dict[str, dict[int, list[tuple[str, Any]]]],
    retention: Retention,
    mini_batch: bool,
    times: Sequence[int],
) -> None:
    """The changelog of each key is that of its history, in the partition of its subtask."""
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for row in changes:
        results = tuple(row[name] for name in RESULTS)
        found[row.app, row.batch].append(repr((row.kind, *results)))
        assert row.partition == keygroups.assign_key_to_parallel_operator(row.app, 128, 3)
    for app, batches in histories.items():
        history = [(times[number], rows) for number, rows in batches.items()]
        reports = told_by_us(NAMES, "BIGINT", retention, mini_batch, history)
        assert [found.pop((app, number), []) for number in batches] == reports
    assert not found


@pytest.mark.extras
@needs_api
@pytest.mark.parametrize("mini_batch", [False, True], ids=["row", "mini-batch"])
def test_histories_through_spark(stream: SparkSession, tmp_path: Path, mini_batch: bool) -> None:
    chance = random.Random(17)
    histories = {}
    for n in range(60):
        history = random_history(chance, values("BIGINT"), [0])[:5]
        histories[f"key-{n}"] = {number: rows for number, (_, rows) in enumerate(history)}
    put_histories(tmp_path / "in", histories, chance)
    source = read(stream, tmp_path / "in")
    processor = GroupAggregate(source.schema, RESULTS, order_by="seq", mini_batch=mini_batch)
    run(group_aggregate(source, "app", processor, 128, 3), tmp_path)
    found = read_changes(stream, tmp_path)
    assert_histories(found, histories, FOREVER, mini_batch, [0] * 5)
    assert_placed(stream, tmp_path)


@pytest.mark.extras
@needs_api
@pytest.mark.parametrize(
    ("options", "retention", "mini_batch"),
    [
        (
            {"idle_retention": (2 * MINUTE, 7 * MINUTE)},
            Retention((120_000, 420_000), None, False),
            False,
        ),
        (
            {"state_ttl": 2 * MINUTE, "update_type": "OnReadAndWrite"},
            Retention(None, 120_000, True),
            True,
        ),
    ],
    ids=["idle-row", "ttl-mini-batch"],
)
def test_forgotten_after_a_restart(
    stream: SparkSession,
    tmp_path: Path,
    options: dict[str, Any],
    retention: Retention,
    mini_batch: bool,
) -> None:
    """Each batch is run by another query, at times told to it, and keys are idle in between."""
    chance = random.Random(18)
    times = [1_600_000_000_000]
    for gap in (119_999, 1, 120_000, 300_001, 420_000, 60_000):
        times.append(times[-1] + gap)
    histories = {}
    for n in range(60):
        history = random_history(chance, values("BIGINT"), [0])
        numbers = sorted(chance.sample(range(7), min(len(history), chance.randint(2, 6))))
        histories[f"key-{n}"] = {number: rows for number, (_, rows) in zip(numbers, history)}
    histories["last"] = {7: [("+I", 1)]}
    times.append(times[-1] + 420_000)
    source_folder, made = tmp_path / "in", tmp_path / "made"
    put_histories(made, histories, chance)
    source_folder.mkdir()
    source = read(stream, source_folder)
    processor = GroupAggregate(
        source.schema, RESULTS, order_by="seq", mini_batch=mini_batch, **options
    )
    changes = group_aggregate(source, "app", processor, 128, 3)
    for number, file in enumerate(sorted(made.iterdir())):
        file.rename(source_folder / file.name)
        run(changes, tmp_path)
        run_again(changes, tmp_path, number, times[number])
    assert_histories(read_changes(stream, tmp_path), histories, retention, mini_batch, times)
    kept = read_state(stream, str(tmp_path / "checkpoint")).collect()
    present = [entry.key.app for entry in kept if entry.expires.timestamp() * 1000 > times[-1]]
    assert present == ["last"]
    if retention.idle is not None:  # timers remove a key, a TTL a page without a key that lives
        assert len(kept) == 1


def run_again(changes: DataFrame, place: Path, number: int, when: int) -> None:
    """Run the last batch at another time, as if Spark had been killed before it was committed.

    The log of what is planned has the time of a batch, and Spark keeps to it.
    """
    planned = place / "checkpoint" / "offsets" / str(number)
    version, settings, rest = planned.read_text().split("\n", 2)
    settings = json.dumps(json.loads(settings) | {"batchTimestampMs": when})
    planned.write_text(f"{version}\n{settings}\n{rest}")
    planned.with_name(f".{number}.crc").unlink()
    for name in (str(number), f".{number}.crc"):
        (place / "checkpoint" / "commits" / name).unlink()
    run(changes, place)


@pytest.mark.extras
@needs_api
def test_spark_counts_the_accesses_of_a_batch(stream: SparkSession, tmp_path: Path) -> None:
    """10 rows of a key in a batch, all of one user: as many accesses as for one row."""
    accesses = []
    for number, (mini_batch, rows_of_key) in enumerate([(False, 10), (True, 10), (True, 1)]):
        rows = [
            {"kind": "+I", "app": f"app-{n % 20}", "seq": n, "v": 7}
            for n in range(20 * rows_of_key)
        ]
        place = tmp_path / str(number)
        put(place / "in", 0, rows)
        source = read(stream, place / "in")
        aggregates = {"n": ("count", "*"), "users": ("count_distinct", "v")}
        processor = GroupAggregate(source.schema, aggregates, mini_batch=mini_batch)
        query = run(group_aggregate(source, "app", processor, 128, 3), place)
        accesses.append(state_accesses(query.lastProgress))
    assert accesses[0] == accesses[1] == accesses[2]
    assert all(accesses[1])


@pytest.mark.extras
@needs_api
def test_state_is_read(stream: SparkSession, tmp_path: Path) -> None:
    """Of 4 keys, one of which has so many values that they are in pages."""
    users = {"a": 300, "b": 16, "c": 1, "d": 0}
    rows = [{"kind": "+I", "app": app, "v": n % count} for app, count in users.items() if count
            for n in range(400)]  # fmt: skip
    rows += [{"kind": "+I", "app": "d", "v": None}]
    put(tmp_path / "in", 0, rows)
    source = read(stream, tmp_path / "in")
    aggregates = {"n": ("count", "*"), "users": ("count_distinct", "v"), "most": ("max", "v")}
    processor = GroupAggregate(source.schema, aggregates, state_ttl=MINUTE * 60, mini_batch=True)
    run(group_aggregate(source, "app", processor, 128, 3), tmp_path)
    checkpoint = tmp_path / "checkpoint"
    found = read_state(stream, checkpoint)
    assert found.columns == ["partition_id", "key_group", "key", "rows", "results", "expires"]
    reports = {row.key.app: (row.rows, *row.results) for row in found.collect()}
    assert reports == {
        "a": (400, 400, 300, 299),
        "b": (400, 400, 16, 15),
        "c": (400, 400, 1, 0),
        "d": (1, 1, 0, None),
    }
    offsets = (checkpoint / "offsets" / "0").read_text().split("\n")[1]
    end = json.loads(offsets)["batchTimestampMs"] + 3_600_000
    for result in (None, "users", "most"):
        seconds = F.unix_millis("expires")
        ends = read_state(stream, checkpoint, result).select(seconds).distinct().collect()
        assert [row[0] for row in ends] == [end]
    for result in ("users", "most"):
        counts = read_state(stream, checkpoint, result)
        found_counts = {(row.key.app, row.value): row["count"] for row in counts.collect()}
        assert found_counts == {
            (app, value): len(range(value, 400, count))
            for app, count in users.items()
            for value in range(count)
        }
    with pytest.raises(InvalidValueError, match="result must be one of users, most, got 'n'"):
        read_state(stream, checkpoint, "n")


@pytest.mark.extras
@needs_api
def test_state_of_an_older_keygroups_is_refused(stream: SparkSession, tmp_path: Path) -> None:
    class ValueStates(StatefulProcessor):  # here, so that workers get it by value
        """Keeps the states of a key, or of a key group in version 1, by their names and kinds."""

        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("accState", "layout string, names string, n int")
            handle.getMapState("keys", "number int", "page binary")

        def handleInputRows(
            self, key: Any, rows: Iterator[Any], timerValues: Any
        ) -> Iterator[Any]:
            self._state.update(("", "", len(list(rows))))
            yield T.Row(app="maps")

    put(tmp_path / "in", 0, [{"kind": "+I", "app": "maps", "seq": 1, "v": 7}])
    source = read(stream, tmp_path / "in")
    names = {"app": ["app", "_lands_on"], "group": ["_key_group", "_lands_on"]}
    old = source.withColumn("_key_group", F.lit(1)).withColumn("_lands_on", F.lit(1))
    for name, columns in names.items():
        (tmp_path / name).mkdir()
        grouped = old.groupBy(*columns)
        run(
            grouped.transformWithState(ValueStates(), "app string", "Update", "ProcessingTime"),
            tmp_path / name,
        )
    put(tmp_path / "in", 1, [{"kind": "+I", "app": "maps", "seq": 1, "v": 7}])
    new = group_aggregate(source, "app", GroupAggregate(source.schema, USERS_OF_V), 128, 3)
    for name in names:
        with pytest.raises(StreamingQueryException, match=r"NOT_COMPATIBLE|TYPE_CHANGE"):
            run(new, tmp_path / name)
        with pytest.raises(KeyGroupsError, match=r"it has accState.*an older keygroups is read"):
            read_state(stream, tmp_path / name / "checkpoint")
    stream.conf.set("spark.sql.streaming.stateStore.stateSchemaCheck", "false")
    try:
        with pytest.raises(StreamingQueryException, match=r"accState .*new checkpoint"):
            run(new, tmp_path / "group")
    finally:
        stream.conf.unset("spark.sql.streaming.stateStore.stateSchemaCheck")


@pytest.mark.extras
@needs_api
def test_names_that_sql_quotes(stream: SparkSession, tmp_path: Path) -> None:
    """PySpark finds no column by such a name, and groups a state by columns called as ours."""
    names = {"kind": "ki.nd", "app": "a`p.p", "seq": "_key_group", "v": "_Lands_On"}
    rows = [{"kind": "+I", "app": f"a{n % 2}", "seq": n, "v": n} for n in range(6)]
    put(tmp_path / "in", 0, [{names[name]: row[name] for name in row} for row in rows])
    types = ("string", "string", "int", "bigint")
    schema = ", ".join(f"`{n.replace('`', '``')}` {t}" for n, t in zip(names.values(), types))
    source = stream.readStream.schema(schema).json(str(tmp_path / "in"))
    options: dict[str, Any] = {"kind": names["kind"], "order_by": names["seq"], "mini_batch": True}
    processor = GroupAggregate(source.schema, {"n`.": ("sum", names["v"])}, **options)
    run(group_aggregate(source, names["app"], processor, 128, 3), tmp_path)
    found = [tuple(row)[:3] for row in read_changes(stream, tmp_path)]
    assert sorted(found) == [("a0", "+I", 6), ("a1", "+I", 9)]
    kept = read_state(stream, tmp_path / "checkpoint").collect()
    assert sorted((row.key[0], row.results[0]) for row in kept) == [("a0", 6), ("a1", 9)]


@pytest.mark.extras
@needs_api
def test_another_query_is_refused(stream: SparkSession, tmp_path: Path) -> None:
    """By name, before a row of it is there; the query goes on as if it had not been."""
    put(tmp_path / "in", 0, [{"kind": "+I", "app": f"a{n}", "seq": 1, "v": 7} for n in range(9)])
    source = read(stream, tmp_path / "in")

    def query(
        max_parallelism: int = 128, parallelism: int = 3, name: str = "n", **options: Any
    ) -> DataFrame:
        processor = GroupAggregate(source.schema, {name: ("count", "*")}, **options)
        return group_aggregate(source, "app", processor, max_parallelism, parallelism)

    run(query(), tmp_path)
    put(tmp_path / "in", 1, [{"kind": "+I", "app": "a0", "seq": 2, "v": 7}])
    for other, says in (
        (query(max_parallelism=256), "max_parallelism was 128 in the checkpoint, got 256: "),
        (query(parallelism=2), "parallelism was 3 in the checkpoint, got 2: "),
        (query(state_ttl=MINUTE), r"state_ttl \(in ms\) was None in the checkpoint, got 60000: "),
    ):
        with pytest.raises(StreamingQueryException, match=says):
            run(other, tmp_path)
        assert not [row for row in read_changes(stream, tmp_path) if row.batch == 1]
    run(query(name="m", mini_batch=True, order_by="seq"), tmp_path)
    # The files of the second name lie beside those of the first, so only the kinds are read.
    [last] = [row for row in read_changes(stream, tmp_path) if row.kind == "+U"]
    assert last.app == "a0"
    kept = read_state(stream, tmp_path / "checkpoint").collect()
    assert sorted((row.key.app, row.results.m) for row in kept) == [
        (f"a{n}", 1 + (n == 0)) for n in range(9)
    ]


@needs_api
def test_bad_queries(
    spark: SparkSession, stream: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "in", 0, [])
    source = read(spark, tmp_path / "in")
    processor = GroupAggregate(source.schema, {"n": ("count", "*")})
    with pytest.raises(InvalidValueError, match="df must be a stream"):
        group_aggregate(spark.createDataFrame([], source.schema), "app", processor, 128, 3)
    with pytest.raises(InvalidValueError, match="df has no column 'user'"):
        group_aggregate(source, "user", processor, 128, 3)
    with pytest.raises(InvalidValueError, match="df has no column 'kind'"):
        group_aggregate(source.drop("kind"), "app", processor, 128, 3)
    with pytest.raises(InvalidValueError, match="must be at least the parallelism, 4, got 3"):
        group_aggregate(source, "app", processor, 128, 4)
    with pytest.raises(KeyGroupsError, match="parallelism must be"):
        group_aggregate(source, "app", processor, 128, 129)
    with pytest.raises(InvalidTypeError, match="processor must be a GroupAggregate, got 'count'"):
        group_aggregate(source, "app", "count", 128, 3)  # type: ignore[arg-type]
    doubled = source.withColumn("d", F.col("v").cast("double"))
    with pytest.raises(InvalidTypeError, match=r"makes one key of 0\.0 and -0\.0"):
        group_aggregate(doubled, "d", processor, 128, 3)
    with pytest.raises(InvalidValueError, match="key must not have the name of a result, got n"):
        group_aggregate(source.withColumn("n", F.col("v")), "n", processor, 128, 3)
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    )
    with pytest.raises(KeyGroupsError, match=r"stateStore\.providerClass must be .*RocksDB"):
        group_aggregate(source, "app", processor, 128, 3)
    monkeypatch.setattr(
        query_checks, "_NEEDS", {"google.no_such": "protobuf", "no_such": "pandas"}
    )
    with pytest.raises(KeyGroupsError, match="transformWithState needs protobuf, pandas: pip"):
        group_aggregate(source, "app", processor, 128, 3)
    for cls in type(source.groupBy()).__mro__:
        if "transformWithState" in vars(cls):
            monkeypatch.delattr(cls, "transformWithState")
    with pytest.raises(KeyGroupsError, match="this Spark session has no transformWithState"):
        group_aggregate(source, "app", processor, 128, 3)
