"""Savepoints, state keys, running jobs, whole arrays and tests, in a user's hands."""

from __future__ import annotations

import warnings
from datetime import datetime
from pathlib import Path

import numpy as np
from hypothesis import given
from numpy.typing import NDArray
from pandas import DataFrame
from typing_extensions import assert_type

from keygroups import arrays, errors, job, load, reports, savepoint, state_keys, testing, types
from keygroups.savepoint import (
    comparing,
    descriptors,
    editing,
    entries,
    pyflink,
    restoring,
    sinks,
    sources,
    sql,
    storage,
    summaries,
    values,
    verifying,
    windows,
    writing,
)
from keygroups.savepoint import reports as savepoint_reports


def what_a_savepoint_has(path: str) -> None:
    found: savepoint.Savepoint = savepoint.read_savepoint(path, moved={"s3://old": path})
    savepoint.read_savepoint(path, uids=["by-user", "by-city"], allow=["s3://bucket/shared"])
    savepoint.read_savepoint(path, progress=True)
    operator: savepoint.Operator = found.operator("by-user")
    assert_type((operator.label, operator.uid), tuple[str, str | None])
    assert_type((operator.parallelism, operator.max_parallelism), tuple[int, int])
    assert_type(found.check_restore(operator, 90), int)
    subtask: savepoint.Subtask = operator.subtasks[0]
    assert_type((subtask.subtask_index, subtask.bytes), tuple[int, int])
    state: savepoint.StateDescriptor = operator.states[0]
    assert_type(state.key_type, types.KeyType | None)
    assert_type(state.value_serializer, savepoint.Serializer | None)
    for entry in operator.entries(states=["count"], key_groups=range(64)):
        assert_type(entry, savepoint.StateEntry)
        assert_type((entry.key_group, entry.timestamp), tuple[int, int | None])
        if isinstance(entry.namespace, (savepoint.TimeWindow, savepoint.GlobalWindow)):
            print(entry.namespace)
        if isinstance(entry.value, savepoint.TtlValue):
            assert_type(entry.value.last_access, int)
        if isinstance(entry.key, savepoint.TimestampData):
            print(entry.key)
        if isinstance(entry.key, savepoint.Row):
            assert_type(entry.key.row_kind, str)
    in_flight: tuple[verifying.ChannelState, ...] = operator.in_flight_data
    heaviest_channel: savepoint.ChannelState = max(in_flight, key=lambda kept: kept.bytes)
    assert_type((heaviest_channel.direction, heaviest_channel.bytes), tuple[str, int])
    tasks = operator.tasks()
    assert_type([entry.key_group for entry in tasks[0].entries()], list[int])
    heaviest: list[savepoint.KeySize] = operator.key_sizes(top=1)
    assert_type((heaviest[0].subtask, heaviest[0].bytes), tuple[int, int])
    assert_type(operator.key_group_bytes(), load.KeyGroupLoad)
    for key, contents in operator.entries_by_key(["count"]):
        print(key, contents["count"])
    print(operator.get("user-1"), operator.get("user-1", state=operator.states[0]))
    print(operator.get_many(["user-1", "user-2"], state="count")[1])
    states: list[savepoint.OperatorStateEntry] = list(operator.operator_state())
    assert_type(states[0].mode, str)
    compared: savepoint.SavepointComparison = found.compare(savepoint.read_savepoint(path))
    of_operator: savepoint.OperatorComparison = compared.operators[0]
    of_state: savepoint.StateComparison = of_operator.states[0]
    assert_type((compared.has_differences, of_operator.only), tuple[bool, str | None])
    assert_type(of_state.equal + of_state.touched, int)
    splits: tuple[savepoint.SplitDifference, ...] = of_operator.splits
    assert_type(
        splits[0].here,
        savepoint.KafkaSplit | savepoint.FileSplit | savepoint.ConnectorSplit | None,
    )
    changes: tuple[savepoint.Change, ...] = of_state.changes
    assert_type(changes[0].name, str)
    verified: savepoint.SavepointVerification = found.verify(operators=["by-user"])
    of_verified: savepoint.OperatorVerification = verified.operators[0]
    assert_type((verified.has_faults, verified.files, verified.bytes), tuple[bool, int, int])
    assert_type((of_verified.has_faults, of_verified.entries), tuple[bool, int])
    assert_type(of_verified.unverified, tuple[str, ...])
    for count in verified.faults:
        assert_type(count, savepoint.FaultCount)
        assert_type((count.is_fault, count.text), tuple[bool, str])
        fault: savepoint.StateFault = count.examples[0]
        assert_type((fault.kind, fault.state, fault.key_group), tuple[str, str | None, int | None])
    job = {"by-user": (types.STRING, [savepoint.ValueStateDescriptor("count", types.LONG)])}
    restored: savepoint.RestoreReport = found.restore_report(job)
    assert_type((restored.restores, restored.verdict), tuple[bool | None, str])
    in_operator: savepoint.OperatorRestore = restored.operators[0]
    in_state: savepoint.StateRestore = in_operator.states[0]
    assert_type((in_state.verdict, in_state.remedy), tuple[str, str])
    summary: savepoint.SavepointSummary = found.summary(["by-user"], top=3)
    of_summary: savepoint.OperatorSummary = summary.operators[0]
    summed: savepoint.StateSummary = of_summary.states[0]
    assert_type((summed.entries, summed.heaviest_keys[0].bytes), tuple[int | None, int])
    times: savepoint.TimeCounts | None = summed.last_access or summed.timers
    assert_type(times and times.counts, tuple[tuple[str, int], ...] | None)
    element_counts: savepoint.OperatorStateSummary = of_summary.operator_states[0]
    assert_type((element_counts.elements, of_summary.imbalance), tuple[int, float | None])
    growth = savepoint.SavepointGrowth.of([summary, summary])
    grown: savepoint.StateGrowth = growth.states[0]
    assert_type((grown.growth, grown.bytes), tuple[int | None, tuple[int | None, ...]])
    heavier: savepoint.KeyGroupGrowth = growth.key_groups[0]
    assert_type(heavier.bytes, tuple[int, ...])
    for difference in found.differences(found, operators=["by-user"], states=["count"]):
        assert_type(difference, savepoint.EntryDifference)
        if isinstance(difference.here, savepoint.StateEntry):
            assert_type((difference.kind, difference.here.key_group), tuple[str, int])
    report: savepoint.OperatorReport = next(savepoint.operator_reports(found))
    assert_type((report.states, report.unread)[1], tuple[str, ...])
    if report.rescale is not None and report.key_group_bytes is not None:
        assert_type(report.rescale.moved_weight_share, float)
    needed: tuple[savepoint.SavepointFile, ...] = savepoint.savepoint_files(found)
    assert_type((needed[0].bytes, needed[0].used_bytes), tuple[int | None, int])
    of_job: savepoint.JobFiles = savepoint.job_files(path, others=["other"], moved={"a": "b"})
    unused: tuple[savepoint.JobFile, ...] = of_job.unused
    assert_type((of_job.bytes, unused[0].used_by), tuple[int, tuple[str, ...]])
    stored: storage.JobFiles = of_job
    one_file: storage.JobFile = stored.files[0]
    its_file: storage.SavepointFile = needed[0]
    print(one_file, its_file)
    assert_type(savepoint.html_report(found, ["by-user"], top=3), str)
    sql: savepoint.SqlOperatorDescription = savepoint.describe_sql_state(operator, "a plan")
    about: savepoint.SqlStateDescription = sql.states[0]
    assert_type((sql.kinds, about.value_columns), tuple[tuple[str, ...], tuple[str, ...] | None])


def a_new_savepoint(path: str) -> None:
    states = [
        savepoint.ValueStateDescriptor("count", types.LONG, has_ttl=True),
        savepoint.ReducingStateDescriptor("sum", types.DOUBLE),
        savepoint.ListStateDescriptor("tags", types.STRING),
        savepoint.MapStateDescriptor("cities", types.STRING, types.LONG),
    ]
    with savepoint.SavepointWriter(path) as writer:
        by_user = writer.add_operator(
            "by-user", types.STRING, states, 128, parallelism=3, allow_any_last_access=True
        )
        assert_type(by_user, savepoint.OperatorWriter)
        for user in sorted(["ann", "bob"], key=by_user.key_group):
            by_user.write("count", user, 7, last_access=0)
            by_user.write("cities", user, 1, user_key="Berlin")
        timers = [
            savepoint.TimerServiceDescriptor(),
            savepoint.ValueStateDescriptor("n", types.INT),
        ]
        by_order = writer.add_operator("by-order", types.LONG, timers, 128, 3)
        by_order.write_timer(5, 1_700_000_000_000, "PROCESSING_TIME")
        averages = savepoint.AggregatingStateDescriptor(
            "window-contents", types.TUPLE(types.LONG, types.INT)
        )
        hours = savepoint.SlidingEventTimeWindows(3_600_000, slide=600_000)
        windows = writer.add_window_operator(
            "by-hour", types.STRING, hours, averages, 128, parallelism=3, allowed_lateness=5
        )
        assert_type(windows, savepoint.WindowOperatorWriter)
        assigners = [
            savepoint.TumblingEventTimeWindows(60_000),
            savepoint.TumblingProcessingTimeWindows(60_000, offset=5),
            savepoint.SlidingProcessingTimeWindows(60_000, 30_000),
            savepoint.EventTimeSessionWindows(20_000),
            savepoint.ProcessingTimeSessionWindows(20_000),
            savepoint.CountWindows(100, slide=5),
        ]
        for number, assigner in enumerate(assigners):
            tags = savepoint.ListStateDescriptor("window-contents", types.STRING)
            writer.add_window_operator(str(number), types.STRING, assigner, tags, 128, 3)
        in_thread = types.PYFLINK(types.LONG, thread_mode=True)
        writer.add_window_operator("of-pyflink", in_thread, hours, averages, 128, 3)
        for window in hours.assign_windows(1_700_000_000_000):
            assert_type(window, savepoint.TimeWindow)
            windows.write("ann", window, (7, 2))


def where_the_stream_goes_on(path: str) -> None:
    with savepoint.SavepointWriter(path) as writer:
        operator = writer.add_operator(
            "rules",
            None,
            [],
            128,
            parallelism=2,
            list_states=[savepoint.ListStateDescriptor("places", types.STRING)],
            broadcast_states=[savepoint.MapStateDescriptor("rules", types.STRING, types.LONG)],
        )
        operator.write_operator_state("places", ["a"], subtask=1)
        operator.write_operator_state("rules", {"limit": 5})
        earliest = savepoint.SpecialOffset.EARLIEST
        offsets = savepoint.KafkaOffsets({("clicks", 0): 4711, ("clicks", 1): earliest})
        writer.add_source("clicks", offsets, 128, parallelism=2)
    source = savepoint.read_savepoint(path).operator("clicks")
    assert_type(source.coordinator_state(), bytes | None)
    found: savepoint.SourceSplits = source.source_splits(ends={("clicks", 0): 5000})
    for split in found.splits:
        if isinstance(split, savepoint.KafkaSplit):
            assert_type(split.lag, int | None)
        elif isinstance(split, savepoint.FileSplit):
            assert_type(split.path, str)
        elif isinstance(split, savepoint.KinesisSplit):
            assert_type(split.sequence_number, str)
        elif isinstance(split, savepoint.ConnectorSplit):
            assert_type(split.position, str)
        else:
            unknown: savepoint.UnknownSplit = split
            assert_type(unknown.data, bytes)
    classes: dict[str, savepoint.KryoFields | savepoint.KryoEnum] = {
        "shop.Line": savepoint.KryoFields(qty=types.INT, sku="java.lang.String"),
        "shop.Channel": savepoint.KryoEnum("WEB", "APP"),
    }
    assert_type(savepoint.read_savepoint(path, serializers=classes), savepoint.Savepoint)


def one_more(element: savepoint.OperatorStateElement) -> object:
    return element._replace(value=element.value + 1)


def grown(entry: savepoint.StateEntry) -> object:
    return savepoint.DELETE if entry.value is None else entry.value + 1


def the_first(batch: object) -> DataFrame:
    print(batch)
    return DataFrame({"row": [0]})


def an_edited_savepoint(path: str) -> None:
    with savepoint.SavepointWriter.from_existing_savepoint(path, "s3://bucket/new") as writer:
        assert_type(writer, savepoint.SavepointEditor)
        writer.remove_operator("by-session")
        writer.change_operator_identifier("by-user", "by-customer")
        of_sql = sql.OperatorId("053e6f52e939ffe5c8a3b20732f40a31")
        assert_type(
            (of_sql.uid, savepoint.OperatorId.of_uid("x")), tuple[str, savepoint.OperatorId]
        )
        writer.change_operator_identifier("by-customer", of_sql)
        writer.add_operator_from(path, "by-item", uid="by-thing")
        operator: savepoint.OperatorEditor = writer.operator("by-customer")
        operator.rename_state("cnt", "count")
        operator.set_ttl("count", last_access=1_700_000_000_000)
        operator.delete_keys(["ann", "bob"])
        operator.map_entries("count", grown)
        operator.map_batches("total", the_first, allow_any_last_access=True)
        operator.convert_state("count", savepoint.ValueStateDescriptor("count", types.LONG), int)
        operator.map_timers("_timer_state/event_user-timers", lambda timer: timer.timestamp)
        operator.map_keys(len, types.LONG)
        writer.operator("clicks").set_offsets({("clicks", 0): 4711})
        writer.operator("clicks").remove_topics(["old-clicks"])
    report: savepoint.EditReport = writer.report()
    edited: savepoint.EditedOperator = report.operators[0]
    state: savepoint.EditedState = edited.states[0]
    assert_type(
        (state.kept, state.changed, state.deleted), tuple[int | None, int | None, int | None]
    )
    deleted: savepoint.DeletedKeys | None = edited.deleted_keys
    if deleted is not None:
        place: savepoint.UnsearchedPlace = deleted.may_be_in[0]
        assert_type((deleted.with_entries, place.operator), tuple[int, str])
    assert_type(savepoint.relocate(path, "s3://bucket/copy"), savepoint.Savepoint)


def a_savepoint_written_anew(path: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.RestoreWarning)
        warnings.simplefilter("ignore", errors.LeftoverWarning)
        savepoint.change_max_parallelism(path, 4096, f"{path}-4096", operators=["users"])
    converted: savepoint.EditReport = savepoint.convert_to_canonical(path, f"{path}-canonical")
    operator: savepoint.EditedOperator = converted.operators[0]
    state: savepoint.WrittenState = operator.written[0]
    assert_type((operator.new_max_parallelism, state.entries), tuple[int | None, int])
    old_names: savepoint.RewriteReport = converted
    first: savepoint.RewrittenOperator = old_names.operators[0]
    assert_type(first.written, tuple[savepoint.RewrittenState, ...])


def a_savepoint_by_subject(found: savepoint.Savepoint, operator: savepoint.Operator) -> None:
    read: tuple[descriptors.StateDescriptor, entries.Subtask, entries.KeySize] = (
        operator.states[0],
        operator.subtasks[0],
        operator.key_sizes()[0],
    )
    for entry in operator.operator_state():
        element: entries.OperatorStateEntry = entry
        assert_type((read[0].name, element.state), tuple[str, str])
    splits: sources.SourceSplits = operator.source_splits()
    for split in splits.splits:
        shard: sources.KinesisSplit | None = None
        if isinstance(split, sources.KinesisSplit):
            shard = split
        else:
            assert_type(
                split,
                sources.KafkaSplit
                | sources.FileSplit
                | sources.ConnectorSplit
                | sources.UnknownSplit,
            )
        assert_type(shard, sources.KinesisSplit | None)
    described = values.KryoFields({"channel": "shop.Channel"}, is_final=True)
    assert_type(described.is_final, bool)
    assert_type(values.KryoEnum("WEB").constants, tuple[str, ...])
    dump: savepoint.Operator = savepoint.read_operator_state_dump(found.path, kryo_version=2)
    assert_type(dump.uid, str | None)
    layout = sources.SplitLayout(
        "queues", (1,), lambda version, cursor: {"queue": cursor.utf()}, name=("queue",)
    )
    own: dict[str, savepoint.SplitLayout] = {"orders": layout}
    orders = savepoint.read_savepoint(found.path, splits=own).operator("orders")
    assert_type(orders.source_splits(), sources.SourceSplits)
    of_sql: sql.SqlOperatorDescription = sql.describe_sql_state(operator)
    assert_type(of_sql.states, tuple[sql.SqlStateDescription, ...])
    checked: verifying.SavepointVerification = found.verify()
    restored: restoring.RestoreReport = found.restore_report(found)
    of_restored: restoring.OperatorRestore = restored.operators[0]
    restored_state: restoring.StateRestore = of_restored.states[0]
    assert_type((of_restored.only, restored_state.reasons), tuple[str | None, tuple[str, ...]])
    of_checked: verifying.OperatorVerification = checked.operators[0]
    faults: tuple[verifying.FaultCount, ...] = of_checked.faults
    assert_type(faults[0].examples, tuple[verifying.StateFault, ...])
    summary: summaries.SavepointSummary = found.summary(["by-user"], top=3)
    of_summary: summaries.OperatorSummary = summary.operators[0]
    summed: summaries.StateSummary = of_summary.states[0]
    assert_type((summed.entries, summed.heaviest_keys[0].bytes), tuple[int | None, int])
    times: summaries.TimeCounts | None = summed.last_access or summed.timers
    assert_type(times and times.counts, tuple[tuple[str, int], ...] | None)
    element_counts: summaries.OperatorStateSummary = of_summary.operator_states[0]
    assert_type((element_counts.elements, of_summary.imbalance), tuple[int, float | None])
    growth = summaries.SavepointGrowth.of([summary, summary])
    grown: summaries.StateGrowth = growth.states[0]
    assert_type((grown.growth, grown.bytes), tuple[int | None, tuple[int | None, ...]])
    heavier: summaries.KeyGroupGrowth = growth.key_groups[0]
    assert_type(heavier.bytes, tuple[int, ...])
    compared: comparing.SavepointComparison = found.compare(found)
    of_operator: comparing.OperatorComparison = compared.operators[0]
    of_state: comparing.StateComparison = of_operator.states[0]
    split_differences: tuple[comparing.SplitDifference, ...] = of_operator.splits
    to_commit: tuple[comparing.CommittableDifference, ...] = of_operator.committables
    assert_type(to_commit[0].kind, str)
    assert_type(of_state.changes, tuple[comparing.Change, ...])
    for difference in found.differences(found):
        assert_type(difference, comparing.EntryDifference)
        if isinstance(difference.here, entries.OperatorStateElement):
            print(difference.here, split_differences)


def writing_by_subject(path: str) -> None:
    with writing.SavepointWriter(path) as writer:
        states = [
            descriptors.ValueStateDescriptor("count", types.LONG),
            descriptors.ReducingStateDescriptor("sum", types.DOUBLE),
            descriptors.ListStateDescriptor("tags", types.STRING),
            descriptors.MapStateDescriptor("cities", types.STRING, types.LONG),
            descriptors.TimerServiceDescriptor(),
        ]
        by_user: writing.OperatorWriter = writer.add_operator("u", types.STRING, states, 128, 3)
        by_user.write("count", "ann", 1)
        averages = descriptors.AggregatingStateDescriptor("window-contents", types.LONG)
        for number, assigner in enumerate(
            [
                windows.CountWindows(100),
                windows.EventTimeSessionWindows(20_000),
                windows.ProcessingTimeSessionWindows(20_000),
                windows.SlidingEventTimeWindows(60_000, 30_000),
                windows.SlidingProcessingTimeWindows(60_000, 30_000),
                windows.TumblingEventTimeWindows(60_000),
                windows.TumblingProcessingTimeWindows(60_000),
            ]
        ):
            of_windows: writing.WindowOperatorWriter = writer.add_window_operator(
                f"w{number}", types.STRING, assigner, averages, 128, 3
            )
            print(of_windows)
        offsets = sources.KafkaOffsets({("clicks", 0): sources.SpecialOffset.LATEST})
        writer.add_source("clicks", offsets, 128, 1)


def editing_by_subject(path: str) -> None:
    with writing.SavepointWriter.from_existing_savepoint(path, f"{path}-new") as writer:
        editor: editing.SavepointEditor = writer
        operator: editing.OperatorEditor = editor.operator("by-user")

        def without_null(entry: entries.StateEntry) -> object:
            return editing.DELETE if entry.value is None else entry.value

        operator.map_entries("count", without_null)
    report: savepoint_reports.EditReport = writer.report()
    edited: savepoint_reports.EditedOperator = report.operators[0]
    states: tuple[savepoint_reports.EditedState, ...] = edited.states
    deleted: savepoint_reports.DeletedKeys | None = edited.deleted_keys
    if deleted:
        place: savepoint_reports.UnsearchedPlace = deleted.may_be_in[0]
        print(states, place)
    converted: savepoint_reports.RewriteReport = savepoint.convert_to_canonical(path, "new")
    assert_type(converted.operators, tuple[savepoint_reports.EditedOperator, ...])
    assert_type(converted.operators[0].states, tuple[savepoint_reports.EditedState, ...])
    assert_type(converted.operators[0].written, tuple[savepoint_reports.WrittenState, ...])


def bytes_of_state_keys() -> None:
    windows: list[state_keys.Serializer] = [
        state_keys.TIME_WINDOW,
        state_keys.GLOBAL_WINDOW,
        state_keys.VOID_NAMESPACE,
        state_keys.BYTES,
        state_keys.BYTE_ARRAY_WRAPPER,
        state_keys.serializer_of(types.LONG),
    ]
    longs = state_keys.Serializer.from_snapshot(windows[5].snapshot_bytes())
    value: object = longs.decode(longs.encode(5))
    assert_type((longs.name, value), tuple[str, object])
    words = state_keys.CompositeKeySerializer(128, types.STRING, windows[0])
    assert_type(words.serialize("flink", state_keys.TimeWindow(0, 5_000)), bytes)
    key: state_keys.StateKey = words.deserialize(b"")
    assert_type(key.key_group, int)
    assert_type(state_keys.key_group_prefix(3, 256), bytes)
    assert_type(state_keys.key_group_prefix_bytes(256), int)
    assert_type((state_keys.GlobalWindow(), state_keys.Row([1]).row_kind)[1], str)


def a_running_job() -> None:
    running: job.Job = job.read_job(
        "https://localhost:8081",
        timeout=3,
        headers={"Authorization": "Bearer token"},
        ca_file=Path("ca.pem"),
        client_certificate=("client.pem", Path("client.key")),
    )
    latest: job.CompletedCheckpoint = running.savepoints()[0]
    assert_type((latest.path, latest.triggered), tuple[str | None, datetime])
    vertex: job.Vertex = running.vertex("by-user")
    assert_type((vertex.max_parallelism, vertex.read_records), tuple[int, int | None])
    reads: job.SubtaskReads = vertex.subtasks[0]
    assert_type(reads.read_bytes, int | None)
    skew: job.VertexSkew = running.skew(vertex)
    hottest: job.SubtaskSkew = skew.subtasks[skew.hot_subtasks[0]]
    assert_type((hottest.records, hottest.times_mean), tuple[int, float])
    assert_type((hottest.host, hottest.records_per_second), tuple[str | None, float | None])
    assert_type(
        (vertex.read_at, reads.start_time, skew.seconds),
        tuple[int | None, int | None, float | None],
    )


def whole_arrays() -> None:
    ids = np.arange(1000)
    codes = arrays.hash_code(ids, types.LONG)
    assert_type(codes, NDArray[np.int32])
    groups = arrays.compute_key_group_for_key_hash(codes, 128)
    assert_type(arrays.compute_operator_index_for_key_group(128, 24, groups), NDArray[np.int32])
    assert_type(arrays.assign_to_key_group(ids, 128), NDArray[np.int32])
    assert_type(arrays.assign_key_to_parallel_operator(ids, 128, 24), NDArray[np.int32])
    assert_type(arrays.key_group_load(ids, 128), load.KeyGroupLoad)
    report = arrays.skew_report({"id": ids}, "id", 128, 24, weight="id")
    assert_type(report, reports.SkewReport)
    masked = arrays.assign_to_key_group([ids, ids], 128, nulls="mask")
    print(masked.mask, masked.filled(-1))


def test_assertions() -> None:
    testing.assert_subtask("hello", 0, 128, 3)
    testing.assert_spread(range(1000), 128, 4, max_imbalance=1.2)
    testing.assert_reaches_all(["a", "b", "c"], 128, 2, types.STRING)


@given(testing.keys(types.STRING), testing.parallelisms())
def test_of_any_key(key: str, parallelisms: tuple[int, int]) -> None:
    testing.assert_reaches_all([key], parallelisms[0], 1)


def state_of_pyflink(path: str, new: str) -> object:
    row = pyflink.ROW(types.STRING, pyflink.SQL_DATE, names=["user", "day"])
    states = [
        savepoint.ValueStateDescriptor("last", row),
        savepoint.ListStateDescriptor("times", pyflink.LIST(pyflink.SQL_TIME)),
        savepoint.MapStateDescriptor("by-day", types.STRING, pyflink.PRIMITIVE_ARRAY(types.INT)),
        savepoint.ReducingStateDescriptor("all", pyflink.MAP(types.STRING, pyflink.PICKLED)),
        savepoint.AggregatingStateDescriptor("sum", pyflink.TUPLE(pyflink.SQL_TIMESTAMP)),
    ]
    whole = savepoint.read_savepoint(path).as_pyflink({"by-user": (types.LONG, states)})
    operator: savepoint.Operator = whole.operator("by-user").as_pyflink(types.LONG, states)
    with savepoint.SavepointWriter.from_existing_savepoint(path, new) as editor:
        editor.operator("by-user").as_pyflink(types.LONG, states).delete_keys([7])
    value = operator.get(7, "last")
    if isinstance(value, savepoint.Row):
        return value.names, value.user
    return bytes(value) if isinstance(value, (savepoint.Pickle, pyflink.Pickle)) else value


def what_a_restore_commits(path: str) -> list[str]:
    state: savepoint.SinkState = savepoint.read_savepoint(path).operator("out").sink_state()
    committables: tuple[savepoint.Committable, ...] = state.committables
    ids: list[str] = []
    for waiting in committables:
        if isinstance(waiting.committable, sinks.KafkaTransaction):
            ids.append(waiting.committable.transactional_id or "")
        elif isinstance(waiting.committable, savepoint.FileCommittable):
            file: savepoint.PartFile | None = waiting.committable.pending
            ids += [] if file is None or file.path is None else [file.path]
        elif isinstance(waiting.committable, savepoint.ConnectorCommittable):
            assert_type(waiting.committable.name, str)
        else:
            unknown: savepoint.UnknownCommittable = waiting.committable
            assert_type(unknown.data, bytes)
    for writer in state.writers:
        if isinstance(writer, savepoint.UnknownWriterState):
            assert_type(writer.data, bytes)
        elif isinstance(writer, savepoint.KafkaProducerState):
            producer: sinks.KafkaProducerState = writer
            assert_type(producer.pending, sinks.KafkaTransaction | None)
        elif isinstance(writer, savepoint.BucketState):
            assert_type(writer.in_progress, sinks.PartFile | None)
        else:
            of_kafka: savepoint.KafkaWriterState = writer
            assert_type(of_kafka.precommitted, tuple[tuple[str, int], ...])
    alike: tuple[type, ...] = (
        *(sinks.Committable, sinks.KafkaWriterState, sinks.SinkState),
        *(sinks.UnknownCommittable, sinks.UnknownWriterState, savepoint.KafkaTransaction),
        *(sinks.BucketState, sinks.FileCommittable, sinks.ConnectorCommittable),
    )
    assert len(alike) == 9
    return ids
