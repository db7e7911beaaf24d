"""What `make_vectors.py` asks Flink about keys of Flink SQL and PyFlink, and about SQL's types."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from keygroups.logical_types import LogicalType
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
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
    PYFLINK,
    ROW,
    SHORT,
    SQL_DATE,
    SQL_ROW,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    KeyType,
)

Key = tuple[KeyType, object]

NAN = float("nan")
UTC = dt.timezone.utc
MAX = dt.datetime.max
WIDE = Decimal("9" * 28 + "." + "9" * 10)

SQL_EDGES: list[Key] = [
    (SQL_ROW(), ()),
    *[(SQL_ROW(name), (None,)) for name in ("INT", "STRING", "DECIMAL(18)", "TIMESTAMP(3)")],
    *[(SQL_ROW(name), (None,)) for name in ("DECIMAL(19)", "TIMESTAMP(4)", "TIMESTAMP_LTZ")],
    *[(SQL_ROW("INT"), (n,)) for n in (0, 1, -1, 2**31 - 1, -(2**31))],
    *[(SQL_ROW("BIGINT"), (n,)) for n in (0, 1, -1, 2**63 - 1, -(2**63))],
    *[(SQL_ROW("STRING"), ("x" * n,)) for n in (0, 1, 7, 8, 9, 15, 16, 17, 1000)],
    *[(SQL_ROW("STRING"), (text,)) for text in ("\0", "\ud800", "a\udc00b", "\ud83d\ude00" * 2)],
    *[(SQL_ROW("CHAR(3)"), (text,)) for text in ("", "ab", "abc", "\U0001f600" * 3)],
    *[(SQL_ROW("VARBINARY(9)"), (b"\xff" * n,)) for n in (0, 6, 7, 8, 9)],
    *[(SQL_ROW("DOUBLE"), (n,)) for n in (0.0, -0.0, NAN, 5e-324, float("-inf"))],
    *[(SQL_ROW("FLOAT"), (n,)) for n in (0.0, -0.0, NAN, 2.0**-149, float("inf"))],
    *[
        (SQL_ROW("DECIMAL(38, 10)"), (n,))
        for n in (WIDE, WIDE.copy_negate(), Decimal("-0.0"), Decimal("1E+3"))
    ],
    *[
        (SQL_ROW("DECIMAL(19)"), (Decimal(sign * 2**n - 1),))
        for n in (7, 8, 62)
        for sign in (1, -1)
    ],
    *[
        (SQL_ROW("DECIMAL(18, 4)"), (Decimal(n),))
        for n in ("1.5", "1.5000", "-99999999999999.9999")
    ],
    *[(SQL_ROW("TIMESTAMP(9)"), (moment,)) for moment in (dt.datetime.min, MAX)],
    *[(SQL_ROW("TIMESTAMP_LTZ(6)"), (moment.replace(tzinfo=UTC),)) for moment in (MAX,)],
    (SQL_ROW("TIME(3)", "DATE"), (dt.time(23, 59, 59, 999_000), dt.date.min)),
    *[(SQL_ROW(*["INT"] * n), (*range(n - 1), None)) for n in (55, 56, 57, 120, 121)],
    *[(SQL_ROW("ARRAY<INT>"), ([*range(n), None],)) for n in (0, 30, 31, 32, 63, 64)],
    *[(SQL_ROW(f"ARRAY<{name}>"), ([NAN, None, -0.0],)) for name in ("FLOAT", "DOUBLE")],
    (SQL_ROW("ARRAY<BOOLEAN>", "ARRAY<TINYINT>"), ([True, None, False], [-1, None])),
    (SQL_ROW("ARRAY<STRING>", "INT"), ([], 1)),
    (SQL_ROW("ROW<DECIMAL(38, 1), TIMESTAMP(6), STRING>"), ((None, None, "12345678"),)),
    (SQL_ROW("ROW<>", "ROW<ROW<ROW<INT>>>"), ((), (((None,),),))),
]
PYFLINK_EDGES: list[Key] = [
    *[(PYFLINK(key_type), None) for key_type in (STRING, INT, LIST(INT), ROW(INT), TUPLE(INT))],
    (PYFLINK(LIST(LIST(STRING))), [[], ["a"]]),
    (PYFLINK(TUPLE(LIST(INT), MAP(STRING, INT))), ([1, 2], {"a": 1})),
    (PYFLINK(ROW(ROW(), LIST(ROW(INT)), INT)), ((), [(1,)], None)),
    (PYFLINK(MAP(STRING, LIST(INT))), {"a": [1], "b": None}),
    *[(PYFLINK(SQL_DATE("UTC")), date) for date in (dt.date(1600, 1, 1), dt.date.max)],
    (PYFLINK(SQL_TIME("UTC")), dt.time(23, 59, 59, 999_000)),
    # MAX is refused: PyFlink's process mode moves it by a second.
    (PYFLINK(SQL_TIMESTAMP("UTC")), dt.datetime(1969, 12, 31, 23)),
]
PYFLINK_SCALARS: list[KeyType] = [BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, BIG_DEC]
PYFLINK_SCALARS += [LOCAL_DATE, LOCAL_TIME, LOCAL_DATE_TIME, INSTANT]

LOGICAL_TYPES = [
    *["BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DATE"],
    *["CHAR", "VARCHAR", "STRING", "BINARY", "VARBINARY", "BYTES", "TIME", "TIMESTAMP"],
    *["DECIMAL", "NUMERIC", "DEC", "DOUBLE PRECISION", "TIMESTAMP_LTZ", "int", "Decimal(3)"],
    *[f"{name}({n})" for name in ("CHAR", "varchar") for n in (0, 1, 9, 2**31 - 1, 2**31)],
    *[f"{name}({n})" for name in ("BINARY", "VARBINARY") for n in (0, 1, 2**31 - 1, "9" * 40)],
    *[f"DECIMAL({n})" for n in (0, 1, 38, 39)],
    *[f"DECIMAL({n})" for n in ("5, 0", "5,5", "5, 6", "38, 38", "38,39", "5,", ", 5", "5 5", "")],
    *[f"{name}({n})" for name in ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ") for n in (0, 3, 9, 10)],
    *["TIME WITHOUT TIME ZONE", "TIME(3) WITHOUT TIME ZONE", "TIME WITH LOCAL TIME ZONE"],
    *["TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP(0) WITHOUT TIME ZONE", "TIMESTAMP WITHOUT"],
    *["TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE"],
    *["TIMESTAMP_LTZ(3) WITH LOCAL TIME ZONE", "TIMESTAMP WITH LOCAL", "TIMESTAMP WITH TIME ZONE"],
    *[
        "INT NULL",
        "INT NOT NULL",
        "int  not\tnull",
        "INT NOT",
        "INT NULL NULL",
        "INT NOT NULL NULL",
    ],
    *["ARRAY<INT>", "ARRAY<INT NOT NULL> NOT NULL", "array < int >", "ARRAY<ARRAY<STRING>>"],
    *["INT ARRAY", "INT NOT NULL ARRAY NOT NULL", "INT ARRAY ARRAY", "ARRAY", "ARRAY<", "ARRAY<>"],
    *["ARRAY<INT", "ARRAY<INT>>", "ARRAY(INT)", "ARRAY<INT, INT>", "ARRAY<INT> ARRAY"],
    *["ROW<a INT>", "ROW<a INT, b STRING NOT NULL>", "ROW(a INT, b STRING)", "ROW<>", "ROW()"],
    *["ROW<a INT 'text', b INT 'it''s'>", "ROW<`a b` INT, `c``d` INT>", "ROW<`INT` INT>"],
    *["ROW<a ROW<b ARRAY<ROW<c DECIMAL(38, 10)>>>> NOT NULL", "ROW<a INT> ARRAY"],
    *["ROW", "ROW<", "ROW<a INT", "ROW<a INT)", "ROW<a>", "ROW<a INT,>", "ROW<a INT b INT>"],
    *["ROW<, a INT>", "ROW<a INT 'text' 'more'>"],
    *["", " ", ",", "(", "INT,", "INT INT", "INT(3)", "BOOLEAN()", "STRING(5)", "5", "DATE(3)"],
    *["CHAR(a)", "CHAR(", "CHAR(3", "CHAR()", "CHAR(3, 4)", "CHAR 3"],
    *["MAP<INT, STRING>", "MULTISET<INT>", "INT MULTISET", "INTERVAL DAY", "NULL", "VARIANT"],
    *["INTERVAL YEAR TO MONTH", "DESCRIPTOR"],
]


def sql_keys() -> Iterator[Key]:
    """Yield keys of Flink SQL."""
    yield from SQL_EDGES
    rng = random.Random("SQL_ROW")
    for _ in range(300):
        key_type = SQL_ROW(*(_random_type(rng, 2) for _ in range(rng.choice((1, 1, 2, 2, 3, 5)))))
        yield key_type, tuple(_random_value(rng, field) for field in key_type.fields)


def random_pyflink_type(rng: random.Random, depth: int) -> KeyType:
    """Return a type that PyFlink can declare."""
    kind = rng.randrange(8) if depth else 7
    if kind < 2:
        fields = [random_pyflink_type(rng, depth - 1) for _ in range(rng.randrange(4))]
        return TUPLE(*fields) if kind else ROW(*fields)
    if kind < 4:
        element = random_pyflink_type(rng, depth - 1)
        return LIST(element) if kind == 2 else MAP(rng.choice((STRING, LONG)), element)
    return rng.choice(PYFLINK_SCALARS)


def _random_type(rng: random.Random, depth: int) -> str:
    if depth and rng.randrange(6) == 0:
        return f"ARRAY<{_random_type(rng, depth - 1)}>"
    if depth and rng.randrange(6) == 0:
        return f"ROW<{', '.join(_random_type(rng, depth - 1) for _ in range(rng.randrange(4)))}>"
    name = rng.choice(list(_SQL_RANDOM))
    if name == "DECIMAL":
        precision = rng.randint(1, 38)
        return f"DECIMAL({precision}, {rng.randint(0, precision)})"
    return f"{name}({rng.randint(6, 9)})" if name.startswith("TIMESTAMP") else name


def _random_value(rng: random.Random, field: LogicalType) -> Any:
    if rng.randrange(8) == 0:
        return None
    if field.name == "ROW":
        return tuple(_random_value(rng, inner) for inner in field.fields)
    if field.name == "ARRAY":
        return [_random_value(rng, field.fields[0]) for _ in range(rng.randrange(6))]
    return _SQL_RANDOM[str(field) if str(field) in _SQL_RANDOM else field.name](rng, field)


def _random_bytes(rng: random.Random) -> bytes:
    return bytes(rng.getrandbits(8) for _ in range(rng.choice((0, 3, 7, 8, 20))))


def _random_text(rng: random.Random) -> str:
    bound = rng.choice((0x80, 0x100, 0x10000, 0x110000))
    return "".join(chr(rng.randrange(bound)) for _ in range(rng.choice((0, 2, 7, 8, 20))))


def _random_decimal(rng: random.Random, field: LogicalType) -> Decimal:
    digits = tuple(rng.randrange(10) for _ in range(rng.randint(1, field.precision or 0)))
    return Decimal((rng.getrandbits(1), digits, -(field.scale or 0)))


def _random_moment(rng: random.Random) -> dt.datetime:
    micros = rng.randrange(rng.choice((1, 1000)), 10**6)
    span = dt.timedelta(rng.randrange(dt.date.max.toordinal()), rng.randrange(86_400), micros)
    return dt.datetime.min + span


_SQL_RANDOM: dict[str, Callable[[random.Random, LogicalType], object]] = {
    "BOOLEAN": lambda rng, _: bool(rng.getrandbits(1)),
    "TINYINT": lambda rng, _: rng.getrandbits(8) - 2**7,
    "SMALLINT": lambda rng, _: rng.getrandbits(16) - 2**15,
    "INT": lambda rng, _: rng.getrandbits(32) - 2**31,
    "BIGINT": lambda rng, _: rng.getrandbits(64) - 2**63,
    "FLOAT": lambda rng, _: float((rng.getrandbits(24) - 2**23) * 2.0 ** rng.randint(-149, 104)),
    "DOUBLE": lambda rng, _: float((rng.getrandbits(53) - 2**52) * 2.0 ** rng.randint(-1074, 971)),
    "DECIMAL": _random_decimal,
    "CHAR(20)": lambda rng, _: _random_text(rng),
    "STRING": lambda rng, _: _random_text(rng),
    "BYTES": lambda rng, _: _random_bytes(rng),
    "DATE": lambda rng, _: _random_moment(rng).date(),
    "TIME(3)": lambda rng, _: dt.time(rng.randrange(24), 0, 0, 1000 * rng.randrange(1000)),
    "TIMESTAMP": lambda rng, _: _random_moment(rng),
    "TIMESTAMP_LTZ": lambda rng, _: _random_moment(rng).replace(tzinfo=UTC),
}
