"""Writes operator state anew that Flink compressed without saying where its elements start."""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import replace
from typing import NamedTuple

from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import OperatorMetadata, OperatorStateHandle
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._state.operator_state import (
    has_lost_offsets,
    opened,
    read_encoded_operator_state,
)
from keygroups.savepoint._state.writing.operator_state_writer import (
    operator_state_handle,
    operator_state_header,
)


class MendedOperatorState(NamedTuple):
    """An operator with handles that Flink restores, and the files that were written for them."""

    metadata: OperatorMetadata
    file_names: list[str]


def check_operator_state(operator: Operator) -> None:
    """Raise SavepointError where `mended_operator_state` could not write its operator state."""
    for subtask in operator._subtasks:
        handle = subtask.managed_operator
        if handle is not None and has_lost_offsets(operator._files, handle, operator._context):
            for state in read_encoded_operator_state(
                operator._files, handle, False, operator._context
            ):
                deque(state.elements, 0)


def mended_operator_state(
    operator: Operator, metadata: OperatorMetadata, folder: OutputFolder
) -> MendedOperatorState:
    """Write the streams anew whose element offsets in `metadata` are wrong (FLINK-33863).

    `operator` reads the old streams, which are compressed; the new ones are not.
    """
    subtasks, names = [], []
    read = [subtask.managed_operator for subtask in operator._subtasks]
    for subtask in metadata.subtasks:
        handle = subtask.managed_operator
        # A handle that the operator does not read is new: an edit has just written it.
        if (
            handle is not None
            and handle in read
            and has_lost_offsets(operator._files, handle, operator._context)
        ):
            name = f"{metadata.operator_id}-{subtask.index}-operator-state-{uuid.uuid4().hex}"
            mended = _mended(operator, handle, folder, name)
            names += [name] if mended.stream.data is None else []
            subtask = replace(subtask, managed_operator=mended)
        subtasks.append(subtask)
    return MendedOperatorState(replace(metadata, subtasks=tuple(subtasks)), names)


def _mended(
    operator: Operator, handle: OperatorStateHandle, folder: OutputFolder, name: str
) -> OperatorStateHandle:
    with operator._files.open(handle.stream) as stream:
        spans, header = opened(stream, handle, False, operator._context)
        states = [
            (state, mode, [data for _, data in spans.elements(state, starts, header)])
            for state, mode, starts in handle.states
        ]
    lists, broadcasts = (
        [info.data for info in header.infos.values() if info.backend_type == backend_type]
        for backend_type in ("OPERATOR", "BROADCAST")
    )
    data = operator_state_header(lists, broadcasts, header.version)
    return operator_state_handle(data, states, folder, name)
