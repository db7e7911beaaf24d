"""Keyed state as Flink SQL keeps it, in Spark's own state store: `GROUP BY` over changes.

`GroupAggregate` is a processor for Spark's `transformWithState`, which needs PySpark 4.1 or
newer, pandas, PyArrow and protobuf (`pip install 'keygroups[state]'`) and the RocksDB state
store, which Spark has. `group_aggregate` runs it with the state of each key in the partition of
its Flink subtask. Spark's groups are the key groups, for it takes some 500 us for each group of a
batch; the state of many keys is a page of bytes, which `read_state` shows.

What is otherwise than in Flink:

- Time is that of the micro-batch: all its rows have one processing time, with which TTLs and
  timers are compared, and a timer fires with the first batch after its time, be it without rows.
  What is due is forgotten before a key's rows are looked at, so the changelog is the same. There
  is no TTL of event time.
- Spark keeps no order among the rows of a key in a micro-batch, so retractions need `order_by`.
- A sink knows no changelog: the kind of a row is a column, and the sink has to apply it, in
  `foreachBatch` for example. The changes of a key in a batch are in order, those of keys are not.
- With `Trigger.AvailableNow` a query with state by processing time runs batches without rows
  for ever, unless `spark.sql.streaming.noDataMicroBatches.enabled` is false.
- When a query starts, Spark waits ten seconds for a Python process of the driver, which no
  setting changes (PySpark 4.3). On a machine so busy that it takes longer, the query ends with
  "Python worker failed to connect back", whatever its processor is; started again, it goes on
  from its checkpoint.
- State stays in the partition, and under the key group, where it was put. Flink rescales; here a
  checkpoint keeps its max parallelism and its parallelism, as it keeps
  `spark.sql.shuffle.partitions`: with another one the first batch that has rows fails. So it does
  with another key, key type, aggregate, order of aggregates or TTL (Flink measures old values by
  the new TTL; Spark's store has only when they end), and with a TTL or an idle retention where
  there was none, or none where there was. What may change from run to run: the names of the
  results, `kind`, `order_by`, `mini_batch`, `update_type`, and the times of an idle retention,
  which hold for the rows that come then, as in Flink.
- A -U comes with each +U; Flink leaves it out where no later operator needs it.
- min and max compare strings by their bytes. So does Flink those that came over the network; two
  that are still Java strings it compares by UTF-16, where U+FFFF is behind U+1F600.
- The values of min and max are always kept, as in Flink if its input has retractions.
  Where it has none, Flink keeps the extreme alone, and a TTL forgets it otherwise.

Flink cleaned up idle state by timers until 1.11 (`idle_retention`), but not in mini-batches,
where it is cleaned up here; since 1.12 it has done so by TTL (`state_ttl`), in mini-batches too.
All other rules are those of Flink 2.3.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups._checks import check_choice, check_class, check_parallelisms, show
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.spark._columns.arguments import check_df
from keygroups.spark._columns.backend import PORTABLE
from keygroups.spark._columns.key_columns import plain_text
from keygroups.spark._columns.key_hash import contains
from keygroups.spark._group_by.group import Routing
from keygroups.spark._group_by.key_group import QUERY, state_name
from keygroups.spark._group_by.landing import landing_of, lands_on
from keygroups.spark._group_by.packing import packed, packed_type, unpacked
from keygroups.spark._group_by.processor import GroupAggregate
from keygroups.spark._group_by.query_checks import check_pyspark, check_session, type_of
from keygroups.spark._group_by.stored import (
    keys_of,
    load_state,
    load_table,
    stored_layout,
    values_of,
)
from keygroups.spark._workers import STATE, check_workers
from keygroups.spark.dataframe import key_group_column, routable
from keygroups.types import DOUBLE, FLOAT, UUID, KeyType

__all__ = ["GroupAggregate", "StateAccesses", "group_aggregate", "read_state", "state_accesses"]
__dir__ = __all__.copy

_KEY_GROUP = "_key_group"
_LANDS_ON = "_lands_on"


def group_aggregate(
    df: DataFrame,
    key: str | Sequence[str],
    processor: GroupAggregate,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
    *,
    nulls: str = "raise",
) -> DataFrame:
    """Aggregate a streaming changelog by key, with state where Flink's subtasks have theirs.

    The result has the columns of the key, the kind and the aggregates. Partition i of it and of
    Spark's state store holds the keys that Flink sends to subtask i; that is the routing of
    `repartition_by_subtask`. `key` is a column's name, or a list of several for a TUPLE;
    1 <= parallelism <= max_parallelism <= 32768; `key_type` None takes the type from the schema.
    Write the result in output mode "update".

    In the state store the key is the key group, `_key_group`, and `_lands_on`, a number computed
    from it that makes Spark's hash of both the number of the subtask. With the first batch of a
    run, what the state depends on is compared in each partition with what the checkpoint has: a
    query that is not that one fails with both values, such as "max_parallelism was 128 in the
    checkpoint, got 256", and the checkpoint stays as it was. A checkpoint of an older keygroups
    does not have that, so it is refused by Spark, whose error names the state `accState`: finish
    it with that keygroups, or take a new checkpoint.

    Raises KeyGroupsError before PySpark 4.1, in a session without `transformWithState`, as Spark
    Connect's before 4.1, where pandas, PyArrow or protobuf is missing, and where Spark's
    settings are others than needed:
    `spark.sql.streaming.stateStore.providerClass` has to be RocksDB's, and
    `spark.sql.shuffle.partitions` at least the parallelism. Raises ParallelismError,
    InvalidTypeError and InvalidValueError, also for a `df` that is no stream; and
    UnsupportedKeyTypeError for a key type with a FLOAT, DOUBLE or UUID in it, of which Spark
    groups by other equality. With `nulls` "raise" a null key makes the query fail, with "drop" its
    rows are left out, as `keygroups.spark` has it. Raises PythonWorkerError where Spark's workers
    run a Python without keygroups.

    With the processor of GroupAggregate's example; `examples/streaming_distinct_users.py` is a
    whole job.

    >>> changes = group_aggregate(views, "app", users, 128, 4)  # doctest: +SKIP
    """
    check_pyspark()
    check_df(df)
    check_class("processor", processor, GroupAggregate, "a GroupAggregate")
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    names = [key] if isinstance(key, str) else list(key)
    types = {field.name: plain_text(field.dataType) for field in df.schema.fields}
    for name in [*names, *processor.columns]:
        type_of("df", name, types)
    columns = list(dict.fromkeys([*names, *processor.columns]))
    results = {name.lower() for name in processor.result_schema.names}
    for name in names:
        if name.lower() in results:
            raise InvalidValueError(f"key must not have the name of a result, got {name}")
    quoted = _quoted(key) if isinstance(key, str) else [_quoted(name) for name in names]
    df, tree, known = routable(df, quoted, key_type, nulls)
    if contains(known, FLOAT, DOUBLE, UUID):
        raise InvalidTypeError(
            f"key type {known} is not for grouping: Spark makes one key of 0.0 and -0.0, and two "
            "of a UUID in upper and in lower case"
        )
    check_session(df, parallelism)
    check_workers(df.sparkSession, STATE)

    key_group = key_group_column(df, tree, max_parallelism, known, nulls=nulls)
    # PySpark's state holds no char(n) or varchar(n), and it finds no column with a dot or a
    # backtick in its name: the processor has their names.
    held = (
        F.col(_quoted(name)).cast(spark_type).alias(f"c{number}")
        for number, (name, spark_type) in enumerate((name, types[name]) for name in columns)
    )
    placed = df.select(*held, key_group.alias(_KEY_GROUP))
    subtask = PORTABLE.operator_index(F.col(_KEY_GROUP), max_parallelism, parallelism)
    landing = lands_on(PORTABLE, [F.col(_KEY_GROUP)], subtask, parallelism)
    heads = [(QUERY, landing_of(QUERY, subtask)) for subtask in range(parallelism)]
    rows = packed(placed.withColumn(_LANDS_ON, landing), (_KEY_GROUP, _LANDS_ON), heads)
    key_schema = T.StructType([T.StructField(name, types[name]) for name in names])
    schema = T.StructType([*key_schema.fields, *processor.result_schema.fields])
    routing = Routing(max_parallelism, parallelism, str(known))
    changes: DataFrame = rows.groupBy(_KEY_GROUP, _LANDS_ON).transformWithState(
        processor._with_key(key_schema, columns, routing),
        packed_type(schema),
        "Update",
        "ProcessingTime",
    )
    return unpacked(changes, schema)


def read_state(
    spark: SparkSession, checkpoint: str | PathLike[str], result: str | None = None
) -> DataFrame:
    """Read the state that `group_aggregate` keeps in a query's checkpoint, as of its last batch.

    Without a `result` there is a row for each key: `partition_id` of the state store, `key_group`,
    `key` with the key's columns, the number of its `rows`, `results` with the aggregates, and
    `expires`, the time from which on the query has forgotten it, null for never. Such a key may be
    there for some time yet. A key that has only its clean-up timer left has null `results`.

    With the name of a `result` that is "count_distinct", "min" or "max" there is a row for each
    `value` in its map state, with its `count`, and `expires` with a TTL.

    Raises KeyGroupsError for a checkpoint without such state, for that of an older keygroups,
    where a key may be twice, and of a newer one; InvalidValueError for a `result` without a map
    state; PythonWorkerError where Spark's workers run a Python without keygroups. A damaged page
    makes the query fail.

    >>> read_state(spark, "checkpoints/views", "users")  # doctest: +SKIP
    """
    check_pyspark()
    folder = os.fspath(checkpoint)
    kept, result_names = load_table(spark, folder)
    stored = stored_layout(kept)
    ttl = stored.layout.retention.ttl
    aggregates = dict(zip(result_names, stored.layout.aggregates))
    fields = [T.StructField("key", stored.key_schema)]
    # Spark puts the time of a TTL beside the value of the state.
    of_state = "user_map_value" if ttl is None else "user_map_value.value"
    page = F.col(f"{of_state}.page").alias("page")
    pages = load_state(spark, folder, state_name("keys", ttl)).select(
        "partition_id",
        F.col(f"key.{_KEY_GROUP}").alias("key_group"),
        F.lit(None).cast("binary").alias("key"),
        page,
    )
    if result is None:
        results = [T.StructField(name, each.result_type) for name, each in aggregates.items()]
        fields += [T.StructField("rows", T.LongType())]
        fields += [T.StructField("results", T.StructType(results))]
        read, arguments = partial(keys_of, kept), [F.col("page")]
    else:
        with_map = {
            name: each.map_key for name, each in aggregates.items() if each.map_key is not None
        }
        check_choice("result", result, list(with_map))
        fields += [T.StructField("value", with_map[result])]
        fields += [T.StructField("count", T.LongType())]
        index = list(aggregates).index(result)
        of_result = F.col("user_map_key.aggregate") == index
        of_values = (
            load_state(spark, folder, state_name("values", ttl))
            .where(of_result)
            .select(
                "partition_id",
                F.col(f"key.{_KEY_GROUP}").alias("key_group"),
                F.col("user_map_key.key"),
                page,
            )
        )
        pages = pages.unionAll(of_values)
        read, arguments = partial(values_of, kept, index), [F.col("key"), F.col("page")]
    fields.append(T.StructField("expires", T.LongType()))
    check_workers(spark, extra=None)
    read_page = F.udf(read, T.ArrayType(T.StructType(fields)), useArrow=False)
    rows = pages.select("partition_id", "key_group", F.inline(read_page(*arguments)))
    return rows.withColumn("expires", F.timestamp_millis("expires"))


class StateAccesses(NamedTuple):
    """Counts of a micro-batch's reads from the RocksDB state store, and of its writes.

    >>> StateAccesses(reads=40, writes=20)
    StateAccesses(reads=40, writes=20)
    """

    reads: int
    writes: int


def state_accesses(progress: Any) -> StateAccesses:
    """Return Spark's count of the state accesses of a micro-batch.

    `progress` is a StreamingQueryProgress, such as `query.lastProgress`. The counts are those of
    RocksDB, so they have in them what Spark itself keeps there for timers and TTLs.

    Raises InvalidTypeError for what is no progress.

    >>> from types import SimpleNamespace
    >>> metrics = {"rocksdbGetCount": 24, "rocksdbPutCount": 14}
    >>> progress = SimpleNamespace(stateOperators=[SimpleNamespace(customMetrics=metrics)])
    >>> state_accesses(progress)
    StateAccesses(reads=24, writes=14)
    """
    operators = getattr(progress, "stateOperators", None)
    if not isinstance(operators, (list, tuple)):
        raise InvalidTypeError(f"progress must be a StreamingQueryProgress, got {show(progress)}")
    metrics = [operator.customMetrics for operator in operators]
    return StateAccesses(
        *(
            sum(metric.get(name, 0) for metric in metrics)
            for name in ("rocksdbGetCount", "rocksdbPutCount")
        )
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
