"""The splits and the enumerators of sources of change data capture.

The layouts are those of flink-cdc at its tags release-2.0.0 to release-3.5.0: of MySQL's connector
MySqlSplitSerializer, and of the other databases', which stand on flink-cdc-base,
SourceSplitSerializer; of both the PendingSplitsStateSerializer of their enumerators. The base was
first released with version 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from keygroups._serializers.data_input import Cursor
from keygroups.errors import SavepointError
from keygroups.savepoint._sources.split_layouts import (
    EncodedSplit,
    Fields,
    SplitLayout,
    framed,
    json_object,
    unordered,
)

_SNAPSHOT, _STREAM = 1, 2  # kinds of splits and of enumerators
_BOTH = 3  # the kind of an enumerator of both
_IN_MYSQL = ("file", "kind")  # Each offset of MySQL's has one of them, no other database's has.
_FLAGS = ("INITIAL_ASSIGNING", "INITIAL_ASSIGNING_FINISHED")  # the two that a flag tells
_STATUSES = (  # AssignerStatus
    *_FLAGS,
    *("NEWLY_ADDED_ASSIGNING", "NEWLY_ADDED_ASSIGNING_SNAPSHOT_FINISHED"),
    "NEWLY_ADDED_ASSIGNING_FINISHED",
)
_OLDER_STATUSES = (  # the same up to release 2.3.0, which MySQL's alone has
    *(*_FLAGS, "SUSPENDED", "NEWLY_ADDED_ASSIGNING", "NEWLY_ADDED_ASSIGNING_FINISHED"),
)
_QUOTED = re.compile(r"(`[^`]*`\.?)+")  # A backtick in a name is doubled: two quoted texts.

ReadOffset = Callable[[Cursor], "dict[str, Any] | None"]


# --- splits -------------------------------------------------------------------------------------


def _mysql(version: int, cursor: Cursor) -> Fields:
    read_offset = partial(_mysql_offset, version)
    kind = cursor.i32()
    if kind == _SNAPSHOT:
        return _chunk(cursor, read_offset) | {"tables": _names(_schemas(cursor, version))}
    cursor.expect("kind of a split", kind, _STREAM)
    fields = _stream(cursor, "binlog-split", read_offset, has_key_type=version <= 2)
    fields["finished_chunks"] = tuple(
        _finished(cursor, read_offset) for _ in range(cursor.count(9))
    )
    fields["tables"] = _names(_schemas(cursor, version))
    if version >= 3:
        fields["total_finished_chunks"] = cursor.i32()
    if version == 4 and cursor.left:  # Connectors up to 2.2.0 leave it out.
        fields["is_suspended"] = cursor.bool()
    return fields


def _cdc(version: int, cursor: Cursor) -> Fields:
    read_offset = partial(_cdc_offset, version)
    kind = cursor.i32()
    if kind == _SNAPSHOT:
        if version >= 4:
            cursor.bool()  # whether the catalog comes before the schema in names of tables
        return _chunk(cursor, read_offset) | {"tables": _names(_named_schemas(cursor, version))}
    cursor.expect("kind of a split", kind, _STREAM)
    fields = _stream(cursor, "stream-split", read_offset)
    finished = []
    for _ in range(cursor.count(11)):
        finished.append(_finished(cursor, read_offset, texts=3))
        if version >= 4:
            cursor.bool()
    fields["finished_chunks"] = tuple(finished)
    fields["tables"] = _names(_named_schemas(cursor, version))
    fields["total_finished_chunks"] = cursor.i32()
    if version >= 5:
        fields["is_suspended"] = cursor.bool()
    if version >= 6:
        fields["is_snapshot_completed"] = cursor.bool()
    return fields


def _chunk(cursor: Cursor, read_offset: ReadOffset) -> dict[str, Any]:
    """Read a chunk of a snapshot but for its tables; its bounds are objects of Java in hex."""
    names = ("table", "split_id", "key_type", "start", "end")
    fields: dict[str, Any] = {name: cursor.utf() for name in names}
    return fields | {"high_watermark": read_offset(cursor)}


def _stream(
    cursor: Cursor, split_id: str, read_offset: ReadOffset, *, has_key_type: bool = False
) -> dict[str, Any]:
    found, key_type = cursor.utf(), cursor.utf()
    if not found.startswith(split_id) or (key_type and not has_key_type):
        raise cursor.error(f"a stream that is no {split_id}")
    start, end = read_offset(cursor), read_offset(cursor)
    return {"split_id": found, "starting_offset": start, "ending_offset": end}


def _mysql_offset(version: int, cursor: Cursor) -> dict[str, Any] | None:
    if version == 1:
        return {"file": cursor.utf(), "pos": cursor.i64()} if cursor.bool() else None
    offset = _offset(cursor)
    if offset is not None and not any(key in offset for key in _IN_MYSQL):
        raise cursor.error("no place in a binlog")
    return offset


def _cdc_offset(version: int, cursor: Cursor) -> dict[str, Any] | None:
    offset = _offset(cursor)
    if version == 3 and offset is not None and any(key in offset for key in _IN_MYSQL):
        raise cursor.error("a place in a binlog of MySQL")
    return offset


def _offset(cursor: Cursor) -> dict[str, Any] | None:
    return json_object(cursor, framed(cursor)) if cursor.bool() else None


def _finished(cursor: Cursor, read_offset: ReadOffset, texts: int = 2) -> dict[str, Any]:
    table, split_id = cursor.utf(), cursor.utf()
    for _ in range(texts):
        cursor.utf()  # the bounds, and the class of offsets, objects of Java in hex
    return {"table": table, "split_id": split_id, "high_watermark": read_offset(cursor)}


def _schemas(cursor: Cursor, version: int) -> tuple[tuple[str, bytes], ...]:
    """Read the names of tables with their schemas, a text of JSON each."""

    def read(cursor: Cursor) -> tuple[str, bytes]:
        name = cursor.utf()
        return name, cursor.take(cursor.u16() if version == 1 else cursor.i32())

    return unordered(cursor, 4, read)


def _named_schemas(cursor: Cursor, version: int) -> tuple[tuple[str, bytes], ...]:
    """Read the same of the base: from version 4 on a flag says how to read the name."""

    def read(cursor: Cursor) -> tuple[str, bytes]:
        if version >= 4:
            cursor.bool()
        return cursor.utf(), framed(cursor)

    return unordered(cursor, 6, read)


def _names(schemas: Iterable[tuple[str, bytes]]) -> tuple[str, ...]:
    return tuple(name for name, _ in schemas)


# --- enumerators --------------------------------------------------------------------------------


def _mysql_pending(version: int, cursor: Cursor) -> Fields:
    """Read the state of MySQL's assigner.

    2.1.0 writes in version 3 whether it is finished, 2.2.0 its status. The bytes do not say
    which: they are those of one layout alone.
    """
    if version != 3:
        return _pending(cursor, MYSQL_CDC, partial(_mysql_snapshot, version, version > 3))
    start, read = cursor.pos, []
    for has_status in (True, False):
        cursor.pos = start
        with suppress(SavepointError):
            fields = _pending(cursor, MYSQL_CDC, partial(_mysql_snapshot, version, has_status))
            cursor.expect_end("an enumerator")
            read.append(fields)
    if len(read) != 1:
        raise cursor.error("no enumerator of MySQL CDC")
    cursor.pos += cursor.left
    return read[0]


def _mysql_snapshot(version: int, has_status: bool, split_version: int, cursor: Cursor) -> Fields:
    statuses = _OLDER_STATUSES if version <= 4 else _STATUSES
    fields = _assigned(
        split_version,
        cursor,
        (_mysql, partial(_mysql_offset, split_version), Cursor.utf),
        statuses if has_status else None,
    )
    if version >= 5:
        fields["status"] = _mysql_status(fields["status"], fields["assigned_splits"].values())
    if version >= 3:
        fields |= _remaining(cursor, Cursor.utf)
    if version >= 4:
        fields["schemas"] = _as_texts(cursor, _schemas(cursor, split_version))
    if version >= 5:
        fields |= _splitting(cursor)
    return fields


def _mysql_status(status: str, chunks: Iterable[Fields]) -> str:
    """Return a status of version 5, or the two that its code may be.

    2.3.0 and 2.4.0 write the same version, and by some codes mean other statuses. Only the newer
    one has the names of chunks' tables in quotes: MySqlSplitSerializer.serialize.
    """
    older = _OLDER_STATUSES[_STATUSES.index(status)]
    are_quoted = {_QUOTED.fullmatch(chunk["table"]) is not None for chunk in chunks}
    if older == status or are_quoted == {True}:
        return status
    return older if are_quoted == {False} else f"{older} or {status}"


def _cdc_pending(version: int, cursor: Cursor) -> Fields:
    """Read the state of the base's assigner."""
    return _pending(cursor, CDC, partial(_cdc_snapshot, version))


def _cdc_snapshot(version: int, split_version: int, cursor: Cursor) -> Fields:
    read_table = _named_table if version >= 5 else Cursor.utf
    fields = _assigned(
        split_version,
        cursor,
        (_cdc, partial(_cdc_offset, split_version), read_table),
        _STATUSES if version >= 6 else None,
    )
    fields |= _remaining(cursor, read_table)
    if version >= 4:
        fields["schemas"] = _as_texts(cursor, _named_schemas(cursor, split_version))
    if version >= 7:
        ids = unordered(cursor, 10, lambda cursor: (cursor.utf(), cursor.i64()))
        fields["finished_checkpoint_ids"] = dict(ids)
    if version >= 8:
        fields |= _splitting(cursor)
    return fields


def _pending(
    cursor: Cursor, layout: SplitLayout, read_snapshot: Callable[[int, Cursor], Fields]
) -> Fields:
    """Read the state of an assigner of a snapshot's chunks, of the stream, or of both."""
    split_version, kind = cursor.i32(), cursor.i32()
    cursor.expect("version of a split", split_version, *layout.versions)
    cursor.expect("kind of an enumerator", kind, _SNAPSHOT, _STREAM, _BOTH)
    fields = {} if kind == _STREAM else dict(read_snapshot(split_version, cursor))
    return fields if kind == _SNAPSHOT else fields | {"is_stream_assigned": cursor.bool()}


def _assigned(
    split_version: int,
    cursor: Cursor,
    readers: tuple[Callable[[int, Cursor], Fields], ReadOffset, Callable[[Cursor], str]],
    statuses: Sequence[str] | None,
) -> dict[str, Any]:
    """Read what both assigners have, by their readers of splits, offsets and names of tables.

    `statuses` are those of the assigner by their codes, None where a flag has the status.
    """
    read_split, read_offset, read_table = readers

    def read_assigned(cursor: Cursor) -> tuple[str, Fields]:
        split_id, split = cursor.utf(), cursor.frame()
        fields = read_split(split_version, split)
        split.expect_end("a split")
        return split_id, fields

    tables = tuple(read_table(cursor) for _ in range(cursor.count(2)))
    splits: tuple[EncodedSplit, ...] = tuple(
        (split_version, framed(cursor)) for _ in range(cursor.count(4))
    )
    assigned = unordered(cursor, 6, read_assigned)
    offsets = unordered(cursor, 3, lambda cursor: (cursor.utf(), read_offset(cursor)))
    if statuses is None:
        status = _FLAGS[cursor.bool()]
    else:
        code = cursor.expect("status of an assigner", cursor.i32(), *range(len(statuses)))
        status = statuses[code]
    return {
        "processed_tables": tables,
        "splits": splits,
        "assigned_splits": dict(assigned),
        "finished_offsets": dict(offsets),
        "status": status,
    }


def _remaining(cursor: Cursor, read_table: Callable[[Cursor], str]) -> dict[str, Any]:
    tables = tuple(read_table(cursor) for _ in range(cursor.count(2)))
    return {"remaining_tables": tables, "is_case_sensitive": cursor.bool()}


def _splitting(cursor: Cursor) -> dict[str, Any]:
    """Read the table that is being cut into chunks, and the next of these."""
    names = ("splitting_table", "next_chunk_start", "next_chunk_id")
    if not cursor.bool():
        return dict.fromkeys(names)
    return dict(zip(names, (cursor.utf(), cursor.utf(), cursor.i32())))


def _named_table(cursor: Cursor) -> str:
    cursor.bool()
    return cursor.utf()


def _as_texts(cursor: Cursor, schemas: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    try:
        return {name: schema.decode() for name, schema in schemas}
    except UnicodeDecodeError:
        raise cursor.error("a schema is not in UTF-8") from None


MYSQL_CDC = SplitLayout(
    *("MySQL CDC", (1, 2, 3, 4), _mysql),
    *(("split_id",), ("starting_offset", "high_watermark")),
    *((1, 2, 3, 4, 5), _mysql_pending),
)
CDC = SplitLayout(
    *("CDC", (3, 4, 5, 6), _cdc),
    *(("split_id",), ("starting_offset", "high_watermark")),
    *((3, 4, 5, 6, 7, 8), _cdc_pending),
)
