"""How much is worked on at once: as many bytes, entries or files as the modules' constants say.

More or less of it gives the same answers, in more memory or time, so that no other test sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from support.bytes import savepoint_bytes as sb
from support.inside.savepoints import (
    EditTask,
    EncodedEntry,
    edit_task,
    keyed_state_file,
    moved_entries,
    spill,
)

from keygroups.key_group_range import KeyGroupRange
from keygroups.state_keys import serializer_of
from keygroups.types import BYTE, LONG

pa: Any = pytest.importorskip("pyarrow")
np: Any = pytest.importorskip("numpy")

from support.inside.columns import (  # noqa: E402
    batch_sorter,
    byte_arrays,
    column_encoder,
    entry_batch,
    entry_columns,
    entry_order,
    patterns,
    rocksdb_columns,
)
from support.inside.serializers import EnumSerializer, RowDataSerializer  # noqa: E402

from keygroups.logical_types import LogicalType  # noqa: E402


def entries_of(count: int, size: int = 0, groups: int = 1) -> list[EncodedEntry]:
    """Return entries in order, with values of a size, in so many key groups."""
    return [
        EncodedEntry(number * groups // count, 0, number.to_bytes(4, "big"), bytes(size))
        for number in range(count)
    ]


# --- entries in files and in memory -----------------------------------------------------------


def test_bytes_of_a_file_that_are_held() -> None:
    """64 KiB of entries, whichever way they come."""
    for is_framed in (True, False):
        written = BytesIO()
        groups = KeyGroupRange(0, 3)
        file = keyed_state_file.KeyedStateFile(written, "f", b"", 4, groups, str)
        if is_framed:
            file.add_framed(0, 0, 1, bytes(65_533))  # The number of a state takes two more.
            assert not written.getvalue()
            file.add_framed(0, 0, 1, b"x")
        else:
            file.add(EncodedEntry(0, 0, b"k", bytes(65_523)))  # and 10 of sizes and the key
            file.add(EncodedEntry(0, 0, b"l", b""))
            assert not written.getvalue()
            file.add(EncodedEntry(0, 0, b"m", b""))
        assert len(written.getvalue()) >= 65_536


def test_bytes_of_moved_entries_that_are_held() -> None:
    """16 MiB, with the 14 bytes before each key."""
    for more, is_written in ((-1, False), (0, True)):
        folder = SimpleNamespace(create=lambda name: BytesIO())
        task: Any = SimpleNamespace(operator_id="o", subtask=0, folder=folder, max_parallelism=4)
        moved = moved_entries.MovedWriter(task, 2)
        moved.add(EncodedEntry(0, 0, b"", bytes((1 << 23) - 14)))
        moved.add(EncodedEntry(3, 0, b"", bytes((1 << 23) - 14 + more)))
        assert bool(moved.written) is is_written


def test_bytes_from_which_on_there_are_columns() -> None:
    """2 MiB of state; less is edited before NumPy and PyArrow are imported."""
    write: Any = None
    for size, is_enough in ((2_097_151, False), (2_097_152, True)):
        format_ = SimpleNamespace(has_framed_columns=True)
        read: Any = SimpleNamespace(bytes=size, format=format_)
        task = EditTask(read, write, 1, {})
        assert task._has_columns is is_enough
    assert edit_task._SORTED == 2 * edit_task.LEAST_OF_COLUMNS


def test_files_of_single_entries_that_are_merged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """128, and the bytes that are counted for an entry beside its own: 200."""
    sorter = spill.EntrySorter(None)
    sorter.add(EncodedEntry(0, 0, b"key", b"value"))
    assert sorter._size == 208
    merged: list[int] = []

    def merging(sorter: Any, count: int) -> Sequence[EncodedEntry]:
        merged.append(count)
        return ()

    monkeypatch.setattr(spill.Sorter, "_merged", merging)
    monkeypatch.setattr(spill.Sorter, "_write_run", lambda self, items: self._runs.pop())
    for count in (128, 129):
        merged.clear()
        sorter = spill.EntrySorter(None)
        sorter._runs.extend([Path()] * count)
        assert [*sorter.entries()] == []
        assert merged == ([128] if count == 128 else [2, 128])


def test_entries_that_a_meter_counts_at_once() -> None:
    meter = Mock()
    assert len([*spill.sorted_entries(iter(entries_of(8_193)), None, 81_930, meter)]) == 8_193
    assert [call.args for call in meter.add.call_args_list] == [(40_960,)] * 2


# --- batches ------------------------------------------------------------------------------------


def test_words_of_keys_that_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks: list[int] = []
    some = entry_order._Words._some

    def counted(self: Any, rows: Any, word: int) -> Any:
        chunks.append(len(rows))
        return some(self, rows, word)

    monkeypatch.setattr(entry_order._Words, "_some", counted)
    words = entry_order._Words(np.zeros(9, np.uint8), np.arange(2) * 9)
    assert not words.of(np.zeros(16_385, np.int64), 0).any()
    assert chunks == [16_384, 1]


@pytest.mark.parametrize(
    ("values", "are_records"),
    [
        ([bytes(65_536)] * 2, True),
        ([bytes(65_537)] * 2, False),
        ([b"a"], True),
        ([b"ab"] * 3, True),
        ([b"ab", b"abc", b"a"], False),
        ([b"a", b"abc"], False),
        ([b"a", b""], False),
        ([b""], False),
        ([], False),
    ],
    ids=lambda case: str(case)[:20],
)
def test_values_that_are_records(values: list[bytes], are_records: bool) -> None:
    """Those of one size, not 0 and of 64 KiB at most: a single one, and a slice of others, too."""
    array = byte_arrays.bytes_array([b"before", *values]).slice(1)
    for found in (array, byte_arrays.bytes_array(values)):
        records = byte_arrays.records_of(found)
        assert isinstance(records, np.ndarray) is are_records
        assert byte_arrays.assembled([records]).to_pylist() == values


def test_pairs_of_maps_that_become_entries_at_once() -> None:
    maps = pa.array([[(number, number) for number in range(8_193)]], pa.map_("int32", "int32"))
    keys = column_encoder.Keys(*(pa.array([7]) for _ in range(3)))
    pairs = [*column_encoder.pairs_of_maps(maps, keys, None)]
    assert [len(rows.value or ()) for _, rows in pairs] == [8_192, 1]
    assert [len(some.encoded) for some, _ in pairs] == [8_192, 1]


def rows_of(batch: Any, size: int) -> int:
    """Return the number of rows of a batch that take about so many bytes."""
    return int(len(batch) * size // batch.nbytes)


def test_bytes_of_sorted_batches() -> None:
    """256 KiB in a file of sorted ones, and four times as many of what is not in files."""
    batch = entry_batch(entries_of(1_100, 2_048))
    sorter = batch_sorter.BatchSorter(None, in_parts=False)
    sorter.add(batch)
    sorter.spill()
    assert [*map(len, sorter._read(sorter._runs[0]))][:2] == [rows_of(batch, 262_144)] * 2
    sorter.close()
    for count in (0, 1_024):
        sorter = batch_sorter.BatchSorter(None)
        sorter.add(batch)
        if count:  # a part of those of its key group, of as many as there are
            sorter.add(entry_batch(entries_of(count, 0, count)))
            sorter.spill()
        assert max(map(len, sorter.entries())) >= rows_of(batch, 1_048_576)
        sorter.close()
    sorter = batch_sorter.BatchSorter(None)
    sorter.add(batch)
    assert next(sorter.entries()).num_rows == rows_of(batch, 1_048_576)


@pytest.mark.parametrize(
    ("runs", "at_once"), [(1, 4), (8, 4), (9, 3), (11, 2), (16, 2), (17, 1), (33, 1)]
)
def test_batches_that_are_read_of_a_file_at_once(
    runs: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refilled(batch: Any, run: Any, at_once: int) -> list[Any]:
        asked.append(at_once)
        return []

    monkeypatch.setattr(batch_sorter, "_refilled", refilled)
    assert [*batch_sorter.BatchSorter(None)._merge([iter(())] * runs)] == []
    assert asked == [at_once] * runs


def test_a_head_of_which_little_is_left_gets_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is little where it is less than half of what a head gets at once."""
    batch = entry_batch(entries_of(9))
    for more in (0, 1):
        monkeypatch.setattr(batch_sorter, "_WRITTEN", batch.nbytes + more)
        run = iter([entry_batch(entries_of(2)), entry_batch(entries_of(3)), None])
        [head] = batch_sorter._refilled(batch, run, 2)
        assert len(head.batch) == (9 + 2 + 3 if more else 9)


def test_the_last_run_is_not_sorted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batches follow as they are; single entries become batches of 4,096."""
    monkeypatch.setattr(batch_sorter, "in_order", None)
    counts: list[int] = []

    def counted(entries: Sequence[EncodedEntry]) -> Any:
        counts.append(len(entries))
        return entry_batch(entries)

    monkeypatch.setattr(batch_sorter, "entry_batch", counted)
    entries = entries_of(5 * 4_096 + 1)
    batches = [*batch_sorter.BatchSorter(None).batches(iter(entries))]
    assert counts == [4_096] * 5 + [1]
    assert [*map(len, batches)] == [4 * 4_096, 4_096, 1]


def test_parts_of_a_file() -> None:
    """32 by entries, and none where there would be less than 8."""
    for groups, is_in_parts in ((7, False), (8, True)):
        sorter = batch_sorter.BatchSorter(None)
        sorter.add(entry_batch(entries_of(groups * 64, 0, groups)))
        sorter.spill()
        assert sorter._in_parts is is_in_parts
        sorter.close()
    sorter = batch_sorter.BatchSorter(None)
    sorter.add(entry_batch(entries_of(1_024, 0, 1_024)))
    sorter.spill()
    assert sorter._firsts == [*range(0, 1_024, 32)]
    sorter.close()


def test_what_is_as_it_should_be_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece, entries in order, rows that are all of the width, varints of one byte."""
    numbers = np.arange(3)
    assert byte_arrays.side_by_side([numbers]) is numbers
    texts = byte_arrays.bytes_array([b"a", b"bc"])
    assert byte_arrays.assembled([texts]) is texts
    monkeypatch.setattr(byte_arrays, "bounds_of", None)
    octets, bounds = byte_arrays.varints(np.array([0, 127]))
    assert (octets.tolist(), bounds.tolist()) == ([0, 127], [0, 1, 2])
    monkeypatch.setattr(batch_sorter, "_taken", None)
    batch = entry_batch(entries_of(9, 1, 3))
    assert batch_sorter._by_key_group(batch) is batch
    assert batch_sorter.in_order([batch]).equals(batch)
    rows = np.zeros((2, 8 + rocksdb_columns._BEHIND), np.uint8)
    records = rocksdb_columns._Records(rows, numbers[:2], numbers[:2], b"")
    assert records.width == 8
    assert records.widened(8) is records
    assert records.widened(16).width == 16


def test_rows_that_all_make_entries_stay() -> None:
    keys = column_encoder.Keys(*(pa.array([7, 8]) for _ in range(3)))
    for kind, values, user_key in (
        ("VALUE", [1, 2], None),
        ("LIST", [[1], [2]], None),
        ("MAP", [1, None], [3, 4]),
    ):
        array = None if user_key is None else pa.array(user_key)
        rows = column_encoder.StateRows(pa.array(values), array)
        some_keys, some_rows = column_encoder.with_entries(kind, keys, rows)
        assert some_keys is keys
        assert some_rows is rows


# --- entries that are read ----------------------------------------------------------------------


def test_entries_of_which_the_places_are_found_at_once() -> None:
    """4,096 of many sizes, and 16,384 of one."""
    entries = [
        sb.i32(3) + b"\3k\0" + sb.i32(number % 2) + b"v" * (number % 2) for number in range(4_100)
    ]
    places, _ = entry_columns.scan_framed(b"".join(entries), 0, b"\3", None)
    assert len(places) == 4_097
    places, _ = entry_columns.scan_framed(entries[0] * 16_390, 0, b"\3", None)
    assert len(places) == 16_385
    assert entry_columns.BYTES == 1 << 22  # bytes of some entries are asked for elsewhere


def test_what_a_search_found_that_is_worth_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 64 places of entries: then twice as many bytes are searched."""
    decoder: Any = SimpleNamespace(
        state=SimpleNamespace(kind="VALUE"), most_bytes=1, framed_size=None
    )
    for count, reach in ((64, 0), (65, 2 * 990)):
        places = np.linspace(10, 1_000, count).astype(np.int64)
        monkeypatch.setattr(
            entry_columns, "scan_framed", lambda *_, places=places: (places, False)
        )
        held = entry_columns.HeldEntries(decoder, 1, is_native=False)
        held.scan(b"", 10, b"\3")
        assert held._reach == reach


def test_names_that_make_values_longer() -> None:
    """Those of more than 128 characters, to the 4 bytes of an enum's constant."""
    for length in (128, 129):
        constant = EnumSerializer("a.B", ["A", "x" * length])
        assert entry_columns._may_grow(constant) is (length == 129)


# --- patterns -----------------------------------------------------------------------------------


def matches(serializers: Sequence[Any], data: bytes) -> bool:
    pattern = patterns.pattern_of(serializers)
    assert pattern is not None
    return [*map(len, patterns._finding(pattern)(data, 0, len(data)))] == [len(data)]


def test_sizes_that_patterns_have() -> None:
    """64 sizes of frames and of rows."""
    row = RowDataSerializer([LogicalType("INT")])
    for words in (0, 1, 63, 64):
        data = sb.i32(16 + 8 * words) + bytes(16 + 8 * words)
        assert matches([row], data) is (words < 64)
    assert patterns._of_sizes(range(64)) == patterns._frame(row)


def test_the_longest_pattern() -> None:
    """64 KiB; eight bytes stand one by one in it, and more as a number of them."""
    byte = serializer_of(BYTE)
    assert patterns.pattern_of([byte] * 65_536) == b"." * 65_536
    assert patterns.pattern_of([byte] * 65_537) is None
    assert patterns.pattern_of([serializer_of(LONG)]) == b"........"
    assert patterns._times(b"a", 9) == b"a{9}"


class Found:
    """Finds values of a size, and notes where it is asked to."""

    def __init__(self, size: int, most: int = 1 << 30) -> None:
        self.size, self.most = size, most
        self.asked: list[tuple[int, int]] = []

    def __call__(self, data: bytes, pos: int, end: int) -> list[bytes]:
        self.asked.append((pos, end))
        count = min((end - pos) // self.size, self.most)
        return [bytes(self.size)] * count + [b""]


@pytest.fixture
def _nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "_compiled", {})


def scan_one_by_one(data: bytes, pos: int, count: int) -> range:
    return range(pos, pos + count + 1)


@pytest.mark.usefixtures("_nothing_compiled")
def test_values_from_which_on_a_pattern_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,096; of the compiled patterns 64 are kept."""
    compiled: list[bytes] = []

    def finding(pattern: bytes) -> Callable[[bytes, int, int], list[bytes]]:
        compiled.append(pattern)
        return Found(1)

    monkeypatch.setattr(patterns, "_finding", finding)
    find = patterns.pattern_scan(b"a", scan_one_by_one)
    data = bytes(9_999)
    assert len(find(data, 0, 4_095)) == 4_096
    assert len(find(data, 0, 1)) == 2
    assert compiled == []
    assert len(find(data, 0, 1)) == 2
    assert compiled == [b"a"]
    for number, kept in ((62, 63), (63, 64), (64, 1)):
        patterns._compiled.clear()
        patterns._compiled.update((bytes([place]), Found(1)) for place in range(number))
        find = patterns.pattern_scan(b"b", scan_one_by_one)
        find(data, 0, 4_096)
        find(data, 0, 1)
        assert len(patterns._compiled) == kept


@pytest.mark.usefixtures("_nothing_compiled")
def test_how_far_values_are_sought() -> None:
    """As far as they go by the size of those before, and a quarter more, and 256 bytes.

    The first ones are taken to have 64 bytes. Where others lie among them, it is twice as many
    values as were found the last time, and 16 at least.
    """
    data = bytes(1 << 20)
    for most, count, ends in (
        (1 << 30, 3, [(0, 3 * 80 + 256)]),
        (1 << 30, 130, [(0, 128 * 80 + 256)]),
        (20, 60, [(0, 60 * 80 + 256), (800, 800 + 40 * 50 + 256), (1_600, 1_600 + 20 * 50 + 256)]),
        (7, 20, [(0, 20 * 80 + 256), (280, 280 + 13 * 50 + 256), (560, 560 + 6 * 50 + 256)]),
        (3, 40, [(0, 40 * 80 + 256), (120, 120 + 16 * 50 + 256), (240, 240 + 16 * 50 + 256)]),
    ):
        found = Found(40, most)
        patterns._compiled[b"p"] = found
        places = patterns.pattern_scan(b"p", scan_one_by_one)(data, 0, count)
        assert [*places] == [*range(0, 40 * count + 1, 40)]
        assert found.asked[: len(ends)] == ends


@pytest.mark.usefixtures("_nothing_compiled")
def test_from_how_many_values_on_there_are_arrays() -> None:
    data = bytes(1_000)
    patterns._compiled[b"p"] = Found(1)
    find = patterns.pattern_scan(b"p", scan_one_by_one)
    for count in (127, 128):
        assert isinstance(find(data, 0, count), list) is (count == 127)
        assert isinstance(patterns._ends(0, [b"x"] * count), list) is (count == 127)


def test_bytes_that_numpy_levels() -> None:
    """2,048 and more."""

    class Octets(bytes):
        def translate(self, *_: Any) -> bytes:
            return b"translated"

    octets = Octets(b"\xe9a" * 1_024)
    assert patterns._levelled(octets) == b"\xffa" * 1_024
    assert patterns._levelled(Octets(octets[1:])) == b"translated"


def test_patterns_that_are_tried_on_levelled_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that name no byte from 80 on; all of these are ff then."""
    levelled = Mock(wraps=patterns._levelled)
    monkeypatch.setattr(patterns, "_levelled", levelled)
    for byte in range(0, 256, 15):
        levelled.reset_mock()
        data = bytes([byte])
        assert patterns._finding(b"\\x%02x" % byte)(data, 0, 1) == [data]
        assert levelled.called is (byte < 0x80)
    for times in (1, 8):
        octets = bytes(range(256)) * times
        assert patterns._levelled(octets) == (bytes(range(128)) + b"\xff" * 128) * times


# --- RocksDB ------------------------------------------------------------------------------------


def test_files_and_blocks_of_a_state_that_are_decoded_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 files, and of each 1 MiB of blocks, or as much of 4 MiB as there is for each."""
    sizes: list[int] = []
    monkeypatch.setattr(rocksdb_columns, "_pieces", lambda blocks, run, size: sizes.append(size))
    monkeypatch.setattr(rocksdb_columns, "_of_pieces", lambda *_: "columns")
    monkeypatch.setattr(rocksdb_columns, "of_pairs", lambda *_: "pairs")
    file = SimpleNamespace(range_deletions=(), blocks=iter)
    decoder: Any = None
    for count, size in ((0, None), (1, 1 << 20), (4, 1 << 20), (5, 838_860), (64, 65_536)):
        sizes.clear()
        files: Any = [file] * count
        found: Any = rocksdb_columns.of_files(decoder, "s", files, [(b"", b"")], 1, Mock())
        assert found == "columns"
        assert sizes == [size] * count
    of_more: Any = [file] * 65
    found = rocksdb_columns.of_files(decoder, "s", of_more, [(b"", b"")], 1, Mock())
    assert found == "pairs"


def test_blocks_that_are_decoded_at_once() -> None:
    """Until there are as many bytes, and none of more than 1 MiB."""

    def some(*ends: int) -> list[int]:
        blocks: Iterator[Any] = (SimpleNamespace(end=end) for end in ends)
        return [block.end for block in rocksdb_columns._some(blocks, 100)]

    assert some(50, 49, 1, 9) == [50, 49, 1]
    assert some(1 << 20, 9) == [1 << 20]
    with pytest.raises(rocksdb_columns.Irregular):
        some(9, (1 << 20) + 1)
