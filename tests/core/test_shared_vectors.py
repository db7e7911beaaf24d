"""The large vector set beside the checkout, where there is one: `../shared/vectors`.

Made by real Flink 2.3.0, and byte for byte the same by 1.20.5; its README has the encoding.
Every line of every file is checked for something: keys that a key type holds through
`hash_code`, the rest at least from their hash to their key groups. `pytest -rP` shows the
counts.
"""

from __future__ import annotations

import datetime as dt
import json
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import keygroups
from keygroups import KeyGroupRange, KeyGroupsError
from keygroups._java_time import instant_code, local_date_code, local_time_code
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    LONG,
    MAP,
    NULL,
    OPTIONAL,
    ROW,
    SET,
    SHORT,
    SQL_DATE,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)

VECTORS = Path(__file__).parents[3] / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason="no ../shared/vectors here")

Typed = tuple[KeyType, Any]


class NoKeyTypeError(Exception):
    """A Java class without a key type: Scala's, arrays, BinaryStringData, ..."""


class BeyondPythonError(Exception):
    """A value that Python's own class cannot hold: nanoseconds, years past 9999."""


def lines(name: str) -> Iterator[dict[str, Any]]:
    with (VECTORS / f"{name}.jsonl").open(encoding="ascii") as file:
        for line in file:
            yield json.loads(line)


# --- decoding -------------------------------------------------------------------------

INTEGERS = {
    "Integer": INT,
    "Short": SHORT,
    "Byte": BYTE,
    "Long": LONG,
    "BigInteger": BIG_INT,
    # The mutable types of org.apache.flink.types hash as what they wrap, but for three
    # (see WRAPPERS).
    "IntValue": INT,
    "ShortValue": SHORT,
    "ByteValue": BYTE,
}
# LongValue, DoubleValue: what their hashCode adds to the wrapped one's (RULES.md).
WRAPPERS = {"LongValue": ("Long", 43), "DoubleValue": ("Double", 31)}


def from_bits(value: dict[str, str], code: str) -> float:
    number: float = struct.unpack(f">{code}", bytes.fromhex(value["bits"][2:]))[0]
    return number


def to_date(value: dict[str, int]) -> dt.date:
    if not 1 <= value["year"] <= 9999:
        raise BeyondPythonError
    return dt.date(value["year"], value["month"], value["day"])


def to_time(value: dict[str, int]) -> dt.time:
    if value["nano"] % 1000:
        raise BeyondPythonError
    return dt.time(value["hour"], value["minute"], value["second"], value["nano"] // 1000)


def to_datetime(millis: int, nanos_of_milli: int = 0) -> dt.datetime:
    """Return a UTC wall-clock time, if java.util's Gregorian calendar has it."""
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=millis)
    except OverflowError:
        raise BeyondPythonError from None
    if moment < dt.datetime(1582, 10, 15) or nanos_of_milli % 1000:
        raise BeyondPythonError
    return moment + dt.timedelta(microseconds=nanos_of_milli // 1000)


def to_instant(value: dict[str, Any]) -> dt.datetime:
    if value["nanos"] % 1000:
        raise BeyondPythonError
    try:
        return dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(
            seconds=int(value["seconds"]), microseconds=value["nanos"] // 1000
        )
    except OverflowError:
        raise BeyondPythonError from None


def to_sql_date(value: dict[str, str]) -> dt.date:
    moment = to_datetime(int(value["millis"]))
    if moment.time() != dt.time():
        raise BeyondPythonError  # a java.sql.Date that is not at midnight
    return moment.date()


def to_sql_time(value: dict[str, str]) -> dt.time:
    moment = to_datetime(int(value["millis"]))
    if moment.date() != dt.date(1970, 1, 1):
        raise BeyondPythonError  # a java.sql.Time of another day
    return moment.time()


SCALARS: dict[str, tuple[KeyType, Callable[[Any], object]]] = {
    "null": (NULL, lambda _: None),
    "Boolean": (BOOLEAN, bool),
    "Character": (CHAR, chr),
    "CharValue": (CHAR, chr),
    "Double": (DOUBLE, lambda v: from_bits(v, "d")),
    "Float": (FLOAT, lambda v: from_bits(v, "f")),
    "FloatValue": (FLOAT, lambda v: from_bits(v, "f")),
    "String": (STRING, str),
    "StringValue": (STRING, str),
    "BigDecimal": (BIG_DEC, lambda v: Decimal(f"{v['unscaled']}E{-v['scale']}")),
    "LocalDate": (LOCAL_DATE, to_date),
    "LocalTime": (LOCAL_TIME, to_time),
    "LocalDateTime": (
        LOCAL_DATE_TIME,
        lambda v: dt.datetime.combine(to_date(v["date"]), to_time(v["time"])),
    ),
    "Instant": (INSTANT, to_instant),
    "UUID": (UUID, uuid.UUID),
    "java.sql.Date": (SQL_DATE("UTC"), to_sql_date),
    "java.sql.Time": (SQL_TIME("UTC"), to_sql_time),
    "java.sql.Timestamp": (
        SQL_TIMESTAMP("UTC"),
        lambda v: to_datetime(int(v["millis"]), v["nanos"] % 1_000_000),
    ),
}


def decode(java_type: str, value: Any) -> Typed:
    if java_type in INTEGERS:
        return INTEGERS[java_type], int(value)
    if java_type in SCALARS:
        key_type, convert = SCALARS[java_type]
        return key_type, convert(value)
    if java_type.startswith("Tuple"):
        fields = decode_all(value)
        return TUPLE(*(t for t, _ in fields)), tuple(v for _, v in fields)
    if java_type == "Row":
        return decode_row(value)
    if java_type in ("EitherLeft", "EitherRight"):
        return decode_part(value["t"], value["v"])  # Either hashes as the value in it
    if java_type in ("List", "Set"):
        element, values = decode_common(value)
        return (
            (LIST(element), values) if java_type == "List" else (SET(element), frozenset(values))
        )
    if java_type == "Optional":
        key_type, key = (NULL, None) if value is None else decode_part(value["t"], value["v"])
        return OPTIONAL(key_type), key
    if java_type == "Map":
        key_type, keys = decode_common([k for k, _ in value])
        value_type, values = decode_common([v for _, v in value])
        return MAP(key_type, value_type), dict(zip(keys, values))
    raise NoKeyTypeError(java_type)


def decode_all(values: list[dict[str, Any]]) -> list[Typed]:
    return [decode_part(v["t"], v["v"]) for v in values]


def decode_part(java_type: str, value: Any) -> Typed:
    """Decode a part of a compound; of what no key type holds, the int of the same hash.

    Compounds see nothing of a part but its hash.
    """
    try:
        return decode(java_type, value)
    except (NoKeyTypeError, BeyondPythonError):
        code = by_formula(java_type, value)
        if code is None:
            raise
        return INT, code


def decode_row(value: dict[str, Any]) -> Typed:
    named = value.get("named")
    names = None if named is None else [name for name, _ in named]
    fields = decode_all(value["fields"] if named is None else [field for _, field in named])
    key_type = ROW(*(t for t, _ in fields), kind=value["kind"], names=names)
    return key_type, tuple(v for _, v in fields)


def decode_common(values: list[dict[str, Any]]) -> tuple[KeyType, list[Any]]:
    decoded = decode_all(values)
    types = {t for t, _ in decoded} - {NULL}
    if any(isinstance(t, (LIST, MAP)) for t in types) and len(types) > 1:
        raise NoKeyTypeError("a collection of several types")  # a Row looks into these
    empties = any(isinstance(t, OPTIONAL) for t in types)  # there None is Optional.empty()
    if len(types) > 1 or (empties and any(t is NULL for t, _ in decoded)):
        codes = [None if t is NULL else keygroups.hash_code(v, t) for t, v in decoded]
        return INT, list(codes)
    return (types.pop() if types else NULL), [v for _, v in decoded]


def by_formula(java_type: str, value: Any) -> int | None:
    """Return the hash of a value beyond Python's classes, from the parts that Java hashes."""

    def date(v: dict[str, int]) -> int:
        return local_date_code(v["year"], v["month"], v["day"])

    def time(v: dict[str, int]) -> int:
        seconds = (v["hour"] * 60 + v["minute"]) * 60 + v["second"]
        return local_time_code(seconds * 10**9 + v["nano"])

    if java_type in ("Instant", "Duration"):  # one formula in the JDK
        return instant_code(int(value["seconds"]), value["nanos"])
    if java_type == "LocalDate":
        return date(value)
    if java_type == "LocalTime":
        return time(value)
    if java_type == "LocalDateTime":
        return date(value["date"]) ^ time(value["time"])
    if java_type == "OffsetDateTime":  # LocalDateTime's xor the offset in seconds
        local = value["local"]
        return date(local["date"]) ^ time(local["time"]) ^ int(value["offset_seconds"])
    if java_type.startswith("java.sql."):
        return keygroups.hash_code(int(value["millis"]), LONG)
    return None


# --- the tests ------------------------------------------------------------------------


def test_keys() -> None:
    counts: Counter[str] = Counter()
    for line in lines("keys"):
        java_type, value, code = line["type"], line["value"], line["hash"]
        counts["lines"] += 1
        for max_parallelism, key_group in line["kg"].items():
            assert (
                keygroups.compute_key_group_for_key_hash(code, int(max_parallelism)) == key_group
            ), line
        wrapped, added = WRAPPERS.get(java_type, (java_type, 0))
        try:
            key_type, key = decode(wrapped, value)
        except (NoKeyTypeError, BeyondPythonError) as error:
            formula = by_formula(java_type, value)
            counts[f"{type(error).__name__}, by formula: {formula is not None}"] += 1
            assert formula in (None, code), line
            continue
        counts["hash_code"] += 1
        assert (keygroups.hash_code(key, key_type) + added - code) % 2**32 == 0, line
        if not added:
            for max_parallelism, key_group in line["kg"].items():
                mp = int(max_parallelism)
                assert keygroups.assign_to_key_group(key, mp, key_type) == key_group, line
    print("keys:", dict(counts))
    assert counts["lines"] > 7000
    assert counts["hash_code"] > 5500


def test_ranges() -> None:
    counts: Counter[str] = Counter()
    for line in lines("ranges"):
        mp, p = line["mp"], line["p"]
        try:
            if "kg" in line:
                op = keygroups.compute_operator_index_for_key_group(mp, p, line["kg"])
                same = op == line["op"]
            else:
                index = line["i"]
                found = keygroups.compute_key_group_range_for_operator_index(mp, p, index)
                same = (found.start_key_group, found.end_key_group) == (line["start"], line["end"])
        except KeyGroupsError:  # Flink checks none of these
            assert p > mp or not (0 <= line["kg"] < mp if "kg" in line else 0 <= line["i"] < p)
            counts["out of bounds, only we refuse"] += 1
        else:
            assert same, line
            counts["same answer"] += 1
    print("ranges:", dict(counts))
    assert counts["same answer"] > 9000


def test_default_max_parallelism() -> None:
    count = 0
    for line in lines("default_max_parallelism"):
        count += 1
        assert keygroups.compute_default_max_parallelism(line["p"]) == line["default_mp"], line
    assert count > 16000


def flink_range(bounds: list[int]) -> KeyGroupRange:
    """KeyGroupRange.of, which answers an end below the start with the empty range."""
    start, end = bounds
    return KeyGroupRange.EMPTY if start >= 0 and end < start else KeyGroupRange(start, end)


def as_json(found: KeyGroupRange) -> dict[str, int]:
    return {"start": found.start_key_group, "end": found.end_key_group}


def tagged(value: dict[str, Any]) -> Any:
    return None if value["t"] == "null" else decode(value["t"], value["v"])[1]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "computeDefaultMaxParallelism": keygroups.compute_default_max_parallelism,
    "checkParallelismPreconditions": keygroups.compute_default_max_parallelism,
    "computeKeyGroupRangeForOperatorIndex": lambda *args: as_json(
        keygroups.compute_key_group_range_for_operator_index(*args)
    ),
    "computeOperatorIndexForKeyGroup": keygroups.compute_operator_index_for_key_group,
    "computeKeyGroupForKeyHash": keygroups.compute_key_group_for_key_hash,
    "assignToKeyGroup": lambda key, mp: keygroups.assign_to_key_group(tagged(key), mp),
    "assignKeyToParallelOperator": lambda key, mp, p: keygroups.assign_key_to_parallel_operator(
        tagged(key), mp, p
    ),
    "<init>": lambda start, end: as_json(KeyGroupRange(start, end)),
    "of": lambda start, end: as_json(flink_range([start, end])),
}
METHODS: dict[str, Callable[..., Any]] = {
    "contains": lambda r, kg: kg in r,
    "getNumberOfKeyGroups": len,
    "getStartKeyGroup": lambda r: r.start_key_group,
    "getEndKeyGroup": lambda r: r.end_key_group,
    "prettyPrintInterval": str,
    "getIntersection": lambda r, other: as_json(r.intersection(other and flink_range(other))),
    "equals": lambda r, other: r == (other and flink_range(other)),
    "getKeyGroupId": lambda r, index: r[index],
}
# Java's own hashCode, toString and iterator protocol, which Python spells its own way; and
# classes of other modules.
ELSEWHERE = {"hashCode", "toString", "iterator.exhausted.next", "iterator.remove"}


def test_errors() -> None:
    """What Flink refuses we refuse; where we answer, our answer is Flink's."""
    counts: Counter[str] = Counter()
    for line in lines("errors"):
        method, args = line["method"], line["args"]
        if line["class"] not in ("KeyGroupRange", "KeyGroupRangeAssignment"):
            counts["other classes"] += 1
            continue
        if method in ELSEWHERE:
            counts["Java's own protocols"] += 1
            continue
        try:
            if method in METHODS:
                result = METHODS[method](flink_range(line["on"]), *args)
            else:
                result = FUNCTIONS[method](*args)
        except (KeyGroupsError, IndexError):
            counts["both refuse" if "exception" in line else "only we refuse"] += 1
            continue
        if method == "checkParallelismPreconditions":
            assert line.get("result", "missing") is None  # it returns nothing
        elif method == "getKeyGroupId" and args[0] < 0:
            # Flink has no negative index; Python's counts from the end.
            assert result == list(flink_range(line["on"]))[args[0]]
        else:
            assert result == line["result"], line
        counts["same answer"] += 1
    print("errors:", dict(counts))
    assert counts["both refuse"] > 60
    assert counts["same answer"] > 80
