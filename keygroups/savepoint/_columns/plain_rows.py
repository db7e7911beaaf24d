"""Single rows of plain values, which are held until they become columns together.

A plain value is sure to be written, cannot change until then, and is short: a number, a text, or a
tuple, a Row or a Pojo of them. Any other value is for the row-by-row encoder, which writes it or
says at once what is wrong with it. What is held are the numbers and texts alone: Python's garbage
collector has no objects to visit again and again. It needs neither NumPy nor PyArrow.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from datetime import time as time_of_day
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple

from keygroups._serializers import compounds, scalars
from keygroups._serializers.base import Serializer, check_and_write
from keygroups._serializers.jvm.pojos import PojoSerializer
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups._serializers.sql.values import value_converter
from keygroups._values.java_values import Pojo, fields_of, pojo_of
from keygroups._values.rows import Row, row_of_kind
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.logical_types import LogicalType
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.stored_values import check_time
from keygroups.state_keys import VOID_NAMESPACE

IsPlain = Callable[[Any], bool]
PlainFields = tuple[Any, ...]
"""The numbers and texts of a value, or the value itself in a tuple."""

_LONGEST = 128  # characters of a text
_MOST_FIELDS = 128
_MOST_SHAPES = 1_024
_UNCHANGING = frozenset((bytes, date, datetime, time_of_day, float))
_NONE = type(None)


class PlainPart(NamedTuple):
    """A way from keys, values or user keys to plain fields, `width` each, and back.

    `fields_of` returns None for a value that is not plain.
    """

    width: int
    fields_of: Callable[[Any], PlainFields | None]
    value_of: Callable[[PlainFields], Any] = itemgetter(0)

    def values(self, fields: Sequence[Any]) -> Iterator[Any]:
        """Return the values that all these fields are of."""
        each = iter(fields)
        return map(self.value_of, zip(*[each] * self.width))


class PlainRows:
    """Holds plain rows of one state, `state`, until they are written."""

    def __init__(self, state: StateDescriptor, parts: Mapping[str, PlainPart]) -> None:
        self.state = state
        self._parts = parts
        self._key_fields, self._value_fields = parts["key"].fields_of, parts["value"].fields_of
        self._user_key_fields = parts["user_key"].fields_of if "user_key" in parts else None
        self.width = sum(part.width for part in parts.values())
        """How many numbers and texts a row has, each of which takes little memory."""
        self._has_ttl = state.has_ttl
        # The fields of all rows in one list for each part: no object for a row.
        self._keys: list[Any] = []
        self._values: list[Any] = []
        self._user_keys: list[Any] = []
        self.times: list[int] = []
        """The times of last access of the rows, none without a time to live."""

    @property
    def count(self) -> int:
        """The number of rows that are held."""
        return len(self._keys) // self._parts["key"].width

    @classmethod
    def of(cls, state: StateDescriptor) -> PlainRows | None:
        """Return the PlainRows of a state, None for one whose values are never plain."""
        value = state.value_serializer
        if value is None or state.kind == "LIST" or state.is_python:
            return None
        if state.namespace_serializer != VOID_NAMESPACE:
            return None
        serializers = {"key": state.key_serializer, "value": value}
        if state.user_key_serializer is not None:
            serializers["user_key"] = state.user_key_serializer
        parts = {role: _plain_part(serializer) for role, serializer in serializers.items()}
        present = {role: part for role, part in parts.items() if part is not None}
        return cls(state, present) if len(present) == len(parts) else None

    def take(self, key: Any, value: Any, user_key: Any, last_access: int | None) -> bool:
        """Hold a row and return True, or return False for one that is not plain."""
        key_fields = self._key_fields(key)
        if key_fields is None:
            return False
        fields = self._value_fields(value)
        if fields is None:
            return False
        user_key_fields: PlainFields | None = ()
        if self._user_key_fields is not None:
            user_key_fields = self._user_key_fields(user_key)
            if user_key_fields is None:
                return False
        elif user_key is not None:
            return False
        if self._has_ttl:
            if last_access is None or not _is_past(last_access):
                return False
            self.times.append(last_access)
        elif last_access is not None:
            return False
        if user_key_fields:
            self._user_keys += user_key_fields
        self._keys += key_fields
        self._values += fields
        return True

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows that are held now, as the arguments of `write` behind the state."""
        columns = [part.values(fields) for part, fields in self.held().values()]
        nones = [None] * self.count
        return zip(*columns, *[nones] * (3 - len(columns)), self.times or nones)

    def held(self) -> dict[str, tuple[PlainPart, list[Any]]]:
        """Return the parts by their roles, with the fields that are held."""
        fields = {"key": self._keys, "value": self._values, "user_key": self._user_keys}
        return {role: (part, fields[role]) for role, part in self._parts.items()}

    def clear(self) -> None:
        """Hold no rows any longer."""
        self._keys, self._values, self._user_keys, self.times = [], [], [], []


def _is_past(last_access: Any) -> bool:
    """Return whether a time is plain; whether a later one is allowed depends on the writer."""
    if type(last_access) is not int or last_access > time.time() * 1000:
        return False
    try:
        check_time(last_access)
    except InvalidValueError:
        return False
    return True


def _plain_part(serializer: Serializer) -> PlainPart | None:
    """Return the PlainPart for the values of a serializer, None where none is plain."""
    cls = type(serializer)
    if cls in _SCALARS:
        return PlainPart(1, _SCALARS[cls])
    width = len(serializer.parts or serializer.fields)
    if not 0 < width <= _MOST_FIELDS:
        return None
    if cls is compounds.TupleSerializer:
        return PlainPart(width, _tuple_fields(_Shapes(_part_fields(serializer), False)), tuple)
    if cls is PojoSerializer:
        assert isinstance(serializer, PojoSerializer)
        return _pojo_part(serializer)
    if cls is not RowDataSerializer:
        return None
    fields = [field for field in map(_sql_field, serializer.fields) if field is not None]
    if len(fields) < width:
        return None
    return PlainPart(width, _row_fields(_Shapes(fields, True)), lambda row: row_of_kind(row, 0))


def _tuple_fields(shapes: _Shapes) -> Callable[[Any], PlainFields | None]:
    return lambda value: value if type(value) is tuple and shapes.has(value) else None


def _row_fields(shapes: _Shapes) -> Callable[[Any], PlainFields | None]:
    def fields(value: Any) -> PlainFields | None:
        is_plain = type(value) is Row and value.row_kind == "+I" and shapes.has(value)
        return value if is_plain else None

    return fields


def _pojo_part(serializer: PojoSerializer) -> PlainPart:
    java_class, names, width = serializer.java_class, serializer.names, len(serializer.names)
    shapes = _Shapes(_part_fields(serializer), True)
    in_order = itemgetter(*names) if width > 1 else lambda by_name: (by_name[names[0]],)

    def fields(value: Any) -> PlainFields | None:
        if type(value) is not Pojo or value.java_class != java_class:
            return None
        by_name = fields_of(value)
        if len(by_name) != width:
            return None
        try:
            row = in_order(by_name)
        except KeyError:
            return None
        return row if shapes.has(row) else None

    return PlainPart(width, fields, lambda row: pojo_of(java_class, dict(zip(names, row))))


def _getter(places: Sequence[int]) -> Callable[[Any], PlainFields]:
    """Return the function that gives the fields of a row at some places, in order, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    start = places[0] if places else 0
    return itemgetter(slice(start, start + len(places)))


class _Field(NamedTuple):
    """The classes of a plain field, and for an int the range of a code of struct.

    A text has neither code nor check, and is one of UTF-8; a check says whether another is plain.
    """

    classes: frozenset[type]
    code: str = ""
    check: IsPlain | None = None


class _Shape(NamedTuple):
    """Rows whose fields have the same classes: the ints and the texts, and checks by place."""

    ints: Callable[[Any], PlainFields]
    pack: Callable[..., bytes]
    texts: Callable[[Any], PlainFields]
    most: int
    checks: Sequence[tuple[int, IsPlain]]

    @classmethod
    def of(cls, classes: Sequence[type], fields: Sequence[_Field]) -> _Shape:
        """Return the shape of rows of these classes; a field that is None is passed over."""
        present = [(place, fields[place]) for place, one in enumerate(classes) if one is not _NONE]
        ints = [(place, field.code) for place, field in present if field.code]
        texts = [place for place, field in present if field is _TEXT]
        return cls(
            _getter([place for place, _ in ints]),
            struct.Struct("<" + "".join(code for _, code in ints)).pack,
            _getter(texts),
            _LONGEST * len(texts),
            [(place, field.check) for place, field in present if field.check is not None],
        )


class _Shapes:
    """Says whether rows are plain: one look at the classes of all fields, then one at all ints."""

    def __init__(self, fields: Sequence[_Field], takes_null: bool) -> None:
        self._fields = fields
        self._takes_null = takes_null
        self._known: dict[tuple[type, ...], _Shape] = {}

    def has(self, row: PlainFields) -> bool:
        """Tell whether all fields of a row are plain."""
        classes = tuple(map(type, row))
        shape = self._known.get(classes)
        if shape is None:
            shape = self._shape_of(classes)
            if shape is None:
                return False
        ints, pack, texts, most, checks = shape
        try:
            pack(*ints(row))  # It refuses an int that is out of range.
            text = "".join(texts(row))
            text.isascii() or text.encode()
        except (struct.error, UnicodeEncodeError):
            return False
        for place, check in checks:
            if not check(row[place]):
                return False
        return len(text) <= most

    def _shape_of(self, classes: tuple[type, ...]) -> _Shape | None:
        if len(classes) != len(self._fields):
            return None
        for cls, field in zip(classes, self._fields):
            if cls not in field.classes and not (cls is _NONE and self._takes_null):
                return None
        shape = _Shape.of(classes, self._fields)
        if len(self._known) < _MOST_SHAPES:
            self._known[classes] = shape
        return shape


def _part_fields(serializer: Serializer) -> list[_Field]:
    return [_FIELDS.get(type(part)) or _written_field(part) for part in serializer.parts]


def _sql_field(field: LogicalType) -> _Field | None:
    if field.name in _SQL_FIELDS:
        return _SQL_FIELDS[field.name]
    if field.name == "DECIMAL" and field.precision:
        unit = Decimal((0, (1,), -(field.scale or 0)))
        return _Field(frozenset([Decimal]), check=_decimal_check(unit, unit * 10**field.precision))
    return _checked_field(value_converter(field)) if field.name in _SQL_UNCHANGING else None


def _decimal_check(unit: Decimal, limit: Decimal) -> IsPlain:
    least = -limit
    return lambda value: value.same_quantum(unit) and least < value < limit


def _written_field(serializer: Serializer) -> _Field:
    return _checked_field(lambda value: check_and_write(serializer, value))


def _checked_field(convert: Callable[[Any], object]) -> _Field:
    """Return a field of classes without parts, whose values nothing refuses."""

    def is_plain(value: Any) -> bool:
        if type(value) is bytes and len(value) > _LONGEST:
            return False
        try:
            convert(value)
        except KeyGroupsError:
            return False
        return True

    return _Field(_UNCHANGING, check=is_plain)


def _text(value: Any) -> PlainFields | None:
    return (value,) if type(value) is str and len(value) <= _LONGEST else None


def _sql_text(value: Any) -> PlainFields | None:
    is_short = type(value) is str and len(value) <= _LONGEST
    if is_short and (value.isascii() or not any("\ud800" <= unit <= "\udfff" for unit in value)):
        return (value,)
    return None


def _int_of(bits: int) -> Callable[[Any], PlainFields | None]:
    limit = 1 << bits - 1
    return lambda value: (value,) if type(value) is int and -limit <= value < limit else None


def _of_class(cls: type) -> Callable[[Any], PlainFields | None]:
    return lambda value: (value,) if type(value) is cls else None


_SCALARS: dict[type[Serializer], Callable[[Any], PlainFields | None]] = {
    scalars.StringSerializer: _text,
    scalars.StringDataSerializer: _sql_text,
    scalars.BooleanSerializer: _of_class(bool),
    scalars.DoubleSerializer: _of_class(float),
    scalars.ByteSerializer: _int_of(8),
    scalars.ShortSerializer: _int_of(16),
    scalars.IntSerializer: _int_of(32),
    scalars.LongSerializer: _int_of(64),
}
_TEXT = _Field(frozenset([str]))
_BOOLEAN, _DOUBLE = _Field(frozenset([bool])), _Field(frozenset([float]))
_BYTE, _SHORT, _INT, _LONG = (_Field(frozenset([int]), code) for code in "bhiq")
_FIELDS: dict[type[Serializer], _Field] = {
    scalars.StringSerializer: _TEXT,
    scalars.StringDataSerializer: _TEXT,
    scalars.BooleanSerializer: _BOOLEAN,
    scalars.DoubleSerializer: _DOUBLE,
    scalars.ByteSerializer: _BYTE,
    scalars.ShortSerializer: _SHORT,
    scalars.IntSerializer: _INT,
    scalars.LongSerializer: _LONG,
}
_SQL_FIELDS: dict[str, _Field] = {
    **{"TINYINT": _BYTE, "SMALLINT": _SHORT, "INT": _INT, "BIGINT": _LONG},
    **{"BOOLEAN": _BOOLEAN, "DOUBLE": _DOUBLE, "CHAR": _TEXT, "VARCHAR": _TEXT},
}
_SQL_UNCHANGING = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "FLOAT", "BINARY", "VARBINARY"}
