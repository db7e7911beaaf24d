"""Savepoints and checkpoints of jobs as production has them, with what Flink read in them.

`tests/vectors/jobs.jsonl` says which; the points are in `jobs.tar.xz` beside it, in the form of
`real_savepoints`. What Flink read becomes the values that the library gives, as `flink_values`
does it for the cases of serializers: the JSON has other tags here, and the types of SQL columns
beside their values.
"""

from __future__ import annotations

import datetime as dt
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

from keygroups.savepoint import Operator, StateEntry
from keygroups.savepoint import values as objects
from keygroups.savepoint.values import Row, TtlValue
from support.bytes import flink_values as fv
from support.bytes.real_savepoints import ROW_KINDS, Point
from support.golden import lines


@dataclass(frozen=True)
class JobPoint(Point):
    """A point of a job; `operators` are the vertices with keyed state, by the operator's id."""

    job: str = ""
    backend: str = ""
    operators: Mapping[str, str] = field(default_factory=dict, compare=False)


JOB_POINTS = [
    JobPoint(
        line["name"],
        line["flink"],
        line["kind"],
        line["point"],
        tuple(line["moved"]),
        line["entries"],
        "jobs",
        line["job"],
        line["backend"],
        line["operators"],
    )
    for line in lines("jobs")
]


def job_point(name: str) -> JobPoint:
    """Return a point by its name."""
    (known,) = (one for one in JOB_POINTS if one.name == name)
    return known


NEEDS_THE_JOB = {
    ("1.20.5", "order"): "Kryo wrote the field byName, a Map with objects of Shop$Item",
}
"""By version and state: why only the job's own classes read some of its values."""


def _local_date(iso: str) -> Any:
    year, month, day = iso.rsplit("-", 2)
    return fv.value_of({"local_date": [int(year), int(month), int(day)]})


def _time_of_day(nanos: int) -> list[int]:
    seconds, nano = divmod(nanos, 10**9)
    return [seconds // 3600, seconds // 60 % 60, seconds % 60, nano]


def _local_time(nanos: int) -> Any:
    return fv.value_of({"local_time": _time_of_day(nanos)})


def _local_date_time(iso: str, nanos: int) -> Any:
    date = [int(number) for number in iso.rsplit("-", 2)]
    return fv.value_of({"local_date_time": date + _time_of_day(nanos)})


def _optional(java_class: str, text: str) -> objects.Some | None:
    """Return the value that Kryo wrote, known by its text; it is nothing but Optionals of text."""
    assert java_class == "java.util.Optional"
    return None if text == "Optional.empty" else objects.Some(text[len("Optional[") : -1])


def _array(component: str, items: list[Any]) -> Any:
    values = list(map(value_of, items))
    code = {"short": "h", "int": "i", "long": "q", "float": "f", "double": "d", "char": "H"}
    return array(code[component], values) if component in code else values


def _pairs(pairs: list[list[Any]]) -> Any:
    return fv._mapping([(value_of(key), value_of(value)) for key, value in pairs])


def _row(fields: list[tuple[str, Any]], row_kind: int = 0) -> Row:
    return Row([column(name, value) for name, value in fields], ROW_KINDS[row_kind])


def column(name: str, value: Any) -> Any:
    """Return the value of a column of SQL, of a type."""
    known = value_of(value)
    if known is None:
        return None
    if name == "DATE":
        return dt.date(1970, 1, 1) + dt.timedelta(known)
    if name.startswith("TIME("):
        return _local_time(known * 1_000_000)
    if "*PROCTIME*" in name:
        assert value == {"timestamp_data": [0, 0]}  # Flink's getter has the null in the row so
        return None
    if name.startswith("TIMESTAMP_LTZ") and isinstance(known, dt.datetime):
        return known.replace(tzinfo=dt.timezone.utc)
    return known


def _computation_state(item: Mapping[str, Any]) -> objects.ComputationState:
    names = ("currentStateName", "previousBufferEntry", "version", "startTimestamp")
    state, node, version, start = (value_of(item[name]) for name in names)
    previous, event = (value_of(item[name]) for name in ("previousTimestamp", "startEventID"))
    return objects.ComputationState(state, node, version, start, previous, event)


def _tagged_union(item: Mapping[str, Any]) -> objects.TaggedUnion:
    is_first = item["one"] is not None
    return objects.TaggedUnion(1 if is_first else 2, value_of(item["one" if is_first else "two"]))


def _in_order(cls: Callable[..., Any], *names: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda item: cls(*(value_of(item[name]) for name in names))


OBJECTS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "BufferEntry": _in_order(objects.BufferEntry, "element", "hasBeenJoined"),
    "ComputationState": _computation_state,
    "DeweyNumber": lambda item: objects.DeweyNumber(tuple(value_of(item["deweyNumber"]))),
    "EventId": _in_order(objects.EventId, "id", "timestamp"),
    "Lockable": _in_order(objects.Lockable, "refCounter", "element"),
    "NFAState": _in_order(objects.NFAState, "partialMatches", "completedMatches"),
    "NodeId": _in_order(objects.NodeId, "eventId", "pageName"),
    "SharedBufferEdge": _in_order(objects.SharedBufferEdge, "target", "deweyNumber"),
    "SharedBufferNode": _in_order(objects.SharedBufferNode, "edges"),
    "StreamRecord": lambda item: objects.StreamRecord(
        value_of(item["value"]), value_of(item["timestamp"]) if item["hasTimestamp"] else None
    ),
    "TaggedUnion": _tagged_union,
}
"""By the last name of a class of Flink's own."""

BY_TAG: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "array": lambda v: _array(v["array"], v["items"]),
    "array_data": lambda v: list(map(value_of, v["array_data"])),
    "big_decimal": lambda v: fv.value_of(dict(zip(("decimal", "scale"), v["big_decimal"]))),
    "big_integer": lambda v: int(v["big_integer"]),
    "class": lambda v: _optional(v["class"], v["text"]),
    "decimal": lambda v: Decimal(v["decimal"]),
    "enum": lambda v: v["name"],
    "left": lambda v: objects.Left(value_of(v["left"])),
    "list": lambda v: list(map(value_of, v["list"])),
    "local_date": lambda v: _local_date(v["local_date"]),
    "local_date_time": lambda v: _local_date_time(*v["local_date_time"]),
    "local_time": lambda v: _local_time(v["local_time"]),
    "map": lambda v: _pairs(v["map"]),
    "map_data": lambda v: _pairs(v["map_data"]),
    "object": lambda v: OBJECTS[re.split(r"[.$]", v["object"])[-1]](v["fields"]),
    "pojo": lambda v: objects.Pojo(
        v["pojo"], {name: value_of(value) for name, value in v["fields"].items()}
    ),
    "raw_value": lambda v: fv.Unknown(),
    "right": lambda v: objects.Right(value_of(v["right"])),
    "row_data": lambda v: Row(list(map(value_of, v["row_data"]))),
    "sorted_map": lambda v: _pairs(v["sorted_map"]),
    "timestamp_data": lambda v: fv.value_of({"timestamp": v["timestamp_data"]}),
    "ttl": lambda v: TtlValue(v["ttl"], value_of(v["value"])),
    "tuple": lambda v: tuple(map(value_of, v["tuple"])),
}
"""What has another tag than with `flink_values`, or has such in it."""


def value_of(value: Any) -> Any:
    """Return the value that the library is to give."""
    if not isinstance(value, dict):
        return value
    if "binary_row" in value:
        if "fields" not in value:
            return fv.Unknown(bytes.fromhex(value["binary_row"]))
        return _row(value["fields"], value["row_kind"])
    for tag in value:
        if tag in BY_TAG:
            return BY_TAG[tag](value)
    return fv.value_of(value)


@dataclass(frozen=True)
class TrueEntry:
    """An entry as Flink read it; `place` tells it from the others of its operator."""

    place: tuple[object, ...]
    value: Any
    last_access: int | None


def place_of(entry: StateEntry) -> tuple[object, ...]:
    """Return the place of an entry, which no other of the operator has."""
    return _place(
        entry.state,
        entry.kind,
        entry.key_group,
        entry.subtask,
        entry.timestamp,
        (entry.key, entry.namespace, entry.user_key),
    )


def _place(*parts: Any) -> tuple[object, ...]:
    *known, values = parts
    return *known, *map(shown, values)


def shown(value: Any) -> str:
    """Return a value in words, in which two that are not the same are two."""
    if isinstance(value, (objects.Pojo, dict)):
        item = value.java_class if isinstance(value, objects.Pojo) else "dict"
        return f"{item}{sorted((shown(name), shown(value[name])) for name in value)}"
    if isinstance(value, (set, frozenset)):
        return f"set{sorted(map(shown, value))}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}{getattr(value, 'row_kind', '')}{[*map(shown, value)]}"
    return repr(value)


def rows_in(value: Any) -> Iterator[bytes]:
    """Yield the rows in a value of CEP of which only the bytes are told."""
    if isinstance(value, fv.Unknown) and value.row is not None:
        yield value.row
    elif isinstance(value, objects.Lockable):
        yield from rows_in(value.element)


def without_key_group(place: tuple[object, ...]) -> tuple[object, ...]:
    """Return a place that is the same at any max parallelism, on any subtask."""
    state, kind, _, _, *rest = place
    return state, kind, *rest


def differing(
    one: JobPoint,
    operator: Operator,
    entries: Iterable[StateEntry],
    expected: Iterable[TrueEntry],
    is_moved: bool = False,
) -> list[object]:
    """Return the entries of an operator that Flink did not read, or not so.

    Key groups and subtasks count but where a point was rewritten, so that it `is_moved`.
    """
    states = {state.name: state for state in operator.states}
    as_compared = without_key_group if is_moved else tuple
    seen: dict[tuple[object, ...], StateEntry] = {}
    wrong: list[object] = []
    for entry in entries:
        if seen.setdefault(as_compared(place_of(entry)), entry) is not entry:
            wrong.append((entry, "twice"))
    for true in expected:
        entry_or_none = seen.pop(as_compared(true.place), None)
        if entry_or_none is None or entry_or_none.last_access != true.last_access:
            wrong.append((entry_or_none, true))
            continue
        entry = entry_or_none
        serializer = states[entry.state].value_serializer
        is_same = fv.same(entry.value, true.value)
        if isinstance(entry.value, bytes):
            is_same = is_same or (one.flink, entry.state) in NEEDS_THE_JOB
        for row in rows_in(true.value):  # Flink's side tells their bytes alone
            assert serializer is not None
            is_same = is_same and row in serializer.encode(entry.value)
        if not is_same:
            wrong.append((entry, true))
    return wrong + list(seen.values())


@lru_cache
def true_entries(file: str) -> dict[str, list[TrueEntry]]:
    """Return by operator the entries that Flink read."""
    entries: dict[str, list[TrueEntry]] = {}
    for line in JOB_POINTS[0].lines(file):
        entries.setdefault(line["operator"], []).append(_true_entry(line))
    return entries


def _part(line: Mapping[str, Any], name: str) -> Any:
    value = line.get(name)
    if value is not None and f"{name}_fields" in line:
        return _row(line[f"{name}_fields"], line.get(f"{name}_row_kind", 0))
    return value_of(value)


def _true_entry(line: Mapping[str, Any]) -> TrueEntry:
    place = _place(
        line["state"],
        line["kind"],
        line["key_group"],
        line["subtask"],
        line.get("timestamp"),
        [_part(line, name) for name in ("key", "namespace", "user_key")],
    )
    return TrueEntry(place, _part(line, "value"), line.get("ttl_timestamp"))
