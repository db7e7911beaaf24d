"""The layout of the splits of a connector, and of its enumerator: one's own, or a known one.

Bytes do not say of which class they are. What is in a split as an object of Java stays bytes;
nothing of it is run. The known ones are in `connector_layouts.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, NoReturn, TypeVar

from keygroups._checks import (
    INT_MAX,
    INT_MIN,
    MAX_DEPTH,
    check_callable,
    check_class,
    check_int,
    check_str,
    iterate,
    show,
)
from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.data_input import Cursor
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError

T = TypeVar("T")

_MOST = 1_000  # versions, and fields in a name or position, of a layout
_JAVA_OBJECT = b"\xac\xed\0\5"  # the start of a stream of Java's objects
_SPLITS = "splits"

Fields = Mapping[str, Any]
EncodedSplit = tuple[int, bytes]
"""The version of a split and its bytes, in the state of an enumerator."""


class ConnectorSplit(NamedTuple):
    """A split of a connector by its layout in the table of `keygroups.savepoint.sources`.

    `source` is the name of the layout, `fields` are what the split has, by name: those of the
    table, or of one's own SplitLayout. `name` says which split it is and `position` where it goes
    on, as texts. `version` is that of the connector's serializer; `subtask` has the split, None
    if only the enumerator does. `lag` is of Pulsar alone: the entries of its ledger behind the
    end that a caller passes, None where there is none.
    """

    source: str
    subtask: int | None
    version: int
    name: str
    position: str
    fields: Fields
    lag: int | None = None


@dataclass(frozen=True)
class SplitLayout:
    """The bytes of the splits of a source: for `splits` of `read_savepoint`.

    `source` is a name for people, `versions` are those of the serializer that `read` knows, of
    SimpleVersionedSerializer.getVersion. `read` takes a version and a cursor on the bytes of a
    split, whose methods are those that `Serializer.from_contents` names, and returns its fields
    by name. What it leaves over is an error. `name` and `position` are the fields that say which
    split it is, and where it goes on; reports show these.

    `read_enumerator` does the same for the state of the enumerator, of the serializer's versions
    `enumerator_versions`; without it that stays bytes. If it returns a field `splits`, these are
    the splits that no reader has, each a pair of a version and bytes for `read`. A collection
    that has no order in Java is returned sorted, so that `diff` finds the same state the same.

    Raises InvalidTypeError, InvalidValueError.

    >>> def read(version, cursor):
    ...     return {"queue": cursor.utf(), "offset": cursor.i64()}
    >>> queues = SplitLayout("queues", (1,), read, name=("queue",), position=("offset",))
    >>> from keygroups.savepoint import read_savepoint
    >>> savepoint = read_savepoint(path, splits={"orders": queues})  # doctest: +SKIP
    """

    source: str
    versions: tuple[int, ...]
    read: Callable[[int, Cursor], Fields] = field(repr=False)
    name: tuple[str, ...] = ()
    position: tuple[str, ...] = ()
    enumerator_versions: tuple[int, ...] = ()
    read_enumerator: Callable[[int, Cursor], Fields] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", _plain("source", self.source))
        check_callable("read", self.read)
        for name in ("versions", "enumerator_versions"):
            versions = _few(name, "int", getattr(self, name))
            object.__setattr__(
                self,
                name,
                tuple(check_int(name[:-1], number, INT_MIN, INT_MAX) for number in versions),
            )
        for name in ("name", "position"):
            chosen = _few(name, "str", getattr(self, name))
            object.__setattr__(self, name, tuple(_plain(name, text) for text in chosen))
        if self.read_enumerator is not None:
            check_callable("read_enumerator", self.read_enumerator)
        if bool(self.enumerator_versions) != (self.read_enumerator is not None):
            raise InvalidValueError(
                "enumerator_versions must be those that read_enumerator knows, and go with it, "
                f"got {show(self.enumerator_versions)}"
            )


def _plain(name: str, text: str) -> str:
    return str.__str__(check_str(name, text))


def _few(name: str, elements: str, values: Iterable[T]) -> list[T]:
    """Return values of which there are at most as many as a layout may have."""
    few = [*islice(iterate(name, elements, values), _MOST + 1)]
    if len(few) > _MOST:
        raise InvalidValueError(f"{name} must be at most {_MOST:,}, got more")
    return few


def split_of(
    layout: SplitLayout, version: int, data: bytes, subtask: int | None, name: str
) -> ConnectorSplit:
    """Return the split that takes up all of `data`; SavepointError where it is none.

    `name` is that of the savepoint and its operator, for errors; what `read` raises but for bytes
    that are too few or no value goes through.
    """
    what = f"split of {layout.source}"
    fields = _read(layout.read, layout.versions, version, data, f"a {what}", name)
    split, position = (
        ", ".join(filter(None, (_text(fields.get(key)) for key in chosen)))
        for chosen in (layout.name, layout.position)
    )
    return ConnectorSplit(layout.source, subtask, version, split, position, fields)


def enumerator_of(
    layout: SplitLayout, enumerator: EncodedSplit | None, name: str
) -> tuple[Fields | None, tuple[ConnectorSplit, ...]]:
    """Return the fields of an enumerator's state, and the splits that only it has.

    There is nothing of a layout without `read_enumerator`. The rest is as in `split_of`.
    """
    if enumerator is None or layout.read_enumerator is None:
        return None, ()
    version, data = enumerator
    what = f"an enumerator of {layout.source}"
    fields = _read(layout.read_enumerator, layout.enumerator_versions, version, data, what, name)
    rest, splits = dict(fields), []
    for split in iterate(_SPLITS, "pairs of a version and bytes", rest.pop(_SPLITS, ())):
        match split:
            case (int() as split_version, bytes() as encoded):
                splits.append(split_of(layout, split_version, encoded, None, name))
            case _:
                raise InvalidTypeError(
                    f"{_SPLITS} must be pairs of a version and bytes, got {show(split)}"
                )
    return rest, tuple(splits)


def _read(
    read: Callable[[int, Cursor], Fields],
    versions: tuple[int, ...],
    version: int,
    data: bytes,
    what: str,
    name: str,
) -> Fields:
    cursor = Cursor(data, name)
    cursor.expect(f"version of {what}", version, *versions)
    try:
        fields = read(version, cursor)
    except (*TRUNCATED, ValueError) as error:
        if isinstance(error, SavepointError):
            raise
        raise cursor.error(f"no {what.split(' ', 1)[1]}: {error}") from None
    cursor.expect_end(what)
    if not isinstance(fields, Mapping):
        raise InvalidTypeError(
            f"what read returns must be a mapping of fields by name, got {show(fields)}"
        )
    return fields


def checked_layouts(splits: object) -> Mapping[str, SplitLayout]:
    """Return the layouts of operators, by name; raise for what are none."""
    if not isinstance(splits, Mapping):
        raise InvalidTypeError(f"splits must be a mapping by operator, got {show(splits)}")
    for operator, layout in splits.items():
        check_str("operator in splits", operator)
        check_class(f"splits of {show(operator)}", layout, SplitLayout, "a SplitLayout")
    return splits


def _text(value: Any) -> str:
    """Return a field in words, "" for one that is None."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {held}" for key, held in value.items() if held not in (None, ""))
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)


# --- what several layouts have ------------------------------------------------------------------


def json_object(cursor: Cursor, data: bytes) -> dict[str, Any]:
    """Return the object that a text of JSON has."""
    try:
        value = json.loads(data, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        raise cursor.error("a text is no JSON") from None
    if not isinstance(value, dict):
        raise cursor.error("a text of JSON has no object")
    level, depth = [value], 0
    while level:
        if depth > MAX_DEPTH:
            raise cursor.error(f"a text of JSON nests more than {MAX_DEPTH} deep")
        level = [inner for outer in level for inner in _inside(outer)]
        depth += 1
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), -float("inf")):
        raise ValueError(f"{text} is no double")
    return number


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def framed(cursor: Cursor) -> bytes:
    """Read a frame, and return its bytes."""
    inside = cursor.frame()
    return inside.take(inside.left)


def java_object(cursor: Cursor) -> bytes:
    """Read the bytes of a framed object of Java."""
    data = framed(cursor)
    if not data.startswith(_JAVA_OBJECT):
        raise cursor.error("an object is no stream of Java's")
    return data


def starts_java_object(data: bytes) -> bool:
    """Tell whether these are the bytes of an object of Java."""
    return data.startswith(_JAVA_OBJECT)


def unordered(
    cursor: Cursor, size: int, read: Callable[[Cursor], T], count: int | None = None
) -> tuple[T, ...]:
    """Read what a hash set or map has, in the order of their bytes, each of `size` at least."""
    elements = []
    for _ in range(cursor.count(size) if count is None else count):
        start = cursor.pos
        value = read(cursor)
        elements.append((cursor.data[start : cursor.pos], value))
    elements.sort(key=lambda element: element[0])
    return tuple(value for _, value in elements)
