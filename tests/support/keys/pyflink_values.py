"""Decodes the keys of `tests/vectors/independent/pyflink`."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

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
    ROW,
    SHORT,
    SQL_DATE,
    SQL_TIME,
    SQL_TIMESTAMP,
    STRING,
    TUPLE,
    KeyType,
)

TYPES: dict[str, KeyType] = {
    "BOOLEAN": BOOLEAN,
    "BYTE": BYTE,
    "SHORT": SHORT,
    "INT": INT,
    "LONG": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "BIG_DEC": BIG_DEC,
    "LOCAL_DATE": LOCAL_DATE,
    "LOCAL_TIME": LOCAL_TIME,
    "LOCAL_DATETIME": LOCAL_DATE_TIME,
    "INSTANT": INSTANT,
    "SQL_DATE": SQL_DATE("UTC"),
    "SQL_TIME": SQL_TIME("UTC"),
    "SQL_TIMESTAMP": SQL_TIMESTAMP("UTC"),
    "TUPLE<STRING,INT>": TUPLE(STRING, INT),
    "TUPLE<INT,LONG,DOUBLE>": TUPLE(INT, LONG, DOUBLE),
    "ROW<STRING,LONG>": ROW(STRING, LONG),
    "ROW<INT>": ROW(INT),
    "LIST<STRING>": LIST(STRING),
    "MAP<STRING,INT>": MAP(STRING, INT),
}
READERS: dict[str, Any] = {
    "int": int,
    "float": lambda v: struct.unpack(">d", bytes.fromhex(v["bits"][2:]))[0],
    "bytes": bytes.fromhex,
    "Decimal": Decimal,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "list": lambda v: list(map(decode, v)),
    "tuple": lambda v: tuple(map(decode, v)),
    "Row": lambda v: tuple(map(decode, v)),
    "dict": lambda v: {decode(key): decode(value) for key, value in v},
}


def decode(tagged: dict[str, Any]) -> Any:
    reader = READERS.get(tagged["t"])
    return tagged["v"] if reader is None else reader(tagged["v"])
