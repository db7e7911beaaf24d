"""Less common formats: compressed files of RocksDB, ForSt's, the changelog backend's.

The points are real ones of Flink 2.3.0, of one job with 3,300 entries, each with what Flink's own
classes read in it; compressed blocks are made here by the libraries that compress.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.bytes.real_savepoints import FORMATS, Point, point, seen_entry, true_entries
from support.bytes.sst_bytes import VALUE, block, internal_key, sst_of_blocks, varint
from support.growth import count_bytes

from keygroups.errors import SavepointError
from keygroups.savepoint._files.compression import decompress_block
from keygroups.savepoint._files.files import OpenStream
from keygroups.savepoint._files.sst import SstFile
from keygroups.savepoint._metadata.handles import ChangelogHandle, RocksDBHandle, StreamHandle

cramjam = pytest.importorskip("cramjam", reason="blocks are compressed: the extra savepoint")

QUICK = (
    "2.3.0-plain-rocksdb-lz4-native",
    "2.3.0-plain-rocksdb-zstd-checkpoint",
    "2.3.0-plain-rocksdb-zlib-checkpoint",
    "2.3.0-plain-forst-forstc-checkpoint",
    "2.3.0-plain-rocksdb-changelog-native",
    "2.3.0-plain-rocksdb-changelog-checkpoint",
)
FORST = "2.3.0-plain-forst-forstc-checkpoint"


def test_these_are_all() -> None:
    assert Counter(one.kind for one in FORMATS) == {"canonical": 4, "native": 3, "checkpoint": 5}
    assert {one.name for one in FORMATS} >= set(QUICK)


def without_times(entries: Counter[Any]) -> Counter[Any]:
    """Leave out when `clicks` were accessed: ForSt's job was another one, of the same data."""
    found: Counter[Any] = Counter()
    for entry, times in entries.items():
        if entry[2] == "clicks":
            kind, elements = entry[8]
            values = tuple((ttl, value) for ttl, _, value in elements)
            entry = (*entry[:8], (kind, values), *entry[9:])
        found[entry] += times
    return found


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=one.name, marks=[] if one.name in QUICK else pytest.mark.slow)
        for one in FORMATS
    ],
)
def test_entries(one: Point) -> None:
    """Each entry in all its fields, and no entry besides."""
    seen: Counter[Any] = Counter()
    for operator in one.read().operators:
        states = {state.name: state for state in operator.states}
        seen.update(seen_entry(operator, states[one.state], one) for one in operator.entries())
    true = Counter(true_entries(one.entries, one.archive))
    if one.name == FORST:
        seen, true = without_times(seen), without_times(true)
    assert seen == true
    assert seen.total() == 3_300


def keyed_handles(one: Point) -> list[Any]:
    operators = one.read().metadata.operators
    return [
        handle for operator in operators for task in operator.subtasks for handle in task.keyed
    ]


def files_of(one: Point) -> list[bytes]:
    files = []
    for handle in keyed_handles(one):
        for _, stream in handle.shared:
            with one.files.open(stream) as opened:
                files.append(opened.read(0, opened.size))
    return files


@pytest.mark.parametrize(
    ("name", "compressions", "is_two_level"),
    [
        ("2.3.0-plain-rocksdb-lz4-native", {4}, False),
        ("2.3.0-plain-rocksdb-zstd-native", {7}, False),
        ("2.3.0-plain-rocksdb-zlib-checkpoint", {2}, False),
        ("2.3.0-plain-forst-forstc-checkpoint", {1}, True),
    ],
)
def test_the_points_are_of_their_formats(
    name: str, compressions: set[int], is_two_level: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()

    def spied(kind: int, *arguments: Any) -> bytes:
        seen.add(kind)
        return decompress_block(kind, *arguments)

    monkeypatch.setattr("keygroups.savepoint._files.sst.decompress_block", spied)
    for content in files_of(point(name)):
        table = SstFile(OpenStream(StreamHandle(len(content), content), None, "a.sst"))
        assert list(table.records([(b"", b"\xff" * 9)]))
        assert table._is_two_level is is_two_level
    assert seen == compressions


def test_native_savepoint_of_the_changelog_backend() -> None:
    """RocksDB's files in a changelog's handle, and no changes."""
    handles = keyed_handles(point("2.3.0-plain-rocksdb-changelog-native"))
    assert len(handles) == 2
    for handle in handles:
        assert isinstance(handle, ChangelogHandle)
        (base,) = handle.materialized
        assert isinstance(base, RocksDBHandle)
        assert handle.changes == ()


# Blocks


def deflated(data: bytes) -> bytes:
    """Without the header of zlib, and with the window that RocksDB asks for."""
    compress = zlib.compressobj(6, zlib.DEFLATED, -14)
    return compress.compress(data) + compress.flush()


def lz4(data: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(data, store_size=False))


def zstd(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


COMPRESS: dict[int, Callable[[bytes], bytes]] = {2: deflated, 4: lz4, 5: lz4, 7: zstd}
NAMES = {1: "Snappy", 2: "zlib", 4: "LZ4", 5: "LZ4HC", 7: "ZSTD"}
RATIOS = {1: 64, 2: 1032, 4: 255, 5: 255}
ROW = b"some words of which each block has many, " * 100


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_blocks(kind: int) -> None:
    key = internal_key(b"\3a", 5, VALUE)
    data = block([(key, ROW)])
    content = sst_of_blocks(
        [(key, varint(len(data)) + COMPRESS[kind](data))], "s", compression=kind
    )
    assert len(content) < len(data)
    table = SstFile(OpenStream(StreamHandle(len(content), content), None, "a.sst"))
    (records,) = table.records([(b"", b"\xff")])
    assert [(key, value) for key, _, value in records] == [(b"\3a", ROW)]
    for data in (b"", b"x", bytes(70_000)):
        assert decompress_block(kind, varint(len(data)) + COMPRESS[kind](data), "f", 0) == data


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", COMPRESS)
def test_sizes_before_blocks_since_format_version_2(kind: int, version: int) -> None:
    """They are varints. RocksDB: GetCompressFormatForVersion in util/compression.h."""
    key = internal_key(b"\3a", 5, VALUE)
    data = block([(key, ROW)])
    compressed = varint(len(data)) + COMPRESS[kind](data)
    content = sst_of_blocks([(key, compressed)], "s", compression=kind, version=version)
    table = SstFile(OpenStream(StreamHandle(len(content), content), None, "a.sst"))
    assert [value for run in table.records([(b"", b"\xff")]) for _, _, value in run] == [ROW]


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged_blocks(kind: int) -> None:
    """Of another size, cut, with more behind; of no size. Each is refused."""
    good = COMPRESS[kind](ROW)
    for damaged in (
        varint(len(ROW) - 1) + good,
        varint(len(ROW) + 1) + good,
        varint(len(ROW)) + good[:-1],
        varint(len(ROW)) + good[: len(good) // 2],
        varint(len(ROW)) + good + b"x",
        varint(len(ROW)) + b"\xff" * 20,
        varint(len(ROW)),
        b"",
        b"\x80",
        b"\xff" * 9,
    ):
        with pytest.raises(SavepointError, match=r"^f, offset 7: "):
            decompress_block(kind, damaged, "f", 7)


@pytest.mark.parametrize("kind", NAMES)
def test_sizes_that_no_block_has(kind: int) -> None:
    """They are refused before there is room for them."""
    compressed = COMPRESS[kind](b"") if kind in COMPRESS else b""

    def refuse(size: int) -> None:
        message = f"^f, offset 7: a block of {NAMES[kind]} cannot hold {size} bytes$"
        with pytest.raises(SavepointError, match=message):
            decompress_block(kind, varint(size) + compressed, "f", 7)

    most = (16 << 20) if kind == 7 else RATIOS[kind] * (len(compressed) + 2)
    for size in (most + 1, 2**32, 2**34):
        refuse(size)
        assert count_bytes(partial(refuse, size)) < 50_000
    with pytest.raises(SavepointError, match=r"^f, offset 7: ") as other:
        decompress_block(kind, varint(most) + compressed, "f", 7)
    assert "cannot hold" not in str(other.value)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("kind", NAMES)
def test_blocks_of_old_format_versions(kind: int, version: int) -> None:
    """LZ4 has its size in eight bytes there, and zlib none; Snappy and ZSTD are as ever."""
    key = internal_key(b"\3a", 5, VALUE)
    data = block([(key, ROW)])
    content = sst_of_blocks(
        [(key, in_old_format(kind, data))], "s", compression=kind, version=version
    )
    table = SstFile(OpenStream(StreamHandle(len(content), content), None, "a.sst"))
    (records,) = table.records([(b"", b"\xff")])
    assert [(key, value) for key, _, value in records] == [(b"\3a", ROW)]
    for data in (b"", b"x", bytes(70_000)):
        assert decompress_block(kind, in_old_format(kind, data), "f", 0, False) == data


def in_old_format(kind: int, data: bytes) -> bytes:
    if kind == 1:
        return bytes(cramjam.snappy.compress_raw(data))
    sizes = {4: struct.pack("<Q", len(data)), 5: struct.pack("<Q", len(data)), 2: b""}
    return sizes.get(kind, varint(len(data))) + COMPRESS[kind](data)


@pytest.mark.parametrize(
    ("kind", "damaged"),
    [
        *(
            (2, damaged)
            for damaged in (b"", b"\xff" * 9, deflated(ROW)[:-1], deflated(ROW) + b"x")
        ),
        *((4, damaged) for damaged in (b"", bytes(7), b"\xff" * 8, bytes(8) + lz4(ROW))),
        (4, struct.pack("<Q", len(ROW) + (1 << 32)) + lz4(ROW)),
        (4, struct.pack("<Q", len(ROW) + 1) + lz4(ROW)),
    ],
)
def test_damaged_blocks_of_old_format_versions(kind: int, damaged: bytes) -> None:
    with pytest.raises(SavepointError, match=r"^f, offset 7: "):
        decompress_block(kind, damaged, "f", 7, False)


def test_what_is_wrong_with_a_block_of_zlib() -> None:
    """By its size if it says one; what it has beyond that is not decompressed."""
    for size in (0, len(ROW) - 1):
        problem = f"^f, offset 7: a block of zlib that is not the {size} bytes it says$"
        with pytest.raises(SavepointError, match=problem):
            decompress_block(2, varint(size) + deflated(ROW), "f", 7)
    with pytest.raises(SavepointError, match=r"^f, offset 7: a block of zlib that is not whole$"):
        decompress_block(2, deflated(ROW) + b"x", "f", 7, False)
    large = varint(0) + deflated(bytes(1 << 20))

    def refuse() -> None:
        with pytest.raises(SavepointError, match=r"that is not the 0 bytes it says$"):
            decompress_block(2, large, "f", 7)

    assert count_bytes(refuse) < 200_000


def test_small_blocks_of_much_the_same() -> None:
    """A block of ZSTD may have thousands of times its bytes; one of 16 MiB is the largest such."""
    size = 16 << 20
    compressed = zstd(bytes(size))
    assert len(compressed) * 1032 < size
    assert decompress_block(7, varint(size) + compressed, "f", 0) == bytes(size)
    with pytest.raises(SavepointError, match="a block of ZSTD cannot hold 16777217 bytes"):
        decompress_block(7, varint(size + 1) + compressed, "f", 0)


def test_a_dictionary() -> None:
    """Without it the blocks would be others."""
    content = sst_of_blocks([(b"k" * 9, block([]))], "s", dictionary=block([]))
    with pytest.raises(SavepointError, match="compressed with a dictionary are not read"):
        SstFile(OpenStream(StreamHandle(len(content), content), None, "a.sst"))
