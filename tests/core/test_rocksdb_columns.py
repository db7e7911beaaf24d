"""RocksDB's records decoded thousands at a time: the same as one by one, and what is left to that.

The other side is the reader of single records, which is held to what Flink and RocksDB read.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.sst_bytes import VALUE, Crafted, block, internal_key, sst, sst_of_blocks
from support.growth import count_bytes
from support.inside.serializers import write_string

from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import Operator, read_savepoint

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

import numpy as np
from support.bytes.column_entries import by_state, column_entries
from support.inside.columns import rocksdb_columns
from support.inside.savepoints import rocksdb

DELETION, MERGE, SINGLE_DELETION = 0, 2, 7
LONG, STRING = sb.simple("Long"), sb.simple("String")
COUNT = sb.state("s", "VALUE", LONG)
LISTS = sb.state("s", "LIST", sb.list_of(LONG))
TEXT = sb.state("s", "VALUE", STRING)

Record = tuple[bytes, int, int, bytes]
"""Key, sequence number, kind and value."""


def operator_of(
    folder: Path, tables: Sequence[bytes], state: bytes = COUNT, max_parallelism: int = 128
) -> Operator:
    """Return an operator with keys of STRING and all key groups."""
    files = [(f"{number}.sst", sb.inline(table)) for number, table in enumerate(tables)]
    header = sb.keyed_header(STRING, [state])
    keyed = sb.rocksdb(0, max_parallelism, sb.inline(header), files)
    task = sb.operator([sb.subtask(managed_keyed=keyed)], max_parallelism=max_parallelism)
    (operator,) = read_savepoint(sb.write(folder, [task])).operators
    return operator


def key(text: str, key_group: int = 3, prefix_bytes: int = 1) -> bytes:
    return key_group.to_bytes(prefix_bytes, "big") + write_string(text) + b"\0"


def newest(number: int, text: str | None = None) -> Record:
    """A key that was put once."""
    return key(f"{number:04}" if text is None else text), 5, VALUE, sb.i64(number)


class Left:
    """Counts what is left to the reader of single records: the runs that it is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runs: list[list[tuple[bytes, bytes]]] = []
        pairs = rocksdb._pairs

        def counted(name: str, tables: Any, runs: Any) -> Any:
            self.runs.append(list(runs))
            return pairs(name, tables, runs)

        monkeypatch.setattr(rocksdb, "_pairs", counted)

    def of(self, operator: Operator, expected: int, **selected: Any) -> list[bytes]:
        """Return the start of each run; the entries, `expected` of them, are as read one by one.

        `expected` is -1 where both raise the same error.
        """
        self.runs.clear()
        try:
            ours: object = by_state(column_entries(operator, **selected))
        except SavepointError as error:
            ours = str(error)
        starts = [start for runs in self.runs for start, _ in runs]
        try:
            theirs: object = by_state(operator.entries(**selected))
        except SavepointError as error:
            theirs = str(error)
        assert ours == theirs
        count = sum(map(len, theirs.values())) if isinstance(theirs, dict) else -1
        assert count == expected
        return starts


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Left:
    return Left(monkeypatch)


@pytest.mark.parametrize("seed", range(40))
def test_files_whose_keys_overlap(
    seed: int, tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of which there are several versions in several files, and those that were deleted."""
    rng = random.Random(seed)
    monkeypatch.setattr(rocksdb_columns, "_AT_ONCE", rng.choice([1, 100, 1_000, 1 << 18]))
    is_text = seed % 2 == 0
    kinds = [VALUE] * rng.choice([1, 9]) + [DELETION, SINGLE_DELETION]
    texts = [
        "".join(rng.choices("ab\0", k=rng.randint(0, 6))) for _ in range(rng.choice([9, 300]))
    ]
    found: dict[tuple[bytes, int], Record] = {}
    for number in range(400):
        own = key(rng.choice(texts), rng.choice([0, 3, 127]))
        length = rng.choice([rng.randint(0, 9), 300])
        value = write_string("v" * length) if is_text else sb.i64(number)
        sequence = rng.randrange(1_000)
        found[own, sequence] = own, sequence, rng.choice(kinds), value
    records = sorted(found.values(), key=lambda record: (record[0], -record[1]))
    tables: list[list[Record]] = [[] for _ in range(rng.randint(1, 5))]
    for number, record in enumerate(records):
        place = (
            number * len(tables) // len(records) if seed % 4 == 0 else rng.randrange(len(tables))
        )
        tables[place].append(record)
    live: dict[bytes, bool] = {}
    for own, _, kind, _ in records:
        live.setdefault(own, kind == VALUE)
    monkeypatch.setattr(rocksdb_columns, "_LEAST_RUNS", rng.choice([1, 16]))
    per_run = rng.choice([None, 1, 2, 16])
    written = [
        sst(table, "s", per_block=rng.randint(1, 100), per_run=per_run)
        for table in tables
        if table
    ]
    operator = operator_of(tmp_path, written, TEXT if is_text else COUNT)
    assert unread.of(operator, sum(live.values())) == []
    of_last = [is_live for own, is_live in live.items() if own[0] == 127]
    assert unread.of(operator, sum(of_last), key_groups=[127]) == []


def test_key_groups_of_two_bytes(tmp_path: Path, unread: Left) -> None:
    records = [(key("a", group, 2), 5, VALUE, sb.i64(group)) for group in (0, 255, 256, 299)]
    operator = operator_of(tmp_path, [sst(records, "s")], max_parallelism=300)
    assert unread.of(operator, 4) == []
    assert unread.of(operator, 2, key_groups=[255, 256]) == []
    assert unread.of(operator, 2, key_groups=[0, 256]) == [b"\0\0", b"\1\0"]  # more than one run


def test_keys_shorter_than_a_key_group(tmp_path: Path, unread: Left) -> None:
    table = sst([(b"\1", 5, VALUE, sb.i64(7))], "s")
    operator = operator_of(tmp_path, [table], max_parallelism=300)
    assert unread.of(operator, -1, key_groups=range(300)) == [b"\0\0"]


def test_merges(tmp_path: Path, unread: Left) -> None:
    """Of one part alone they are values; of several they are joined, record by record."""
    merges = sst([(key(f"{number}"), 5, MERGE, sb.i64(number)) for number in range(9)], "s")
    assert unread.of(operator_of(tmp_path / "a", [merges], LISTS), 9) == []
    older = sst([(key("3"), 4, VALUE, sb.i64(33))], "s")
    assert unread.of(operator_of(tmp_path / "b", [merges, older], LISTS), 9) == [b"\0"]
    newer = sst([(key("3"), 6, VALUE, sb.i64(33))], "s")  # it hides the other
    assert unread.of(operator_of(tmp_path / "c", [merges, newer], LISTS), 9) == []


def test_what_follows_is_read_record_by_record(
    tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what is out already."""
    monkeypatch.setattr(rocksdb_columns, "_AT_ONCE", 1)
    records = [newest(number) for number in range(20)]
    records[19] = newest(19, "x" * 130)
    operator = operator_of(tmp_path, [sst(records, "s", per_block=1)])
    assert unread.of(operator, 20) == [b"\0"]


@pytest.mark.parametrize(("length", "is_left"), [(127 - 8 - 3, False), (128 - 8 - 3, True)])
def test_long_keys(length: int, is_left: bool, tmp_path: Path, unread: Left) -> None:
    """As many bytes of a key as fit a byte's seven bits."""
    operator = operator_of(tmp_path, [sst([newest(2, "x" * length)], "s")])
    assert unread.of(operator, 1) == ([b"\0"] if is_left else [])


@pytest.mark.parametrize("per_run", [None, 2])
@pytest.mark.parametrize("size", [127, 129, 255, 256, 16_383, 16_384])
def test_long_values(
    size: int,
    per_run: int | None,
    tmp_path: Path,
    unread: Left,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sizes of one byte and of two, in one block, and before others."""
    monkeypatch.setattr(rocksdb_columns, "_LEAST_RUNS", 16 if per_run is None else 1)
    long = write_string("x" * (size - 1 - (size > 128)))
    values = [b"\2a", long, b"\0", b"\3bc", long]
    records = [(key(f"{number}"), 5, VALUE, value) for number, value in enumerate(values)]
    operator = operator_of(tmp_path, [sst(records, "s", per_block=4, per_run=per_run)], TEXT)
    assert len(long) == size
    assert unread.of(operator, 5) == ([b"\0"] if size > 16_383 else [])


@pytest.mark.parametrize(
    "restarts",
    [
        *((), (1,), (0, 1), (0, 0), (0, 3, 2), (0, 1 << 31), (0, (1 << 32) - 1), (5, 0)),
        (0, 20),  # a zero in the first value, as if a whole key started there
    ],
)
@pytest.mark.parametrize("count", [20, 70])
def test_restarts_that_are_none(
    restarts: tuple[int, ...],
    count: int,
    tmp_path: Path,
    unread: Left,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody needs them who reads in order, as the reader of single records does."""
    monkeypatch.setattr(rocksdb_columns, "_LEAST_RUNS", 1)
    records = [(internal_key(*record[:3]), record[3]) for record in map(newest, range(count))]
    entries = block(records)[:-8]
    lying = entries + struct.pack(f"<{len(restarts)}II", *restarts, len(restarts))
    table = sst_of_blocks([(records[-1][0], lying)], "s")
    assert unread.of(operator_of(tmp_path, [table]), count) == []


def test_runs_side_by_side(tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """As RocksDB writes them, none of which is left to the loop over single records."""
    monkeypatch.setattr(rocksdb_columns, "_heads_in_order", None)
    records = [newest(number) for number in range(400)]
    table = sst(records, "s", per_block=100, per_run=16)
    assert unread.of(operator_of(tmp_path, [table]), 400) == []


@pytest.mark.parametrize(("runs", "is_alone"), [(15, True), (16, False)])
def test_runs_that_are_worth_a_step_of_numpy(
    runs: int, is_alone: bool, tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_order = Mock(wraps=rocksdb_columns._heads_in_order)
    monkeypatch.setattr(rocksdb_columns, "_heads_in_order", in_order)
    records = [newest(number) for number in range(runs)]
    table = sst(records, "s", per_block=100, per_run=1)
    assert unread.of(operator_of(tmp_path, [table]), runs) == []
    assert in_order.called is is_alone


def test_a_key_that_starts_with_all_of_the_one_before(tmp_path: Path, unread: Left) -> None:
    """With its mark too: no more can be shared. It is no key of the state, in both ways."""
    first = newest(0)
    records = [first, (internal_key(*first[:3]) + b"more", 4, VALUE, first[3])]
    assert unread.of(operator_of(tmp_path, [sst(records, "s", per_block=9)]), -1) == []


@pytest.mark.parametrize(("count", "is_left"), [(256, False), (257, True)])
def test_keys_that_share_with_many_before(
    count: int, is_left: bool, tmp_path: Path, unread: Left
) -> None:
    records = [newest(number) for number in range(count)]
    operator = operator_of(tmp_path, [sst(records, "s", per_block=count)])
    assert unread.of(operator, count) == ([b"\0"] if is_left else [])


def test_bounds(tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, bytes of a block, and bytes of keys for each byte of a block."""
    records = [newest(number) for number in range(40)]
    tables = [sst(records[:20], "s", per_block=9), sst(records[20:], "s", per_block=9)]
    operator = operator_of(tmp_path, tables)
    assert unread.of(operator, 40) == []
    for name, bound in (("_MOST_FILES", 1), ("_MOST_BLOCK", 100), ("_MOST_SHARED", 0)):
        with monkeypatch.context() as patched:
            patched.setattr(rocksdb_columns, name, bound)
            assert unread.of(operator, 40) == [b"\0"]


def test_keys_that_share_take_no_more_memory_than_their_bytes(
    tmp_path: Path, unread: Left
) -> None:
    """Three bytes each, which are 126 of a key."""
    long = internal_key(b"\3" + b"x" * 118, 9_999, VALUE)
    data = block([(long, b"")])[:-8] + b"\x7e\0\0" * 40_000 + b"\0\0\0\0\1\0\0\0"
    operator = operator_of(tmp_path, [sst_of_blocks([(long, data)], "s")])
    assert unread.of(operator, -1) == [b"\0"]

    def refuse() -> None:
        with pytest.raises(SavepointError, match="not in order"):
            list(column_entries(operator))

    assert count_bytes(refuse) < 40 * len(data)


def test_a_key_of_many_versions(
    tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not held, from piece to piece."""
    monkeypatch.setattr(rocksdb_columns, "_AT_ONCE", 1)
    versions = [(key("a"), 9_999 - number, VALUE, sb.i64(number)) for number in range(1_101)]
    operator = operator_of(tmp_path / "a", [sst(versions[:1_100], "s", per_block=100)])
    assert unread.of(operator, 1) == []
    operator = operator_of(tmp_path / "b", [sst(versions, "s", per_block=100)])
    assert unread.of(operator, 1) == [b"\0"]


def test_ranges_that_are_deleted(tmp_path: Path, unread: Left) -> None:
    records = [newest(number) for number in range(9)]
    deletions = [(internal_key(key("0003"), 7, 15), key("0005"))]
    table = sst(records, "s", deletions=deletions)
    assert unread.of(operator_of(tmp_path, [table]), 7) == [b"\0"]


def damaged(number: int) -> bytes:
    """A file that has damage of some kind behind its first block."""
    first, key_a, key_b = newest(0), internal_key(key("1"), 5, VALUE), internal_key(key("2"), 5, 1)
    value = sb.i64(7)
    short, restarts = b"\3a", b"\0\0\0\0\1\0\0\0"
    blocks = [
        block([(key_b, value), (key_a, value)]),  # not in order
        block([(key_a, value), (key_a, value)]),  # twice
        block([(key_a, value)])[:-9] + restarts,  # ends beyond
        b"\5" + block([(key_a, value)])[1:],  # shares with none
        block([(key_a, value)])[:-8] + b"\x40\0\0" + restarts,  # too few
        block([(short, value)]),  # a key of less than its mark
        block([(internal_key(key("1"), 5, 9), value)]),  # another kind
    ]
    own = blocks[number]
    data = [(internal_key(*first[:3]), block([(internal_key(*first[:3]), first[3])]))]
    return sst_of_blocks([*data, (key_b, own)], "s")


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_damage(
    number: int, at_once: int, tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is an error of the reader of single records."""
    monkeypatch.setattr(rocksdb_columns, "_AT_ONCE", at_once)
    assert unread.of(operator_of(tmp_path, [damaged(number)]), -1) == [b"\0"]


@pytest.mark.long
@pytest.mark.parametrize(
    "seeds", [range(50, 200), pytest.param(range(4_000), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("state", [COUNT, LISTS], ids=["VALUE", "LIST"])
def test_crafted_tables(seeds: range, state: bytes, tmp_path: Path) -> None:
    """Equal keys, gaps, wrong orders, ranges that overlap: the readers agree, or both refuse."""
    keys = [key(text, key_group) for key_group in (0, 3) for text in ("", "a", "ab", "b")]
    keys += [key("a", 127), key("c" * 300), b"\3", key("a", 130)]
    values = [sb.i64(number) for number in (5, 7)] + [sb.i64(1) + b"," + sb.i64(2), b""]
    answered = 0
    for seed in seeds:
        tables = Crafted(seed, keys[: 4 + seed % 9], values[: 2 + seed % 3]).tables("s")
        operator = operator_of(tmp_path, tables, state)
        outcomes: list[Any] = []
        for read in (column_entries, Operator.entries):
            try:
                outcomes.append(by_state(read(operator)))
            except KeyGroupsError:
                outcomes.append(None)
        assert outcomes[0] == outcomes[1], seed
        answered += outcomes[0] is not None
    assert len(seeds) / 20 < answered < len(seeds) * 3 / 4


def test_pieces_that_are_not_in_order(
    tmp_path: Path, unread: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocksdb_columns, "_AT_ONCE", 1)
    for number, records in enumerate(([newest(2), newest(1)], [newest(1), newest(1)])):
        # The index has keys that are in order.
        data = [
            (internal_key(key(f"{place}"), 5, VALUE), block([(internal_key(*own[:3]), own[3])]))
            for place, own in enumerate(records)
        ]
        operator = operator_of(tmp_path / str(number), [sst_of_blocks(data, "s")])
        assert unread.of(operator, -1) == [b"\0"]


@pytest.mark.parametrize("more", [b"\0", b"\7", b"\xff", b"\0" * 9])
def test_a_key_that_is_longer_than_all(more: bytes) -> None:
    """It is behind all that it starts with."""
    row = np.frombuffer(b"of-eight" + b"\x08".ljust(8, b"\0") + b"\xff" * 8, np.uint8)
    none = np.zeros(1, np.int64)
    records = rocksdb_columns._Records(row.reshape(1, 24), none, none, b"")
    assert (records.before(b"of-eight"), records.through(b"of-eight")) == (0, 1)
    assert (records.before(b"of-eight" + more), records.through(b"of-eigh")) == (1, 0)


@pytest.mark.parametrize("kind", [VALUE, DELETION, SINGLE_DELETION, MERGE])
@pytest.mark.parametrize("at_once", [1, 1 << 18])
@pytest.mark.parametrize("number", [0, 7, 49])
def test_two_records_of_one_number(
    kind: int,
    at_once: int,
    number: int,
    tmp_path: Path,
    unread: Left,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RocksDB numbers what it writes; which of two counts nobody can tell, so both are refused.

    Also where both have one value, where a newer record hides them, and in any order of files.
    """
    monkeypatch.setattr(rocksdb_columns, "_AT_ONCE", at_once)
    records = [newest(each) for each in range(50)]
    twice = (
        records[number][0],
        3,
        kind,
        b"" if kind in (DELETION, SINGLE_DELETION) else sb.i64(1),
    )
    same = sst([twice], "s")
    for value in (twice[3], sb.i64(2)) if kind in (VALUE, MERGE) else (b"",):
        other = (*twice[:3], value)
        without = [*records[:number], other, *records[number + 1 :]]
        hidden = [*records[: number + 1], other, *records[number + 1 :]]
        for rest in (without, hidden):
            for tables in (
                [sst(rest, "s", per_block=1), same],
                [same, sst(rest, "s", per_block=7)],
            ):
                operator = operator_of(tmp_path, tables)
                assert unread.of(operator, -1)
                with pytest.raises(SavepointError, match=r"two records of key .* have one number"):
                    operator.key_sizes()


def test_no_record_is_wanted(tmp_path: Path, unread: Left) -> None:
    table = sst([newest(1)], "s")
    operator = operator_of(tmp_path / "a", [table, sst([], "s")])
    assert unread.of(operator, 0, key_groups=[5]) == []
    assert unread.of(operator, 0, key_groups=[2]) == []
    assert unread.of(operator_of(tmp_path / "b", []), 0) == []
    empty = sst_of_blocks([(internal_key(key("1"), 5, VALUE), block([]))], "s")
    assert unread.of(operator_of(tmp_path / "c", [empty]), 0) == []
    gone = sst([(key("1"), 5, DELETION, b"")], "s")
    assert unread.of(operator_of(tmp_path / "d", [gone]), 0) == []
