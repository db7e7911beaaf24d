"""What is true, by what Flink's own classes read and by plain Python, without keygroups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
from support.bytes.real_savepoints import Point

from user_tasks.asking import CHECKOUT, NEW, SQL


def java_hash(text: str) -> int:
    """Return the JDK's String.hashCode modulo 2^32."""
    units = text.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2]):
        code = (31 * code + (high << 8 | low)) % 2**32
    return code


def murmur_hash(code: int) -> int:
    """Return Flink's MathUtils.murmurHash."""

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> (32 - bits)) % 2**32

    word = rotated(code * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
    word = (rotated(word, 13) * 5 + 0xE6546B64) % 2**32 ^ 4
    word = (word ^ word >> 16) * 0x85EBCA6B % 2**32
    word = (word ^ word >> 13) * 0xC2B2AE35 % 2**32
    word ^= word >> 16
    return abs(word - 2**32) % 2**31 if word >> 31 else word


def key_group(text: str, max_parallelism: int) -> int:
    return murmur_hash(java_hash(text)) % max_parallelism


def subtask(text: str, max_parallelism: int, parallelism: int) -> int:
    return key_group(text, max_parallelism) * parallelism // max_parallelism


def flights(column: str) -> Counter[str]:
    """Return the number of flights of each value of a column."""
    table = pq.read_table(CHECKOUT / "examples/data/nycflights13.parquet", columns=[column])
    return Counter(table[column].to_pylist())


def loads(column: str, max_parallelism: int, parallelism: int) -> list[int]:
    """Return the number of flights of each subtask, keyed by a column of text."""
    load = [0] * parallelism
    for key, records in flights(column).items():
        load[subtask(key, max_parallelism, parallelism)] += records
    return load


def operator_id(uid: str) -> str:
    """Return the id of an operator, as Flink 2.3 wrote it beside the uid."""
    (line,) = (line for line in NEW.truth("metadata") if line.get("uid") == uid)
    return str(line["operator"])


def entries(
    point: Point, uid: str, state: str | None = None, key: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows that Flink read in keyed state, of all states and keys or of these."""
    wanted = {"operator": operator_id(uid), "state": state, "key": key}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    for line in point.lines(point.entries):
        if line.items() >= wanted.items():
            yield line


def seen_in_sql() -> list[tuple[list[Any], int]]:
    """Return keys of a GROUP BY of two columns, with their subtasks of 23."""
    operator = "8e92d6514aa8ce7d8edc87147109b4a3"
    return [
        ([name, number["int"]], line["key_group"] * 23 // 128)
        for line in SQL.lines(SQL.entries)
        if line["operator"] == operator
        for (_, name), (_, number) in [line["key_fields"]]
    ]
