"""What Flink read, as its JSON of `tests/vectors` says it, in the values that the library gives.

Two values are `same` if they are of the same classes throughout: 1, 1.0 and True are not, nor are
two decimals of different scales, 0.0 and -0.0, or rows of different kinds.
"""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from keygroups._values import cep, java_values, sql, streaming
from keygroups._values.bitmaps import Bitmap
from keygroups._values.java_values import Pojo
from keygroups._values.rows import ROW_KINDS, GlobalWindow, Row, TimeWindow, TtlValue
from keygroups.savepoint import TimestampData

EPOCH = dt.datetime(1970, 1, 1)
UTC = dt.timezone.utc


class Unknown:
    """A value of which Flink's side tells nothing, or only the bytes of a SQL row.

    A value is the `same` as this if it is bytes, or a row of the kind in the bytes.
    """

    def __init__(self, row: bytes | None = None) -> None:
        self.row = row

    def accepts(self, value: Any) -> bool:
        """Whether this may be a value."""
        if self.row is None:
            return isinstance(value, bytes)
        return isinstance(value, Row) and ROW_KINDS[self.row[0]] == value.row_kind


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of the same classes throughout; a bitmap is its list."""
    if isinstance(one, Bitmap):
        one = list(one)
    if isinstance(other, Bitmap):
        other = list(other)
    if type(one) is not type(other):
        return isinstance(other, Unknown) and other.accepts(one)
    if isinstance(one, float):
        return one.hex() == other.hex()
    if isinstance(one, Decimal):
        return one.as_tuple() == other.as_tuple()
    if isinstance(one, (list, tuple)):
        if isinstance(one, Row) and one.row_kind != other.row_kind:
            return False
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            any(same(key, key2) and same(value, value2) for key2, value2 in other.items())
            for key, value in one.items()
        )
    if isinstance(one, (set, frozenset)):
        return len(one) == len(other) and all(any(same(a, b) for b in other) for a in one)
    if isinstance(one, array):
        return one.typecode == other.typecode and one.tobytes() == other.tobytes()
    if isinstance(one, Pojo):
        return one.java_class == other.java_class and same(dict(one), dict(other))
    if hasattr(one, "__dataclass_fields__"):
        names = one.__dataclass_fields__
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def _floating(text: str) -> float:
    return float(text.replace("Infinity", "inf")) if "x" not in text else float.fromhex(text)


def as_instant(seconds: int, nanos: int) -> dt.datetime | java_values.Instant:
    """Return a moment as a datetime in UTC, or the numbers where it is none."""
    moment = _moment(seconds, nanos)
    return java_values.Instant(seconds, nanos) if moment is None else moment.replace(tzinfo=UTC)


def _moment(seconds: int, nanos: int) -> dt.datetime | None:
    if nanos % 1000:
        return None
    try:
        return EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        return None


def _epoch_millis(millis: int) -> dt.datetime | int:
    moment = _moment(millis // 1000, millis % 1000 * 1_000_000)
    return millis if moment is None else moment.replace(tzinfo=UTC)


def _timestamp(millis: int, nanos: int) -> dt.datetime | TimestampData:
    moment = _moment(millis // 1000, millis % 1000 * 1_000_000 + nanos)
    return TimestampData(millis, nanos) if moment is None else moment


def _local_date(numbers: list[int]) -> dt.date | java_values.LocalDate:
    in_python = 1 <= numbers[0] <= 9999
    return dt.date(*numbers) if in_python else java_values.LocalDate(*numbers)


def _local_time(numbers: list[int]) -> dt.time | java_values.LocalTime:
    if numbers[3] % 1000:
        return java_values.LocalTime(*numbers)
    return dt.time(*numbers[:3], numbers[3] // 1000)


def _local_date_time(numbers: list[int]) -> dt.datetime | java_values.LocalDateTime:
    if numbers[6] % 1000 or not 1 <= numbers[0] <= 9999:
        return java_values.LocalDateTime(*numbers)
    return dt.datetime(*numbers[:6], numbers[6] // 1000)


def local_value_of(value: Mapping[str, Any]) -> dt.date | dt.time | TimestampData:
    """Return a value of java.sql as PyFlink writes it: in the zone of the JVM, which was UTC."""
    if "sql_timestamp" in value:
        millis, nanos = value["sql_timestamp"]
        return _timestamp(millis, nanos % 1_000_000)
    [(tag, millis)] = value.items()
    moment = EPOCH + dt.timedelta(milliseconds=millis)
    return moment.date() if tag == "sql_date" else moment.time()


def frozen(value: Any) -> Any:
    """Return what stands for a value where it is hashed: in a set or as a key."""
    if isinstance(value, set):
        return frozenset(value)
    return value


def _mapping(pairs: list[tuple[Any, Any]]) -> Any:
    """A dict, or the pairs where Python cannot hash keys or takes two for one."""
    try:
        mapping = {frozen(key): value for key, value in pairs}
    except TypeError:
        return pairs
    return mapping if len(mapping) == len(pairs) else pairs


def _elements(elements: list[Any]) -> Any:
    """A set, or a list where Python cannot hash elements or takes two for one."""
    try:
        members = {frozen(element) for element in elements}
    except TypeError:
        return elements
    return members if len(members) == len(elements) else elements


_ARRAYS = {"short": "h", "int": "i", "long": "q", "float": "f", "double": "d", "char": "H"}


def _array(items: list[Any], component: str) -> Any:
    if component in ("float", "double"):
        return array(_ARRAYS[component], map(_floating, items))
    if component in _ARRAYS:
        return array(_ARRAYS[component], items)
    return list(map(value_of, items))  # boolean[] too


def _match(value: Mapping[str, Any]) -> cep.ComputationState:
    return cep.ComputationState(
        value["state"],
        value_of(value["node"]),
        value_of(value["version"]),
        value["start"],
        value.get("previous"),
        value_of(value["event"]),
    )


def _decimal(unscaled: str, scale: int) -> Decimal:
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -scale))


def _holder(value: Mapping[str, Any]) -> streaming.TransactionHolder:
    return streaming.TransactionHolder(value_of(value["handle"]), value["start"])


def _option(value: list[Any]) -> java_values.Some | None:
    return java_values.Some(value_of(value[0])) if value else None


def _pairs(value: list[list[Any]]) -> list[tuple[Any, Any]]:
    return [(value_of(key), value_of(of)) for key, of in value]


Convert = Callable[[Mapping[str, Any]], Any]

BY_TAG: dict[str, Convert] = {
    "avro": lambda v: (v["avro"], value_of(v["value"])),
    "backlog": lambda v: streaming.RecordAttributes(v["backlog"]),
    "bigint": lambda v: int(v["bigint"]),
    "bitmap": lambda v: v["bitmap"],
    "buffer_entry": lambda v: streaming.BufferEntry(value_of(v["buffer_entry"]), v["joined"]),
    "byte": lambda v: v["byte"],
    "bytes": lambda v: bytes.fromhex(v["bytes"]),
    "char": lambda v: chr(v["char"]),
    "count_window": lambda v: sql.CountWindow(v["count_window"]),
    "date": lambda v: _epoch_millis(v["date"]),
    "decimal": lambda v: _decimal(v["decimal"], v["scale"]),
    "dewey": lambda v: cep.DeweyNumber(tuple(v["dewey"])),
    "double": lambda v: _floating(v["double"]),
    "edge": lambda v: cep.SharedBufferEdge(*map(value_of, v["edge"])),
    "edges": lambda v: cep.SharedBufferNode(list(map(value_of, v["edges"]))),
    "either": lambda v: (java_values.Left if v["either"] == "left" else java_values.Right)(
        value_of(v["value"])
    ),
    "enum": lambda v: v["enum"],
    "event_id": lambda v: cep.EventId(*v["event_id"]),
    "float": lambda v: _floating(v["float"]),
    "global": lambda v: GlobalWindow(),
    "handle": _holder,
    "instant": lambda v: as_instant(*v["instant"]),
    "int": lambda v: v["int"],
    "latency": lambda v: streaming.LatencyMarker(*v["latency"]),
    "list": lambda v: list(map(value_of, v["list"])),
    "local_date": lambda v: _local_date(v["local_date"]),
    "local_date_time": lambda v: _local_date_time(v["local_date_time"]),
    "local_time": lambda v: _local_time(v["local_time"]),
    "lock": lambda v: cep.Lockable(v["lock"], value_of(v["value"])),
    "long": lambda v: v["long"],
    "map": lambda v: _mapping(_pairs(v["map"])),
    "meta_sqn": lambda v: sql.MetaSqnInfo(*v["meta_sqn"]),
    "node_id": lambda v: cep.NodeId(*map(value_of, v["node_id"])),
    "null_value": lambda v: None,
    "option": lambda v: _option(v["option"]),
    "optional": lambda v: _option(v["optional"]),
    "partial": lambda v: cep.NFAState(
        list(map(_match, v["partial"])), list(map(_match, v["completed"]))
    ),
    "pending": lambda v: streaming.TwoPhaseCommitState(
        None if v["pending"] is None else _holder(v["pending"]),
        list(map(_holder, v["commit"])),
        value_of(v["context"]),
    ),
    "pojo": lambda v: Pojo(v["pojo"], {k: value_of(one) for k, one in v["fields"].items()}),
    "raw": lambda v: bytes.fromhex(v["raw"]),
    "row_sqn": lambda v: sql.RowSqnInfo(*v["row_sqn"]),
    "set": lambda v: _elements(list(map(value_of, v["set"]))),
    "short": lambda v: v["short"],
    "sql_array": lambda v: list(map(value_of, v["sql_array"])),
    "sql_date": lambda v: _epoch_millis(v["sql_date"]),
    "sql_map": lambda v: _mapping(_pairs(v["sql_map"])),
    "sql_time": lambda v: _epoch_millis(v["sql_time"]),
    "sql_timestamp": lambda v: as_instant(v["sql_timestamp"][0] // 1000, v["sql_timestamp"][1]),
    "status": lambda v: streaming.WatermarkStatus(v["status"]),
    "timer": lambda v: (v["timer"], value_of(v["key"]), value_of(v["namespace"])),
    "timestamp": lambda v: _timestamp(*v["timestamp"]),
    "ttl": lambda v: TtlValue(v["ttl"], value_of(v["value"])),
    "tuple": lambda v: tuple(map(value_of, v["tuple"])),
    "union": lambda v: streaming.TaggedUnion(v["union"], value_of(v["value"])),
    "unit": lambda v: (),
    "variant": lambda v: java_values.Variant(
        bytes.fromhex(v["variant"]), bytes.fromhex(v["metadata"])
    ),
    "void": lambda v: None,
    "watermark": lambda v: streaming.Watermark(v["watermark"]),
    "window": lambda v: TimeWindow(*v["window"]),
    "window_key": lambda v: sql.WindowKey(v["window_key"], value_of(v["key"])),
}
"""By the tag of a JSON object: what makes the value of it."""


def _with_two_tags(value: Mapping[str, Any]) -> Any:
    """Return the value of an object that has a tag of others too, or of none alone."""
    if "array" in value:
        return _array(value["array"], value["of"])
    if "sql_row" in value:
        return Row([value_of(one) for _, one in value["sql_row"]], ROW_KINDS[value["row_kind"]])
    if "row" in value:
        return Row([value_of(one) for one in value["row"]], ROW_KINDS[value["row_kind"]])
    if "node" in value and "sqn" in value:
        return sql.Node(value_of(value["node"]), *value["sqn"])
    if "record" in value and "fields" in value:
        return {name: value_of(one) for name, one in value["fields"].items()}
    if "record" in value:
        return streaming.StreamRecord(value_of(value["record"]), value.get("timestamp"))
    return None


def value_of(value: Any) -> Any:
    """Return the value that the library is to give."""
    if not isinstance(value, dict):
        return value
    known = _with_two_tags(value)
    if known is not None:
        return known
    [tag] = [name for name in value if name in BY_TAG][:1]
    return BY_TAG[tag](value)
