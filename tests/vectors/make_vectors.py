"""Make the golden vectors again: `python tests/vectors/make_vectors.py [folder]`.

Needs Java and the package apache-flink-libraries. Every answer in the files is Flink's; the
questions come from fixed seeds, so the same Flink writes the same files.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import string
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

from sql_vectors import LOGICAL_TYPES, PYFLINK_EDGES, random_pyflink_type, sql_keys
from support.flink.flink_oracle import FlinkOracle, local_session
from support.keys.key_encoding import encode_key

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
    PYFLINK,
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

MAX_PARALLELISMS = [1, 10, 128, 1000, 32768]
Key = tuple[KeyType, object]
Lines = Iterable[dict[str, object]]

UTC = dt.timezone.utc
INF, NAN = float("inf"), float("nan")
INTS = [0, 1, -1, 127, 128, -128, 255, 32767, -32768, 65536, 2**31 - 1, -(2**31)]
LONGS = [*INTS, 2**31, -(2**31) - 1, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, -(2**63)]
DATES = [dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1600, 2, 29)]
DATES += [dt.date(1900, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2000, 2, 29)]
DATES += [dt.date(2024, 2, 29), dt.date(2038, 1, 19), dt.date(9999, 12, 31)]
TIMES = [dt.time(), dt.time(0, 0, 0, 1), dt.time(0, 0, 1), dt.time(0, 1), dt.time(1)]
TIMES += [dt.time(12), dt.time(23, 59, 59), dt.time(23, 59, 59, 999_000), dt.time.max]
DATETIMES = [dt.datetime.combine(date, time) for date in DATES for time in (TIMES[0], TIMES[-1])]
TEXTS = ["", "\0", " ", "a", "A", "B", "hello", *"01234567", "6666"]
TEXTS += ["\x7f", "\x80", "\xff", "\u0100"]
TEXTS += ["e\u0301", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff"]
TEXTS += ["\ud800", "\udfff", "\ud83d", "\ude00", "a\ud83db", "\ude00\ud83d", "\U0001f600\udc00"]
TEXTS += ["z" * 200, "\U0001f600" * 100, "key\tgroup\r\n", "<&>\"'\\"]

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, NAN, INF, -INF]
DECIMALS = ["0", "-0", "0.00", "0E+3", "1", "-1", "1.5", "1.50", "-1.5", "100", "1E+2", "10.0"]
DECIMALS += ["1E-30", "-1E+30", "9223372036854775808", "-18446744073709551616.5", "0.1"]
DECIMALS += ["123456789012345678901234567890.12345678", "1E+2147483647"]

EDGES: dict[KeyType, list[Any]] = {
    BOOLEAN: [False, True],
    BYTE: [n for n in INTS if -128 <= n <= 127],
    SHORT: [n for n in INTS if -32768 <= n <= 32767],
    # The two ints that murmur to 0, and Flink's examples 0 to 7.
    INT: [*INTS, -2089875627, -1035494534, *range(2, 8)],
    LONG: [*LONGS, 2205091669, 3259472762, *range(2, 8)],
    FLOAT: [*FLOATS, 2.0**-149, -(2.0**-126), (2 - 2.0**-23) * 2.0**127],
    DOUBLE: [*FLOATS, 0.1, 5e-324, -(2.0**-1022), 1.7976931348623157e308, 1e100, 2.0**53],
    CHAR: ["\0", "a", "A", "~", "\x7f", "\x80", "\xff", "\u20ac", "\ud800", "\udfff", "\uffff"],
    STRING: TEXTS,
    BIG_INT: [*LONGS, 2**63, 2**64, -(2**64), 2**64 + 2**32, 10**30, -(10**30), 2**128 - 1],
    BIG_DEC: [Decimal(text) for text in DECIMALS],
    LOCAL_DATE: DATES,
    LOCAL_TIME: TIMES,
    LOCAL_DATE_TIME: DATETIMES,
    INSTANT: [moment.replace(tzinfo=UTC) for moment in DATETIMES]
    + [dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))]
    + [dt.datetime(2024, 6, 1, 12, tzinfo=dt.timezone(-dt.timedelta(hours=3, minutes=30)))],
    UUID: [uuid.UUID(int=n) for n in (0, 1, 2**64 - 1, 2**64, 2**127, 2**128 - 1)],
}
# A clock change makes a java.sql value doubtful: these zones have theirs between 0:30 and 4.
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]


def random_float(rng: random.Random, digits: int, low: int, high: int) -> float:
    return float(rng.getrandbits(digits) * rng.choice((1, -1)) * 2.0 ** rng.randint(low, high))


def random_text(rng: random.Random) -> str:
    bound = rng.choice((0x80, 0x100, 0x10000, 0x110000))
    return "".join(chr(rng.randrange(bound)) for _ in range(rng.choice((1, 3, 8, 20))))


def random_moment(rng: random.Random) -> dt.datetime:
    days = dt.timedelta(rng.randrange(dt.date.max.toordinal()))
    return dt.datetime.combine(dt.date.min + days, random_time(rng))


def random_time(rng: random.Random) -> dt.time:
    micros = rng.choice((0, 1000 * rng.randrange(1000), rng.randrange(10**6)))
    return dt.time(rng.randrange(24), rng.randrange(60), rng.randrange(60), micros)


def random_decimal(rng: random.Random) -> Decimal:
    digits = tuple(rng.randrange(10) for _ in range(rng.choice((1, 4, 12, 25, 40))))
    return Decimal((rng.getrandbits(1), digits, rng.randint(-40, 10)))


RANDOM: dict[KeyType, Callable[[random.Random], object]] = {
    BOOLEAN: lambda rng: bool(rng.getrandbits(1)),
    BYTE: lambda rng: rng.getrandbits(8) - 2**7,
    SHORT: lambda rng: rng.getrandbits(16) - 2**15,
    INT: lambda rng: rng.getrandbits(32) - 2**31,
    LONG: lambda rng: rng.getrandbits(64) - 2**63,
    FLOAT: lambda rng: random_float(rng, 24, -149, 104),
    DOUBLE: lambda rng: random_float(rng, 53, -1074, 971),
    CHAR: lambda rng: chr(rng.getrandbits(16)),
    STRING: random_text,
    BIG_INT: lambda rng: rng.getrandbits(rng.randint(1, 200)) * rng.choice((1, -1)),
    BIG_DEC: random_decimal,
    LOCAL_DATE: lambda rng: random_moment(rng).date(),
    LOCAL_TIME: random_time,
    LOCAL_DATE_TIME: random_moment,
    INSTANT: lambda rng: random_moment(rng).replace(tzinfo=UTC),
    UUID: lambda rng: uuid.UUID(int=rng.getrandbits(128)),
}
SCALARS = list(EDGES)
# What a set or a map's key is made of here; Python counts several NaNs where Java counts one.
COUNTABLE = [key_type for key_type in SCALARS if key_type not in (FLOAT, DOUBLE)]


def random_sql_keys(rng: random.Random, zone: str, count: int) -> Iterator[Key]:
    for _ in range(count):
        moment = random_moment(rng)
        while not (moment.year >= 1583 if zone == "UTC" else 1971 <= moment.year <= 2024):
            moment = random_moment(rng)
        moment = moment.replace(hour=rng.randrange(5, 24))
        millis = moment.microsecond // 1000 * 1000
        yield SQL_DATE(zone), moment.date()
        yield SQL_TIME(zone), moment.time().replace(microsecond=millis)
        yield SQL_TIMESTAMP(zone), moment


def random_key(rng: random.Random, key_type: KeyType) -> Any:
    if isinstance(key_type, (TUPLE, ROW)):
        return tuple(random_field(rng, field) for field in key_type.fields)
    if isinstance(key_type, LIST):
        return [random_field(rng, key_type.element) for _ in range(rng.randrange(5))]
    if isinstance(key_type, SET):
        return frozenset(random_field(rng, key_type.element) for _ in range(rng.randrange(5)))
    if isinstance(key_type, MAP):
        return {
            random_field(rng, key_type.key): random_field(rng, key_type.value)
            for _ in range(rng.randrange(5))
        }
    if isinstance(key_type, OPTIONAL):
        return random_field(rng, key_type.element)
    if rng.randrange(4) == 0:
        return rng.choice(EDGES[key_type])
    return RANDOM[key_type](rng)


def random_field(rng: random.Random, key_type: KeyType) -> Any:
    return None if key_type is NULL or rng.randrange(8) == 0 else random_key(rng, key_type)


def random_type(rng: random.Random, depth: int) -> KeyType:
    if depth == 0 or rng.randrange(3):
        return rng.choice([*SCALARS, NULL])
    return rng.choice(list(COMPOUND.values()))(rng, depth - 1)


def random_fields(rng: random.Random, depth: int) -> list[KeyType]:
    return [random_type(rng, depth) for _ in range(rng.choice((0, 1, 2, 2, 3, 3, 5)))]


def random_row_type(rng: random.Random, depth: int) -> ROW:
    fields = random_fields(rng, depth)
    names = rng.sample(string.ascii_letters, len(fields)) if rng.randrange(3) == 0 else None
    return ROW(*fields, kind=rng.choice(("+I", "-U", "+U", "-D")), names=names)


COMPOUND: dict[str, Callable[[random.Random, int], KeyType]] = {
    "TUPLE": lambda rng, depth: TUPLE(*random_fields(rng, depth)),
    "ROW": random_row_type,
    "LIST": lambda rng, depth: LIST(random_type(rng, depth)),
    "MAP": lambda rng, depth: MAP(rng.choice(COUNTABLE), random_type(rng, depth)),
    "SET": lambda rng, depth: SET(rng.choice(COUNTABLE)),
    "OPTIONAL": lambda rng, depth: OPTIONAL(random_type(rng, depth)),
}
COMPOUND_EDGES: list[Key] = [
    (TUPLE(), ()),
    (TUPLE(*[INT] * 25), tuple(range(25))),
    (TUPLE(*[NULL] * 25), (None,) * 25),
    (TUPLE(STRING, INT), ("a", None)),
    (TUPLE(STRING, LONG), ("a", -1)),
    (TUPLE(TUPLE(TUPLE(TUPLE()))), ((((),),),)),
    *[(ROW(STRING, INT, kind=kind), ("a", 1)) for kind in ("+I", "-U", "+U", "-D")],
    *[
        (ROW(INT, STRING, kind=kind, names=("\U0001f600", "\ud800")), (-1, None))
        for kind in ("+I", "-U", "+U", "-D")
    ],
    (ROW(), ()),
    (ROW(names=()), ()),
    (ROW(*[INT] * 40), tuple(range(40))),
    (ROW(ROW(INT, names=("a",)), ROW(ROW(), kind="-D")), ((1,), ((),))),
    (ROW(LIST(MAP(STRING, LIST(INT)))), ([{"a": [1, None], "b": None}, None, {}],)),
    (ROW(SET(STRING), OPTIONAL(INT), OPTIONAL(INT)), (frozenset("ab"), None, 0)),
    (ROW(TUPLE(LIST(ROW(INT)))), (([(1,)],),)),
    (LIST(INT), []),
    (LIST(INT), [None]),
    (LIST(LIST(STRING)), [[], None, ["a"]]),
    (SET(INT), frozenset()),
    (SET(DOUBLE), frozenset({-0.0, 1.5, INF})),
    (SET(TUPLE(STRING, INT)), frozenset({("a", 1), ("a", None), None})),
    (MAP(STRING, INT), {}),
    (MAP(STRING, INT), {None: 1, "a": None, "": 0}),
    (MAP(ROW(INT, names=("a",)), ROW(INT)), {(1,): (1,), (2,): (2,)}),
    (OPTIONAL(INT), None),
    (OPTIONAL(INT), 0),
    (OPTIONAL(OPTIONAL(STRING)), "a"),
]


def keys() -> Iterator[Key]:
    """Yield the keys to ask Flink about."""
    for key_type in SCALARS:
        rng = random.Random(repr(key_type))
        yield from ((key_type, key) for key in EDGES[key_type])
        yield from ((key_type, RANDOM[key_type](rng)) for _ in range(100))
    for zone in ZONES:
        yield from random_sql_keys(random.Random(zone), zone, 25)
    yield from ((SQL_TIME("UTC"), time) for time in TIMES if time.microsecond % 1000 == 0)
    yield from ((SQL_DATE("UTC"), date) for date in DATES if date.year > 1582)
    yield from ((SQL_TIMESTAMP("UTC"), moment) for moment in DATETIMES if moment.year > 1582)
    yield from COMPOUND_EDGES
    for name, make_type in COMPOUND.items():
        rng = random.Random(name)
        for _ in range(250 if name in ("TUPLE", "ROW") else 60):
            key_type = make_type(rng, 2)
            yield key_type, random_key(rng, key_type)
    yield from sql_keys()
    yield from PYFLINK_EDGES
    rng = random.Random("PYFLINK")
    for _ in range(150):
        key_type = random_pyflink_type(rng, 2)
        yield PYFLINK(key_type), random_key(rng, key_type)


def key_lines(flink: FlinkOracle) -> Lines:
    todo = {
        (repr(key_type), json.dumps(encode_key(key_type, key))): (key_type, key)
        for key_type, key in keys()
    }
    pending = iter(todo.values())
    while batch := list(islice(pending, 100)):
        for (key_type, key), (code, groups) in zip(batch, flink.ask(batch, MAX_PARALLELISMS)):
            yield {
                "type": repr(key_type),
                "key": encode_key(key_type, key),
                "hash": code,
                "key_groups": groups,
            }


def range_lines(flink: FlinkOracle) -> Lines:
    pairs = [(128, 3), (128, 1), (128, 2), (128, 4), (128, 127), (128, 128), (1, 1), (2, 2)]
    pairs += [(10, 3), (10, 4), (10, 7), (1000, 3), (1000, 7), (1000, 999), (4096, 100)]
    pairs += [(32767, 2), (32768, 1), (32768, 3), (32768, 1000), (32768, 32767), (32768, 32768)]
    rng = random.Random("ranges")
    for _ in range(30):
        mp = rng.choice((rng.randint(1, 300), rng.randint(1, 32768)))
        pairs.append((mp, rng.randint(1, mp)))
    for mp, parallelism in pairs:
        ranges = []
        for index in some_below(parallelism, rng):
            found = flink.assignment.computeKeyGroupRangeForOperatorIndex(mp, parallelism, index)
            ranges.append([index, found.getStartKeyGroup(), found.getEndKeyGroup()])
        operators = [
            [group, flink.assignment.computeOperatorIndexForKeyGroup(mp, parallelism, group)]
            for group in some_below(mp, rng)
        ]
        yield {
            "max_parallelism": mp,
            "parallelism": parallelism,
            "ranges": ranges,
            "operators": operators,
        }


def some_below(bound: int, rng: random.Random) -> list[int]:
    """Return all numbers below `bound`, or the first and last and some between."""
    if bound <= 16:
        return list(range(bound))
    return sorted({0, 1, bound - 2, bound - 1, *(rng.randrange(bound) for _ in range(12))})


def default_lines(flink: FlinkOracle) -> Lines:
    turns = [2**n + d for n in range(1, 16) for d in (-1, 0, 1)]  # round a power of two
    turns += [2**n // 3 + d for n in range(8, 17) for d in (-1, 0, 1, 2)]  # 85 and 86 first
    for parallelism in sorted({*range(1, 40), *(n for n in turns if 1 <= n <= 32768)}):
        found = flink.assignment.computeDefaultMaxParallelism(parallelism)
        yield {"parallelism": parallelism, "max_parallelism": found}


def murmur_lines(flink: FlinkOracle) -> Lines:
    rng = random.Random("murmur")
    codes = [*INTS, -2089875627, -1035494534, *(rng.getrandbits(32) - 2**31 for _ in range(300))]
    for code in codes:
        yield {"code": code, "murmur": flink.math_utils.murmurHash(code)}


def logical_type_lines(flink: FlinkOracle) -> Lines:
    for text in LOGICAL_TYPES:
        yield {"text": text, "type": flink.logical_type(text)}


def main(folder: Path) -> None:
    """Write every file into `folder`."""
    spark = local_session()
    flink = FlinkOracle(spark)
    files = {
        "keys": key_lines(flink),
        "ranges": range_lines(flink),
        "default_max_parallelism": default_lines(flink),
        "murmur": murmur_lines(flink),
        "logical_types": logical_type_lines(flink),
    }
    for name, lines in files.items():
        header: dict[str, object] = {"flink": flink.flink_version, "java": flink.java_version}
        if name == "keys":
            header["max_parallelisms"] = MAX_PARALLELISMS
        with (folder / f"{name}.jsonl").open("w", encoding="ascii", newline="\n") as file:
            for line in (header, *lines):
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
