"""The PySpark adapter in a user's hands."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from typing_extensions import assert_type

from keygroups import load, reports, types
from keygroups import savepoint as keygroups_savepoint
from keygroups import spark as keygroups_spark
from keygroups.spark import dataframe, placement, rescale, savepoint, skew, state
from keygroups.spark import functions as KF
from keygroups.spark.register import register


def column_expressions(column: KF.ColumnOrName) -> list[Column]:
    key: KF.Key = ["user", column, F.col("item")]
    group = KF.assign_to_key_group(key, 128, types.TUPLE(types.STRING, types.INT, types.INT))
    code = KF.hash_code("user", types.STRING)
    return [
        KF.murmur_hash(code),
        KF.compute_key_group_for_key_hash(code, 128),
        KF.compute_operator_index_for_key_group(128, 24, group),
        KF.assign_key_to_parallel_operator(column, 128, 24, types.LONG),
        KF.partition_for_key("user", "clicks", 4, 128, 4, types.STRING),
        KF.key_for_subtask("subtask", 128, 24, types.STRING, prefix="bucket-"),
    ]


def the_package(spark: SparkSession, events: DataFrame) -> None:
    assert_type(keygroups_spark.infer_key_type(events, "user"), types.KeyType)
    assert_type(keygroups_spark.infer_sql_row(events, ["user", "item"]), types.SQL_ROW)
    keys: list[str] = ["user", "item"]
    routed = keygroups_spark.with_routing(events, keys, 128, 24)
    assert_type(routed, DataFrame)
    keygroups_spark.with_routing(events, "user", 128, 24, nulls="raise")
    measured = keygroups_spark.key_group_load(
        routed, F.col("user"), 128, weight="bytes", nulls="drop"
    )
    assert_type(measured, load.KeyGroupLoad)
    placed = keygroups_spark.repartition_by_subtask(routed, "user", 128, 24, nulls="drop")
    keygroups_spark.assert_placed(placed, "user", 128, 24, nulls="drop")
    counts = keygroups_spark.pre_aggregate(
        placed, "user", [F.count("item")], 128, 24, nulls="drop"
    )
    rebalanced = keygroups_spark.rebalance_keys(counts, "user", 128, 24, nulls="null")
    assert_type(rebalanced, DataFrame)
    uneven = keygroups_spark.skew_report(events, "user", 128, 24, top=3, batch_size=100)
    assert_type(uneven, reports.SkewReport)
    hot = keygroups_spark.skew_report(events, "user", 128, 24, subtask=17, nulls="drop")
    assert_type(hot.detail, reports.SubtaskDetail | None)
    moved = keygroups_spark.rescale_report(events, "user", 128, 24, 36, at_least=24, nulls="drop")
    assert_type(moved, keygroups_spark.RescaleReport)
    assert_type(keygroups_spark.register(spark, [types.STRING]), list[str])
    state = keygroups_spark.read_keyed_state(spark, "savepoint", "by-user", "count")
    assert_type(state, DataFrame)
    assert_type(keygroups_spark.register_data_source(spark), str)
    states = {
        "count": keygroups_spark.ValueState("n", types.LONG),
        "total": keygroups_spark.ReducingState(F.col("bytes"), types.DOUBLE),
        "tags": keygroups_spark.ListState("tag", types.STRING),
        "cities": keygroups_spark.MapState("city", "n", types.STRING, types.LONG),
    }
    keyed = keygroups_spark.KeyedState(None, "user", types.STRING, states, ttl="seen")
    written = keygroups_spark.write_savepoint(
        events, "new", {"by-user": keyed}, 128, 24, nulls="drop"
    )
    assert_type(written, keygroups_savepoint.Savepoint)
    counts = state.where("state = 'count'")
    again = keygroups_spark.write_keyed_state(counts, "new", written, "by-user", ["count"])
    assert_type(again, keygroups_savepoint.Savepoint)
    offsets = keygroups_spark.kafka_offsets(events)
    assert_type(offsets, keygroups_savepoint.KafkaOffsets)
    keygroups_spark.write_savepoint(None, "new", {"clicks": offsets}, 128, 24)
    with keygroups_spark.edit_savepoint(spark, "old", "new", allow=["shared"]) as writer:
        assert_type(writer, keygroups_savepoint.SavepointEditor)
    rescaled = keygroups_spark.change_max_parallelism(spark, "old", 4096, "new")
    assert_type(rescaled, keygroups_savepoint.EditReport)
    differences = keygroups_spark.compare_savepoints(spark, written, "new", "by-user")
    assert_type(differences, DataFrame)
    assert_type(keygroups_spark.key_sizes(spark, "old", "by-user", top=20), DataFrame)
    verified = keygroups_spark.verify_savepoint(spark, "old", ["by-user"])
    assert_type(verified, keygroups_savepoint.SavepointVerification)
    summed = keygroups_spark.summarize_savepoint(spark, "old", ["by-user"], top=3)
    assert_type(summed, keygroups_savepoint.SavepointSummary)


def by_module(spark: SparkSession, events: DataFrame) -> None:
    assert_type(dataframe.infer_key_type(events, "user"), types.KeyType)
    assert_type(dataframe.infer_sql_row(events, "user"), types.SQL_ROW)
    assert_type(dataframe.with_routing(events, "user", 128, 24), DataFrame)
    assert_type(dataframe.key_group_load(events, "user", 128), load.KeyGroupLoad)
    assert_type(dataframe.rebalance_keys(events, "user", 128, 24), DataFrame)
    assert_type(placement.repartition_by_subtask(events, "user", 128, 24), DataFrame)
    placement.assert_placed(events, [F.col("user")], 128, 24, types.TUPLE(types.STRING))
    counted = (F.count("*"), F.sum("n"))
    assert_type(placement.pre_aggregate(events, "user", counted, 128, 24), DataFrame)
    assert_type(rescale.rescale_report(events, "user", 128, 24, 36), reports.RescaleReport)
    assert_type(skew.skew_report(events, "user", 128, 24), reports.SkewReport)
    assert_type(register(spark), list[str])
    assert_type(savepoint.read_keyed_state(spark, "savepoint", "by-user"), DataFrame)
    assert_type(savepoint.register_data_source(spark), str)
    assert_type(savepoint.verify_savepoint(spark, "savepoint").has_faults, bool)
    assert_type(savepoint.summarize_savepoint(spark, "savepoint").at, int)
    counts = savepoint.ValueState("n", types.LONG)
    totals = savepoint.ReducingState("bytes", types.DOUBLE)
    lists = savepoint.ListState("tags", types.STRING)
    cities = savepoint.MapState("city", "n", types.STRING, types.LONG)
    both = {"count": counts, "total": totals, "tags": lists, "cities": cities}
    keyed = savepoint.KeyedState(
        events, ["user", "item"], types.TUPLE(types.STRING, types.INT), both
    )
    savepoint.write_savepoint(None, Path("new"), {"by-user": keyed}, 128, 24, flink="1.20")
    savepoint.write_keyed_state(events, Path("new"), Path("old"), "by-user")
    savepoint.edit_savepoint(spark, Path("old"), Path("new"), {"/old": "/new"})
    savepoint.kafka_offsets(events)
    savepoint.change_max_parallelism(spark, Path("old"), 64, Path("new"), 8, operators=["users"])
    savepoint.compare_savepoints(spark, Path("old"), Path("new"), "users", ["count"])
    savepoint.key_sizes(spark, Path("old"), "users")


def keyed_state(spark: SparkSession) -> None:
    views = spark.readStream.schema("app string, user bigint, kind string, offset bigint").json(
        "views"
    )
    users = state.GroupAggregate(
        views.schema,
        {"views": ("count", "*"), "users": ("count_distinct", "user")},
        order_by=["offset"],
        idle_retention=(dt.timedelta(hours=1), dt.timedelta(hours=2)),
        mini_batch=True,
    )
    changes = state.group_aggregate(views, "app", users, 128, 24, nulls="drop")
    assert_type(changes, DataFrame)
    query = changes.writeStream.outputMode("update").start()
    assert_type(state.read_state(spark, "checkpoint"), DataFrame)
    assert_type(state.read_state(spark, Path("checkpoint"), "users"), DataFrame)
    accesses = state.state_accesses(query.lastProgress)
    assert_type(accesses, state.StateAccesses)
    assert_type(accesses.reads, int)
