"""Decodes the SQL rows of `tests/vectors/independent/binaryrow`."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

from keygroups.logical_types import LogicalType

UTC = dt.timezone.utc

# The vectors' VARBINARY has any number of bytes, their TIME has milliseconds: what Flink calls
# so holds one byte, and no fraction of a second.
SCHEMA = {"VARBINARY": "BYTES", "TIME": "TIME(3)"}


class BeyondPythonError(Exception):
    """A value that Python's own class cannot hold."""


def internal(field: LogicalType, value: Any) -> Any:
    """Return Flink's internal value for a value of the vectors."""
    if value is None:
        return None
    if field.name in ("FLOAT", "DOUBLE"):
        return int(value["bits"], 16)
    if field.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return int(value["millis"]), value["nanos"]
    if field.name == "DECIMAL":
        return int(value["unscaled"])
    if field.name == "VARCHAR":
        return value.encode()
    if field.name == "VARBINARY":
        return bytes.fromhex(value)
    if field.name == "ROW":
        return list(map(internal, field.fields, value))
    if field.name == "ARRAY":
        return [internal(field.fields[0], element) for element in value]
    return int(value) if field.name == "BIGINT" else value


def python(field: LogicalType, value: Any) -> Any:
    """Return the Python value for a value of the vectors, if there is one."""
    if value is None:
        return None
    if field.name in ("FLOAT", "DOUBLE"):
        return struct.unpack(
            ">f" if field.name == "FLOAT" else ">d", bytes.fromhex(value["bits"][2:])
        )[0]
    if field.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        micros, nanos = divmod(value["nanos"], 1000)
        since = dt.timedelta(milliseconds=int(value["millis"]), microseconds=micros)
        if nanos or since.microseconds % 10 ** max(6 - (field.precision or 0), 0):
            raise BeyondPythonError  # or with a fraction that the type has no digits for
        return (
            dt.datetime(1970, 1, 1, tzinfo=UTC if field.name == "TIMESTAMP_LTZ" else None) + since
        )
    if field.name == "DECIMAL":
        return Decimal(f"{value['unscaled']}E{-value['scale']}")
    if field.name == "VARBINARY":
        return bytes.fromhex(value)
    if field.name == "DATE":
        return dt.date(1970, 1, 1) + dt.timedelta(value)
    if field.name == "TIME":
        return (dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=value)).time()
    if field.name == "ROW":
        return tuple(map(python, field.fields, value))
    if field.name == "ARRAY":
        return [python(field.fields[0], element) for element in value]
    return int(value) if field.name == "BIGINT" else value
