"""Savepoints of one entry with an extreme in it: a name, a key, a value; and what is there twice.

Their bytes are as Flink would write them, or as it would refuse them: nothing is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

from support.bytes import savepoint_bytes as sb
from support.inside.serializers import write_big_int, write_string

NAMES = {
    "half of a pair": "a\ud800b",
    "other half": "\udfff",
    "NUL": "a\0b",
    "terminal": "\x1b]0;x\x07\x1b[2J",
    "directions": "a\u202eb\u2066",
    "line breaks": "a\nb\r\nc",
    "empty": "",
    "quotes": "a.b`c\"d'e",
    "HTML": "<img src=x onerror=alert(1)>&\"'",
    "formula": "=cmd|' /C calc'!A0",
    "longest": "x" * 60_000,
    "TeX": "$\\href{javascript:x}{y}$ \\(z\\)",
    "format": "%s{0}{x}%(a)s",
    "column": "key_group",
    "column of values": "value",
    "path": "../../etc/passwd",
    "spaces": "\xa0\u2028\u2029\ufeff",
    "tag": "\U000e0001",
}
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


def _big(size: int, first: int = 0x7F) -> bytes:
    """Return a BIG_INT of so many bytes."""
    return sb.i32(size + 4) + bytes([first]) + b"\xff" * (size - 1)


DAY, LAST_DAY = b"\1\1", b"\x0c\x1f"
LAST_TIME = b"\x17\x3b\x3b" + sb.i32(999_999_999)
VALUES: dict[str, tuple[str, bytes]] = {
    "BIG_INT of 5,001 digits": ("BigInt", write_big_int(10**5_000)),
    "BIG_INT of 50 kB": ("BigInt", _big(50_000)),
    "BIG_INT of 50 kB, negative": ("BigInt", _big(50_000, 0x80)),
    "BIG_INT null": ("BigInt", sb.i32(0)),
    "BIG_DEC of the largest scale": ("BigDec", write_big_int(123) + sb.i32(2**31 - 1)),
    "BIG_DEC of the least scale": ("BigDec", write_big_int(123) + sb.i32(-(2**31))),
    "BIG_DEC of 5,001 digits": ("BigDec", write_big_int(10**5_000 + 7) + sb.i32(3)),
    "BIG_DEC of 50 kB": ("BigDec", _big(50_000) + sb.i32(5)),
    "BIG_DEC 0 with a scale": ("BigDec", sb.i32(1) + sb.i32(2**31 - 1)),
    "DATE, last": ("Date", sb.i64(LONG_MAX)),
    "DATE, first": ("Date", sb.i64(LONG_MIN)),
    "SQL_DATE, last": ("SqlDate", sb.i64(LONG_MAX)),
    "SQL_TIME, first": ("SqlTime", sb.i64(LONG_MIN)),
    "SQL_TIMESTAMP, last": ("SqlTimestamp", sb.i64(LONG_MAX) + sb.i32(2**31 - 1)),
    "SQL_TIMESTAMP of -1 ns": ("SqlTimestamp", sb.i64(0) + sb.i32(-1)),
    "INSTANT, last": ("Instant", sb.i64(31_556_889_864_403_199) + sb.i32(999_999_999)),
    "INSTANT, first": ("Instant", sb.i64(-31_557_014_167_219_200) + sb.i32(0)),
    "INSTANT null": ("Instant", sb.i64(LONG_MIN) + sb.i32(-(2**31))),
    "INSTANT past the last": ("Instant", sb.i64(LONG_MAX) + sb.i32(0)),
    "LOCAL_DATE, last": ("LocalDate", sb.i32(999_999_999) + LAST_DAY),
    "LOCAL_DATE, first": ("LocalDate", sb.i32(-999_999_999) + DAY),
    "LOCAL_DATE of no day": ("LocalDate", sb.i32(2021) + b"\x02\x1e"),
    "LOCAL_TIME, last": ("LocalTime", LAST_TIME),
    "LOCAL_TIME of no hour": ("LocalTime", b"\x18\x3b\x3b" + sb.i32(0)),
    "LOCAL_DATE_TIME, last": ("LocalDateTime", sb.i32(999_999_999) + LAST_DAY + LAST_TIME),
    "DOUBLE, another NaN": ("Double", bytes.fromhex("7ff8000000000001")),
    "DOUBLE -Infinity": ("Double", bytes.fromhex("fff0000000000000")),
    "DOUBLE -0.0": ("Double", bytes.fromhex("8000000000000000")),
    "FLOAT, signalling NaN": ("Float", bytes.fromhex("7fa00001")),
    "CHAR, half of a pair": ("Char", b"\xd8\x00"),
    "CHAR NUL": ("Char", b"\0\0"),
    "STRING null": ("String", b"\0"),
    "STRING of more than there is": ("String", b"\x02\xff\xff\x7f"),
    "STRING of 300 kB": ("String", write_string("x" * 300_000)),
    "BOOLEAN 2": ("Boolean", b"\2"),
    "LONG, least": ("Long", sb.i64(LONG_MIN)),
    "BYTE, least": ("Byte", b"\x80"),
    "SHORT, least": ("Short", b"\x80\0"),
    **{f"STRING, {name}": ("String", write_string(text)) for name, text in NAMES.items()},
}
"""The serializers of Flink, and bytes of theirs."""

LONG, STRING = sb.simple("Long"), sb.simple("String")
FIVE, KEY = sb.i64(5), write_string("a")
Entries = list[tuple[bytes, bytes]]


def _operators(
    states: list[bytes],
    entries: Entries,
    key: bytes = STRING,
    name: str = "n",
    uid: str = "u",
    times: int = 1,
) -> bytes:
    """Return `_metadata` of operators with the entries in the first of some states."""
    header = sb.keyed_header(key, states)
    group = sb.canonical_key_group([(0, [(b"\0" + start, value) for start, value in entries])])
    keyed = sb.canonical(0, [len(header)], sb.inline(header + group))
    operator = sb.operator(
        [sb.subtask(managed_keyed=keyed)], max_parallelism=1, name=name, uid=uid
    )
    return sb.metadata([operator] * times)


def _state(
    value: bytes = LONG, data: bytes = FIVE, *, kind: str = "VALUE", name: str = "s"
) -> bytes:
    return _operators([sb.state(name, kind, value)], [(KEY + b"\0", data)])


def _pojo(java_class: str, *names: str) -> bytes:
    data = b"\2" + b"".join(b"\0" + sb.i32(number) for number, _ in enumerate(names))
    return _state(sb.pojo_of(java_class, dict.fromkeys(names, sb.simple("Int"))), data)


NAME_PLACES: dict[str, Callable[[str], bytes]] = {
    "state": lambda name: _state(name=name),
    "operator": lambda name: _operators(
        [sb.state("s", "VALUE", LONG)], [(KEY + b"\0", FIVE)], name=name, uid=name[:20_000]
    ),
    "field of a POJO": lambda name: _pojo("a.B", name, f"{name}z"),
    "class of a POJO": lambda name: _pojo(name, "z"),
}
VALUE_PLACES: dict[str, Callable[[bytes, bytes], bytes]] = {
    "value": _state,
    "key": lambda serializer, data: _operators(
        [sb.state("s", "VALUE", LONG)], [(data + b"\0", FIVE)], serializer
    ),
    "element": lambda serializer, data: _state(sb.list_of(serializer), data, kind="LIST"),
    "user key": lambda serializer, data: _operators(
        [sb.state("s", "MAP", sb.map_of(serializer, sb.simple("Int")))],
        [(KEY + b"\0" + data, b"\0" + sb.i32(1))],
    ),
    "key in a map": lambda serializer, data: _state(
        sb.map_of(serializer, serializer), sb.i32(1) + data + b"\0" + data
    ),
    "field of a tuple": lambda serializer, data: _state(
        sb.tuple_of(serializer, serializer), data * 2
    ),
}


def _nested(depth: int) -> bytes:
    """Return a state of lists within lists, so many, with one element each."""
    value, data = LONG, FIVE
    for _ in range(depth):
        value, data = sb.list_of(value), sb.i32(1) + data
    return _state(value, data)


def _same_hash(count: int) -> bytes:
    """Return a state of a map whose keys have one hash in Java, as Aa and BB have."""
    texts = map("".join, product(("Aa", "BB"), repeat=(count - 1).bit_length()))
    pairs = [write_string(text) + b"\0" + FIVE for text in texts]
    return _state(sb.map_of(STRING, LONG), sb.i32(len(pairs)) + b"".join(pairs))


OTHERS: dict[str, Callable[[], bytes]] = {
    "no operator": lambda: sb.metadata([]),
    "no state": lambda: sb.metadata([sb.operator([], uid="u")]),
    "no entry": lambda: _operators([sb.state("s", "VALUE", LONG)], []),
    "a key twice": lambda: _operators(
        [sb.state("s", "VALUE", LONG)], [(KEY + b"\0", FIVE), (KEY + b"\0", sb.i64(6))]
    ),
    "a user key twice": lambda: _operators(
        [sb.state("s", "MAP", sb.map_of(STRING, LONG))], [(KEY + b"\0" + KEY, b"\0" + FIVE)] * 2
    ),
    "a state twice": lambda: _operators([sb.state("s", "VALUE", LONG)] * 2, [(KEY + b"\0", FIVE)]),
    "states but for case": lambda: _operators(
        [sb.state("s", "VALUE", LONG), sb.state("S", "VALUE", STRING)], [(KEY + b"\0", FIVE)]
    ),
    "an operator twice": lambda: _operators(
        [sb.state("s", "VALUE", LONG)], [(KEY + b"\0", FIVE)], times=2
    ),
    "fields but for case": lambda: _pojo("a.B", "a", "A"),
    "fields but for NUL": lambda: _pojo("a.B", "a", "a\0"),
    "fields with names of Python's": lambda: _pojo("a.B", "__class__", "_fields", "java_class"),
    "as deep as is read": lambda: _nested(40),
    "deeper than is read": lambda: _nested(2_000),
    "a key of a map twice": lambda: _state(
        sb.map_of(STRING, LONG), sb.i32(2) + (KEY + b"\0" + FIVE) * 2
    ),
    "a key of a map with another NaN": lambda: _state(
        sb.map_of(sb.simple("Double"), LONG),
        sb.i32(2) + b"".join(sb.i64(0x7FF8 << 48 | low) + b"\0" + FIVE for low in (0, 1)),
    ),
    "keys of one hash": lambda: _same_hash(1_024),
    "500 states": lambda: _operators(
        [sb.state(f"s{number}", "VALUE", LONG) for number in range(500)], [(KEY + b"\0", FIVE)]
    ),
}


def _made() -> dict[str, Callable[[], bytes]]:
    cases = dict(OTHERS)
    for (place, named), (name, text) in product(NAME_PLACES.items(), NAMES.items()):
        cases[f"{place}: {name}"] = partial(named, text)
    for (place, valued), (value, (serializer, data)) in product(
        VALUE_PLACES.items(), VALUES.items()
    ):
        cases[f"{place}: {value}"] = partial(valued, sb.simple(serializer), data)
    return cases


EXTREMES = _made()
"""What makes `_metadata` of each, by what is extreme in it."""
