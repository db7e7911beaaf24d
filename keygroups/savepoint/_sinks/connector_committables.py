"""The committables of the sinks of other connectors: transactions of Pulsar, files of tables.

The layouts are facts of the connectors' public source, each row of READERS one. Of Pulsar
PulsarCommittableSerializer, of flink-connector-pulsar v3.0.0 to v4.1.0; of Iceberg 0.12 to 1.10
DeltaManifestsSerializer (versions 1 and 2), IcebergCommittableSerializer (1) and
DynamicCommittableSerializer (1 and 2); of Paimon 0.4 to 1.4 ManifestCommittableSerializer (2 to
5), WrappedManifestCommittableSerializer (1) and CommitMessageSerializer (2 to 13).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from keygroups._checks import record_repr
from keygroups._serializers.data_input import Cursor
from keygroups.errors import SavepointError
from keygroups.savepoint._sinks.part_files import versioned

T = TypeVar("T")

ICEBERG_STATE = "iceberg-files-committer-state"
"""The manifests by checkpoint of Iceberg's FlinkSink. Iceberg: IcebergFilesCommitter."""

_AVRO = b"\xc2\x01"  # Iceberg: AvroEncoderUtil.MAGIC_BYTES
_INTEGERS = ("int", "long")
_NULLABLE_INTEGERS = (["null", "int"], ["null", "long"])
_TRANSACTION = 1
_NEWEST_MESSAGE = 13
_FIXED = 8  # bytes of a field of a row of Paimon, and of its header, up to 56 fields


class ConnectorCommittable(NamedTuple):
    """A committable of a sink of `sink`, which is Pulsar, Iceberg or Paimon.

    `name` says what a restore commits. `fields` are, by name, of Pulsar transaction, the two
    halves of its id, and topic; of Iceberg manifests, each a path, its bytes, and the files and
    records that it adds, None where that is not told, and if known job_id, operator_id, table and
    branch; of Paimon table, where a sink has several, watermark, properties and messages, each
    with bucket and the names of files by what becomes of them, None where these are not known.
    `version` is that of the connector's serializer.
    """

    sink: str
    version: int
    name: str
    fields: Mapping[str, Any]

    def __repr__(self) -> str:
        return record_repr(self)


def read_connector_committable(version: int, cursor: Cursor) -> ConnectorCommittable:
    """Read all that is left, or raise SavepointError for bytes that are none, or of several."""
    return the_only(cursor, [partial(read, version) for read in READERS])


def the_only(cursor: Cursor, reads: Sequence[Callable[[Cursor], T]]) -> T:
    """Return the value of the one reader that can read the bytes, or of all that read it alike.

    Raises SavepointError where none can, or where several read other values.
    """
    start, found = cursor.pos, []
    for read in reads:
        cursor.pos = start
        with suppress(SavepointError):
            found.append((read(cursor), cursor.pos))
    if not found or any(other != found[0] for other in found):
        cursor.pos = start
        raise cursor.error("these bytes are of no layout that is known, or of several")
    value, cursor.pos = found[0]
    return value


def _pulsar(version: int, cursor: Cursor) -> ConnectorCommittable:
    cursor.expect("version of a committable of Pulsar", version, _TRANSACTION)
    transaction, topic = cursor.longs(2), cursor.utf()
    cursor.expect_end("a committable")
    if min(transaction) < 0 or not topic:
        raise cursor.error("no transaction of Pulsar")
    name = f"{topic}, transaction ({transaction[0]},{transaction[1]})"
    fields = {"transaction": transaction, "topic": topic}
    return ConnectorCommittable("Pulsar", version, name, fields)


# --- Iceberg ------------------------------------------------------------------------------------


def _iceberg(version: int, cursor: Cursor) -> ConnectorCommittable:
    """Read a committable of IcebergSink."""
    cursor.expect("version of a committable of Iceberg", version, 1)
    return _of_iceberg(version, cursor, {}, 1)


def _dynamic_iceberg(version: int, cursor: Cursor) -> ConnectorCommittable:
    """Read a committable of DynamicIcebergSink, which writes many tables."""
    cursor.expect("version of a committable of Iceberg", version, 1, 2)
    fields = {"table": cursor.utf(), "branch": cursor.utf()}
    if version == 1:
        cursor.longs(1)  # the ids of a schema and of a partition spec
        cursor.bool()  # whether it is written by upserts
        cursor.skip(4 * cursor.count(4))  # the fields of equality
    if not fields["table"]:
        raise cursor.error("a table without a name")
    return _of_iceberg(version, cursor, fields, None if version == 2 else 1)


def _of_iceberg(
    version: int, cursor: Cursor, fields: dict[str, Any], count: int | None
) -> ConnectorCommittable:
    fields |= {"job_id": cursor.utf(), "operator_id": cursor.utf()}
    fields["checkpoint_id"] = cursor.i64()
    count = cursor.count(4) if count is None else count
    frames = [cursor.frame() for _ in range(count)]
    cursor.expect_end("a committable")
    if not all(len(fields[name]) == 32 for name in ("job_id", "operator_id")):
        raise cursor.error("no ids of a job and its operator")
    return _with_manifests(version, fields, frames)


def read_manifests(checkpoint_id: int, cursor: Cursor) -> ConnectorCommittable:
    """Read the manifests of a checkpoint, all that is left. Iceberg: IcebergFilesCommitter."""
    return _with_manifests(1, {"checkpoint_id": checkpoint_id}, [cursor])


def _with_manifests(
    version: int, fields: dict[str, Any], cursors: Sequence[Cursor]
) -> ConnectorCommittable:
    """Return a committable with the manifests in several frames, of which some are empty."""
    manifests = [manifest for at in cursors if at.left for manifest in _manifests(at)]
    fields["manifests"] = tuple(manifests)
    paths = [fields["table"]] if "table" in fields else []
    paths += [path for path, *_ in manifests]
    return ConnectorCommittable("Iceberg", version, ", ".join(paths) or "no files", fields)


def _manifests(cursor: Cursor) -> Iterator[tuple[Any, ...]]:
    """Yield the manifests of data and of deletes in DeltaManifests."""
    version, inside = versioned(cursor)
    cursor.expect_end("manifests")
    cursor.expect("version of manifests", version, 1, 2)
    frames = [inside] if version == 1 else [inside.frame(), inside.frame()]
    for frame in frames:
        if frame.left:
            yield _manifest(frame)
    if version == 2:
        for _ in range(inside.count(2)):
            inside.utf()  # a data file that deletes refer to
        inside.expect_end("manifests")


def _manifest(cursor: Cursor) -> tuple[Any, ...]:
    """Read a ManifestFile: its path and bytes, and how many files and records it adds.

    Avro's schema comes before it. Its fields up to the first that is neither a text nor an
    integer are read, which these are among.
    """
    if cursor.take(2) != _AVRO:
        raise cursor.error("no manifest of Iceberg")
    try:
        columns = json.loads(cursor.utf())["fields"]
        types = [(column["name"], column["type"]) for column in columns]
    except (ValueError, RecursionError, TypeError, KeyError):
        raise cursor.error("no schema of a manifest") from None
    fields: dict[Any, Any] = {}
    for name, avro_type in types:
        if avro_type == "string":
            fields[str(name)] = _text(cursor)
        elif avro_type in _INTEGERS:
            fields[str(name)] = _zigzag(cursor)
        elif avro_type in _NULLABLE_INTEGERS:
            fields[str(name)] = _zigzag(cursor) if _is_there(cursor) else None
        else:
            break
    path, size = fields.get("manifest_path"), fields.get("manifest_length")
    if not isinstance(path, str) or not path or not isinstance(size, int) or size < 0:
        raise cursor.error("a manifest without a path")
    added = (fields.get("added_files_count"), fields.get("added_rows_count"))
    if not all(isinstance(count, int | None) for count in added):
        raise cursor.error("a count of a manifest that is no number")
    return path, size, *added


def _is_there(cursor: Cursor) -> bool:
    """Read the branch of a union with null."""
    return cursor.expect("branch of a union", _zigzag(cursor), 0, 1) == 1


def _zigzag(cursor: Cursor) -> int:
    number = cursor.varint()
    return (number >> 1) ^ -(number & 1)


def _text(cursor: Cursor) -> str:
    return _utf8(cursor, cursor.take(_zigzag(cursor)))


def _utf8(cursor: Cursor, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise cursor.error("a text is not in UTF-8") from None


# --- Paimon -------------------------------------------------------------------------------------


def read_paimon(version: int, cursor: Cursor) -> list[ConnectorCommittable]:
    """Read the committable of each table, all that is left, or raise SavepointError."""
    start = cursor.pos
    with suppress(SavepointError):
        return [_paimon(version, cursor, None)]
    cursor.pos = start
    cursor.expect("version of committables of several tables", version, 1)
    cursor.longs(2)  # the checkpoint's id and the watermark
    committables = []
    for _ in range(cursor.count(8)):
        table, inside = _utf8(cursor, _taken(cursor.frame())), cursor.frame()
        committables.append(_of_any_version(inside, table))
    cursor.expect_end("committables")
    return committables


def _of_any_version(cursor: Cursor, table: str) -> ConnectorCommittable:
    """Read a committable whose version is not told; what several read alike is known."""
    start, found = cursor.pos, []
    for version in (2, 3, 4, 5):
        cursor.pos = start
        with suppress(SavepointError):
            found.append(_paimon(version, cursor, table))
    cursor.pos = start
    if not found or any(other.fields != found[0].fields for other in found):
        raise cursor.error("no committable of Paimon")
    return found[0]


def _taken(cursor: Cursor) -> bytes:
    return cursor.take(cursor.left)


def _paimon(version: int, cursor: Cursor, table: str | None) -> ConnectorCommittable:
    cursor.expect("version of a committable of Paimon", version, 2, 3, 4, 5)
    fields: dict[str, Any] = {"checkpoint_id": cursor.i64()}
    fields["watermark"] = None if cursor.bool() else cursor.i64()
    if version <= 4:  # Newer versions pass over the offsets of a log, which no table has now.
        cursor.skip(12 * cursor.count(12))
    pairs = [(cursor.utf(), cursor.utf()) for _ in range(cursor.count(4) if version >= 4 else 0)]
    fields["properties"] = dict(pairs)
    message_version = cursor.i32()
    cursor.expect("version of a message", message_version, *range(2, _NEWEST_MESSAGE + 1))
    fields["messages"] = _messages(message_version, cursor)
    if fields["checkpoint_id"] < 0:
        raise cursor.error("a checkpoint without an id")
    new = [name for message in fields["messages"] for name in message["new_files"]]
    words = f"{len(fields['messages']):,} buckets, {len(new):,} new files"
    if table is not None:
        fields["table"], words = table, f"{table}: {words}"
    return ConnectorCommittable("Paimon", version, words, fields)


_DATA = ("new_files", "deleted_files", "changelog_files")
_INDEXES = ("new_indexes", "deleted_indexes")
_COMPACTED = ("compact_before", "compact_after", "compact_changelog")
_COMPACTED_INDEXES = ("compact_new_indexes", "compact_deleted_indexes")
_FORMS: dict[int, list[tuple[str, ...]]] = {
    **{
        2: [  # The forms are those of 0.8, 0.5 to 0.7 and 0.4.
            (*_DATA, *_COMPACTED, _INDEXES[0]),
            (_DATA[0], _DATA[2], *_COMPACTED, _INDEXES[0]),
            (_DATA[0], _DATA[2], *_COMPACTED),
        ]
    },
    **{version: [(*_DATA, *_COMPACTED, *_INDEXES)] for version in range(3, 10)},
    **{
        version: [(*_DATA, *_INDEXES, *_COMPACTED, *_COMPACTED_INDEXES)]
        for version in range(10, _NEWEST_MESSAGE + 1)
    },
}
"""The lists of files in a message, by its version, of which 2 has three forms."""


def _messages(version: int, cursor: Cursor) -> tuple[dict[str, Any], ...]:
    """Read the messages, all that is left, in the one form that takes it up."""
    return the_only(cursor, [partial(_in_form, version, form) for form in _FORMS[version]])


def _in_form(version: int, form: Sequence[str], cursor: Cursor) -> tuple[dict[str, Any], ...]:
    messages = []
    for _ in range(cursor.count(8 + 4 * len(form))):
        cursor.frame()  # the partition, a row
        message: dict[str, Any] = {"bucket": cursor.i32()}
        if version >= 7 and cursor.bool():
            cursor.i32()  # the number of buckets
        for name in form:
            field = 1 if "indexes" in name else 0
            rows = [cursor.frame() for _ in range(cursor.count(4))]
            message[name] = tuple(_file_name(row, field) for row in rows)
        messages.append(message)
    cursor.expect_end("messages")
    return tuple(messages)


def _file_name(cursor: Cursor, field: int) -> str:
    """Read the text that is such a field of a row. Paimon: BinaryRow, BinaryString."""
    start = cursor.pos
    cursor.skip(_FIXED * (1 + field))
    place = cursor.take(_FIXED)
    if place[-1] & 0x80:
        return _utf8(cursor, place[: place[-1] & 0x7F])
    size, offset = (int.from_bytes(place[at : at + 4], "little") for at in (0, 4))
    if offset < _FIXED * (2 + field):
        raise cursor.error("a file without a name")
    cursor.pos = start
    cursor.skip(offset)
    return _utf8(cursor, cursor.take(size))


READERS: tuple[Callable[[int, Cursor], ConnectorCommittable], ...] = (
    _pulsar,
    _iceberg,
    _dynamic_iceberg,
)
"""The readers of committables in Flink's own wrapper; of Paimon's there is none in it."""
