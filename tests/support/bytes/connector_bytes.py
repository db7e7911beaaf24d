"""Bytes of the splits, the enumerators and the committables of connectors, and what they are.

They are put together as the connectors' public source writes them. Each layout that the library
knows has a case here of each of its versions, which a test holds; so does the guard against
hostile savepoints, which damages them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
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
    ("CDC", 4, CDC_STREAM + CDC_END + CDC_TABLES + i32(1), CDC_FIELDS, "stream-split", AT_LSN),
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
        *("MongoDB", 0, i32(1) + texts("db.a_0", "db", "a", '{"_id": 1}', "{}", '{"_id": 1}')),
        {
            **{"split_id": "db.a_0", "database": "db", "collection": "a"},
            **{"min": {"_id": 1}, "max": {}, "hint": {"_id": 1}},
        },
        *("db.a_0", "_id 1"),
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
