"""Each scalar key type is known everywhere: to every table of the library that is by key type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from support.inside.answers import _key_text

from keygroups import hashing, routing_inference, subtask_keys, types
from keygroups.errors import UnsupportedKeyTypeError
from keygroups.state_keys import serializer_of
from keygroups.types import NULL, PYFLINK, KeyType, ScalarType

SCALARS = {value for value in vars(types).values() if isinstance(value, ScalarType)} - {NULL}
NAMES = {key_type.name for key_type in SCALARS}


# --- what is by key type ----------------------------------------------------------------


def taken(make: Callable[[KeyType], object]) -> set[str]:
    """Return the names of the key types of which something can be made."""
    names = set()
    for key_type in SCALARS:
        try:
            make(key_type)
        except UnsupportedKeyTypeError:
            continue
        names.add(key_type.name)
    return names


def arrays() -> Any:
    pytest.importorskip("pyarrow")
    from support.inside.arrays import _scalars

    return _scalars


def strategies() -> Iterable[KeyType]:
    pytest.importorskip("hypothesis")
    from support.inside.strategies import _strategies

    return _strategies.SCALARS


def spark_types() -> Iterable[KeyType]:
    pytest.importorskip("pyspark")
    from support.inside.adapter import key_hash

    return key_hash.SPARK_TYPES


def spark_hashers() -> Iterable[KeyType]:
    functions = pytest.importorskip("pyspark.sql.functions")
    from support.inside.adapter import Portable

    return Portable(functions).hashers


def guide() -> list[str]:
    path = Path(types.__file__).parent / "guide" / "keys_and_types.md"
    text = path.read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return re.findall(r"`(\w+)`", " ".join(rows))


def in_docstring() -> list[str]:
    rows = re.findall("^    ([A-Z_ ]+)  ", types.__doc__ or "", re.MULTILINE)
    return " ".join(rows).split()


TABLES: dict[str, Callable[[], Iterable[KeyType | str]]] = {
    "types.__all__": lambda: types.__all__,
    "types.__doc__": in_docstring,
    "keys_and_types.md": guide,
    "PYFLINK": lambda: taken(PYFLINK),
    "hashing.SCALARS": lambda: hashing.SCALARS,
    "hashing.SCALARS, python_class": lambda: hashing._INFERRED.values(),
    "arrays._scalars.HASHERS": lambda: arrays().HASHERS,
    "arrays._scalars.INFERRED": lambda: dict(arrays().INFERRED).values(),
    "testing._strategies.SCALARS": strategies,
    "cli._key_text._READERS": lambda: _key_text._READERS,
    "cli._key_text._LIKELY": lambda: _key_text._LIKELY,
    "subtask_keys._COUNTED": lambda: subtask_keys._COUNTED,
    "routing_inference._SQL_TYPES": lambda: routing_inference._SQL_TYPES,
    "spark._columns.key_hash.SPARK_TYPES": spark_types,
    "spark._columns.portable.Portable.hashers": spark_hashers,
    "state_keys.serializer_of": lambda: taken(serializer_of),
}

_DATES_AND_TIMES = "LOCAL_DATE LOCAL_TIME LOCAL_DATE_TIME INSTANT"
_NOT_IN_SPARK = {
    "CHAR": "a column of Spark has text of any length",
    "BIG_INT SCALA_BIG_INT": "a decimal of Spark has 38 digits at most",
    "LOCAL_TIME": "Spark before 4.1 has no time of day",
}
LEFT_OUT: dict[str, dict[str, str]] = {
    "PYFLINK": {
        "CHAR BIG_INT": "PyFlink and Java disagree on their bytes",
        "UUID SCALA_BIG_INT BYTE_BUFFER HASHED": "PyFlink has no type for it",
    },
    "hashing.SCALARS, python_class": {
        "BYTE SHORT INT LONG BIG_INT SCALA_BIG_INT": "what an int is goes by its value",
        "FLOAT": "a float is a DOUBLE",
        "CHAR": "a str is a STRING",
        "BYTE_BUFFER": "bytes may stand for a byte[], which is no key",
        "HASHED": "an int is a number",
        "LOCAL_DATE_TIME INSTANT": "what a datetime is goes by its zone",
    },
    "arrays._scalars.HASHERS": {
        "CHAR": "an array of text has text of any length",
        "BIG_INT SCALA_BIG_INT": "an array of integers has 64 bits at most",
    },
    "arrays._scalars.INFERRED": {
        "BYTE SHORT INT LONG BIG_INT SCALA_BIG_INT": "what an integer is goes by its value",
        "FLOAT": "float32 may also stand for doubles",
        "CHAR UUID": "text is a STRING",
        "BYTE_BUFFER": "binaries may stand for a byte[], which is no key",
        "HASHED": "integers are numbers",
    },
    "cli._key_text._READERS": {"STRING CHAR": "the text is the key"},
    "cli._key_text._LIKELY": {
        "BYTE SHORT INT BIG_INT SCALA_BIG_INT": "what looks like one looks like a LONG",
        "FLOAT BIG_DEC": "what looks like one looks like a DOUBLE",
        "STRING CHAR": "they are what the text is if it looks like nothing else",
        "BYTE_BUFFER HASHED": "what looks like one looks like a LONG",
    },
    "subtask_keys._COUNTED": {
        "STRING": "it is counted behind a prefix, by itself",
        f"FLOAT DOUBLE CHAR BIG_DEC UUID BYTE_BUFFER {_DATES_AND_TIMES}": "a field takes one from "
        "template",
    },
    "routing_inference._SQL_TYPES": {
        "BYTE SHORT FLOAT CHAR BIG_INT SCALA_BIG_INT": "no key is taken for one untyped",
        "UUID BYTE_BUFFER HASHED": "Flink SQL has no type for it, or no key",
        "LOCAL_DATE": "a user who has such keys passes SQL_ROW('DATE') in key_types",
        "BIG_DEC LOCAL_TIME LOCAL_DATE_TIME INSTANT": "keys do not tell the type's precision",
    },
    "spark._columns.key_hash.SPARK_TYPES": _NOT_IN_SPARK,
    "spark._columns.portable.Portable.hashers": _NOT_IN_SPARK,
    "state_keys.serializer_of": {
        "UUID BYTE_BUFFER SCALA_BIG_INT": "Kryo writes it, as what the job's registrations say",
        "HASHED": "it may be of any class",
    },
}
"""For each table the key types that it has no row of, and why."""


@pytest.mark.parametrize("table", TABLES)
def test_every_key_type_is_known_everywhere(table: str) -> None:
    known = {row.name if isinstance(row, ScalarType) else str(row) for row in TABLES[table]()}
    left_out = [name for names in LEFT_OUT.get(table, {}) for name in names.split()]
    assert not NAMES - known - set(left_out), f"{table} has no row, and LEFT_OUT no reason"
    assert sorted(left_out) == sorted(NAMES - known), "LEFT_OUT has one that is known, or twice"


def test_only_tables_have_reasons() -> None:
    assert LEFT_OUT.keys() <= TABLES.keys()
