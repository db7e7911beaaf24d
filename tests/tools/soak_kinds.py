"""What `soak.py` compares: key types, each with the keys that are made of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from soak_keys import (
    DAY,
    GREGORIAN,
    PYTHON,
    Maker,
    between,
    big_ints,
    booleans,
    decimal_texts,
    decimals,
    floats,
    integers,
    lone_surrogates,
    moments,
    nullable,
    struct,
    texts,
    uuids,
)

from keygroups import types
from keygroups.types import KeyType

_IN_PYTHON: dict[str, Callable[[Any], list[Any]]] = {
    "BIG_DEC": lambda keys: list(map(Decimal, keys.to_pylist())),
    "BIG_INT": lambda keys: [int.from_bytes(k, "big", signed=True) for k in keys.to_pylist()],
    "CHAR": lambda keys: list(map(chr, keys.to_pylist())),
    "SQL_TIMESTAMP": lambda keys: keys.cast(pa.timestamp("us")).to_pylist(),
    "UTF_16": lambda keys: [k.decode("utf-16-le", "surrogatepass") for k in keys.to_pylist()],
    "UUID": lambda keys: list(map(uuid.UUID, keys.to_pylist())),
}
_IN_JAVA: dict[str, Callable[[Any], Any]] = {
    "LOCAL_TIME": lambda keys: keys.cast(pa.int64()),
    "SQL_TIME": lambda keys: pc.divide(keys.cast(pa.int64()), 1_000),
}
_NOT_IN_ARRAYS = ("BIG_DEC", "BIG_INT", "CHAR", "SQL_TIME", "UTF_16")
_NOT_IN_COLUMNS = (*_NOT_IN_ARRAYS, "LOCAL_TIME")


class Kind(NamedTuple):
    """Keys of a key type, how many of the rows they are, and what `SoakKeys.java` is told."""

    name: str
    key_type: KeyType
    make: Maker
    weight: int = 1
    java: str = ""

    def in_python(self, keys: Any) -> list[Any]:
        """Return keys for the scalar functions."""
        if pa.types.is_floating(keys.type) or (pa.types.is_integer(keys.type) and not self.java):
            values: list[Any] = keys.to_numpy().tolist()
            return values
        return _IN_PYTHON.get(self.java, _with_tuples)(keys)

    def in_java(self, keys: Any) -> Any:
        """Return a column of Spark of some keys."""
        return _IN_JAVA.get(self.java, lambda keys: keys)(keys)

    @property
    def in_arrays(self) -> bool:
        """Whether `keygroups.arrays` hashes them."""
        return self.java not in _NOT_IN_ARRAYS

    @property
    def in_columns(self) -> bool:
        """Whether a column has them."""
        return self.java not in _NOT_IN_COLUMNS


def _with_tuples(keys: Any) -> list[Any]:
    def plain(value: Any) -> Any:
        return tuple(map(plain, value.values())) if isinstance(value, dict) else value

    return [plain(key) for key in keys.to_pylist()]


_INT, _LONG, _DOUBLE = integers(32), integers(64), floats(64)
_DATES = between(PYTHON[0] // DAY, PYTHON[1] // DAY, pa.date32())
_DATES_OF_SQL = between(GREGORIAN // DAY, PYTHON[1] // DAY, pa.date32())
_DECIMALS = decimals((10, 2), (18, 6), (38, 0), (38, 10), (38, 38))
SCALARS = [
    Kind("STRING", types.STRING, texts, 16),
    Kind("LONG", types.LONG, _LONG, 16),
    Kind("INT", types.INT, _INT, 14),
    Kind("DOUBLE", types.DOUBLE, _DOUBLE, 12),
    Kind("FLOAT", types.FLOAT, floats(32), 10),
    Kind("BIG_DEC", types.BIG_DEC, _DECIMALS, 6),
    Kind("LOCAL_DATE_TIME", types.LOCAL_DATE_TIME, moments(None), 6),
    Kind("INSTANT", types.INSTANT, moments("UTC"), 4),
    Kind("LOCAL_DATE", types.LOCAL_DATE, _DATES, 3),
    Kind("UUID", types.UUID, uuids, 2, "UUID"),
    Kind("SHORT", types.SHORT, integers(16)),
    Kind("BYTE", types.BYTE, integers(8)),
    Kind("BOOLEAN", types.BOOLEAN, booleans),
    Kind("SQL_DATE", types.SQL_DATE("UTC"), _DATES_OF_SQL, 1, "SQL_DATE"),
    Kind(
        "SQL_TIMESTAMP", types.SQL_TIMESTAMP("UTC"), moments("UTC", GREGORIAN), 1, "SQL_TIMESTAMP"
    ),
    Kind("LOCAL_TIME", types.LOCAL_TIME, between(0, DAY - 1, pa.time64("us")), 1, "LOCAL_TIME"),
    Kind(
        "SQL_TIME",
        types.SQL_TIME("UTC"),
        between(0, DAY - 1_000, pa.time64("us"), 1_000),
        1,
        "SQL_TIME",
    ),
    Kind("CHAR", types.CHAR, between(0, 0xFFFF, pa.int32()), 1, "CHAR"),
    Kind("STRING, lone surrogates", types.STRING, lone_surrogates, 1, "UTF_16"),
    Kind("BIG_INT", types.BIG_INT, big_ints, 1, "BIG_INT"),
    Kind("BIG_DEC of any scale", types.BIG_DEC, decimal_texts, 1, "BIG_DEC"),
]

_SQL: dict[str, Maker] = {
    "BOOLEAN": booleans,
    "TINYINT": integers(8),
    "SMALLINT": integers(16),
    "INT": _INT,
    "BIGINT": _LONG,
    "FLOAT": floats(32, payloads=False),  # Spark has one NaN
    "DOUBLE": floats(64, payloads=False),
    "DATE": _DATES,
    "STRING": texts,
    "BYTES": big_ints,
    "DECIMAL(18, 2)": decimals((18, 2)),
    "DECIMAL(38, 10)": decimals((38, 10)),
    "TIMESTAMP(3)": moments(None, unit=1_000),
    "TIMESTAMP(6)": moments(None),
    "TIMESTAMP_LTZ(3)": moments("UTC", unit=1_000),
    "ROW<a INT, b STRING>": struct({"f_0": _INT, "f_1": texts}),
}


def _compound(key_type: KeyType, make: Maker, java: str) -> Kind:
    return Kind(str(key_type), key_type, make, 1, java)


def _sql_row(*fields: str) -> Kind:
    names = [f"{'ROW' if field.startswith('ROW') else 'f'}_{i}" for i, field in enumerate(fields)]
    ddl = ", ".join(f"{name} {field}" for name, field in zip(names, fields))
    make = struct(dict(zip(names, map(_SQL.__getitem__, fields))))
    return _compound(types.SQL_ROW(*fields), make, f"SQL_ROW ROW<{ddl}>")


_PAIR_TYPES, _PAIR = (types.INT, types.STRING), struct({"f_0": _INT, "f_1": texts})
_SMALL_TYPES, _SMALL = (types.DOUBLE, types.BYTE), struct({"f_0": _DOUBLE, "f_1": integers(8)})
COMPOUNDS = [
    _compound(types.TUPLE(*_PAIR_TYPES), _PAIR, "TUPLE"),
    _compound(
        types.TUPLE(types.LONG, types.BOOLEAN, types.INSTANT),
        struct({"f_0": _LONG, "f_1": booleans, "f_2": moments("UTC")}),
        "TUPLE",
    ),
    _compound(
        types.TUPLE(types.LOCAL_DATE, types.TUPLE(*_PAIR_TYPES), types.BIG_DEC),
        struct({"f_0": _DATES, "TUPLE_1": _PAIR, "f_2": decimals((18, 6))}),
        "TUPLE",
    ),
    _compound(types.ROW(*_PAIR_TYPES), _PAIR, "ROW"),
    _compound(
        types.ROW(types.ROW(*_SMALL_TYPES), types.LOCAL_DATE_TIME, kind="-U"),
        struct({"ROW_0": _SMALL, "f_1": moments(None)}),
        "ROW -U",
    ),
    _sql_row("BIGINT"),
    _sql_row("INT", "BIGINT"),
    _sql_row("BIGINT", "STRING"),
    _sql_row("BOOLEAN", "TINYINT", "SMALLINT", "FLOAT", "DOUBLE"),
    _sql_row("DATE", "TIMESTAMP(3)", "TIMESTAMP_LTZ(3)", "DECIMAL(18, 2)"),
    _sql_row("STRING", "DECIMAL(38, 10)", "TIMESTAMP(6)"),
    _sql_row("BYTES", "ROW<a INT, b STRING>"),
    _compound(types.PYFLINK(types.LONG), nullable(_LONG), "PYFLINK "),
    _compound(types.PYFLINK(types.STRING), nullable(texts), "PYFLINK "),
    _compound(types.PYFLINK(types.TUPLE(*_PAIR_TYPES)), _PAIR, "PYFLINK TUPLE"),
    _compound(types.PYFLINK(types.ROW(*_SMALL_TYPES)), _SMALL, "PYFLINK ROW"),
]
