"""The readers of objects of Kryo, after their class: a table by the names of known classes.

A name in the data never makes an object of a class: this table is all there is.
"""

from __future__ import annotations

import datetime as dt
import uuid
from array import array
from decimal import Decimal
from typing import Any

from keygroups._serializers.base import UnreadableError
from keygroups._serializers.big_numbers import EXACT, to_decimal
from keygroups._serializers.collections import as_dict, as_set
from keygroups._serializers.jvm.kryo_input import Body, KryoInput
from keygroups._serializers.jvm.objects import JavaObject, read_java_value
from keygroups._serializers.jvm.time import as_datetime, as_local_date_time, millis_value
from keygroups._values.java_time import check_instant, check_local_date
from keygroups._values.java_values import (
    Instant,
    Left,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Right,
    Some,
)
from keygroups._values.kryo import (
    Calendar,
    Duration,
    Locale,
    MonthDay,
    OffsetDateTime,
    OffsetTime,
    Period,
    YearMonth,
    ZonedDateTime,
)
from keygroups._values.rows import ROW_KINDS, row_of_kind

_MAX_TUPLE = 25
_DATE_TIME = "java.time.LocalDateTime"
_OFFSET = "java.time.ZoneOffset"
_OBJECTS = "[Ljava.lang.Object;"


def _either(read_2: Body, read_5: Body) -> Body:
    return lambda kryo: read_5(kryo) if kryo.version == 5 else read_2(kryo)


# --- collections


def _immutable(kryo: KryoInput) -> list[Any]:
    if kryo.version == 2:
        raise UnreadableError("Flink 1 does not read its own lists and sets that are immutable")
    return kryo.elements(has_null_flag=False)


def _immutable_map(kryo: KryoInput) -> Any:
    if kryo.version == 2:
        raise UnreadableError("Flink 1 does not read its own maps that are immutable")
    return as_dict(kryo.pairs(may_be_null=False))


def _enum_set(kryo: KryoInput) -> Any:
    """Read a class, a count, and as many constants. Kryo: EnumSetSerializer."""
    name = kryo.class_name()
    if name is None:
        raise ValueError("a set of constants of no enum")
    return as_set([kryo.body(name) for _ in range(kryo.count())])


def _array_list(kryo: KryoInput) -> list[Any]:
    if kryo.version == 5:
        return kryo.elements()
    count = kryo.count()
    kryo.class_name()  # the class of the array's elements, which each element repeats
    return kryo.values(count)


def _bits(kryo: KryoInput) -> set[int]:
    if kryo.version == 2:
        # Flink 1.20.5 writes either order of bytes, and no byte tells which.
        raise UnreadableError("Flink 1 writes a BitSet in two ways")
    words = kryo.fixed_array("Q", kryo.count())
    return {
        64 * place + bit
        for place, word in enumerate(words)
        for bit in range(64)
        if word >> bit & 1
    }


def _optional(kryo: KryoInput) -> Some | None:
    name = kryo.class_name()
    return None if name is None else Some(kryo.object(name))


def _fixed_array(code: str) -> Body:
    return lambda kryo: array(code, kryo.fixed_array(code, kryo.count(1)))


def _boxed_array(component: str) -> Body:
    return lambda kryo: [kryo.object(component, True) for _ in range(kryo.count(1))]


# --- numbers


def _big_integer(kryo: KryoInput) -> int:
    count = kryo.count(1)
    if not count:
        raise ValueError("a BigInteger of no bytes")
    return int.from_bytes(kryo.take(count), "big", signed=True)


def _big_decimal(kryo: KryoInput) -> Decimal:
    unscaled = to_decimal(_big_integer(kryo))
    return unscaled.scaleb(-kryo.zigzag(), EXACT)


# --- dates and times


def _moment(seconds: int, nano: int) -> dt.datetime | Instant:
    return as_datetime(seconds, nano) or check_instant("Instant", Instant(seconds, nano))


def _duration(seconds: int, nano: int) -> dt.timedelta | Duration:
    if not 0 <= nano < 1_000_000_000:
        raise ValueError(f"{nano} nanoseconds of a second")
    if not nano % 1_000:
        try:
            return dt.timedelta(seconds=seconds, microseconds=nano // 1_000)
        except OverflowError:
            pass
    return Duration(seconds, nano)


def _local_date(year: int, month: int, day: int) -> dt.date | LocalDate:
    if dt.MINYEAR <= year <= dt.MAXYEAR:
        return dt.date(year, month, day)
    return check_local_date("LocalDate", LocalDate(year, month, day))


def _local_time(hour: int, minute: int, second: int, nano: int) -> dt.time | LocalTime:
    time = dt.time(hour, minute, second, nano // 1_000)
    return LocalTime(hour, minute, second, nano) if nano % 1_000 else time


def _timestamp(kryo: KryoInput) -> Any:
    millis = kryo.varlong()
    return _moment(millis // 1_000, kryo.varint())


def _date_5(kryo: KryoInput) -> Any:
    return _local_date(kryo.varint(), kryo.u8(), kryo.u8())


def _date_2(kryo: KryoInput) -> Any:
    day, month = kryo.fixed_array("h", 2)
    return _local_date(kryo.zigzag(), month, day)


def _time_5(kryo: KryoInput) -> Any:
    numbers: list[int] = []
    # The last number that is not 0 is inverted, and zeros after it are left out: 7:30 is 07 E1.
    while len(numbers) < 3 and (not numbers or numbers[-1] >= 0):
        numbers.append(kryo.i8())
    hour, minute, second = (max(number, ~number) for number in [*numbers, 0, 0][:3])
    nano = kryo.varint() if numbers[-1] >= 0 else 0
    return _local_time(hour, minute, second, nano)


def _time_2(kryo: KryoInput) -> Any:
    hour, minute, nano = kryo.i8(), kryo.i8(), kryo.zigzag()
    return _local_time(hour, minute, kryo.i8(), nano)


def _date_time_5(kryo: KryoInput) -> Any:
    return as_local_date_time(_date_5(kryo), _time_5(kryo))


def _date_time_2(kryo: KryoInput) -> Any:
    date = kryo.object_of("java.time.LocalDate", dt.date, LocalDate)
    return as_local_date_time(date, kryo.object_of("java.time.LocalTime", dt.time, LocalTime))


def _offset_5(kryo: KryoInput) -> int:
    quarters = kryo.i8()
    return kryo.fixed("i") if quarters == 127 else quarters * 900


def _offset_date_time_2(kryo: KryoInput) -> OffsetDateTime:
    local = kryo.object_of(_DATE_TIME, dt.datetime, LocalDateTime)
    return OffsetDateTime(local, kryo.object_of(_OFFSET, int))


def _offset_time_2(kryo: KryoInput) -> OffsetTime:
    offset = kryo.object_of(_OFFSET, int)
    return OffsetTime(kryo.object_of("java.time.LocalTime", dt.time, LocalTime), offset)


def _zoned_2(kryo: KryoInput) -> ZonedDateTime:
    local = kryo.object_of(_DATE_TIME, dt.datetime, LocalDateTime)
    offset = kryo.object_of(_OFFSET, int)
    zone = kryo.value()
    if isinstance(zone, int):
        return ZonedDateTime(local, offset, _offset_id(zone))
    if not isinstance(zone, str):
        raise ValueError("a ZonedDateTime without a zone")
    return ZonedDateTime(local, offset, zone)


def _offset_id(offset: int) -> str:
    """Return the text of a ZoneOffset.

    JDK: ZoneOffset.getId.
    """
    if not offset:
        return "Z"
    minutes, seconds = divmod(abs(offset), 60)
    text = f"{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def _calendar(kryo: KryoInput) -> Calendar:
    zone = kryo.text()
    return Calendar(
        millis_value(kryo.varlong()),
        zone,
        kryo.boolean(),
        kryo.varint(),
        kryo.varint(),
        millis_value(kryo.zigzag_long()),
    )


# --- others


def _uuid(kryo: KryoInput) -> uuid.UUID:
    if kryo.version == 5:
        high, low = kryo.fixed_array("Q", 2)
    else:
        high, low = kryo.zigzag_long() & 2**64 - 1, kryo.zigzag_long() & 2**64 - 1
    return uuid.UUID(int=high << 64 | low)


def _locale_2(kryo: KryoInput) -> Locale:
    made, kryo.pos = read_java_value(kryo.data, kryo.pos)
    names = ("language", "country", "variant", "script", "extensions")
    fields = [made.fields.get(name) for name in names] if isinstance(made, JavaObject) else [None]
    if not all(isinstance(field, str) for field in fields):
        raise ValueError("a Java object stream that has no Locale")
    return Locale(*fields)


def _pattern(kryo: KryoInput) -> Any:
    text = kryo.text()
    flags = kryo.varint() if kryo.version == 5 else 0
    return (text, flags) if flags else text


def _url(kryo: KryoInput) -> str:
    if kryo.version == 2:
        raise UnreadableError("Flink 1 does not read its own URLs")
    return kryo.text()


def _tuple_of(arity: int) -> Body:
    order = sorted(range(arity), key=lambda place: f"f{place}")

    def read_tuple(kryo: KryoInput) -> tuple[Any, ...]:
        fields = {place: kryo.value() for place in order}
        return tuple(fields[place] for place in range(arity))

    return read_tuple


def _row(kryo: KryoInput) -> Any:
    by_name = kryo.class_name()
    if by_name is not None:
        raise UnreadableError("a Row that has names")
    name = kryo.class_name()
    if name != _OBJECTS:
        raise ValueError("a Row without an array of fields")
    fields = kryo.object_of(name, list)
    if not kryo.boolean():
        raise ValueError("a Row without a kind")
    kind = kryo.varint() - 1
    if not 0 <= kind < len(ROW_KINDS):
        raise ValueError(f"row kind {kind}")
    if kryo.class_name() is not None:
        raise UnreadableError("a Row that has names of positions")
    return row_of_kind(fields, kind)


def _side(cls: type[Left] | type[Right], other: str) -> Body:
    def read_side(kryo: KryoInput) -> Left | Right:
        kryo.object(other)  # the other side, an object that Flink keeps to use it again
        return cls(kryo.value())

    return read_side


_EITHER = "org.apache.flink.types.Either$"
_LISTS = ["ArrayList", "LinkedList", "ArrayDeque", "Vector", "Stack"]

BODIES: dict[str, Body] = {
    "java.lang.Integer": KryoInput.zigzag,
    "java.lang.Long": KryoInput.zigzag_long,
    "java.lang.Short": lambda kryo: kryo.fixed("h"),
    "java.lang.Byte": KryoInput.i8,
    "java.lang.Character": lambda kryo: chr(kryo.fixed("H")),
    "java.lang.Float": lambda kryo: kryo.fixed("f"),
    "java.lang.Double": lambda kryo: kryo.fixed("d"),
    "java.lang.Boolean": KryoInput.boolean,
    "java.lang.String": KryoInput.string,
    "java.lang.StringBuilder": KryoInput.text,
    "java.lang.StringBuffer": KryoInput.text,
    "java.lang.Class": KryoInput.class_value,
    "java.math.BigInteger": _big_integer,
    "java.math.BigDecimal": _big_decimal,
    "java.util.concurrent.atomic.AtomicInteger": KryoInput.zigzag,
    "java.util.concurrent.atomic.AtomicLong": KryoInput.zigzag_long,
    **{f"java.util.{name}": KryoInput.elements for name in _LISTS},
    "java.util.Arrays$ArrayList": _array_list,
    "java.util.HashSet": lambda kryo: as_set(kryo.elements()),
    "java.util.LinkedHashSet": lambda kryo: as_set(kryo.elements()),
    "java.util.TreeSet": lambda kryo: as_set(kryo.elements(has_comparator=True)),
    "java.util.PriorityQueue": lambda kryo: kryo.elements(has_comparator=True),
    "java.util.ImmutableCollections$ListN": _immutable,
    "java.util.ImmutableCollections$List12": _immutable,
    "java.util.ImmutableCollections$SetN": lambda kryo: as_set(_immutable(kryo)),
    "java.util.ImmutableCollections$Set12": lambda kryo: as_set(_immutable(kryo)),
    "java.util.ImmutableCollections$MapN": _immutable_map,
    "java.util.ImmutableCollections$Map1": _immutable_map,
    "java.util.HashMap": lambda kryo: as_dict(kryo.pairs()),
    "java.util.LinkedHashMap": lambda kryo: as_dict(kryo.pairs()),
    "java.util.concurrent.ConcurrentHashMap": lambda kryo: as_dict(kryo.pairs()),
    "java.util.TreeMap": lambda kryo: as_dict(kryo.pairs(has_comparator=True)),
    "java.util.EnumMap": lambda kryo: as_dict(kryo.pairs()),
    "java.util.EnumSet": _enum_set,
    "java.util.JumboEnumSet": _enum_set,
    "java.util.RegularEnumSet": _enum_set,
    "java.util.AbstractMap$SimpleEntry": lambda kryo: (kryo.value(), kryo.value()),
    "java.util.Collections$EmptyList": lambda kryo: [],
    "java.util.Collections$EmptySet": lambda kryo: set(),
    "java.util.Collections$EmptyMap": lambda kryo: {},
    "java.util.Collections$SingletonList": lambda kryo: [kryo.value()],
    "java.util.Collections$SingletonSet": lambda kryo: as_set([kryo.value()]),
    "java.util.Collections$SingletonMap": lambda kryo: as_dict([(kryo.value(), kryo.value())]),
    "java.util.BitSet": _bits,
    "java.util.Optional": _optional,
    "[Z": lambda kryo: [kryo.boolean() for _ in range(kryo.count(1))],
    "[B": lambda kryo: kryo.take(kryo.count(1)),
    "[C": lambda kryo: array("H", kryo.fixed_array("H", kryo.count(1))),
    "[S": _fixed_array("h"),
    "[I": lambda kryo: array("i", [kryo.zigzag() for _ in range(kryo.count(1))]),
    "[J": lambda kryo: array("q", [kryo.zigzag_long() for _ in range(kryo.count(1))]),
    "[F": _fixed_array("f"),
    "[D": _fixed_array("d"),
    "[Ljava.lang.String;": _boxed_array("java.lang.String"),
    **{
        f"[Ljava.lang.{name};": _boxed_array(f"java.lang.{name}")
        for name in ["Integer", "Long", "Short", "Byte", "Character", "Float", "Double", "Boolean"]
    },
    _OBJECTS: lambda kryo: kryo.values(kryo.count(1)),
    "java.util.Date": lambda kryo: millis_value(kryo.varlong()),
    "java.sql.Date": lambda kryo: millis_value(kryo.varlong()),
    "java.sql.Time": lambda kryo: millis_value(kryo.varlong()),
    "java.sql.Timestamp": _timestamp,
    "java.util.GregorianCalendar": _calendar,
    "java.time.Instant": lambda kryo: _moment(*_seconds_and_nano(kryo)),
    "java.time.Duration": _either(
        lambda kryo: _duration(*_seconds_and_nano(kryo)),
        lambda kryo: _duration(kryo.fixed("q"), kryo.varint()),
    ),
    "java.time.LocalDate": _either(_date_2, _date_5),
    "java.time.LocalTime": _either(_time_2, _time_5),
    "java.time.LocalDateTime": _either(_date_time_2, _date_time_5),
    "java.time.OffsetDateTime": _either(
        _offset_date_time_2, lambda kryo: OffsetDateTime(_date_time_5(kryo), _offset_5(kryo))
    ),
    "java.time.OffsetTime": _either(
        _offset_time_2, lambda kryo: OffsetTime(_time_5(kryo), _offset_5(kryo))
    ),
    "java.time.ZonedDateTime": _either(
        _zoned_2, lambda kryo: ZonedDateTime(_date_time_5(kryo), None, kryo.text())
    ),
    "java.time.Period": _either(
        lambda kryo: Period(*[kryo.zigzag() for _ in range(3)][::-1]),
        lambda kryo: Period(kryo.varint(), kryo.varint(), kryo.varint()),
    ),
    "java.time.Year": _either(KryoInput.zigzag, KryoInput.varint),
    "java.time.YearMonth": _either(
        lambda kryo: YearMonth(*[kryo.zigzag(), kryo.zigzag()][::-1]),
        lambda kryo: YearMonth(kryo.varint(), kryo.u8()),
    ),
    "java.time.MonthDay": _either(
        lambda kryo: MonthDay(*[kryo.zigzag(), kryo.zigzag()][::-1]),
        lambda kryo: MonthDay(kryo.u8(), kryo.u8()),
    ),
    "java.time.ZoneOffset": _either(KryoInput.zigzag, _offset_5),
    "java.time.ZoneRegion": _either(
        lambda kryo: kryo.object_of("java.lang.String", str), KryoInput.text
    ),
    "java.util.UUID": _uuid,
    "java.util.Locale": _either(
        _locale_2, lambda kryo: Locale(kryo.text(), kryo.text(), kryo.text())
    ),
    "java.util.Currency": KryoInput.text,
    "sun.util.calendar.ZoneInfo": KryoInput.text,
    "java.net.URI": KryoInput.text,
    "java.net.URL": _url,
    "java.util.regex.Pattern": _pattern,
    **{
        f"org.apache.flink.api.java.tuple.Tuple{arity}": _tuple_of(arity)
        for arity in range(_MAX_TUPLE + 1)
    },
    "org.apache.flink.types.Row": _row,
    f"{_EITHER}Left": _side(Left, f"{_EITHER}Right"),
    f"{_EITHER}Right": _side(Right, f"{_EITHER}Left"),
}
"""Readers of objects by the name of their class."""


def _seconds_and_nano(kryo: KryoInput) -> tuple[int, int]:
    if kryo.version == 5:
        return kryo.varlong(), kryo.varint()
    nano = kryo.zigzag()
    return kryo.zigzag_long(), nano
