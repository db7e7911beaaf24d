"""Entries of the hashmap's own format as the bytes of canonical ones: by columns, one by one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.inside import serializers
from support.inside.serializers import PojoSerializer

from keygroups.errors import SavepointError
from keygroups.savepoint import Operator, Pojo, TtlValue
from keygroups.state_keys import Serializer

pytest.importorskip("pyarrow")

from support.bytes.column_forms import operator_of
from support.inside.columns import entry_columns

STRING, LONG, INT = serializers.STRING, serializers.LONG, serializers.INT
POJO = PojoSerializer("a.B", ("id", "name"), [LONG, STRING])
TTL = serializers.TtlSerializer(STRING)
POINTS = ("1.17.2-heap", "1.20.5-sqlheap", "2.3.0-heap", "2.3.0-sqlheap")


def by_columns(operator: Operator) -> Any:
    found = []
    for task in operator.tasks():
        for entries in task.framed_columns():
            parts: Any = (
                entries.columns[name] for name in ("key_group", "encoded_key", "encoded_value")
            )
            rows = [*zip(*(part.tolist() for part in parts))]
            found += [(entries.state.name, *row) for row in rows]
            keys, read = entries.columns.get("key"), entries.state.key_serializer.read
            if keys is not None:
                assert read is not None
                start = 8 if entries.state.value_serializer is None else 0  # a timer's time
                own = [read(encoded, start)[0] for _, encoded, _ in rows]
                restored = keys.to_pylist()
                assert own == [tuple(k.values()) if isinstance(k, dict) else k for k in restored]
    return sorted(found)


def by_entries(operator: Operator) -> Any:
    names = [state.name for state in operator.states]
    numbers = {name: number for number, name in enumerate(names)}
    return sorted(
        (names[entry.state], *entry[:1], *entry[2:])
        for task in operator.tasks()
        for entry in task.encoded_entries(numbers)
    )


@pytest.mark.long
@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("rows", [1, 3, 1 << 14])
def test_recorded_points(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_columns, "ROWS", rows)
    for operator in point(f"{name}-native").read().operators:
        if operator.states:
            assert by_columns(operator) == by_entries(operator)


def native_map(items: dict[str, Any], value: Serializer) -> bytes:
    """A map as the hashmap backend has it: a count, and user keys, marks of null and values."""
    parts = [sb.i32(len(items))]
    for user_key, item in items.items():
        parts.append(STRING.encode(user_key))
        parts.append(b"\1" if item is None else b"\0" + value.encode(item))
    return b"".join(parts)


MAP = serializers.MapSerializer(STRING, LONG)
STATES: dict[str, tuple[bytes, list[bytes], bool]] = {
    "longs": (
        sb.state("s", "VALUE", LONG.versioned_snapshot()),
        [*map(LONG.encode, range(5))],
        True,
    ),
    "texts": (
        sb.state("s", "VALUE", STRING.versioned_snapshot()),
        [*map(STRING.encode, ("", "a", "\u6771", "x" * 200, "\ud800"))],
        True,
    ),
    "POJOs": (
        sb.state("s", "VALUE", POJO.versioned_snapshot()),
        [
            POJO.encode(Pojo("a.B", {"id": number, "name": name}))
            for number, name in ((1, "x"), (None, None), (2, "\u00e9"), (3, None))
        ],
        True,
    ),
    "times": (
        sb.state("s", "VALUE", TTL.versioned_snapshot()),
        [TTL.encode(TtlValue(number, "x" * number)) for number in range(4)],
        True,
    ),
    "maps": (
        sb.state("s", "MAP", sb.map_of(sb.simple("String"), sb.simple("Long"))),
        [native_map({f"k{n}": n for n in range(count)}, LONG) for count in (0, 1, 3, 0, 2)],
        True,
    ),
    "maps with nulls": (
        sb.state("s", "MAP", sb.map_of(sb.simple("String"), sb.simple("Long"))),
        [native_map({"a": 1, "b": None}, LONG), native_map({"c": 2}, LONG)],
        False,
    ),
    "lists": (
        sb.state("s", "LIST", sb.list_of(sb.simple("Long"))),
        [sb.i32(2) + sb.i64(1) + sb.i64(2), sb.i32(1) + sb.i64(3)],
        False,
    ),
}


def native(
    key: Serializer, keys: list[Any], state: bytes, values: list[bytes]
) -> tuple[bytes, bytes]:
    """Return the header and the bytes of key group 3."""
    header = sb.keyed_header(key.versioned_snapshot(), [state])
    content = sb.i32(3) + sb.i16(0) + sb.i32(len(values))
    content += b"".join(b"\0" + key.encode(each) + value for each, value in zip(keys, values))
    return header, content


KEYS: dict[str, tuple[Serializer, list[Any]]] = {
    "texts": (STRING, ["a", "\u6771", "x" * 70, "", "b"]),
    "numbers": (INT, [1, -1, 5, 7, 8]),
    "tuples": (serializers.TupleSerializer([STRING, LONG]), [("a", n) for n in range(5)]),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("state", STATES)
def test_each_kind(key: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and damaged; of what is whole columns decode what they can."""
    singles = []
    decoded = entry_columns.HeldEntries._one_by_one

    def single(*arguments: Any) -> Any:
        singles.append(1)
        return decoded(*arguments)

    monkeypatch.setattr(entry_columns.HeldEntries, "_one_by_one", single)
    serializer, keys = KEYS[key]
    described, values, is_by_columns = STATES[state]
    header, content = native(serializer, keys, described, values)

    def outcome(folder: str, content: bytes) -> tuple[Any, Any]:
        handle = sb.native(3, [len(header)], sb.inline(header + content))
        operator = operator_of(tmp_path / folder, handle)
        found: list[Any] = []
        for read in (by_columns, by_entries):
            try:
                found.append(read(operator))
            except SavepointError as error:
                found.append(str(error))
        return found[0], found[1]

    first, second = outcome("whole", content)
    assert first == second
    assert isinstance(first, list)
    assert not singles or not is_by_columns or state == "texts"
    draw = random.Random(0)
    refused = 0
    for number in range(60):
        damaged = bytearray(content)
        if number % 3:
            damaged[draw.randrange(10, len(content))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        else:
            del damaged[draw.randrange(10, len(content)) :]
        first, second = outcome(f"{number}", bytes(damaged))
        assert first == second
        refused += isinstance(first, str)
    assert refused
