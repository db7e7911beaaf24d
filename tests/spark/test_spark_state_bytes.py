"""The bytes in which `keygroups.spark.state` keeps a key group: records, pages, and damage."""

from __future__ import annotations

import datetime as dt
import json
import random
import struct
import zlib
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import mmh3
import pytest
from support.flink.group_histories import (
    ROUTING,
    InMemoryHandle,
    pack_of,
    random_history,
    rows_in,
    told_by_us,
    told_together,
    values,
)
from support.inside.adapter import processor

from keygroups import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError

pytest.importorskip("pyspark")

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from support.inside.adapter import (
    AGGREGATES,
    KeyGroup,
    RecordLayout,
    Retention,
    _pack,
    layout_text,
    other_layout,
    packing,
    state_name,
)

from keygroups.spark._group_by.fields import RowCodec
from keygroups.spark._group_by.pages import Pages, decode_page, encode_page, page_of
from keygroups.spark._group_by.stored import keys_of, stored_layout, values_of

MINUTE = 60_000
FOREVER = Retention(None, None, False)
IDLE = Retention((10 * MINUTE, 16 * MINUTE), None, False)
TTL = Retention(None, 10 * MINUTE, False)
TOUCH = Retention(None, 10 * MINUTE, True)
UTC = dt.timezone.utc

# A type, values of it, and what its table in `fields` says of the first one's bytes.
CASES: list[tuple[T.DataType, list[Any], bytes]] = [
    (T.BooleanType(), [True, False], b"\1"),
    (T.ByteType(), [-2, 127], b"\xfe"),
    (T.ShortType(), [-2, 32767], b"\xfe\xff"),
    (T.IntegerType(), [258, -(1 << 31)], b"\2\1\0\0"),
    (T.LongType(), [258, -(1 << 63), (1 << 63) - 1], b"\2\1" + bytes(6)),
    (T.DoubleType(), [-0.0, 1.5, float("inf")], bytes(7) + b"\x80"),
    (T.StringType(), ["Köln", "", "\U0001f600", "a\0b"], b"\5\0\0\0K\xc3\xb6ln"),
    (T.BinaryType(), [b"\0\xff", b""], b"\2\0\0\0\0\xff"),
    (T.DecimalType(10, 2), [Decimal("-1.50"), Decimal("0.00")], b"\5\0\0\0-1.50"),
    (
        T.DateType(),
        [dt.date(1970, 1, 3), dt.date.min, dt.date.max],
        b"\2\0\0\0",
    ),
    (
        T.TimestampType(),
        [dt.datetime(1970, 1, 1, 0, 0, 0, 258, UTC), dt.datetime.min.replace(tzinfo=UTC)],
        b"\2\1" + bytes(6),
    ),
    (
        T.TimestampNTZType(),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime.max],
        b"\xff" * 8,
    ),
    (
        T.ArrayType(T.ShortType()),
        [[1, None, 3], [], [5] * 9],
        b"\3\0\0\0" + b"\2" + b"\1\0\3\0",
    ),
    (
        T.StructType([T.StructField("a", T.ByteType()), T.StructField("b", T.StringType())]),
        [{"a": 1, "b": None}, {"a": None, "b": "x"}],
        b"\2\1",
    ),
]


@pytest.mark.parametrize(
    ("spark_type", "of_type", "expected"), CASES, ids=[case[0].typeName() for case in CASES]
)
def test_bytes_of_values(spark_type: T.DataType, of_type: list[Any], expected: bytes) -> None:
    fields = RowCodec([spark_type])
    assert fields.encode([of_type[0]]) == b"\0" + expected
    for value in [*of_type, None]:
        data = fields.encode([value])
        assert fields.decode(b"before" + data, 6) == ([value], 6 + len(data))
        for end in range(1, len(data)):
            with pytest.raises((struct.error, ValueError)):
                fields.decode(data[:end])
    nine = RowCodec([spark_type] * 9)
    row = [None, *(of_type[0] for _ in range(7)), None]
    assert nine.encode(row) == b"\1\1" + 7 * expected
    assert nine.decode(nine.encode(row))[0] == row


def test_a_key_of_another_type_is_refused() -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="got 'map<string,int>'"):
        RowCodec([T.MapType(T.StringType(), T.IntegerType())])


def test_an_array_is_no_longer_than_its_bytes() -> None:
    with pytest.raises(ValueError, match="longer than the bytes"):
        RowCodec([T.ArrayType(T.LongType())]).decode(b"\0\xff\xff\xff\x7f" + bytes(8))


class PagesInMemory:
    """A map state of Spark, as `Pages` uses it, with counts."""

    def __init__(self) -> None:
        self.pages: dict[Any, bytes] = {}
        self.reads = self.writes = self.bytes = 0

    def getValue(self, key: Any) -> Any:
        self.reads += 1
        page = self.pages.get(key)
        self.bytes += len(page or b"")
        return None if page is None else (bytearray(page),)  # Spark gives it so

    def updateValue(self, key: Any, value: Any) -> None:
        self.writes += 1
        self.bytes += len(value[0])
        self.pages[key] = value[0]

    def removeKey(self, key: Any) -> None:
        self.writes += 1
        self.pages.pop(key, None)


def test_linear_hashing() -> None:
    """The rule of Litwin's paper, and that a split moves entries to the new page only."""
    for pages in range(1, 70):
        level = max(1 << n for n in range(8) if 1 << n <= pages)
        for key_hash in [*range(150), 2**32 - 1]:
            short, long = key_hash % level, key_hash % (2 * level)
            expected = long if short < pages - level else short
            assert page_of(key_hash, pages) == expected < pages
            assert page_of(key_hash, pages + 1) in (expected, pages)


def test_pages_are_a_map() -> None:
    chance = random.Random(25)
    state, size = PagesInMemory(), 1
    model: dict[bytes, bytes] = {}
    for _ in range(30):
        pages = Pages(state, lambda number: ("k", number), size)
        for _ in range(chance.choice([1, 10, 100])):
            key = b"%d" % chance.randrange(2000)
            assert pages.get(key) == model.get(key)
            if chance.random() < 0.3:
                pages.put(key, None)
                model.pop(key, None)
            else:
                model[key] = chance.randbytes(chance.choice([0, 8, 60, 6000]))
                pages.put(key, model[key])
        if chance.random() < 0.2:
            assert dict(pages.items()) == model
        pages.flush()
        size = pages.size
    assert size > 4
    assert dict(Pages(state, lambda number: ("k", number), size).items()) == model
    for (name, number), page in state.pages.items():
        assert name == "k"
        entries = decode_page(page)
        assert entries
        assert all(page_of(mmh3.hash(key, signed=False), size) == number for key in entries)
    pages.clear()
    assert state.pages == {}
    assert pages.size == 1


def test_a_large_value_does_not_make_the_table_grow() -> None:
    state, size = PagesInMemory(), 1
    for _ in range(100):
        pages = Pages(state, lambda number: (number,), size)
        pages.put(b"key", bytes(100_000))
        pages.flush()
        size = pages.size
    assert size == 1


def test_few_keys_of_many_cost_few_bytes() -> None:
    """10 keys of 8,000: a page each, of some 4 KB."""
    state = PagesInMemory()
    pages = Pages(state, lambda number: (number,), 1)
    for n in range(8000):
        pages.put(b"key-%d" % n, bytes(50))
    pages.flush()
    state.reads = state.writes = state.bytes = 0
    pages = Pages(state, lambda number: (number,), pages.size)
    for n in range(0, 8000, 800):
        pages.put(b"key-%d" % n, bytes(49) + b"\1")
    pages.flush()
    assert state.reads <= 12
    assert state.writes <= 12
    assert state.bytes <= 10 * 2 * 2 * 4096


def test_bytes_of_a_page() -> None:
    body = b"\1\0\0\0\2\0\0\0kvv" + b"\0\0\0\0\1\0\0\0w"
    page = b"\1" + struct.pack("<I", zlib.crc32(body)) + body
    assert encode_page({b"k": b"vv", b"": b"w"}) == page
    assert decode_page(page) == {b"k": b"vv", b"": b"w"}


def test_damaged_and_newer_pages_are_refused() -> None:
    page = encode_page({b"k": b"vv"})
    for at in range(1, len(page)):
        for damaged in (page[:at], page[:at] + bytes([page[at] ^ 64]) + page[at + 1 :]):
            with pytest.raises(KeyGroupsError, match="damaged: its checksum is another"):
                decode_page(damaged)
    with pytest.raises(KeyGroupsError, match="of version 1, which this keygroups reads, got 2"):
        decode_page(b"\2" + page[1:])
    with pytest.raises(KeyGroupsError, match="got no bytes"):
        decode_page(b"")
    for body in (b"\1\0\0\0\3\0\0\0kvv", b"\1\0\0\0", b"\xff\xff\xff\xff\0\0\0\0kvv"):
        forged = b"\1" + struct.pack("<I", zlib.crc32(body)) + body
        with pytest.raises(KeyGroupsError, match="an entry goes beyond it"):
            decode_page(forged)


def made_layout(retention: Retention) -> RecordLayout:
    return RecordLayout(
        [
            AGGREGATES["count"]("*", T.LongType()),
            AGGREGATES["count_distinct"]("v", T.StringType()),
            AGGREGATES["max"]("n", T.IntegerType()),
        ],
        retention,
    )


def kept_of(layout: RecordLayout) -> str:
    return layout_text(T.StructType([T.StructField("id", T.LongType())]), layout, ROUTING)


def apply(
    handle: InMemoryHandle, layout: RecordLayout, key: bytes, rows: list[Any], now: int
) -> Any:
    handle.now = now
    kept = kept_of(layout)
    key_group = KeyGroup(handle, layout, kept, '["n", "users", "most"]')
    [(_, changes)] = key_group.apply({key: rows}, now, True)
    return changes


def test_a_record() -> None:
    """A key with two distinct values and a maximum, byte by byte."""
    handle, layout = InMemoryHandle(), made_layout(TTL)
    key = RowCodec([T.LongType()]).encode([7])
    rows = [("+I", [None, "a", 5]), ("+I", [None, "", 5]), ("+I", [None, "a", None])]
    reports = apply(handle, layout, key, rows, 1000)
    assert reports == [("+I", [3, 2, 5])]
    until = struct.pack("<q", 1000 + 10 * MINUTE)
    record = until + b"\1"
    record += b"\0" + struct.pack("<qqqiq", 3, 3, 2, 5, 1)  # rows, count, distinct, max, its size
    record += struct.pack("<I", 4)
    record += b"\0\1\0\0\0a" + struct.pack("<q", 2) + until
    record += b"\0\0\0\0\0" + struct.pack("<q", 1) + until
    record += struct.pack("<I", 2) + b"\0" + struct.pack("<iq", 5, 2) + until
    (page,) = handle.getMapState("keys_ttl", None, None).getValue((0,))
    assert decode_page(page) == {key: record}
    kept = kept_of(layout)
    end = 1000 + 10 * MINUTE
    assert keys_of(kept, page) == [((7,), 3, (3, 2, 5), end)]
    assert values_of(kept, 1, None, page) == [((7,), "a", 2, end), ((7,), "", 1, end)]
    assert values_of(kept, 2, None, page) == [((7,), 5, 2, end)]
    for end in range(len(record)):
        with pytest.raises(KeyGroupsError, match="a page of state in the checkpoint is damaged"):
            keys_of(kept, encode_page({key: record[:end]}))
    with pytest.raises(KeyGroupsError, match="damaged: a record has other bytes"):
        keys_of(kept, encode_page({key: record + b"\0"}))


def test_more_than_16_values_are_in_pages() -> None:
    for retention in (FOREVER, TTL):
        handle, layout = InMemoryHandle(), made_layout(retention)
        key = RowCodec([T.LongType()]).encode([7])
        ttl = retention.ttl
        pages = handle.getMapState(state_name("values", ttl), None, None)
        kept = kept_of(layout)
        (sixteen,) = apply(
            handle, layout, key, [("+I", [None, f"user-{n}", n]) for n in range(16)], 0
        )
        assert sixteen == ("+I", [16, 16, 15])
        assert [pages.getValue((key, index, 0)) for index in (1, 2)] == [None, None]
        reports = apply(
            handle, layout, key, [("+I", [None, f"user-{n}", 3]) for n in range(400)], 0
        )
        assert reports == [("-U", [16, 16, 15]), ("+U", [416, 400, 15])]
        assert pages.getValue((key, 2, 0)) is None
        counted: dict[str, int] = {}
        number = 0
        while row := pages.getValue((key, 1, number)):
            for of_key, value, count, _ in values_of(kept, 1, key, row[0]):
                assert of_key == (7,)
                counted[value] = count
            number += 1
        assert number > 2
        assert counted == {f"user-{n}": 1 + (n < 16) for n in range(400)}
        (page,) = handle.getMapState(state_name("keys", ttl), None, None).getValue((0,))
        assert values_of(kept, 1, None, page) == []
        rows = [("-D", [None, f"user-{n}", 3]) for n in range(400)]
        rows += [("-D", [None, f"user-{n}", n]) for n in range(16)]
        assert apply(handle, layout, key, rows, 0) == [("-D", [416, 400, 15])]
        assert len(pages) == 0


def test_long_values_are_in_pages() -> None:
    handle, layout = InMemoryHandle(), made_layout(FOREVER)
    apply(handle, layout, b"key", [("+I", [None, "x" * 1100, 1])], 0)
    assert handle.getMapState("values", None, None).getValue((b"key", 1, 0)) is not None


def test_a_key_that_was_idle_leaves_nothing() -> None:
    handle, layout = InMemoryHandle(), made_layout(IDLE)
    kept = kept_of(layout)
    rows = [("+I", [None, f"user-{n}", n]) for n in range(100)]
    apply(handle, layout, b"a", rows, 0)
    apply(handle, layout, b"b", rows[:1], MINUTE)
    assert handle.timers == {16 * MINUTE, 17 * MINUTE}
    key_group = KeyGroup(handle, layout, kept, "")
    states = [handle.getMapState(name, None, None) for name in ("keys", "values", "due")]
    key_group.fire(16 * MINUTE, 16 * MINUTE)
    (page,) = states[0].getValue((0,))
    assert list(decode_page(page)) == [b"b"]
    key_group.fire(17 * MINUTE, 17 * MINUTE)
    assert [len(state) for state in states] == [0, 0, 0]
    key_group.fire(17 * MINUTE, 17 * MINUTE)  # nothing is due any more


def test_state_of_another_query_or_version_is_refused() -> None:
    handle = InMemoryHandle()
    apply(handle, made_layout(TTL), b"a", [("+I", [None, "u", 1])], 0)
    ttl = (
        r"^state_ttl \(in ms\) was 600000 in the checkpoint, got None: the state of a query stays"
    )
    with pytest.raises(KeyGroupsError, match=f"{ttl}.*or take a new checkpoint$"):
        apply(handle, made_layout(FOREVER), b"a", [("+I", [None, "u", 1])], 0)
    kept = kept_of(made_layout(TTL))
    newer = kept.replace('"version": 2', '"version": 3')
    assert newer != kept
    assert str(other_layout(newer, kept)).startswith("version was 3 in the checkpoint, got 2: ")
    with pytest.raises(KeyGroupsError, match=r"of version 2, which this keygroups reads, got 3"):
        stored_layout(newer)
    for damaged in (kept[:-1], "[]", "{}", kept.replace('"max"', '"avg"'), "[" * 100_000):
        with pytest.raises(KeyGroupsError, match="must have a layout that can be read"):
            stored_layout(damaged)
    for damaged in (kept[:-1], "7", "[" * 100_000):
        assert "must have a layout that can be read" in str(other_layout(damaged, kept))
    pytest.importorskip("pyspark.sql.streaming.stateful_processor")  # 3.5 cannot word its error
    for of_type in ("strin", {"type": "no"}, 7):
        with pytest.raises(KeyGroupsError, match="must have a layout that can be read"):
            stored_layout(json.dumps(json.loads(kept) | {"key": [["id", of_type]]}))


@pytest.mark.parametrize("retention", [FOREVER, IDLE, TTL, TOUCH])
@pytest.mark.parametrize("mini_batch", [False, True])
def test_keys_together_are_as_alone(retention: Retention, mini_batch: bool) -> None:
    chance = random.Random(f"{retention}{mini_batch}")
    pool = [*values("BIGINT"), *range(100, 140)]
    names = ["count(*)", "sum", "min", "max", "count_distinct"]
    gaps = [0, 1, MINUTE, 10 * MINUTE, 16 * MINUTE]
    histories = [random_history(chance, pool, gaps) for _ in range(8)]
    reports = told_together(names, "BIGINT", retention, mini_batch, histories)
    alone = [told_by_us(names, "BIGINT", retention, mini_batch, history) for history in histories]
    assert reports == alone


def test_rows_of_a_key_group_travel_together() -> None:
    """Those of a batch of Arrow, in their order, with their nulls and whatever is nested."""
    pa = pytest.importorskip("pyarrow")
    groups, keys = [5, 3, 5, 5, 0], ["a", None, "b", "a", "c"]
    nested = [[1, None], None, [], [2], [3]]
    batch = pa.record_batch(
        {"g": pa.array(groups, pa.int32()), "at": [1, 2, 1, 1, 0], "k": keys, "v": nested}
    )
    found = [
        row
        for made in _pack(
            ("g", "at"), ((-1, 7), (-1, 8)), "a query", iter([batch, batch[:0], batch[1:2]])
        )
        for row in made.to_pylist()
    ]
    assert found == [
        {"g": -1, "at": 7, "k": None, "v": None},
        {"g": -1, "at": 8, "k": None, "v": None},
        {"g": 0, "at": 0, "k": ["c"], "v": [[3]]},
        {"g": 3, "at": 2, "k": [None], "v": [None]},
        {"g": 5, "at": 1, "k": ["a", "b", "a"], "v": [[1, None], [], [2]]},
        {"g": 3, "at": 2, "k": [None], "v": [None]},
    ]


def test_heads_come_with_the_first_batch_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each worker, be the task tried again; not with a later batch, nor without rows."""
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"g": pa.array([5, 3], pa.int32()), "k": ["a", "b"]})
    names = ("sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId")
    monkeypatch.setattr(packing, "_first_batches", {})

    def heads(query: str, *task: str | None, rows: Any = batch) -> int:
        context = SimpleNamespace(getLocalProperty=dict(zip(names, task)).get)
        monkeypatch.setattr(TaskContext, "get", lambda: context)
        made = _pack(("g",), ((-1,), (-1,)), query, iter([rows[:0], rows, rows]))
        groups = [row["g"] for table in made for row in table.to_pylist()]
        assert [group for group in groups if group != -1] == 2 * sorted(rows["g"].to_pylist())
        return groups.index(3) if groups else 0  # they are before all rows

    assert heads("a", "checkpoint", "run", "7", rows=batch[:0]) == 0
    assert heads("a", "checkpoint", "run", "8") == 2
    assert heads("a", "checkpoint", "run", "8") == 2
    assert heads("a", "checkpoint", "run", "9") == 0
    assert heads("b", "checkpoint", "run", "9") == 2
    assert heads("a", "another", "run", "9") == 2
    assert heads("a", "checkpoint", "run again", "9") == 2
    assert [heads("c", "checkpoint", "run", None) for _ in "ab"] == [2, 2]
    assert [heads("c", None, "run", number) for number in "12"] == [2, 2]
    for number in range(packing._MOST_RUNS + 5):
        assert heads("a", "checkpoint", f"run {number}", "1") == 2
    assert len(packing._first_batches) == packing._MOST_RUNS
    monkeypatch.setattr(TaskContext, "get", lambda: None)
    assert packing._is_first_batch("a")


def test_rows_of_a_key_group_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", minversion="4.1")
    schema = T.StructType(
        [T.StructField("kind", T.StringType()), T.StructField("k", T.LongType())]
    )
    made = processor.GroupAggregate(schema, {"n": ("count", "*")})
    made = made._with_key(T.StructType([schema["k"]]), schema.names, ROUTING)
    made.init(InMemoryHandle())  # type: ignore[arg-type]
    rows = [T.Row("kind", "k")("+I", n % 2) for n in range(11)]
    monkeypatch.setattr(processor, "_MOST_ROWS", 10)
    assert len(made._hold(17, iter([pack_of(rows[:6]), pack_of(rows[6:10])]))) == 2
    with pytest.raises(
        InvalidValueError, match=r"at most 10 rows of a key group, got more of .* 17"
    ):
        made._hold(17, iter([pack_of(rows[:6]), pack_of(rows[6:])]))


@pytest.mark.parametrize(
    ("options", "retention"),
    [
        ({"mini_batch": True}, FOREVER),
        ({"idle_retention": (dt.timedelta(minutes=10), dt.timedelta(minutes=16))}, IDLE),
    ],
    ids=["for ever", "idle"],
)
def test_key_groups_in_the_tester_of_pyspark(
    options: dict[str, Any], retention: Retention
) -> None:
    """One processor, several key groups, and PySpark's own states and timers without Spark."""
    tws_tester = pytest.importorskip("pyspark.sql.streaming.tws_tester")  # new in 4.2
    chance = random.Random(19)
    names = ["count", "sum", "min", "max", "count_distinct"]
    schema = T.StructType.fromJson(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": item, "nullable": True, "metadata": {}}
                for name, item in [
                    ("k", "string"),
                    ("kind", "string"),
                    ("seq", "long"),
                    ("v", "long"),
                ]
            ],
        }
    )
    made = processor.GroupAggregate(
        schema, {name: (name, "v") for name in names}, order_by="seq", **options
    )
    made = made._with_key(T.StructType([schema["k"]]), schema.names, ROUTING)
    tester = tws_tester.TwsTester(made, timeMode="ProcessingTime")
    times = [0, 1, 10 * MINUTE, 26 * MINUTE - 1, 26 * MINUTE, 50 * MINUTE, 67 * MINUTE]
    histories = {}
    for n in range(12):
        batches = random_history(chance, values("BIGINT"), [0])
        histories[f"key-{n}"] = [
            (now, rows) for now, (_, rows) in zip(times, batches) if chance.random() < 0.7
        ]
    found: dict[tuple[str, int], list[str]] = {}
    for now in times:
        if now:
            assert tester.setProcessingTime(now) == []
        for key_group in range(3):
            rows = [
                T.Row(k=key, kind=kind, seq=seq, v=value, _key_group=key_group)
                for n, (key, history) in enumerate(histories.items())
                for at, changes in history
                for seq, (kind, value) in enumerate(changes)
                if at == now and n % 3 == key_group
            ]
            chance.shuffle(rows)
            packed = tester.test(key_group, [pack_of(rows)]) if rows else []
            for row in rows_in(["k", "kind", *names], packed):
                results = (row.kind, *(row[name] for name in names))
                found.setdefault((row.k, now), []).append(repr(results))
    for key, history in histories.items():
        reports = told_by_us(names, "BIGINT", retention, "mini_batch" in options, history)
        assert [found.pop((key, now), []) for now, _ in history] == reports
    assert not found
    if retention.idle is not None:
        assert tester.setProcessingTime(1000 * MINUTE) == []
        for key_group in range(3):
            for state in ("keys", "values", "due"):
                assert tester.peekMapState(state, key_group) == {}


def test_ttl_of_each_value() -> None:
    """By the rule of Flink's TTL: a value not written for so long is not there, and counts again.

    A value that is looked at, for another maximum, is renewed by OnReadAndWrite only.
    """
    end = 10 * MINUTE
    for retention, most in ((TTL, None), (TOUCH, 5)):
        handle, layout = InMemoryHandle(), made_layout(retention)
        apply(handle, layout, b"k", [("+I", [None, "a", 5]), ("+I", [None, None, 9])], 0)
        reports = apply(handle, layout, b"k", [("-D", [None, None, 9])], end - 1)
        assert reports == [("-U", [2, 1, 9]), ("+U", [1, 1, 5])]
        rows = [("+I", [None, "a", None]), ("+I", [None, None, 7]), ("-D", [None, None, 7])]
        reports = apply(handle, layout, b"k", rows, end)
        assert reports == [("-U", [1, 1, 5]), ("+U", [2, 2, most])]
        assert apply(handle, layout, b"k", [("+I", [None, "a", 1])], 2 * end) == [
            ("+I", [1, 1, 1])
        ]


def test_clean_up_timers() -> None:
    """By Flink's CleanupState: moved where now + min is past it, not where it is the same."""
    handle, layout = InMemoryHandle(), made_layout(IDLE)
    row = [("+I", [None, "a", 5])]
    apply(handle, layout, b"k", row, 0)
    apply(handle, layout, b"other", row, 0)  # a batch at the same millisecond
    apply(handle, layout, b"k", row, 6 * MINUTE)
    assert handle.timers == {16 * MINUTE}
    kept = kept_of(layout)
    KeyGroup(handle, layout, kept, "").fire(16 * MINUTE, 16 * MINUTE)
    assert len(handle.getMapState("keys", None, None)) == 0
    apply(handle, layout, b"k", row, 20 * MINUTE)
    apply(handle, layout, b"k", row, 26 * MINUTE + 1)
    assert handle.timers == {16 * MINUTE, 36 * MINUTE, 42 * MINUTE + 1}


def test_results_can_be_renamed() -> None:
    handle, layout = InMemoryHandle(), made_layout(FOREVER)
    apply(handle, layout, b"k", [("+I", [None, "a", 5])], 0)
    kept = kept_of(layout)
    key_group = KeyGroup(handle, layout, kept, "other names")
    list(key_group.apply({b"k": [("+I", [None, "a", 5])]}, 1, True))
    assert handle.getMapState("accState", None, None).getValue((2,)) == (kept, "other names", 1)


def test_packed_results_are_rows_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_MOST_RESULTS", 10)
    schema = T.StructType(
        [
            T.StructField("a.b", T.LongType()),
            T.StructField("kind", T.StringType(), False),
            T.StructField("c`d", T.ArrayType(T.StringType())),
        ]
    )
    rows = [(n or None, "+I", [str(n), None] if n % 2 else None) for n in range(25)]
    packs = [*packing.results_of(iter(rows))]
    assert [len(pack[0]) for pack in packs] == [10, 10, 5]
    assert packs[2].asDict(True)["c1"] == ["+I"] * 5
    df = spark.createDataFrame([tuple(pack) for pack in packs], packing.packed_type(schema))
    made = packing.unpacked(df, schema)
    assert [(f.name, f.dataType, f.nullable) for f in made.schema.fields] == [
        (f.name, f.dataType, f.nullable) for f in schema.fields
    ]
    assert [tuple(row) for row in made.collect()] == rows
    assert [*packing.results_of(iter([]))] == []
