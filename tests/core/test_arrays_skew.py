"""The skew report of arrays, against keys that the core sends one by one."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import pytest

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")

from keygroups import (  # noqa: E402
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    types,
)
from keygroups.arrays import _skew, skew_report  # noqa: E402
from keygroups.reports import SkewReport  # noqa: E402

NAN = float("nan")
TUPLE = types.TUPLE(types.STRING, types.LONG)
DAY = dt.date(2024, 2, 29)
UPPER, LOWER = (name("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11") for name in (str.upper, str.lower))
# Keys in columns, their type, and the keys as the core takes them: a letter for each that Java's
# equals() tells from the others.
CASES: dict[str, tuple[Any, types.KeyType, list[Any], str]] = {
    "text": (pa.array(["b", "a", "b", ""]), types.STRING, ["b", "a", "b", ""], "abac"),
    "zeros": (pa.array([0.0, -0.0, 0.0]), types.DOUBLE, [0.0, -0.0, 0.0], "aba"),
    "NaNs": (
        pa.array(np.array([2**63 - 1, 2**63 - 2, 2**51], np.uint64).view(np.float64)),
        types.DOUBLE,
        [NAN, NAN, 2**51 * 5e-324],
        "aab",
    ),
    "NaNs of singles": (
        pa.array(np.array([2**31 - 1, 2**31 - 2, 1], np.uint32).view(np.float32)),
        types.FLOAT,
        [NAN, NAN, 2.0**-149],
        "aab",
    ),
    "UUIDs": (pa.array([UPPER, LOWER]), types.UUID, [UUID(LOWER), UUID(LOWER)], "aa"),
    "decimals": (
        pa.array([Decimal("1.50"), Decimal("2.50"), Decimal("1.50")]),
        types.BIG_DEC,
        [Decimal("1.50"), Decimal("2.50"), Decimal("1.50")],
        "aba",
    ),
    "dates": (pa.array([DAY, DAY]), types.LOCAL_DATE, [DAY, DAY], "aa"),
    "flags": (pa.array([True, False, True]), types.BOOLEAN, [True, False, True], "aba"),
    "tuples": (
        [pa.array(["a", "a", None, "a"]), pa.array([1, 2, 1, 1])],
        TUPLE,
        [("a", 1), ("a", 2), (None, 1), ("a", 1)],
        "abca",
    ),
    "tuples of tuples": (
        pa.array([{"x": {"y": None}}, {"x": None}, {"x": {"y": None}}, {"x": {"y": 5}}]),
        types.PYFLINK(types.ROW(types.ROW(types.LONG))),
        [((None,),), (None,), ((None,),), ((5,),)],
        "abac",
    ),
    "lists": (
        pa.array([["a", "b"], ["ab"], [], ["a", "b"], ["a", None], [""]]),
        types.LIST(types.STRING),
        [["a", "b"], ["ab"], [], ["a", "b"], ["a", None], [""]],
        "abcade",
    ),
    "lists of lists": (
        pa.array([[[1], [2]], [[1, 2]], None, [[1], [2]], [None, [2]], [[], [2]]]),
        types.PYFLINK(types.LIST(types.LIST(types.LONG))),
        [[[1], [2]], [[1, 2]], None, [[1], [2]], [None, [2]], [[], [2]]],
        "abcade",
    ),
    "lists of nothing": (
        pa.array([[None], [None, None], [None]]),
        types.PYFLINK(types.LIST(types.LONG)),
        [[None], [None, None], [None]],
        "aba",
    ),
    "SQL": (
        [pa.array([1, 1, 1]), pa.array([[0.0], [-0.0], [0.0]])],
        types.SQL_ROW("BIGINT", "ARRAY<DOUBLE>"),
        [(1, [0.0]), (1, [-0.0]), (1, [0.0])],
        "aba",
    ),
    "null keys of PyFlink": (
        pa.array([None, "a", None]),
        types.PYFLINK(types.STRING),
        [None, "a", None],
        "aba",
    ),
}


def check(report: SkewReport, keys: list[Any], key_type: types.KeyType, letters: str) -> None:
    """Compare with keys that are told apart by their letters."""
    groups, parallelism = report.load.max_parallelism, report.parallelism
    of_letter = {letter: (key, number) for number, (letter, key) in enumerate(zip(letters, keys))}
    records: Counter[int] = Counter()
    distinct: Counter[int] = Counter()
    for letter, count in Counter(letters).items():
        group = assign_to_key_group(of_letter[letter][0], groups, key_type)
        records[group] += count
        distinct[group] += 1
    assert report.load.weights == tuple(records[group] for group in range(groups))
    for row in report.subtasks:
        assert row.distinct_keys == sum(distinct[group] for group in row.key_groups)
    assert report.detail is not None
    assert sorted(key.records for key in report.detail.top_keys) == sorted(
        count
        for letter, count in Counter(letters).items()
        if assign_key_to_parallel_operator(of_letter[letter][0], groups, parallelism, key_type)
        == report.detail.row.subtask
    )
    for hot in report.detail.top_keys:
        shown = UUID(hot.key) if key_type is types.UUID else hot.key
        assert hot.key_group == assign_to_key_group(shown, groups, key_type)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("at_once", [2, 1 << 20])
def test_keys_that_are_the_same(case: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows are counted at a time, and if all are in one key group too."""
    monkeypatch.setattr(_skew, "_AT_ONCE", at_once)
    columns, key_type, keys, letters = CASES[case]
    for groups, parallelism, subtask in ((128, 2, 0), (128, 2, 1), (1, 1, 0)):
        report = skew_report(columns, None, groups, parallelism, key_type, subtask=subtask)
        check(report, keys, key_type, letters)


def test_nans_of_sql_are_their_bytes() -> None:
    """A BinaryRowData has the raw bits of a double, those in an array as in Java's writer."""
    nans = pa.array(np.array([0x7FF8 << 48, 0x7FF8 << 48 | 1], np.uint64).view(np.float64))
    in_lists = pa.FixedSizeListArray.from_arrays(nans, 1)
    report = skew_report([nans], None, 128, 1, types.SQL_ROW("DOUBLE"))
    assert report.distinct_keys == 2
    assert sum(report.load.weights) == 2
    assert skew_report([in_lists], None, 128, 1, types.SQL_ROW("ARRAY<DOUBLE>")).distinct_keys == 1


def test_uuids_in_lists_are_the_same_in_letters_of_either_case() -> None:
    lists = pa.array([[UPPER], [LOWER]])
    assert skew_report(lists, None, 128, 1, types.LIST(types.UUID)).distinct_keys == 1
    assert skew_report(lists, None, 128, 1, types.LIST(types.STRING)).distinct_keys == 2


def table(rows: int) -> dict[str, list[Any]]:
    random.seed(rows)
    users = [f"user{int(random.paretovariate(0.7)) % 500}" for _ in range(rows)]
    return {"user": users, "item": [random.randrange(5) for _ in range(rows)]}


def test_tables_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in many blocks is one key, and its records are added up."""
    data = table(1_000)
    counted = skew_report(pa.table(data), "user", 128, 8, top=3)
    monkeypatch.setattr(_skew, "_AT_ONCE", 256)
    assert skew_report(pa.table(data), ["user"], 128, 8, top=3) == counted
    assert (
        skew_report(
            {name: pa.array(column) for name, column in data.items()}, "user", 128, 8, top=3
        )
        == counted
    )
    assert skew_report(pa.table(data).to_batches()[0], "user", 128, 8, top=3) == counted
    numbers = Counter(data["user"])
    assert counted.distinct_keys == len(numbers)
    for hot in counted.hot_subtasks:
        ranked = sorted(
            (
                (-count, assign_to_key_group(user, 128), user)
                for user, count in numbers.items()
                if assign_key_to_parallel_operator(user, 128, 8) == hot.subtask
            )
        )
        assert [(-key.records, key.key_group, key.key) for key in hot.top_keys] == ranked[:3]
    assert counted.hot_subtasks
    both = skew_report(pa.table(data), ["user", "item"], 128, 8)
    assert both.distinct_keys == len(set(zip(data["user"], data["item"])))
    assert all(isinstance(key.key, tuple) for hot in both.hot_subtasks for key in hot.top_keys)


def test_a_report_says_whether_its_key_type_was_declared() -> None:
    keys = np.array(["a"])
    assert skew_report(keys, None, 128, 4).is_inferred
    assert not skew_report(keys, None, 128, 4, types.STRING).is_inferred


def test_keys_are_put_together_as_often_as_their_number_doubles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So each is counted a few times, however many there are."""
    group, sizes = _skew._grouped, []

    def spy(table: Any, names: list[str], summed: tuple[str, ...]) -> Any:
        sizes.append(table.num_rows)
        return group(table, names, summed)

    monkeypatch.setattr(_skew, "_AT_ONCE", 2)
    monkeypatch.setattr(_skew, "_grouped", spy)
    assert skew_report(np.arange(128), None, 128, 1).distinct_keys == 128
    assert sum(sizes) < 5 * 128  # 128 in pairs, then 2 + 6 + 14 + 30 + 62 + 126 + 128 together


@pytest.mark.parametrize("size", [1, 7, 100, 5_000, 2**31 - 1])
@pytest.mark.parametrize("at_once", [64, 1 << 20])
def test_batches(size: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """LocalKeyBy sends a record for each key of a batch."""
    monkeypatch.setattr(_skew, "_AT_ONCE", at_once)
    users = [None, *table(999)["user"]]
    report = skew_report({"user": pa.array(users)}, "user", 128, 4, batch_size=size, nulls="drop")
    sent: Counter[int] = Counter()
    for start in range(1, 1_000, size):  # the null is no record
        for user in set(users[start : start + size]):
            sent[assign_to_key_group(user, 128)] += 1
    assert report.sent is not None
    assert report.sent.weights == tuple(sent[group] for group in range(128))
    assert sum(report.load.weights) == 999
    assert (report.null_keys, report.batch_size) == (1, size)


def test_keys_of_as_many_records_stand_in_their_order() -> None:
    report = skew_report(pa.array([*"cabb", "ab", "c"]), None, 1, 1, top=3, subtask=0)
    assert report.detail is not None
    assert [key.key for key in report.detail.top_keys] == ["b", "c", "a"]


@pytest.mark.parametrize("at_once", [1, 2, 1 << 20])
def test_weights(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row stands for its records; one of none is not there."""
    monkeypatch.setattr(_skew, "_AT_ONCE", at_once)
    data = pa.table({"user": [*"abacd", None], "n": [5, 2**40, 7, 0, 1, 3]})
    report = skew_report(data, "user", 128, 1, weight="n", nulls="drop", subtask=0)
    assert report.detail is not None
    top = [(key.key, key.records) for key in report.detail.top_keys]
    assert top == [("b", 2**40), ("a", 12), ("d", 1)]
    assert (report.records, report.distinct_keys, report.null_keys) == (2**40 + 13, 3, 3)


def test_nothing() -> None:
    for empty in (np.array([], str), pa.array([], pa.list_(pa.int64()))):
        report = skew_report(empty, None, 128, 4, subtask=3)
        assert (report.diagnosis, report.records, report.distinct_keys) == ("even", 0, 0)
    nobody = {"a": pa.array([], pa.string()), "n": pa.array([], pa.int64())}
    assert skew_report(nobody, "a", 128, 4, weight="n").records == 0
    weightless = {"a": pa.array(["x"]), "n": pa.array([0])}
    assert skew_report(weightless, "a", 128, 4, weight="n").records == 0


def test_null_keys() -> None:
    data = {"user": pa.array(["a", None, None])}
    with pytest.raises(
        InvalidValueError, match="key must not be null, got 2 such rows, which Flink refuses"
    ):
        skew_report(data, "user", 128, 4)
    report = skew_report(data, "user", 128, 4, nulls="drop")
    assert (report.records, report.null_keys) == (1, 2)


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (pa.array([1, 1], pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
        (pa.array([2_000], pa.timestamp("ns")), dt.datetime(1970, 1, 1, 0, 0, 0, 2)),
        (
            pa.array([1_000], pa.timestamp("ns", "UTC")),
            dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.timezone.utc),
        ),
        (pa.array([5_000], pa.time64("ns")), dt.time(0, 0, 0, 5)),
        (pa.array([5], pa.time64("ns")), "00:00:00.000000005"),
        (pa.array([[5]], pa.list_(pa.time64("ns"))), ["00:00:00.000000005"]),
        (pa.array([2**38], pa.timestamp("s")), "10680-07-14 06:09:04"),
    ],
)
def test_times_that_python_does_not_have(array: Any, shown: object) -> None:
    """They are text, whether pandas is there or not."""
    report = skew_report(array, None, 128, 1, subtask=0)
    assert report.detail is not None
    [key] = report.detail.top_keys
    assert key.key == shown
    assert type(key.key) is type(shown)  # A Timestamp of pandas equals a datetime.


@pytest.mark.parametrize("key_type", [types.TUPLE(types.LONG), types.SQL_ROW("BIGINT")])
def test_a_column_is_the_only_field(key_type: types.KeyType) -> None:
    report = skew_report({"n": np.array([7, 7, 8])}, "n", 128, 1, key_type)
    assert (report.records, report.distinct_keys) == (3, 2)
    groups = {assign_to_key_group((n,), 128, key_type) for n in (7, 8)}
    assert {group for group, weight in enumerate(report.load.weights) if weight} == groups


@pytest.mark.parametrize(
    ("arrow_type", "digits"),
    [("decimal32", 9), ("decimal64", 18), ("decimal128", 38), ("decimal256", 76)],
)
def test_decimals_of_any_width(arrow_type: str, digits: int) -> None:
    """The greatest and the least one too."""
    if not hasattr(pa, arrow_type):
        pytest.skip("no narrow decimals in this Arrow")
    most = Decimal("9" * digits).scaleb(-2, Context(prec=digits))
    values = [most, most, most.copy_negate(), Decimal("1.50")]
    decimals = pa.array(values, getattr(pa, arrow_type)(digits, 2))
    report = skew_report(decimals, None, 128, 1, subtask=0)
    assert report.detail is not None
    counted = {key.key: key.records for key in report.detail.top_keys}
    assert counted == {most: 2, most.copy_negate(): 1, Decimal("1.50"): 1}


TABLE = pa.table([["a"], ["b"], [1], [-1], [2**62], [None], ["c"]], list("abcdefb"))


@pytest.mark.parametrize(
    ("error", "message", "arguments", "options"),
    [
        (InvalidTypeError, "df must be a table of pandas, Polars or Arrow", (5, "a", 8, 2), {}),
        (
            InvalidValueError,
            "key must be one column of df, of a, b, .* 'no'",
            (TABLE, "no", 8, 2),
            {},
        ),
        (
            InvalidValueError,
            "of int too long to print, None, got 'a'",
            ({10**5_000: [1], None: [2]}, "a", 8, 2),
            {},
        ),
        (InvalidValueError, "got two columns of that name", (TABLE, "b", 8, 2), {}),
        (InvalidTypeError, "key must be a str, got 5", (TABLE, 5, 8, 2), {}),
        (InvalidTypeError, "column 0 must be an array", (("a", "b"), None, 8, 2), {}),
        (InvalidValueError, "key must have a column", (TABLE, [], 8, 2), {}),
        (ParallelismError, "parallelism must be from 1 to 8", (TABLE, "a", 8, 9), {}),
        (InvalidValueError, "top must be from 1 to 1000", (TABLE, "a", 8, 2), {"top": 1001}),
        (InvalidValueError, "subtask must be from 0 to 1", (TABLE, "a", 8, 2), {"subtask": 2}),
        (InvalidValueError, "nulls must be", (TABLE, "a", 8, 2), {"nulls": "mask"}),
        (InvalidValueError, "batch_size must be from 1", (TABLE, "a", 8, 2), {"batch_size": 0}),
        (
            InvalidValueError,
            "batch_size and weight must not both",
            (TABLE, "a", 8, 2),
            {"batch_size": 1, "weight": "c"},
        ),
        (InvalidTypeError, "weight must be integers", (TABLE, "a", 8, 2), {"weight": "a"}),
        (
            InvalidValueError,
            "weight 0: it must be at least 0, got -1",
            (TABLE, "a", 8, 2),
            {"weight": "d"},
        ),
        (
            InvalidValueError,
            r"weight must have a sum below 2\^62",
            (TABLE, "a", 8, 2),
            {"weight": "e"},
        ),
        (InvalidTypeError, "weight must be integers", (TABLE, "a", 8, 2), {"weight": "f"}),
        (
            InvalidTypeError,
            "^key takes lists, but the array is of map<",
            (pa.array([], pa.map_(pa.string(), pa.int64())), None, 8, 2, types.LIST(types.LONG)),
            {},
        ),
        (
            InvalidTypeError,
            "weight must be an array",
            ({"a": pa.array(["x"]), "n": 5}, "a", 8, 2),
            {"weight": "n"},
        ),
    ],
)
def test_refusals(
    error: type[KeyGroupsError], message: str, arguments: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        skew_report(*arguments, **options)


def test_weights_that_do_not_fit() -> None:
    one = pa.array([1, None])
    with pytest.raises(InvalidValueError, match="weight must not be null, got 1 nulls"):
        skew_report({"a": pa.array(["x", "y"]), "n": one}, "a", 8, 2, weight="n")
    with pytest.raises(InvalidValueError, match="weight must be of the length of key, 1, got 2"):
        skew_report({"a": pa.array(["x"]), "n": pa.array([1, 2])}, "a", 8, 2, weight="n")
    assert math.isclose(skew_report({"a": pa.array(["x"])}, "a", 8, 2).imbalance, 2)


class NoTable:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ValueError("not today")


class OnlyBatch:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return pa.record_batch({"a": ["x"]}).__arrow_c_array__(requested_schema)


def test_what_says_it_is_a_table() -> None:
    assert skew_report(OnlyBatch(), "a", 8, 2).records == 1
    with pytest.raises(InvalidTypeError, match=r"df is no array that Arrow takes, .*: not today"):
        skew_report(NoTable(), "a", 8, 2)


@pytest.mark.extras
def test_pandas_and_polars() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    data = table(500) | {"n": list(range(500))}
    counted = skew_report(pa.table(data), ["user", "item"], 128, 4, batch_size=10)
    for frame in (pandas.DataFrame(data), polars.DataFrame(data)):
        assert skew_report(frame, ["user", "item"], 128, 4, batch_size=10) == counted
        assert skew_report(frame[["user", "item"]], None, 128, 4, batch_size=10) == counted
        of_users = skew_report(frame["user"], None, 128, 4)
        assert of_users == skew_report(frame, "user", 128, 4)
        weighed = skew_report(frame, "user", 128, 4, weight="n")
        assert weighed.records == 499 * 250
    with_null = polars.DataFrame({"user": ["a", None], "item": [1, 2]})
    assert skew_report(with_null, ["user", "item"], 128, 4).distinct_keys == 2
    assert skew_report(with_null, "user", 128, 4, nulls="drop").null_keys == 1
    twice = pandas.DataFrame([["a", "b"]], columns=["user", "user"])
    with pytest.raises(InvalidValueError, match="got two columns of that name"):
        skew_report(twice, "user", 128, 4)
