"""The core in a user's hands: routing, key types, plans, operator state and partitioners."""

from __future__ import annotations

import random
import sys

from matplotlib.axes import Axes
from pandas import DataFrame
from typing_extensions import assert_type

import keygroups
from keygroups import (
    assignment,
    binary_row,
    cli,
    errors,
    explain,
    flink_exceptions,
    hashing,
    key_group_range,
    load,
    local_key_by,
    logical_types,
    max_parallelism,
    operator_state,
    partitioners,
    progress,
    reports,
    rescale,
    routing_inference,
    skew,
    source_partitions,
    subtask_keys,
    types,
)


def the_package() -> None:
    low: int = keygroups.DEFAULT_LOWER_BOUND_MAX_PARALLELISM
    high: int = keygroups.UPPER_BOUND_MAX_PARALLELISM
    assert_type(keygroups.hash_code(-1, types.LONG), int)
    assert_type(keygroups.murmur_hash(99162322), int)
    assert_type(keygroups.compute_key_group_for_key_hash(99162322, low), int)
    assert_type(keygroups.assign_to_key_group("A", high), int)
    assert_type(keygroups.assign_key_to_parallel_operator("A", 128, 3), int)
    assert_type(keygroups.compute_operator_index_for_key_group(128, 3, 85), int)
    assert_type(keygroups.compute_default_max_parallelism(86), int)
    assert_type(keygroups.check_restore(128, 90), int)
    own = keygroups.compute_key_group_range_for_operator_index(128, 3, 1)
    least: int = key_group_range.DEFAULT_LOWER_BOUND_MAX_PARALLELISM
    assert_type(key_group_range.compute_default_max_parallelism(86), int)
    own = key_group_range.KeyGroupRange(144, 179)
    indexes = key_group_range.compute_operator_indexes_for_key_group_range(720, own)
    assert_type(indexes, dict[int, int])
    assert_type(key_group_range.compute_operator_index_for_key_group(least, 3, 85), int)
    assert_type(
        key_group_range.compute_key_group_range_for_operator_index(128, 3, 1),
        key_group_range.KeyGroupRange,
    )
    assert_type(own, keygroups.KeyGroupRange)
    assert_type(keygroups.trace_key("A", 128, 3), keygroups.KeyTrace)
    plan = keygroups.RescalePlan(128, 24, 36)
    measured = keygroups.KeyGroupLoad(128, [1] * 128)
    assert_type(plan.moved_weight(measured), float)
    assert_type(keygroups.infer_routing([("A", 2)], 3).candidates[0].max_parallelism, int)
    keys: list[int] = keygroups.keys_for_subtasks(128, 3)
    key: int = keygroups.SubtaskKeySelector(128, 3).key_for(2)
    sums: keygroups.LocalKeyBy[int, int] = keygroups.LocalKeyBy(3, lambda a, b: a + b)
    assert_type(sums.process(key, keys[0]), list[tuple[int, int]])


def errors_are_built_in_ones_too(key: object) -> int | None:
    try:
        return keygroups.assign_to_key_group(key, 128)
    except keygroups.UnsupportedKeyTypeError as error:
        assert_type(error, errors.UnsupportedKeyTypeError)
    except keygroups.AmbiguousKeyTypeError as error:
        assert_type(error, errors.AmbiguousKeyTypeError)
    except keygroups.ParallelismTypeError as error:
        assert_type(error, errors.ParallelismTypeError)
    except keygroups.ParallelismError as error:
        assert_type(error, errors.ParallelismError)
    except keygroups.InvalidTypeError as error:
        type_error: TypeError = error
        assert_type(error, errors.InvalidTypeError)
        raise type_error from None
    except keygroups.InvalidValueError as error:
        value_error: ValueError = error
        assert_type(error, errors.InvalidValueError)
        raise value_error from None
    except (errors.JobError, errors.PythonWorkerError, errors.SavepointError) as error:
        base: keygroups.KeyGroupsError = error
        raise errors.KeyGroupsError from base
    return None


def from_key_to_subtask() -> None:
    low: int = assignment.DEFAULT_LOWER_BOUND_MAX_PARALLELISM
    high: int = assignment.UPPER_BOUND_MAX_PARALLELISM
    code = hashing.hash_code(("hello", 7), types.TUPLE(types.STRING, types.INT))
    assert_type(hashing.murmur_hash(code), int)
    group = assignment.compute_key_group_for_key_hash(code, low)
    assert_type(assignment.compute_operator_index_for_key_group(128, 3, group), int)
    assert_type(assignment.assign_to_key_group("A", high), int)
    assert_type(assignment.assign_key_to_parallel_operator("A", 128, 3), int)
    assert_type(assignment.compute_default_max_parallelism(3), int)
    own = assignment.compute_key_group_range_for_operator_index(128, 3, 2)
    assert_type(own & key_group_range.KeyGroupRange.EMPTY, key_group_range.KeyGroupRange)
    assert_type([own[0], len(own), own.start_key_group, *list(own)], list[int])
    trace: assignment.KeyTrace = assignment.trace_key("A", 128, 3)
    assert_type(trace.key_type, types.KeyType)
    assert_type((trace.key_group, trace.subtask, trace.hash_code), tuple[int, int, int])


def key_types() -> None:
    scalars: list[types.ScalarType] = [
        *(types.BOOLEAN, types.BYTE, types.SHORT, types.INT, types.LONG, types.FLOAT),
        *(types.DOUBLE, types.CHAR, types.STRING, types.BIG_INT, types.BIG_DEC, types.UUID),
        *(types.LOCAL_DATE, types.LOCAL_TIME, types.LOCAL_DATE_TIME, types.INSTANT, types.NULL),
        *(types.SCALA_BIG_INT, types.BYTE_BUFFER, types.HASHED),
    ]
    in_zones: list[types.JavaSqlType] = [
        types.SQL_DATE("UTC"),
        types.SQL_TIME("UTC"),
        types.SQL_TIMESTAMP("Europe/Berlin"),
    ]
    others: list[types.KeyType] = [
        *scalars,
        *in_zones,
        types.TUPLE(types.STRING, types.INT),
        types.ROW(types.STRING, kind="+U", names=["name"]),
        types.LIST(types.INT),
        types.SET(types.INT),
        types.OPTIONAL(types.INT),
        types.OBJECTS_HASH(types.STRING, types.INT, start=0),
        types.SCALA_TUPLE(types.STRING, types.INT, scala="2.12"),
        types.CASE_CLASS("Key", types.STRING, scala="2.13"),
        types.SCALA_OPTION(types.LONG, scala="2.13"),
        types.SCALA_EITHER(types.LONG, types.STRING, scala="2.13"),
        types.MAP(types.STRING, types.LONG),
        types.PYFLINK(types.STRING),
        types.PYFLINK(),
        types.PYFLINK(types.LONG, as_pyflink_converts=True),
    ]
    of_sql = types.SQL_ROW("BIGINT", "STRING NOT NULL")
    assert_type(of_sql.fields, tuple[logical_types.LogicalType, ...])
    assert_type(logical_types.parse_logical_type("DECIMAL(10, 2)").precision, int | None)
    assert_type(binary_row.binary_row((7, "a"), of_sql), bytes)
    text = "Assigned key must not be null!"
    explained = flink_exceptions.explain_exception(text, max_parallelism=128, parallelism=4)
    assert_type(explained, flink_exceptions.ExplainedException)
    assert_type(explained.says, tuple[str, ...])
    assert_type(source_partitions.split_owner("clicks", 0, 4), int)
    assert_type(source_partitions.partition_for_key("A", "clicks", 4, 128, 4), int)
    assert_type(source_partitions.partitions_of_key_groups("clicks", 4, 128, 4), list[int])
    assert_type(explain.hash_exchanges("== Optimized Execution Plan =="), list[tuple[str, ...]])
    assert_type(types.TUPLE(*others).fields, tuple[types.KeyType, ...])


def loads_and_plans() -> None:
    measured = load.KeyGroupLoad(128, {5: 9, 97: 0.5})
    assert_type(measured.per_subtask(24), list[float])
    assert_type(measured.groups_per_subtask(24), list[int])
    ranked = measured.recommend(20, 30)
    assert_type(ranked, load.Recommendations)
    best: load.Recommendation = ranked[0]
    assert_type((best.parallelism, best.heaviest_weight, best.reason), tuple[int, float, str])
    assert_type(load.evenness(720), list[int])

    suggested: max_parallelism.Suggestions = max_parallelism.suggest_max_parallelism([6, 8], 10)
    smallest: max_parallelism.Suggestion = suggested[0]
    assert_type((smallest.max_parallelism, smallest.imbalance), tuple[int, float])
    assert_type(suggested.to_pandas(), DataFrame)
    assert_type(keygroups.suggest_max_parallelism(range(6, 25)), max_parallelism.Suggestions)

    plan = rescale.RescalePlan(128, 24, 36)
    assert_type(plan.restores_from(1), list[tuple[int, key_group_range.KeyGroupRange]])
    assert_type([piece.moves for piece in plan], list[bool])
    pieces: list[rescale.RescalePiece] = list(plan)
    assert_type(pieces[0].key_group_range, key_group_range.KeyGroupRange)
    compared: rescale.ModuloComparison = plan.compare_with_modulo(["a", "b"])
    assert_type((compared.total, compared.ranges_by_modulo), tuple[float, int])
    assert_type(rescale.check_restore(128, 90), int)
    report = reports.RescaleReport(plan, measured)
    assert_type(report.weight_after, list[float])
    assert_type(report.recommendations[0].parallelism, int)


def causes_of_skew(report: reports.SkewReport, rescaled: reports.RescaleReport) -> None:
    counts = skew.SubtaskCounts(128, (5, 9, 2.5))
    assert_type(keygroups.SubtaskCounts(128, (5, 9)).hot_subtasks, tuple[int, ...])
    assert_type((counts.imbalance, counts.diagnosis, counts.remedy), tuple[float, str, str])
    assert_type(skew.SubtaskCounts.from_text(128, "0 5"), skew.SubtaskCounts)
    assert_type(report.load.skew(24), skew.SubtaskCounts)
    assert_type(rescaled.skew_after.causes, tuple[skew.Cause, ...])
    assert_type([cause.share for cause in report.causes], list[float])
    assert_type(counts.plot(), Axes)
    assert_type(counts.to_pandas(), DataFrame)


def what_a_skew_report_has(report: reports.SkewReport) -> list[str]:
    row: reports.SubtaskRow = report.subtasks[0]
    assert_type((row.records, row.share, row.sent), tuple[int, float, int | None])
    hot: reports.HotSubtask = report.hot_subtasks[0]
    top: reports.HotKey = hot.top_keys[0]
    assert_type((top.key_group, top.records, top.share), tuple[int, int, float])
    detail: reports.SubtaskDetail | None = report.detail
    if detail is not None:
        heaviest: reports.HotKeyGroup = detail.top_key_groups[0]
        assert_type((detail.row.records, heaviest.distinct_keys), tuple[int, int])
    return [hot.diagnosis, hot.remedy, report.diagnosis, report.remedy]


def pictures_and_tables(report: reports.SkewReport, plan: rescale.RescalePlan) -> None:
    moves = reports.RescaleReport(plan, report.load)
    axes = report.load.plot(report.parallelism)
    assert_type(report.plot(ax=axes), Axes)
    assert_type(report.load.plot_key_groups(), Axes)
    assert_type(plan.plot(report.load), Axes)
    assert_type(moves.plot(ax=axes), Axes)
    assert_type(keygroups.trace_key("A", 128, 3).to_pandas(), DataFrame)
    assert_type(report.load.recommend(1, 3).plot(ax=axes), Axes)
    assert_type(report.load.recommend(1, 3).to_pandas(), DataFrame)
    assert_type(report.load.to_pandas().sort_values("weight"), DataFrame)
    for tables in (report, plan, moves):
        assert_type(tables.to_pandas(), DataFrame)


def operator_state_and_channels() -> None:
    offsets = [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert_type(operator_state.redistribute_list_state(offsets, 3), list[list[int]])
    assert_type(rescale.redistribute_list_state([["a"], None], 3), list[list[str]])
    mode: operator_state.Mode = "UNION"
    assert_type(
        operator_state.redistribute_operator_state({"offsets": (mode, offsets)}, 2, 3),
        dict[str, list[list[int]]],
    )
    rescale.redistribute_operator_state({"rules": ("BROADCAST", [["a"], ["a"]])}, 2, 3)
    assert_type(operator_state.split_distribute_order(["offsets", "rules"]), list[str])

    selectors: list[partitioners.StreamPartitioner] = [
        partitioners.ForwardPartitioner(1),
        partitioners.GlobalPartitioner(4),
        partitioners.BroadcastPartitioner(4),
        partitioners.RebalancePartitioner(4, start=0),
        partitioners.RescalePartitioner(2),
        partitioners.ShufflePartitioner(4, random.randrange),
        partitioners.CustomPartitionerWrapper(4, lambda key, parallelism: key % parallelism),
        partitioners.KeyGroupStreamPartitioner(3, 128, types.STRING),
    ]
    assert_type(selectors[0].select_channel("record"), int)
    assert_type((selectors[0].number_of_channels, selectors[0].name), tuple[int, str])
    edge: partitioners.PointwiseEdge = partitioners.pointwise_edges(2, 5)[0]
    assert_type(edge.downstream_subtask, int)
    mapper: partitioners.SubtaskStateMapper = (
        partitioners.KeyGroupStreamPartitioner.downstream_subtask_state_mapper
    )
    assert_type(partitioners.subtask_state_mapping(mapper, 3, 4), list[list[int]])
    assert_type(partitioners.subtask_state_mapping("RANGE", 3, 4), list[list[int]])


def show_progress(now: progress.Progress) -> None:
    assert_type(now.done / now.total, float)
    print(f"{now.work}: {now.done} of {now.total} {now.unit}")


def around_skew() -> None:
    keys: list[str] = subtask_keys.keys_for_subtasks(128, 3, types.STRING, prefix="bucket-")
    several: list[list[int]] = subtask_keys.keys_for_subtasks(128, 3, n=2, start=1000)
    subtask_keys.keys_for_subtasks(128, 3, progress=show_progress)
    messages: progress.ProgressCallback = show_progress
    messages(progress.Progress("find keys", 2, 3, "keys"))
    selector = subtask_keys.SubtaskKeySelector(128, 3, types.STRING)
    key: str = selector.key_for_value("page")
    salted: str = subtask_keys.salted_key("page", 2, 128, 3)
    buffer: local_key_by.LocalKeyBy[str, int] = local_key_by.LocalKeyBy(3, lambda a, b: a + b)
    buffer.restore((one, len(several)) for one in (*keys, key, salted))
    assert_type(buffer.flush(), list[tuple[str, int]])


def which_job() -> None:
    found: routing_inference.RoutingInference = routing_inference.infer_routing(
        {"user-1": 15, "user-2": 2}.items(), 16, [types.SQL_ROW("STRING")]
    )
    first: routing_inference.RoutingCandidate = found.candidates[0]
    assert_type(first.max_parallelism, int)
    assert_type(first.key_type, types.KeyType)
    assert_type((found.tried, found.by_chance), tuple[int, float])
    in_groups = routing_inference.infer_routing(key_groups=[("user-1", 643), ("user-2", 17)])
    assert_type(in_groups.parallelism, int | None)


if __name__ == "__main__":
    sys.exit(cli.main(["trace", "A", "-m", "128", "-p", "24"]))
