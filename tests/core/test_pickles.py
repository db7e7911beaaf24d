"""Pickles are read without unpickling: values of Python's own, and nothing that could be run."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import math
import os
import pickle
import random
import re
import struct
import sys
import time
import tracemalloc
import uuid
from collections import Counter, OrderedDict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.bytes.hostile_savepoints import watched
from support.inside.serializers import (
    ForeignPickleError,
    read_pickle,
    write_key_pickle,
    write_pickle,
)

from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError
from keygroups.savepoint import Pickle, Row
from keygroups.savepoint.pyflink import PICKLED

PROTOCOLS = (4, 5)
STEPS, MORE_STEPS = 20_000, 60  # calls, as for a hostile savepoint
FLOOR, TIMES = 1 << 20, 400  # bytes, as for any serializer
ZONES = (None, dt.timezone.utc, dt.timezone(dt.timedelta(hours=5, seconds=1), "x"))
SHARED = ["a", "b"]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 255, 256, 65_535, 65_536, 2**31 - 1, -(2**31), 2**31, -(2**63)),
    *(2**64, 10**300, 0.0, -0.0, 1.5, math.inf, 5e-324, "", "a", "é😀", "\ud800", "x" * 300),
    *(b"", b"xy", b"\0" * 300, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1], [1, [2, [3]]]),
    *({}, {"a": 1}, {"a": {"b": None}}, {1: 2, "x": (3,)}, set(), {1, 2}, frozenset([1, "a"])),
    *(Decimal("1.50"), Decimal("-0"), Decimal("1E+5"), Decimal("inf")),
    *(dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.timedelta(-1, 2, 3), dt.timezone.utc),
    *(dt.time(1, 2, 3, 4, tzinfo=zone, fold=1) for zone in ZONES),
    *(dt.datetime(2024, 2, 29, 1, 2, 3, 456, zone, fold=1) for zone in ZONES),
    [SHARED, SHARED, (SHARED,)],
    [*range(3_000)],
    dict(zip(map(str, range(3_000)), range(3_000))),
]


def exact(value: Any) -> Any:
    return type(value), repr(value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_values(protocol: int) -> None:
    for value in VALUES:
        read = read_pickle(pickle.dumps(value, protocol))
        assert exact(read) == exact(value)
        assert read == value
        if protocol == pickle.DEFAULT_PROTOCOL:
            assert PICKLED.decode(PICKLED.encode(value)) == value
    # The pickler in Python's own language writes other frames and numbers of the memo.
    for value in VALUES:
        assert exact(read_pickle(pickle._dumps(value, protocol))) == exact(value)  # type: ignore[attr-defined]  # Private: pure Python.


def test_values_that_python_cannot_hold() -> None:
    """A dict or a set of what is equal in Python, or not hashable, is a list, as it is of Java."""
    assert read_pickle(b"\x80\x04}(K\x01NG?\xf0\0\0\0\0\0\0Nu.") == [(1, None), (1.0, None)]
    assert read_pickle(b"\x80\x04\x8f(K\x01G?\xf0\0\0\0\0\0\0\x90.") == [1, 1.0]
    assert read_pickle(b"\x80\x04(]]\x91.") == [[], []]


OF_OPCODES: dict[str, tuple[bytes, Any]] = {
    "BININT": (b"J\xfe\xff\xff\xff", -2),
    "BININT, most": (b"J\xff\xff\xff\x7f", 2**31 - 1),
    "BININT1": (b"K\xff", 255),
    "BININT2": (b"M\xff\xfe", 0xFEFF),
    "LONG1": (b"\x8a\x02\xff\xfe", -257),
    "LONG1 of nothing": (b"\x8a\0", 0),
    "LONG4": (b"\x8b\x02\0\0\0\xff\xfe", -257),
    "LONG4, most": (b"\x8b\0\4\0\0" + b"\xff" * 1_023 + b"\x7f", 2**8_191 - 1),
    "BINFLOAT": (b"G\xbf\xf8" + bytes(6), -1.5),
    "SHORT_BINUNICODE": (b"\x8c\x02\xc3\xa9", "é"),
    "BINUNICODE": (b"X\x02\0\0\0\xc3\xa9", "é"),
    "BINUNICODE8": (b"\x8d\x02" + bytes(7) + b"\xc3\xa9", "é"),
    "SHORT_BINBYTES": (b"C\x02ab", b"ab"),
    "BINBYTES": (b"B\x02\0\0\0ab", b"ab"),
    "BINBYTES8": (b"\x8e\x02" + bytes(7) + b"ab", b"ab"),
    "FRAME": (b"\x95" + bytes(8) + b"N", None),
    "PROTO": (b"\x80\x05N", None),
    "TUPLE1": (b"K\1\x85", (1,)),
    "TUPLE2": (b"K\1K\2\x86", (1, 2)),
    "TUPLE3": (b"K\1K\2K\3\x87", (1, 2, 3)),
    "TUPLE": (b"(K\1K\2K\3K\4t", (1, 2, 3, 4)),
    "FROZENSET": (b"(K\1\x91", frozenset([1])),
    "APPEND": (b"]K\1aK\2a", [1, 2]),
    "APPENDS": (b"](K\1K\2e(K\3e", [1, 2, 3]),
    "SETITEM": (b"}K\1K\2s", {1: 2}),
    "SETITEMS": (b"}(K\1K\2K\3K\4u", {1: 2, 3: 4}),
    "ADDITEMS": (b"\x8f(K\1\x90", {1}),
    "BINGET": (b"]\x94(C\1a\x94h\1h\1e", [b"a"] * 3),
    "LONG_BINGET": (b"]\x94(C\1a\x94j\1\0\0\0h\1e", [b"a"] * 3),
    "the memo's number 256": (
        b"](" + b"K\1\x94" * 256 + b"C\1a\x94j\0\1\0\0e",
        [1] * 256 + [b"a", b"a"],
    ),
}


@pytest.mark.parametrize("name", OF_OPCODES)
def test_opcodes(name: str) -> None:
    """Each with an argument of its size, as Python's unpickler takes it."""
    opcodes, value = OF_OPCODES[name]
    data = b"\x80\x04" + opcodes + b"."
    assert exact(read_pickle(data)) == exact(pickle.loads(data)) == exact(value)
    for end in range(len(data)):
        with pytest.raises(ForeignPickleError):
            read_pickle(data[:end])


def test_an_int_of_the_most_bytes() -> None:
    """One of 1,024 bytes has fewer digits than Python refuses to show."""
    for number in (2**8_191 - 1, -(2**8_191)):
        assert read_pickle(pickle.dumps(number, 4)) == number
    with pytest.raises(ForeignPickleError, match="an int of 1,025 bytes"):
        read_pickle(pickle.dumps(2**8_191, 4))


def row(names: bytes, values: bytes, kind: int = 0) -> bytes:
    """Return the pickle of a Row as PyFlink makes it."""
    module, create = b"\x8c\x14pyflink.common.types\x94", b"\x8c\x0b_create_row\x94\x93\x94"
    of_kind = module[:-1] + b"\x94\x8c\x07RowKind\x94\x93\x94K" + bytes([kind]) + b"\x85\x94R\x94"
    return b"\x80\x04" + module + create + names + values + of_kind + b"\x87\x94R\x94."


def test_rows() -> None:
    values = b"\x8c\x01x\x94K\x05\x86\x94"
    names = b"]\x94(\x8c\x01s\x94\x8c\x01n\x94e"
    for kind, name in enumerate(("+I", "-U", "+U", "-D")):
        assert exact(read_pickle(row(b"N", values, kind))) == exact(Row(("x", 5), name))
    named = read_pickle(row(names, values))
    assert (named.names, named.s, named.n, named.row_kind) == (("s", "n"), "x", 5, "+I")
    assert pickle.loads(pickle.dumps(named)) == named == ("x", 5)
    assert pickle.loads(pickle.dumps(named)).names == ("s", "n")
    assert repr(named) == "Row(('x', 5), '+I', ('s', 'n'))"
    with pytest.raises(AttributeError, match="a row of s, n has no m"):
        _ = named.m
    with pytest.raises(AttributeError, match="a row of no names has no m"):
        _ = Row((1,)).m
    assert Row((1,), names=["a"]).a == 1
    with pytest.raises(InvalidValueError, match="names must be 1, got 2"):
        Row((1,), names=["a", "b"])
    with pytest.raises(InvalidTypeError, match="names must be a tuple or a list, got 'a'"):
        Row((1,), names="a")
    refused = [
        row(b"N", values, 4),
        row(b"N", b"K\x05"),
        row(b"K\x01", values),
        row(b"]\x94(K\x01K\x02e", values),
        row(names, b"K\x05\x85\x94"),
        row(b"N", values).replace(b"K\0\x85\x94R", b"K\0\x85\x940K\0"),
    ]
    for data in refused:
        with pytest.raises(ForeignPickleError):
            read_pickle(data)


class Foreign:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made",)


def cyclic() -> Any:
    loop: list[Any] = []
    loop.append((loop,))
    return loop


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def doubled(levels: int) -> Any:
    """A list that has 2**levels elements in it, each list being there twice."""
    value: Any = ("a" * 100,)
    for _ in range(levels):
        value = (value, value)
    return value


def doubled_text(times: int) -> Any:
    text = "x" * 10_000
    return [text] * times


FOREIGN: dict[str, bytes] = {
    **{
        f"{type(value).__name__} {place}": pickle.dumps(value, 4)
        for place, value in enumerate(
            [
                *(uuid.UUID(int=1), fractions.Fraction(1, 2), OrderedDict(a=1), Counter("a")),
                *(os.mkdir, Path("a"), range(3), 1j, bytearray(b"a"), re.compile("a"), Ellipsis),
                *(Foreign(), decimal.Context, slice(1), Row((1,)), cyclic(), deep(51)),
                *(doubled(30), doubled_text(30_000), 2**10_000),
            ]
        )
    },
    "protocol 0": pickle.dumps([1, "a"], 0),
    "protocol 2": pickle.dumps({"a": b"b"}, 2),
    "empty": b"",
    "no stop": b"\x80\x04N",
    "more behind": b"\x80\x04N.N",
    "two values": b"\x80\x04NN.",
    "no value": b"\x80\x04.",
    "a mark": b"\x80\x04(.",
    "a name": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "a name of numbers": b"\x80\x04K\x01K\x02\x93)R.",
    "a name of lists": b"\x80\x04]]\x93)R.",
    "a call of a text": b"\x80\x04\x8c\x01a)R.",
    "a call of os.system": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04ls >x\x85R.",
    "a call with a list": b"\x80\x04\x8c\x08datetime\x8c\x04date\x93]R.",
    "a call with none": b"\x80\x04\x8c\x08datetime\x8c\x04date\x93NR.",
    "a date of a text": b"\x80\x04\x8c\x08datetime\x8c\x04date\x93\x8c\x04abcd\x85R.",
    "a date of no day": b"\x80\x04\x8c\x08datetime\x8c\x04date\x93C\x04\x07\xe8\x02\x1e\x85R.",
    "a date of too few bytes": b"\x80\x04\x8c\x08datetime\x8c\x04date\x93C\x02ab\x85R.",
    "a time of no minute": b"\x80\x04\x8c\x08datetime\x8c\x04time\x93C\x06\1\x63\1\0\0\0\x85R.",
    "a long timedelta": b"\x80\x04\x8c\x08datetime\x8c\x09timedelta\x93\x8a\x08"
    + bytes(7)
    + b"\x10\x85R.",
    "a Decimal of no number": b"\x80\x04\x8c\x07decimal\x8c\x07Decimal\x93\x8c\x01x\x85R.",
    "a number not memoized": b"\x80\x04h\x05.",
    "an append to a tuple": b"\x80\x04)N\x61.",
    "an append to a number": b"\x80\x04K\x01N\x61.",
    "an append to nothing": b"\x80\x04N\x61.",
    "no mark": b"\x80\x04]Ne.",
    "odd items": b"\x80\x04}(Nu.",
    "text of other bytes": b"\x80\x04\x8c\x01\xff.",
    "a text that is cut off": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.",
    "a persistent id": b"\x80\x04NQ.",
    "an instance": b"\x80\x04(ios\nsystem\n.",
    "state": b"\x80\x04]}b.",
    "an extension": b"\x80\x04\x82\x01.",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_pickles(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay bytes; nothing is opened, made, imported or run, and little time is taken."""
    monkeypatch.chdir(tmp_path)
    data, modules = FOREIGN[name], {*sys.modules}
    start = time.process_time()
    with watched() as seen:
        with pytest.raises(ForeignPickleError) as caught:
            read_pickle(data)
        value, end = PICKLED.read(len(data).to_bytes(4, "big") + data, 0)
    assert seen == []
    assert {*sys.modules} == modules
    assert [*tmp_path.iterdir()] == []
    assert time.process_time() - start < 5
    assert str(caught.value).isprintable()
    assert (type(value), value, end) == (Pickle, data, len(data) + 4)
    assert PICKLED.write(value) == len(data).to_bytes(4, "big") + data
    assert repr(value) == f"Pickle({data!r})"
    assert str(value).isprintable()


@pytest.mark.parametrize(
    "most", [60, pytest.param(10**9, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_damaged_pickles(most: int) -> None:
    """Each byte is another, or the last: a value comes of it or the one error."""
    chosen, counts = random.Random(44), Counter[str]()
    names = b"]\x94(\x8c\x01s\x94\x8c\x01n\x94e"
    samples = [pickle.dumps(value, 4) for value in VALUES if len(repr(value)) < 400]
    samples += [row(b"N", b"\x8c\x01x\x94K\x05\x86\x94"), row(names, b"K\x01K\x02\x86\x94")]
    damaged = [
        data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
        for data in samples
        for place in range(len(data))
        for flip in (0x01, 0x04, 0x80, 0xFF)
    ]
    damaged += [data[:place] for data in samples for place in range(len(data))]
    if most < len(damaged):
        damaged = chosen.sample(damaged, 40 * most)
    for data in damaged:
        try:
            exact(read_pickle(data))
        except ForeignPickleError:
            counts["foreign"] += 1
        else:
            counts["values"] += 1
    print(dict(counts))
    assert min(counts.values()) > most / 10 if most < 1_000 else min(counts.values()) > 100


def test_what_is_there_often_is_read_as_often() -> None:
    """A memo holds it once: 16 values for each byte, and 64 besides, may come of it."""
    once = tuple(range(10))
    for often, size in ((100, 10), (2_000, 10), (5, 5)):
        value = [once[:size]] * often
        assert read_pickle(pickle.dumps(value, 4)) == value
    with pytest.raises(ForeignPickleError, match="too often in others"):
        read_pickle(pickle.dumps([tuple(range(100))] * 1_000, 4))


def test_as_many_bytes_as_a_memo_may_make() -> None:
    """They are 256 times those of the pickle, and a MiB, to the byte."""

    def repeated(size: int, rest: int) -> bytes:
        text, other = (b"X" + struct.pack("<I", n) + b"a" * n for n in (size, rest))
        return b"\x80\x04]\x94(" + text + b"\x94" + b"h\1" * 731 + other + b"e."

    most = repeated(3_001, 4)
    texts = read_pickle(most)
    assert sum(map(len, texts)) == 256 * len(most) + (1 << 20)
    more = repeated(3_002, 3)
    assert len(more) == len(most)
    with pytest.raises(ForeignPickleError, match=r"would become .* and more"):
        read_pickle(more)


@pytest.mark.parametrize("make", [deep, doubled, doubled_text, lambda n: [()] * n])
def test_what_a_pickle_takes(make: Any) -> None:
    """Calls and memory are bounded by its bytes, whatever it repeats."""
    for size in (10, 30, 1_000):
        if make in (deep, doubled) and size > 30:
            continue  # Python itself does not pickle it.
        data = pickle.dumps(make(size), 4)
        used = 0

        def count(*_: object) -> None:
            nonlocal used
            used += 1

        sys.setprofile(count)
        try:
            PICKLED.read(len(data).to_bytes(4, "big") + data, 0)
        finally:
            sys.setprofile(None)
        assert used < STEPS + MORE_STEPS * len(data)
        tracemalloc.start()
        try:
            PICKLED.read(len(data).to_bytes(4, "big") + data, 0)
            assert tracemalloc.get_traced_memory()[1] < FLOOR + TIMES * len(data)
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("value", [Row((1,)), uuid.UUID(int=1), deep(52), {"a": Row((1,))}, int])
def test_values_that_are_not_pickled_here(value: Any) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="only values of Python's own classes are"):
        write_pickle(value, 4)


def test_how_deep_a_pickle_may_be() -> None:
    """What is written is read again; one level more is neither written nor read."""
    for levels in (49, 50):
        assert read_pickle(write_pickle(deep(levels), 4)) == deep(levels)
        in_dicts: Any = 1
        for _ in range(levels):
            in_dicts = {"a": in_dicts}
        assert read_pickle(write_pickle(in_dicts, 4)) == in_dicts
    with pytest.raises(UnsupportedKeyTypeError):
        write_pickle(deep(51), 4)


KEYS_OF_ONE_PICKLE: list[Any] = [
    *(None, True, 1, 2**40, -0.0, "a", "é", b"xy", (), ("a", 1), (1, 1), [1, [2]], {"a": 1}),
    *(Decimal("1.50"), dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)),
    *(frozenset([1]), (("a",), [1]), (dt.date(2024, 1, 1), dt.date(2024, 1, 2))),
    *(("date", 1), [[], ()], (None, None, (), ())),
]
KEYS_OF_SEVERAL: list[tuple[Any, str]] = [
    (("a", "a"), "by 'a'"),
    ({"a": "a"}, "by 'a'"),
    (((1,), (1,)), r"by \(1,\)"),
    ([[], []], r"by \[\]"),
    (([0.0], [-0.0], [0.0]), r"by \[0.0\]"),
    (frozenset([1, 2]), r"by frozenset\(\{1, 2\}\)"),
    ([{3, 4}], "by {3, 4}"),
    (("date", dt.date(2024, 1, 1)), "by 'date'"),
    (("1", Decimal(1)), "by '1'"),
    (2 * (dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc),), r"by datetime.timezone.utc"),
]


def test_keys_of_one_pickle() -> None:
    for key in KEYS_OF_ONE_PICKLE:
        assert write_key_pickle(key, 5) == pickle.dumps(key, 5)


@pytest.mark.parametrize(("key", "why"), KEYS_OF_SEVERAL)
def test_keys_that_have_several_pickles(key: Any, why: str) -> None:
    """What is one object in the job may be two here, and its pickle refers to the first."""
    with pytest.raises(UnsupportedKeyTypeError, match=f"has other pickles too, {why}"):
        write_key_pickle(key, 5)
