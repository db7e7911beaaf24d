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
