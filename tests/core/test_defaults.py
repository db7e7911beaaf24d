"""What users get who say nothing: the defaults of all public callables and records of the core.

A default decides for whoever does not ask, so that none of them changes unnoticed.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from support.public_calls import CALLS, parameters
from support.registry import RECORDS

import keygroups

DEFAULTS = """
EditReport left=()
EditedOperator is_added=False states=() written=() committables=()
HotSubtask causes=()
Job _checkpoints=()
KafkaProducerState transactional_ids=()
KafkaSplit is_assigned=False
KafkaWriterState precommitted=()
KeyTrace is_inferred=False
LogicalType fields=() nullable=True names=()
Operator.key_sizes top=10
Operator.to_arrow by_key=False
OperatorComparison committables=()
OperatorEditor.map_batches allow_any_last_access=False
OperatorEditor.map_entries allow_any_last_access=False
OperatorEditor.set_ttl has_ttl=True allow_any_last_access=False
OperatorReport states=() unread=() warnings=()
OperatorSummary unread=()
OperatorWriter allow_any_last_access=False operator_states=() elements_of=() sort=False
OperatorWriter.write_timer time_domain='EVENT_TIME' service='user-timers'
Recommendations found=() floor=''
RescalePlan.compare_with_modulo scramble=murmur_hash
RescalePlan.table limit=40
Row row_kind='+I' names=()
Savepoint.summary top=5
SavepointEditor.add_operator list_states=() union_list_states=() broadcast_states=() allow_any_last_access=False sort=False
SavepointEditor.add_window_operator allowed_lateness=0 has_evictor=False
SavepointEditor.from_existing_savepoint allow=()
SavepointWriter.add_operator list_states=() union_list_states=() broadcast_states=() allow_any_last_access=False sort=False
SavepointWriter.add_window_operator allowed_lateness=0 has_evictor=False
SavepointWriter.from_existing_savepoint allow=()
Serializer.from_snapshot kryo_version=5
SkewReport null_keys=0 is_inferred=False causes=()
SourceSplits processed_paths=() source_indexes=()
SpecialOffset start=1
StateDescriptor has_ttl=False is_python=False
StateSummary heaviest_keys=()
Suggestions suggestions=() parallelisms=() lowest=1
VertexSkew causes=()
WindowOperatorWriter.write has_fired=False
arrays.assign_key_to_parallel_operator nulls='raise'
arrays.assign_to_key_group nulls='raise'
arrays.compute_key_group_for_key_hash nulls='raise'
arrays.compute_operator_index_for_key_group nulls='raise'
arrays.hash_code nulls='raise'
arrays.skew_report top=10 nulls='raise'
job.read_job timeout=10.0
max_parallelism.suggest_max_parallelism growth=1
reports.RescaleReport at_least=1
savepoint.AggregatingStateDescriptor has_ttl=False
savepoint.KafkaOffsets stopping_offsets=... initial_discovery_finished=True
savepoint.KryoFields is_final=False
savepoint.ListStateDescriptor has_ttl=False
savepoint.MapStateDescriptor has_ttl=False
savepoint.ReducingStateDescriptor has_ttl=False
savepoint.SavepointWriter checkpoint_id=1
savepoint.SlidingEventTimeWindows offset=0
savepoint.SlidingProcessingTimeWindows offset=0
savepoint.SplitLayout name=() position=() enumerator_versions=()
savepoint.TimerServiceDescriptor name='user-timers' namespace_type=VOID_NAMESPACE
savepoint.TumblingEventTimeWindows offset=0
savepoint.TumblingProcessingTimeWindows offset=0
savepoint.ValueStateDescriptor has_ttl=False
savepoint.html_report top=5 full=False
savepoint.job_files others=()
savepoint.operator_reports top=5
savepoint.read_operator_state_dump kryo_version=2
savepoint.read_savepoint allow=()
state_keys.CompositeKeySerializer namespace_type=VOID_NAMESPACE
subtask_keys.SubtaskKeySelector key_type=INT prefix=''
subtask_keys.keys_for_subtasks key_type=INT n=1 prefix='' start=0
subtask_keys.salted_key key_type=STRING separator='#'
testing.assert_spread max_imbalance=1.5
types.OBJECTS_HASH start=1
types.PYFLINK thread_mode=False as_pyflink_converts=False
types.ROW kind='+I'
"""  # noqa: E501  # One callable a line, with what is not None.
# Fields that are too much for a line, or are the same where the others are.
UNSHOWN = {
    "Job": "vertices _checkpoints",
    "KeyGroupLoad": "_sums _scale _is_int",
    "SkewReport": "load sent subtasks hot_subtasks detail is_inferred causes",
    "SplitLayout": "read read_enumerator",
    "StateDescriptor": "is_python",
    "SubtaskCounts": "_total",
    "SubtaskKeySelector": "keys",
    "Vertex": "subtasks read_at",
    "VertexSkew": "subtasks",
}
NOT_COMPARED = {
    "KeyGroupLoad": "_sums _scale _is_int",
    "SubtaskCounts": "_total",
    "SubtaskKeySelector": "keys",
    "Vertex": "read_at",
}


def records() -> dict[str, Any]:
    """Return the public classes that users are given and do not call, by name."""
    pytest.importorskip("pyarrow")  # `keygroups.arrays` imports it
    names = [info.name for info in pkgutil.iter_modules(keygroups.__path__)]
    modules = [
        importlib.import_module(f"keygroups.{name}")
        for name in names
        if not name.startswith("_") and name != "spark"
    ]
    return {
        name: getattr(module, name)
        for module in modules
        for name in RECORDS
        if hasattr(module, name)
    }


def defaults(call: Callable[..., Any]) -> str:
    """Return the defaults that are not None, as in the table."""
    shown = []
    for parameter in parameters(call):
        value = parameter.default
        if value is not parameter.empty and value is not None:
            text = value.__name__ if inspect.isfunction(value) else repr(value)
            shown.append(f" {parameter.name}={text.replace('<factory>', '...')}")
    return "".join(shown)


def test_defaults() -> None:
    calls = {name: call() for name, call in CALLS.items()} | records()
    lines = [f"{name}{defaults(calls[name])}" for name in sorted(calls)]
    assert [line for line in lines if " " in line] == DEFAULTS.strip().splitlines()


def test_fields_of_records() -> None:
    """A field that is not shown is too much for a line; one not compared follows from others."""
    called = {name.rpartition(".")[2]: call() for name, call in CALLS.items()}
    classes = {
        name: cls
        for name, cls in (called | records()).items()
        if isinstance(cls, type) and is_dataclass(cls)
    }
    unshown, not_compared = {}, {}
    for name, cls in classes.items():
        unshown[name] = " ".join(field.name for field in fields(cls) if not field.repr)
        not_compared[name] = " ".join(field.name for field in fields(cls) if not field.compare)
    assert {name: names for name, names in unshown.items() if names} == UNSHOWN
    assert {name: names for name, names in not_compared.items() if names} == NOT_COMPARED
