"""The savepoints that Flink's maintainers keep for their own tests, with what Flink reads in them.

They are no part of this project. Where the environment variable KEYGROUPS_FLINK_POINTS names a
folder that has them in `points` and the truth in `truth`, with an `index.jsonl` and a
`truth_index.jsonl`, they are read.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import struct
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from keygroups.errors import KeyGroupsError
from keygroups.savepoint import Operator, Savepoint, Serializer, StateEntry, read_savepoint
from keygroups.state_keys import Row
from support.bytes.flink_values import as_instant
from support.bytes.real_savepoints import ROW_KINDS
from support.inside.serializers import Cursor

FOLDER = os.environ.get("KEYGROUPS_FLINK_POINTS", "")
_long = struct.Struct(">q").unpack_from
_EPOCH = dt.datetime(1970, 1, 1)


class TestLong(Serializer):
    """What a test of Flink has as a serializer of its own: a long, with a text in its snapshot."""

    name, versions, size = "TEST_LONG", (1, 2, 3), 8

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        cursor.utf()
        return cls()

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[int, int]:
        return int(_long(data, pos)[0]), pos + 8


_ITCASE = "org.apache.flink.test.migration.TypeSerializerSnapshotMigrationITCase"
SERIALIZERS = {f"{_ITCASE}$TestSerializerSnapshot": TestLong}


@dataclass(frozen=True)
class OwnPoint:
    """A point."""

    name: str
    folder: str

    def __str__(self) -> str:
        return self.name

    def read(self) -> Savepoint:
        """Read it."""
        return read_savepoint(Path(FOLDER, "points", self.name), serializers=SERIALIZERS)

    def truth(self, kind: str) -> dict[str, list[dict[str, Any]]]:
        """Return the lines of `states`, `entries` or `operator_state`, by operator."""
        lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
        path = Path(FOLDER, "truth", self.folder, f"{kind}.jsonl.gz")
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as file:
                for line in map(json.loads, file):
                    lines[line["operator"]].append(line)
        return lines


def own_points() -> Iterator[OwnPoint]:
    """Yield the points, none without a folder."""
    if not FOLDER:
        return
    with Path(FOLDER, "truth", "truth_index.jsonl").open(encoding="utf-8") as file:
        for line in map(json.loads, file):
            yield OwnPoint(line["name"], line["folder"])


def matches(true: Any, seen: Any) -> bool:
    """Tell whether a value is what Flink read; how Java's types are told apart, see `_BY_TAG`."""
    if not isinstance(true, dict):
        return bool(true == seen) and type(true) is type(seen)
    for tag, check in _BY_TAG.items():
        if tag in true:
            with suppress(AttributeError, TypeError, ValueError):  # another class has none
                return bool(check(true, seen))
    return False


def _all(true: list[Any], seen: Any) -> bool:
    return len(true) == len(seen) and all(map(matches, true, seen))


def _pairs(true: list[list[Any]], seen: Any) -> bool:
    pairs = list(seen.items() if isinstance(seen, dict) else seen)
    return len(true) == len(pairs) and all(
        any(matches(key, key2) and matches(value, value2) for key2, value2 in pairs)
        for key, value in true
    )


def _row(true: dict[str, Any], seen: Any) -> bool:
    if "fields" not in true:  # no known types: its bytes alone
        return isinstance(seen, (Row, tuple, bytes))
    return (
        _has_kind(true, seen)
        and len(true["fields"]) == len(seen)
        and all(
            # Flink's getter of a type that is NOT NULL does not look whether it is null.
            (field is None and item.endswith("*PROCTIME*")) or matches(value, field)
            for (item, value), field in zip(true["fields"], seen)
        )
    )


def _has_kind(true: dict[str, Any], seen: Row) -> bool:
    """Tell whether a row has its kind; a key of SQL has none, which is +I."""
    return bool(seen.row_kind == ROW_KINDS[true.get("row_kind", 0)])


def _object(true: dict[str, Any], seen: Any) -> bool:
    """The objects of CEP and of streams, whose classes have the same names, and their fields."""
    name = true["object"].rpartition(".")[2]
    known = {"StreamElement": "StreamRecord"}.get(name, name)
    return bool(type(seen).__name__ == known)


def _moment(true: list[int], seen: Any) -> bool:
    millis, nanos = true
    if isinstance(seen, dt.datetime):
        micros = millis * 1000 + nanos // 1000
        return bool(seen.replace(tzinfo=None) == _EPOCH + dt.timedelta(microseconds=micros))
    return bool(tuple(seen) == (millis, nanos))


def _decimal(text: str, seen: Any) -> bool:
    return isinstance(seen, Decimal) and seen.as_tuple() == Decimal(text).as_tuple()


def _is(kind: type, true: Any, seen: Any) -> bool:
    return type(seen) is kind and bool(true == seen)


def _of_class(name: str, true: Any, seen: Any) -> bool:
    return type(seen).__name__ == name and matches(true, seen.value)


_BY_TAG: dict[str, Any] = {
    "int": lambda t, s: _is(int, t["int"], s),
    "long": lambda t, s: _is(int, t["long"], s),
    "double": lambda t, s: isinstance(s, float) and s.hex() == float.fromhex(t["double"]).hex(),
    "bytes": lambda t, s: bytes(s).hex() == t["bytes"],
    "void": lambda t, s: s is None,
    "ttl": lambda t, s: s.last_access == t["ttl"] and matches(t["value"], s.value),
    "tuple": lambda t, s: type(s) is tuple and _all(t["tuple"], s),
    "product": lambda t, s: isinstance(s, tuple) and _all(t["items"], s),
    "list": lambda t, s: isinstance(s, (list, set, frozenset)) and _all(t["list"], [*s]),
    "array": lambda t, s: isinstance(s, array) and _all(t["items"], s),
    "map": lambda t, s: _pairs(t["map"], s),
    "sorted_map": lambda t, s: _pairs(t["sorted_map"], s),
    "row": lambda t, s: _has_kind(t, s) and _all(t["row"], s),
    "binary_row": _row,
    "row_data": lambda t, s: isinstance(s, Row) and _all(t["row_data"], s),
    "raw_value": lambda t, s: isinstance(s, bytes),
    "window": lambda t, s: (s.start, s.end) == tuple(t["window"]),
    "some": lambda t, s: _of_class("Some", t["some"], s),
    "none": lambda t, s: s is None,
    "left": lambda t, s: _of_class("Left", t["left"], s),
    "right": lambda t, s: _of_class("Right", t["right"], s),
    "success": lambda t, s: _of_class("Success", t["success"], s),
    "failure": lambda t, s: type(s).__name__ == "Failure",
    "scala_enum": lambda t, s: t["scala_enum"] == s,
    "timestamp_data": lambda t, s: _moment(t["timestamp_data"], s),
    "local_date_time": lambda t, s: _local(t["local_date_time"], s),
    "instant": lambda t, s: s == as_instant(*t["instant"]),
    "big_decimal": lambda t, s: _big(t["big_decimal"], s),
    "decimal": lambda t, s: _decimal(t["decimal"], s),
    "object": _object,
    "avro": lambda t, s: (
        s.keys() == t["fields"].keys() and all(matches(t["fields"][n], s[n]) for n in s)
    ),
}


def _local(true: list[Any], seen: Any) -> bool:
    day, nanos = true
    time = dt.timedelta(microseconds=nanos // 1000)
    return bool(seen == dt.datetime.fromisoformat(day) + time)


def _big(true: list[Any], seen: Any) -> bool:
    unscaled, scale = true
    return isinstance(seen, Decimal) and seen == Decimal(unscaled).scaleb(-scale)


def _true_part(line: dict[str, Any], part: str) -> Any:
    value: Any = line.get(part)
    if f"{part}_fields" in line:
        return {"binary_row": value["binary_row"], "fields": line[f"{part}_fields"]}
    return {"void": True} if value is None else value


def is_entry(true: dict[str, Any], seen: StateEntry) -> bool:
    """Tell whether an entry is what Flink read."""
    if (seen.kind, seen.key_bytes) != (true["kind"], None):
        return False
    if seen.timestamp != true.get("timestamp"):
        return False
    if seen.kind != "LIST" and seen.last_access != true.get("ttl_timestamp"):
        return False
    return all(
        matches(_true_part(true, part), getattr(seen, part))
        for part in ("key", "namespace", "user_key", "value")
    )


def wrong_entries(true: list[dict[str, Any]], operator: Operator) -> list[object]:
    """Return the entries that Flink read and are not seen, and the others way round."""
    seen: dict[tuple[object, ...], list[StateEntry]] = defaultdict(list)
    for entry in operator.entries():
        seen[entry.subtask, entry.state, entry.key_group].append(entry)
    wrong: list[object] = []
    for line in true:
        entries = seen[line["subtask"], line["state"], line["key_group"]]
        for entry in entries:
            if is_entry(line, entry):
                entries.remove(entry)
                break
        else:
            wrong.append((line, entries[:2]))
    return wrong + [entry for entries in seen.values() for entry in entries]


def wrong_operator_state(true: list[dict[str, Any]], operator: Operator) -> list[object]:
    """Return the operator states that are not as Flink read them."""
    seen = {(state.subtask, state.state): state for state in operator.operator_state()}
    wrong: list[object] = []
    for line in true:
        state = seen.pop((line["subtask"], line["state"]), None)
        if state is None:
            wrong.append(line)
        elif "entries" in line:
            if not matches(line["entries"], state.elements):
                wrong.append((line, state))
        elif not _all(line["elements"], state.elements):
            wrong.append((line, state))
    return wrong + [state for state in seen.values() if state.elements]


def problem(call: Any) -> str | None:
    """Return the error of ours that a call raises."""
    try:
        call()
    except KeyGroupsError as error:
        return str(error)
    return None
