"""An argument that is refused is named first: each parameter of each public callable of the core.

The names are those of the signatures, and of a few parameters the word that users know them by.
"""

from __future__ import annotations

import re
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
