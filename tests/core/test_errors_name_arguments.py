"""An argument that is refused is named first: each parameter of each public callable of the core.

The names are those of the signatures, and of a few parameters the word that users know them by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.public_calls import CALLS, parameters, valid_arguments

from keygroups import KeyGroupsError

OTHERS = {
    "CustomPartitionerWrapper.select_channel record": "what partitioner gives",
    "KeyGroupStreamPartitioner.select_channel record": "key",
    "Job.vertex name": "vertex",
    "OperatorWriter.task subtask": "operator_index",
    "OperatorWriter.write_operator_state name": "state",
    "OperatorEditor.rename_state new_name": "name of a state",
    "Savepoint.operator name": "operator",
    "SubtaskKeySelector.key_for_value value": "key",
    "SubtaskKeySelector.key_for_value value_type": "key_type",
    "SavepointEditor.add_operator_from other_savepoint": "path",
    "SavepointEditor.from_existing_savepoint savepoint": "path",
    "SavepointWriter.from_existing_savepoint savepoint": "path",
    "arrays.key_group_load keys": "key",
    "logical_types.parse_logical_type text": "a logical type",
    "max_parallelism.suggest_max_parallelism parallelisms": "parallelism",
    "savepoint.SavepointWriter template": "path",
    "savepoint.change_max_parallelism savepoint": "path",
    "savepoint.convert_to_canonical savepoint": "path",
    "savepoint.relocate checkpoint": "path",
    "state_keys.CompositeKeySerializer namespace_type": "key_type",
    "state_keys.CompositeKeySerializer user_key_type": "key_type",
} | {
    f"OperatorEditor.{verb} name": "state"
    for verb in (
        "convert_state",
        "map_batches",
        "map_entries",
        "map_timers",
        "remove_state",
        "rename_state",
        "set_ttl",
    )
}
OTHERS |= {
    f"SavepointEditor.{verb} name": "operator"
    for verb in ("add_operator_from", "change_operator_identifier", "operator", "remove_operator")
}
OTHERS |= {
    f"types.{name} {field}": f"{name} is made of key types"
    for name, fields in {
        "LIST": ["element"],
        "MAP": ["key", "value"],
        "OPTIONAL": ["element"],
        "PYFLINK": ["element"],
        "SCALA_EITHER": ["left", "right"],
        "SCALA_OPTION": ["element"],
        "SET": ["element"],
    }.items()
    for field in fields
}
# The registered arguments of these make a call that is refused for another argument, or the
# argument may be anything.
NOT_ASKED = {
    "CompositeKeySerializer.serialize": {"namespace", "user_key"},
    "LocalKeyBy.process": {"key", "value"},
    "Operator.entries": {"key_groups"},
    "Operator.get": {"key"},
    "Operator.tasks": {"key_groups"},
    "Operator.to_arrow": {"key_groups"},
    "Operator.to_arrow_batch_reader": {"key_groups"},
    "OperatorEditor.edited_operator_state": {"folder"},
    "OperatorEditor.map_operator_state": {"function"},
    "OperatorEditor.remove_topics": {"topics"},
    "OperatorEditor.rename_operator_state": {"new_name"},
    "OperatorWriter.write": {"user_key"},
    "RebalancePartitioner.select_channel": {"record"},
    "RescalePartitioner.select_channel": {"record"},
    "Savepoint.check_restore": {"parallelism"},
    "SavepointEditor.from_existing_savepoint": {"path", "progress"},
    "SavepointWriter.from_existing_savepoint": {"path", "progress"},
    "ShufflePartitioner.select_channel": {"record"},
    "WindowOperatorWriter.write": {"contents"},
    "arrays.skew_report": {"weight"},
    "binary_row.binary_row": {"key"},
    "partitioners.KeyGroupStreamPartitioner": {"key_type"},
    "reports.RescaleReport": {"at_least"},
    "routing_inference.infer_routing": {"key_groups"},
    "savepoint.job_files": {"moved"},
    "savepoint.operator_reports": {"parallelism"},
    "subtask_keys.keys_for_subtasks": {"start", "progress"},
    "subtask_keys.salted_key": {"key", "separator"},
    "types.SCALA_TUPLE": {"scala"},
}


class Unwanted:
    def __repr__(self) -> str:
        return "Unwanted()"


def refusal(name: str, arguments: dict[str, Any]) -> str:
    call = CALLS[name]()
    positional, named = [], {}
    for parameter in parameters(call):
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = arguments[parameter.name]
        elif parameter.name in arguments:
            positional.append(arguments[parameter.name])
    with pytest.raises(KeyGroupsError) as caught:
        call(*positional, **named)
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(name for name in CALLS if "__" not in name))
def test_what_is_refused_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is of another class, or a number beyond all bounds."""
    monkeypatch.chdir(tmp_path)
    variadic = {p.name for p in parameters(CALLS[name]()) if p.kind is p.VAR_POSITIONAL}
    valid = valid_arguments(name)
    first = {other: values[0] for other, values in valid.items() if other not in variadic}
    for parameter in first.keys() - NOT_ASKED.get(name, set()):
        expected = OTHERS.get(f"{name} {parameter}", parameter)
        for value in [Unwanted()] + [1 << 200] * (type(first[parameter]) is int):
            message = refusal(name, first | {parameter: value})
            assert re.match(rf"(.* of )?{expected}\b", message), (
                f"{parameter} of {name}: {message}"
            )


# Of any other number, 1 to Flink's highest max parallelism.
BOUNDS = {
    "from -1 to 1073741823": """
        source_partitions.split_owner partition
    """,
    "from -9223372036854775807 to 9223372036854775807": """
        SlidingEventTimeWindows.assign_windows timestamp
    """,
    "from -9223372036854775808 to 9223372036854775787": """
        EventTimeSessionWindows.assign_windows timestamp
    """,
    "from 0 to 127": """
        CompositeKeySerializer.serialize key_group
    """,
    "from 0 to 32767": """
        key_group_range.KeyGroupRange start_key_group
    """,
    "from 1 to 1000": """
        arrays.skew_report top
    """,
    "from 1 to 4": """
        KeyGroupLoad.recommend low
    """,
    "from 1 to 6,553.6": """
        max_parallelism.suggest_max_parallelism growth
    """,
    "from 1 to 9223372036854775806": """
        savepoint.SavepointWriter checkpoint_id
    """,
    "from 2 to 2147483647": """
        RescalePlan.table limit
    """,
    "from 43 to 32767": """
        key_group_range.KeyGroupRange end_key_group
    """,
    "from -4 to 4": """
        savepoint.SlidingEventTimeWindows offset
        savepoint.SlidingProcessingTimeWindows offset
    """,
    "from -9 to 9": """
        savepoint.TumblingEventTimeWindows offset
        savepoint.TumblingProcessingTimeWindows offset
    """,
    "from 0 to 7": """
        key_group_range.compute_operator_index_for_key_group key_group_id
        state_keys.key_group_prefix key_group
    """,
    "from 0 to 9223372036854775807": """
        SavepointEditor.add_window_operator allowed_lateness
        SavepointWriter.add_window_operator allowed_lateness
    """,
    "from 1 to 1073741824": """
        source_partitions.partition_for_key partitions
        source_partitions.partitions_of_key_groups partitions
    """,
    "from 1 to 256": """
        SavepointEditor.set_max_parallelism parallelism
        savepoint.change_max_parallelism parallelism
    """,
    "from 2 to 5": """
        Serializer.from_snapshot kryo_version
        savepoint.read_operator_state_dump kryo_version
    """,
    "from -9223372036854775808 to 9223372036854775807": """
        OperatorEditor.set_ttl last_access
        OperatorWriter.write value
        OperatorWriter.write_timer timestamp
    """,
    "from 0 to 3": """
        RescalePlan.restores_from new_subtask
        SubtaskKeySelector.key_for subtask
        partitioners.RebalancePartitioner start
    """,
    "from 0 to 2": """
        OperatorWriter.task subtask
        RescalePlan.hands_to old_subtask
        key_group_range.compute_key_group_range_for_operator_index operator_index
        subtask_keys.salted_key subtask
        testing.assert_subtask subtask
    """,
    "from 1 to 2147483647": """
        Operator.key_sizes top
        Savepoint.summary top
        arrays.skew_report batch_size
        local_key_by.LocalKeyBy batch_size
        savepoint.html_report top
        savepoint.operator_reports top
        subtask_keys.keys_for_subtasks n
    """,
    "from -2147483648 to 2147483647": """
        CompositeKeySerializer.serialize key
        OperatorWriter.key_group key
        OperatorWriter.write key
        OperatorWriter.write_timer key
        SubtaskKeySelector.key_for_value value
        WindowOperatorWriter.key_group key
        WindowOperatorWriter.write key
        assignment.compute_key_group_for_key_hash key_hash
        hashing.murmur_hash code
        types.OBJECTS_HASH start
    """,
    "from 1 to 9223372036854775807": """
        savepoint.CountWindows size
        savepoint.CountWindows slide
        savepoint.EventTimeSessionWindows gap
        savepoint.ProcessingTimeSessionWindows gap
        savepoint.SlidingEventTimeWindows size
        savepoint.SlidingEventTimeWindows slide
        savepoint.SlidingProcessingTimeWindows size
        savepoint.SlidingProcessingTimeWindows slide
        savepoint.TumblingEventTimeWindows size
        savepoint.TumblingProcessingTimeWindows size
    """,
    "from 1 to 8": """
        KeyGroupLoad.groups_per_subtask parallelism
        KeyGroupLoad.idle_subtasks parallelism
        KeyGroupLoad.imbalance parallelism
        KeyGroupLoad.per_subtask parallelism
        KeyGroupLoad.recommend high
        KeyGroupLoad.skew parallelism
        SavepointEditor.add_operator parallelism
        SavepointEditor.add_source parallelism
        SavepointEditor.add_window_operator parallelism
        SavepointWriter.add_operator parallelism
        SavepointWriter.add_source parallelism
        SavepointWriter.add_window_operator parallelism
        arrays.assign_key_to_parallel_operator parallelism
        arrays.compute_operator_index_for_key_group parallelism
        arrays.skew_report parallelism
        assignment.assign_key_to_parallel_operator parallelism
        assignment.trace_key parallelism
        flink_exceptions.explain_exception parallelism
        key_group_range.compute_key_group_range_for_operator_index parallelism
        key_group_range.compute_operator_index_for_key_group parallelism
        partitioners.KeyGroupStreamPartitioner number_of_channels
        rescale.RescalePlan new_parallelism
        rescale.RescalePlan old_parallelism
        rescale.check_restore parallelism
        source_partitions.partition_for_key parallelism
        source_partitions.partitions_of_key_groups parallelism
        subtask_keys.SubtaskKeySelector parallelism
        subtask_keys.keys_for_subtasks parallelism
        subtask_keys.salted_key parallelism
        testing.assert_reaches_all parallelism
        testing.assert_spread parallelism
        testing.assert_subtask parallelism
    """,
}


def bounds(name: str) -> Iterator[tuple[str, str]]:
    """Yield each parameter of a callable that takes a number, with the bounds in its refusal."""
    variadic = {p.name for p in parameters(CALLS[name]()) if p.kind is p.VAR_POSITIONAL}
    valid = valid_arguments(name)
    first = {other: values[0] for other, values in valid.items() if other not in variadic}
    for parameter in first.keys() - NOT_ASKED.get(name, set()):
        if type(first[parameter]) is int:
            for beyond in (-(1 << 200), 1 << 200):
                message = refusal(name, first | {parameter: beyond})
                if bound := re.search(r" must be (from .*?)(?:,| \(.*\),) got", message):
                    yield f"{name} {parameter}", bound[1]


def test_bounds_of_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of Java's types and of Flink's parallelisms; what another argument gives, too."""
    monkeypatch.chdir(tmp_path)
    expected = {line.strip(): bound for bound, text in BOUNDS.items() for line in text.split("\n")}
    seen = {(what, bound) for name in CALLS if "__" not in name for what, bound in bounds(name)}
    assert len(seen) > 150
    assert {what for what, _ in seen} >= expected.keys() - {""}
    wrong = {pair for pair in seen if pair[1] != expected.get(pair[0], "from 1 to 32768")}
    assert wrong == set()


# What is wanted of each, but where it is an int, a str or a bool.
WANTED = {
    "a value of keygroups.types such as STRING or TUPLE(STRING, INT)": """
        RescalePlan.compare_with_modulo key_type
        SubtaskKeySelector.key_for_value value_type
        arrays.assign_key_to_parallel_operator key_type
        arrays.assign_to_key_group key_type
        arrays.hash_code key_type
        arrays.key_group_load key_type
        arrays.skew_report key_type
        assignment.assign_key_to_parallel_operator key_type
        assignment.assign_to_key_group key_type
        assignment.trace_key key_type
        hashing.hash_code key_type
        source_partitions.partition_for_key key_type
        testing.assert_reaches_all key_type
        testing.assert_spread key_type
        testing.assert_subtask key_type
        testing.keys key_type
    """,
    "an iterable of names": """
        Operator.entries states
        Operator.entries_by_key states
        Operator.operator_state states
        Operator.tasks states
        Savepoint.compare operators
        Savepoint.compare states
        Savepoint.differences operators
        Savepoint.differences states
        Savepoint.summary operators
        Savepoint.verify operators
        SavepointEditor.convert_to_canonical operators
        SavepointEditor.set_max_parallelism operators
        savepoint.change_max_parallelism operators
        savepoint.html_report operators
        savepoint.operator_reports operators
    """,
    "a str or a path": """
        SavepointEditor.add_operator_from other_savepoint
        SavepointEditor.from_existing_savepoint savepoint
        SavepointWriter.from_existing_savepoint savepoint
        savepoint.SavepointWriter path
        savepoint.SavepointWriter template
        savepoint.change_max_parallelism output
        savepoint.change_max_parallelism savepoint
        savepoint.convert_to_canonical output
        savepoint.convert_to_canonical savepoint
        savepoint.job_files folder
        savepoint.read_operator_state_dump path
        savepoint.read_savepoint path
        savepoint.relocate checkpoint
        savepoint.relocate new_folder
    """,
    "a key type such as LONG or a Serializer": """
        OperatorEditor.map_keys key_type
        SavepointEditor.add_operator key_type
        SavepointEditor.add_window_operator key_type
        SavepointWriter.add_operator key_type
        SavepointWriter.add_window_operator key_type
        savepoint.AggregatingStateDescriptor accumulator_type
        savepoint.ListStateDescriptor value_type
        savepoint.MapStateDescriptor user_key_type
        savepoint.MapStateDescriptor value_type
        savepoint.ReducingStateDescriptor value_type
        savepoint.TimerServiceDescriptor namespace_type
        savepoint.ValueStateDescriptor value_type
    """,
    "an iterable of descriptors": """
        Operator.as_pyflink states
        OperatorEditor.as_pyflink states
        SavepointEditor.add_operator broadcast_states
        SavepointEditor.add_operator list_states
        SavepointEditor.add_operator states
        SavepointEditor.add_operator union_list_states
        SavepointWriter.add_operator broadcast_states
        SavepointWriter.add_operator list_states
        SavepointWriter.add_operator states
        SavepointWriter.add_operator union_list_states
    """,
    "callable": """
        OperatorEditor.convert_state value
        OperatorEditor.map_batches function
        OperatorEditor.map_entries function
        OperatorEditor.map_keys function
        OperatorEditor.map_timers function
        RescalePlan.compare_with_modulo scramble
        local_key_by.LocalKeyBy combine
        partitioners.CustomPartitionerWrapper partitioner
        partitioners.ShufflePartitioner next_int
        savepoint.SplitLayout read
        savepoint.SplitLayout read_enumerator
    """,
    "left out for a Savepoint, which read_savepoint has read with its own": """
        SavepointEditor.from_existing_savepoint allow
        SavepointEditor.from_existing_savepoint moved
        SavepointEditor.from_existing_savepoint serializers
        SavepointEditor.from_existing_savepoint uids
        SavepointWriter.from_existing_savepoint allow
        SavepointWriter.from_existing_savepoint moved
        SavepointWriter.from_existing_savepoint serializers
        SavepointWriter.from_existing_savepoint uids
    """,
    "is made of key types such as INT or SQL_DATE('UTC') at position 0": """
        types.LIST element
        types.MAP key
        types.OPTIONAL element
        types.PYFLINK element
        types.SCALA_EITHER left
        types.SCALA_OPTION element
        types.SET element
    """,
    "an array of NumPy, pandas, Polars or Arrow, or a list of such columns of class Unwanted": """
        arrays.assign_key_to_parallel_operator key
        arrays.assign_to_key_group key
        arrays.compute_key_group_for_key_hash key_hash
        arrays.compute_operator_index_for_key_group key_group_id
        arrays.hash_code key
        arrays.key_group_load keys
    """,
    "a Savepoint": """
        Savepoint.compare other
        Savepoint.differences other
        savepoint.html_report savepoint
        savepoint.operator_reports savepoint
        savepoint.savepoint_files savepoint
    """,
    "an iterable of str": """
        operator_state.split_distribute_order names
        savepoint.SplitLayout name
        savepoint.SplitLayout position
        savepoint.read_savepoint uids
        types.ROW names
    """,
    "one of raise, mask": """
        arrays.assign_key_to_parallel_operator nulls
        arrays.assign_to_key_group nulls
        arrays.compute_key_group_for_key_hash nulls
        arrays.compute_operator_index_for_key_group nulls
        arrays.hash_code nulls
    """,
    "a function of a Progress, True or None": """
        savepoint.SavepointWriter progress
        savepoint.change_max_parallelism progress
        savepoint.convert_to_canonical progress
        savepoint.read_savepoint progress
    """,
    "a mapping of partitions such as ('clicks', 0)": """
        Operator.source_splits ends
        OperatorEditor.set_offsets offsets
        savepoint.read_savepoint ends
        savepoint.KafkaOffsets offsets
        savepoint.KafkaOffsets stopping_offsets
    """,
    "an iterable of keys": """
        OperatorEditor.delete_keys keys
        RescalePlan.compare_with_modulo keys
        testing.assert_reaches_all keys
        testing.assert_spread keys
    """,
    "the name of a time zone of class Unwanted": """
        types.JavaSqlType zone
        types.SQL_DATE zone
        types.SQL_TIME zone
        types.SQL_TIMESTAMP zone
    """,
    "a KeyGroupLoad": """
        RescalePlan.moved_weight load
        RescalePlan.table load
        reports.RescaleReport load
    """,
    "a mapping of classes": """
        Serializer.from_snapshot serializers
        savepoint.read_operator_state_dump serializers
        savepoint.read_savepoint serializers
    """,
    "a number": """
        job.read_job timeout
        max_parallelism.suggest_max_parallelism growth
        testing.assert_spread max_imbalance
    """,
    "bytes": """
        CompositeKeySerializer.deserialize data
        Serializer.decode data
        Serializer.from_snapshot data
    """,
    "the text of a version of class Unwanted": """
        types.CASE_CLASS scala
        types.SCALA_EITHER scala
        types.SCALA_OPTION scala
    """,
    "KafkaOffsets": "SavepointEditor.add_source source; SavepointWriter.add_source source",
    "a KeyGroupRange": """
        KeyGroupRange.intersection other
        key_group_range.compute_operator_indexes_for_key_group_range key_group_range
    """,
    "a ListStateDescriptor, a ReducingStateDescriptor or an AggregatingStateDescriptor": """
        SavepointEditor.add_window_operator contents
        SavepointWriter.add_window_operator contents
    """,
    "a key type or a Serializer, got None": """
        state_keys.CompositeKeySerializer namespace_type
        state_keys.CompositeKeySerializer user_key_type
    """,
    "a key type such as LONG, as in key_by, or PICKLED": """
        Operator.as_pyflink key_type
        OperatorEditor.as_pyflink key_type
    """,
    "a mapping by operator": """
        savepoint.read_savepoint key_types
        savepoint.read_savepoint splits
    """,
    "a mapping of paths": "savepoint.read_savepoint moved; savepoint.relocate moved",
    (
        "an integer type, STRING, BOOLEAN or made of these; a field of another type takes"
        " a value from template; got Unwanted()"
    ): """
        subtask_keys.SubtaskKeySelector key_type
        subtask_keys.keys_for_subtasks key_type
    """,
    "an iterable of ints": """
        KeyGroupLoad.weight_of key_groups
        Operator.entries_by_key key_groups
    """,
    "an iterable of numbers": "load.KeyGroupLoad weights; skew.SubtaskCounts counts",
    "left out for a key_type without fields for None": """
        subtask_keys.SubtaskKeySelector template
        subtask_keys.keys_for_subtasks template
    """,
    "left out where the url is one of http": """
        job.read_job ca_file
        job.read_job client_certificate
    """,
    "one such as TumblingEventTimeWindows": """
        SavepointEditor.add_window_operator assigner
        SavepointWriter.add_window_operator assigner
    """,
    "None": "OperatorWriter.write_timer namespace",
    "None for EventTimeSessionWindows(gap=20)": "WindowOperatorWriter.write count",
    "None in the MAP state 'cities'": "OperatorWriter.write namespace",
    "None, as the MAP state 'cities' has no time to live": "OperatorWriter.write last_access",
    "STRING or have two fields, the key and the salt": "subtask_keys.salted_key key_type",
    "a Job": "Job.skew since",
    "a RescalePlan": "reports.RescaleReport plan",
    "a SQL_ROW such as SQL_ROW('INT')": "binary_row.binary_row key_type",
    "a Savepoint, or map operators to a key type and descriptors": """
        Savepoint.restore_report job
    """,
    "a TimeWindow": "WindowOperatorWriter.write window",
    "a datetime": "Savepoint.summary at",
    "a descriptor such as ValueStateDescriptor, or an operator of a savepoint of the job": """
        OperatorEditor.convert_state to
    """,
    "a key type or a Serializer": "state_keys.CompositeKeySerializer key_type",
    "a key type such as INT": "state_keys.serializer_of key_type",
    "a list of class Unwanted": "Serializer.encode value",
    "a list of lists": "operator_state.redistribute_list_state old_lists",
    "a list of paths": "savepoint.read_savepoint allow",
    "a list of str": "cli.main arguments",
    "a mapping": "savepoint.KryoFields fields",
    "a mapping of str to str, got a Unwanted": "job.read_job headers",
    "a str such as 'BIGINT' of class Unwanted": "logical_types.parse_logical_type text",
    "a str, got a Unwanted": "job.read_job url",
    "a table of Arrow, pandas (2.2 and newer) or Polars": "OperatorWriter.write_table table",
    "a table of pandas, Polars or Arrow, or a dict of arrays of class Unwanted": """
        arrays.skew_report df
    """,
    "an Operator": "savepoint.describe_sql_state operator",
    "an iterable of (key, value) tuples": "LocalKeyBy.restore entries",
    "an iterable of SavepointSummaries": "SavepointGrowth.of summaries",
    "an iterable of elements of operator state 'places'": """
        OperatorWriter.write_operator_state elements
    """,
    "an iterable of int": """
        savepoint.SplitLayout enumerator_versions
        savepoint.SplitLayout versions
    """,
    "an iterable of key types": "routing_inference.infer_routing key_types",
    "an iterable of keys of the operator": "Operator.get_many keys",
    "an iterable of operators": "OperatorEditor.traces others",
    "an iterable of pairs of a key and its subtask": "routing_inference.infer_routing observed",
    "an iterable of paths": "savepoint.job_files others",
    "declared must map operators to a key type and descriptors": """
        Savepoint.as_pyflink declared
    """,
    "is made of key types such as INT or SQL_DATE('UTC') at position 1": """
        types.SCALA_EITHER right
    """,
    "is made of key types such as INT or SQL_DATE('UTC'), got 5 at position 0": """
        types.MAP value
    """,
    "None where there is a key type, of which nothing is pickled": "types.PYFLINK protocol",
    "one of +I, -U, +U, -D": "types.ROW kind",
    "one of ARBITRARY, FIRST, FULL, RANGE, ROUND_ROBIN, UNSUPPORTED": """
        partitioners.subtask_state_mapping mapper
    """,
    "one of PROCESSING_TIME, EVENT_TIME": "OperatorWriter.write_timer time_domain",
    "one of raise, drop": "arrays.skew_report nulls",
    "states must map names to (mode, lists)": """
        operator_state.redistribute_operator_state states
    """,
    "the folder of a new savepoint": "OperatorEditor.edited_keyed_state folder",
    "the metadata of an operator": "OperatorEditor.edited_keyed_state new",
    "the name of a case class of class Unwanted": "types.CASE_CLASS name",
    "what WriteTask.write returns": "OperatorWriter.add written",
}


def test_what_is_wanted_of_an_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = {what: end for end, text in WANTED.items() for what in re.split("; |\n", text)}
    wanted = {what.strip(): end for what, end in wanted.items()}
    for name in sorted(name for name in CALLS if "__" not in name):
        variadic = {p.name for p in parameters(CALLS[name]()) if p.kind is p.VAR_POSITIONAL}
        valid = valid_arguments(name)
        first = {other: values[0] for other, values in valid.items() if other not in variadic}
        for parameter in first.keys() - NOT_ASKED.get(name, set()):
            message = refusal(name, first | {parameter: Unwanted()})
            if "is not supported" in message:  # It says so of the class of a key.
                continue
            end = re.sub(r"^.*? must be |^.*? (?=is made of)", "", message)
            end = end.replace(", got Unwanted()", "")
            if end.removesuffix(" of class Unwanted") not in ("an int", "a str", "a bool"):
                assert end == wanted[f"{name} {parameter}"], message
            else:
                assert f"{name} {parameter}" not in wanted, message
