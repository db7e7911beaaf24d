"""The layouts of the connectors' splits and enumerators that are known: the rows of LAYOUTS.

They are facts of the connectors' public source, which each row names. A source is known if all its
splits are of one layout, and of no other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from keygroups._serializers.data_input import Cursor
from keygroups._serializers.jvm.objects import JavaObject, read_java_object
from keygroups.savepoint._sources.cdc_layouts import CDC, MYSQL_CDC
from keygroups.savepoint._sources.split_layouts import (
    EncodedSplit,
    Fields,
    SplitLayout,
    framed,
    java_object,
    json_object,
    split_of,
    starts_java_object,
    unordered,
)

_NULL_OBJECT = b"\xac\xed\0\5p"  # null in a stream of Java's objects
_MOST_OF_RANGE = 65_535  # Pulsar: TopicRange.MAX_RANGE
_ITERATORS = (
    "AT_SEQUENCE_NUMBER",
    "AFTER_SEQUENCE_NUMBER",
    "TRIM_HORIZON",
    "LATEST",
    "AT_TIMESTAMP",
)
_UNASSIGNED = 1  # AWS: SplitAssignmentStatus, 0 is ASSIGNED, 2 FINISHED
_ICEBERG_STATUSES = ("UNASSIGNED", "ASSIGNED", "COMPLETED")  # IcebergSourceSplitStatus
_ICEBERG = "org.apache.iceberg."


# --- Amazon -------------------------------------------------------------------------------------


def _kinesis(version: int, cursor: Cursor) -> Fields:
    fields = _shard(cursor, "kinesis")
    fields["marker"] = _marker(cursor) if cursor.bool() else None
    if version >= 1:
        fields["parents"] = unordered(cursor, 2, Cursor.utf)
        fields["hash_keys"] = (cursor.utf(), cursor.utf())
    if version >= 2:
        fields["is_finished"] = cursor.bool()
    return fields


def _shard(cursor: Cursor, service: str) -> dict[str, Any]:
    fields: dict[str, Any] = {name: cursor.utf() for name in ("stream_arn", "shard", "starts")}
    name = fields["stream_arn"].split(":", 3)
    if name[:1] != ["arn"] or name[2:3] != [service] or fields["starts"] not in _ITERATORS:
        raise cursor.error(f"no shard of {service}")
    return fields


def _marker(cursor: Cursor) -> int | str | None:
    """Read the epoch milliseconds or the sequence number at which a shard goes on."""
    time = cursor.i64() if cursor.bool() else None
    return cursor.utf() if cursor.bool() else time


def _kinesis_shards(version: int, cursor: Cursor) -> Fields:
    last_seen = cursor.utf() if cursor.bool() else None
    known = _known_shards(cursor, KINESIS, statuses=2 if version else 0)
    return {"last_seen_shard": last_seen} | known


def _known_shards(cursor: Cursor, layout: SplitLayout, *, statuses: int) -> dict[str, Any]:
    """Read the shards that an enumerator knows; those that are not assigned are its splits.

    Each has one of so many statuses; of none, it is not assigned.
    """
    count = cursor.count(4)
    version = cursor.expect("version of a split", cursor.i32(), *layout.versions)

    def read(cursor: Cursor) -> tuple[int, bytes]:
        data = framed(cursor)
        if not statuses:
            return _UNASSIGNED, data
        return cursor.expect("status of a shard", cursor.i32(), *range(statuses)), data

    known = unordered(cursor, 4, read, count)
    fields: dict[str, Any] = {"assigned_splits": (), "splits": (), "finished_splits": ()}
    for number, name in enumerate(fields):
        splits = [(version, data) for status, data in known if status == number]
        fields[name] = tuple(splits) if name == "splits" else _fields(cursor, layout, splits)
    return fields


def _fields(
    cursor: Cursor, layout: SplitLayout, splits: Iterable[EncodedSplit]
) -> tuple[Fields, ...]:
    return tuple(
        split_of(layout, version, data, None, cursor.name).fields for version, data in splits
    )


def _dynamodb(version: int, cursor: Cursor) -> Fields:
    fields = _shard(cursor, "dynamodb")
    fields["marker"] = cursor.utf() if cursor.bool() and cursor.bool() else None
    fields["parent"] = cursor.utf() if cursor.bool() else None
    if version >= 1:
        fields["is_finished"] = cursor.bool()
    if version >= 2:
        fields["children"] = tuple(_child(cursor) for _ in range(cursor.count(7)))
    return fields


def _child(cursor: Cursor) -> tuple[str | None, ...]:
    """Read a shard, its parent, and its first and last sequence number."""
    known = (cursor.utf(), cursor.utf(), cursor.utf())
    return *known, cursor.utf() if cursor.bool() else None


def _dynamodb_shards(version: int, cursor: Cursor) -> Fields:
    known = _known_shards(cursor, DYNAMODB, statuses=3)
    return known | {"start_timestamp": cursor.i64()}


# --- Pulsar -------------------------------------------------------------------------------------


def _pulsar(version: int, cursor: Cursor) -> Fields:
    fields = _topic_partition(version, cursor)
    fields["stop_cursor"] = java_object(cursor)
    fields["last_message"] = _message(cursor) if cursor.bool() else None
    fields["transaction"] = cursor.longs(2) if cursor.bool() else None
    return fields


def _topic_partition(version: int, cursor: Cursor) -> dict[str, Any]:
    fields: dict[str, Any] = {"topic": cursor.utf(), "partition": cursor.i32()}
    count = cursor.count(8) if version else 1
    fields["ranges"] = tuple((cursor.i32(), cursor.i32()) for _ in range(count))
    if version == 1:
        cursor.i32()  # the mode of key-shared subscriptions
    is_partition = fields["topic"] and fields["partition"] >= -1
    if not is_partition or not all(_is_range(*ends) for ends in fields["ranges"]):
        raise cursor.error("no partition of Pulsar")
    return fields


def _is_range(start: int, end: int) -> bool:
    return 0 <= start <= end <= _MOST_OF_RANGE


def _message(cursor: Cursor) -> tuple[int, ...]:
    """Read a MessageIdData, by protobuf: ledger, entry, partition and place in a batch.

    The last two are -1 where there is none; PulsarApi.proto has the others as required.
    """
    inside = cursor.frame()
    numbers = {3: -1, 4: -1}
    while inside.left:
        tag = inside.varint()
        if tag & 7 == 0:
            number = inside.varint()
            numbers[tag >> 3] = number - (1 << 64) if number >> 63 else number
        elif tag & 7 == 2:
            inside.skip(inside.varint())
        else:
            raise cursor.error("no id of a message of Pulsar")
    if not numbers.keys() >= {1, 2}:
        raise cursor.error("an id of a message of Pulsar without a ledger or an entry")
    return tuple(numbers[number] for number in range(1, 5))


def _pulsar_partitions(version: int, cursor: Cursor) -> Fields:
    """Read the partitions that readers have got, whose layout is that of a version before."""
    of_split = max(version - 1, 0)
    least = 14 if of_split == 0 else 10
    fields = {
        "partitions": unordered(cursor, least, lambda at: _placed(_topic_partition(of_split, at)))
    }
    if version == 0:
        fields |= _legacy_pulsar(cursor)
    return fields


def _placed(partition: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(partition.values())


def _legacy_pulsar(cursor: Cursor) -> dict[str, Any]:
    """Read what connectors of Flink 1.14 wrote besides, and those since do not take up."""

    def read_splits(cursor: Cursor) -> tuple[Fields, ...]:
        return unordered(cursor, 22, lambda at: _pulsar(0, at))

    def read_topics(cursor: Cursor) -> tuple[str, ...]:
        return unordered(cursor, 2, Cursor.utf)

    return {
        "unassigned_splits": read_splits(cursor),
        "shared_splits": dict(unordered(cursor, 8, lambda at: (at.i32(), read_splits(at)))),
        "reader_topics": dict(unordered(cursor, 8, lambda at: (at.i32(), read_topics(at)))),
        "is_initialized": cursor.bool(),
    }


# --- databases ----------------------------------------------------------------------------------


def _mongodb(version: int, cursor: Cursor) -> Fields:
    cursor.expect("kind of a split", cursor.i32(), 1)
    names = ("split_id", "database", "collection", "min", "max", "hint")
    fields: dict[str, Any] = {name: cursor.utf() for name in names}
    for name in ("min", "max", "hint"):
        fields[name] = json_object(cursor, fields[name].encode("utf-8", "surrogatepass"))
    fields["offset"] = cursor.i32()
    return fields


def _mongodb_collections(version: int, cursor: Cursor) -> Fields:
    remaining, processed = (tuple(cursor.utf() for _ in range(cursor.count(2))) for _ in range(2))
    return {
        "remaining_collections": remaining,
        "processed_collections": processed,
        "splits": _inline(cursor, MONGODB, version, 20),
        "assigned_splits": dict(
            unordered(cursor, 22, lambda at: (at.utf(), _mongodb(version, at)))
        ),
        "is_initialized": cursor.bool(),
    }


def _inline(
    cursor: Cursor, layout: SplitLayout, version: int, size: int
) -> tuple[EncodedSplit, ...]:
    """Read splits, each of `size` bytes at least, that follow one another without a frame."""
    splits = []
    for _ in range(cursor.count(size)):
        start = cursor.pos
        layout.read(version, cursor)
        splits.append((version, cursor.data[start : cursor.pos]))
    return tuple(splits)


def _jdbc(version: int, cursor: Cursor) -> Fields:
    fields: dict[str, Any] = {"split_id": cursor.utf(), "sql": cursor.utf()}
    fields["parameters"] = java_object(cursor)
    if version == 0:
        offset = java_object(cursor)
        fields["checkpointed_offset"] = None if offset == _NULL_OBJECT else offset
        return fields
    fields["checkpointed_offset"] = cursor.longs(2) if cursor.bool() else None
    fields["snapshot_id"] = cursor.utf() if cursor.bool() else None
    return fields


def _jdbc_splits(version: int, cursor: Cursor) -> Fields:
    completed, pending, splits = (_inline(cursor, JDBC, version, 12) for _ in range(3))
    state = java_object(cursor)
    return {
        "completed_splits": _fields(cursor, JDBC, completed),
        "pending_splits": _fields(cursor, JDBC, pending),
        "splits": splits,
        "state": None if state == _NULL_OBJECT else state,
    }


# --- tables -------------------------------------------------------------------------------------


def _iceberg(version: int, cursor: Cursor) -> Fields:
    if version == 1:
        return _serialized_iceberg(cursor)
    file_offset, record_offset = cursor.i32(), cursor.i64()
    tasks = []
    for _ in range(cursor.count(2 if version == 2 else 4)):
        text = cursor.take(cursor.u16() if version == 2 else cursor.i32())
        task = json_object(cursor, cursor.decode(text).encode("utf-8", "surrogatepass"))
        tasks.append(_data_file(task))
    return _iceberg_fields(cursor, tasks, file_offset, record_offset)


def _iceberg_fields(
    cursor: Cursor, tasks: Iterable[tuple[Any, ...]], file_offset: Any, record_offset: Any
) -> Fields:
    files = tuple(tasks)
    if not isinstance(file_offset, int) or not isinstance(record_offset, int):
        raise cursor.error("an offset that is no number")
    if not 0 <= file_offset < len(files) or record_offset < 0:
        raise cursor.error("an offset in no file")
    return {"files": files, "file_offset": file_offset, "record_offset": record_offset}


def _data_file(task: dict[str, Any]) -> tuple[str | None, int | None, int | None]:
    """Return the path, the start and the length of a task, None for what it does not have."""
    file = task.get("data-file")
    path = file.get("file-path") if isinstance(file, dict) else None
    return path, task.get("start"), task.get("length")


def _serialized_iceberg(cursor: Cursor) -> Fields:
    """Read an IcebergSourceSplit that Java serialized, by the names of its classes and fields."""
    split = _java_fields(cursor, read_java_object(cursor), "flink.source.split.IcebergSourceSplit")
    tasks = _java_fields(cursor, split.get("task"), "BaseCombinedScanTask").get("tasks")
    files = [_file_task(cursor, task) for task in tasks] if isinstance(tasks, list) else []
    return _iceberg_fields(cursor, files, split.get("fileOffset"), split.get("recordOffset"))


def _file_task(cursor: Cursor, task: Any) -> tuple[Any, ...]:
    """Return the path, the start and the length of a task of a file, or of a part of one."""
    start = length = None
    part = f"{_ICEBERG}BaseFileScanTask$SplitScanTask"
    if isinstance(task, JavaObject) and task.java_class == part:
        start, length = task.fields.get("offset"), task.fields.get("len")
        task = task.fields.get("fileScanTask")
    file = _java_fields(cursor, task, "BaseFileScanTask").get("file")
    fields = _java_fields(cursor, file, "GenericDataFile")
    if start is None:
        start, length = 0, fields.get("fileSizeInBytes")
    path = fields.get("filePath")
    if not isinstance(path, str) or not all(isinstance(place, int) for place in (start, length)):
        raise cursor.error("a task without a file")
    return path, start, length


def _java_fields(cursor: Cursor, value: Any, java_class: str) -> dict[str, Any]:
    """Return the fields of an object of this class of Iceberg's."""
    if not isinstance(value, JavaObject) or value.java_class != f"{_ICEBERG}{java_class}":
        raise cursor.error(f"no object of {java_class}")
    return value.fields


def _iceberg_pending(version: int, cursor: Cursor) -> Fields:
    position = _iceberg_position(cursor) if cursor.bool() else None
    split_version = cursor.expect("version of a split", cursor.i32(), *ICEBERG.versions)
    splits, statuses = [], []
    for _ in range(cursor.count(6)):
        splits.append((split_version, framed(cursor)))
        statuses.append(cursor.utf())
    if not all(status in _ICEBERG_STATUSES for status in statuses):
        raise cursor.error("a status of no split")
    fields: dict[str, Any] = {"snapshot": position, "splits": tuple(splits)}
    fields["statuses"] = tuple(statuses)
    if version >= 2:
        fields["split_counts"] = tuple(cursor.i32() for _ in range(cursor.count(4)))
    return fields


def _iceberg_position(cursor: Cursor) -> tuple[int | None, int | None]:
    """Read the snapshot up to which splits were found, and its time, epoch milliseconds."""
    cursor.expect("version of a position", cursor.i32(), 1)
    inside = cursor.frame()
    snapshot, time = (inside.i64() if inside.bool() else None for _ in range(2))
    inside.expect_end("a position")
    return snapshot, time


def _paimon(version: int, cursor: Cursor) -> Fields:
    split_id = cursor.utf()
    split = cursor.take(cursor.left - 8)
    skipped = cursor.i64()
    if not starts_java_object(split) or skipped < 0:
        raise cursor.error("no split of Paimon")
    return {"split_id": split_id, "split": split, "records_to_skip": skipped}


def _paimon_pending(version: int, cursor: Cursor) -> Fields:
    splits = tuple((version, framed(cursor)) for _ in range(cursor.count(4)))
    snapshot = cursor.i64()
    if snapshot < -1:
        raise cursor.error("no snapshot of Paimon")
    return {"splits": splits, "next_snapshot": None if snapshot == -1 else snapshot}


KINESIS = SplitLayout(
    *("Kinesis", (0, 1, 2), _kinesis, ("stream_arn", "shard"), ("starts", "marker")),
    *((0, 1), _kinesis_shards),
)
DYNAMODB = SplitLayout(
    *("DynamoDB Streams", (0, 1, 2), _dynamodb, ("stream_arn", "shard"), ("starts", "marker")),
    *((0,), _dynamodb_shards),
)
PULSAR = SplitLayout(
    *("Pulsar", (0, 1, 2), _pulsar, ("topic", "partition"), ("last_message",)),
    *((0, 1, 2, 3), _pulsar_partitions),
)
MONGODB = SplitLayout(
    *("MongoDB", (0,), _mongodb, ("split_id",), ("min", "offset")),
    *((0,), _mongodb_collections),
)
JDBC = SplitLayout(
    *("JDBC", (0, 1), _jdbc, ("split_id",), ("checkpointed_offset",)), *((0,), _jdbc_splits)
)
ICEBERG = SplitLayout(
    *("Iceberg", (1, 2, 3), _iceberg, ("files",), ("file_offset", "record_offset")),
    *((1, 2), _iceberg_pending),
)
PAIMON = SplitLayout(
    *("Paimon", (1,), _paimon, ("split_id",), ("records_to_skip",)), *((1,), _paimon_pending)
)
LAYOUTS = (KINESIS, DYNAMODB, PULSAR, MYSQL_CDC, CDC, MONGODB, JDBC, ICEBERG, PAIMON)
"""The layouts that are tried, in the order of the table in `keygroups.savepoint.sources`."""
