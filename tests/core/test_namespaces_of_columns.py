"""Entries in namespaces, read as columns: every kind of state, every namespace, in every format.

What is expected is what was put in, and the bytes of the canonical format beside it.
Flink: SerializedCompositeKeyBuilder, CopyOnWriteStateTableSnapshot and ListDelimitedSerializer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.sst_bytes import VALUE, sst

from keygroups.savepoint import GlobalWindow, Operator, TimeWindow

pytest.importorskip("pyarrow")

from support.bytes.column_entries import column_entries
from support.bytes.column_forms import assert_same, is_arrow, operator_of
from support.inside.serializers import write_string

LONG, STRING = sb.simple("Long"), sb.simple("String")
GROUP = 3
DAYS = [TimeWindow(0, 86_400_000), TimeWindow(-(2**63), -1), TimeWindow(5, 2**63 - 1)]

# Snapshot, the namespaces and their bytes.
NAMESPACES: dict[str, tuple[bytes, list[tuple[Any, bytes]]]] = {
    "VoidNamespace": (sb.NONE, [(None, b"\0")]),
    "TimeWindow": (
        sb.snapshot(f"{sb.WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot", 3),
        [(window, sb.i64(window.start, window.end)) for window in DAYS],
    ),
    "GlobalWindow": (
        sb.snapshot(f"{sb.WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot", 3),
        [(GlobalWindow(), b"\0")],
    ),
}
KEYS: dict[str, tuple[bytes, Callable[[Any], bytes], list[Any]]] = {
    "LONG": (LONG, sb.i64, [-1, 2**63 - 1, 0, 7]),
    "STRING": (STRING, write_string, ["", "é", "a" * 70, "user-1"]),
}
# Snapshot of the value, and the values.
KINDS: dict[str, tuple[bytes, list[Any]]] = {
    "VALUE": (LONG, [5, -(2**63), 0]),
    "REDUCING": (LONG, [5, -(2**63), 0]),
    "AGGREGATING": (LONG, [5, -(2**63), 0]),
    "LIST": (sb.list_of(LONG), [[5], [-1, 2**63 - 1, 0]]),
    "MAP": (sb.map_of(STRING, LONG), [{"a": 5, "é": -1, "": 0}, {"b": 7}, {}]),
}
Part = tuple[bytes, bytes, Any]  # key, namespace, value


def framed(parts: list[Part]) -> list[tuple[bytes, bytes]]:
    """Return keys and values as the canonical format and RocksDB have them."""
    found = []
    for key, namespace, value in parts:
        start = bytes([GROUP]) + key + namespace
        if isinstance(value, dict):
            found += [
                (start + write_string(name), b"\0" + sb.i64(each)) for name, each in value.items()
            ]
        elif isinstance(value, list):
            found.append((start, b",".join(map(sb.i64, value))))
        else:
            found.append((start, sb.i64(value)))
    return found


def heaped(value: Any) -> bytes:
    """Return a value as the hashmap backend's own format has it."""
    if isinstance(value, dict):
        items = (write_string(name) + b"\0" + sb.i64(each) for name, each in value.items())
        return sb.i32(len(value)) + b"".join(items)
    if isinstance(value, list):
        return sb.i32(len(value)) + sb.i64(*value)
    return sb.i64(value)


def canonical(folder: Path, header: bytes, parts: list[Part]) -> Operator:
    content = header + sb.canonical_key_group([(0, framed(parts))])
    return operator_of(folder, sb.canonical(GROUP, [len(header)], sb.inline(content)))


def native(folder: Path, header: bytes, parts: list[Part]) -> Operator:
    content = header + sb.i32(GROUP) + sb.i16(0) + sb.i32(len(parts))
    content += b"".join(namespace + key + heaped(value) for key, namespace, value in parts)
    return operator_of(folder, sb.native(GROUP, [len(header)], sb.inline(content)))


def rocksdb(folder: Path, header: bytes, parts: list[Part]) -> Operator:
    records = sorted((key, 7, VALUE, value) for key, value in framed(parts))
    table = sst(records, "s", per_block=3)
    keyed = sb.rocksdb(GROUP, GROUP + 1, sb.inline(header), [("1.sst", sb.inline(table))])
    return operator_of(folder, keyed)


@pytest.mark.parametrize("form", [canonical, native, rocksdb])
@pytest.mark.parametrize("key_type", KEYS)
@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_have_the_namespace_of_each_entry(
    kind: str, namespace: str, key_type: str, form: Any, tmp_path: Path
) -> None:
    (key_snapshot, write_key, keys), (snapshot, namespaces) = KEYS[key_type], NAMESPACES[namespace]
    value_snapshot, values = KINDS[kind]
    rows, parts = [], []
    for number, key in enumerate(keys):
        for place, (window, encoded) in enumerate(namespaces):
            value = values[(number + place) % len(values)]
            parts.append((write_key(key), encoded, value))
            each: Any = value.items() if isinstance(value, dict) else [(None, value)]
            rows += [(key, window, user_key, one) for user_key, one in each]
    header = sb.keyed_header(
        key_snapshot, [sb.state("s", kind, value_snapshot, namespace=snapshot)]
    )
    operator = form(tmp_path, header, parts)
    assert assert_same(operator) == len(rows)
    # Columns are decoded as wholes, not made of entries, but for a GlobalWindow, which has none.
    assert is_arrow(operator, "key") == (namespace != "GlobalWindow")
    found = [(e.key, e.namespace, e.user_key, e.value) for e in column_entries(operator)]
    assert sorted(map(repr, found)) == sorted(map(repr, rows))
    # As bytes they are those of the canonical format, whatever the format is that they come from.
    pairs = chain.from_iterable(
        zip(*(columns.columns[name].to_pylist() for name in ("encoded_key", "encoded_value")))
        for task in operator.tasks()
        for columns in task.framed_columns()
    )
    assert sorted(pairs) == sorted((key[1:], value) for key, value in framed(parts))
