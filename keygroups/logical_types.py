"""The logical types of Flink SQL, read from their text as Flink DDL writes it."""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from keygroups._checks import check_str, did_you_mean, show
from keygroups.errors import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError

__all__ = ["LogicalType", "parse_logical_type"]
__dir__ = __all__.copy

_MAX_PRECISION = 38  # DecimalType.MAX_PRECISION
_MAX_DEPTH = 100  # The parser recurses, so "ARRAY<ARRAY<..." could exhaust Python's stack.

# The format, of the module struct, of the types whose values are numbers.
_PACKED = {
    **{"BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "BIGINT": "<q"},
    **{"FLOAT": "<I", "DOUBLE": "<Q", "DATE": "<i", "TIME": "<i"},
}
_INTERVALS = {"INTERVAL_YEAR_MONTH": "<i", "INTERVAL_DAY_TIME": "<q"}
_LENGTH = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
_SYNONYMS = {"INTEGER": "INT", "NUMERIC": "DECIMAL", "DEC": "DECIMAL"}
_UNLIMITED = {"STRING": "VARCHAR", "BYTES": "VARBINARY"}
_FRACTION = {"TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}  # default precisions
_NESTED = ("ROW", "ARRAY")
_MAPS = ("MAP", "MULTISET")
_UNSUPPORTED = (
    *("BITMAP", "DESCRIPTOR", "INTERVAL", "LEGACY", "NULL", "RAW", "STRUCTURED", "VARIANT"),
    *_MAPS,
)
_TYPE_WORDS = {"DECIMAL", *_PACKED, *_LENGTH, *_SYNONYMS, *_UNLIMITED, *_FRACTION, *_NESTED}
_TYPE_WORDS.update(_UNSUPPORTED)
# The SQL types that are meant by names of key types; they go into "did you mean".
_OF_KEYS = {
    **{"BYTE": "TINYINT", "SHORT": "SMALLINT", "LONG": "BIGINT", "BIG_DEC": "DECIMAL"},
    **{"LOCAL_DATE": "DATE", "LOCAL_TIME": "TIME", "LOCAL_DATE_TIME": "TIMESTAMP"},
    **{"INSTANT": "TIMESTAMP_LTZ", "TUPLE": "ROW", "LIST": "ARRAY"},
}
_MAX_COMPACT_DECIMAL = 18  # DecimalData.MAX_COMPACT_PRECISION
_MAX_COMPACT_TIMESTAMP = 3  # TimestampData.isCompact
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<word>[^\W\d][\w$]*)|(?P<number>[0-9]+)|(?P<mark>[<>(),])"
    r"|(?P<quoted>`(?:[^`]|``)+`)|(?P<comment>'(?:[^']|'')*')"
)


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A logical type of Flink SQL; `parse_logical_type` makes them, checked.

    `name` is one of BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, CHAR,
    VARCHAR, BINARY, VARBINARY, DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ROW and ARRAY; or, in
    state but in no key, MAP, MULTISET, RAW, VARIANT, BITMAP, INTERVAL_YEAR_MONTH and
    INTERVAL_DAY_TIME. `length` is that of CHAR to VARBINARY; STRING is VARCHAR and BYTES is
    VARBINARY of length 2^31-1. `precision` is that of DECIMAL, TIME and TIMESTAMP*, `scale`
    that of DECIMAL. `fields` are those of a ROW, the one element type of an ARRAY or a MULTISET,
    or key and value of a MAP; `names` are those of a ROW's fields, empty where they are not given:
    no byte of a key or of a value depends on them, but Flink compares them when it restores state.
    Whatever does not apply is None or empty. `str()` gives the text of the type.
    """

    MAX_LENGTH: ClassVar[int] = 2**31 - 1
    """That of STRING and BYTES. Flink: VarCharType.MAX_LENGTH."""
    MAX_INLINE: ClassVar[int] = 7
    """Bytes of text that fit the slot of a row. Flink: BinaryFormat.MAX_FIX_PART_DATA_SIZE."""

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    fields: tuple[LogicalType, ...] = ()
    nullable: bool = True
    names: tuple[str, ...] = ()

    @property
    def packed(self) -> str | None:
        """The format, of the module struct, of a value that is a number; else None."""
        return _PACKED.get(self.name) or _INTERVALS.get(self.name)

    @property
    def element_size(self) -> int:
        """Bytes of an element in the fixed part of an ARRAY; a field of a ROW always has 8."""
        return struct.calcsize(self.packed or "<q")

    @property
    def reserved(self) -> int:
        """Bytes that a key reserves for the value in its variable part, for a NULL too; or 0."""
        precision = self.precision or 0
        if self.name == "DECIMAL" and precision > _MAX_COMPACT_DECIMAL:
            return 16
        if self.name in ("TIMESTAMP", "TIMESTAMP_LTZ") and precision > _MAX_COMPACT_TIMESTAMP:
            return 8
        return 0

    def walk(self) -> Iterator[LogicalType]:
        """Yield this type and all that are nested in it."""
        yield self
        for field in self.fields:
            yield from field.walk()

    def __str__(self) -> str:
        text = self.name
        if self.length == LogicalType.MAX_LENGTH and self.name in _UNLIMITED.values():
            text = "STRING" if self.name == "VARCHAR" else "BYTES"
        elif self.name in _NESTED + _MAPS:
            inside = [*map(str, self.fields)]
            if self.names:
                names = (name.replace("`", "``") for name in self.names)
                inside = [f"`{name}` {field}" for name, field in zip(names, inside)]
            text += f"<{', '.join(inside)}>"
        else:
            numbers = (self.length, self.precision, self.scale)
            parameters = [str(number) for number in numbers if number is not None]
            text += f"({', '.join(parameters)})" if parameters else ""
        return text if self.nullable else f"{text} NOT NULL"


def row_header_size(arity: int) -> int:
    """Return the bytes before the slots of a row: its kind, then a null bit a field.

    Flink: BinaryRowData.calculateBitSetWidthInBytes.
    """
    return (arity + 63 + 8) // 64 * 8


def array_header_size(count: Any) -> Any:
    """Return the bytes before the elements of an array: its size, then a null bit an element.

    `count` is an int, or an array of them. Flink: BinaryArrayData.calculateHeaderInBytes.
    """
    return 4 + (count + 31) // 32 * 4


def parse_logical_type(text: str) -> LogicalType:
    """Return the `LogicalType` that a text of Flink DDL stands for.

    Types: BOOLEAN, TINYINT, SMALLINT, INT or INTEGER, BIGINT, FLOAT, DOUBLE [PRECISION],
    DECIMAL or DEC or NUMERIC [(p[, s])] with 1 <= p <= 38 and 0 <= s <= p, which is (10, 0)
    where left out; CHAR, VARCHAR, BINARY and VARBINARY [(n)] with 1 <= n <= 2^31-1, else 1
    (but in DDL and CAST Flink takes VARCHAR and VARBINARY without n for STRING and BYTES);
    STRING, BYTES, DATE; TIME [(p)] [WITHOUT TIME ZONE] with 0 <= p <= 9, else 0; TIMESTAMP
    [(p)] [WITHOUT TIME ZONE], TIMESTAMP_LTZ [(p)] and TIMESTAMP [(p)] WITH LOCAL TIME ZONE
    with 0 <= p <= 9, else 6; ARRAY<type> or type ARRAY; ROW<name type ['comment'], ...>,
    ROW(...) and, shorter than Flink has it, ROW<type, ...>. NULL or NOT NULL may follow any
    type. Names of types are read in any case; a field named like one is put in backquotes.
    Comments are left out, as Flink's planner leaves them out.

    Raises UnsupportedKeyTypeError for Flink's other types, InvalidValueError for any other
    text and InvalidTypeError for what is no str; the message has the text and the position,
    which counts characters from 0.

    Flink: LogicalTypeParser, DecimalType, CharType and their like for the bounds.

    >>> str(parse_logical_type("row<id bigint not null, price numeric(12, 2)>"))
    'ROW<`id` BIGINT NOT NULL, `price` DECIMAL(12, 2)>'
    """
    return _TypeParser(check_str("a logical type", text, "a str such as 'BIGINT'")).parse()


class _TypeParser:
    """A parser of one text from left to right; `_next` is the index of the token to come."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str | None, str, int]] = []  # kind, text as written, position
        self._next = 0
        self._depth = 0
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"cannot read {text[position]!r}", position)
            if match.lastgroup != "space":
                self._tokens.append((match.lastgroup, match[0], position))
            position = match.end()
        self._tokens.append((None, "", position))

    def parse(self) -> LogicalType:
        logical_type = self._type()
        if self._kind() is not None:
            raise self._expected("the end")
        return logical_type

    def _kind(self) -> str | None:
        return self._tokens[self._next][0]

    def _word(self, ahead: int = 0) -> str:
        """Return the keyword or mark to come, or "" where there is neither."""
        kind, text, _ = self._tokens[self._next + ahead]
        # Only ASCII counts: a few other letters, such as U+017F, have an ASCII upper case.
        return text.upper() if kind in ("word", "mark") and text.isascii() else ""

    def _accept(self, *words: str) -> bool:
        """Read these words if they are the ones to come; the last token matches none."""
        for ahead, word in enumerate(words):
            if self._word(ahead) != word:
                return False
        self._next += len(words)
        return True

    def _expect(self, *words: str) -> None:
        for word in words:
            if not self._accept(word):
                raise self._expected(word)

    def _error(
        self, message: str, position: int, error: type[KeyGroupsError] = InvalidValueError
    ) -> KeyGroupsError:
        return error(f"type {show(self._text)}, position {position}: {message}")

    def _expected(self, expected: str) -> KeyGroupsError:
        kind, text, position = self._tokens[self._next]
        got = "the end" if kind is None else show(text)
        return self._error(f"expected {expected}, got {got}", position)

    def _type(self) -> LogicalType:
        position = self._tokens[self._next][2]
        logical_type = self._nullability(self._plain_type())
        if self._word() == "MULTISET":
            raise self._unsupported("MULTISET", position)
        if self._accept("ARRAY"):
            logical_type = self._nullability(LogicalType("ARRAY", fields=(logical_type,)))
        return logical_type

    def _nullability(self, logical_type: LogicalType) -> LogicalType:
        if self._accept("NOT", "NULL"):
            return replace(logical_type, nullable=False)
        self._accept("NULL")
        return logical_type

    def _plain_type(self) -> LogicalType:
        kind, text, position = self._tokens[self._next]
        name = self._word()
        if kind != "word":
            raise self._expected("a type")
        if name not in _TYPE_WORDS:
            raise self._error(
                f"{show(text)} is no type of Flink SQL, whose types are BOOLEAN, TINYINT, "
                "SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, CHAR, VARCHAR, STRING, BINARY, "
                "VARBINARY, BYTES, DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ, ROW and ARRAY"
                f"{did_you_mean(text, sorted(_TYPE_WORDS.difference(_UNSUPPORTED)), _OF_KEYS)}",
                position,
            )
        if name in _UNSUPPORTED:
            raise self._unsupported(name, position)
        self._next += 1
        name = _SYNONYMS.get(name, name)
        if name in _UNLIMITED:
            return LogicalType(_UNLIMITED[name], length=LogicalType.MAX_LENGTH)
        if name in _LENGTH:
            length = self._in_brackets("the length", 1, LogicalType.MAX_LENGTH, 1)
            return LogicalType(name, length=length)
        if name == "DECIMAL":
            return self._decimal()
        if name in _FRACTION:
            return self._time(name, position)
        if name in _NESTED:
            return self._nested(name, position)
        if name == "DOUBLE":
            self._accept("PRECISION")
        return LogicalType(name)

    def _decimal(self) -> LogicalType:
        precision, scale = 10, 0
        if self._accept("("):
            precision = self._number("the precision", 1, _MAX_PRECISION)
            if self._accept(","):
                scale = self._number("the scale", 0, precision)
            self._expect(")")
        return LogicalType("DECIMAL", precision=precision, scale=scale)

    def _time(self, name: str, position: int) -> LogicalType:
        precision = self._in_brackets("the precision", 0, 9, _FRACTION[name])
        if name != "TIMESTAMP_LTZ" and self._accept("WITHOUT"):
            self._expect("TIME", "ZONE")
        elif name == "TIMESTAMP" and self._accept("WITH"):
            if self._word() == "TIME":
                raise self._unsupported("TIMESTAMP WITH TIME ZONE", position)
            self._expect("LOCAL", "TIME", "ZONE")
            name = "TIMESTAMP_LTZ"
        return LogicalType(name, precision=precision)

    def _nested(self, name: str, position: int) -> LogicalType:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error(f"types may nest at most {_MAX_DEPTH} deep", position)
        if name == "ARRAY":
            self._expect("<")
            nested = LogicalType(name, fields=(self._type(),))
            self._expect(">")
        elif self._accept("("):
            nested = self._row(")")
        else:
            self._expect("<")
            nested = self._row(">")
        self._depth -= 1
        return nested

    def _row(self, end: str) -> LogicalType:
        fields: list[LogicalType] = []
        names: dict[str, None] = {}
        all_named = self._at_name()
        while not self._accept(end):
            if fields and not self._accept(","):
                raise self._expected(f"',' or '{end}'")
            if self._at_name() != all_named:
                raise self._expected("a name" if all_named else "a type, as before without a name")
            if all_named:
                names[self._field_name(names)] = None
            fields.append(self._type())
            if all_named and self._kind() == "comment":
                self._next += 1
        return LogicalType("ROW", fields=tuple(fields), names=tuple(names))

    def _field_name(self, names: Collection[str]) -> str:
        """Read and return the name of a field, which must not be blank or a repetition.

        Flink: RowType.
        """
        kind, text, position = self._tokens[self._next]
        name = text[1:-1].replace("``", "`") if kind == "quoted" else text
        if name in names or not name.strip():
            raise self._error(
                f"names of fields must differ and not be blank, got {show(name)}", position
            )
        self._next += 1
        return name

    def _at_name(self) -> bool:
        """Return whether a field's name is to come: in backquotes, or a word before another."""
        if self._kind() != "word":
            return self._kind() == "quoted"
        return self._word() not in _TYPE_WORDS and self._tokens[self._next + 1][0] == "word"

    def _in_brackets(self, name: str, low: int, high: int, default: int) -> int:
        if not self._accept("("):
            return default
        number = self._number(name, low, high)
        self._expect(")")
        return number

    def _number(self, name: str, low: int, high: int) -> int:
        kind, text, position = self._tokens[self._next]
        if kind != "number":
            raise self._expected(name)
        # No bound has more than 10 digits, and Python refuses to read thousands of them.
        number = int(text) if len(text) <= 10 else high + 1
        if not low <= number <= high:
            raise self._error(f"{name} must be from {low} to {high}, got {show(text)}", position)
        self._next += 1
        return number

    def _unsupported(self, name: str, position: int) -> KeyGroupsError:
        message = f"{name} is not supported as a key"
        if name in _MAPS:
            message += ": its bytes have the order of a Java map, which the value does not tell"
        return self._error(message, position, UnsupportedKeyTypeError)
