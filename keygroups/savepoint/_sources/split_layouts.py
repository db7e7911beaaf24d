"""The splits of other connectors: a layout for each serializer of splits, and one's own.

The layouts are facts of the connectors' public source, which each row of LAYOUTS names. Bytes do
not say of which class they are: a source is known if all its splits are of one layout, and of no
other. What is in a split as an object of Java stays bytes; nothing of it is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from keygroups._checks import (
    INT_MAX,
    INT_MIN,
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
_NULL_OBJECT = _JAVA_OBJECT + b"p"
_MOST_OF_RANGE = 65_535  # Pulsar: TopicRange.MAX_RANGE
_SNAPSHOT, _STREAM = 1, 2
_ITERATORS = (
    "AT_SEQUENCE_NUMBER",
    "AFTER_SEQUENCE_NUMBER",
    "TRIM_HORIZON",
    "LATEST",
    "AT_TIMESTAMP",
)

Fields = Mapping[str, Any]


class ConnectorSplit(NamedTuple):
    """A split of a connector by its layout in the table of `keygroups.savepoint.sources`.

    `source` is the name of the layout, `fields` are what the split has, by name: those of the
    table, or of one's own SplitLayout. `name` says which split it is and `position` where it goes
    on, as texts. `version` is that of the connector's serializer; `subtask` has the split.
    """

    source: str
    subtask: int
    version: int
    name: str
    position: str
    fields: Fields


@dataclass(frozen=True)
class SplitLayout:
    """The bytes of the splits of a source: for `splits` of `read_savepoint`.

    `source` is a name for people, `versions` are those of the serializer that `read` knows, of
    SimpleVersionedSerializer.getVersion. `read` takes a version and a cursor on the bytes of a
    split, whose methods are those that `Serializer.from_contents` names, and returns its fields
    by name. What it leaves over is an error. `name` and `position` are the fields that say which
    split it is, and where it goes on; reports show these.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", _plain("source", self.source))
        check_callable("read", self.read)
        versions = _few("versions", "int", self.versions)
        object.__setattr__(
            self,
            "versions",
            tuple(check_int("version", version, INT_MIN, INT_MAX) for version in versions),
        )
        for names in ("name", "position"):
            chosen = _few(names, "str", getattr(self, names))
            object.__setattr__(self, names, tuple(_plain(names, name) for name in chosen))


def _plain(name: str, text: str) -> str:
    return str.__str__(check_str(name, text))


def _few(name: str, elements: str, values: Iterable[T]) -> list[T]:
    """Return values of which there are at most as many as a layout may have."""
    few = [*islice(iterate(name, elements, values), _MOST + 1)]
    if len(few) > _MOST:
        raise InvalidValueError(f"{name} must be at most {_MOST:,}, got more")
    return few


def split_of(
    layout: SplitLayout, version: int, data: bytes, subtask: int, name: str
) -> ConnectorSplit:
    """Return the split that takes up all of `data`; SavepointError where it is none.

    `name` is that of the savepoint and its operator, for errors; what `read` raises but for bytes
    that are too few or no value goes through.
    """
    cursor = Cursor(data, name)
    cursor.expect(f"version of a split of {layout.source}", version, *layout.versions)
    try:
        fields = layout.read(version, cursor)
    except (*TRUNCATED, ValueError) as error:
        if isinstance(error, SavepointError):
            raise
        raise cursor.error(f"no split of {layout.source}: {error}") from None
    cursor.expect_end(f"a split of {layout.source}")
    if not isinstance(fields, Mapping):
        raise InvalidTypeError(
            f"what read returns must be a mapping of fields by name, got {show(fields)}"
        )
    split, position = (
        ", ".join(filter(None, (_text(fields.get(key)) for key in chosen)))
        for chosen in (layout.name, layout.position)
    )
    return ConnectorSplit(layout.source, subtask, version, split, position, fields)


def checked_layouts(splits: object) -> Mapping[str, SplitLayout]:
    """Return the layouts of operators, by name; raise for what are none."""
    if not isinstance(splits, Mapping):
        raise InvalidTypeError(f"splits must be a mapping by operator, got {show(splits)}")
    for operator, layout in splits.items():
        check_str("operator in splits", operator)
        check_class(f"splits of {show(operator)}", layout, SplitLayout, "a SplitLayout")
    return splits


def known_splits(
    splits: Iterable[tuple[int, int, bytes]], name: str
) -> tuple[ConnectorSplit, ...] | None:
    """Return splits, each of a subtask, a version and bytes, if they are of one layout alone."""
    splits = [*splits]
    found: list[tuple[ConnectorSplit, ...]] = []
    for layout in LAYOUTS:
        with suppress(SavepointError):
            found.append(
                tuple(
                    split_of(layout, version, data, subtask, name)
                    for subtask, version, data in splits
                )
            )
    return found[0] if len(found) == 1 and splits else None


def _text(value: Any) -> str:
    """Return a field in words, "" for one that is None."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {held}" for key, held in value.items() if held not in (None, ""))
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)


# --- what several have --------------------------------------------------------------------------


def _json(cursor: Cursor, data: bytes) -> dict[str, Any]:
    """Return the object that a text of JSON has."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise cursor.error("a text is no JSON") from None
    if not isinstance(value, dict):
        raise cursor.error("a text of JSON has no object")
    return value


def _framed(cursor: Cursor) -> bytes:
    inside = cursor.frame()
    return inside.take(inside.left)


def _java_object(cursor: Cursor) -> bytes:
    data = _framed(cursor)
    if not data.startswith(_JAVA_OBJECT):
        raise cursor.error("an object is no stream of Java's")
    return data


# --- Kinesis ------------------------------------------------------------------------------------


def _kinesis(version: int, cursor: Cursor) -> Fields:
    fields: dict[str, Any] = {"stream_arn": cursor.utf(), "shard": cursor.utf()}
    fields["starts"] = cursor.utf()
    if not fields["stream_arn"].startswith("arn:") or fields["starts"] not in _ITERATORS:
        raise cursor.error("no shard of Kinesis")
    fields["marker"] = _marker(cursor) if cursor.bool() else None
    if version >= 1:
        fields["parents"] = tuple(sorted(cursor.utf() for _ in range(cursor.count(2))))
        fields["hash_keys"] = (cursor.utf(), cursor.utf())
    if version >= 2:
        fields["is_finished"] = cursor.bool()
    return fields


def _marker(cursor: Cursor) -> int | str | None:
    """Read the epoch milliseconds or the sequence number at which a shard goes on."""
    time = cursor.i64() if cursor.bool() else None
    return cursor.utf() if cursor.bool() else time


# --- Pulsar -------------------------------------------------------------------------------------


def _pulsar(version: int, cursor: Cursor) -> Fields:
    fields: dict[str, Any] = {"topic": cursor.utf(), "partition": cursor.i32()}
    count = cursor.count(8) if version else 1
    fields["ranges"] = tuple((cursor.i32(), cursor.i32()) for _ in range(count))
    if version == 1:
        cursor.i32()  # the mode of key-shared subscriptions
    is_partition = fields["topic"] and fields["partition"] >= -1
    if not is_partition or not all(_is_range(*ends) for ends in fields["ranges"]):
        raise cursor.error("no partition of Pulsar")
    fields["stop_cursor"] = _java_object(cursor)
    fields["last_message"] = _message(cursor) if cursor.bool() else None
    fields["transaction"] = cursor.longs(2) if cursor.bool() else None
    return fields


def _is_range(start: int, end: int) -> bool:
    return 0 <= start <= end <= _MOST_OF_RANGE


def _message(cursor: Cursor) -> tuple[int, ...]:
    """Read a MessageIdData, by protobuf: ledger, entry, partition and place in a batch.

    The last two are -1 where there is none.
    """
    inside = cursor.frame()
    numbers = {1: 0, 2: 0, 3: -1, 4: -1}
    while inside.left:
        tag = _varint(inside)
        if tag & 7 == 0:
            number = _varint(inside)
            numbers[tag >> 3] = number - (1 << 64) if number >> 63 else number
        elif tag & 7 == 2:
            inside.skip(_varint(inside))
        else:
            raise cursor.error("no id of a message of Pulsar")
    return tuple(numbers[number] for number in range(1, 5))


def _varint(cursor: Cursor) -> int:
    number, shift = 0, 0
    while shift < 64:
        byte = cursor.u8()
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number
        shift += 7
    raise cursor.error("a number of more than 64 bits")


# --- change data capture ------------------------------------------------------------------------


def _mysql(version: int, cursor: Cursor) -> Fields:
    kind = cursor.i32()
    if kind == _SNAPSHOT:
        return _chunk(cursor, cursor.utf(), lambda: _tables(version, cursor), version)
    cursor.expect("kind of a split", kind, _STREAM)
    fields = _stream(cursor, version, "binlog-split")
    fields["finished_chunks"] = tuple(_finished(cursor, version) for _ in range(cursor.count(9)))
    fields["tables"] = _tables(version, cursor)
    if version >= 3:
        fields["total_finished_chunks"] = cursor.i32()
    if version == 4 and cursor.left:  # Connectors up to 2.2.0 leave it out.
        fields["is_suspended"] = cursor.bool()
    return fields


def _cdc(version: int, cursor: Cursor) -> Fields:
    kind = cursor.i32()
    if kind == _SNAPSHOT:
        cursor.bool()  # whether the catalog comes before the schema in names of tables
        return _chunk(cursor, cursor.utf(), lambda: _named_tables(cursor), version)
    cursor.expect("kind of a split", kind, _STREAM)
    fields = _stream(cursor, version, "stream-split")
    finished = []
    for _ in range(cursor.count(12)):
        finished.append(_finished(cursor, version, has_factory=True))
        cursor.bool()
    fields["finished_chunks"] = tuple(finished)
    fields["tables"] = _named_tables(cursor)
    fields["total_finished_chunks"] = cursor.i32()
    if version >= 5:
        fields["is_suspended"] = cursor.bool()
    if version >= 6:
        fields["is_snapshot_completed"] = cursor.bool()
    return fields


def _chunk(
    cursor: Cursor, table: str, read_tables: Callable[[], tuple[str, ...]], version: int
) -> dict[str, Any]:
    """Read a chunk of a snapshot; its bounds are objects of Java in hex."""
    texts = [cursor.utf() for _ in range(4)]
    fields = dict(zip(("split_id", "key_type", "start", "end"), texts))
    watermark = _offset(cursor, version)
    return {**fields, "table": table, "high_watermark": watermark, "tables": read_tables()}


def _stream(cursor: Cursor, version: int, split_id: str) -> dict[str, Any]:
    found, empty = cursor.utf(), cursor.utf()
    if not found.startswith(split_id) or empty:
        raise cursor.error(f"a stream that is no {split_id}")
    start, end = _offset(cursor, version), _offset(cursor, version)
    return {"split_id": found, "starting_offset": start, "ending_offset": end}


def _offset(cursor: Cursor, version: int) -> dict[str, Any] | None:
    if not cursor.bool():
        return None
    if version == 1:
        return {"file": cursor.utf(), "pos": cursor.i64()}
    return _json(cursor, _framed(cursor))


def _finished(cursor: Cursor, version: int, has_factory: bool = False) -> dict[str, Any]:
    table, split_id = cursor.utf(), cursor.utf()
    for _ in range(3 if has_factory else 2):
        cursor.utf()  # the bounds, and the class of offsets, objects of Java in hex
    return {"table": table, "split_id": split_id, "high_watermark": _offset(cursor, version)}


def _tables(version: int, cursor: Cursor) -> tuple[str, ...]:
    """Read the names of tables, and pass over their schemas."""
    names = []
    for _ in range(cursor.count(4)):
        names.append(cursor.utf())
        cursor.skip(cursor.u16() if version == 1 else cursor.i32())
    return tuple(names)


def _named_tables(cursor: Cursor) -> tuple[str, ...]:
    names = []
    for _ in range(cursor.count(7)):
        cursor.bool()
        names.append(cursor.utf())
        cursor.frame()
    return tuple(names)


# --- others -------------------------------------------------------------------------------------


def _mongodb(version: int, cursor: Cursor) -> Fields:
    cursor.expect("kind of a split", cursor.i32(), 1)
    fields: dict[str, Any] = {
        name: cursor.utf() for name in ("split_id", "database", "collection", "min", "max", "hint")
    }
    for name in ("min", "max", "hint"):
        fields[name] = _json(cursor, fields[name].encode("utf-8", "surrogatepass"))
    return fields


def _jdbc(version: int, cursor: Cursor) -> Fields:
    fields: dict[str, Any] = {"split_id": cursor.utf(), "sql": cursor.utf()}
    fields["parameters"] = _java_object(cursor)
    if version == 0:
        offset = _java_object(cursor)
        fields["checkpointed_offset"] = None if offset == _NULL_OBJECT else offset
        return fields
    fields["checkpointed_offset"] = cursor.longs(2) if cursor.bool() else None
    fields["snapshot_id"] = cursor.utf() if cursor.bool() else None
    return fields


def _iceberg(version: int, cursor: Cursor) -> Fields:
    file_offset, record_offset = cursor.i32(), cursor.i64()
    tasks = []
    for _ in range(cursor.count(4)):
        text = cursor.take(cursor.u16() if version == 2 else cursor.i32())
        task = _json(cursor, cursor.decode(text).encode("utf-8", "surrogatepass"))
        tasks.append(_data_file(task))
    if not 0 <= file_offset < len(tasks) or record_offset < 0:
        raise cursor.error("an offset in no file")
    return {"files": tuple(tasks), "file_offset": file_offset, "record_offset": record_offset}


def _data_file(task: dict[str, Any]) -> tuple[str | None, int | None, int | None]:
    """Return the path, the start and the length of a task, None for what it does not have."""
    file = task.get("data-file")
    path = file.get("file-path") if isinstance(file, dict) else None
    return path, task.get("start"), task.get("length")


def _paimon(version: int, cursor: Cursor) -> Fields:
    split_id = cursor.utf()
    split = cursor.take(cursor.left - 8)
    skipped = cursor.i64()
    if not split.startswith(_JAVA_OBJECT) or skipped < 0:
        raise cursor.error("no split of Paimon")
    return {"split_id": split_id, "split": split, "records_to_skip": skipped}


LAYOUTS = (
    SplitLayout(*("Kinesis", (0, 1, 2), _kinesis), ("stream_arn", "shard"), ("starts", "marker")),
    SplitLayout("Pulsar", (0, 1, 2), _pulsar, ("topic", "partition"), ("last_message",)),
    SplitLayout(
        *("MySQL CDC", (1, 2, 3, 4), _mysql),
        ("split_id",),
        ("starting_offset", "high_watermark"),
    ),
    SplitLayout(*("CDC", (4, 5, 6), _cdc), ("split_id",), ("starting_offset", "high_watermark")),
    SplitLayout("MongoDB", (0,), _mongodb, ("split_id",), ("min",)),
    SplitLayout("JDBC", (0, 1), _jdbc, ("split_id",), ("checkpointed_offset",)),
    SplitLayout("Iceberg", (2, 3), _iceberg, ("files",), ("file_offset", "record_offset")),
    SplitLayout("Paimon", (1,), _paimon, ("split_id",), ("records_to_skip",)),
)
"""The layouts that are tried, in the order of the table in `keygroups.savepoint.sources`."""
