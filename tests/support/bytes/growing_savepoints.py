"""Savepoints of any size, each of one operator, by what there is much of in them."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from keygroups.binary_row import binary_row
from keygroups.savepoint import Operator, read_savepoint
from keygroups.types import SQL_ROW
from support.bytes import savepoint_bytes as sb
from support.bytes.java_bytes import TypeGraph

INT = sb.simple("Int")
ROW_DATA = f"{sb.TABLE}RowDataSerializer$RowDataSerializerSnapshot"


def of_value(snapshot: bytes, value: bytes) -> bytes:
    """An operator with a value under one Integer key."""
    header = sb.keyed_header(INT, [sb.state("s", "VALUE", snapshot)])
    entry = b"\3" + sb.i32(1) + b"\0", value
    stream = sb.inline(header + sb.canonical_key_group([(0, [entry])]))
    return sb.operator([sb.subtask(managed_keyed=sb.canonical(3, [len(header)], stream))])


def subtasks(count: int) -> bytes:
    """Each with two key groups in RocksDB's files."""
    meta = sb.inline(sb.keyed_header(INT, []))
    tasks = []
    for index in range(count):
        files = [(f"{index}.sst", sb.relative(str(index), 9))]
        tasks.append(sb.subtask(index, managed_keyed=sb.rocksdb(2 * index, 2, meta, files)))
    return sb.operator(tasks, parallelism=count, max_parallelism=2 * count)


def operator_states(count: int) -> bytes:
    """Each of a subtask, and inline."""
    tasks = [
        sb.subtask(index, raw_operator=sb.operator_state([], sb.inline(b"x", str(index))))
        for index in range(count)
    ]
    return sb.operator(tasks, parallelism=count, max_parallelism=count)


def key_groups(count: int) -> bytes:
    """Of one subtask in the canonical format, each without an entry."""
    header = sb.keyed_header(INT, [])
    offsets = [len(header) + 2 * number for number in range(count)]
    stream = sb.inline(header + b"\xff\xff" * count)
    task = sb.subtask(managed_keyed=sb.canonical(0, offsets, stream))
    return sb.operator([task], max_parallelism=count)


def states(count: int) -> bytes:
    header = sb.keyed_header(INT, [sb.state(f"s{i}", "VALUE", INT) for i in range(count)])
    return sb.operator([sb.subtask(managed_keyed=sb.rocksdb(0, 128, sb.inline(header)))])


def unknown_states(count: int) -> bytes:
    """States with a serializer that is not known, each with what is in the contents of others."""
    value = sb.snapshot("a.B", 1, sb.utf("NAMESPACE_SERIALIZER") + sb.i32(2))
    header = sb.keyed_header(INT, [sb.state(f"s{i}", "VALUE", value) for i in range(count)])
    return sb.operator([sb.subtask(managed_keyed=sb.rocksdb(0, 128, sb.inline(header)))])


def async_states(count: int) -> bytes:
    """States of the asynchronous API, every other one with a serializer that is not known."""
    unknown = sb.snapshot("a.B", 1, sb.utf("USER_KEY_SERIALIZER") + sb.i32(2))
    states = [
        sb.async_state(f"s{i}", "MAP", unknown if i % 2 else INT, user_key=INT)
        for i in range(count)
    ]
    header = sb.keyed_header(INT, states)
    return sb.operator([sb.subtask(managed_keyed=sb.rocksdb(0, 128, sb.inline(header)))])


def elements_at_one_place(count: int) -> bytes:
    """A compressed list of as many elements as Flink 1.18.0 wrote it."""
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    info = sb.meta_info("s", 1, options, {"VALUE_SERIALIZER": INT})
    data = sb.operator_header([info], [], compressed=True) + b"\xff\6\0\0sNaPpY"
    offsets = [len(data)] * count
    stream = sb.inline(data + sb.snappy_chunk(sb.i32(7) * count))
    state = sb.operator_state([("s", 0, offsets)], stream)
    return sb.operator([sb.subtask(managed_operator=state)])


def fields(count: int) -> bytes:
    """A SQL row of as many."""
    value = binary_row(tuple(range(count)), SQL_ROW(*["INT"] * count))
    types = TypeGraph(["INTEGER"]).data * count
    snapshot = sb.snapshot(ROW_DATA, 3, sb.i32(count) + types + sb.nested([]))
    return of_value(snapshot, sb.i32(len(value)) + value)


def rows(count: int) -> bytes:
    """In an array of a SQL row, each with an array."""
    text = "ARRAY<ROW<a INT, b ARRAY<BIGINT>>>"
    value = binary_row(([(7, [8, 9])] * count,), SQL_ROW(text))
    row = ["ROW", [["INTEGER"], ["ARRAY", ["BIGINT"]]]]
    types = TypeGraph(["ARRAY", row]).data
    snapshot = sb.snapshot(ROW_DATA, 3, sb.i32(1) + types + sb.nested([]))
    return of_value(snapshot, sb.i32(len(value)) + value)


def lists(count: int) -> bytes:
    """In a list, each of one number."""
    value = sb.i32(count) + sb.i32(1, 7) * count
    return of_value(sb.list_of(sb.list_of(INT)), value)


def partitions(count: int) -> bytes:
    """Of raw operator state, each of a byte."""
    state = sb.operator_state([("s", 0, range(count))], sb.inline(bytes(count)))
    return sb.operator([sb.subtask(raw_operator=state)])


@lru_cache
def folder_of(write: Callable[[int], bytes], count: int) -> str:
    """Return the folder of a savepoint with so much."""
    folder = TemporaryDirectory(prefix="keygroups-savepoint-")
    atexit.register(folder.cleanup)
    sb.write(Path(folder.name), [write(count)])
    return folder.name


def operator_of(write: Callable[[int], bytes], count: int) -> Operator:
    """Read the operator of so much."""
    (operator,) = read_savepoint(folder_of(write, count)).operators
    return operator
