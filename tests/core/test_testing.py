"""The assertions for tests of partitioning, and the strategies of keys."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    KeyGroupsError,
    ParallelismError,
    UnsupportedKeyTypeError,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    hash_code,
    keys_for_subtasks,
    trace_key,
    types,
)
from keygroups.testing import (
    assert_reaches_all,
    assert_spread,
    assert_subtask,
    keys,
    parallelisms,
)
from keygroups.types import (
    INT,
    LIST,
    LOCAL_DATE,
    LONG,
    MAP,
    OPTIONAL,
    PYFLINK,
    ROW,
    SET,
    SQL_ROW,
    STRING,
    TUPLE,
    KeyType,
)

ALL_SCALARS = [
    value
    for value in vars(types).values()
    if isinstance(value, types.ScalarType) and value is not types.NULL
]
KEY_TYPES: list[KeyType] = [
    *ALL_SCALARS,
    types.SQL_DATE("Europe/Berlin"),
    types.SQL_TIME("UTC"),
    types.SQL_TIMESTAMP("America/New_York"),
    TUPLE(STRING, INT),
    ROW(LONG, STRING, kind="-D", names=("a", "b")),
    LIST(types.DOUBLE),
    SET(TUPLE(STRING, types.BOOLEAN)),
    MAP(STRING, LIST(INT)),
    OPTIONAL(types.UUID),
    types.OBJECTS_HASH(STRING, types.BYTE_BUFFER),
    types.SCALA_TUPLE(STRING, LONG, types.DOUBLE, scala="2.12"),
    types.CASE_CLASS("Key", types.SCALA_OPTION(types.FLOAT, scala="2.13"), scala="2.13"),
    types.SCALA_EITHER(types.DOUBLE, TUPLE(STRING), scala="2.13"),
    PYFLINK(types.SQL_TIMESTAMP("UTC")),
    PYFLINK(LONG),
    PYFLINK(),
    SQL_ROW("BIGINT", "STRING NOT NULL", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "FLOAT"),
    SQL_ROW("DOUBLE", "DECIMAL(12, 2)", "DECIMAL(38, 10)", "CHAR(3)", "VARCHAR(40)", "DATE"),
    SQL_ROW("BINARY(2)", "BYTES", "TIME", "TIME(9)", "TIMESTAMP(0)", "TIMESTAMP(9)"),
    SQL_ROW("TIMESTAMP_LTZ(3)", "ROW<BIGINT, ARRAY<STRING NOT NULL>>"),
]


def failure(call: Any, *arguments: Any, **named: Any) -> str:
    """Return the text of an assertion, whose own lines pytest does not show."""
    with pytest.raises(AssertionError) as caught:
        call(*arguments, **named)
    assert {entry.path for entry in caught.traceback.filter(caught)} == {Path(__file__)}
    return str(caught.value)


def test_subtask_that_is_not_the_key_s() -> None:
    text = failure(assert_subtask, 42, 3, 128, 24, LONG)
    trace = trace_key(42, 128, 24, LONG)
    assert text == f"subtask {trace.subtask}, not 3\n{trace}"


@given(pair=parallelisms(), key=keys(STRING))
def test_subtask_of_any_key(pair: tuple[int, int], key: str) -> None:
    subtask = assign_key_to_parallel_operator(key, *pair)
    assert_subtask(key, subtask, *pair)
    if pair[1] > 1:
        failure(assert_subtask, key, (subtask + 1) % pair[1], *pair)


def test_what_is_no_subtask_is_no_failed_assertion() -> None:
    for subtask in (-1, 24, True, "3"):
        with pytest.raises(KeyGroupsError, match="subtask must be"):
            assert_subtask(42, subtask, 128, 24)  # type: ignore[arg-type]
    with pytest.raises(ParallelismError):
        assert_subtask(42, 0, 128, 129)


def test_spread_names_every_subtask_and_the_hot_key() -> None:
    key = keys_for_subtasks(128, 4, STRING)[2]
    records = [key] * 600 + [f"user-{number}" for number in range(400)]
    assert_spread(records[600:], 128, 4)
    text = failure(assert_spread, iter(records), 128, 4)
    counts = [0] * 4
    for one in records:
        counts[assign_key_to_parallel_operator(one, 128, 4)] += 1
    assert text.startswith(f"imbalance {max(counts) / 250:.2f} is above max_imbalance 1.5\n")
    assert "one hot key" in text
    assert repr(key) in text
    rows = [line.split()[:2] for line in text.splitlines() if line[:8].strip().isdigit()]
    assert rows[:4] == [[str(i), str(count)] for i, count in enumerate(counts)]


def test_spread_names_the_three_hottest_keys() -> None:
    hot = keys_for_subtasks(128, 4, STRING, n=4)[2]
    records = [key for key, count in zip(hot, (100, 300, 200, 99)) for _ in range(count)]
    text = failure(assert_spread, records, 128, 4)
    places = [text.find(repr(key)) for key in hot]
    assert 0 < places[1] < places[2] < places[0]
    assert places[3] == -1
    shares = [300 / 699, 200 / 699, 100 / 699]  # shares of the subtask's records
    assert re.findall(r"^ +\d+ +(\S+%) +\d+  '", text, re.MULTILINE) == [
        f"{share:.1%}" for share in shares
    ]


def test_spread_names_the_hot_keys_above_the_limit_alone() -> None:
    """Twice the mean is hot here, and one and a half times is not."""
    one_each = keys_for_subtasks(128, 4, STRING)
    records = [key for key, count in zip(one_each, (8, 6, 1, 1)) for _ in range(count)]
    text = failure(assert_spread, records, 128, 4)
    assert repr(one_each[0]) in text
    assert repr(one_each[1]) not in text


def test_spread_over_uneven_key_groups() -> None:
    """What is little more than they give by themselves is chance, and no cause of its own."""
    of_group: dict[int, int] = {}
    for key in range(100):
        of_group.setdefault(assign_to_key_group(key, 5, LONG), key)
    counts = (21, 21, 20, 20, 20)  # 62 of 102 are 1.2157 times the mean, the ranges give 1.2
    records = [of_group[group] for group, count in enumerate(counts) for _ in range(count)]
    lines = failure(assert_spread, records, 5, 2, 1.1, LONG).splitlines()
    assert lines[1] == "uneven key groups: the heaviest of 2 subtasks has 1.22 times the mean"
    assert lines[2].startswith("remedy: 1 subtask has 3 key groups, 1 has 2: at best 1.20 times ")
    assert "subtask 0: uneven key groups" in lines


def test_spread_says_that_a_type_is_inferred() -> None:
    """Of a tuple, which may be a key of other types."""
    for key_type in (None, TUPLE(STRING)):
        text = failure(assert_spread, [("a",)], 128, 4, key_type=key_type)
        assert ("inferred" in text) == (key_type is None)


def test_spread_below_what_a_report_calls_hot() -> None:
    records = [*range(1000)]
    counts = [0] * 24
    for one in records:
        counts[assign_key_to_parallel_operator(one, 720, 24, LONG)] += 1
    imbalance = max(counts) * 24 / 1000
    assert 1.01 < imbalance < 1.5
    assert_spread(records, 720, 24, imbalance, key_type=LONG)
    text = failure(assert_spread, records, 720, 24, 1.01, LONG)
    assert f"subtask {counts.index(max(counts))}: many keys unluckily together" in text
    assert "1,000 distinct keys of type LONG" in text


@pytest.mark.parametrize(
    ("records", "key_type", "distinct"),
    [
        ([[1], [1], [2]], LIST(INT), 2),  # not hashable
        ([0.0, -0.0, 0.0], None, 2),  # equal in Python alone
        ([float("nan"), float("nan")], None, 1),  # equal in Java alone
        ([1, 1.0, True], None, 3),
    ],
)
def test_spread_counts_the_keys_of_java(
    records: list[Any], key_type: KeyType | None, distinct: int
) -> None:
    text = failure(assert_spread, records, 4096, 4096, key_type=key_type)
    assert f"{len(records)} records, {distinct} distinct keys" in text


def test_spread_takes_a_limit_of_numpy() -> None:
    np = pytest.importorskip("numpy")
    for limit in (np.float32(1.5), np.float64(1.5), np.int8(2)):
        assert_spread(range(1000), 128, 4, limit)
        assert failure(assert_spread, [1], 128, 4, limit).startswith("imbalance 4.00 is above max")


@pytest.mark.parametrize("limit", [0.99, float("inf"), float("nan"), True, "2", None, [1]])
def test_spread_refuses_a_limit(limit: Any) -> None:
    with pytest.raises(KeyGroupsError, match="max_imbalance must be a"):
        assert_spread([1], 128, 2, limit)


def test_spread_of_no_keys_shows_nothing() -> None:
    with pytest.raises(InvalidValueError, match="keys must hold at least one key"):
        assert_spread([], 128, 2)
    for check in (assert_spread, assert_reaches_all):
        with pytest.raises(InvalidTypeError, match="keys must be an iterable of keys"):
            check("text", 128, 2)


def test_reaches_all_names_the_idle_and_a_key_for_each() -> None:
    assert_reaches_all(keys_for_subtasks(128, 24, STRING), 128, 24)
    words = ["a", "b"]
    text = failure(assert_reaches_all, words, 128, 5)
    reached = {assign_key_to_parallel_operator(word, 128, 5) for word in words}
    idle = sorted({*range(5)} - reached)
    ways = keys_for_subtasks(128, 5, STRING)
    assert text == (
        f"{len(idle)} of 5 subtasks get no key: {', '.join(map(str, idle))}\nof type STRING, "
        + ", ".join(f"{ways[subtask]!r} reaches subtask {subtask}" for subtask in idle)
    )
    for subtask in idle:
        assert_subtask(ways[subtask], subtask, 128, 5)


def test_reaches_all_says_when_it_knows_no_keys() -> None:
    text = failure(assert_reaches_all, [], 128, 100)
    assert text.startswith("100 of 100 subtasks get no key: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...\n")
    assert text.endswith("\nthere are no keys")
    text = failure(assert_reaches_all, [], 128, 10)
    assert text == "10 of 10 subtasks get no key: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9\nthere are no keys"
    assert failure(assert_reaches_all, [], 128, 11, STRING).count(" reaches subtask ") == 10
    text = failure(assert_reaches_all, [], 128, 2, LOCAL_DATE)
    assert "\nno keys for them are known: " in text
    assert "LOCAL_DATE" in text


def test_reaches_all_reads_no_further_than_it_must() -> None:
    def endless() -> Any:
        yield from range(100)
        raise RuntimeError

    assert_reaches_all(endless(), 128, 4)


@pytest.mark.parametrize("key_type", KEY_TYPES, ids=repr)
def test_keys_have_a_hash(key_type: KeyType) -> None:
    @given(keys(key_type))
    @settings(max_examples=25, database=None, suppress_health_check=[HealthCheck.too_slow])
    def has_hash(key: Any) -> None:
        hash_code(key, key_type)

    has_hash()


@pytest.mark.parametrize(
    ("key_type", "bits"), [(types.BYTE, 8), (types.SHORT, 16), (INT, 32), (LONG, 64)]
)
def test_keys_are_from_one_end_of_the_type_to_the_other(key_type: KeyType, bits: int) -> None:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    often = settings(max_examples=1000, database=None)
    assert find(keys(key_type), lambda key: key <= low, settings=often) == low
    assert find(keys(key_type), lambda key: key >= high, settings=often) == high


@pytest.mark.parametrize(
    ("key_type", "is_so"),
    [
        (types.SQL_DATE("UTC"), lambda key: key.year < 1800),
        (types.SQL_TIMESTAMP("UTC"), lambda key: key.year < 1800),
        # The last digit that a java.sql.Time has, and that a TIME and a TIMESTAMP keep.
        (types.SQL_TIME("UTC"), lambda key: key.microsecond % 10_000),
        (SQL_ROW("TIME(9) NOT NULL"), lambda key: key[0].microsecond % 10_000),
        (SQL_ROW("TIMESTAMP(9) NOT NULL"), lambda key: key[0].microsecond % 10),
        (SQL_ROW("TIMESTAMP_LTZ(9) NOT NULL"), lambda key: key[0].microsecond % 10),
        (SQL_ROW("DECIMAL(4, 2) NOT NULL"), lambda key: abs(key[0]) == Decimal("99.99")),
    ],
)
def test_keys_go_as_far_as_their_type(key_type: KeyType, is_so: Any) -> None:
    often = settings(max_examples=1000, database=None, phases=[Phase.generate])
    hash_code(find(keys(key_type), is_so, settings=often), key_type)


@pytest.mark.long
@pytest.mark.parametrize("exponents", [range(-(2**30), -60), range(61, 2**30 + 1)], ids=str)
def test_decimals_are_small_and_large(exponents: range) -> None:
    often = settings(max_examples=1000, database=None)
    decimals = keys(types.BIG_DEC)
    found = find(decimals, lambda key: key.as_tuple().exponent in exponents, settings=often)
    hash_code(found, types.BIG_DEC)


def test_no_key_is_at_a_change_of_the_clock() -> None:
    key_type, gap = types.SQL_TIMESTAMP("Europe/Berlin"), dt.datetime(2020, 3, 29, 2, 30)
    with pytest.raises(InvalidValueError):
        hash_code(gap, key_type)
    near = st.just(gap) | st.just(dt.datetime(2020, 3, 29, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keygroups.testing._strategies.values", lambda key_type: near)
        strategy = keys(key_type)
    assert find(strategy, lambda key: True) == dt.datetime(2020, 3, 29, 4)
    with pytest.raises(NoSuchExample):
        find(strategy, lambda key: key == gap)


def test_fields_may_be_null_where_the_type_allows_it() -> None:
    assert find(keys(TUPLE(STRING)), lambda key: key[0] is None) == (None,)
    cents = keys(SQL_ROW("DECIMAL(4, 2) NOT NULL"))
    assert find(cents, lambda key: key[0] % 1 > 0) == (Decimal("0.01"),)
    often = settings(max_examples=200, database=None)
    with pytest.raises(NoSuchExample):
        find(keys(SQL_ROW("INT NOT NULL")), lambda key: key[0] is None, settings=often)


@pytest.mark.parametrize("key_type", [SET(LIST(INT)), MAP(TUPLE(MAP(INT, INT)), INT)], ids=repr)
def test_keys_that_python_cannot_hold(key_type: KeyType) -> None:
    with pytest.raises(UnsupportedKeyTypeError, match="has no keys in Python"):
        keys(key_type)


@pytest.mark.parametrize("key_type", ["STRING", None, str, 5, []])
def test_keys_of_what_is_no_key_type(key_type: Any) -> None:
    with pytest.raises(InvalidTypeError, match="key_type must be"):
        keys(key_type)


@given(parallelisms(), st.data())
def test_parallelisms_are_legal(pair: tuple[int, int], data: st.DataObject) -> None:
    max_parallelism, parallelism = pair
    assert 1 <= parallelism <= max_parallelism <= 32768


@pytest.mark.long
def test_parallelisms_shrink_and_reach_the_bound() -> None:
    often = settings(max_examples=2_000, database=None)
    assert find(parallelisms(), lambda pair: True, settings=often) == (1, 1)
    most = find(parallelisms(), lambda pair: pair[0] == 32768, settings=often)
    assert most == (32768, 1)


def test_strategies_without_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.partition(".")[0] == "hypothesis" or name == "keygroups.testing._strategies":
            monkeypatch.setitem(sys.modules, name, None)
    for make in (lambda: keys(INT), parallelisms):
        with pytest.raises(ImportError, match="pip install hypothesis"):
            make()
    assert_subtask("hello", 0, 128, 3)


def test_import_needs_no_hypothesis() -> None:
    code = "import sys, keygroups.testing; print('hypothesis' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


@pytest.mark.long
def test_pytest_shows_the_line_of_the_user(tmp_path: Path) -> None:
    """What helps: neither the library's lines, nor a comparison of numbers without a reason."""
    test = tmp_path / "test_mine.py"
    test.write_text(
        "from keygroups import testing\n\n\n"
        "def test_mine():\n    testing.assert_subtask('hello', 2, 128, 3)\n\n\n"
        "def test_spread():\n    testing.assert_spread(['a'], 128, 3)\n\n\n"
        "def test_all():\n    testing.assert_reaches_all(['a'], 128, 3)\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert run.returncode == 1
    assert "key group    35 = 1715862179 % 128" in run.stdout
    assert run.stdout.count("test_mine.py:") >= 3
    assert "keygroups/testing.py" not in run.stdout.replace("\\", "/")


def test_load_of_the_message_is_that_of_the_keys() -> None:
    words = [f"w{number}" for number in range(50)]
    weights = [0] * 128
    for word in words:
        weights[trace_key(word, 128, 7).key_group] += 1
    imbalance = KeyGroupLoad(128, weights).imbalance(7)
    assert f"imbalance {imbalance:.2f} " in failure(assert_spread, words, 128, 7, 1.0)
