"""RocksDB's files: checksums, what takes work or memory out of proportion, order, deletions.

Whole files are RocksDB's own, of real checkpoints; `sst_bytes.py` writes the hostile ones.
"""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.bytes.sst_bytes import (
    CRC32C,
    MAGIC,
    NO_CHECKSUM,
    VALUE,
    block,
    delta_index,
    internal_key,
    sst,
    sst_of_blocks,
    trailer,
    varint,
)
from support.growth import MOST, TIMES, count_bytes, count_steps
from support.inside.savepoints import (
    OpenStream,
    RangeDeletion,
    Record,
    RocksDBHandle,
    SstFile,
    StreamHandle,
    _live,
    _merged,
    block_checksum,
    read_metadata,
)
from support.inside.savepoints import sst as sst_module

from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import read_savepoint

pytest.importorskip("cramjam", reason="blocks are compressed: the extra savepoint")

ALL = [(b"", b"\xff" * 9)]
SAMPLE = 211  # bits for one that the default suite flips; a prime, so all of a byte have a turn
SHORT, LONG = "This is a short block!", "This is a long block!" * 100

# RocksDB's table/table_test.cc, BuiltinChecksumTest.ChecksumSchemas: the bytes in the file of the
# checksums of the empty block, the short one and the long one; each with no compression, with
# Snappy and with ZSTD.
SCHEMAS = {
    0: "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000",
    1: "D28F2549 052B2843 46F8F711 583F0355 2F9B0A57 ECE7DA1D 943EF0AB 43A2EDB1 00E53D63",
    2: "3EB065CF 31F79238 320D2E00 4A2E5FB0 0BD9F652 B4107E50 20F4D4BA 8F1A1F99 A191A338",
    3: "682705DB 30E7211B B7BB58E8 B74655EF B6C8BBBE AED9E3B4 0D4999FE F5932423 6B31BAB1",
    4: "C294D338 1B174353 2D0E20C8 B37FB5E6 6AFC258D 5CE54616 FA2D482E 23AED845 15B7BBDE",
}


def opened(content: bytes) -> OpenStream:
    return OpenStream(StreamHandle(len(content), content), None, "a.sst")


def all_of(content: bytes) -> object:
    """Return the contents of a file, down to each record."""
    table = SstFile(opened(content))
    return table.column_family, table.range_deletions, records_of(table)


def records_of(table: SstFile, runs: Sequence[tuple[bytes, bytes]] = ALL) -> list[Record]:
    return [*chain.from_iterable(table.records(runs))]


def files_of(name: str) -> list[bytes]:
    """Return the SST files of a real savepoint or checkpoint."""
    present = point(name)
    metadata = read_metadata((present.path / "_metadata").read_bytes(), name)
    out = []
    for operator in metadata.operators:
        for subtask in operator.subtasks:
            if isinstance(subtask.managed_keyed, RocksDBHandle):
                for local, stream in subtask.managed_keyed.shared:
                    with present.files.open(stream) as file:
                        assert local.endswith(".sst")
                        out.append(file.read(0, file.size))
    return out


def real_file(name: str) -> bytes:
    """Return one of its SST files: with range deletions if there are, then the largest."""
    return max(files_of(name), key=lambda file: (b"rocksdb.range_del" in file, len(file)))


# Checksums


@pytest.mark.parametrize("kind", SCHEMAS)
def test_checksums_that_rocksdb_publishes(kind: int) -> None:
    checksum = block_checksum(kind, "a.sst")
    found = [
        struct.pack("<I", checksum(text.encode() + bytes([compression]))).hex().upper()
        for text in ("", SHORT, LONG)
        for compression in (0, 1, 7)
    ]
    assert found == SCHEMAS[kind].split()


REAL = {
    "1.17.2-rocksinc-native": CRC32C,
    "1.20.5-rocksresc-checkpoint": CRC32C,
    "2.3.0-rockschurn-checkpoint": 4,
    "2.3.0-plain-forst-forstc-checkpoint": 4,
}


@pytest.mark.long
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("every", [SAMPLE, pytest.param(1, marks=pytest.mark.slow)])
def test_flipped_bits_of_real_files(name: str, every: int) -> None:
    """Each flip is refused, or changes nothing; three of the footer may: of version and place."""
    content = real_file(name)
    assert content[-53] == REAL[name]
    intact = all_of(content)
    footer = range(8 * (len(content) - 53), 8 * len(content))
    the_same = 0
    for bit in sorted({*range(0, 8 * len(content), every), *footer}):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            found = all_of(bytes(flipped))
        except SavepointError:
            continue
        assert found == intact, bit
        the_same += 1
    assert the_same <= 3


@pytest.mark.parametrize("compression", [0, 1])
def test_a_block_is_checked_before_it_is_read(compression: int) -> None:
    """Also before it is decompressed, which a wrong size would make large."""
    content = sb.snappy_literal(b"anything") if compression else block([])
    table = bytearray(sst_of_blocks([(b"a" * 9, content)], "s", compression=compression))
    table[2] ^= 1
    with pytest.raises(SavepointError, match=r"a\.sst, offset 0: the checksum of the block does"):
        all_of(bytes(table))


def test_files_without_checksums() -> None:
    """They are read; but not those whose kind of checksums alone says that they have none."""
    records = [(b"a", 5, VALUE, b"1")]
    plain = sst(records, "s", checksum=NO_CHECKSUM)
    assert all_of(plain) == (b"s", [], [(b"a", -(5 << 8 | 1), b"1")])
    flipped = bytearray(sst(records, "s", checksum=CRC32C))
    flipped[-53] = NO_CHECKSUM
    with pytest.raises(SavepointError, match="the checksum of the block does not match"):
        all_of(bytes(flipped))
    flipped[-53] = 5
    with pytest.raises(SavepointError, match=r"a\.sst: checksums of kind 5 are not known"):
        all_of(bytes(flipped))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_the_library_is_named(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is imported where it is needed, and not before."""
    monkeypatch.setitem(sys.modules, "google_crc32c" if kind == CRC32C else "xxhash", None)
    with pytest.raises(KeyGroupsError, match=r"google-crc32c and xxhash: pip install 'keyg") as no:
        block_checksum(kind, "a.sst")
    assert not isinstance(no.value, SavepointError)
    block_checksum(CRC32C if kind != CRC32C else 4, "a.sst")


def test_a_file_of_format_version_0() -> None:
    """Its footer is five bytes shorter and says no kind of checksums, which are CRC32C."""
    records = [(b"a", 5, VALUE, b"1"), (b"b", 6, VALUE, b"2")]
    old = sst(records, "s", version=0)
    assert all_of(old) == all_of(sst(records, "s", version=5))
    assert all_of(old) == all_of(sst(records, "s", version=1, checksum=NO_CHECKSUM))
    flipped = bytearray(old)
    flipped[0] ^= 1
    with pytest.raises(SavepointError, match="the checksum of the block does not match"):
        all_of(bytes(flipped))
    with pytest.raises(SavepointError, match=f"offset {len(old) - 47}: the footer is damaged$"):
        all_of(b"\0" + old)
    with pytest.raises(SavepointError, match=f"offset {len(old) - 48}: the footer is damaged$"):
        all_of(old[:-9] + b"\1" + old[-8:])  # the last byte before the magic
    for version in (0, 6):
        footer = struct.pack("<IQ", version, MAGIC)
        with pytest.raises(SavepointError, match="this is no SST file of a known version"):
            all_of(sst(records, "s")[:-12] + footer)


def with_footer(content: bytes, *numbers: int, rest: bytes = b"") -> bytes:
    places = b"".join(map(varint, numbers)) + rest
    return content[:-52] + places.ljust(40, b"\0") + content[-12:]


def test_footers_that_rocksdb_does_not_write() -> None:
    """A place that is another block's, whose checksum is right; what is behind the places."""
    records = [(b"a", 5, VALUE, b"1"), (b"b", 5, VALUE, b"1")]
    content = sst(records, "s", per_block=1)
    data = 0, len(block([(internal_key(*records[0][:3]), b"1")]))
    meta_size = len(block([(b"rocksdb.properties", bytes(3))]))
    index_size = len(delta_index([b"a", b"b"], [data, data]))
    meta = len(content) - 53 - 5 - meta_size, meta_size
    index = 2 * (data[1] + 5), index_size
    properties = sum(index) + 5, meta[0] - 5 - sum(index) - 5
    assert with_footer(content, *meta, *index) == content
    for damaged, message in (
        (with_footer(content, *meta, *index, rest=b"\0\1"), "the footer is damaged$"),
        (with_footer(content, *index, *meta), "the footer is damaged$"),
        (with_footer(content, *meta, *meta), "the footer is damaged$"),
        (with_footer(content, *properties, *index), "the footer is damaged$"),
        *(  # an index that ends in the metaindex, by its first byte, or by as many as a trailer
            (with_footer(content, *meta, at, size + more), "the footer is damaged$")
            for at, size in (index, properties)
            for more in range(meta[0] - 5 - at - size + 1, meta[0] - at - size + 6)
        ),
        (with_footer(content, *meta, *properties), "damaged: its index is another block"),
        (with_footer(content, *meta, *data), "damaged: its index is among the data"),
        (
            sst([], "s", properties={"rocksdb.data.size": varint((1 << 64) - 1)}),
            "damaged: its index is among the data",
        ),
    ):
        with pytest.raises(SavepointError, match=message):
            all_of(damaged)


@pytest.mark.parametrize("size", [b"", b"\x80", b"\x80" * 10 + b"\1"])
def test_properties_that_do_not_say_where_the_data_ends(size: bytes) -> None:
    content = sst([(b"a", 5, VALUE, b"1")], "s", properties={"rocksdb.data.size": size})
    with pytest.raises(SavepointError, match="do not say where the data ends"):
        all_of(content)


def test_a_file_that_names_no_column_family() -> None:
    """RocksDB writes no name that is empty."""
    content = sst([(b"a", 5, VALUE, b"1")], "s", checksum=NO_CHECKSUM)
    nameless = content.replace(b"rocksdb.column.family.name", b"rocksdb.column.family.nam_")
    assert all_of(nameless) == (b"", [], [(b"a", -(5 << 8 | VALUE), b"1")])


def test_no_properties() -> None:
    content = block([])
    blocks = 2 * (content + trailer(content))
    places = b"".join(map(varint, (len(blocks) // 2, len(content), 0, len(content))))
    footer = bytes([CRC32C]) + places.ljust(40, b"\0") + sst([], "s")[-12:]
    with pytest.raises(SavepointError, match="do not say where the data ends"):
        all_of(blocks + footer)


# Work and memory


COUNT = sb.state("count", "VALUE", sb.simple("Long"))
KEY = internal_key(b"a", 5, VALUE)


def place(content: bytes, offset: int = 0) -> bytes:
    """Where a block is, as an index and a metaindex say it."""
    return varint(offset) + varint(len(content))


DATA = block([(KEY, b"1")])
LONG_KEYS = [internal_key(b"k" * 20_000 + struct.pack(">H", i), 5, VALUE) for i in range(1_000)]
SHARING = block([(key, b"") for key in LONG_KEYS])
BLOCKS = [(key, DATA) for key in LONG_KEYS]
PLACES = [place(DATA, number * (len(DATA) + 5)) for number in range(len(BLOCKS))]
TWO_LEVELS: dict[str, Any] = {
    "has_deltas": False,
    "properties": {"rocksdb.block.based.table.index.type": struct.pack("<I", 2)},
}


def with_parts(named: Sequence[tuple[bytes, int]], parts: int = 1) -> bytes:
    """A file of one block, and an index of so many parts, of which it names some by number."""
    part = block([(b"b", place(DATA))])
    start = len(DATA) + 5
    places = [place(part, start + number * (len(part) + 5)) for number in range(2)]
    return sst_of_blocks(
        [(KEY, DATA)],
        "s",
        between=[part] * parts,
        index=block([(name, places[number]) for name, number in named]),
        **TWO_LEVELS,
    )


PART = delta_index([b"\1"], [(0, len(DATA))])


def smaller(content: bytes, size: int) -> bytes:
    """An entry of an index with differences: of a block of that size, after one as given."""
    return b"\1\1\1" + varint(2 * (len(content) - size) - 1)


HOSTILE = {
    "data whose keys share": (
        sst_of_blocks([(LONG_KEYS[-1], SHARING)], "s"),
        "a key that shares 20001 bytes",
    ),
    "an index whose keys share": (
        sst_of_blocks(
            BLOCKS,
            "s",
            index=block([(key[:-8], place) for key, place in zip(LONG_KEYS, PLACES)]),
            has_deltas=False,
        ),
        "a key that shares 20001 bytes",
    ),
    "an index with differences whose keys share": (
        sst_of_blocks(BLOCKS, "s"),
        "a key that shares 20001 bytes",
    ),
    "range deletions whose keys share": (
        sst_of_blocks([(KEY, DATA)], "s", deletions=SHARING),
        "range deletions of more bytes than their block has",
    ),
    "a block in the index again and again": (
        sst_of_blocks(
            [(KEY, DATA)],
            "s",
            index=block([(b"b", place(DATA))] * 1_000),
            has_deltas=False,
        ),
        f"the index is damaged: a block of {len(DATA)} bytes at 0",
    ),
    "blocks that overlap": (
        sst_of_blocks(
            [(KEY, DATA), (KEY, DATA)],
            "s",
            index=block([(b"b", place(DATA)), (b"c", place(DATA, len(DATA) + 4))]),
            has_deltas=False,
        ),
        "the index is damaged: a block of",
    ),
    "a block beyond the data": (
        sst_of_blocks(
            [(KEY, DATA)],
            "s",
            index=block([(b"b", place(DATA, len(DATA) + 5))]),
            has_deltas=False,
        ),
        "the index is damaged: a block of",
    ),
    **{
        f"a block of {size} bytes": (
            sst_of_blocks(
                [(b"\1" * 8, DATA), (b"\1" * 9, DATA)],
                "s",
                index=b"\0\2\1\1" + place(DATA) + smaller(DATA, size) + struct.pack("<II", 0, 1),
            ),
            f"the index is damaged: a block of {size} bytes",
        )
        for size in (-1, -4)
    },
    **{
        f"a part of an index of {size} bytes": (
            sst_of_blocks(
                [(KEY, DATA)],
                "s",
                between=[PART, b""],
                index=b"\0\2\1\1"
                + place(PART, len(DATA) + 5)
                + smaller(PART, size)
                + struct.pack("<II", 0, 1),
                properties=TWO_LEVELS["properties"],
            ),
            says,
        )
        for size, says in (
            (-1, "the index is damaged: a part of -1 bytes"),
            (0, f"{len(DATA) + 5 + len(PART) + 5}: a block of 0 bytes"),
        )
    },
    "data of no bytes": (sst_of_blocks([(KEY, b"")], "s"), " 0: a block of 0 bytes"),
    "an index entry that ends beyond its block": (
        sst_of_blocks([(KEY, DATA)], "s", index=b"\0\1a\0" + struct.pack("<II", 0, 1)),
        "the index is damaged: an entry ends beyond its block",
    ),
    "an index key that shares more than there is": (
        sst_of_blocks([(KEY, DATA)], "s", index=b"\1\1a\0" + struct.pack("<II", 0, 1)),
        "the index is damaged: a key that shares 1 bytes",
    ),
    "more restarts than there is room for": (
        sst_of_blocks([(KEY, struct.pack("<I", 1 << 30))], "s"),
        "1073741824 restarts in a block of 4 bytes",
    ),
    "a key that shares more than there is": (
        sst_of_blocks([(KEY, b"\1\x08\0" + KEY[1:] + struct.pack("<II", 0, 1))], "s"),
        "the block is damaged: an entry ends beyond its block",
    ),
    "a part of an index in the data": (
        sst_of_blocks([(KEY, DATA)], "s", index=block([(b"b", place(DATA))]), **TWO_LEVELS),
        f"the index is damaged: a part of {len(DATA)} bytes at 0",
    ),
    "a part of an index again and again": (
        with_parts([(b"b", 0), (b"c", 0)]),
        "the index is damaged: a part of",
    ),
    "a part of an index that is all of it": (
        with_parts([(b"b", 1)]),
        "the index is damaged: a part of",
    ),
    "a block in two parts of an index": (
        with_parts([(b"b", 0), (b"c", 1)], parts=2),
        f"the index is damaged: a block of {len(DATA)} bytes at 0",
    ),
    "keys that go down": (
        sst([(b"b", 5, VALUE, b""), (b"a", 5, VALUE, b"")], "s"),
        "the keys are not in order",
    ),
    "keys that go down from a block to the next": (
        sst([(b"b", 5, VALUE, b""), (b"a", 5, VALUE, b"")], "s", per_block=1),
        "the keys are not in order",
    ),
    "an older version before a newer one": (
        sst([(b"a", 5, VALUE, b""), (b"a", 6, VALUE, b"")], "s"),
        "the keys are not in order",
    ),
    "one version twice": (
        sst([(b"a", 5, VALUE, b""), (b"a", 5, VALUE, b"")], "s"),
        "the keys are not in order",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables(name: str) -> None:
    """Refused, before they take much more memory than they have bytes."""
    content, message = HOSTILE[name]
    stream = opened(content)

    def read() -> None:
        runs = [(b"\xff", b"\xff\xff")] if name.startswith("an index") else ALL
        for _ in chain.from_iterable(SstFile(stream).records(runs)):
            pass

    def refuse() -> None:
        with pytest.raises(SavepointError, match=rf"a\.sst, offset.*{message}"):
            read()

    refuse()  # the table is not charged for all that it keeps
    assert count_bytes(refuse) < 10 * len(content) + 20_000


MANY = b"\x80" * 10 + b"\0"  # a number of more than 64 bits
ENTRY = b"\0\1a" + place(DATA)


@pytest.mark.parametrize(
    ("index", "bits"),
    [
        *((b"\0" * zeros + MANY, 32) for zeros in range(2)),
        *((b"\0\1a" + b"\0" * zeros + MANY, 64) for zeros in range(2)),
        *((ENTRY + b"\0" * zeros + MANY, 32) for zeros in range(2)),
        (ENTRY + b"\1\1b" + MANY, 64),
    ],
)
def test_an_index_with_differences_whose_numbers_do_not_end(index: bytes, bits: int) -> None:
    content = sst_of_blocks([(KEY, DATA)], "s", index=index + struct.pack("<II", 0, 1))
    with pytest.raises(SavepointError, match=f"the index is damaged: .* more than {bits} bits$"):
        all_of(content)


@pytest.mark.parametrize("zeros", range(2))
def test_a_place_whose_numbers_do_not_end(zeros: int) -> None:
    index = block([(b"b", b"\0" * zeros + MANY)])
    content = sst_of_blocks([(KEY, DATA)], "s", index=index, has_deltas=False)
    with pytest.raises(SavepointError, match=r"place of a block is damaged: .* than 64 bits$"):
        all_of(content)


@pytest.mark.parametrize("zeros", range(3))
def test_an_entry_whose_numbers_do_not_end(zeros: int) -> None:
    content = sst_of_blocks([(KEY, b"\0" * zeros + MANY + struct.pack("<II", 0, 1))], "s")
    with pytest.raises(SavepointError, match=r"the block is damaged: .* more than 32 bits$"):
        all_of(content)


@pytest.mark.parametrize("sequence", [5, 2**56 - 1])  # RocksDB: kMaxSequenceNumber
@pytest.mark.parametrize("user_key_index", [True, False])
def test_a_key_of_no_bytes_but_its_mark(user_key_index: bool, sequence: int) -> None:
    content = sst(
        [(b"", sequence, VALUE, b"1"), (b"a", 5, VALUE, b"2")],
        "s",
        deletions=[(internal_key(b"", 4, 15), b"a")],
        per_block=1,
        user_key_index=user_key_index,
    )
    assert all_of(content) == (
        b"s",
        [RangeDeletion(b"", b"a", 4)],
        [(b"", -(sequence << 8 | VALUE), b"1"), (b"a", -(5 << 8 | VALUE), b"2")],
    )


def test_range_deletions_of_as_many_bytes_as_their_block_has() -> None:
    def content(shared: int) -> bytes:
        keys = [internal_key(b"k" * shared + last, 5, 15) for last in (b"a", b"b")]
        return sst_of_blocks([(KEY, DATA)], "s", deletions=block([(key, b"z") for key in keys]))

    # Besides the keys and ends a block has three lengths of each, and 8 bytes of restarts.
    assert len(SstFile(opened(content(2 * 3 + 8))).range_deletions) == 2
    with pytest.raises(SavepointError, match="deletions of more bytes than their block has"):
        SstFile(opened(content(2 * 3 + 8 + 1)))


def test_a_block_of_nothing_but_how_many_restarts_it_has() -> None:
    assert all_of(sst_of_blocks([(KEY, bytes(4))], "s")) == (b"s", [], [])


def test_long_keys_that_share_much() -> None:
    """More than RocksDB lets them by default, in data and in an index, and all is read."""
    long = b"k" * 1_000
    records = [(long + bytes([number]), 5, VALUE, b"1") for number in range(200)]
    for per_block in (200, 1):
        content = sst(records, "s", per_block=per_block)
        found = records_of(SstFile(opened(content)))
        assert [key for key, *_ in found] == [key for key, *_ in records]


def test_entries_of_a_block_that_are_held_at_once() -> None:
    records = [(sb.i32(number), 5, VALUE, b"") for number in range(4_097)]
    table = SstFile(opened(sst(records, "s", per_block=5_000)))
    assert [len(run) for run in table.records(ALL)] == [4_096, 1]


def test_keys_of_a_block_share_256_times_its_bytes() -> None:
    """Its first entry has 4,096 + 12 bytes, and 12 each other: 1,027 * 4,096 = 256 * 16,432."""
    long, end = b"k" * 4_096, struct.pack("<II", 0, 1)

    def read(shared: int) -> int:
        data = b"\0" + varint(4_104) + b"\0" + internal_key(long, 2_000, VALUE)
        for number in range(shared):
            data += varint(4_096) + b"\x08\0" + internal_key(b"", 1_999 - number, VALUE)
        content = sst_of_blocks([(internal_key(long, 0, VALUE), data + end)], "s")
        return len(records_of(SstFile(opened(content))))

    assert read(1_027) == 1_028
    with pytest.raises(SavepointError, match="the block is damaged: a key that shares 4096 bytes"):
        read(1_028)


def test_keys_of_an_index_share_256_times_its_bytes() -> None:
    """Its first entry has 2,816 + 5 bytes, and 4 each other: 403 * 2,816 = 256 * 4,433."""

    def read(shared: int) -> None:
        index = b"\0" + varint(2_816) + b"k" * 2_816 + place(DATA)
        index += (varint(2_816) + b"\0\0") * shared + struct.pack("<II", 0, 1)
        content = sst_of_blocks([(KEY, DATA)] * (1 + shared), "s", index=index)
        assert records_of(SstFile(opened(content)), [(b"l", b"m")]) == []

    assert len(place(DATA)) == 2
    read(403)
    with pytest.raises(SavepointError, match="the index is damaged: a key that shares 2816 bytes"):
        read(404)


@pytest.mark.parametrize("has_deltas", [True, False])
@pytest.mark.parametrize("user_key_index", [True, False])
@pytest.mark.parametrize("per_part", [1, 2, 7, 100])
def test_an_index_of_two_levels(has_deltas: bool, user_key_index: bool, per_part: int) -> None:
    """Gives what one of one level does, whatever keys are asked for, and reads each byte once."""
    records = [(bytes([3, number]), 5, VALUE, b"v") for number in range(100)]
    index: dict[str, Any] = {"has_deltas": has_deltas, "user_key_index": user_key_index}
    one_level = sst(records, "s", **index)
    two_levels = sst(records, "s", per_part=per_part, **index)
    for runs in (
        ALL,
        [(b"\3\x20", b"\3\x40")],
        [(b"\3\x63", b"\4")],
        [(b"\3", b"\3\1"), (b"\3\x50", b"\4")],
        [(b"\2", b"\3")],
        [(b"\5", b"\6")],
        [],
    ):
        stream = CountedStream(StreamHandle(len(two_levels), two_levels), None, "a.sst")
        found = records_of(SstFile(stream), runs)
        assert found == records_of(SstFile(opened(one_level)), runs)
        assert stream.count <= len(two_levels)


@pytest.mark.parametrize("version", [2, 5])
def test_the_mark_of_a_key_in_an_index_is_no_part_of_it(version: int) -> None:
    """Nor where no property says whether the index has marks, as in older versions."""
    records = [(b"a", 5, VALUE, b"1"), (b"a\0", 5, VALUE, b"2")]
    content = sst(records, "s", per_block=1, version=version, user_key_index=False)
    found = records_of(SstFile(opened(content)), [(b"a", b"a\0\0")])
    assert [key for key, *_ in found] == [b"a", b"a\0"]


def test_an_index_of_keys_without_their_mark() -> None:
    records = block([(internal_key(b"\3a", 5, VALUE), b"v")])
    content = sst_of_blocks([(b"\3a", records)], "s", user_key_index=False)
    with pytest.raises(SavepointError, match=r"index .*a key of 2 bytes"):
        records_of(SstFile(opened(content)))


def test_parts_of_an_index_that_are_not_read() -> None:
    """Those of keys that are all lower, or higher, than the ones that are asked for."""
    records = [(bytes([3, number]), 5, VALUE, b"v") for number in range(200)]
    content = sst(records, "s", per_block=1, per_part=10)
    counts = []
    for runs in ([(b"\3\x64", b"\3\x65")], [(b"\3", b"\4")]):
        stream = CountedStream(StreamHandle(len(content), content), None, "a.sst")
        assert records_of(SstFile(stream), runs)
        counts.append(stream.count)
    assert counts[0] < 0.3 * counts[1]
    assert counts[1] == len(content)


class CountedStream(OpenStream):
    """A stream that counts the bytes that are read of it."""

    count = 0

    def read(self, start: int, end: int) -> bytes:
        self.count += end - start
        return super().read(start, end)


def test_each_byte_is_read_once() -> None:
    """Whatever keys are asked for; a block in which two runs of keys end and start, too."""
    records = [(bytes([3, number]), 5, VALUE, b"v" * 99) for number in range(100)]
    content = sst(records, "s", per_block=10)
    for runs, share in (
        (ALL, 1.0),
        ([(bytes([3, number]), bytes([3, number + 1])) for number in range(0, 100, 2)], 1.0),
        ([(b"\3\x20", b"\3\x21")], 0.3),
        ([], 0.3),
    ):
        stream = CountedStream(StreamHandle(len(content), content), None, "a.sst")
        found = [key for key, *_ in records_of(SstFile(stream), runs)]
        assert found == [
            key for key, *_ in records if any(start <= key < end for start, end in runs)
        ]
        assert stream.count <= share * len(content)


class AskedStream(OpenStream):
    """A stream of a store that notes what is asked for ahead, and how often when data is read."""

    window = 800
    has_room = True

    def __init__(self, content: bytes, data_size: int) -> None:
        super().__init__(StreamHandle(len(content), content), None, "a.sst")
        self.asked: list[tuple[int, int]] = []
        self.asked_before: dict[int, int] = {}
        self._data_size = data_size

    def ahead(self, start: int, end: int) -> None:
        self.asked.append((start, end))

    def read(self, start: int, end: int) -> bytes:
        if end <= self._data_size:
            self.asked_before[start] = len(self.asked)
        return super().read(start, end)


BLOCKS_OF_100 = 1 + 2 + 4 + 8 * 30
NAMES = [struct.pack(">H", number) for number in range(BLOCKS_OF_100)]


@pytest.fixture
def blocks_of_100(monkeypatch: pytest.MonkeyPatch) -> AskedStream:
    """A file whose blocks of data have 100 bytes each, of which one is asked for at first."""
    monkeypatch.setattr(sst_module, "CHUNK", 100)
    # Three lengths, a key and its mark, the value, the restarts, and what is behind a block.
    value = bytes(100 - 3 - 10 - 8 - 5)
    content = sst([(name, 5, VALUE, value) for name in NAMES], "s", per_block=1)
    return AskedStream(content, 100 * BLOCKS_OF_100)


@pytest.mark.parametrize("has_room", [True, False])
def test_blocks_are_asked_for_by_ever_larger_windows(
    has_room: bool, blocks_of_100: AskedStream
) -> None:
    """Each is twice the last until it is as large as they may be, and so is how many are ahead.

    Where there is no room none is, but the one that comes next.
    """
    blocks_of_100.has_room = has_room
    assert len(records_of(SstFile(blocks_of_100))) == BLOCKS_OF_100
    ends = [100, 300, 700, *range(1_500, 24_701, 800)]
    starts = [0, *ends[:-1]]
    assert blocks_of_100.asked == list(zip(starts, ends))
    # What is asked for when a window is read: it, those before it, and 1, 2, 4, 8 or 16 ahead.
    ahead = [1, 2, 4, 8, *[16] * 40] if has_room else [0] * 40
    assert [blocks_of_100.asked_before[start] for start in starts] == [
        min(number + more, len(ends)) for number, more in zip(range(1, len(ends) + 1), ahead)
    ]


def test_no_window_is_larger_than_there_is_room_for(
    blocks_of_100: AskedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sst_module, "CHUNK", 400)
    blocks_of_100.window = 200
    records_of(SstFile(blocks_of_100), [(b"", NAMES[7])])
    assert blocks_of_100.asked == [(0, 200), (200, 400), (400, 600), (600, 800)]


def test_blocks_that_are_no_neighbours_are_asked_for_apart(blocks_of_100: AskedStream) -> None:
    """Of each run those with its keys, and the next, which may begin with some of them."""
    runs = [(NAMES[first], NAMES[end]) for first, end in ((0, 6), (10, 11), (13, 14))]
    records_of(SstFile(blocks_of_100), runs)
    assert blocks_of_100.asked == [
        *((0, 100), (100, 300), (300, 700)),
        *((1_000, 1_200), (1_300, 1_500)),
    ]


class CutStream(OpenStream):
    """A stream of a store that ends in the middle of the data."""

    end = 450

    def read(self, start: int, end: int) -> bytes:
        if start < self.end < end:
            raise SavepointError(f"bytes {start} to {end} are not there")
        return super().read(start, end)


def test_blocks_before_one_that_cannot_be_read(blocks_of_100: AskedStream) -> None:
    """A window of several is read block by block then, up to the one that is cut."""
    octets = blocks_of_100.read(0, blocks_of_100.size)
    stream = CutStream(StreamHandle(len(octets), octets), None, "a.sst")
    with pytest.raises(SavepointError, match="bytes 400 to 500 are not there"):
        list(SstFile(stream).blocks(ALL))
    blocks = SstFile(stream).blocks(ALL)
    assert [NAMES[number] in next(blocks).octets for number in range(4)] == [True] * 4


def test_metaindex_that_names_a_block_again_and_again() -> None:
    """It is read once; a filter's block, not at all."""
    properties = block([(b"rocksdb.data.size", b"\0"), (b"x", bytes(10_000))])
    named = (b"rocksdb.properties", place(properties))
    index, meta = block([]), block([(b"fullfilter.x", b"\0\7"), *[named] * 1_000])
    content = b"".join(block + trailer(block) for block in (properties, index, meta))
    numbers = (len(content) - len(meta) - 5, len(meta), len(properties) + 5, len(index))
    places = b"".join(map(varint, numbers))
    content += bytes([CRC32C]) + places.ljust(40, b"\0") + sst([], "s")[-12:]
    stream = CountedStream(StreamHandle(len(content), content), None, "a.sst")
    assert records_of(SstFile(stream)) == []
    assert stream.count == len(content)


def keys_of_two(folder: Path, *shared: bytes) -> list[object]:
    """Return the keys of a savepoint whose two tables, in one file and in two, are as given."""
    meta = sb.inline(sb.keyed_header(sb.simple("String"), [COUNT]))
    named = [(f"{number}.sst", stream) for number, stream in enumerate(shared)]
    task = sb.subtask(managed_keyed=sb.rocksdb(3, 1, meta, named))
    (operator,) = read_savepoint(sb.write(folder, [sb.operator([task])])).operators
    return [entry.key for entry in operator.entries()]


def test_a_file_that_is_named_twice(tmp_path: Path) -> None:
    """Also by another path, and in part; two pieces of one file are read, as Flink merges them."""
    a, b = (sst([(b"\3\2%s\0" % key, 5, VALUE, bytes(8))], "count") for key in (b"a", b"b"))
    size = len(a)
    assert len(b) == size
    (tmp_path / "a.sst").write_bytes(a)
    (tmp_path / "b.sst").write_bytes(b)
    (tmp_path / "both").write_bytes(a + b)
    both = str(tmp_path / "both")
    relative = sb.relative("b.sst", size), sb.relative("a.sst", size)
    assert keys_of_two(tmp_path, *relative) == ["a", "b"]
    segments = sb.segment(both, size, size), sb.segment(both, 0, size)
    assert keys_of_two(tmp_path, *segments) == ["a", "b"]
    for twice in (
        (relative[0], relative[0]),
        (relative[1], sb.absolute(f"{tmp_path}//a.sst", size)),
        (segments[0], segments[0]),
        (segments[1], sb.segment(both, size - 1, size + 1)),
    ):
        with pytest.raises(SavepointError, match=r"two handles name the same bytes of the file"):
            keys_of_two(tmp_path, *twice)


def test_more_entries_than_are_held_at_once() -> None:
    """Many of a block, and of long ones those that have more bytes than it."""
    many = [(b"\3" + number.to_bytes(4, "big"), 5, VALUE, b"v") for number in range(9_000)]
    long = [(b"\3" * 400_000 + bytes([number]), 5, VALUE, bytes(9)) for number in range(9)]
    for records, pieces in ((many, [4_096, 4_096, 808]), (long, [2, 2, 2, 2, 1])):
        table = SstFile(opened(sst(records, "s", per_block=len(records))))
        read = [*table.records(ALL)]
        assert [len(piece) for piece in read] == pieces
        assert [(key, value) for key, _, value in chain.from_iterable(read)] == [
            (key, value) for key, _, _, value in records
        ]


DELETION, MERGE, SINGLE_DELETION = 0, 2, 7


def pieces(rng: random.Random, records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield them, some at once."""
    start = 0
    while start < len(records):
        end = start + rng.randint(1, 9)
        yield [*records[start:end]]
        start = end


def newest(versions: Sequence[Record]) -> bytes | None:
    """Return the value that RocksDB has of a key, by its versions, the newest first."""
    operands: list[bytes] = []
    for _, order, value in versions:
        kind = -order % 256
        if kind in (VALUE, MERGE):
            operands.insert(0, value)
        if kind != MERGE:
            break
    return b",".join(operands) if operands else None


def test_files_that_have_the_same_records() -> None:
    records = [(b"%02d" % number, -(5 << 8 | VALUE), b"v") for number in range(9)]
    tables = [iter([records[:4], records[4:]]), iter([records[:4]]), iter([records])]
    assert [*chain.from_iterable(_merged(tables))] == sorted(2 * records + records[:4])


def test_files_side_by_side_take_time_once() -> None:
    """Of one that comes in many pieces, those that are held of many others are not asked."""

    def steps(count: int) -> int:
        others = [iter([[(b"b%06d" % number, -1, b"")]]) for number in range(count)]
        pieces = ([(b"a%06d" % number, -1, b"")] for number in range(count))
        return count_steps(lambda: list(_merged([pieces, *others])))

    assert steps(100 * TIMES) < MOST * steps(100)


@pytest.mark.parametrize("seed", range(40))
def test_files_whose_keys_overlap(seed: int) -> None:
    """Few keys with many versions, and many keys of which most have one."""
    rng = random.Random(seed)
    kinds = [VALUE, MERGE] * rng.choice([1, 20]) + [DELETION, SINGLE_DELETION]
    distinct = rng.choice([9, 2_000])
    found: dict[tuple[bytes, int], Record] = {}
    for number in range(200):
        key, sequence = b"%04d" % rng.randrange(distinct), rng.randrange(1_000)
        order = -(sequence << 8 | rng.choice(kinds))
        found[key, sequence] = key, order, b"%d" % number
    records = sorted(found.values())
    tables: list[list[Record]] = [[] for _ in range(rng.randint(1, 5))]
    for number, record in enumerate(records):
        by_turns, by_place = rng.randrange(len(tables)), number * len(tables) // len(records)
        tables[by_place if seed % 4 == 0 else by_turns].append(record)
    merged = [*_merged([pieces(rng, table) for table in tables])]
    assert [*chain.from_iterable(merged)] == records
    live = [*chain.from_iterable(zip(*chunk) for chunk in _live("s", merged, []))]
    expected = [
        (key, newest([*versions])) for key, versions in groupby(records, lambda record: record[0])
    ]
    assert live == [(key, value) for key, value in expected if value is not None]


# Deletions of ranges


def hidden(key: bytes, sequence: int, deletions: Sequence[RangeDeletion]) -> bool:
    return any(one.start <= key < one.end and one.sequence > sequence for one in deletions)


@pytest.mark.parametrize("seed", range(20))
def test_range_deletions_that_overlap(seed: int) -> None:
    """As asked of each deletion for each record."""
    rng = random.Random(seed)
    keys = [bytes([number]) for number in range(60)]
    records = sorted(
        (key, -(sequence << 8 | VALUE), b"")
        for key in keys
        for sequence in rng.sample(range(40), 2)
    )
    deletions = [
        RangeDeletion(rng.choice(keys), rng.choice(keys), rng.randrange(40)) for _ in range(15)
    ]
    newest = {key: -order >> 8 for key, order, _ in reversed(records)}
    expected = [key for key in keys if not hidden(key, newest[key], deletions)]
    assert [*chain.from_iterable(keys for keys, _ in _live("s", [records], deletions))] == expected
    assert expected != keys


def test_range_deletions_take_time_once() -> None:
    """Four times the records and the deletions: about four times the steps."""

    def steps(count: int) -> int:
        keys = [number.to_bytes(4, "big") for number in range(count + 1)]
        records = [(key, -(5 << 8 | VALUE), b"") for key in keys]
        deletions = [RangeDeletion(start, keys[-1], 1) for start in keys]
        return count_steps(lambda: list(_live("s", [records], deletions)))

    assert steps(400 * TIMES) < MOST * steps(400)
