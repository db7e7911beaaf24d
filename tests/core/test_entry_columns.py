"""Entries read column by column: the same as one by one, and the same errors.

The other side is the reader of single entries, which is held to what Flink read. What is made up
here has numbers at their bounds, texts of every kind that Flink writes, and damage in each byte.
"""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.damaged_files import damages
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import POINTS, Point, point
from support.inside.savepoints import KeyGroupsHandle
from support.inside.savepoints import files as files_module
from support.inside.serializers import write_string

from keygroups.errors import SavepointError
from keygroups.savepoint import Operator, read_savepoint

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

from support.bytes.column_entries import by_state, column_entries  # noqa: E402
from support.bytes.column_forms import (  # noqa: E402
    FORMS,
    Form,
    assert_same,
    canonical,
    is_arrow,
    materialized,
    native,
    of_two_bytes,
    operator_of,
    rocksdb,
)
from support.inside.columns import (  # noqa: E402
    entry_columns,
    framed_chains,
    rocksdb_columns,
    scans,
    texts,
)

BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING = map(
    sb.simple, ("Boolean", "Byte", "Short", "Int", "Long", "Float", "Double", "String")
)
TIME_WINDOW = sb.snapshot(f"{sb.WINDOWS}TimeWindow$Serializer$TimeWindowSerializerSnapshot", 3)
NUMBERS = {  # the bytes of values at the bounds of a type
    BOOLEAN: [b"\0", b"\1", b"\2"],
    BYTE: [b"\x80", b"\x7f", b"\0"],
    SHORT: [b"\x80\0", b"\x7f\xff"],
    INT: [sb.i32(number) for number in (-(2**31), -1, 2**31 - 1)],
    LONG: [sb.i64(number) for number in (-(2**63), -1, 2**63 - 1)],
    FLOAT: [struct.pack(">f", number) for number in (1e-45, -0.0, float("-inf"))],
    DOUBLE: [struct.pack(">d", number) for number in (5e-324, -0.0, 0.1)],
    TIME_WINDOW: [sb.i64(-(2**63), 2**63 - 1), sb.i64(5, 6)],
}
TEXTS = ["a", "", "user-1", "x" * 126, "y" * 127, "z" * 20_000, "é", "中文", "😀 b", "\0", "c" * 9]
LONE = "\ud83d"  # half of a surrogate pair


def check(saved: Point) -> int:
    return sum(map(assert_same, saved.read().operators))


@pytest.mark.long
@pytest.mark.parametrize("name", ["2.3.0-heap-canonical", "1.20.5-heap-native"])
def test_real_state(name: str) -> None:
    assert check(point(name)) > 300


@pytest.mark.parametrize("name", ["2.3.0-heap-canonical", "1.20.5-heap-native"])
def test_some_states(name: str) -> None:
    """Those before and after them are passed over."""
    operator = point(name).read().operator("by-string")
    for state in operator.states:
        found = by_state(column_entries(operator, [state.name]))
        assert found == by_state(operator.entries([state.name]))


@pytest.mark.slow
@pytest.mark.parametrize("saved", [*POINTS, *JOB_POINTS], ids=str)
def test_all_real_state(saved: Point) -> None:
    assert check(saved) > 0


@pytest.mark.parametrize("form", FORMS)
def test_numbers(tmp_path: Path, form: Form) -> None:
    types = list(NUMBERS)
    for number, (key, value) in enumerate(zip(types, types[3:] + types[:3])):
        pairs = product(NUMBERS[key], NUMBERS[value][:1])
        entries = [(key + b"\0", value) for key, value in pairs]
        operator = form(tmp_path / str(number), key, sb.state("s", "VALUE", value), entries)
        assert assert_same(operator) == len(entries)
        assert is_arrow(operator, "key")
        assert is_arrow(operator, "value")


@pytest.mark.parametrize("form", FORMS)
def test_texts(tmp_path: Path, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    state = sb.state("s", "VALUE", STRING)
    texts = [*map(write_string, TEXTS)]
    entries = [(text + b"\0", value) for text, value in zip(texts, [*texts[3:], b"\0", *texts])]
    operator = form(tmp_path / "a", STRING, state, entries)
    assert assert_same(operator) == len(texts)
    assert is_arrow(operator, "key")
    assert is_arrow(operator, "value")
    # The bytes come in pieces that end anywhere.
    monkeypatch.setattr(files_module, "CHUNK", 11)
    assert assert_same(operator) == len(texts)
    # A text that no array of Arrow holds is text of Python's, all others too.
    halves = [(write_string(text) + b"\0", texts[0]) for text in ("a", LONE, "b")]
    operator = form(tmp_path / "b", STRING, state, halves)
    assert assert_same(operator) == 3
    assert not is_arrow(operator, "key")
    assert is_arrow(operator, "value")


@pytest.mark.parametrize("form", [canonical, rocksdb])
@pytest.mark.parametrize("marks", [b"\0", b"\0\1\0\2", b"\1"])
def test_nulls_in_a_map(tmp_path: Path, form: Form, marks: bytes) -> None:
    """Behind the mark of a null may be whatever the hashmap backend wrote."""
    members = [
        (write_string("k") + b"\0" + sb.i32(number), bytes([mark]) + sb.i64(9) + b"\2v")
        for number, mark in enumerate(marks)
    ]
    state = sb.state("s", "MAP", sb.map_of(INT, sb.ttl_of(STRING)))
    operator = form(tmp_path / "a", STRING, state, members)
    assert assert_same(operator) == len(marks)
    assert is_arrow(operator, "user_key")
    members[-1] = members[-1][0], b""  # not even a mark
    operator = form(tmp_path / "b", STRING, state, members)
    assert assert_same(operator) == 0
    with pytest.raises(SavepointError, match="no entry"):
        list(column_entries(operator))


def test_a_map_of_texts_that_arrow_does_not_hold(tmp_path: Path) -> None:
    state = sb.state("s", "MAP", sb.map_of(INT, STRING))
    values = [b"\0" + write_string(LONE), b"\1", b"\0\2a"]
    members = [(b"\2k\0" + sb.i32(number), value) for number, value in enumerate(values)]
    assert assert_same(canonical(tmp_path, STRING, state, members)) == 3


def test_keys_or_values_of_other_types(tmp_path: Path) -> None:
    """One that is read entry by entry, beside one that is not."""
    element = sb.state("s", "LIST", sb.list_of(INT))
    lists = canonical(tmp_path / "a", INT, element, [(sb.i32(1) + b"\0", sb.i32(5))])
    assert assert_same(lists) == 1
    assert is_arrow(lists, "key")
    tuples = canonical(tmp_path / "b", sb.tuple_of(INT), element, [(sb.i32(1) + b"\0", sb.i32(5))])
    assert assert_same(tuples) == 1
    heap = native(tmp_path / "c", INT, element, [(sb.i32(1) + b"\0", sb.i32(1) + sb.i32(5))])
    assert assert_same(heap) == 1
    assert list(column_entries(heap, [])) == list(column_entries(lists, [])) == []


def test_timers(tmp_path: Path) -> None:
    state = sb.state("s", "", sb.timer_of(STRING, TIME_WINDOW), backend_type=3)
    times = [-(2**63), -1, 0, 2**63 - 1]
    members = [(sb.i64(time) + b"\2k" + sb.i64(1, 2), b"") for time in times]
    assert assert_same(canonical(tmp_path / "a", STRING, state, members)) == 4
    members[1] = members[1][0], b"more"
    assert assert_same(canonical(tmp_path / "b", STRING, state, members)) == 0


def test_many_are_decoded_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever bounds there are on how much is held, and for Arrow's offsets of 32 bits."""
    state = sb.state("s", "VALUE", LONG)
    entries = [(sb.i64(number) + b"\0", sb.i64(number)) for number in range(40)]
    texts = [(write_string(f"{number:03}") + b"\0", sb.i64(number)) for number in range(40)]
    lists = sb.state("s", "LIST", sb.list_of(LONG))
    elements = [(key, sb.i32(1) + value) for key, value in entries]
    for name, bound in (("ROWS", 7), ("BYTES", 100), ("_SCANNED", 3), ("MOST", 9)):
        monkeypatch.setattr(entry_columns, name, bound)
        for number, form in enumerate(FORMS):
            folder = tmp_path / name / str(number)
            folder.mkdir(parents=True)
            assert assert_same(form(folder / "a", LONG, state, entries)) == 40
            assert assert_same(form(folder / "b", STRING, state, texts)) == 40
        assert assert_same(native(folder / "c", LONG, lists, elements)) == 40
        operator = canonical(folder / "d", LONG, state, entries)
        counts = [entries.count for task in operator.tasks() for entries in task.columns()]
        assert counts == ([7] * 5 + [5] if name == "ROWS" else [40])
        monkeypatch.undo()


def test_how_many_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are found one by one, as many as are decoded at once."""
    monkeypatch.setattr(entry_columns, "ROWS", 7)
    monkeypatch.setattr(entry_columns, "_SCANNED", 1)
    texts = [write_string("x" * number) + b"\0" for number in range(40)]
    entries = [(text, sb.i64(number)) for number, text in enumerate(texts)]
    operator = canonical(tmp_path, STRING, sb.state("s", "VALUE", LONG), entries)
    counts = [entries.count for task in operator.tasks() for entries in task.columns()]
    assert counts == [7] * 5 + [5]


GLOBAL_WINDOW = f"{sb.WINDOWS}GlobalWindow$Serializer$GlobalWindowSerializerSnapshot"
OF_LONG = sb.state("s", "VALUE", LONG)
OF_WINDOW = sb.state("s", "VALUE", sb.snapshot(GLOBAL_WINDOW, 3))


@pytest.mark.parametrize(
    ("form", "state", "value", "size"),
    [
        (canonical, OF_LONG, sb.i64(7), 4 + 1 + 5 + 4 + 8),  # lengths and key group included
        (of_two_bytes, OF_LONG, sb.i64(7), 4 + 2 + 5 + 4 + 8),
        (partial(rocksdb, per_block=1), OF_LONG, sb.i64(7), 1 + 5 + 8),
        (native, OF_WINDOW, b"\0", 5 + 1 + 256),  # one by one, as Python's objects
        (materialized, OF_LONG, sb.i64(7), 5 + 8 + 256),
    ],
)
def test_bytes_that_are_held(
    form: Form,
    state: bytes,
    value: bytes,
    size: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Entries are decoded as soon as they have as many bytes as are decoded at once."""
    entries = [(write_string(f"{number:03}") + b"\0", value) for number in range(40)]
    operator = form(tmp_path, STRING, state, entries)
    monkeypatch.setattr(entry_columns, "_SCANNED", 1)
    monkeypatch.setattr(entry_columns, "_LEAST_RUN", 99)  # or those of one size are found at once
    monkeypatch.setattr(entry_columns, "BYTES", 5 * size)
    monkeypatch.setattr(rocksdb_columns, "_MOST_FILES", 0)  # or its blocks are decoded as wholes
    assert [entries.count for task in operator.tasks() for entries in task.columns()] == [5] * 8
    monkeypatch.setattr(entry_columns, "BYTES", 5 * size + 1)
    counts = [entries.count for task in operator.tasks() for entries in task.columns()]
    assert counts == [6] * 6 + [4]


def counts_of(operator: Operator) -> list[int]:
    """Return the number of entries that are decoded at once."""
    return [entries.count for task in operator.tasks() for entries in task.columns()]


OF_KRYO = sb.state("s", "VALUE", sb.kryo_of("java.lang.Object"))


@pytest.mark.parametrize(
    ("form", "state", "size"),
    [
        (canonical, sb.state("s", "VALUE", STRING), 1 << 20),
        (native, sb.state("s", "VALUE", STRING), 1 << 20),
        (canonical, OF_KRYO, 1 << 16),  # Its values may become longer as text.
    ],
)
def test_bytes_that_are_decoded_at_once(
    form: Form, state: bytes, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 MiB, and 256 KiB of values that may become longer: as soon as there are as many."""
    monkeypatch.setattr(entry_columns, "_SCANNED", 1)
    monkeypatch.setattr(entry_columns, "_LEAST_RUN", 99)
    of_entry = 4 + 1 + 9 + 4 if form is canonical else 9
    for more, expected in ((0, [4, 1]), (-1, [5])):
        length = size - of_entry + more
        if state is OF_KRYO:
            value = b"\1\0a.\xc3\1".ljust(length, b"\1")
        else:
            value = write_string("x" * (length - 3))
        assert len(value) == length
        entries = [(sb.i64(number) + b"\0", value) for number in range(5)]
        (tmp_path / str(more)).mkdir()
        assert counts_of(form(tmp_path / str(more), LONG, state, entries)) == expected


def test_items_of_a_map_on_the_heap_that_are_decoded_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they share, key, namespace and count, each has four times in Python's objects."""
    state = sb.state("s", "MAP", sb.map_of(STRING, sb.snapshot(GLOBAL_WINDOW, 3)))
    items = b"".join(write_string(f"{number:03}") + b"\0\0" for number in range(40))
    operator = native(tmp_path, STRING, state, [(b"\2k\0", sb.i32(40) + items)])
    shared, item = 1 + 2 + 4, 4 + 1 + 1 + 256
    monkeypatch.setattr(entry_columns, "_FEW_BYTES", shared + 5 * (item + 4 * shared))
    assert counts_of(operator) == [5, 6, 6, 6, 6, 6, 5]  # The first has what they share too.


def test_offsets_of_arrow_have_32_bits() -> None:
    """More bytes, which no test makes, are left to the reader of single entries."""
    assert np.iinfo(np.int32).max == entry_columns.MOST - 1


@pytest.mark.parametrize(("most", "is_array"), [(3 * 26, False), (3 * 26 + 1, True)])
def test_bytes_that_offsets_of_arrow_do_not_reach(
    most: int, is_array: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From so many on entries are decoded one by one, to lists."""
    monkeypatch.setattr(entry_columns, "MOST", most)
    entries = [(sb.i64(number) + b"\0", sb.i64(7)) for number in range(3)]
    operator = canonical(tmp_path, LONG, OF_LONG, entries)
    [columns] = [entries.columns for task in operator.tasks() for entries in task.columns()]
    assert isinstance(columns["value"], pa.Array) is is_array


def test_records_that_are_decoded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_columns, "ROWS", 5)
    monkeypatch.setattr(rocksdb_columns, "_MOST_FILES", 0)  # or its blocks are decoded as wholes
    entries = [(sb.i64(number) + b"\0", sb.i64(7)) for number in range(40)]
    assert counts_of(rocksdb(tmp_path, LONG, OF_LONG, entries, per_block=1)) == [5] * 8


@pytest.mark.parametrize("number", [0, 7, 8])
def test_a_value_on_the_heap_that_is_none(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says where it is in the file, in whatever piece of it."""
    monkeypatch.setattr(files_module, "CHUNK", 64)
    state = sb.state("s", "VALUE", sb.simple("LocalDate"))
    dates = [sb.i32(2024) + bytes([month, 1]) for month in range(1, 10)]
    dates[number] = sb.i32(2024) + b"\x0d\1"
    entries = [(sb.i64(place) + b"\0", date) for place, date in enumerate(dates)]
    assert assert_same(native(tmp_path, LONG, state, entries)) == 0


@pytest.mark.parametrize("form", [canonical, of_two_bytes])
@pytest.mark.parametrize("other", [write_string("12"), write_string("12345"), write_string("é1")])
def test_keys_of_one_size_and_another(
    form: Form, other: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a run of one size, within it, behind it, or nowhere; text that is not ASCII, too."""
    monkeypatch.setattr(entry_columns, "ROWS", 40)
    state = sb.state("s", "VALUE", LONG)
    for count in (15, 16, 17, 18, 56):
        for place in (None, 0, 1, 15, 16, 17, count):
            keys = [write_string(f"{number:03}") for number in range(count)]
            if place is not None:
                keys.insert(place, other)
            entries = [(key + b"\0", sb.i64(number)) for number, key in enumerate(keys)]
            operator = form(tmp_path / f"{count}-{place}", STRING, state, entries)
            assert assert_same(operator) == len(keys)


def test_how_many_entries_of_one_size_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = sb.i32(5) + b"\3\3ab\0" + sb.i32(8) + sb.i64(7)
    last = entry[:4] + b"\x83" + entry[5:]
    monkeypatch.setattr(entry_columns, "_SCANNED", 3)

    def found(data: bytes) -> tuple[list[int], bool]:
        places, is_last = entry_columns.scan_framed(data, 0, b"\3", None)
        return [int(place) // len(entry) for place in places], is_last

    assert found(17 * entry) == ([*range(18)], False)
    assert found(17 * entry + last + entry) == ([*range(19)], True)
    assert found(16 * entry) == ([*range(17)], False)
    assert found(15 * entry + last) == ([*range(17)], True)
    assert found(15 * entry) == ([0, 1, 2, 3], False)
    assert found(14 * entry + last) == ([0, 1, 2, 3], False)
    assert found(entry[:-1]) == ([0], False)
    assert found(entry[:8]) == ([0], False)
    assert found(entry[:3]) == ([0], False)
    for key_size, value_size in ((1, 8), (-9, 8), (5, -1), (5, -17)):
        data = sb.i32(key_size) + entry[4:9] + sb.i32(value_size) + entry[13:]
        assert found(20 * data) == ([0], False)


def framed(prefix: bytes, key: bytes, value: bytes) -> bytes:
    return sb.i32(len(prefix + key)) + prefix + key + sb.i32(len(value)) + value


@pytest.mark.parametrize("prefix", [b"\0", b"\3", b"\0\0", b"\1\3"])
def test_entries_of_many_sizes_are_found_side_by_side(prefix: bytes) -> None:
    """The same as one after the other, whatever within them looks like an entry."""
    rng = random.Random(prefix)
    last = bytes([prefix[0] | 0x80]) + prefix[1:]
    inner = framed(prefix, b"ab\0", b"12")
    others = [
        framed(b"\x55" + prefix[1:], b"a\0", b"1"),  # an entry of another key group
        framed(prefix[:-1] + b"\x55", b"a\0", b"1"),
        sb.i32(-9) + prefix + b"a" + sb.i32(1) + b"1",
        sb.i32(len(prefix)) + prefix + sb.i32(1) + b"1",  # an entry without a key
        sb.i32(len(prefix) + 2) + prefix + b"a\0" + sb.i32(-2) + b"1",
        framed(prefix, b"k" * 65_536, b"1"),
        inner[:-1],
        inner[: rng.randrange(9)],
        b"",
    ]
    for number in range(200):
        pieces = [
            framed(
                prefix,
                rng.randbytes(rng.randrange(1, 4)),
                rng.choice([b"", bytes(rng.randrange(30)), inner, inner[:-3], b"\0\0\0" + inner]),
            )
            for _ in range(rng.randrange(20))
        ]
        if number % 3 == 0:
            pieces.append(framed(last, b"a\0", b"1"))
        start = rng.randbytes(rng.randrange(3))
        data = start + b"".join([*pieces, rng.choice(others), *pieces])
        expected, is_last = entry_columns.scan_framed(data, len(start), prefix, None)
        for reach in (1, 9, rng.randrange(1, 99), len(data), 2 * len(data)):
            places, was_last = entry_columns.scan_framed(data, len(start), prefix, None, reach)
            assert places.tolist() == expected[: len(places)].tolist()
            assert (len(places), was_last) == (len(expected), is_last) or (
                len(places) > entry_columns._LEAST_RUN and not was_last
            )


def test_what_looks_like_entries_everywhere_is_no_more_work() -> None:
    """In zeros each place does: then none is looked at."""
    assert framed_chains.chained(bytes(99), 0, 99, b"\0").tolist() == []
    entries = 9 * framed(b"\0", b"\1" * 8, b"\1\1")
    data = entries + bytes(200)
    assert framed_chains.chained(data, 0, len(entries), b"\0").tolist() == [*range(0, 172, 19)]
    assert framed_chains.chained(data, 0, len(data), b"\0").tolist() == []


def test_entries_are_searched_for_where_there_were_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as far as they went, and half as far as before where a key group had few."""
    monkeypatch.setattr(entry_columns, "_SCANNED", 80)
    entries = [framed(b"\3", b"k" * (number % 2) + b"\0", sb.i64(7)) for number in range(9_999)]
    [state] = canonical(tmp_path, STRING, OF_LONG, []).states
    held = entry_columns.HeldEntries(entry_columns.ColumnDecoder(state, 0), 1, False)
    data, last = b"".join(entries), framed(b"\x83", b"\0", sb.i64(7))

    def found(data: bytes) -> int:
        places, is_last = held.scan(data, 0, b"\3")
        assert is_last == data.endswith(last)
        return len(places) - 1

    few, some = b"".join(entries[:7]) + last, b"".join(entries[:70]) + last
    counts = [found(data), found(data), found(data)]
    assert counts == [80, 160 + 16, 352 + 16]
    assert [found(few), found(some)] == [8, 71]
    assert found(data) == 736 // 4 + 16
    assert [found(few) for _ in range(13)] == 13 * [8]
    assert found(data) == 80
    while found(data) < 9_999:
        pass
    monkeypatch.setattr(entry_columns, "ROWS", 100)
    assert found(data) == 100 + 16
    monkeypatch.undo()
    monkeypatch.setattr(entry_columns, "BYTES", 60 * 37 // 2)
    assert [found(data), found(data)][1] == 60 + 16


@pytest.mark.parametrize("data", [b"\2a\3b", b"\3a\2b"])
def test_no_text_ends_behind_the_next_one_or_the_bytes(data: bytes) -> None:
    """Arrow would read what is there."""
    with pytest.raises(IndexError):
        texts.read_texts(data, np.array([0, 2]))


@pytest.mark.parametrize(
    ("own", "others"), [(b"\1\1", (b"\1\2", b"\2\1")), (b"\1\5", (b"\1\1", b"\5\5"))]
)
def test_a_key_of_another_key_group(tmp_path: Path, own: bytes, others: tuple[bytes, ...]) -> None:
    header = sb.keyed_header(INT, [sb.state("s", "VALUE", LONG)])
    for number, (prefix, last) in enumerate(
        product([own, *others], [[], [(own + bytes(5), sb.i64(7))]])
    ):
        members = [(own + sb.i32(1) + b"\0", sb.i64(5)), (prefix + bytes(5), sb.i64(6)), *last]
        content = header + sb.canonical_key_group([(0, members)])
        key_group = int.from_bytes(own, "big")
        keyed = sb.canonical(key_group, [len(header)], sb.inline(content))
        expected = len(members) if prefix == own else 0
        assert assert_same(operator_of(tmp_path / str(number), keyed, 300)) == expected


@pytest.mark.parametrize("prefix", [b"\1\1", b"\1\2", b"\0\1"])
def test_a_key_of_another_key_group_behind_many(tmp_path: Path, prefix: bytes) -> None:
    """Keys that begin with the last byte of their key group do not stand for it."""
    header = sb.keyed_header(INT, [sb.state("s", "VALUE", LONG)])
    keys = [b"\1" + number.to_bytes(3, "big") + b"\0" for number in range(100)]
    members = [(b"\1\1" + key, sb.i64(5)) for key in keys]
    members[70] = prefix + keys[70], sb.i64(6)
    content = header + sb.canonical_key_group([(0, members)])
    keyed = sb.canonical(0x101, [len(header)], sb.inline(content))
    expected = 100 if prefix == b"\1\1" else 0
    assert assert_same(operator_of(tmp_path / "point", keyed, 300)) == expected


def test_an_entry_of_rocksdb_that_is_none(tmp_path: Path) -> None:
    state = sb.state("s", "VALUE", LONG)
    for number, (key, value) in enumerate(
        [(b"\2a\0", b"short"), (b"\5a\0", sb.i64(1)), (b"", b"")]
    ):
        operator = rocksdb(
            tmp_path / str(number), STRING, state, [(b"\1\0", sb.i64(5)), (key, value)]
        )
        with pytest.raises(SavepointError, match=r"the SST files of s: VALUE .* is no entry"):
            list(column_entries(operator))
        assert assert_same(operator) == 0


@pytest.mark.parametrize("form", [canonical, rocksdb])
def test_a_value_of_a_map_without_a_mark_of_null(tmp_path: Path, form: Form) -> None:
    """What is behind it is none, whatever byte that is."""
    entries = [(b"\2a\0" + sb.i32(number), value) for number, value in ((1, b""), (2, b"\1"))]
    operator = form(tmp_path, STRING, sb.state("s", "MAP", sb.map_of(INT, LONG)), entries)
    with pytest.raises(SavepointError, match="no entry"):
        list(column_entries(operator))
    assert assert_same(operator) == 0


DAMAGED = {
    "sized": (LONG, LONG, [(sb.i64(number) + b"\0", sb.i64(5)) for number in range(4)]),
    "texts": (STRING, STRING, [(b"\2a\0", b"\2b"), (b"\3\xc3\xa9\1\0", b"\0"), (b"\1\0", b"\2c")]),
}


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", DAMAGED)
@pytest.mark.parametrize("form", [canonical, of_two_bytes, native])
def test_damage(tmp_path: Path, form: Form, kind: str, step: int) -> None:
    """Each byte of the entries is changed, and they are cut everywhere."""
    key, value, entries = DAMAGED[kind]
    header = sb.keyed_header(key, [sb.state("s", "VALUE", value)])
    form(tmp_path, key, sb.state("s", "VALUE", value), entries)
    (handle,) = read_savepoint(tmp_path).metadata.operators[0].subtasks[0].keyed
    assert isinstance(handle, KeyGroupsHandle)
    content = handle.stream.data or b""
    errors = 0
    for _, damaged in list(damages(content, len(header)))[::step]:
        first = 0x105 if form is of_two_bytes else 3
        keyed = (sb.native if form is native else sb.canonical)(
            first, [len(header)], sb.inline(damaged)
        )
        operator = operator_of(tmp_path, keyed, 300 if form is of_two_bytes else 128)
        errors += not assert_same(operator)
    assert errors > 3


def test_state_that_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers in raw state, with and without a bound on how many are held."""
    saved = point("2.3.0-heaptimers-checkpoint")
    assert check(saved) > 10
    monkeypatch.setattr(entry_columns, "BYTES", 300)
    assert check(saved) > 10


def test_values_with_their_times(tmp_path: Path) -> None:
    """Of a type that is read one by one; of a map, where a value is longer than its type."""
    tuples = sb.state("s", "VALUE", sb.ttl_of(sb.tuple_of(INT)))
    of_tuples = [(b"\1\0", sb.i64(9) + sb.i32(5))]
    assert assert_same(canonical(tmp_path / "a", STRING, tuples, of_tuples)) == 1
    maps = sb.state("s", "MAP", sb.map_of(INT, LONG))
    of_maps = [(b"\1\0" + sb.i32(1), b"\0" + sb.i64(5) + b"more")]
    assert assert_same(canonical(tmp_path / "b", STRING, maps, of_maps)) == 0


def test_places_of_entries_that_are_passed_over() -> None:
    """Up to the last one that is whole, however many are asked for."""
    find = scans.skip_scan(lambda data, pos: pos + 4)
    assert [find(bytes(10), 0, count) for count in (1, 2, 5)] == [[0, 4], [0, 4, 8], [0, 4, 8]]
    assert find(bytes(8), 0, 5) == [0, 4, 8]
    assert find(bytes(8), 1, 5) == [1, 5]


def test_some_keys_of_many(tmp_path: Path) -> None:
    """Each of them is found, though the others are passed over many at a time."""
    entries = [(sb.i64(number) + b"\0", sb.i64(number)) for number in range(500)]
    [task] = canonical(tmp_path, LONG, OF_LONG, entries).tasks()
    sought = {0, 15, 16, 100, 101, 499}
    keys = frozenset(b"\3" + sb.i64(number) for number in sought)
    found = {entry.key for entry in replace(task, keys=keys).entries()}
    assert sought <= found
    assert len(found) < 200


def enum_of(size: int) -> bytes:
    """A state of an enum of a short name and one of so many characters."""
    names = sb.i32(2) + sb.utf("a") + sb.utf("b" * size)
    snapshot = f"{sb.BASE}EnumSerializer$EnumSerializerSnapshot"
    return sb.state("s", "VALUE", sb.snapshot(snapshot, 3, sb.utf("a.E") + names))


def with_subclasses(registered: dict[str, bytes | None], met: dict[str, bytes | None]) -> bytes:
    """A POJO of which some subclasses are known."""
    maps = sb.optional_map({"n": LONG}) + sb.optional_map(registered) + sb.optional_map(met)
    contents = sb.utf("x.P") + maps
    return sb.snapshot(f"{sb.JAVA}PojoSerializerSnapshot", 2, contents)


FEW = (1 << 22) >> 4


@pytest.mark.parametrize(
    ("state", "most"),
    [
        (OF_LONG, 1 << 22),
        (OF_KRYO, FEW),
        (sb.state("s", "VALUE", sb.tuple_of(LONG, sb.kryo_of("java.lang.Object"))), FEW),
        (sb.state("s", "MAP", sb.map_of(sb.kryo_of("java.lang.Object"), LONG)), FEW),
        (enum_of(128), 1 << 22),
        (enum_of(129), FEW),
        (sb.state("s", "VALUE", sb.pojo_of("x.P", {"n": LONG})), 1 << 22),
        (sb.state("s", "VALUE", with_subclasses({"x.Q": sb.pojo_of("x.Q", {})}, {})), FEW),
        (sb.state("s", "VALUE", with_subclasses({}, {"x.Q": sb.pojo_of("x.Q", {})})), FEW),
    ],
)
def test_fewer_bytes_of_what_may_become_longer(state: bytes, most: int, tmp_path: Path) -> None:
    """A number stands for the name of an enum, of Avro or of Kryo."""
    [described] = canonical(tmp_path, LONG, state, [(sb.i64(1) + b"\0", b"")]).states
    assert entry_columns.ColumnDecoder(described, 0).most_bytes == most


@pytest.mark.parametrize("counts", [(1, 2, 3), (0, 1, 0, 2), (1, 0), (0, 0)])
@pytest.mark.parametrize("ttl", [False, True])
def test_maps_on_the_heap_are_decoded_together(
    counts: tuple[int, ...], ttl: bool, tmp_path: Path
) -> None:
    """Those with one user key, with several, and with none; nulls among the values."""
    members = []
    for number, count in enumerate(counts):
        items = [
            sb.i32(place) + (b"\1" if place % 3 == 2 else b"\0" + sb.i64(9) * ttl + b"\2v")
            for place in range(count)
        ]
        members.append((sb.i64(number) + b"\0", sb.i32(count) + b"".join(items)))
    state = sb.state("s", "MAP", sb.map_of(INT, sb.ttl_of(STRING) if ttl else STRING))
    operator = native(tmp_path, LONG, state, members)
    assert assert_same(operator) == sum(counts)
    batches = [entries for task in operator.tasks() for entries in task.columns()]
    assert sum(entries.count for entries in batches) == sum(counts)
    for entries in batches:
        for name in ("key", "user_key", "value", "bytes") if entries.count else ():
            assert isinstance(entries.columns[name], pa.Array), name
