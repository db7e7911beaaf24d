"""The JSON of keys and values of state, and the lines and cells of entries.

What JSON has is that. Decimals, dates, times and UUIDs are text, a float that is not finite too;
bytes are {"base64": ...}; a POJO, a row with names or another record is an object of its fields,
any other tuple, list or set a list; a map is an object where all keys are text, else a list of
pairs. What is none of these is the text that Python shows of it. Numbers have all their digits.
"""

from __future__ import annotations

import codecs
import csv
import datetime as dt
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from math import isfinite
from typing import IO, TYPE_CHECKING, Any
from uuid import UUID

from keygroups._checks import exact_repr
from keygroups._values.java_values import Pojo
from keygroups._values.rows import Row
from keygroups.cli._streams import json_line, key_data
from keygroups.errors import KeyGroupsError

if TYPE_CHECKING:
    from keygroups.savepoint import StateDescriptor, StateEntry

_ISO = (dt.date, dt.time)  # a datetime is a date too
_CELLS = (str, int, float)


def value_data(value: Any) -> Any:
    """Return the JSON of a key or a value."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else repr(value)
    if isinstance(value, _ISO):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode("ascii")}
    return _nested_data(value)


def _nested_data(value: Any) -> Any:
    if isinstance(value, Row) and value.names:
        return {name: value_data(field) for name, field in zip(value.names, value)}
    if isinstance(value, Pojo) or (isinstance(value, tuple) and hasattr(value, "_asdict")):
        return {name: value_data(field) for name, field in value._asdict().items()}
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: value_data(nested) for key, nested in value.items()}
        return [[value_data(key), value_data(nested)] for key, nested in value.items()]
    if isinstance(value, (tuple, list)):
        return [*map(value_data, value)]
    if isinstance(value, (set, frozenset)):
        return [*map(value_data, sorted(value, key=exact_repr))]
    return key_data(value)


def json_lines(state: StateDescriptor, entries: Iterable[StateEntry]) -> Iterator[str]:
    """Yield the JSON of each entry, an object on a line."""
    names = columns_of(state)
    for entry in entries:
        data = {name: value_data(getattr(entry, name)) for name in names}
        if entry.key_bytes is not None:
            data["key_bytes"] = value_data(entry.key_bytes)
        yield json_line(data)


def columns_of(state: StateDescriptor) -> list[str]:
    """Return the names of the fields of a StateEntry that entries of a state have."""
    from keygroups._serializers.scalars import VOID_NAMESPACE

    has = {
        "namespace": state.namespace_serializer is not VOID_NAMESPACE,
        "user_key": state.user_key_serializer is not None,
        "value": state.value_serializer is not None,
        "last_access": state.has_ttl and state.kind != "LIST",
        "timestamp": state.value_serializer is None,
    }
    optional = [name for name, is_there in has.items() if is_there]
    return ["key_group", "subtask", "key", *optional, "bytes"]


def write_json_lines(file: IO[bytes], state: StateDescriptor, rows: Iterable[StateEntry]) -> int:
    """Write JSON Lines, and return their number."""
    count = 0
    for line in json_lines(state, rows):
        file.write(line.encode("ascii") + b"\n")
        count += 1
    return count


def write_csv(file: IO[bytes], state: StateDescriptor, rows: Iterable[StateEntry]) -> int:
    """Write CSV without PyArrow, text in quotes; KeyGroupsError for what only PyArrow writes."""
    names, count = columns_of(state), 0
    lines = codecs.getwriter("utf-8")(file)
    writer = csv.writer(lines, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(names)
    for entry in rows:
        writer.writerow([_cell(name, getattr(entry, name)) for name in names])
        count += 1
    return count


def _cell(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, _CELLS):
        raise KeyGroupsError(
            f"a .csv of {name}s such as {exact_repr(value)[:100]} takes PyArrow, which "
            "keygroups[arrays] has, and a .jsonl does not"
        )
    return value


EntryWriter = Callable[[IO[bytes], "StateDescriptor", "Iterable[StateEntry]"], int]
