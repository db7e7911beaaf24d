"""Key types and keys from text, as they are typed in a shell: parsed, never evaluated."""

from __future__ import annotations

import ast
import datetime as dt
import math
import re
import struct
import uuid
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any

from keygroups import types
from keygroups._checks import show
from keygroups._values.java_values import Left, Right
from keygroups.errors import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
)
from keygroups.logical_types import LogicalType
from keygroups.types import KeyType

_LONGEST = 100_000  # characters of a key that is not plain text
_CALLED = {
    cls.__name__: cls
    for cls in (
        *(types.TUPLE, types.ROW, types.LIST, types.SET, types.OPTIONAL, types.MAP),
        *(types.SQL_DATE, types.SQL_TIME, types.SQL_TIMESTAMP, types.SQL_ROW, types.PYFLINK),
        *(types.SCALA_TUPLE, types.CASE_CLASS, types.SCALA_OPTION, types.SCALA_EITHER),
        types.OBJECTS_HASH,
    )
}
_SQL_ROW = re.compile(r"\bSQL_ROW\(\s*[^\W\d]", re.IGNORECASE)  # Its types have no quotes.
_CONSTANTS = {
    name: value for name, value in vars(types).items() if isinstance(value, types.ScalarType)
}
_SIDES: dict[str, Callable[[Any], Any]] = {"Left": Left, "Right": Right}
TYPE_NAMES = (*_CONSTANTS, *_CALLED)
CHOICES = (*_CONSTANTS, "TUPLE(t, ...)", "ROW(t, ...)", "LIST(t)", "SET(t)", "MAP(t, t)")
CHOICES += ("OPTIONAL(t)", "SQL_DATE('zone')", "SQL_TIME('zone')", "SQL_TIMESTAMP('zone')")
CHOICES += ("SQL_ROW('BIGINT', ...)", "PYFLINK(t)", "OBJECTS_HASH(t, ...)")
CHOICES += ("SCALA_TUPLE(t, ..., scala='2.12')", "CASE_CLASS('name', t, ..., scala='2.12')")
CHOICES += ("SCALA_OPTION(t, scala='2.12')", "SCALA_EITHER(t, t, scala='2.12')")
"""The key types, for people."""


def parse_key_type(text: str) -> KeyType:
    """Return the key type of a text such as "TUPLE(STRING, INT)", names in any case.

    Raises InvalidValueError for any other text, and the errors of the key type's class.

    >>> parse_key_type("tuple(STRING, sql_date('UTC'))")
    TUPLE(STRING, SQL_DATE('UTC'))
    >>> parse_key_type("SQL_ROW(BIGINT NOT NULL, DECIMAL(10, 2))")
    SQL_ROW('BIGINT NOT NULL', 'DECIMAL(10, 2)')
    """
    _check_length("type", text)
    try:
        return _key_type(_parse(_with_quotes(text)))
    except _SyntaxError as error:
        raise InvalidValueError(
            f"type must be one of {', '.join(CHOICES)}, got {show(text)}{error}"
        ) from None


def parse_key(text: str, key_type: KeyType | None) -> Any:
    """Return the key that a text stands for.

    Scalars are written as they are: a STRING is the text itself, dates and times are in ISO 8601.
    Compound keys are written as Python's tuples, lists, sets and dicts, with numbers, True, None
    and quoted text, also for a date or a Decimal, and an Either as `Left(1)` or `Right('a')`. A
    field of its own needs no tuple. Without a key type the text is a STRING, unless it could be
    something else, too.

    Raises InvalidValueError, and AmbiguousKeyTypeError for a text that may be a STRING or not.

    >>> parse_key("('a', '1.50')", types.TUPLE(types.STRING, types.BIG_DEC))
    ('a', Decimal('1.50'))
    >>> parse_key("42", types.SQL_ROW("BIGINT"))
    (42,)
    """
    check_text("key", text)
    if key_type is not None:
        return _from_text(text, key_type)
    if text.startswith(("(", "[", "{")):
        raise AmbiguousKeyTypeError(
            f"key {show(text)} may be text or a compound key: give its type, as in --type STRING, "
            "--type 'TUPLE(STRING, INT)' or, of a SQL job, --type 'SQL_ROW(\"STRING\", \"INT\")'"
        )
    for name in _LIKELY:
        try:
            _READERS[name][0](text.strip())
        except ValueError:
            continue
        likely = ("INT", "LONG") if name == "LONG" else (name,)
        raise AmbiguousKeyTypeError(
            f"key {show(text)} may be a STRING or {' or '.join(likely)}: give its type, as in "
            f"{' or '.join(f'--type {known}' for known in likely)}"
        )
    return text


def check_text(name: str, text: str) -> str:
    """Return a text, or raise with its name if it has bytes that could not be decoded.

    Python puts a surrogate in place of each such byte of an argument.
    """
    if any("\udc80" <= character <= "\udcff" for character in text):
        raise InvalidValueError(
            f"{name} must be text in the encoding of the terminal, got {show(text)}"
        )
    return text


def _with_quotes(text: str) -> str:
    """Return a type with quotes around the SQL types of a row, as savepoints print them."""
    written, start = "", 0
    for found in _SQL_ROW.finditer(text):
        if found.start() < start:
            continue
        begin = text.index("(", found.start()) + 1
        fields, end = _sql_fields(text, begin)
        written += text[start:begin] + ", ".join(map(repr, fields))
        start = end
    return written + text[start:]


def _sql_fields(text: str, start: int) -> tuple[list[str], int]:
    """Return the types from `start` on, and the place of the bracket after the last."""
    fields, depth, begin, is_quoted = [], 0, start, False
    for place in range(start, len(text)):
        sign = text[place]
        is_quoted ^= sign == "`"
        if is_quoted:
            continue
        if sign in ",)" and not depth:
            fields.append(text[begin:place].strip())
            begin = place + 1
            if sign == ")":
                return fields, place
        depth += (sign in "(<") - (sign in ")>")
    return [text[start:]], len(text)


class _SyntaxError(Exception):
    """A text that cannot be parsed; its message, if any, is the end of the user's: a hint."""


def _check_length(name: str, text: str) -> None:
    if len(text) > _LONGEST:
        raise InvalidValueError(
            f"{name} must be written in at most {_LONGEST} characters, got {len(text)}"
        )


def _parse(text: str) -> ast.expr:
    try:
        # Python only warns of an escape such as "\d": a typo, or a backslash to be doubled.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _SyntaxError from None


def _key_type(node: ast.expr) -> KeyType:
    if isinstance(node, ast.Name):
        name = node.id.upper()
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name in _CALLED:
            (choice,) = (choice for choice in CHOICES if choice.startswith(f"{name}("))
            raise _SyntaxError(f": did you mean {choice}?")
        raise _unknown(node.id)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _SyntaxError
    cls: Callable[..., KeyType] | None = _CALLED.get(node.func.id.upper())
    if cls is None:
        raise _unknown(node.func.id)
    arguments = [_argument(argument) for argument in node.args]
    named = {str(keyword.arg): _literal(keyword.value) for keyword in node.keywords}
    try:
        return cls(*arguments, **named)
    except KeyGroupsError:
        raise
    except TypeError:  # The number or the names of the arguments are wrong.
        raise InvalidTypeError(
            f"type must have the arguments of keygroups.types.{cls.__name__}, "
            f"got {show(ast.unparse(node))}"
        ) from None


def _unknown(name: str) -> _SyntaxError:
    return _SyntaxError(types.meant_by(name, TYPE_NAMES))


def _argument(node: ast.expr) -> Any:
    return _literal(node) if isinstance(node, ast.Constant) else _key_type(node)


class _Sides(ast.NodeTransformer):
    """A transformer of calls such as `Left(1)`, sides of an Either, to constants."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return the constant of `Left(1)` or `Left(value=1)`; any other call stays as it is."""
        self.generic_visit(node)
        side = _SIDES.get(getattr(node.func, "id", ""))
        names = {keyword.arg for keyword in node.keywords}
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if side is None or len(arguments) != 1 or not names <= {"value"}:
            return node
        return ast.Constant(side(ast.literal_eval(arguments[0])))


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(_Sides().visit(node))
    except (ValueError, TypeError, RecursionError, MemoryError, SyntaxError):
        raise _SyntaxError from None


# --- keys -------------------------------------------------------------------------------


_LITERALS = ("LIST", "SET", "MAP", "ARRAY", "SCALA_EITHER", "PICKLED")


def _from_text(text: str, kind: KeyType | LogicalType) -> Any:
    if isinstance(kind, (types.OPTIONAL, types.SCALA_OPTION, types.PYFLINK)):
        return _from_text(text, kind.element)
    fields = _fields(kind)
    if fields is not None and len(fields) == 1 and not text.lstrip().startswith("("):
        return (_from_text(text, fields[0]),)
    if fields is None and _name(kind) not in _LITERALS:
        return _read(_name(kind), text)
    _check_length(f"key of type {show(kind)}", text)
    try:
        value = _literal(_parse(text))
    except _SyntaxError:
        raise InvalidValueError(
            f"key of type {show(kind)} must be written as in Python, such as ('a', 1), with "
            f"each backslash doubled, got {show(text)}"
        ) from None
    return _convert(value, kind)


def _convert(value: Any, kind: KeyType | LogicalType) -> Any:
    """Return the key for a literal; a wrong shape stays as it is, and hashing refuses it."""
    if isinstance(kind, (types.OPTIONAL, types.SCALA_OPTION, types.PYFLINK)):
        return _convert(value, kind.element)
    fields = _fields(kind)
    if fields is not None and isinstance(value, (tuple, list)):
        padded = zip_longest(value, fields[: len(value)])
        return tuple(item if field is None else _convert(item, field) for item, field in padded)
    if isinstance(value, Left) and isinstance(kind, types.SCALA_EITHER):
        return Left(_convert(value.value, kind.left))
    if isinstance(value, Right) and isinstance(kind, types.SCALA_EITHER):
        return Right(_convert(value.value, kind.right))
    if isinstance(kind, types.LIST) and isinstance(value, list):
        return [_convert(element, kind.element) for element in value]
    if isinstance(kind, types.SET) and isinstance(value, set):
        return frozenset(_convert(element, kind.element) for element in value)
    if isinstance(kind, types.MAP) and isinstance(value, dict):
        return {_convert(k, kind.key): _convert(v, kind.value) for k, v in value.items()}
    if isinstance(kind, LogicalType) and kind.name == "ARRAY" and isinstance(value, list):
        return [_convert(element, kind.fields[0]) for element in value]
    # A float is not converted, as it may have lost digits already.
    if type(value) in (str, int) and _name(kind) in _READERS:
        return _read(_name(kind), value)
    return value


def _fields(kind: KeyType | LogicalType) -> Sequence[KeyType | LogicalType] | None:
    if isinstance(kind, LogicalType):
        return kind.fields if kind.name == "ROW" else None
    return kind.fields if isinstance(kind, (types.FieldsType, types.SQL_ROW)) else None


def _name(kind: KeyType | LogicalType) -> str:
    return kind.name if isinstance(kind, LogicalType) else repr(kind).partition("(")[0]


def _read(name: str, value: str | int) -> Any:
    if name not in _READERS:
        return value
    reader, example = _READERS[name]
    if isinstance(value, str):
        _check_length(f"key of type {name}", value)
    try:
        return reader(str(value).strip())  # str() raises for an int of over 4300 digits.
    except (ValueError, InvalidOperation):
        raise InvalidValueError(
            f"key of type {name} must be written such as {example}, got {show(value)}"
        ) from None


_INTEGERS = (
    *("BYTE", "SHORT", "INT", "LONG", "BIG_INT", "SCALA_BIG_INT", "HASHED"),
    *("TINYINT", "SMALLINT", "BIGINT"),
)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NO_NUMBERS = {"nan": "nan", "infinity": "inf", "inf": "inf", "-infinity": "-inf", "-inf": "-inf"}
_UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    return int(text)


def _decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return Decimal(text)


def _double(text: str) -> float:
    if text.lower() in _NO_NUMBERS:
        return float(_NO_NUMBERS[text.lower()])
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


def _single(text: str) -> float:
    """Return the nearest single, as Float.parseFloat does."""
    number = _double(text)
    if not math.isfinite(number) or not number:
        return number
    exact, rounded = _decimal(text), Decimal.from_float(number)
    # Rounding twice, to a double and then to a single, may end on the wrong side. It does not if
    # the double is rounded to odd: of the two around the exact number, the one with last bit 1.
    if exact != rounded and not struct.unpack("<Q", struct.pack("<d", number))[0] & 1:
        number = math.nextafter(number, math.inf if exact > rounded else -math.inf)
    try:
        single: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return single


def _uuid(text: str) -> uuid.UUID:
    if not _UUID.fullmatch(text):  # uuid.UUID would take other forms, such as 32 bare digits.
        raise ValueError
    return uuid.UUID(text)


def _iso(pattern: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader of ISO 8601 that is the same in every Python, and drops no digits."""
    compiled = re.compile(pattern)

    def reader(text: str) -> Any:
        if not compiled.fullmatch(text):
            raise ValueError
        six_digits = re.sub(r"\.([0-9]+)", lambda fraction: f".{fraction[1]:0<6}", text)
        return read(six_digits.replace("Z", "+00:00"))

    return reader


_DATE_READER = _iso(_DATE, dt.date.fromisoformat), "2024-02-29"
_TIME_READER = _iso(_TIME, dt.time.fromisoformat), "23:59:59"
_LOCAL_READER = _iso(f"{_DATE}[T ]{_TIME}", dt.datetime.fromisoformat), "2024-02-29T23:59:59"
_INSTANT_READER = (
    _iso(f"{_DATE}[T ]{_TIME}(Z|[+-][0-9]{{2}}:[0-9]{{2}})", dt.datetime.fromisoformat),
    "2024-02-29T23:59:59Z",
)
_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "BOOLEAN": (_boolean, "true"),
    **dict.fromkeys(_INTEGERS, (_integer, "42")),
    "FLOAT": (_single, "1.5"),
    "DOUBLE": (_double, "1.5"),
    **dict.fromkeys(("BIG_DEC", "DECIMAL"), (_decimal, "1.50")),
    **dict.fromkeys(("LOCAL_DATE", "SQL_DATE", "DATE"), _DATE_READER),
    **dict.fromkeys(("LOCAL_TIME", "SQL_TIME", "TIME"), _TIME_READER),
    **dict.fromkeys(("LOCAL_DATE_TIME", "SQL_TIMESTAMP", "TIMESTAMP"), _LOCAL_READER),
    **dict.fromkeys(("INSTANT", "TIMESTAMP_LTZ"), _INSTANT_READER),
    "UUID": (_uuid, "123e4567-e89b-12d3-a456-426614174000"),
    **dict.fromkeys(("BINARY", "VARBINARY", "BYTE_BUFFER"), (bytes.fromhex, "cafe01")),
}
_LIKELY = (
    *("LONG", "DOUBLE", "BOOLEAN", "UUID"),
    *("LOCAL_DATE", "LOCAL_TIME", "LOCAL_DATE_TIME", "INSTANT"),
)
