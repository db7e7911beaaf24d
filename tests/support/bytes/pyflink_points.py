"""The state of PyFlink's process mode in the hashmap backend's own format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from keygroups.savepoint import Operator
from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.inside.savepoints import SEPARATOR

_TIME = 8


def write_native(operator: Operator, folder: Path) -> Path:
    """Write the state of an operator as the hashmap backend does, from a canonical savepoint.

    `operator` is read without declarations. Flink: CopyOnWriteStateTableSnapshot.
    """
    tasks = []
    for task in operator.tasks():
        [handle] = task.handles
        header = task.format.headers()[0]
        out = sb.i32(6) + b"\0" + header.key_bytes + sb.i16(len(header.states))
        out += b"".join(header.state_bytes)
        entries = [*framed_entries(task)]
        offsets = []
        for key_group in handle.key_groups:
            offsets.append(len(out))
            out += sb.i32(key_group)
            for number, state in enumerate(header.states):
                held = [
                    (entry.encoded_key, entry.encoded_value)
                    for entry in entries
                    if (entry.key_group, entry.state) == (key_group, state.name)
                ]
                time = _TIME if state.has_ttl else 0
                written = [*_native(state.kind, held, time)]
                out += sb.i16(number) + sb.i32(len(written)) + b"".join(written)
        native = sb.native(handle.key_groups.start_key_group, offsets, sb.inline(out))
        tasks.append(sb.subtask(task.subtask, managed_keyed=native))
    whole = sb.operator(
        tasks,
        parallelism=operator.parallelism,
        max_parallelism=operator.max_parallelism,
        uid=str(operator.uid),
        operator_id=bytes.fromhex(operator.operator_id),
    )
    return sb.write(folder, [whole])


def _native(kind: str, entries: Sequence[tuple[bytes, bytes]], time: int) -> Iterable[bytes]:
    """Yield the entries of a state, whose keys are longs in a Row and without a namespace."""
    start = 9  # the mask of the Row, and the long
    if kind == "PRIORITY_QUEUE":
        yield from (key for key, _ in entries)
    elif kind == "LIST":
        for key, value in entries:
            elements = _elements(value, time)
            yield key[start:] + key[:start] + sb.i32(len(elements)) + b"".join(elements)
    else:
        for key, of_key in groupby(entries, lambda entry: entry[0][:start]):
            items = [(entry[start + 1 :], value) for entry, value in of_key]
            pairs = b"".join(user_key + value for user_key, value in items)
            yield b"\0" + key + sb.i32(len(items)) + pairs


def _elements(value: bytes, time: int) -> list[bytes]:
    elements = []
    while value:
        size = time + 4 + int.from_bytes(value[time : time + 4], "big")
        elements.append(value[:size])
        assert value[size : size + 1] in (b"", SEPARATOR)
        value = value[size + 1 :]
    return elements
