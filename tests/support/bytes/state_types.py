"""The types that state may be of: the snapshots of their serializers, and values with their bytes.

All of it is what the serializers of Flink 2.3.0 and of 1.20.5 write of these values, the snapshots
too; the library is not asked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from keygroups.savepoint import Row
from keygroups.types import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    ROW,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)
from support.bytes import savepoint_bytes as sb

NAN = float("nan")


class TypeBytes(NamedTuple):
    """A type, the snapshot of its serializer, and values with their bytes in hex."""

    key_type: KeyType
    snapshot: bytes
    values: list[tuple[Any, str]]


def row_of(*parts: bytes) -> bytes:
    return sb.composite(f"{sb.JAVA}RowSerializer$RowSerializerSnapshot", 4, parts, b"\1")


_STRING, _INT, _LONG, _BOOLEAN = map(sb.simple, ("String", "Int", "Long", "Boolean"))

TYPES = [
    TypeBytes(BOOLEAN, _BOOLEAN, [(False, "00"), (True, "01")]),
    TypeBytes(BYTE, sb.simple("Byte"), [(-2, "fe"), (44, "2c"), (127, "7f")]),
    TypeBytes(SHORT, sb.simple("Short"), [(-2, "fffe"), (300, "012c")]),
    TypeBytes(INT, _INT, [(-1, "ffffffff"), (44, "0000002c"), (2**31 - 1, "7fffffff")]),
    TypeBytes(
        LONG,
        _LONG,
        [(-(2**63), "8000000000000000"), (0, "0000000000000000"), (2**32, "0000000100000000")],
    ),
    TypeBytes(
        FLOAT,
        sb.simple("Float"),
        [(0.0, "00000000"), (-0.0, "80000000"), (1.5, "3fc00000"), (NAN, "7fc00000")],
    ),
    TypeBytes(
        DOUBLE,
        sb.simple("Double"),
        [(-0.0, "8000000000000000"), (0.1, "3fb999999999999a"), (NAN, "7ff8000000000000")],
    ),
    TypeBytes(CHAR, sb.simple("Char"), [("\0", "0000"), (",", "002c"), ("\ud800", "d800")]),
    TypeBytes(
        STRING,
        _STRING,
        [
            ("", "01"),
            ("\0", "0200"),
            ("a,b", "04612c62"),
            ("\u00e9", "02e901"),
            ("\u6771", "02f1ce01"),
            ("\U0001f600", "03bdb00380bc03"),
            ("\ud800", "0280b003"),
            ("\udc00\ud800", "0380b80380b003"),
            ("x" * 126, "7f" + "78" * 126),
            ("x" * 127, "8001" + "78" * 127),
        ],
    ),
    TypeBytes(
        TUPLE(STRING, INT),
        sb.tuple_of(_STRING, _INT),
        [(("a", -1), "0261ffffffff"), (("", 44), "010000002c"), ((None, 0), "0000000000")],
    ),
    TypeBytes(
        TUPLE(TUPLE(INT, BOOLEAN), STRING),
        sb.tuple_of(sb.tuple_of(_INT, _BOOLEAN), _STRING),
        [(((1, True), "a"), "00000001010261"), (((0, False), ""), "000000000001")],
    ),
    TypeBytes(
        ROW(STRING, INT),
        row_of(_STRING, _INT),
        [
            (Row(("a", 5)), "00026100000005"),
            (Row(("a", None)), "100261"),
            (Row((None, None)), "30"),
            (Row((None, 5)), "2000000005"),
        ],
    ),
    TypeBytes(
        ROW(*[LONG] * 7),
        row_of(*[_LONG] * 7),
        [(Row((None,) * 6 + (1,)), "3f000000000000000001"), (Row((None,) * 7), "3f80")],
    ),
    TypeBytes(
        LIST(STRING),
        sb.list_of(_STRING),
        [([], "00000000"), (["a", "", "a"], "000000030261010261")],
    ),
]
"""Of each at least two values, none of which is the same key as another."""
