"""What Flink read, as its JSON of `tests/vectors` says it, in the values that the library gives.

Two values are `same` if they are of the same classes throughout: 1, 1.0 and True are not, nor are
two decimals of different scales, 0.0 and -0.0, or rows of different kinds.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from array import array
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from keygroups.savepoint import TimestampData
from keygroups.savepoint import values as objects
from keygroups.savepoint.values import Bitmap, GlobalWindow, Pojo, Row, TimeWindow, TtlValue
from support.bytes.real_savepoints import ROW_KINDS

EPOCH = dt.datetime(1970, 1, 1)
UTC = dt.timezone.utc


class AnyOrder(list[Any]):
    """What is a list because Python has no set or dict of it: its order tells nothing."""


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
    if isinstance(other, AnyOrder):
        rest = list(other) if isinstance(one, list) else []
        for value in one if isinstance(one, list) else ():
            rest = _without(rest, value)
        return isinstance(one, list) and len(one) == len(other) and not rest
    if isinstance(other, objects.Failure):  # its JSON has the message alone
        return (
            type(one) is objects.Failure
            and bool(one.java_class == other.java_class)
            and other.data in one.data
        )
    if type(one) is not type(other):
        return isinstance(other, Unknown) and other.accepts(one)
    if isinstance(one, float):
        return bool(one.hex() == other.hex())
    if isinstance(one, Decimal):
        return bool(one.as_tuple() == other.as_tuple())
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
        return bool(one.typecode == other.typecode and one.tobytes() == other.tobytes())
    if isinstance(one, Pojo):
        return one.java_class == other.java_class and same(one._asdict(), other._asdict())
    if hasattr(one, "__dataclass_fields__"):
        names = one.__dataclass_fields__
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def _without(values: list[Any], value: Any) -> list[Any]:
    """Return values without the first that is the same as one, if there is any."""
    for index, candidate in enumerate(values):
        if same(value, candidate):
            return values[:index] + values[index + 1 :]
    return values


def _floating(text: str) -> float:
    return float(text.replace("Infinity", "inf")) if "x" not in text else float.fromhex(text)


def as_instant(seconds: int, nanos: int) -> dt.datetime | objects.Instant:
    """Return a moment as a datetime in UTC, or the numbers where it is none."""
    moment = _moment(seconds, nanos)
    return objects.Instant(seconds, nanos) if moment is None else moment.replace(tzinfo=UTC)


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


def _local_date(numbers: list[int]) -> dt.date | objects.LocalDate:
    in_python = 1 <= numbers[0] <= 9999
    return dt.date(*numbers) if in_python else objects.LocalDate(*numbers)


def _local_time(numbers: list[int]) -> dt.time | objects.LocalTime:
    if numbers[3] % 1000:
        return objects.LocalTime(*numbers)
    hour, minute, second, nano = numbers
    return dt.time(hour, minute, second, nano // 1000)


def _local_date_time(numbers: list[int]) -> dt.datetime | objects.LocalDateTime:
    if numbers[6] % 1000 or not 1 <= numbers[0] <= 9999:
        return objects.LocalDateTime(*numbers)
    year, month, day, hour, minute, second, nano = numbers
    return dt.datetime(year, month, day, hour, minute, second, nano // 1000)


def local_value_of(value: Mapping[str, Any]) -> dt.date | dt.time | TimestampData:
    """Return a value of java.sql as PyFlink writes it: in the zone of the JVM, which was UTC."""
    if "sql_timestamp" in value:
        millis, nanos = value["sql_timestamp"]
        return _timestamp(millis, nanos % 1_000_000)
    [(tag, millis)] = value.items()
    moment = EPOCH + dt.timedelta(milliseconds=millis)
    return moment.date() if tag == "sql_date" else moment.time()


def frozen(value: Any) -> Any:
    """Return a value's hashable stand-in, for a set or as a key."""
    if isinstance(value, set):
        return frozenset(value)
    return value


def _mapping(pairs: list[tuple[Any, Any]]) -> Any:
    """A dict, or the pairs where Python cannot hash keys or takes two for one."""
    try:
        mapping = {frozen(key): value for key, value in pairs}
    except TypeError:
        return AnyOrder(pairs)
    return mapping if len(mapping) == len(pairs) else AnyOrder(pairs)


def _elements(elements: list[Any]) -> Any:
    """A set, or a list where Python cannot hash elements or takes two for one."""
    try:
        members = {frozen(element) for element in elements}
    except TypeError:
        return AnyOrder(elements)
    return members if len(members) == len(elements) else AnyOrder(elements)


_ARRAYS = {"short": "h", "int": "i", "long": "q", "float": "f", "double": "d", "char": "H"}


def _array(items: list[Any], component: str) -> Any:
    if component in ("float", "double"):
        return array(_ARRAYS[component], map(_floating, items))
    if component in _ARRAYS:
        return array(_ARRAYS[component], items)
    return list(map(value_of, items))  # boolean[] too


def _match(value: Mapping[str, Any]) -> objects.ComputationState:
    names = ("state", "node", "version", "start", "previous", "event")
    return objects.ComputationState(*(value_of(value.get(name)) for name in names))


def _decimal(unscaled: str, scale: int) -> Decimal:
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -scale))


def _holder(value: Mapping[str, Any]) -> objects.TransactionHolder:
    return objects.TransactionHolder(value_of(value["handle"]), value["start"])


def _option(value: list[Any]) -> objects.Some | None:
    return objects.Some(value_of(value[0])) if value else None


def _pairs(value: list[list[Any]]) -> list[tuple[Any, Any]]:
    return [(value_of(key), value_of(item)) for key, item in value]


def _try(value: Mapping[str, Any]) -> objects.Success | objects.Failure:
    if value["try"] == "success":
        return objects.Success(value_of(value["value"]))
    return objects.Failure(value["class"], value["message"].encode())


def _sql_value(logical_type: str, value: Any) -> Any:
    """Return the value of a logical type, of which Flink has dates and times as numbers."""
    made = value_of(value)
    if made is None:
        return None
    if logical_type.startswith("DATE"):
        in_python = -719_162 <= made <= 2_932_896
        return dt.date(1970, 1, 1) + dt.timedelta(made) if in_python else made
    if logical_type.startswith("TIME("):
        return (EPOCH + dt.timedelta(milliseconds=made)).time()
    if logical_type.startswith("TIMESTAMP_LTZ") and isinstance(made, dt.datetime):
        return made.replace(tzinfo=UTC)
    return made


def internal_value(value: Any) -> Any:
    """Return the value of SQL's internal classes for JSON of an external type."""
    if isinstance(value, dict) and "local_date_time" in value:
        year, month, day, hour, minute, second, nano = value["local_date_time"]
        moment = dt.datetime(year, month, day, hour, minute, second) - EPOCH
        return _timestamp((moment // dt.timedelta(seconds=1)) * 1000 + nano // 10**6, nano % 10**6)
    if isinstance(value, dict) and "local_date" in value:
        return (dt.date(*value["local_date"]) - dt.date(1970, 1, 1)).days
    if isinstance(value, dict) and "array" in value:
        return list(map(internal_value, value["array"]))
    if isinstance(value, dict) and "pojo" in value:
        return Row([internal_value(one) for one in value["fields"].values()])
    if isinstance(value, dict) and "row" in value:
        return Row(list(map(internal_value, value["row"])), ROW_KINDS[value["row_kind"]])
    return value_of(value)


# Kryo's values of classes that the JSON has in words: their toString().


def _calendar(millis: int, zone: str) -> objects.Calendar:
    """A GregorianCalendar as the JDK makes it in its locale without a country."""
    change = dt.datetime(1582, 10, 15, tzinfo=UTC)
    return objects.Calendar(_epoch_millis(millis), zone, True, 1, 1, change)


def _offset(text: str) -> int:
    if text == "Z":
        return 0
    hours, minutes, *rest = map(int, text[1:].split(":"))
    seconds = hours * 3600 + minutes * 60 + sum(rest)
    return -seconds if text[0] == "-" else seconds


def _time_in_words(text: str) -> Any:
    clock, _, fraction = text.partition(".")
    fields = [*map(int, clock.split(":")), 0][:3]
    return _local_time([*fields, int(fraction.ljust(9, "0"))])


def _date_time_in_words(text: str) -> Any:
    date, _, clock = text.partition("T")
    year, month, day = map(int, date.rsplit("-", 2))
    time = _time_in_words(clock)
    assert isinstance(time, dt.time)
    return dt.datetime.combine(dt.date(year, month, day), time)


def _with_offset(text: str) -> tuple[str, int | None]:
    """A time and its offset, which Flink 1 loses when it reads it."""
    if text.endswith("null"):
        return text[:-4], None
    [(rest, offset)] = re.findall(r"^(.*?)(Z|[+-]\d\d:\d\d(?::\d\d)?)$", text)
    return rest, _offset(offset)


def _zoned(text: str) -> objects.ZonedDateTime:
    rest, _, zone = text.rstrip("]").partition("[")
    local, offset = _with_offset(rest)
    return objects.ZonedDateTime(_date_time_in_words(local), offset, zone)


def _offset_date_time(text: str) -> objects.OffsetDateTime:
    local, offset = _with_offset(text)
    assert offset is not None
    return objects.OffsetDateTime(_date_time_in_words(local), offset)


def _offset_time(text: str) -> objects.OffsetTime:
    local, offset = _with_offset(text)
    assert offset is not None
    return objects.OffsetTime(_time_in_words(local), offset)


def _duration(text: str) -> dt.timedelta | objects.Duration:
    sizes = {"H": 3600, "M": 60, "S": 1}
    numbers = re.findall(r"(-?)(\d+)(?:\.(\d+))?([HMS])", text)
    nanos = 0
    for sign, whole, fraction, unit in numbers:
        number = int(whole) * sizes[unit] * 10**9 + int(fraction.ljust(9, "0"))
        nanos += -number if sign else number
    seconds, nano = divmod(nanos, 10**9)
    if nano % 1000 or abs(seconds) >= 86_400 * 10**9:
        return objects.Duration(seconds, nano)
    return dt.timedelta(seconds=seconds, microseconds=nano // 1000)


def _period(text: str) -> objects.Period:
    numbers = {unit: int(number) for number, unit in re.findall(r"(-?\d+)([YMD])", text)}
    return objects.Period(*(numbers.get(unit, 0) for unit in "YMD"))


def _locale(text: str) -> objects.Locale:
    language, *rest = ("" if text == "und" else text).split("-")
    script = rest.pop(0) if rest and len(rest[0]) == 4 else ""
    country, variant = [*rest, "", ""][:2]
    return objects.Locale(language, country, variant, script)


def _entry(text: str) -> tuple[str, int]:
    key, _, value = text.rpartition("=")
    return key, int(value)


_IN_WORDS: dict[str, Callable[[str], Any]] = {
    "java.time.Duration": _duration,
    "java.time.MonthDay": lambda text: objects.MonthDay(*map(int, text[2:].split("-"))),
    "java.time.OffsetDateTime": _offset_date_time,
    "java.time.OffsetTime": _offset_time,
    "java.time.Period": _period,
    "java.time.Year": int,
    "java.time.YearMonth": lambda text: objects.YearMonth(*map(int, text.rsplit("-", 1))),
    "java.time.ZoneOffset": _offset,
    "java.time.ZonedDateTime": _zoned,
    "java.util.AbstractMap$SimpleEntry": _entry,
    "java.util.Locale": _locale,
    "java.util.UUID": uuid.UUID,
    "java.util.concurrent.atomic.AtomicInteger": int,
    "java.util.concurrent.atomic.AtomicLong": int,
}
"""By the class: what makes the value of its text."""


Convert = Callable[[Mapping[str, Any]], Any]

BY_TAG: dict[str, Convert] = {
    "avro": lambda v: (v["avro"], value_of(v["value"])),
    "backlog": lambda v: objects.RecordAttributes(v["backlog"]),
    "bigint": lambda v: int(v["bigint"]),
    "binary_row": lambda v: bytes.fromhex(v["binary_row"]),
    "bitmap": lambda v: v["bitmap"],
    "buffer_entry": lambda v: objects.BufferEntry(value_of(v["buffer_entry"]), v["joined"]),
    "byte": lambda v: v["byte"],
    "bitset": lambda v: set(v["bitset"]),
    "bytes": lambda v: bytes.fromhex(v["bytes"]),
    "calendar": lambda v: _calendar(*v["calendar"]),
    "char": lambda v: chr(v["char"]),
    "count_window": lambda v: objects.CountWindow(v["count_window"]),
    "date": lambda v: _epoch_millis(v["date"]),
    "decimal": lambda v: _decimal(v["decimal"], v["scale"]),
    "dewey": lambda v: objects.DeweyNumber(tuple(v["dewey"])),
    "double": lambda v: _floating(v["double"]),
    "edge": lambda v: objects.SharedBufferEdge(*map(value_of, v["edge"])),
    "edges": lambda v: objects.SharedBufferNode(list(map(value_of, v["edges"]))),
    "either": lambda v: (objects.Left if v["either"] == "left" else objects.Right)(
        value_of(v["value"])
    ),
    "enum": lambda v: v["enum"],
    "event_id": lambda v: objects.EventId(*v["event_id"]),
    "float": lambda v: _floating(v["float"]),
    "global": lambda v: GlobalWindow(),
    "handle": _holder,
    "instant": lambda v: as_instant(*v["instant"]),
    "int": lambda v: v["int"],
    "latency": lambda v: objects.LatencyMarker(*v["latency"]),
    "list": lambda v: list(map(value_of, v["list"])),
    "local_date": lambda v: _local_date(v["local_date"]),
    "local_date_time": lambda v: _local_date_time(v["local_date_time"]),
    "local_time": lambda v: _local_time(v["local_time"]),
    "kryo": lambda v: (
        _IN_WORDS[v["kryo"]](v["value"])
        if isinstance(v["value"], str) and v["kryo"] in _IN_WORDS
        else value_of(v["value"])
    ),
    "lock": lambda v: objects.Lockable(v["lock"], value_of(v["value"])),
    "long": lambda v: v["long"],
    "map": lambda v: _mapping(_pairs(v["map"])),
    "meta_sqn": lambda v: objects.MetaSqnInfo(*v["meta_sqn"]),
    "node_id": lambda v: objects.NodeId(*map(value_of, v["node_id"])),
    "null_value": lambda v: None,
    "option": lambda v: _option(v["option"]),
    "optional": lambda v: _option(v["optional"]),
    "partial": lambda v: objects.NFAState(
        list(map(_match, v["partial"])), list(map(_match, v["completed"]))
    ),
    "pending": lambda v: objects.TwoPhaseCommitState(
        None if v["pending"] is None else _holder(v["pending"]),
        list(map(_holder, v["commit"])),
        value_of(v["context"]),
    ),
    "pojo": lambda v: Pojo(v["pojo"], {k: value_of(one) for k, one in v["fields"].items()}),
    "raw": lambda v: bytes.fromhex(v["raw"]),
    "row_sqn": lambda v: objects.RowSqnInfo(*v["row_sqn"]),
    "set": lambda v: _elements(list(map(value_of, v["set"]))),
    "short": lambda v: v["short"],
    "sql_array": lambda v: [_sql_value(v["of"], one) for one in v["sql_array"]],
    "sql_date": lambda v: _epoch_millis(v["sql_date"]),
    "sql_map": lambda v: _mapping(
        [tuple(map(_sql_value, v["of"], pair)) for pair in v["sql_map"]]
    ),
    "sql_time": lambda v: _epoch_millis(v["sql_time"]),
    "sql_timestamp": lambda v: as_instant(v["sql_timestamp"][0] // 1000, v["sql_timestamp"][1]),
    "status": lambda v: objects.WatermarkStatus(v["status"]),
    "timer": lambda v: (v["timer"], value_of(v["key"]), value_of(v["namespace"])),
    "timestamp": lambda v: _timestamp(*v["timestamp"]),
    "try": _try,
    "ttl": lambda v: TtlValue(v["ttl"], value_of(v["value"])),
    "tuple": lambda v: tuple(map(value_of, v["tuple"])),
    "union": lambda v: objects.TaggedUnion(v["union"], value_of(v["value"])),
    "unit": lambda v: (),
    "variant": lambda v: objects.Variant(
        bytes.fromhex(v["variant"]), bytes.fromhex(v["metadata"])
    ),
    "void": lambda v: None,
    "watermark": lambda v: objects.Watermark(v["watermark"]),
    "window": lambda v: TimeWindow(*v["window"]),
    "window_key": lambda v: objects.WindowKey(v["window_key"], value_of(v["key"])),
}
"""By the tag of a JSON object: what makes the value of it."""


def _with_two_tags(value: Mapping[str, Any]) -> Any:
    """Return the value of an object that has a tag of others too, or of none alone."""
    if "array" in value:
        return _array(value["array"], value["of"])
    if "sql_row" in value:
        return Row([_sql_value(*one) for one in value["sql_row"]], ROW_KINDS[value["row_kind"]])
    if "row" in value:
        return Row([value_of(one) for one in value["row"]], ROW_KINDS[value["row_kind"]])
    if "node" in value and "sqn" in value:
        return objects.Node(value_of(value["node"]), *value["sqn"])
    if "record" in value and "fields" in value:
        return {name: value_of(one) for name, one in value["fields"].items()}
    if "record" in value:
        return objects.StreamRecord(value_of(value["record"]), value.get("timestamp"))
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
