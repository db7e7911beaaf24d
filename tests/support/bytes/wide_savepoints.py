"""Savepoints of many subtasks, key groups and operators, with little in each.

The header is of a real one, with several of its states. Each key group has one entry String ->
Long, of a key that Flink sends there; the bytes of key groups are the same in each operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from keygroups import compute_key_group_range_for_operator_index
from keygroups.state_keys import key_group_prefix
from keygroups.subtask_keys import keys_for_subtasks
from keygroups.types import STRING
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.bytes.trimmed_savepoints import content, fewer_states, first_subtask
from support.inside.savepoints import KeyGroupsHandle, header_size

STATES = ("visits", "count", "label", "_timer_state/event_user-timers")
_COUNT = 1  # the number of that state


class Shape(NamedTuple):
    """How many operators there are, and the subtasks, key groups and files of each.

    `form` is canonical, native or rocksdb; only the last has `files` for each subtask.
    """

    form: str
    operators: int
    subtasks: int
    max_parallelism: int
    files: int = 0


@lru_cache
def header() -> bytes:
    """The header of a real operator with some of its states."""
    written = point("2.3.0-heap-canonical")
    handle = first_subtask(written, "by-string").managed_keyed
    assert isinstance(handle, KeyGroupsHandle)
    return fewer_states(content(written, handle.stream)[: header_size(handle)], STATES)


@lru_cache(4)
def key_groups(form: str, max_parallelism: int) -> list[bytes]:
    """The bytes of each key group."""
    made = []
    for key_group, key in enumerate(keys_for_subtasks(max_parallelism, max_parallelism, STRING)):
        text = bytes([len(key) + 1]) + key.encode()
        if form == "native":
            empty = [sb.i16(number) + sb.i32(0) for number in range(len(STATES))]
            empty[_COUNT] = sb.i16(_COUNT) + sb.i32(1) + b"\0" + text + sb.i64(5)
            made.append(sb.i32(key_group) + b"".join(empty))
        else:
            prefix = key_group_prefix(key_group, max_parallelism)
            entry = prefix + text + b"\0", sb.i64(5)
            made.append(sb.canonical_key_group([(_COUNT, [entry])]))
    return made


def write(folder: Path, shape: Shape) -> int:
    """Write a savepoint of a shape, and return how many bytes its `_metadata` has.

    The files of RocksDB's are not there, but for the headers, which are inline.
    """
    folder.mkdir(exist_ok=True)
    # Piece by piece, so that what measures afterwards has the memory to itself.
    with (folder / "_metadata").open("wb") as file:
        end = sb.metadata([])[24:]
        file.write(sb.metadata([])[:20] + sb.i32(shape.operators))
        for number in range(shape.operators):
            file.write(
                sb.operator(
                    [*_subtasks(folder, shape, number)],
                    parallelism=shape.subtasks,
                    max_parallelism=shape.max_parallelism,
                    uid=f"operator-{number}",
                    operator_id=number.to_bytes(16, "big"),
                )
            )
        file.write(end)
        return file.tell()


def _subtasks(folder: Path, shape: Shape, operator: int) -> Iterator[bytes]:
    for index in range(shape.subtasks):
        groups = compute_key_group_range_for_operator_index(
            shape.max_parallelism, shape.subtasks, index
        )
        first, count = groups.start_key_group, len(groups)
        name = f"{operator:03d}-{index:05d}"
        if shape.form == "rocksdb":
            path = f"s3://bucket/job/shared/{name}"
            tables = [
                (f"{number:06d}.sst", sb.absolute(f"{path}-{number}", 1_000_000))
                for number in range(shape.files)
            ]
            yield sb.subtask(
                index,
                managed_keyed=sb.rocksdb(first, count, sb.inline(header(), name), tables),
                raw_keyed=sb.native(first, [-1] * count, sb.relative(f"{name}-raw", 100)),
            )
            continue
        pieces = [header(), *key_groups(shape.form, shape.max_parallelism)[first : first + count]]
        offsets, end = [], 0
        for piece in pieces:
            end += len(piece)
            offsets.append(end)
        (folder / name).write_bytes(b"".join(pieces))
        write_handle = {"canonical": sb.canonical, "native": sb.native}[shape.form]
        yield sb.subtask(
            index,
            managed_keyed=write_handle(first, offsets[:-1], sb.relative(name, end)),
            managed_operator=_operator_state(f"{name}-state"),
        )


def _operator_state(name: str) -> bytes:
    """A list, a union and a broadcast state, of which there is no file."""
    states = [("list", 0, range(100, 132)), ("union", 1, range(200, 232)), ("rules", 2, [300])]
    return sb.operator_state(states, sb.relative(name, 1_000))
