"""Keys and arguments at the edges of what Java and Python take for equal, deep, large or typed."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from collections import namedtuple
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inside.values import MAX_DEPTH

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    KeyGroupRange,
    KeyGroupsError,
    LocalKeyBy,
    RescalePlan,
    SubtaskKeySelector,
    UnsupportedKeyTypeError,
    hash_code,
    trace_key,
    types,
)
from keygroups.load import _Heaviest, _heaviest_subtasks
from keygroups.operator_state import split_distribute_order
from keygroups.partitioners import subtask_state_mapping
from keygroups.reports import RescaleReport
from keygroups.savepoint import (
    CountWindows,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from keygroups.types import (
    BIG_DEC,
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INSTANT,
    INT,
    LIST,
    LONG,
    MAP,
    OPTIONAL,
    PYFLINK,
    ROW,
    SET,
    SHORT,
    SQL_DATE,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

UTC = dt.timezone.utc
Point = namedtuple("Point", "x y")


class Index:
    """An int to Flink, and to Python an object of its own."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class HashableList(list[Any]):
    """A list that may be in a set."""

    def __hash__(self) -> int:  # type: ignore[override]  # a list has none
        return len(self)


class HashableDict(dict[Any, Any]):
    """A dict that may be in a set."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return len(self)


# --- key types are values ------------------------------------------------------------------


@pytest.mark.parametrize(
    "key_type",
    [
        INT,
        TUPLE(SHORT),
        ROW(INT, names=["a"]),
        LIST(INT),
        MAP(STRING, INT),
        OPTIONAL(INT),
        SQL_DATE("UTC"),
        SQL_ROW("INT"),
        PYFLINK(INT),
    ],
    ids=repr,
)
def test_key_types_stay_as_they_are_made(key_type: KeyType) -> None:
    names = {name for cls in type(key_type).__mro__ for name in getattr(cls, "__slots__", ())}
    assert names
    for name in (*names, "other"):
        with pytest.raises(InvalidTypeError, match="is immutable"):
            setattr(key_type, name, LONG)
        with pytest.raises(InvalidTypeError, match="is immutable"):
            delattr(key_type, name)
    assert copy.deepcopy(key_type) == pickle.loads(pickle.dumps(key_type)) == key_type


def test_a_hasher_is_that_of_its_key_type() -> None:
    """-1 is -1 as a Short, and 0 as a Long (JDK: Short.hashCode, Long.hashCode)."""
    changed = TUPLE(SHORT)
    with pytest.raises(InvalidTypeError):
        changed.fields = (LONG,)  # type: ignore[misc]
    assert hash_code((-1,), changed) == hash_code((-1,), TUPLE(SHORT)) == -1


def test_names_of_a_row() -> None:
    names: Any
    for names in ("ab", b"ab", 5, object()):
        with pytest.raises(InvalidTypeError, match="names must be an iterable of str"):
            ROW(INT, INT, names=names)
    for names in ([1], [[]], [None]):
        with pytest.raises(InvalidTypeError, match="name 0 must be a str, got"):
            ROW(INT, names=names)
    assert ROW(INT, INT, names=iter("ab")).names == ("a", "b")


# --- what Java takes for equal -------------------------------------------------------------


@pytest.mark.parametrize(
    ("elements", "element"),
    [
        ({Index(1), Index(1)}, INT),
        ({Index(1), 1}, BYTE),
        ({Index(-5), Index(-5)}, LONG),
        ({float("nan"), float("-nan")}, DOUBLE),
        ({float("nan"), float("-nan")}, FLOAT),
        ({"\ud83d\ude00", "\U0001f600"}, STRING),
        ({(Index(1),), (1,)}, TUPLE(INT)),
        ({Point(Index(1), 2), (1, 2)}, TUPLE(INT, INT)),
        ({(Index(1),), (1,)}, ROW(INT)),
        ({frozenset([Index(1)]), frozenset([1])}, SET(INT)),
        (
            {frozenset([*"abcdefgh", emoji]) for emoji in ("\ud83d\ude00", "\U0001f600")},
            SET(STRING),
        ),
        ({Index(1), 1}, OPTIONAL(INT)),
        ({HashableList([Index(1)]), HashableList([1])}, LIST(INT)),
        ({HashableDict({"a": Index(1)}), HashableDict({"a": 1})}, MAP(STRING, INT)),
    ],
    ids=lambda value: repr(value) if isinstance(value, KeyType) else None,
)
def test_one_element_in_java(elements: set[Any], element: KeyType) -> None:
    """A java.util.HashSet holds one of what equals() finds equal."""
    assert len(elements) == 2
    with pytest.raises(InvalidValueError, match="elements must differ in Java too"):
        hash_code(elements, SET(element))
    with pytest.raises(InvalidValueError, match="map keys must differ in Java too"):
        hash_code(dict.fromkeys(elements, 1), MAP(element, INT))


@pytest.mark.parametrize(
    ("elements", "element", "expected"),
    [
        # JDK: the sum of the hash codes; Tuple2(0, 31) and Tuple2(1, 0) both have 31 in Flink.
        ({Point(0, 31), Point(1, 0)}, TUPLE(INT, INT), 62),
        ({Index(1), Index(2)}, INT, 3),
        ({True, False}, BOOLEAN, 1231 + 1237),
        # "Aa" and "BB" are the best known pair of Java Strings with one hash code, 2112.
        ({"Aa", "BB"}, STRING, 4224),
        ({frozenset(["Aa"]), frozenset(["BB"])}, SET(STRING), 4224),
        ({None, frozenset()}, SET(STRING), 0),
        ({HashableList([1, 2]), HashableList([2, 1])}, LIST(INT), 994 + 1024),
        ({HashableList(["Aa"]), HashableList(["BB"])}, LIST(STRING), 2 * (31 + 2112)),
        # 961 - 2^31 each, for 31 and 1 differ by an even number.
        ({HashableList([0, -(2**31)]), HashableList([-(2**31), 0])}, LIST(INT), 1922),
        ({HashableDict({"Aa": 0}), HashableDict({"BB": 0})}, MAP(STRING, INT), 4224),
        ({None, 0}, OPTIONAL(INT), 0),
    ],
    ids=lambda value: repr(value) if isinstance(value, KeyType) else None,
)
def test_two_elements_of_one_hash(elements: set[Any], element: KeyType, expected: int) -> None:
    assert hash_code(elements, SET(element)) == expected


@pytest.mark.parametrize("year", [1, 9999])
def test_instants_at_the_ends_of_the_calendar(year: int) -> None:
    """Python has no UTC for them, Java has: they are told apart by their distance to 1970."""
    edge = dt.datetime.min if year == 1 else dt.datetime.max
    one = edge.replace(tzinfo=dt.timezone(dt.timedelta(hours=1 if year == 1 else -1)))
    elements = {None, dt.datetime(1970, 1, 1, tzinfo=UTC), one}  # two of hash code 0
    assert hash_code(elements, SET(INSTANT)) == hash_code(one, INSTANT)
    assert hash_code(dict.fromkeys(elements, None), MAP(INSTANT, INT)) == hash_code(one, INSTANT)


# --- deep ----------------------------------------------------------------------------------


def deep(levels: int) -> Any:
    key: Any = 1
    for _ in range(levels):
        key = (key,)
    return key


def test_the_deepest_key() -> None:
    """A Tuple1 has the hash code of its field (Flink: Tuple1.hashCode)."""
    key_type: KeyType = INT
    for _ in range(MAX_DEPTH):
        key_type = TUPLE(key_type)
    assert hash_code(deep(MAX_DEPTH), key_type) == 1
    assert hash_code(deep(MAX_DEPTH)) == 1
    with pytest.raises(InvalidValueError, match="key types may nest at most 50 deep"):
        TUPLE(key_type)
    with pytest.raises(InvalidValueError, match="key must nest at most 50 deep"):
        hash_code(deep(MAX_DEPTH + 1))


def test_a_key_in_itself() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidValueError, match="key must nest at most 50 deep"):
        hash_code(loop)
    with pytest.raises(InvalidTypeError, match="must be an int"):
        hash_code(loop, LIST(LIST(INT)))


def test_deep_keys_of_a_buffer() -> None:
    buffer: LocalKeyBy[Any, int] = LocalKeyBy(2, max)
    assert buffer.process(deep(MAX_DEPTH), 1) == []
    for key in (deep(MAX_DEPTH + 1), deep(3_000)):
        with pytest.raises(InvalidValueError, match="key must nest at most 50 deep"):
            buffer.process(key, 1)
    assert buffer.snapshot_state() == [(deep(MAX_DEPTH), 1)]


# --- large ---------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [999, 1_000, 1_001, 2_000, 20_000])
def test_long_decimals(digits: int) -> None:
    """BigDecimal.hashCode: 31 times the hash of the unscaled value, plus the scale."""
    for unscaled in (10**digits - 1, -(10 ** (digits - 1)) - 7):
        text = tuple(map(int, str(Decimal(abs(unscaled)))))
        key = Decimal((int(unscaled < 0), text, -3))
        expected = 31 * hash_code(unscaled, types.BIG_INT) + 3
        assert (hash_code(key, BIG_DEC) - expected) % 2**32 == 0


def brute_force(weights: list[int], low: int, high: int) -> Iterator[_Heaviest]:
    """Give each key group's weight to its subtask, as Flink's formula says."""
    for parallelism in range(low, high + 1):
        subtasks = [0] * parallelism
        for key_group, weight in enumerate(weights):
            subtasks[key_group * parallelism // len(weights)] += weight
        yield _Heaviest(max(subtasks), subtasks.index(max(subtasks)))


@given(
    st.one_of(
        st.lists(st.integers(0, 2), min_size=1, max_size=150),
        st.lists(st.integers(0, 10**9), min_size=1, max_size=150),
        st.integers(1, 150).map(lambda n: [1] * n),
        st.integers(1, 150).map(lambda n: list(range(n))),
        st.integers(1, 150).map(lambda n: [0] * n + [5]),
    ),
    st.data(),
)
def test_heaviest_subtasks(weights: list[int], data: st.DataObject) -> None:
    low = data.draw(st.integers(1, len(weights)))
    high = data.draw(st.integers(low, len(weights)))
    sums = list(accumulate(weights, initial=0))
    for bounds in ((low, high), (1, len(weights))):
        assert list(_heaviest_subtasks(sums, *bounds)) == list(brute_force(weights, *bounds))


def test_endless_weights() -> None:
    def forever(read: list[int]) -> Iterator[int]:
        while True:
            read.append(1)
            yield 1

    read: list[int] = []
    with pytest.raises(InvalidValueError, match=r"weights must be 2 numbers, .* got more than 2"):
        KeyGroupLoad(2, forever(read))
    assert len(read) == 3


def test_weights_given_twice() -> None:
    with pytest.raises(InvalidValueError, match="key_groups must differ, got 0 twice"):
        KeyGroupLoad(2, [1e308, 0.5]).weight_of([0, 0])
    weights: dict[Any, int] = {1: 5, Index(1): 7}
    with pytest.raises(InvalidValueError, match="key groups of weights must differ, got 1 twice"):
        KeyGroupLoad(2, weights)


def test_state_of_all_for_all() -> None:
    """2^30 entries: each new subtask reads all old ones (Flink: SubtaskStateMapper.FULL)."""
    mapping = subtask_state_mapping("FULL", 32768, 32768)
    assert len(mapping) == 32768
    assert mapping[0] == mapping[-1] == list(range(32768))


# --- NumPy's scalars -----------------------------------------------------------------------


def test_numpy_scalars_that_are_exactly_a_key() -> None:
    np = pytest.importorskip("numpy")
    for value, same, key_type in (
        (np.bool_(True), True, BOOLEAN),
        (np.float32(1.5), 1.5, FLOAT),
        (np.float32("nan"), float("nan"), FLOAT),
        (np.float32(-0.0), -0.0, FLOAT),
        (np.float64(0.1), 0.1, DOUBLE),
        (np.int64(-5), -5, LONG),
        (np.int8(-5), -5, INT),
        (np.str_("a"), "a", STRING),
        (np.str_("a"), "a", CHAR),
    ):
        assert hash_code(value, key_type) == hash_code(same, key_type)
    row = SQL_ROW("BOOLEAN", "FLOAT", "DOUBLE", "BIGINT", "STRING")
    numpys = (np.bool_(False), np.float32(0.1), np.float64(0.1), np.int64(1), np.str_("a"))
    assert hash_code(numpys, row) == hash_code((False, float(np.float32(0.1)), 0.1, 1, "a"), row)


def test_numpy_scalars_of_another_type() -> None:
    np = pytest.importorskip("numpy")
    for value, key_type in (
        (np.float32(1.5), DOUBLE),
        (np.float16(1.5), FLOAT),
        (np.longdouble(1.5), DOUBLE),
        (np.bool_(True), INT),
        (np.int64(1), BOOLEAN),
        (np.int64(1), DOUBLE),
        (np.datetime64("2020-01-01"), types.LOCAL_DATE),
    ):
        with pytest.raises(InvalidTypeError, match="must be"):
            hash_code(value, key_type)


def test_numpy_scalars_without_a_key_type() -> None:
    """It is said that several classes are possible, and what to pass."""
    np = pytest.importorskip("numpy")
    for value in (np.int64(5), np.bool_(True), np.float32(1.5), np.float64(1.5)):
        with pytest.raises(UnsupportedKeyTypeError, match=r"may stand for .*pass key_type"):
            hash_code(value)


def test_numpy_weights() -> None:
    np = pytest.importorskip("numpy")
    load = KeyGroupLoad(3, np.array([1, 2, 3]))
    assert load == KeyGroupLoad(3, [1, 2, 3])
    assert [type(weight) for weight in load.weights] == [int] * 3
    load = KeyGroupLoad(2, np.array([0.5, 2], dtype=np.float32))
    assert load.weights == (0.5, 2.0)
    assert [type(weight) for weight in load.weights] == [float] * 2
    assert load.per_subtask(1) == [2.5]
    for bad in (np.bool_(True), np.str_("1"), np.longdouble(1)):
        with pytest.raises(InvalidTypeError, match="weight of key group 0 must be a number"):
            KeyGroupLoad(1, [bad])


PLAN, LOAD = RescalePlan(4, 2, 4), KeyGroupLoad(4, [1, 1, 1, 1])


@pytest.mark.parametrize(
    "make",
    [
        lambda number: KeyGroupRange(number(1), number(3)),
        lambda number: RescalePlan(number(4), number(2), number(3)),
        lambda number: KeyGroupLoad(number(2), [1, 2]),
        lambda number: RescaleReport(PLAN, LOAD, number(2)),
        lambda number: SubtaskKeySelector(number(4), number(2)),
        lambda number: trace_key(7, number(4), number(2)),
        lambda number: TumblingEventTimeWindows(number(5), number(1)),
        lambda number: SlidingEventTimeWindows(number(5), number(2), number(1)),
        lambda number: EventTimeSessionWindows(number(5)),
        lambda number: CountWindows(number(5), number(2)),
    ],
)
def test_numbers_of_a_value_are_ints(make: Callable[[Any], object]) -> None:
    """Whatever they are given as: it compares and prints as one that was made of ints."""
    made = make(Index)
    assert made == make(int)
    assert repr(made) == repr(make(int))


# --- everything else that raised another error ---------------------------------------------


def test_arguments_that_are_none_of_theirs() -> None:
    plan = RescalePlan(4, 2, 4)
    calls: list[tuple[Any, str]] = [
        (lambda: KeyGroupLoad(2, [1, 1]).weight_of(5), "key_groups must be an iterable of ints"),  # type: ignore[arg-type]
        (lambda: plan.compare_with_modulo([1], scramble=5), "scramble must be callable, got 5"),  # type: ignore[arg-type]
        (lambda: LocalKeyBy(3, max).restore(None), "entries must be an iterable of"),  # type: ignore[arg-type]
        (lambda: split_distribute_order(5), "names must be an iterable of str, got 5"),  # type: ignore[arg-type]
        (lambda: split_distribute_order([[]]), "name of a state must be a str"),  # type: ignore[list-item]
        (lambda: KeyGroupRange(1, 3)["a"], "index must be an int, got 'a'"),  # type: ignore[index]
        (lambda: types.ScalarType(5), "name must be a str, got 5"),  # type: ignore[arg-type]
    ]
    for call, says in calls:
        with pytest.raises(InvalidTypeError, match=says):
            call()


def test_what_is_in_a_range() -> None:
    found = KeyGroupRange(1, 3)
    assert 1 in found
    assert Index(3) in found
    for other in (4, "1", None, 1.5, True, [1]):
        assert other not in found


def test_messages_of_what_cannot_be_printed() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    for key in (Bad(), [Bad()], {"a": Bad()}):
        with pytest.raises(KeyGroupsError) as caught:
            hash_code(key)
        assert "Bad" in str(caught.value)
    with pytest.raises(KeyGroupsError, match="int too long to print"):
        KeyGroupRange(0, 10**5_000)


def test_messages_of_what_looks_like_another_class() -> None:
    """reprlib takes a class of this name for array.array up to Python 3.11."""
    with pytest.raises(UnsupportedKeyTypeError, match=r"key .*array"):
        hash_code(type("array", (), {})())


def test_messages_are_one_line() -> None:
    np = pytest.importorskip("numpy")
    with pytest.raises(UnsupportedKeyTypeError) as caught:
        hash_code(np.zeros((3, 3)))
    assert "\n" not in str(caught.value)
