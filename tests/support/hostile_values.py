"""Objects that no caller should pass, for the tests that pass them to every public callable."""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import itertools
import sys
import uuid
from collections import OrderedDict, UserList, namedtuple
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any


class OwnError(Exception):
    """What a hostile object raises in its own methods; it may come through."""


class ReprError(Exception):
    """What a hostile object raises when it is printed; it must never come through."""


class EndlessRead(BaseException):
    """An endless iterator was read on and on."""


MOST_READ = 40_000  # past any bound that Flink sets


def endless(value: Any) -> Iterator[Any]:
    """Return an iterator that never ends, and tells if somebody waits for its end."""
    for read in itertools.count():
        if read > MOST_READ:
            raise EndlessRead
        yield value(read) if callable(value) else value


class BadRepr:
    """Cannot be printed, whatever it is made of."""

    def __init__(self, *_: object) -> None:
        pass

    def __repr__(self) -> str:
        raise ReprError


class BadReprText(str):
    """A str that cannot be printed."""

    def __repr__(self) -> str:
        raise ReprError


class BadReprInt(int):
    """An int that cannot be printed."""

    def __repr__(self) -> str:
        raise ReprError

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        raise ReprError


class NoTextRepr:
    """Has a repr that is no text."""

    def __repr__(self) -> str:
        return 5  # type: ignore[return-value]  # the wrong type, on purpose


class BadEq:
    """Cannot be compared, but hashed."""

    def __eq__(self, other: object) -> bool:
        raise OwnError

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        raise ReprError


class BadHash:
    """Cannot be hashed, and says so with an error of its own."""

    def __hash__(self) -> int:
        raise OwnError


class BadIndex:
    """An int that raises."""

    def __index__(self) -> int:
        raise OwnError

    def __repr__(self) -> str:
        raise ReprError


class NoIntIndex:
    """Has an __index__ that gives no int."""

    def __index__(self) -> int:
        return "5"  # type: ignore[return-value]  # the wrong type, on purpose


class BadIter:
    """Cannot be iterated over."""

    def __iter__(self) -> Iterator[Any]:
        raise OwnError


class BadTuple(tuple[Any, ...]):
    """A tuple that cannot be iterated over."""

    def __iter__(self) -> Iterator[Any]:
        raise OwnError

    def __repr__(self) -> str:
        raise ReprError


class LyingInt(int):
    """An int that says it is within any bounds."""

    def __le__(self, other: object) -> bool:
        return True

    __lt__ = __ge__ = __gt__ = __le__


class BadMapping(Mapping[Any, Any]):
    """A mapping without an end."""

    def __getitem__(self, key: object) -> Any:
        return 1

    def __iter__(self) -> Iterator[Any]:
        return endless(lambda read: read % 2)

    def __len__(self) -> int:
        return 2


class BadZone(dt.tzinfo):
    """A time zone that raises."""

    def utcoffset(self, when: object) -> dt.timedelta:
        raise OwnError

    tzname = dst = utcoffset  # type: ignore[assignment]  # they only raise


class Meta(type):
    """The class of a class that cannot be printed."""

    def __repr__(cls) -> str:
        raise ReprError


class BadClass(metaclass=Meta):
    """A class that cannot be printed, nor called."""

    def __init__(self, *_: object) -> None:
        raise OwnError


Point = namedtuple("Point", "x y")
SubText = type("SubText", (str,), {})
SubInt = type("SubInt", (int,), {})
SubFloat = type("SubFloat", (float,), {})
SubDict = type("SubDict", (dict,), {})
SubSet = type("SubSet", (set,), {})
SubDecimal = type("SubDecimal", (decimal.Decimal,), {})


def deep(make: Callable[[Any], Any], levels: int) -> Any:
    """Return 1 in that many containers."""
    return functools.reduce(lambda inner, _: make(inner), range(levels), 1)


def in_itself() -> list[Any]:
    """Return a list that is in itself."""
    result: list[Any] = []
    result.append(result)
    return result


def _key_of_itself() -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    result["self"] = result
    return result


HUGE = 10**5_000  # more digits than Python prints

EXTREMES: dict[str, Callable[[], Any]] = {
    "a list of huge ints": lambda: [HUGE, -HUGE],
    "a tuple of huge ints": lambda: (HUGE, HUGE),
    "a dict of huge ints": lambda: {HUGE: -HUGE},
    "a dict of str to huge ints": lambda: {"a": HUGE, "b": [HUGE]},
    "a set of huge ints": lambda: {HUGE, -HUGE},
    "a namedtuple of huge ints": lambda: Point(HUGE, (HUGE,)),
    "huge ints deep within": lambda: [{"a": ({HUGE}, Point(HUGE, [HUGE]))}],
    "a Decimal of 5001 digits": lambda: decimal.Decimal(HUGE),
    "a list of Decimals of huge exponents": lambda: [decimal.Decimal((0, (1,), 10**17))] * 2,
    "texts that are equal": lambda: ["n", "n"],
    "texts without UTF-8": lambda: ["\ud800", "\udfffx"],
    "texts with NUL": lambda: ("a", "a\0"),
    "empty texts": lambda: ["", ""],
    "long texts": lambda: ["x" * 100_000] * 3,
    "a dict of text without UTF-8": lambda: {"\ud800": "\udfff", "a\0": 5},
    "a list of equal tuples": lambda: [(1, 1)] * 1_000,
    "ints of one hash": lambda: [number * sys.hash_info.modulus for number in range(1_000)],
    "texts of one hash in Java": lambda: [
        "".join(item) for item in product(("Aa", "BB"), repeat=9)
    ],
    "dates and what is past them": lambda: [dt.date.min, dt.date.max, 2**63],
}
"""What is larger, deeper or more alike than a caller's values are."""

HOSTILE: list[tuple[str, Callable[[], Any]]] = [
    ("None", lambda: None),
    ("a bool", lambda: True),
    ("ellipsis", lambda: ...),
    ("NotImplemented", lambda: NotImplemented),
    ("0", lambda: 0),
    ("-1", lambda: -1),
    ("2^31", lambda: 2**31),
    ("-2^63 - 1", lambda: -(2**63) - 1),
    ("10^5000", lambda: 10**5000),
    ("-10^5000", lambda: -(10**5000)),
    ("1.5", lambda: 1.5),
    ("-0.0", lambda: -0.0),
    ("1e308", lambda: 1e308),
    ("nan", lambda: float("nan")),
    ("infinity", lambda: float("-inf")),
    ("a complex", lambda: 1j),
    ("Decimal NaN", lambda: decimal.Decimal("sNaN")),
    ("Decimal infinity", lambda: decimal.Decimal("-Infinity")),
    ("Decimal 1E+999999", lambda: decimal.Decimal("1E+999999")),
    ("Decimal of a large exponent", lambda: decimal.Decimal((0, (1,), 10**17))),
    ("empty str", lambda: ""),
    ("a str", lambda: "ab"),
    ("a surrogate", lambda: "\ud800"),
    ("NUL and quotes", lambda: "\0'`\"\\"),
    ("a long str", lambda: "x" * 100_000),
    ("bytes", lambda: b"ab"),
    ("bytearray", lambda: bytearray(b"ab")),
    ("memoryview", lambda: memoryview(b"ab")),
    ("empty tuple", lambda: ()),
    ("a tuple of None", lambda: (None,)),
    ("empty list", lambda: []),
    ("a list of str", lambda: ["n"]),
    ("a list of lists", lambda: [[]]),
    ("empty dict", lambda: {}),
    ("a dict", lambda: {None: BadRepr()}),
    ("a set", lambda: {1, 2.5, "a"}),
    ("a long list", lambda: [0] * 20_000),
    ("a range", lambda: range(2**62)),
    ("endless", lambda: endless(1)),
    ("endless numbers", lambda: endless(lambda read: read)),
    ("endless texts", lambda: endless(str)),
    ("endless pairs", lambda: endless(lambda read: (read % 2, 1))),
    ("endless mapping", BadMapping),
    ("a list in itself", in_itself),
    ("a dict in itself", _key_of_itself),
    ("400 tuples deep", lambda: deep(lambda inner: (inner,), 400)),
    ("5000 tuples deep", lambda: deep(lambda inner: (inner,), 5_000)),
    ("400 lists deep", lambda: deep(lambda inner: [inner], 400)),
    ("400 dicts deep", lambda: deep(lambda inner: {"a": inner}, 400)),
    ("400 frozensets deep", lambda: deep(lambda inner: frozenset([inner]), 400)),
    ("a list of deep lists", lambda: [deep(lambda inner: [inner], 400), 5]),
    ("bad repr", BadRepr),
    ("bad repr in a tuple", lambda: (BadRepr(),)),
    ("bad repr in a list", lambda: [BadRepr(), BadRepr()]),
    ("bad repr in a set", lambda: {BadRepr()}),
    ("bad repr of a str", lambda: BadReprText("ab")),
    ("bad repr of an int", lambda: BadReprInt(5)),
    ("bad repr of a large int", lambda: BadReprInt(2**70)),
    ("repr that is no text", NoTextRepr),
    ("bad eq", BadEq),
    ("bad eq in a set", lambda: {BadEq()}),
    ("bad hash", BadHash),
    ("bad index", BadIndex),
    ("index that is no int", NoIntIndex),
    ("bad iter", BadIter),
    ("bad tuple", lambda: BadTuple((1, 2))),
    ("lying int", lambda: LyingInt(-5)),
    ("lying large int", lambda: LyingInt(2**70)),
    ("namedtuple", lambda: Point(1, None)),
    ("sub str", lambda: SubText("ab")),
    ("sub int", lambda: SubInt(5)),
    ("sub float", lambda: SubFloat(0.5)),
    ("sub dict", lambda: SubDict(a=1)),
    ("sub set", lambda: SubSet("ab")),
    ("sub Decimal", lambda: SubDecimal("1.5")),
    ("OrderedDict", lambda: OrderedDict(a=1)),
    ("UserList", lambda: UserList([1, 2])),
    ("a class", lambda: BadRepr),
    ("a bad class", lambda: BadClass),
    ("object", object),
    ("a lambda", lambda: lambda *_: None),
    ("a builtin", lambda: print),
    ("a module", lambda: sys),
    ("an exception", lambda: ValueError("no")),
    ("a date", lambda: dt.date.min),
    ("a datetime", lambda: dt.datetime.max),
    (
        "a datetime past the end",
        lambda: dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))),
    ),
    ("a datetime of a bad zone", lambda: dt.datetime(2000, 1, 1, tzinfo=BadZone())),
    ("a time of a bad zone", lambda: dt.time(1, tzinfo=BadZone())),
    ("a timedelta", lambda: dt.timedelta.max),
    ("a UUID", lambda: uuid.UUID(int=2**128 - 1)),
    *EXTREMES.items(),
]
"""Names of hostile values, and functions that make them; each is made anew for each use."""

try:
    import numpy as np
except ModuleNotFoundError:
    pass
else:
    HOSTILE += [
        ("np.int64", lambda: np.int64(5)),
        ("np.uint64", lambda: np.uint64(2**64 - 1)),
        ("np.float32", lambda: np.float32(0.1)),
        ("np.float64", lambda: np.float64("nan")),
        ("np.float16", lambda: np.float16(0.1)),
        ("np.longdouble", lambda: np.longdouble("1e400")),
        ("np.bool_", lambda: np.bool_(True)),
        ("np.str_", lambda: np.str_("ab")),
        ("np.datetime64", lambda: np.datetime64("NaT", "us")),
        ("np.array of no dimension", lambda: np.array(5)),
        ("np.array of ints", lambda: np.array([1, 2])),
        ("np.array of texts", lambda: np.array(["a", "b"])),
        ("np.array of objects", lambda: np.array([BadRepr(), None], dtype=object)),
        ("np.array of two dimensions", lambda: np.zeros((2, 2))),
        ("np.array, empty", lambda: np.array([])),
        ("a masked array", lambda: np.ma.masked_array([1, 2], mask=[True, False])),
    ]
