"""The bounds of RocksDB's files in its MANIFEST, between which a range deletion counts.

`tests/vectors/range_deletions.json` has a store of RocksDB itself; logs by hand are as
db/log_format.h and db/version_edit.h of RocksDB have them.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path

import pytest
from support.bytes.rocksdb_stores import first_letters, store
from support.bytes.sst_bytes import CRC32C, varint
from support.inside.savepoints import OpenStream, StreamHandle, block_checksum, read_bounds

from keygroups.errors import SavepointError

pytest.importorskip("google_crc32c", reason="the log has checksums: the extra savepoint")

RECORDED = json.loads(
    (Path(__file__).parents[1] / "vectors" / "range_deletions.json").read_text("utf-8")
)
FILES = {name: zlib.decompress(base64.b64decode(data)) for name, data in RECORDED["files"].items()}
[MANIFEST] = [name for name in FILES if name.startswith("MANIFEST-")]
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
VALUE_5 = struct.pack("<Q", 5 << 8 | 1)
PAST = b"\x0f" + b"\xff" * 7  # The largest key is the end of a range deletion.


def test_a_deletion_ends_with_its_file(tmp_path: Path) -> None:
    """Newer records behind the file have number 0: the deletion would hide them too."""
    operator = store(tmp_path / "store", FILES)
    assert first_letters(operator) == RECORDED["live"]
    pytest.importorskip("pyarrow")
    table = operator.to_arrow("default")
    assert table.column("value").to_pylist() == [entry.value for entry in operator.entries()]


@pytest.mark.parametrize("names", [[], [MANIFEST, "MANIFEST-000099"]])
def test_without_bounds(names: list[str], tmp_path: Path) -> None:
    files = {name: data for name, data in FILES.items() if name.endswith(".sst")}
    operator = store(tmp_path / "store", {**files, **dict.fromkeys(names, FILES[MANIFEST])})
    message = r"no MANIFEST tells whether a deletion of a range reaches key b'\\x03!\\x00'"
    with pytest.raises(SavepointError, match=message):
        first_letters(operator)


def test_a_file_that_the_log_does_not_have(tmp_path: Path) -> None:
    files = {name.replace("000015", "000999"): data for name, data in FILES.items()}
    with pytest.raises(SavepointError, match="no MANIFEST tells"):
        first_letters(store(tmp_path / "store", files))


def piece(kind: int, data: bytes) -> bytes:
    checksum = block_checksum(CRC32C, "")(bytes([kind]) + data)
    return struct.pack("<IHB", checksum, len(data), kind) + data


def bounds(log: bytes) -> dict[int, tuple[bytes, bytes]]:
    return read_bounds(OpenStream(StreamHandle(len(log), log), None, "MANIFEST-1"))


def text(data: bytes) -> bytes:
    return varint(len(data)) + data


def new_file(number: int, first: bytes, last: bytes, mark: bytes = VALUE_5) -> bytes:
    """Of tag 103: level, number, size, keys, sequence numbers, fields of its own up to 1."""
    keys = text(first + VALUE_5) + text(last + mark)
    return varint(103) + varint(2) + varint(number) + varint(4_096) + keys + b"\4\5\2\0\1"


def test_every_tag() -> None:
    """Whatever stands beside the new files is left out, each with its own fields."""
    keys = text(b"c" + VALUE_5) + text(b"d" + VALUE_5)
    others = [
        varint(1) + text(b"leveldb.BytewiseComparator"),
        *(varint(tag) + varint((1 << 56) + 5) for tag in (2, 3, 4, 9, 10)),
        varint(5) + b"\1" + text(b"k" + VALUE_5),
        b"\6\0\7",
        varint(200) + b"\1" + varint(201) + text(b"count"),
        varint(203) + b"\1" + varint(300) + b"\0",
        varint(8193) + text(b"id") + varint(202),
    ]
    old = [
        b"\7\0" + varint(300) + varint(10) + keys,
        varint(100) + b"\0" + varint(301) + varint(10) + keys + b"\3\4",
        varint(102) + b"\0" + varint(302) + b"\0" + varint(10) + keys + b"\3\4",
    ]
    edits = [
        *others,
        *old,
        new_file(303, b"a", b"b"),
        new_file(304, b"b", b"f", PAST),
        new_file(303, b"a", b"c"),
    ]
    expected = dict.fromkeys((300, 301, 302), (b"c", b"d\x00"))
    expected |= {303: (b"a", b"c\0"), 304: (b"b", b"f")}
    assert bounds(b"".join(piece(WHOLE, edit) for edit in edits)) == expected
    assert bounds(piece(WHOLE, b"".join(edits))) == expected
    assert bounds(b"") == {}


def test_records_in_pieces() -> None:
    """A piece ends with its block of 32 KiB, where fewer than 7 bytes that are left are zeros."""
    edit = b"".join(new_file(number, b"k" * 500, b"l" * 500) for number in range(70))
    room = (1 << 15) - 7
    parts = [edit[: room - 5], edit[room - 5 : 2 * room - 5], edit[2 * room - 5 :]]
    kinds = (FIRST, MIDDLE, LAST)
    pieces = [piece(kind, part) for kind, part in zip(kinds, parts)]
    log = pieces[0] + bytes(5) + pieces[1] + pieces[2] + piece(WHOLE, new_file(7, b"a", b"a"))
    assert bounds(log) == {
        **dict.fromkeys(range(70), (b"k" * 500, b"l" * 500 + b"\0")),
        7: (b"a", b"a\0"),
    }


GOOD = piece(WHOLE, new_file(1, b"a", b"b"))


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (GOOD[:-1], "offset 0: no piece of 30 bytes and kind 1"),
        (piece(0, b""), "offset 0: no piece of 0 bytes and kind 0"),
        (piece(5, b""), "offset 0: no piece of 0 bytes and kind 5"),
        (GOOD[:-1] + b"\2", "offset 0: the checksum is wrong"),
        (GOOD + piece(LAST, b""), f"offset {len(GOOD)}: the pieces of a record are out of order"),
        (piece(FIRST, b"") + GOOD, "offset 7: the pieces of a record are out of order"),
        (piece(FIRST, b"") * 2, "offset 7: the pieces of a record are out of order"),
        (piece(MIDDLE, b""), "offset 0: the pieces of a record are out of order"),
        (piece(FIRST, b""), "offset 7: the last record has no end"),
        (piece(WHOLE, varint(400)), "offset 0: the record is damaged: tag 400 is not known"),
        (piece(WHOLE, b"\1\5abcd"), "offset 0: the record is damaged: too few bytes"),
        (piece(WHOLE, b"\7\0\1\1\1a\1b"), "offset 0: the record is damaged: a key without"),
        (piece(WHOLE, new_file(1, b"a", b"b")[:-1]), "offset 0: the record is damaged"),
    ],
)
def test_damaged(log: bytes, message: str) -> None:
    with pytest.raises(SavepointError, match=message):
        bounds(log)
