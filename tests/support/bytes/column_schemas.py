"""Types of values as Hypothesis draws them, nested and with nulls, and values of each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import strategies as st

from keygroups.logical_types import LogicalType, parse_logical_type
from keygroups.savepoint.values import Left, Pojo, Right, Row, Some, TtlValue
from keygroups.state_keys import Serializer
from support.inside import serializers
from support.inside.serializers import BigDecSerializer

TEXTS = st.one_of(
    st.text(st.characters(max_codepoint=0x7F), max_size=9),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    st.sampled_from(["x" * 126, "y" * 127, "z" * 300, "é" * 200, "😀" * 70]),
)
FLOATS = st.floats(width=32, allow_nan=False)
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
MILLIS = MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def in_utc(moments: st.SearchStrategy[dt.datetime]) -> st.SearchStrategy[dt.datetime]:
    return moments.map(lambda moment: moment.replace(tzinfo=dt.timezone.utc))


class Type(NamedTuple):
    """A serializer, and a strategy of its values."""

    serializer: Serializer
    values: st.SearchStrategy[Any]

    def __repr__(self) -> str:
        return repr(self.serializer)


SCALARS = [
    Type(serializers.BOOLEAN, st.booleans()),
    Type(serializers.BYTE, whole(8)),
    Type(serializers.SHORT, whole(16)),
    Type(serializers.INT, whole(32)),
    Type(serializers.LONG, whole(64)),
    Type(serializers.DOUBLE, st.floats(allow_nan=False)),
    Type(serializers.CHAR, st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])),
    Type(serializers.STRING, st.none() | TEXTS),
    Type(serializers.SQL_STRING, TEXTS),
    Type(serializers.BYTES, st.binary(max_size=20)),
    Type(serializers.NULL, st.none()),
    Type(serializers.InstantSerializer(), st.none() | in_utc(MOMENTS)),
    Type(serializers.SqlTimestampSerializer(), in_utc(MOMENTS)),
    Type(serializers.DateSerializer(), st.none() | in_utc(MILLIS)),
    Type(serializers.LocalDateSerializer(), st.none() | st.dates()),
    Type(serializers.LocalTimeSerializer(), st.none() | st.times()),
    Type(serializers.LocalDateTimeSerializer(), st.none() | MOMENTS),
    Type(serializers.EnumSerializer("a.E", ("A", "B", "É")), st.sampled_from(["A", "B", "É"])),
    Type(
        BigDecSerializer(),
        st.none()
        | st.decimals(allow_nan=False, allow_infinity=False).map(
            lambda number: number if number else Decimal(0)
        ),
    ),
    Type(serializers.StringArraySerializer(), st.lists(st.none() | TEXTS, max_size=4)),
    Type(serializers.BooleanPrimitiveArraySerializer(), st.lists(st.booleans(), max_size=4)),
]
KEYS = [one for one in SCALARS if one.serializer in (serializers.LONG, serializers.SHORT)]
KEYS += [
    Type(serializers.SQL_STRING, TEXTS),
    Type(serializers.DOUBLE, st.floats(allow_nan=False, min_value=0.5)),
]


def pojo(parts: list[Type]) -> Type:
    names = [f"f{number}" for number in range(len(parts))]
    serializer = serializers.PojoSerializer("a.P", names, [part.serializer for part in parts])
    fields = st.fixed_dictionaries(
        {name: st.none() | part.values for name, part in zip(names, parts)}
    )
    return Type(serializer, st.none() | fields.map(lambda values: Pojo("a.P", values)))


def tuple_type(parts: list[Type]) -> Type:
    serializer = serializers.TupleSerializer([part.serializer for part in parts])
    return Type(serializer, st.tuples(*(part.values for part in parts)))


def row(parts: list[Type]) -> Type:
    serializer = serializers.RowSerializer([part.serializer for part in parts])
    values = st.tuples(*(st.none() | part.values for part in parts))
    return Type(serializer, st.builds(Row, values, KINDS))


KINDS = st.sampled_from(["+I", "+I", "-U", "+U", "-D"])


def old_row(parts: list[Type]) -> Type:
    """A row of Flink before it had kinds."""
    made = row(parts)
    serializer = serializers.RowSerializer(made.serializer.parts, has_row_kind=False)
    return Type(serializer, made.values.map(lambda values: Row(tuple(values))))


def list_type(element: Type) -> Type:
    serializer = serializers.ListSerializer(element.serializer)
    return Type(serializer, st.lists(element.values, max_size=4))


def array_type(element: Type) -> Type:
    serializer = serializers.GenericArraySerializer("a.E", element.serializer)
    return Type(serializer, st.lists(st.none() | element.values, max_size=4))


def map_type(key: Type, value: Type) -> Type:
    serializer = serializers.MapSerializer(key.serializer, value.serializer)
    return Type(serializer, st.dictionaries(key.values, st.none() | value.values, max_size=4))


def nullable(part: Type) -> Type:
    return Type(serializers.NullableSerializer(part.serializer), st.none() | part.values)


def padded(part: Type) -> Type:
    size = part.serializer.size or 0
    return Type(serializers.NullableSerializer(part.serializer, size), st.none() | part.values)


def ttl(part: Type) -> Type:
    values = st.builds(TtlValue, whole(64), part.values)
    return Type(serializers.TtlSerializer(part.serializer), values)


def either(left: Type, right: Type) -> Type:
    serializer = serializers.EitherSerializer(left.serializer, right.serializer)
    return Type(serializer, left.values.map(Left) | right.values.map(Right))


def option(part: Type) -> Type:
    values = part.values.filter(lambda value: value is not None).map(Some)
    return Type(serializers.OptionSerializer(part.serializer), st.none() | values)


def _sized(drawn: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return drawn.filter(lambda one: one.serializer.size)


def compound(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    """Return types with parts of some others."""
    fields = st.lists(inner, min_size=1, max_size=4)
    some = inner.filter(lambda one: one.serializer is not serializers.NULL)
    return st.one_of(
        fields.map(pojo),
        fields.map(tuple_type),
        fields.map(row),
        fields.map(old_row),
        inner.map(list_type),
        inner.map(array_type),
        st.builds(map_type, st.sampled_from(KEYS), inner),
        inner.map(nullable),
        _sized(inner).map(padded),
        inner.map(ttl),
        st.builds(either, some, some),
        some.map(option),
    )


# --- Flink SQL ---------------------------------------------------------------------------


def unscaled(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(
        lambda number: Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))
    )


SQL: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": whole(8),
    "SMALLINT": whole(16),
    "INT": whole(32),
    "BIGINT": whole(64),
    "FLOAT": FLOATS,
    "DOUBLE": st.floats(allow_nan=False),
    "STRING": TEXTS,
    "BYTES": st.binary(max_size=20),
    "DECIMAL(10, 2)": unscaled(10, 2),
    "DECIMAL(18, 18)": unscaled(18, 18),
    "DECIMAL(19, 0)": unscaled(19, 0),
    "DECIMAL(38, 10)": unscaled(38, 10),
    "DATE": st.dates(),
    "TIME(3)": st.times().map(
        lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
    ),
    "TIMESTAMP(3)": MILLIS,
    "TIMESTAMP(6)": MOMENTS,
    "TIMESTAMP(9)": MOMENTS,
    "TIMESTAMP_LTZ(3)": in_utc(MILLIS),
    "TIMESTAMP_LTZ(6)": in_utc(MOMENTS),
}


class SqlType(NamedTuple):
    """A logical type, and a strategy of its values."""

    field: LogicalType
    values: st.SearchStrategy[Any]

    def __repr__(self) -> str:
        return str(self.field)


def sql_row(parts: list[SqlType]) -> SqlType:
    values = st.tuples(*(st.none() | part.values for part in parts))
    field = LogicalType("ROW", fields=tuple(part.field for part in parts))
    return SqlType(field, st.builds(Row, values, KINDS))


def sql_array(element: SqlType) -> SqlType:
    values = st.lists(st.none() | element.values, max_size=40)
    return SqlType(LogicalType("ARRAY", fields=(element.field,)), values)


def sql_map(key: SqlType, value: SqlType) -> SqlType:
    values = st.dictionaries(key.values, st.none() | value.values, max_size=4)
    return SqlType(LogicalType("MAP", fields=(key.field, value.field)), values)


_SQL_SCALARS = [SqlType(parse_logical_type(text), values) for text, values in SQL.items()]
_SQL_KEYS = [one for one in _SQL_SCALARS if one.field.name not in ("FLOAT", "DOUBLE")]


def sql_compound(inner: st.SearchStrategy[SqlType]) -> st.SearchStrategy[SqlType]:
    """Return types of Flink SQL with parts of some others."""
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(sql_row),
        inner.map(sql_array),
        st.builds(sql_map, st.sampled_from(_SQL_KEYS), inner),
    )


SQL_FIELDS = st.recursive(st.sampled_from(_SQL_SCALARS), sql_compound, max_leaves=5)
_OF_SQL: dict[str, Callable[..., Serializer]] = {
    "ROW": lambda *fields: serializers.RowDataSerializer(fields),
    "ARRAY": serializers.ArrayDataSerializer,
    "MAP": serializers.MapDataSerializer,
}


def of_sql(one: SqlType) -> Type:
    """Return a type of Flink SQL as that of a state, in a row if it is not nested."""
    if one.field.name not in _OF_SQL:
        one = sql_row([one])
    return Type(_OF_SQL[one.field.name](*one.field.fields), one.values)


SQL_TYPES = SQL_FIELDS.map(of_sql)
TYPES = st.recursive(st.sampled_from(SCALARS) | SQL_TYPES, compound, max_leaves=5)
"""All types."""
