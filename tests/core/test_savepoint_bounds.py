"""Small savepoints that ask for much: what is read of them costs as many steps as they have bytes.

What no job of Flink's can have written is refused; what it may have is read. `savepoint_bytes`
and `java_bytes` write them. Costs are counted, not timed.
"""

from __future__ import annotations

import decimal
import pickle
import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.java_bytes import TypeGraph
from support.growth import count_bytes, count_steps
from support.inside.savepoints import Feed, HeldFeed, KeyGroupRanges, OpenStream, StreamHandle
from support.inside.serializers import (
    Cursor,
    JavaEnum,
    JavaObject,
    _TypeReader,
    array_reader,
    read_logical_type,
    read_versioned_snapshot,
    row_reader,
)

from keygroups import KeyGroupRange
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint import Operator, read_savepoint
from keygroups.savepoint.values import Variant

INT, STRING = sb.simple("Int"), sb.simple("String")
STEPS, BYTES = 60, 1000
"""At most, for a byte of what is read; a Java object takes two bytes, and about 25 steps."""


def cost(run: Callable[[], object], size: int) -> None:
    """Run what may be refused, in no more steps than so many bytes are worth."""

    def refusable() -> None:
        with suppress(KeyGroupsError):
            run()

    assert count_steps(refusable) <= STEPS * size
    assert count_bytes(refusable) <= BYTES * size


# Java objects within themselves


def read_type(data: bytes) -> LogicalType:
    return read_logical_type(Cursor(data, "a file"))


def twice(depth: int) -> list[Any]:
    """A ROW of two times the same ROW, and so on: 2^depth of them where each is counted."""
    row = ["INTEGER"]
    for _ in range(depth):
        row = ["ROW", [row, row]]  # type: ignore[list-item]
    return row


def array_of_itself() -> list[Any]:
    array: list[Any] = ["ARRAY"]
    array.append(array)
    return array


def row_of_itself() -> list[Any]:
    row: list[Any] = ["ROW", []]
    row[1] += [["DATE"], row]
    return row


def one_in_another(count: int) -> list[Any]:
    """A ROW of arrays, each of the one before: none is written deeper than the others."""
    arrays = [["INTEGER"]]
    for _ in range(count):
        arrays.append(["ARRAY", arrays[-1]])  # type: ignore[list-item]
    return ["ROW", arrays]


def deep(depth: int) -> list[Any]:
    """A ROW of one array so deep, which is written before in parts."""
    arrays = one_in_another(depth - 1)[1]
    return ["ROW", [arrays[-1]], arrays]


def known_at_each_depth(depth: int) -> list[Any]:
    """Arrays of the ones before, in few enough types, as there are other bytes besides."""
    return [*one_in_another(depth), [["INTEGER"] for _ in range(300)]]


def rows_of_one_list(count: int) -> list[Any]:
    members = [["INTEGER"]] * count
    return ["ROW", [["ROW", members] for _ in range(count)]]


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (array_of_itself(), "a logical type is within itself"),
        (row_of_itself(), "a logical type is within itself"),
        (twice(25), "bytes has more types than that in it"),
        (twice(90), "Java objects nest more than 100 deep"),
        (one_in_another(200), "bytes has more types than that in it"),
        (deep(101), "logical types nest more than 100 deep"),
        (deep(1000), "logical types nest more than 100 deep"),
        (known_at_each_depth(100), "logical types nest more than 100 deep"),
        (rows_of_one_list(150), "bytes has more types than that in it"),
    ],
)
def test_types_within_themselves(root: list[Any], message: str) -> None:
    data = TypeGraph(root).data
    with pytest.raises(SavepointError, match=rf"a file, offset \d+: .*({message})"):
        read_type(data)
    cost(lambda: read_type(data), len(data))


@pytest.mark.parametrize(
    ("root", "text"),
    [
        (["ROW", []], "ROW<>"),
        (twice(2), "ROW<ROW<INT, INT>, ROW<INT, INT>>"),
        (one_in_another(2), "ROW<INT, ARRAY<INT>, ARRAY<ARRAY<INT>>>"),
    ],
)
def test_types_that_share_parts(root: list[Any], text: str) -> None:
    """As a job may have them: the same object of a type for two fields."""
    assert str(read_type(TypeGraph(root).data)) == text


def test_types_are_counted_by_the_bytes_of_their_own() -> None:
    """What is before them in a file makes no room for more."""
    data = TypeGraph(twice(12)).data
    cursor = Cursor(bytes(1 << 20) + data, "a file")
    cursor.skip(1 << 20)
    with pytest.raises(
        SavepointError, match=f"a logical type of {len(data)} bytes has more types"
    ):
        read_logical_type(cursor)


def test_a_type_as_deep_as_its_text() -> None:
    found = str(read_type(TypeGraph(deep(100)).data))
    assert found == "ROW<" + "ARRAY<" * 99 + "INT" + ">" * 100
    assert str(parse_logical_type(found)) == found


def row_type(members: bytes) -> bytes:
    kind = java.enum("R", "ROW")
    return java.stream(java.instance("T", [("L", "fields", members), ("L", "typeRoot", kind)]))


@pytest.mark.parametrize(
    "members",
    [
        java.instance("L", [("L", "list", java.reference(6))]),  # itself
        java.instance("L", [("L", "list", java.text("no list"))]),
        java.instance("L", [("I", "list", sb.i32(5))]),
        java.NULL,
    ],
)
def test_fields_in_no_list(members: bytes) -> None:
    with pytest.raises(SavepointError, match="the fields of a row are in no list"):
        read_type(row_type(members))


def test_fields_in_lists_around_their_list() -> None:
    """Ten are read, the last of which has the fields."""

    def wrapped(count: int) -> bytes:
        members = java.instance("A", [], flags=3, after=b"\x77\1\0" + java.END)
        for _ in range(count - 1):
            members = java.instance("L", [("L", "list", members)])
        return row_type(members)

    assert str(read_type(wrapped(10))) == "ROW<>"
    with pytest.raises(SavepointError, match="the fields of a row are in no list"):
        read_type(wrapped(11))


def test_a_field_that_is_no_object() -> None:
    members = java.instance("A", [], flags=3, after=b"\x77\1\0" + java.text("no field") + java.END)
    with pytest.raises(SavepointError, match="logical type what is none is not known"):
        read_type(row_type(members))


def test_what_is_shown_of_a_number() -> None:
    """An object in its place may be exponentially large, or in itself."""
    itself = java.instance("X", [("L", "x", java.reference(6))])
    kind = java.enum("R", "CHAR")
    data = java.stream(java.instance("T", [("L", "length", itself), ("L", "typeRoot", kind)]))
    with pytest.raises(SavepointError, match=r"the length of a CHAR cannot be JavaObject$"):
        read_type(data)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((0, 0), "the precision of a DECIMAL cannot be 0"),
        ((39, 0), "the precision of a DECIMAL cannot be 39"),
        ((2**31 - 1, 2**31 - 1), "the precision of a DECIMAL cannot be 2147483647"),
        ((5, 6), "the scale of a DECIMAL cannot be 6"),
        ((5, -1), "the scale of a DECIMAL cannot be -1"),
    ],
)
def test_decimal_types(numbers: tuple[int, int], message: str) -> None:
    """1 <= precision <= 38, 0 <= scale <= precision: Flink's DecimalType checks it."""
    data = java.logical_type("DECIMAL", *zip(("precision", "scale"), numbers))
    with pytest.raises(SavepointError, match=message):
        read_type(java.stream(data))


@pytest.mark.parametrize("root", ["TIME_WITHOUT_TIME_ZONE", "TIMESTAMP_WITHOUT_TIME_ZONE"])
def test_types_of_time(root: str) -> None:
    """0 <= precision <= 9: Flink's TimeType and TimestampType check it."""
    with pytest.raises(SavepointError, match=r"the precision of a TIME.* cannot be 10"):
        read_type(java.stream(java.logical_type(root, ("precision", 10))))


# Values


# Flink: LogicalTypeRoot, and the numbers that the classes of its types have.
ROOTS: list[tuple[str, str, dict[str, Any]]] = [
    *((name, name, {"length": 5}) for name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY")),
    ("DECIMAL", "DECIMAL", {"precision": 7, "scale": 3}),
    *((name, name, {}) for name in ("BOOLEAN", "TINYINT", "SMALLINT", "BIGINT", "FLOAT")),
    *((name, name, {}) for name in ("DOUBLE", "DATE", "RAW", "VARIANT", "BITMAP")),
    *((name, name, {}) for name in ("INTERVAL_YEAR_MONTH", "INTERVAL_DAY_TIME")),
    ("INTEGER", "INT", {}),
    ("TIME_WITHOUT_TIME_ZONE", "TIME", {"precision": 4}),
    ("TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP", {"precision": 4}),
    ("TIMESTAMP_WITH_LOCAL_TIME_ZONE", "TIMESTAMP_LTZ", {"precision": 4}),
]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("root", "name", "numbers"), ROOTS)
def test_types_of_each_root(root: str, name: str, numbers: dict[str, Any], nullable: bool) -> None:
    data = java.stream(java.logical_type(root, *numbers.items(), nullable=nullable))
    assert read_type(data) == LogicalType(name, **numbers, nullable=nullable)


@pytest.mark.parametrize(
    ("root", "names", "text"),
    [
        ("ARRAY", ["elementType"], "ARRAY<INT>"),
        ("MULTISET", ["elementType"], "MULTISET<INT>"),
        ("MAP", ["keyType", "valueType"], "MAP<INT, INT>"),
        ("STRUCTURED_TYPE", ["attributes"], "ROW<INT>"),
    ],
)
def test_types_with_types_in_them(root: str, names: list[str], text: str) -> None:
    """A structured type has its attributes in the place of a row's fields."""
    number = JavaObject("T", {"typeRoot": JavaEnum("R", "INTEGER")})
    member = JavaObject("A", {"name": "a", "type": number})
    inner = [member] if root == "STRUCTURED_TYPE" else number
    outer = JavaObject("T", {"typeRoot": JavaEnum("R", root), **dict.fromkeys(names, inner)})
    found, _ = _TypeReader(Cursor(b"", "a file"), 100).read(outer, 0)
    assert str(found) == text


def structured(*above: JavaObject) -> JavaObject:
    """A structured type with an attribute, and its supertype."""
    number = JavaObject("T", {"typeRoot": JavaEnum("R", "INTEGER" if above else "DATE")})
    member = JavaObject("A", {"name": "a", "type": number})
    fields = {"typeRoot": JavaEnum("R", "STRUCTURED_TYPE"), "attributes": [member]}
    return JavaObject("T", {**fields, "superType": next(iter(above), None)})


def test_attributes_of_supertypes() -> None:
    """They are before those of the type itself, as a row has them."""
    made = structured(structured(structured()))
    found, _ = _TypeReader(Cursor(b"", "a file"), 100).read(made, 0)
    assert str(found) == "ROW<DATE, INT, INT>"


def test_a_supertype_of_itself() -> None:
    made = structured()
    made.fields["superType"] = made
    with pytest.raises(SavepointError, match="a structured type has over 100 supertypes"):
        _TypeReader(Cursor(b"", "a file"), 1_000).read(made, 0)


def test_types_without_bytes() -> None:
    """Any number of them would fit in a list; Flink's Tuple0 has its own serializer, of a byte."""
    no_kind = sb.composite(f"{sb.JAVA}RowSerializer$RowSerializerSnapshot", 4, [], b"\0")
    for snapshot, message in ((sb.tuple_of(), "a tuple of no fields"), (no_kind, "a row of no")):
        with pytest.raises(SavepointError, match=rf"a file, offset \d+: {message}"):
            read_versioned_snapshot(Cursor(sb.list_of(sb.list_of(snapshot)), "a file"))
    with_kind = sb.composite(f"{sb.JAVA}RowSerializer$RowSerializerSnapshot", 4, [], b"\1")
    read = read_versioned_snapshot(Cursor(with_kind, "a file")).read
    assert read is not None
    assert read(b"\0", 0) == ((), 1)


NULL_VALUE = sb.simple("NullValue")
VALUE_OF_NULL = sb.snapshot(
    f"{sb.JAVA}ValueSerializer$ValueSerializerSnapshot",
    2,
    sb.utf("org.apache.flink.types.NullValue"),
)


@pytest.mark.parametrize("empty", [NULL_VALUE, VALUE_OF_NULL])
@pytest.mark.parametrize("around", [sb.tuple_of, sb.list_of])
def test_many_values_without_bytes(empty: bytes, around: Callable[..., bytes]) -> None:
    """A list of a byte each may not be a list of thousands of values each.

    Flink 2.3.0: NullValueSerializer writes nothing, and TupleSerializer what its fields write.
    """
    byte = sb.simple("Byte")
    for count in (100, 101):
        halves = (sb.tuple_of(*[empty] * part, byte) for part in (50, count - 50))
        snapshot = around(sb.tuple_of(*halves))
        if count == 100:
            assert read_versioned_snapshot(Cursor(snapshot, "a file")).read is not None
            continue
        with pytest.raises(
            SavepointError, match=r"a file, offset \d+: more than 100 values without bytes"
        ):
            read_versioned_snapshot(Cursor(snapshot, "a file"))


def overlapping(depth: int, count: int) -> bytes:
    """An array of so many times the same array, and so on, of TINYINTs at last."""
    nulls = bytes((count + 31) // 32 * 4)
    data = struct.pack("<i", count) + nulls + b"\1" * count
    for _ in range(depth):
        start = 4 + len(nulls) + 8 * count
        slots = struct.pack("<II", len(data), start) * count
        data = struct.pack("<i", count) + nulls + slots + data
    return data


def in_a_row(*parts: bytes, times: int = 1) -> bytes:
    """A BinaryRowData of fields with bytes of their own, each of them so many times."""
    start = (len(parts) * times + 63 + 8) // 64 * 8 + 8 * len(parts) * times
    slots, rest = b"", b""
    for part in parts:
        slots += struct.pack("<II", len(part), start + len(rest)) * times
        rest += part
    return bytes(start - len(slots)) + slots + rest


def test_overlapping_arrays() -> None:
    read = row_reader([parse_logical_type("ARRAY<ARRAY<ARRAY<TINYINT>>>")])
    assert read(in_a_row(overlapping(2, 1))) == ([[[1]]],)
    for count in (2, 10, 100):
        row = in_a_row(overlapping(2, count))
        with pytest.raises(ValueError, match=r"values in a row of \d+ bytes overlap"):
            read(row)

    def refused() -> None:
        with pytest.raises(ValueError, match="overlap"):
            read(row)

    assert count_steps(refused) <= STEPS * len(row)


TEXT = parse_logical_type("STRING")


@pytest.mark.parametrize(
    ("read", "head"),
    [(row_reader([TEXT, TEXT]), bytes(8)), (array_reader(TEXT), struct.pack("<ii", 2, 0))],
    ids=["row", "array"],
)
def test_values_have_as_many_bytes_as_what_they_are_in(read: Any, head: bytes) -> None:
    """At most: both are the bytes from the start on, and would have one more in the second."""
    assert len(read(head + struct.pack("<IIII", 12, 0, 12, 0))) == 2
    with pytest.raises(ValueError, match="values in a row of 24 bytes overlap"):
        read(head + struct.pack("<IIII", 12, 0, 13, 0))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("STRING", "\0" * 1000),
        ("BYTES", bytes(1000)),
        ("ARRAY<INT>", []),
        ("ROW<a INT>", (0,)),
    ],
)
def test_overlapping_fields(text: str, value: object) -> None:
    """Fields one after the other are read, the same for all of them is not."""
    check_overlapping(parse_logical_type(text), bytes(1000), value)


BIGINT = LogicalType("BIGINT")


@pytest.mark.parametrize(
    ("field", "data", "value"),
    [
        (
            LogicalType("MAP", fields=(BIGINT, BIGINT)),
            struct.pack("<iii996x", 8, 0, 0)[:1000],
            {},
        ),
        (
            LogicalType("MULTISET", fields=(BIGINT,)),
            struct.pack("<iiiqii", 16, 1, 0, 7, 1, 0) + struct.pack("<i968x", 3),
            {7: 3},
        ),
        (LogicalType("RAW"), bytes(1000), bytes(1000)),
        (LogicalType("VARIANT"), b"\0\0\0\1\1" + bytes(995), Variant(bytes(995), b"\1")),
    ],
)
def test_overlapping_fields_of_state(field: LogicalType, data: bytes, value: object) -> None:
    """Of types that no key has."""
    check_overlapping(field, data, value)


def check_overlapping(field: LogicalType, data: bytes, value: object) -> None:
    assert len(data) == 1000
    read = row_reader([field] * 10)
    assert read(in_a_row(*[data] * 10)) == (value,) * 10
    with pytest.raises(ValueError, match="values in a row of 1088 bytes overlap"):
        read(in_a_row(data, times=10))


def number(unscaled: int) -> bytes:
    return unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        ("DECIMAL(38, 2)", number(10**38), "a DECIMAL.38, 2. of more digits: 1000000"),
        ("DECIMAL(38, 2)", number(-(10**38)), "a DECIMAL.38, 2. of more digits: -1000000"),
        ("DECIMAL(19, 0)", number(10**19), "a DECIMAL.19, 0. of more digits"),
        ("DECIMAL(38, 2)", number(10**60), "a DECIMAL.38, 2. of 26 bytes"),
        ("DECIMAL(38, 2)", bytes(3_000_000), "a DECIMAL.38, 2. of 3000000 bytes"),
        ("DECIMAL(38, 2)", b"", "a DECIMAL.38, 2. of 0 bytes"),
    ],
    ids=range(6),
)
def test_decimals_of_more_digits(text: str, data: bytes, message: str) -> None:
    """Flink's DecimalData.fromUnscaledBytes makes null of them, and BigInteger raises for none."""
    with pytest.raises(ValueError, match=message):
        row_reader([parse_logical_type(text)])(in_a_row(data))


def test_decimals_whatever_the_context() -> None:
    """No digit is lost; a compact one may have more than its precision says, as in Flink."""
    wide = row_reader([parse_logical_type("DECIMAL(38, 38)")])
    compact = row_reader([parse_logical_type("DECIMAL(3, 2)")])
    with decimal.localcontext(decimal.Context(prec=1, Emax=1, Emin=-1)):
        (first,) = wide(in_a_row(number(10**38 - 1)))
        (second,) = compact(bytes(8) + struct.pack("<q", -(2**63)))
    assert first.as_tuple() == (0, (9,) * 38, -38)
    assert str(second) == "-92233720368547758.08"


# Operator state


def with_elements(folder: Path, *offsets: int, mode: int = 0, raw: bool = False) -> Operator:
    """An operator with one state, whose elements start so many bytes after the header."""
    listed = sb.meta_info("s", 1, {}, {"VALUE_SERIALIZER": INT})
    header = b"" if raw else sb.operator_header([listed], [])
    starts = [len(header) + offset for offset in offsets]
    state = sb.operator_state([("s", mode, starts)], sb.inline(header + sb.i32(5, 6)))
    kind = "raw_operator" if raw else "managed_operator"
    task = sb.subtask(**{kind: state})  # type: ignore[arg-type]
    (operator,) = read_savepoint(sb.write(folder, [sb.operator([task])])).operators
    return operator


def elements(operator: Operator) -> Any:
    (entry,) = operator.operator_state()
    return entry.elements


def test_one_element_many_times(tmp_path: Path) -> None:
    """Flink writes each after the other, and none has no bytes."""
    assert elements(with_elements(tmp_path, 0, 4)) == [5, 6]
    assert elements(with_elements(tmp_path, 4, 0)) == [6, 5]
    for offsets in ((0, 0), (4, 0, 4), (0,) * 1000):
        operator = with_elements(tmp_path, *offsets)
        with pytest.raises(SavepointError, match=r"offset \d+: two elements of .* start here"):
            elements(operator)


def test_partitions_of_raw_state_without_bytes(tmp_path: Path) -> None:
    """OperatorStateCheckpointOutputStream.startNewPartition: one may be started and left empty."""
    assert elements(with_elements(tmp_path, 0, 0, 4, 8, 8, raw=True)) == [
        *(b"", sb.i32(5), sb.i32(6)),
        *(b"", b""),
    ]
    operator = with_elements(tmp_path, *[0] * 5000, raw=True)
    assert count_bytes(lambda: elements(operator)) < 5000 * 100


def test_a_broadcast_state_twice(tmp_path: Path) -> None:
    """Flink writes one offset, and reads no other."""
    operator = with_elements(tmp_path, 0, 4, mode=2)
    with pytest.raises(SavepointError, match="broadcast state 's' starts at 2 offsets"):
        elements(operator)


def test_a_list_state_that_metadata_calls_broadcast(tmp_path: Path) -> None:
    """Its elements are no entries; RegisteredOperatorStateBackendMetaInfo keeps the mode too."""
    operator = with_elements(tmp_path, 0, mode=2)
    message = "the mode of operator state 's' is BROADCAST in _metadata alone"
    with pytest.raises(SavepointError, match=message):
        elements(operator)


# Key groups


key_group_sets = st.sets(st.integers(0, 40) | st.integers(32_740, 32_767))


@settings(max_examples=50)
@given(key_group_sets, st.integers(0, 45), st.integers(0, 45))
@example({0, 1, 2, 5}, 2, 3)
def test_ranges_are_the_set_of_their_key_groups(groups: set[int], start: int, size: int) -> None:
    ranges = KeyGroupRanges.of((one, one) for one in groups)
    assert list(ranges) == sorted(groups)
    assert len(ranges) == len(groups)
    assert KeyGroupRanges.of(
        (one.start_key_group, one.end_key_group) for one in ranges.ranges
    ) == (ranges)
    assert {one for one in range(-2, 50) if one in ranges} == groups & set(range(50))
    assert "a" not in ranges
    for before, after in zip(ranges.ranges, ranges.ranges[1:]):
        assert before.end_key_group + 1 < after.start_key_group
    other = KeyGroupRange(start, start + size)
    assert list(ranges.intersection(other)) == sorted(groups & set(other))
    assert not ranges.intersection(KeyGroupRange.EMPTY).ranges


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=6))
def test_ranges_that_overlap(pairs: list[tuple[int, int]]) -> None:
    ranges = KeyGroupRanges.of((start, start + size) for start, size in pairs)
    assert set(ranges) == {start + n for start, size in pairs for n in range(size + 1)}


def rocksdb(first: int, count: int, name: str = "a") -> bytes:
    meta = sb.inline(sb.keyed_header(STRING, []))
    return sb.rocksdb(first, count, meta, [("1.sst", sb.relative(name, 10**6))])


def test_key_groups_take_no_room(tmp_path: Path) -> None:
    """Of RocksDB's files `_metadata` has a range: 32,768 key groups in eight bytes."""
    operators = [
        sb.operator(
            [sb.subtask(managed_keyed=rocksdb(0, 32_768, f"{number}"))],
            max_parallelism=32_768,
            operator_id=number.to_bytes(16, "big"),
        )
        for number in range(50)
    ]
    size = (sb.write(tmp_path, operators) / "_metadata").stat().st_size

    def tasks() -> list[Any]:
        savepoint = read_savepoint(tmp_path)
        str(savepoint)
        return [task for operator in savepoint.operators for task in operator.tasks()]

    assert [len(task.key_groups) for task in tasks()] == [32_768] * 50
    cost(tasks, size)
    (task, *_) = tasks()
    assert len(pickle.dumps(task)) < 2_000
    assert list(task.key_groups) == list(range(32_768))
    parts = list(task.split(10**5))
    assert [len(part.key_groups) for part in parts] == [3_333] * 9 + [2_771]
    assert [len(part.key_groups.ranges) for part in parts] == [1] * 10


def test_operators_without_state_take_no_room(tmp_path: Path) -> None:
    """Nor do those with state in one key group of 32,768."""
    data = sb.keyed_header(INT, [])
    keyed = sb.canonical(32_767, [len(data)], sb.inline(data + b"\xff\xff"))
    operators = [
        sb.operator(tasks, max_parallelism=32_768, operator_id=bytes(15) + bytes([number]))
        for number, tasks in enumerate([[sb.subtask(managed_keyed=keyed)], []] * 25)
    ]
    size = (sb.write(tmp_path, operators) / "_metadata").stat().st_size
    text = str(read_savepoint(tmp_path)).splitlines()
    assert [line.split()[-2:] for line in text[2:52]] == [["1", "1.00"], ["-", "-"]] * 25
    cost(lambda: str(read_savepoint(tmp_path)), size)


def test_key_groups_that_are_asked_for(tmp_path: Path) -> None:
    tasks = [sb.subtask(index, managed_keyed=rocksdb(64 * index, 64)) for index in range(2)]
    for index, task in enumerate(tasks):  # whose files are their own
        tasks[index] = task.replace(b"\0\1a", b"\0\1" + b"ab"[index : index + 1])
    folder = sb.write(tmp_path, [sb.operator(tasks, parallelism=2)])
    (operator,) = read_savepoint(folder).operators

    def asked(*key_groups: int) -> list[tuple[int, list[int]]]:
        return [(task.subtask, list(task.key_groups)) for task in operator.tasks(None, key_groups)]

    assert asked() == []
    assert asked(127, 0, 1, 127) == [(0, [0, 1]), (1, [127])]
    assert asked(*range(0, 128, 2)) == [(0, [*range(0, 64, 2)]), (1, [*range(64, 128, 2)])]


# What is there twice


def keyed(*key_groups: int) -> bytes:
    data = sb.keyed_header(INT, [])
    return sb.native(key_groups[0], [len(data)] * len(key_groups), sb.inline(data))


def of_tasks(*tasks: bytes) -> list[bytes]:
    return [sb.operator(list(tasks), parallelism=4)]


FIRST, SECOND = keyed(*range(64)), keyed(*range(64, 128))
OWN = sb.operator_state([("s", 0, [0])], sb.relative("file", 4))
LATER = sb.operator_state([("s", 0, [0])], sb.segment("file", 4, 4))
TWICE = [
    (of_tasks(sb.subtask(1), sb.subtask(1)), "subtask 1 of operator 0{32} is there twice"),
    (of_tasks(sb.subtask(1), sb.i32(-2)), "subtask 1 of operator 0{32} is there twice"),
    (
        of_tasks(sb.subtask(2, managed_keyed=FIRST), sb.subtask(0, managed_keyed=FIRST)),
        "subtasks 0 and 2 of operator 0{32} both have key group 0",
    ),
    (
        of_tasks(sb.subtask(0, managed_keyed=FIRST), sb.subtask(3, raw_keyed=keyed(63, 64))),
        "subtasks 0 and 3 of operator 0{32} both have key group 63",
    ),
    (
        of_tasks(sb.subtask(0, managed_keyed=rocksdb(0, 100)), sb.subtask(1, raw_keyed=SECOND)),
        "subtasks 0 and 1 of operator 0{32} both have key group 64",
    ),
    (
        of_tasks(
            sb.subtask(0, managed_keyed=rocksdb(0, 100), raw_keyed=keyed(2, 3)),
            sb.subtask(1, managed_keyed=keyed(50, 51)),
        ),
        "subtasks 0 and 1 of operator 0{32} both have key group 50",
    ),
    ([sb.operator([]), sb.operator([], uid="a")], "operator 0{32} is there twice"),
    (
        of_tasks(sb.subtask(managed_operator=sb.operator_state([("s", 0, [])] * 2, b"\x10"))),
        "operator state 's' is there twice",
    ),
]


@pytest.mark.parametrize("number", range(len(TWICE)))
def test_what_is_there_twice(number: int, tmp_path: Path) -> None:
    operators, message = TWICE[number]
    folder = sb.write(tmp_path, operators)
    with pytest.raises(SavepointError, match=rf"_metadata, offset \d+: {message}$"):
        read_savepoint(folder)


@pytest.mark.parametrize(
    "tasks",
    [
        [sb.subtask(0, managed_keyed=FIRST), sb.subtask(1, managed_keyed=SECOND)],
        [sb.subtask(0, managed_keyed=FIRST, raw_keyed=FIRST), sb.subtask(1, raw_keyed=SECOND)],
        [sb.subtask(0, managed_keyed=sb.canonical(0, [], sb.inline(b""))), sb.subtask(1)],
        [sb.subtask(0, managed_operator=OWN), sb.subtask(1, managed_operator=LATER)],
        [  # files that two subtasks share after a change of parallelism
            sb.subtask(index, managed_keyed=sb.rocksdb(index, 1, sb.EMPTY_SEGMENT, shared))
            for index, shared in enumerate([[("1.sst", sb.relative("a", 9))]] * 2)
        ],
    ],
)
def test_what_is_there_once(tasks: list[bytes], tmp_path: Path) -> None:
    (operator,) = read_savepoint(sb.write(tmp_path, of_tasks(*tasks))).operators
    assert [one.subtask_index for one in operator.subtasks] == [0, 1]


def named_row(members: dict[str, JavaObject]) -> JavaObject:
    fields = [JavaObject("F", {"name": name, "type": type_}) for name, type_ in members.items()]
    return JavaObject("T", {"typeRoot": JavaEnum("R", "ROW"), "fields": fields})


# Bytes of a key before many user keys


@pytest.mark.parametrize(
    ("count", "size", "runs"),
    [
        (1_000, 10_000, [*[6] * 166, 4]),
        (1_000, 256, [1_000]),  # times as many as the byte that each has of its own
        (300, 257, [255, 45]),
        (2, 32_768, [2]),
        (2, 32_769, [1, 1]),
        (2, 65_537, [1, 1]),
        (0, 65_537, []),
    ],
)
def test_entries_that_repeat_a_key_are_read_in_runs(
    count: int, size: int, runs: list[int]
) -> None:
    """Each of them repeats 64 KiB at most, but is of one entry at least."""
    feed = HeldFeed(bytes(50_000), "a stream, offset ", 7)
    assert feed.offset == 7
    feed.pos = 50_000
    assert [*feed.runs(count, size, "n")] == runs


def test_bytes_of_runs_count_together() -> None:
    """Of 6 entries of 10,000 bytes 17 times make less than 1 MiB, and 18 times more."""
    runs = HeldFeed(b"", "a stream, offset ", 7).runs(1_000, 10_000, "n")
    assert [*islice(runs, 17)] == [6] * 17
    with pytest.raises(SavepointError, match=r"^a stream, offset 7: of n 0 bytes would become"):
        next(runs)


@pytest.mark.parametrize("is_held", [True, False])
def test_bytes_that_may_be_repeated(is_held: bool) -> None:
    """1 MiB and 256 times those that were read."""
    stream = OpenStream(StreamHandle(17, bytes(17)), None, "a stream")
    feed = HeldFeed(bytes(10), "a stream, offset ", 7) if is_held else Feed(stream, 7, 17, False)
    if not is_held:
        feed.more()
    feed.pos = 2
    feed.repeat(1 << 20, "n")
    feed.repeat(512, "n")
    with pytest.raises(SavepointError, match=r"^a stream, offset 9: of n 2 bytes would become"):
        feed.repeat(1, "n")


def test_names_of_fields_that_are_shared() -> None:
    """A name stands in a stream once, and in the text of a type as often as it is referred to."""
    number = JavaObject("T", {"typeRoot": JavaEnum("R", "INTEGER")})
    long = named_row({"x" * 60_000: number})
    cursor = Cursor(bytes(70_000), "a file")
    few = named_row({f"f{index}": long for index in range(50)})
    found, _ = _TypeReader(cursor, 70_000).read(few, 0)
    assert len(str(found)) > 50 * 60_000
    many = named_row({f"f{index}": long for index in range(100)})
    with pytest.raises(SavepointError, match="a logical type of 70000 bytes has more types than"):
        _TypeReader(cursor, 70_000).read(many, 0)


def test_as_many_types_as_bytes() -> None:
    number = JavaObject("T", {"typeRoot": JavaEnum("R", "INTEGER")})
    three = named_row({"a": number, "b": number})
    cursor = Cursor(bytes(3), "a file")
    assert str(_TypeReader(cursor, 3).read(three, 0)[0]) == "ROW<`a` INT, `b` INT>"
    with pytest.raises(SavepointError, match="a logical type of 2 bytes has more types than that"):
        _TypeReader(cursor, 2).read(three, 0)
    # 64 characters in names count as one type, and no fewer do.
    assert _TypeReader(cursor, 2).read(named_row({"x" * 63: number}), 0)
    assert _TypeReader(cursor, 3).read(named_row({"x" * 64: number}), 0)
    with pytest.raises(SavepointError, match="a logical type of 2 bytes has more types than that"):
        _TypeReader(cursor, 2).read(named_row({"x" * 64: number}), 0)


@pytest.mark.parametrize("name", ["", " ", None, 5, ["a"]])
def test_names_of_fields_that_are_none(name: object) -> None:
    number = JavaObject("T", {"typeRoot": JavaEnum("R", "INTEGER")})
    members = [JavaObject("F", {"name": passed, "type": number}) for passed in ("a", name)]
    row = JavaObject("T", {"typeRoot": JavaEnum("R", "ROW"), "fields": members})
    found, _ = _TypeReader(Cursor(b"", "a file"), 100).read(row, 0)
    assert str(found) == "ROW<INT, INT>"
    twice = JavaObject("T", {"typeRoot": JavaEnum("R", "ROW"), "fields": members[:1] * 2})
    found, _ = _TypeReader(Cursor(b"", "a file"), 100).read(twice, 0)
    assert found.names == ()
