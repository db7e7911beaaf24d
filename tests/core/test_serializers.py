"""Serializers by themselves: their snapshots both ways, and values with all checks."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.snapshot_bytes import ENUM, RUNTIME, SNAPSHOTS, row
from support.inside.serializers import (
    INT,
    NULL,
    REGISTRY,
    TRUNCATED,
    AvroSerializer,
    EnumSerializer,
    GenericArraySerializer,
    KryoSerializer,
    ListSerializer,
    PojoSerializer,
    RowSerializer,
    ScalaEnumSerializer,
    Simple,
    TraversableSerializer,
    TupleSerializer,
    UnknownSerializer,
    UnknownSnapshotError,
    ValueSerializer,
)

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import Operator, read_savepoint
from keygroups.savepoint.values import Pojo
from keygroups.state_keys import (
    BYTES,
    GLOBAL_WINDOW,
    TIME_WINDOW,
    VOID_NAMESPACE,
    Row,
    Serializer,
    serializer_of,
)
from keygroups.types import BYTE, LIST, LONG, PYFLINK, SQL_ROW, STRING, TUPLE

INT_SNAPSHOT, STRING_SNAPSHOT = sb.simple("Int"), sb.simple("String")
UNKNOWN = f"{sb.BASE}UuidSerializer$UuidSerializerSnapshot"
# Read, and written in the newest version.
CHANGED = {
    sb.snapshot(f"{sb.BASE}IntSerializer$IntSerializerSnapshot", 2, sb.utf("name")): INT_SNAPSHOT,
    row(3, INT_SNAPSHOT, STRING_SNAPSHOT): row(4, INT_SNAPSHOT, STRING_SNAPSHOT, kind=b"\1"),
}


def test_the_documentation_has_the_names_of_all() -> None:
    """But of those within BOOLEAN to INSTANT, CHAR_ARRAY to DOUBLE_ARRAY and the like."""
    before, _, _ = str(Serializer.__doc__).partition("`parts` are")
    documented = {*re.findall("[A-Z][A-Z_0-9]+", before)}
    names = {serializer.name for serializer in REGISTRY.values()}
    assert documented - names == {"CEP", "SQL", "UNKNOWN"}
    numbers = {"SHORT", "INT", "LONG", "FLOAT"}
    values = {*numbers, "BYTE", "CHAR", "DOUBLE"}
    assert names - documented == {
        *(f"{name}_ARRAY" for name in numbers),
        *(f"{name}_VALUE" for name in values),
        *values,
        *("STRING", "BIG_INT", "BIG_DEC", "LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME"),
    }


# --- snapshots ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(SNAPSHOTS)))
def test_snapshots(number: int) -> None:
    """What was read is written again as it was; those of real jobs: `test_savepoint_writer`."""
    data, name = SNAPSHOTS[number]
    serializer = Serializer.from_snapshot(sb.i32(2) + data)
    assert str(serializer) == name
    written = serializer.snapshot_bytes()
    assert Serializer.from_snapshot(written) == serializer
    assert written == sb.i32(2) + CHANGED.get(data, data)


def test_a_field_of_an_unknown_class_keeps_its_snapshot() -> None:
    """Also one whose snapshot is not there; such have no snapshot of their own."""
    fields = {"n": INT_SNAPSHOT, "u": sb.snapshot(UNKNOWN, 3, b"contents"), "v": None}
    data = sb.i32(2) + sb.pojo_of("a.P", fields)
    pojo = Serializer.from_snapshot(data)
    assert pojo.snapshot_bytes() == data
    with pytest.raises(UnsupportedKeyTypeError, match="snapshot of the serializer of UNKNOWN"):
        pojo.parts[2].snapshot_bytes()


LONG_SNAPSHOT = sb.i32(2) + sb.simple("Long")
BAD_SNAPSHOTS: list[tuple[Any, type[KeyGroupsError], str]] = [
    (LONG_SNAPSHOT + b"\0\0", SavepointError, "data, offset 90: .* LONG ends 2 bytes earlier"),
    (LONG_SNAPSHOT[:-1], SavepointError, "4 bytes were to follow, and 3 are left"),
    (sb.simple("Long"), SavepointError, "version of a serializer's snapshot"),
    (b"", SavepointError, "4 bytes were to follow, and 0 are left"),
    (sb.i32(2) + sb.snapshot(UNKNOWN, 3), SavepointError, "offset 4: .*Uuid.* is not known"),
    ("text", InvalidTypeError, "data must be bytes, got 'text'"),
    (bytearray(LONG_SNAPSHOT), InvalidTypeError, "data must be bytes"),
]


@pytest.mark.parametrize(("data", "error", "message"), BAD_SNAPSHOTS)
def test_what_is_no_snapshot(data: Any, error: type[KeyGroupsError], message: str) -> None:
    with pytest.raises(error, match=message):
        Serializer.from_snapshot(data)


def ttl_aware(inner: bytes) -> bytes:
    return sb.snapshot(f"{RUNTIME}ttl.TtlAwareSerializerSnapshot", 1, b"\0" + inner)


@pytest.mark.parametrize("around", [sb.list_of, lambda n: sb.pojo_of("a.P", {"n": n}), ttl_aware])
def test_serializers_may_nest_50_deep(around: Callable[[bytes], bytes]) -> None:
    data = INT_SNAPSHOT
    for _ in range(50):
        data = around(data)
    assert Serializer.from_snapshot(sb.i32(2) + data).snapshot_bytes() == sb.i32(2) + data
    with pytest.raises(SavepointError, match="serializers nest more than 50 deep"):
        Serializer.from_snapshot(sb.i32(2) + around(data))


# What comes before a count of one, and the fewest bytes that one may take.
COUNTED = [
    (sb.snapshot(EnumSerializer.snapshot, 3, sb.utf("a.E")), sb.utf("")),
    (sb.snapshot(ScalaEnumSerializer.snapshot, 3, sb.utf("a.E")), sb.utf("") + sb.i32(0)),
    (sb.pojo_of("a.P", {})[:-4], sb.utf("") + b"\0\0"),
    (sb.list_of(b"")[:-4], sb.utf("") + sb.i32(0)),
]


@pytest.mark.parametrize(("before", "one"), COUNTED)
def test_no_more_are_counted_than_there_are_bytes(before: bytes, one: bytes) -> None:
    data = sb.i32(2) + before + sb.i32(1) + one
    with suppress(UnknownSnapshotError):  # its class has no name
        Serializer.from_snapshot(data)
    message = f"a count of 1 cannot be, with {len(one) - 1} bytes left"
    with pytest.raises(SavepointError, match=message):
        Serializer.from_snapshot(data[:-1])


LONG_TEXT = "a" * 65_536
TOO_LONG: list[tuple[Serializer, str]] = [
    (AvroSerializer(LONG_TEXT, "{}"), "class"),
    (AvroSerializer("a.R", LONG_TEXT), "schema"),
    (EnumSerializer(LONG_TEXT, []), "class"),
    (EnumSerializer("a.E", [LONG_TEXT]), "constant"),
    (GenericArraySerializer(LONG_TEXT, INT), "class"),
    (KryoSerializer(LONG_TEXT), "class"),
    (PojoSerializer(LONG_TEXT), "class"),
    (PojoSerializer("a.P", [LONG_TEXT], [INT]), "name"),
    (ScalaEnumSerializer(LONG_TEXT, []), "class"),
    (ScalaEnumSerializer("a.E", [(LONG_TEXT, 0)]), "constant"),
    (TraversableSerializer(LONG_TEXT, INT), "code"),
    (TupleSerializer([INT], LONG_TEXT), "class"),
    (ValueSerializer(LONG_TEXT), "class"),
]


@pytest.mark.parametrize(("serializer", "part"), TOO_LONG)
def test_texts_of_a_snapshot_that_are_too_long(serializer: Serializer, part: str) -> None:
    """JDK: DataOutputStream.writeUTF, whose length is an unsigned short."""
    with pytest.raises(InvalidValueError, match=rf"^{part} must take at most 65535 bytes"):
        serializer.snapshot_bytes()


# --- a class that is not known --------------------------------------------------------------


def operator_of(folder: Path, value: bytes, written: bytes) -> Operator:
    states = [sb.state("v", "VALUE", value), sb.state("n", "VALUE", sb.simple("Int"))]
    header = sb.keyed_header(sb.simple("Int"), states)
    key = b"\3" + sb.i32(7) + b"\0"
    content = sb.canonical_key_group([(0, [(key, written)]), (1, [(key, sb.i32(5))])])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    (operator,) = read_savepoint(
        sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    ).operators
    return operator


@pytest.mark.parametrize("depth", [0, 1])
def test_an_unknown_field_of_a_pojo(tmp_path: Path, depth: int) -> None:
    """Its length is told, so that it costs its own POJO only, whose values are bytes then."""
    field = sb.list_of(sb.snapshot(UNKNOWN, 9)) if depth else sb.snapshot(UNKNOWN, 9, b"more")
    pojo = sb.pojo_of("a.P", {"n": sb.simple("Int"), "u": field})
    encoded = b"\2\0" + sb.i32(1) + b"\0" + bytes(16)
    operator = operator_of(tmp_path, pojo, encoded)
    assert str(operator.states[0].value_serializer) == f"POJO(a.P, n INT, u UNKNOWN({UNKNOWN}))"
    values = {entry.state: entry.value for entry in operator.entries()}
    assert values == {"v": encoded, "n": 5}


# --- values ---------------------------------------------------------------------------------

# As the JDK's DataOutput and Flink's StringValue, ListSerializer, RowSerializer write them.
VALUES: list[tuple[Serializer, Any, bytes]] = [
    (serializer_of(LONG), -2, b"\xff" * 7 + b"\xfe"),
    (serializer_of(STRING), None, b"\0"),
    (serializer_of(STRING), "\xe9", b"\2\xe9\1"),
    (serializer_of(LIST(STRING)), ["a", None], b"\0\0\0\2\2a\0"),
    (serializer_of(TUPLE(BYTE, STRING)), (1, "a"), b"\1\2a"),
    (RowSerializer([BYTES]), Row((None,), "-U"), b"\xa0"),
    # The kind in two bits, then a bit for each field: the seventh is in the next byte.
    (
        RowSerializer([BYTES] * 7),
        Row((b"a", None, b"", b"", b"", b"", None), "-D"),
        b"\xd0\x80\0\0\0\1a" + bytes(16),
    ),
    # Without a kind the eighth field has the last bit of the first byte.
    (RowSerializer([BYTES] * 8, False), Row([None] * 7 + [b""]), b"\xfe" + bytes(4)),
    (RowSerializer([], False), Row(()), b""),
    (serializer_of(PYFLINK(STRING)), None, b"\x20"),
    (VOID_NAMESPACE, None, b"\0"),
    (BYTES, b"", bytes(4)),
]


@pytest.mark.parametrize(("serializer", "value", "encoded"), VALUES)
def test_values(serializer: Serializer, value: Any, encoded: bytes) -> None:
    assert serializer.encode(value) == encoded
    assert serializer.decode(encoded) == value
    assert getattr(serializer.decode(encoded), "row_kind", "") == getattr(value, "row_kind", "")


POJO = PojoSerializer("a.P", ["n"], [INT])
BAD_VALUES: list[tuple[Serializer, Any, type[KeyGroupsError], str]] = [
    (INT, bytes(5), InvalidValueError, "data must end after 4 bytes, got 5"),
    (INT, bytes(3), InvalidValueError, "data must be a INT: "),
    (INT, "a", InvalidTypeError, "data must be bytes, got 'a'"),
    (serializer_of(STRING), b"\xff" * 6, InvalidValueError, "data must be a STRING: "),
    (serializer_of(STRING), b"\2\x80\x80\4", InvalidValueError, "65536 is no UTF-16 unit"),
    # Of four units, the first beyond ASCII; of as many as there can be.
    (serializer_of(STRING), b"\5\xe9\1", InvalidValueError, "a STRING: too few bytes"),
    (serializer_of(STRING), b"\xff\xff\xff\xff\x0f\xe9\1", InvalidValueError, "too few bytes"),
    (POJO, b"\4\0\3a.Q\2", UnsupportedKeyTypeError, "here: 'a.Q', a subclass of a.P, is in no"),
    (POJO, b"\4\0\1\xff", UnsupportedKeyTypeError, "here: '\ufffd', a subclass of a.P, is in no"),
    (POJO, b"\4\0\3a.", InvalidValueError, "too few bytes"),
    (POJO, b"\x08\0", InvalidValueError, "subclass 0 of the 0 of a.P"),
    (POJO, b"\3", InvalidValueError, "flags 3 of a POJO"),
    (
        PojoSerializer("a.P", ["u"], [UnknownSerializer("a.S")]),
        b"\2\0",
        UnsupportedKeyTypeError,
        r"cannot be read here: field 'u' of a.P has the serializer UNKNOWN\(a.S\)",
    ),
]


@pytest.mark.parametrize(("serializer", "data", "error", "message"), BAD_VALUES)
def test_what_is_no_value(
    serializer: Serializer, data: Any, error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=message):
        serializer.decode(data)


def test_no_byte_of_a_fixed_size_may_be_missing() -> None:
    """Also of one that is not looked at."""
    sizes = set()
    for cls in REGISTRY.values():
        if issubclass(cls, Simple) and (size := cls().size):
            read = cls().read
            assert read is not None
            with pytest.raises(TRUNCATED):
                read(b"\1" * (size - 1), 0)
            sizes.add(size)
    assert sizes == {1, 2, 4, 6, 7, 8, 12, 13, 16}


class OnlyRead(Simple):
    name = "ONLY_READ"

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[int, int]:
        return data[pos], pos + 1


class OnlyReadKey(OnlyRead):
    key_type = LONG


NO_VALUES: list[tuple[Serializer, Any, type[KeyGroupsError], str]] = [
    (serializer_of(LONG), 2**63, InvalidValueError, "^value: .*9223372036854775808"),
    (serializer_of(LIST(LONG)), (1,), InvalidTypeError, "^value: .*a list"),
    (serializer_of(SQL_ROW("INT")), (1, 2), KeyGroupsError, "^value: .*fields"),
    (POJO, {"n": 1}, InvalidTypeError, r"^value: .*POJO\(a.P\) must be a Pojo, got \{'n': 1\}"),
    (POJO, Pojo("a.P", {"m": 1}), InvalidValueError, "must have the fields n, got Pojo"),
    (POJO, Pojo("a.P", {"n": 1, "m": 1}), InvalidValueError, "must have the fields n, got Pojo"),
    (
        PojoSerializer("a.P", ["n", "m"], [INT, INT]),
        Pojo("a.P", {"n": 1, "k": 1}),
        InvalidValueError,
        "must have the fields n, m, got Pojo",
    ),
    (POJO, Pojo("a.P", {"n": 2**31}), InvalidValueError, "^value: field 'n': .*2147483648"),
    (POJO, Pojo("a.Q", {"n": 1}), InvalidValueError, "or of a subclass .* got a Pojo of 'a.Q'"),
    (NULL, 0, InvalidTypeError, "^value: NULL must be None, got 0"),
    *(
        (
            ListSerializer(element),
            [1],
            UnsupportedKeyTypeError,
            r"^value: a value of ONLY_READ cannot be written here",
        )
        for element in (OnlyRead(), OnlyReadKey())
    ),
    *(
        (serializer, None, InvalidValueError, "^value: .* must not be None")
        for serializer in (INT, BYTES, TIME_WINDOW, GLOBAL_WINDOW, serializer_of(LIST(LONG)))
    ),
]


@pytest.mark.parametrize(("serializer", "value", "error", "message"), NO_VALUES)
def test_what_is_not_encoded(
    serializer: Serializer, value: Any, error: type[KeyGroupsError], message: str
) -> None:
    with pytest.raises(error, match=message):
        serializer.encode(value)


def test_an_enum() -> None:
    colors = Serializer.from_snapshot(sb.i32(2) + ENUM)
    assert colors == EnumSerializer("a.E", ["RED", "GREEN"])
    assert colors != EnumSerializer("a.E", ["GREEN", "RED"])
    assert colors.decode(sb.i32(1)) == "GREEN"


# --- classes --------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[dict[str, type[Serializer]]]:
    """The registry, which is afterwards as it was: other tests look at all of it."""
    before = dict(REGISTRY)
    yield REGISTRY
    REGISTRY.clear()
    REGISTRY.update(before)


def test_no_two_classes_of_one_snapshot() -> None:
    with pytest.raises(InvalidValueError, match=r"Other must be .* which is of IntSerializer"):
        type("Other", (Simple,), {"snapshot": INT.snapshot, "__module__": Simple.__module__})
    assert REGISTRY[INT.snapshot] is type(INT)


def test_a_class_can_be_defined_again(registry: dict[str, type[Serializer]]) -> None:
    """As a notebook does whose cell is run twice."""
    body = {"name": "X", "snapshot": "a.B", "__module__": Simple.__module__}
    first, second = (type("Mine", (Simple,), body) for _ in range(2))
    assert registry["a.B"] is second is not first


def test_the_base_class_is_no_serializer() -> None:
    with pytest.raises(InvalidTypeError, match="of a class derived from it"):
        Serializer()


def test_a_snapshot_that_is_only_written(registry: dict[str, type[Serializer]]) -> None:
    registry["a.Silent"] = type("Silent", (Serializer,), {"snapshot": "a.Silent"})
    with pytest.raises(SavepointError, match=r"offset \d+: snapshots of a\.Silent are only writ"):
        Serializer.from_snapshot(sb.i32(2) + sb.snapshot("a.Silent", 3))


@pytest.mark.long
@pytest.mark.parametrize("module", ["state_keys", "savepoint", "_serializers.base"])
def test_the_registry_is_full_whatever_is_imported_first(module: str) -> None:
    code = (
        f"import keygroups.{module}; from keygroups._serializers.base import REGISTRY; "
        "print(*REGISTRY)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(run.stdout.split()) == sorted(REGISTRY)
