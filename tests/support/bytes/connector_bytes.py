"""Bytes of the splits, the enumerators and the committables of connectors, and what they are.

They are put together as the connectors' public source writes them. Each layout that the library
knows has a case here of each of its versions, which a test holds; so does the guard against
hostile savepoints, which damages them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.bytes import savepoint_bytes as sb
from support.bytes.source_bytes import framed

JAVA = b"\xac\xed\0\5sr\0\1a"
NULL = b"\xac\xed\0\5p"
HEX = "aced000570"
YES, NO = b"\1", b"\0"


def texts(*values: str) -> bytes:
    return b"".join(map(sb.utf, values))


def i32(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def i64(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def as_json(value: object) -> bytes:
    return framed(json.dumps(value).encode())


ARN = "arn:aws:kinesis:eu-1:1:stream/clicks"
SHARD = texts(ARN, "shardId-0", "AFTER_SEQUENCE_NUMBER")
IN_SHARD = {"stream_arn": ARN, "shard": "shardId-0", "starts": "AFTER_SEQUENCE_NUMBER"}
HASH_KEYS = i32(2) + texts("p2", "p1", "0", "9")
PARENTS = {"parents": ("p1", "p2"), "hash_keys": ("0", "9")}

BINLOG = {"file": "binlog.000058", "pos": "1402", "gtids": "a:1-5", "row": None}
OFFSET = YES + as_json(BINLOG)
AT_LSN = "lsn 23456, ts_usec 7"
LSN = {"lsn": "23456", "ts_usec": "7"}
SCHEMA = as_json({"type": "CREATE"})
MYSQL_STREAM = i32(2) + texts("binlog-split", "")
FIRST = YES + texts("b.1") + i64(4)
MYSQL_TABLES = i32(1) + texts("shop.a") + SCHEMA
MYSQL_END = i32(1) + texts("shop.a", "shop.a:0", HEX, HEX) + OFFSET + MYSQL_TABLES
MYSQL_FIELDS = {
    "split_id": "binlog-split",
    "starting_offset": BINLOG,
    "ending_offset": None,
    "finished_chunks": ({"table": "shop.a", "split_id": "shop.a:0", "high_watermark": BINLOG},),
    "tables": ("shop.a",),
}
POSITION = "file binlog.000058, pos 1402, gtids a:1-5"
CHUNK = {
    **{"split_id": "shop.a:3", "table": "shop.a", "key_type": "ROW<`id` INT>"},
    **{"start": HEX, "end": HEX, "high_watermark": None, "tables": ("shop.a",)},
}
CHUNK_TEXTS = texts("shop.a", "shop.a:3", "ROW<`id` INT>", HEX, HEX)
CDC_STREAM = i32(2) + texts("stream-split", "") + YES + as_json(LSN) + NO
CDC_END = i32(1) + texts("p.a", "p.a:0", HEX, HEX, HEX) + YES + as_json(LSN) + NO
CDC_TABLES = i32(1) + NO + texts("p.a") + SCHEMA
CDC_FIELDS = {
    "split_id": "stream-split",
    "starting_offset": LSN,
    "ending_offset": None,
    "finished_chunks": ({"table": "p.a", "split_id": "p.a:0", "high_watermark": LSN},),
    "tables": ("p.a",),
    "total_finished_chunks": 1,
}
TOPIC = texts("persistent://a/b/c") + i32(3)
MESSAGE = framed(b"\x08\xac\x02\x10\x07\x18\x03\x2a\1a")  # 300, 7, 3, and acknowledgements
NO_PARTITION = framed(b"\x08\1\x10\2\x18" + b"\xff" * 9 + b"\1\x20\5")
LAST = YES + MESSAGE + NO
WHOLE = framed(
    b"\x08\xac\x02\x10\x07"
)  # The partition and the place in a batch are absent: -1, -1.
IN_TOPIC = {
    **{"topic": "persistent://a/b/c", "partition": 3, "ranges": ((0, 65_535),)},
    **{"stop_cursor": JAVA, "last_message": (300, 7, 3, -1), "transaction": None},
}
RANGES = i32(1, 0, 65_535)
TASK = {"task-type": "file-scan-task", "data-file": {"file-path": "s3://a/1.parquet"}}
TASKS = [{**TASK, "start": 4, "length": 9}, {"task-type": "other"}]
ICEBERG = {
    "files": (("s3://a/1.parquet", 4, 9), (None, None, None)),
    "file_offset": 1,
    "record_offset": 8,
}
FILES = "('s3://a/1.parquet', 4, 9), (None, None, None)"

MONGO = i32(1) + texts("db.a_0", "db", "a", '{"_id": 1}', "{}", '{"_id": 1}')
IN_MONGO = {
    **{"split_id": "db.a_0", "database": "db", "collection": "a"},
    **{"min": {"_id": 1}, "max": {}, "hint": {"_id": 1}},
}
STREAM_ARN = "arn:aws:dynamodb:eu-1:1:table/t/stream/5"
IN_STREAM = {"stream_arn": STREAM_ARN, "shard": "s", "starts": "TRIM_HORIZON", "marker": None}
STREAM = texts(STREAM_ARN, "s", "TRIM_HORIZON")
CHILDREN = i32(2) + texts("c", "s", "10") + YES + texts("19") + texts("d", "s", "20") + NO
OLD_TABLES = i32(1) + texts("p.a") + SCHEMA

Case = tuple[str, int, bytes, Mapping[str, Any], str, str]
CASES: list[Case] = [
    (
        *("Kinesis", 0, SHARD + YES + NO + YES + texts("49")),
        {**IN_SHARD, "marker": "49"},
        *(f"{ARN}, shardId-0", "AFTER_SEQUENCE_NUMBER, 49"),
    ),
    (
        *("Kinesis", 1, texts(ARN, "s", "AT_TIMESTAMP") + YES + YES + i64(5) + NO + HASH_KEYS),
        {**IN_SHARD, "shard": "s", "starts": "AT_TIMESTAMP", "marker": 5, **PARENTS},
        *(f"{ARN}, s", "AT_TIMESTAMP, 5"),
    ),
    (
        *("Kinesis", 2, texts(ARN, "s", "LATEST") + NO + HASH_KEYS + YES),
        {
            **IN_SHARD,
            **{"shard": "s", "starts": "LATEST", "marker": None, **PARENTS},
            "is_finished": True,
        },
        *(f"{ARN}, s", "LATEST"),
    ),
    (
        *("Pulsar", 0, TOPIC + i32(0, 65_535) + framed(JAVA) + LAST),
        *(IN_TOPIC, "persistent://a/b/c, 3", "300, 7, 3, -1"),
    ),
    (
        *("Pulsar", 0, TOPIC + i32(0, 65_535) + framed(JAVA) + YES + WHOLE + NO),
        {**IN_TOPIC, "last_message": (300, 7, -1, -1)},
        *("persistent://a/b/c, 3", "300, 7, -1, -1"),
    ),
    (
        *("Pulsar", 1, TOPIC + RANGES + i32(0) + framed(JAVA) + LAST),
        *(IN_TOPIC, "persistent://a/b/c, 3", "300, 7, 3, -1"),
    ),
    (
        *("Pulsar", 2, TOPIC + RANGES + framed(JAVA) + YES + NO_PARTITION + NO),
        {**IN_TOPIC, "last_message": (1, 2, -1, 5)},
        *("persistent://a/b/c, 3", "1, 2, -1, 5"),
    ),
    (
        *("Pulsar", 2, TOPIC + RANGES + framed(JAVA) + NO + YES + i64(1, 2)),
        {**IN_TOPIC, "last_message": None, "transaction": (1, 2)},
        *("persistent://a/b/c, 3", ""),
    ),
    (
        *("DynamoDB Streams", 0, STREAM + NO + YES + texts("p")),
        *({**IN_STREAM, "parent": "p"}, f"{STREAM_ARN}, s", "TRIM_HORIZON"),
    ),
    (
        *("DynamoDB Streams", 1, STREAM + YES + YES + texts("49") + NO + YES),
        {**IN_STREAM, "marker": "49", "parent": None, "is_finished": True},
        *(f"{STREAM_ARN}, s", "TRIM_HORIZON, 49"),
    ),
    (
        *("DynamoDB Streams", 2, STREAM + YES + NO + NO + NO + CHILDREN),
        {
            **{**IN_STREAM, "parent": None, "is_finished": False},
            "children": (("c", "s", "10", "19"), ("d", "s", "20", None)),
        },
        *(f"{STREAM_ARN}, s", "TRIM_HORIZON"),
    ),
    (
        *(
            "MySQL CDC",
            1,
            i32(2) + texts("binlog-split", "ROW<`id` INT>") + FIRST + NO + i32(0, 0),
        ),
        {
            **{**MYSQL_FIELDS, "starting_offset": {"file": "b.1", "pos": 4}},
            **{"finished_chunks": (), "tables": ()},
        },
        *("binlog-split", "file b.1, pos 4"),
    ),
    (
        *("MySQL CDC", 1, MYSQL_STREAM + FIRST + NO + i32(0, 1) + texts("shop.a", "{}")),
        {**MYSQL_FIELDS, "starting_offset": {"file": "b.1", "pos": 4}, "finished_chunks": ()},
        *("binlog-split", "file b.1, pos 4"),
    ),
    (
        *("MySQL CDC", 2, MYSQL_STREAM + OFFSET + NO + MYSQL_END),
        *(MYSQL_FIELDS, "binlog-split", POSITION),
    ),
    (
        *("MySQL CDC", 3, MYSQL_STREAM + OFFSET + NO + MYSQL_END + i32(9)),
        *({**MYSQL_FIELDS, "total_finished_chunks": 9}, "binlog-split", POSITION),
    ),
    (
        *("MySQL CDC", 4, MYSQL_STREAM + OFFSET + NO + MYSQL_END + i32(9)),
        *({**MYSQL_FIELDS, "total_finished_chunks": 9}, "binlog-split", POSITION),
    ),
    (
        *("MySQL CDC", 4, MYSQL_STREAM + OFFSET + NO + MYSQL_END + i32(9) + YES),
        {**MYSQL_FIELDS, "total_finished_chunks": 9, "is_suspended": True},
        *("binlog-split", POSITION),
    ),
    (
        *("MySQL CDC", 4, i32(1) + CHUNK_TEXTS + NO + MYSQL_TABLES),
        *(CHUNK, "shop.a:3", ""),
    ),
    (
        *("MySQL CDC", 4, i32(1) + CHUNK_TEXTS + OFFSET + MYSQL_TABLES),
        *({**CHUNK, "high_watermark": BINLOG}, "shop.a:3", POSITION),
    ),
    (
        *("CDC", 3, CDC_STREAM + CDC_END[:-1] + OLD_TABLES + i32(1)),
        *(CDC_FIELDS, "stream-split", AT_LSN),
    ),
    (
        *("CDC", 3, i32(1) + CHUNK_TEXTS + YES + as_json(LSN) + OLD_TABLES),
        *({**CHUNK, "high_watermark": LSN, "tables": ("p.a",)}, "shop.a:3", AT_LSN),
    ),
    ("CDC", 4, CDC_STREAM + CDC_END + CDC_TABLES + i32(1), CDC_FIELDS, "stream-split", AT_LSN),
    (
        *("CDC", 4, i32(1) + NO + CHUNK_TEXTS + YES + as_json(LSN) + CDC_TABLES),
        {**CHUNK, "high_watermark": LSN, "tables": ("p.a",)},
        *("shop.a:3", AT_LSN),
    ),
    (
        *("CDC", 5, CDC_STREAM + CDC_END + CDC_TABLES + i32(1) + NO),
        *({**CDC_FIELDS, "is_suspended": False}, "stream-split", AT_LSN),
    ),
    (
        *("CDC", 6, CDC_STREAM + CDC_END + CDC_TABLES + i32(1) + NO + YES),
        {**CDC_FIELDS, "is_suspended": False, "is_snapshot_completed": True},
        *("stream-split", AT_LSN),
    ),
    (
        *("CDC", 6, i32(1) + NO + CHUNK_TEXTS + YES + as_json(LSN) + CDC_TABLES),
        {**CHUNK, "high_watermark": LSN, "tables": ("p.a",)},
        *("shop.a:3", AT_LSN),
    ),
    (
        *("MongoDB", 0, MONGO + i32(70)),
        *({**IN_MONGO, "offset": 70}, "db.a_0", "_id 1, 70"),
    ),
    (
        *("JDBC", 0, texts("1", "select ?") + framed(JAVA) + framed(NULL)),
        {"split_id": "1", "sql": "select ?", "parameters": JAVA, "checkpointed_offset": None},
        *("1", ""),
    ),
    (
        *("JDBC", 0, texts("1", "select ?") + framed(JAVA) + framed(JAVA)),
        {"split_id": "1", "sql": "select ?", "parameters": JAVA, "checkpointed_offset": JAVA},
        *("1", str(JAVA)),
    ),
    (
        *("JDBC", 1, texts("1", "select") + framed(NULL) + YES + i64(5, 6) + YES + texts("s")),
        {
            **{"split_id": "1", "sql": "select", "parameters": NULL},
            **{"checkpointed_offset": (5, 6), "snapshot_id": "s"},
        },
        *("1", "5, 6"),
    ),
    (
        *("JDBC", 1, texts("1", "select") + framed(NULL) + NO + NO),
        {
            **{"split_id": "1", "sql": "select", "parameters": NULL},
            **{"checkpointed_offset": None, "snapshot_id": None},
        },
        *("1", ""),
    ),
    (
        *("Iceberg", 2, i32(1) + i64(8) + i32(2) + texts(*map(json.dumps, TASKS))),
        *(ICEBERG, FILES, "1, 8"),
    ),
    (
        *("Iceberg", 3, i32(1) + i64(8) + i32(2) + b"".join(map(as_json, TASKS))),
        *(ICEBERG, FILES, "1, 8"),
    ),
    (
        *("Paimon", 1, texts("a-1") + JAVA + i64(0)),
        *({"split_id": "a-1", "split": JAVA, "records_to_skip": 0}, "a-1", "0"),
    ),
    (
        *("Paimon", 1, texts("a-1") + JAVA + i64(70)),
        *({"split_id": "a-1", "split": JAVA, "records_to_skip": 70}, "a-1", "70"),
    ),
]

# --- what the connectors' own classes wrote -----------------------------------------------------

_VECTORS = Path(__file__).parents[2] / "vectors" / "connector_states.json"
REAL: dict[str, bytes] = {
    name: bytes.fromhex(data)
    for states in json.loads(_VECTORS.read_text()).values()
    for name, data in states.items()
}
"""Bytes by what they are and the version of the serializer."""

_ROW = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c020000787000000001737200"
    "116a6176612e6c616e672e496e746567657212e2a0a4f781873802000149000576616c7565787200106a6176612e6c"
    "616e672e4e756d62657286ac951d0b94e08b02000078700000000"
)
FIVE, SEVEN = f"{_ROW}5", f"{_ROW}7"
_KEY = "ROW<`id` INT NOT NULL>"
_STEPS = {"row": "0", "event": "0", "ts_sec": "0"}
_PLACE = {**_STEPS, "file": "b.7", "pos": "99", "kind": "SPECIFIC"}
_END = {**_STEPS, "file": "", "pos": str(-(2**63)), "kind": "NON_STOPPING"}
_TABLES = ('"shop"."a"', '"shop"."b"')
_CHUNK = {"key_type": _KEY, "start": FIVE, "end": HEX}
_REAL_TEXT = "('s3://a/1.parquet', 0, 90), ('s3://a/2.parquet', 40, 100)"
_REAL_FILES = {
    "files": (("s3://a/1.parquet", 0, 90), ("s3://a/2.parquet", 40, 100)),
    **{"file_offset": 1, "record_offset": 8},
}
_AT_PLACE = "ts_sec 0, file b.7, pos 99, kind SPECIFIC, row 0, event 0"
CASES += [
    ("Iceberg", version, REAL[f"Iceberg split {version}"], _REAL_FILES, _REAL_TEXT, "1, 8")
    for version in (1, 2, 3)
]
CASES += [
    (
        *("MySQL CDC", 4, REAL["MySQL CDC chunk split 4"]),
        {
            **_CHUNK,
            **{"table": "`shop`.`a`", "split_id": "shop.a:1", "high_watermark": _PLACE},
            "tables": _TABLES,
        },
        *("shop.a:1", _AT_PLACE),
    ),
    (
        *("MySQL CDC", 4, REAL["MySQL CDC stream split 4"]),
        {
            **{"split_id": "binlog-split", "starting_offset": _PLACE, "ending_offset": _END},
            "finished_chunks": (
                {"table": '"shop"."a"', "split_id": "shop.a:0", "high_watermark": _PLACE},
            ),
            **{"tables": _TABLES, "total_finished_chunks": 1, "is_suspended": True},
        },
        *("binlog-split", _AT_PLACE),
    ),
    (
        *("CDC", 6, REAL["CDC chunk split 6"]),
        {
            **_CHUNK,
            **{"table": '"p"."a"', "split_id": "p.a:1", "high_watermark": {"lsn": "23456"}},
            "tables": ('"p"."a"', '"p"."b"'),
        },
        *("p.a:1", "lsn 23456"),
    ),
    (
        *("CDC", 6, REAL["CDC stream split 6"]),
        {
            **{"split_id": "stream-split", "starting_offset": {"lsn": "23456"}},
            **{"ending_offset": None, "tables": ('"p"."a"', '"p"."b"')},
            "finished_chunks": (
                {"table": "p.a", "split_id": "p.a:0", "high_watermark": {"lsn": "23456"}},
            ),
            **{"total_finished_chunks": 1, "is_suspended": False, "is_snapshot_completed": True},
        },
        *("stream-split", "lsn 23456"),
    ),
]

# --- enumerators --------------------------------------------------------------------------------

EnumeratorCase = tuple[str, int, bytes, Mapping[str, Any], list[str]]
"""A layout, a version, bytes, the fields, and the names of the splits that no reader has."""


def _shards(*numbers: int) -> list[bytes]:
    return [texts(ARN, f"shard-{number}", "LATEST") + NO for number in numbers]


def _shard(number: int) -> dict[str, Any]:
    return {"stream_arn": ARN, "shard": f"shard-{number}", "starts": "LATEST", "marker": None}


_A, _B = _shards(0, 1)
_OF_DYNAMODB = STREAM + NO + NO
_IN_DYNAMODB = {**IN_STREAM, "parent": None}
PARTITIONS = i32(2) + b"".join(texts(topic) + i32(0) + i32(1, 0, 65_535) for topic in ("t2", "t1"))
_IN_PARTITIONS = {"partitions": (("t1", 0, ((0, 65_535),)), ("t2", 0, ((0, 65_535),)))}
_OLD_PARTITION = texts("t1") + i32(0, 0, 65_535)
_OLD_SPLIT = _OLD_PARTITION + framed(JAVA) + NO + NO
_IN_OLD_SPLIT = {
    **{"topic": "t1", "partition": 0, "ranges": ((0, 65_535),), "stop_cursor": JAVA},
    **{"last_message": None, "transaction": None},
}
_MODE = i32(1) + texts("t1") + i32(0) + i32(1, 0, 65_535) + i32(0)
_SCAN = MONGO + i32(0)
_IN_SCAN = {**IN_MONGO, "offset": 0}
_QUERY = texts("1", "select ?") + framed(JAVA) + framed(NULL)
_IN_QUERY = {"split_id": "1", "sql": "select ?", "parameters": JAVA, "checkpointed_offset": None}
_OLD_CHUNK = i32(1) + CHUNK_TEXTS + NO + i32(0)
_IN_OLD_CHUNK = {**CHUNK, "tables": ()}
_OLD_STATE = i32(1) + texts("shop.a") + i32(1) + framed(_OLD_CHUNK)
_OLD_STATE += i32(1) + texts("shop.a:3") + framed(_OLD_CHUNK)
_IN_OLD_STATE = {"processed_tables": ("shop.a",), "assigned_splits": {"shop.a:3": _IN_OLD_CHUNK}}
_FINISHED = i32(1) + texts("shop.a:3") + OFFSET
_IN_FINISHED = {"finished_offsets": {"shop.a:3": BINLOG}}
_REST = i32(1) + texts("shop.b") + YES
_IN_REST = {"remaining_tables": ("shop.b",), "is_case_sensitive": True}
_IN_SCHEMAS = {"schemas": {"shop.a": '{"type": "CREATE"}'}}
_IN_SPLITTING = {"splitting_table": None, "next_chunk_start": None, "next_chunk_id": None}
_CDC_STATE = i32(3, 1) + i32(1) + texts("shop.a") + i32(0, 0) + i32(1) + texts("p.a:0") + YES
_CDC_STATE += as_json(LSN)
_IN_CDC_STATE = {
    **{"processed_tables": ("shop.a",), "assigned_splits": {}},
    "finished_offsets": {"p.a:0": LSN},
}


def _newer_cdc(split_version: int) -> bytes:
    return (
        i32(split_version, 1, 1)
        + YES
        + texts("shop.a")
        + i32(0, 0)
        + i32(1)
        + texts("p.a:0")
        + YES
        + as_json(LSN)
    )


_NEWER_REST = i32(1) + NO + texts("shop.b") + YES
_NEWER_SCHEMAS = i32(1) + NO + texts("shop.a") + SCHEMA
_STATUS = {"status": "INITIAL_ASSIGNING_FINISHED"}
_REAL_STATE = {
    **{"processed_tables": ('"shop"."a"',), "finished_offsets": {"shop.a:1": _PLACE}},
    "assigned_splits": {
        "shop.a:1": {
            **_CHUNK,
            **{"table": "`shop`.`a`", "split_id": "shop.a:1", "high_watermark": _PLACE},
            "tables": (),
        }
    },
    **{"status": "NEWLY_ADDED_ASSIGNING", "remaining_tables": ('"shop"."b"', '"shop"."c"')},
    **{"is_case_sensitive": True, "schemas": dict.fromkeys(_TABLES, '{"t":1}')},
    **{"splitting_table": '"shop"."c"', "next_chunk_start": SEVEN, "next_chunk_id": 3},
}
_REAL_CDC = {
    **{"processed_tables": ('"p"."a"',), "finished_offsets": {"p.a:1": {"lsn": "23456"}}},
    "assigned_splits": {
        "p.a:1": {
            **_CHUNK,
            **{"table": '"p"."a"', "split_id": "p.a:1", "high_watermark": {"lsn": "23456"}},
            "tables": (),
        }
    },
    **{"status": "INITIAL_ASSIGNING", "remaining_tables": ('"p"."b"', '"p"."c"')},
    **{"is_case_sensitive": True, "schemas": dict.fromkeys(('"p"."a"', '"p"."b"'), '{"t":1}')},
    **{"splitting_table": '"p"."c"', "next_chunk_start": SEVEN, "next_chunk_id": 3},
    **{"finished_checkpoint_ids": {"p.a:1": 4}, "is_stream_assigned": False},
}
_ICEBERG_POSITION = {"snapshot": (77, 1_700_000_000_000), "statuses": ("UNASSIGNED",)}
_ICEBERG_NAME = "('s3://a/1.parquet', 0, 90)"

ENUMERATORS: list[EnumeratorCase] = [
    (
        *("Kinesis", 0, NO + i32(2, 0) + framed(_B) + framed(_A)),
        {"last_seen_shard": None, "assigned_splits": (), "finished_splits": ()},
        [f"{ARN}, shard-0", f"{ARN}, shard-1"],
    ),
    (
        "Kinesis",
        1,
        YES + texts("shard-1") + i32(2, 0) + framed(_B) + i32(1) + framed(_A) + i32(0),
        {"last_seen_shard": "shard-1", "assigned_splits": (_shard(0),), "finished_splits": ()},
        [f"{ARN}, shard-1"],
    ),
    (
        *("DynamoDB Streams", 0, i32(1, 0) + framed(_OF_DYNAMODB) + i32(2) + i64(5)),
        {
            **{"assigned_splits": (), "finished_splits": (_IN_DYNAMODB,)},
            "start_timestamp": 5,
        },
        [],
    ),
    (
        "Pulsar",
        0,
        i32(1)
        + _OLD_PARTITION
        + i32(1)
        + _OLD_SPLIT
        + i32(1, 2, 1)
        + _OLD_SPLIT
        + i32(1, 3, 2)
        + texts("t2", "t1")
        + YES,
        {
            **{"partitions": (("t1", 0, ((0, 65_535),)),), "unassigned_splits": (_IN_OLD_SPLIT,)},
            **{"shared_splits": {2: (_IN_OLD_SPLIT,)}, "reader_topics": {3: ("t1", "t2")}},
            "is_initialized": True,
        },
        [],
    ),
    (
        *("Pulsar", 1, i32(1) + _OLD_PARTITION),
        *({"partitions": (("t1", 0, ((0, 65_535),)),)}, []),
    ),
    ("Pulsar", 2, _MODE, {"partitions": (("t1", 0, ((0, 65_535),)),)}, []),
    ("Pulsar", 3, PARTITIONS, _IN_PARTITIONS, []),
    ("MySQL CDC", 1, i32(1, 2) + YES, {"is_stream_assigned": True}, []),
    (
        *("MySQL CDC", 2, i32(2, 1) + _OLD_STATE + _FINISHED + NO),
        {**_IN_OLD_STATE, **_IN_FINISHED, "status": "INITIAL_ASSIGNING"},
        ["shop.a:3"],
    ),
    (
        *("MySQL CDC", 3, i32(3, 3) + _OLD_STATE + _FINISHED + YES + _REST + NO),
        {
            **{**_IN_OLD_STATE, **_IN_FINISHED, **_STATUS, **_IN_REST},
            "is_stream_assigned": False,
        },
        ["shop.a:3"],
    ),
    (
        *("MySQL CDC", 3, i32(4, 1) + _OLD_STATE + _FINISHED + i32(4) + _REST),
        {
            **{**_IN_OLD_STATE, **_IN_FINISHED, **_IN_REST},
            "status": "NEWLY_ADDED_ASSIGNING_FINISHED",
        },
        ["shop.a:3"],
    ),
    (
        *("MySQL CDC", 4, i32(4, 1) + _OLD_STATE + _FINISHED + i32(1) + _REST + MYSQL_TABLES),
        {**_IN_OLD_STATE, **_IN_FINISHED, **_STATUS, **_IN_REST, **_IN_SCHEMAS},
        ["shop.a:3"],
    ),
    (
        "MySQL CDC",
        5,
        i32(4, 1) + _OLD_STATE + _FINISHED + i32(1) + _REST + MYSQL_TABLES + NO,
        {
            **{**_IN_OLD_STATE, **_IN_FINISHED, **_STATUS, **_IN_REST},
            **{**_IN_SCHEMAS, **_IN_SPLITTING},
        },
        ["shop.a:3"],
    ),
    ("MySQL CDC", 5, REAL["MySQL CDC snapshot enumerator 5"], _REAL_STATE, ["shop.a:0"]),
    (
        *("MySQL CDC", 5, REAL["MySQL CDC hybrid enumerator 5"]),
        *({**_REAL_STATE, "is_stream_assigned": False}, ["shop.a:0"]),
    ),
    (
        *("MySQL CDC", 5, REAL["MySQL CDC stream enumerator 5"]),
        *({"is_stream_assigned": True}, []),
    ),
    (
        *("CDC", 3, _CDC_STATE + YES + _REST),
        *({**_IN_CDC_STATE, **_STATUS, **_IN_REST}, []),
    ),
    (
        *("CDC", 4, _CDC_STATE + YES + _REST + OLD_TABLES),
        {
            **{**_IN_CDC_STATE, **_STATUS, **_IN_REST},
            "schemas": {"p.a": '{"type": "CREATE"}'},
        },
        [],
    ),
    (
        *("CDC", 5, _newer_cdc(4) + YES + _NEWER_REST + _NEWER_SCHEMAS),
        *({**_IN_CDC_STATE, **_STATUS, **_IN_REST, **_IN_SCHEMAS}, []),
    ),
    (
        *("CDC", 6, _newer_cdc(5) + i32(1) + _NEWER_REST + _NEWER_SCHEMAS),
        *({**_IN_CDC_STATE, **_STATUS, **_IN_REST, **_IN_SCHEMAS}, []),
    ),
    (
        "CDC",
        7,
        _newer_cdc(5) + i32(1) + _NEWER_REST + _NEWER_SCHEMAS + i32(1) + texts("a") + i64(4),
        {
            **{**_IN_CDC_STATE, **_STATUS, **_IN_REST, **_IN_SCHEMAS},
            "finished_checkpoint_ids": {"a": 4},
        },
        [],
    ),
    ("CDC", 8, REAL["CDC hybrid enumerator 8"], _REAL_CDC, ["p.a:0"]),
    ("CDC", 8, REAL["CDC stream enumerator 8"], {"is_stream_assigned": True}, []),
    (
        "MongoDB",
        0,
        i32(1)
        + texts("c")
        + i32(1)
        + texts("b")
        + i32(1)
        + _SCAN
        + i32(1)
        + texts("x")
        + _SCAN
        + YES,
        {
            **{"remaining_collections": ("c",), "processed_collections": ("b",)},
            **{"assigned_splits": {"x": _IN_SCAN}, "is_initialized": True},
        },
        ["db.a_0"],
    ),
    (
        *("JDBC", 0, i32(1) + _QUERY + i32(0, 1) + _QUERY + framed(NULL)),
        {"completed_splits": (_IN_QUERY,), "pending_splits": (), "state": None},
        ["1"],
    ),
    (
        *("JDBC", 0, i32(0, 1) + _QUERY + i32(0) + framed(JAVA)),
        {"completed_splits": (), "pending_splits": (_IN_QUERY,), "state": JAVA},
        [],
    ),
    ("Iceberg", 1, REAL["Iceberg enumerator 1"], _ICEBERG_POSITION, [_ICEBERG_NAME]),
    (
        *("Iceberg", 2, REAL["Iceberg enumerator 2"]),
        *({**_ICEBERG_POSITION, "split_counts": (4, 5)}, [_ICEBERG_NAME]),
    ),
    (
        *("Iceberg", 2, NO + i32(3, 0, 1, 9)),
        *({"snapshot": None, "statuses": (), "split_counts": (9,)}, []),
    ),
    (
        *("Paimon", 1, i32(1) + framed(texts("a-1") + JAVA + i64(0)) + i64(12)),
        *({"next_snapshot": 12}, ["a-1"]),
    ),
    ("Paimon", 1, i32(0) + i64(-1), {"next_snapshot": None}, []),
]

# --- committables -------------------------------------------------------------------------------


def paimon_row(name: str) -> bytes:
    """A row of Paimon with a text, as BinaryRow has it, and no other field."""
    data = name.encode()
    if len(data) <= 7:
        return bytes(8) + data.ljust(7, b"\0") + bytes([0x80 | len(data)])
    return bytes(8) + struct.pack("<II", len(data), 16) + data


def _index_row(name: str) -> bytes:
    data = name.encode()
    kind = b"HASH\0\0\0" + bytes([0x84])
    return bytes(8) + kind + struct.pack("<II", len(data), 24) + data


def _listed(*rows: bytes) -> bytes:
    return i32(len(rows)) + b"".join(map(framed, rows))


_ONE = _listed(paimon_row("data-before.parquet"))
_NEW = _listed(paimon_row("data-0.parquet"), paimon_row("d1"))
_NONE = i32(0)
_INDEX = _listed(_index_row("index-0"))
_START = framed(i32(0) + bytes(8)) + i32(3)
_MESSAGES = {
    # The newest of 0.4, 0.5 and 0.8 is 2, of 0.9 3, of 1.1 7, of 1.3 10.
    2: _START + _NEW + _NONE * 4,
    -2: _START + _NEW + _NONE * 4 + _INDEX,
    -3: _START + _NEW + _NONE * 5 + _INDEX,
    3: _START + _NEW + _NONE * 2 + _ONE + _NONE * 2 + _INDEX + _NONE,
    7: _START + YES + i32(4) + _NEW + _NONE * 2 + _ONE + _NONE * 2 + _INDEX + _NONE,
    10: _START + NO + _NEW + _NONE * 2 + _INDEX + _NONE + _ONE + _NONE * 4,
}
_BEFORE = i64(9) + NO + i64(1_700_000_000_000)
_PROPERTIES = i32(1) + texts("k", "v")
PAIMON = {
    2: _BEFORE + i32(1, 0) + i64(5) + i32(2, 1) + _MESSAGES[2],
    3: _BEFORE + i32(0, 3, 1) + _MESSAGES[3],
    4: _BEFORE + i32(0) + _PROPERTIES + i32(7, 1) + _MESSAGES[7],
    5: _BEFORE + _PROPERTIES + i32(10, 1) + _MESSAGES[10],
}
_FILES_OF: dict[str, Any] = {"bucket": 3, "new_files": ("data-0.parquet", "d1")}
_LISTS = ("changelog_files", "compact_before", "compact_after", "compact_changelog")
_OF_2 = {**_FILES_OF, **dict.fromkeys(_LISTS, ())}
_OF_3 = {
    **{**_OF_2, "deleted_files": (), "compact_before": ("data-before.parquet",)},
    **{"new_indexes": ("index-0",), "deleted_indexes": ()},
}
_OF_10 = {**_OF_3, "compact_new_indexes": (), "compact_deleted_indexes": ()}


def _paimon(message: dict[str, Any], properties: dict[str, str]) -> dict[str, Any]:
    return {
        **{"checkpoint_id": 9, "watermark": 1_700_000_000_000, "properties": properties},
        "messages": (message,),
    }


_WORDS = "1 buckets, 2 new files"
JOB = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210")
_IDS = {"job_id": JOB[0], "operator_id": JOB[1], "checkpoint_id": 5}
MANIFEST = REAL["Iceberg map 3"][-5_044:]  # the same as in the others of Iceberg
_MANIFESTS = (("s3://a/m-1.avro", 512, 2, 16), ("s3://a/m-2.avro", 256, 1, 3))
_PATHS = "s3://a/m-1.avro, s3://a/m-2.avro"
COMMITTABLES: list[tuple[str, int, bytes, str, dict[str, Any]]] = [
    (
        *("Pulsar", 1, i64(2, 7) + texts("persistent://a/b/c")),
        "persistent://a/b/c, transaction (2,7)",
        {"transaction": (2, 7), "topic": "persistent://a/b/c"},
    ),
    (
        *("Iceberg", 1, REAL["Iceberg committable 1"], _PATHS),
        {**_IDS, "manifests": _MANIFESTS},
    ),
    (
        *("Iceberg", 1, texts(*JOB) + i64(5) + i32(0), "no files"),
        {**_IDS, "manifests": ()},
    ),
    (
        *("Iceberg", 1, REAL["Iceberg table committable 1"], f"db.t, {_PATHS}"),
        {"table": "db.t", "branch": "main", **_IDS, "manifests": _MANIFESTS},
    ),
    (
        *("Iceberg", 2, texts("db.t", "main", *JOB) + i64(5) + i32(1) + framed(MANIFEST)),
        f"db.t, {_PATHS}",
        {"table": "db.t", "branch": "main", **_IDS, "manifests": _MANIFESTS},
    ),
    ("Paimon", 2, PAIMON[2], _WORDS, _paimon(_OF_2, {})),
    (
        *("Paimon", 2, _BEFORE + i32(0, 2, 1) + _MESSAGES[-2], _WORDS),
        _paimon({**_OF_2, "new_indexes": ("index-0",)}, {}),
    ),
    (
        *("Paimon", 2, _BEFORE + i32(0, 2, 1) + _MESSAGES[-3], _WORDS),
        _paimon({**_OF_2, "deleted_files": (), "new_indexes": ("index-0",)}, {}),
    ),
    ("Paimon", 3, PAIMON[3], _WORDS, _paimon(_OF_3, {})),
    ("Paimon", 4, PAIMON[4], _WORDS, _paimon(_OF_3, {"k": "v"})),
    ("Paimon", 5, PAIMON[5], _WORDS, _paimon(_OF_10, {"k": "v"})),
]
"""A sink, a version, bytes, the name and the fields."""
