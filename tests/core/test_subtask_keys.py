"""Keys for chosen subtasks: the first ones in their order, for every subtask, or an error.

That Flink sends them there is asked of Flink itself in `test_flink_subtask_keys.py`; here they
are held against the plain search through `assign_key_to_parallel_operator`.
"""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.keys.parallelisms import GRID

from keygroups import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    SubtaskKeySelector,
    UnsupportedKeyTypeError,
    assign_key_to_parallel_operator,
    keys_for_subtasks,
)
from keygroups.subtask_keys import salted_key
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    HASHED,
    INT,
    LIST,
    LOCAL_DATE,
    LONG,
    MAP,
    NULL,
    PYFLINK,
    ROW,
    SHORT,
    SQL_ROW,
    STRING,
    TUPLE,
    UUID,
    KeyType,
)


def plain_search(
    order: Iterable[Any], max_parallelism: int, parallelism: int, key_type: KeyType, n: int = 1
) -> list[list[Any]]:
    """Return the first n of `order` for each subtask."""
    keys: list[list[Any]] = [[] for _ in range(parallelism)]
    for key in order:
        subtask = assign_key_to_parallel_operator(key, max_parallelism, parallelism, key_type)
        keys[subtask].append(key)
        if min(map(len, keys)) >= n:
            break
    return [found[:n] for found in keys]


@st.composite
def jobs(draw: st.DrawFn, limit: int = 100) -> tuple[int, int]:
    max_parallelism = draw(st.integers(1, 32768))
    return max_parallelism, draw(st.integers(1, min(max_parallelism, limit)))


# --- known answers --------------------------------------------------------------------------


def test_known_answer() -> None:
    """Flink sends these Integers to subtasks 0..4 and no smaller one to any of them."""
    assert keys_for_subtasks(128, 5) == [4, 9, 10, 0, 2]


def test_the_keys_that_one_would_take_reach_one_subtask() -> None:
    """Published: in Flink 2.3.0 the Integers 0 and 1 both reach subtask 1 of 2."""
    assert [assign_key_to_parallel_operator(key, 128, 2, INT) for key in (0, 1)] == [1, 1]
    keys = keys_for_subtasks(128, 2)
    assert [assign_key_to_parallel_operator(key, 128, 2, INT) for key in keys] == [0, 1]
    assert keys[1] == 0


def test_known_key_groups() -> None:
    """Key groups of "0".."7" and of 0..7 in Flink, where each key group is a subtask."""
    texts, ints = keys_for_subtasks(128, 128, STRING), keys_for_subtasks(128, 128)
    for key, key_group in enumerate([86, 54, 27, 33, 4, 79, 19, 115]):
        assert texts[key_group] == str(key)
    for key, key_group in enumerate([94, 86, 127, 113, 7, 126, 18]):
        assert ints[key_group] == key
    assert keys_for_subtasks(128, 128, n=2)[113] == [3, 7]  # the next one there is 7


def test_the_same_in_every_process() -> None:
    code = "import keygroups; print(keygroups.keys_for_subtasks(128, 40, keygroups.types.STRING))"
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == repr(keys_for_subtasks(128, 40, STRING))


# --- every subtask, the first key, in order -------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("key_type", [INT, LONG, STRING], ids=repr)
def test_grid(key_type: KeyType) -> None:
    for max_parallelism, parallelism in GRID:
        keys = keys_for_subtasks(max_parallelism, parallelism, key_type)
        assert [
            assign_key_to_parallel_operator(key, max_parallelism, parallelism, key_type)
            for key in keys
        ] == list(range(parallelism))


@pytest.mark.long
def test_a_subtask_for_each_key_group() -> None:
    keys = keys_for_subtasks(32768, 32768)
    assert [assign_key_to_parallel_operator(k, 32768, 32768, INT) for k in keys] == [*range(32768)]


@settings(deadline=None)
@given(jobs(), st.sampled_from([INT, LONG, BIG_INT]), st.integers(2, 4))
def test_integers_run_from_zero(job: tuple[int, int], key_type: KeyType, n: int) -> None:
    expected = plain_search(count(), *job, key_type, n)
    assert keys_for_subtasks(*job, key_type, n) == expected
    assert keys_for_subtasks(*job, key_type) == [first for first, *_ in expected]


@settings(deadline=None)
@given(jobs(), st.text())
def test_strings_run_behind_the_prefix(job: tuple[int, int], prefix: str) -> None:
    order = (prefix + str(number) for number in count())
    expected = [key for (key,) in plain_search(order, *job, STRING)]
    assert keys_for_subtasks(*job, STRING, prefix=prefix) == expected


@pytest.mark.parametrize(("key_type", "end"), [(BYTE, 2**7), (SHORT, 2**15)], ids=repr)
def test_small_integers_go_on_below_zero(key_type: KeyType, end: int) -> None:
    order = [*range(end), *range(-1, -end - 1, -1)]
    n = end * 2 // 3  # 2 subtasks: not enough from 0 up, and enough with the rest
    keys = keys_for_subtasks(128, 2, key_type, n)
    assert keys == plain_search(order, 128, 2, key_type, n)
    assert min(map(min, keys)) < 0


def test_booleans_run_from_false() -> None:
    order = [False, True]
    for max_parallelism in range(2, 100):
        subtasks = [assign_key_to_parallel_operator(key, max_parallelism, 2) for key in order]
        if subtasks[0] != subtasks[1]:
            expected = order if subtasks == [0, 1] else [True, False]
            assert keys_for_subtasks(max_parallelism, 2, BOOLEAN) == expected
            break
    assert keys_for_subtasks(128, 1, BOOLEAN) == [False]
    assert keys_for_subtasks(128, 1, BOOLEAN, n=2) == [[False, True]]


HIGHEST: dict[KeyType, int] = {
    BOOLEAN: 1,
    BYTE: 2**7 - 1,
    SHORT: 2**15 - 1,
    **dict.fromkeys((INT, HASHED), 2**31 - 1),
    **dict.fromkeys((LONG, BIG_INT, STRING), 2**63 - 1),
}
"""The last number of each key type that is counted, of Java's; for text the one of Long."""


@settings(deadline=None)
@given(jobs(), st.sampled_from([INT, LONG, BIG_INT, STRING]), st.integers(0, 2**31 - 5_000))
def test_a_search_starts_at_a_number(job: tuple[int, int], key_type: KeyType, start: int) -> None:
    order: Iterator[object] = count(start)
    if key_type is STRING:
        order = (f"{number}" for number in count(start))
    expected = plain_search(order, *job, key_type, 2)
    assert keys_for_subtasks(*job, key_type, 2, start=start) == expected


@pytest.mark.parametrize("key_type", HIGHEST, ids=repr)
def test_a_search_starts_within_the_key_type(key_type: KeyType) -> None:
    highest = HIGHEST[key_type]
    own: dict[KeyType, object] = {BOOLEAN: True, STRING: str(highest)}
    last = own.get(key_type, highest)
    assert keys_for_subtasks(128, 1, key_type, start=highest) == [last]
    assert keys_for_subtasks(128, 1, TUPLE(key_type), start=highest) == [(last,)]
    for start in (-1, highest + 1):
        says = f"start must be from 0 to {highest}, got {start}"
        with pytest.raises(InvalidValueError, match=says):
            keys_for_subtasks(128, 1, key_type, start=start)
        with pytest.raises(InvalidValueError, match=f"field 0 of .*: {says}"):
            keys_for_subtasks(128, 1, TUPLE(key_type), start=start)
    with pytest.raises(InvalidTypeError, match="start must be an int"):
        keys_for_subtasks(128, 1, key_type, start="1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("key_type", "highest", "after"),
    [
        (BYTE, 2**7 - 1, -1),
        (INT, 2**31 - 1, -1),
        (LONG, 2**63 - 1, -1),
        (BIG_INT, 2**63 - 1, 2**63),
    ],
    ids=str,
)
def test_a_search_goes_on_after_the_highest(key_type: KeyType, highest: int, after: int) -> None:
    [keys] = keys_for_subtasks(128, 1, key_type, 3, start=highest - 1)
    assert keys == [highest - 1, highest, after]


def test_the_field_that_runs_starts_at_the_number() -> None:
    keys = keys_for_subtasks(128, 3, TUPLE(STRING, INT), template=("a", ...), start=7)
    assert keys == [
        first
        for (first,) in plain_search(
            (("a", number) for number in count(7)), 128, 3, TUPLE(STRING, INT)
        )
    ]
    [(text, other)] = keys_for_subtasks(128, 1, TUPLE(STRING, INT), start=7)
    assert (text, other) == ("7", 0)  # the others keep their first value
    assert keys_for_subtasks(128, 1, SQL_ROW("TINYINT"), start=127) == [(127,)]
    assert keys_for_subtasks(128, 1, SQL_ROW("VARCHAR(3)"), start=999) == [("999",)]
    with pytest.raises(InvalidValueError, match=r"all 0 keys of type .* were tried"):
        keys_for_subtasks(128, 1, SQL_ROW("VARCHAR(3)"), start=1000)


DAY = dt.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("key_type", "template", "order"),
    [
        (TUPLE(INT), None, ((i,) for i in count())),
        (TUPLE(STRING, INT, BOOLEAN), None, ((str(i), 0, False) for i in count())),
        (ROW(LONG, STRING, kind="-D"), None, ((i, "0") for i in count())),
        (ROW(BIG_INT, SHORT, names=["a", "b"]), None, ((i, 0) for i in count())),
        (TUPLE(TUPLE(STRING, BYTE), INT), None, (((str(i), 0), 0) for i in count())),
        (TUPLE(STRING, INT), ("page", ...), (("page", i) for i in count())),
        (TUPLE(INT, LOCAL_DATE), (..., DAY), ((i, DAY) for i in count())),
        (ROW(NULL, DOUBLE, LONG), (None, None, ...), ((None, None, i) for i in count())),
        (TUPLE(INT, INT, INT), (..., 7, ...), ((i, 7, 0) for i in count())),
        (SQL_ROW("BIGINT"), None, ((i,) for i in count())),
        (SQL_ROW("STRING", "BOOLEAN", "SMALLINT"), None, ((str(i), False, 0) for i in count())),
        (SQL_ROW("DATE", "INT NOT NULL"), (DAY, ...), ((DAY, i) for i in count())),
        (SQL_ROW("DATE", "VARCHAR(3)"), (None, ...), ((None, str(i)) for i in count())),
        (PYFLINK(INT), None, count()),
        (PYFLINK(STRING), None, map(str, count())),
        (PYFLINK(TUPLE(LOCAL_DATE, LONG)), (DAY, ...), ((DAY, i) for i in count())),
        (ROW(LIST(INT), TUPLE(INT, INT)), ([1], ...), (([1], (i, 0)) for i in count())),
    ],
)
def test_the_first_free_field_runs(key_type: KeyType, template: Any, order: Iterable[Any]) -> None:
    expected = [key for (key,) in plain_search(order, 128, 5, key_type)]
    assert keys_for_subtasks(128, 5, key_type, template=template) == expected


def test_prefix_is_that_of_the_field_that_runs() -> None:
    key_type = TUPLE(INT, STRING, STRING)
    keys = keys_for_subtasks(128, 3, key_type, prefix="b", template=(7, ..., ...))
    order = ((7, f"b{number}", "0") for number in count())
    assert keys == [key for (key,) in plain_search(order, 128, 3, key_type)]


# --- the search ends ------------------------------------------------------------------------


def test_a_type_with_too_few_values() -> None:
    says = (
        r"all 256 keys of type BYTE were tried: \d+ subtasks got fewer than n = 1 of them, "
        r"subtask \d+ first \(max_parallelism 1000, parallelism 500\)"
    )
    with pytest.raises(InvalidValueError, match=says):
        keys_for_subtasks(1000, 500, BYTE)
    says = "all 2 keys of type BOOLEAN were tried: 1 subtasks got fewer than n = 3 of them"
    with pytest.raises(InvalidValueError, match=says):
        keys_for_subtasks(128, 1, BOOLEAN, n=3)
    says = r"all 10 keys of type SQL_ROW\('VARCHAR\(2\)'\) were tried"
    with pytest.raises(InvalidValueError, match=says):
        keys_for_subtasks(128, 20, SQL_ROW("VARCHAR(2)"), prefix="x")
    says = r"all 2 keys of type TUPLE\(BOOLEAN, INT\) were tried"
    with pytest.raises(InvalidValueError, match=says):
        keys_for_subtasks(128, 4, TUPLE(BOOLEAN, INT))


def test_a_hash_that_never_gets_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys in key group 94, which is that of 0 in Flink: subtask 1 of 2."""
    monkeypatch.setattr("keygroups.subtask_keys.hasher_of", lambda key_type: lambda key: 0)
    says = "the first 104 keys of type INT were tried: 1 subtasks .* of them, subtask 0 first"
    with pytest.raises(InvalidValueError, match=says):
        keys_for_subtasks(128, 2)
    with pytest.raises(InvalidValueError, match="the first 108 keys"):
        keys_for_subtasks(128, 2, n=2)
    with pytest.raises(InvalidValueError, match="the first 159 keys"):
        salted_key("page", 0, 128, 3)  # one subtask of 42 of 128 key groups: one in 3.05, times 52


# --- the selector ---------------------------------------------------------------------------


def test_selector_has_the_keys() -> None:
    selector = SubtaskKeySelector(128, 5)
    assert [selector.key_for(subtask) for subtask in range(5)] == [4, 9, 10, 0, 2]
    selector = SubtaskKeySelector(720, 3, TUPLE(STRING, STRING), prefix="x", template=("a", ...))
    keys = keys_for_subtasks(720, 3, TUPLE(STRING, STRING), prefix="x", template=("a", ...))
    assert selector.keys == tuple(keys)


def test_selector_is_a_value() -> None:
    selector = SubtaskKeySelector(128, 5, STRING, prefix="x")
    assert selector == SubtaskKeySelector(128, 5, STRING, prefix="x")
    assert selector != SubtaskKeySelector(128, 5, STRING)
    assert len({selector, copy.copy(selector), pickle.loads(pickle.dumps(selector))}) == 1
    assert pickle.loads(pickle.dumps(selector)).keys == selector.keys
    with pytest.raises(FrozenInstanceError):
        selector.parallelism = 6  # type: ignore[misc]


def test_values_are_shared_out_by_their_key_group_in_a_job_of_that_max_parallelism() -> None:
    """The key groups of "0".."7", "A" and of 0..7 in Flink at max parallelism 128."""
    selector = SubtaskKeySelector(32768, 128)
    known = dict(zip([*"01234567A"], [86, 54, 27, 33, 4, 79, 19, 115, 104]))
    for text, key_group in known.items():
        assert selector.key_for_value(text) == selector.key_for(key_group)
    for number, key_group in enumerate([94, 86, 127, 113, 7, 126, 18, 113]):
        assert selector.key_for_value(number) == selector.key_for(key_group)


@pytest.mark.parametrize("values", [range(50_000), [f"user-{i}" for i in range(50_000)]])
def test_values_are_shared_out_evenly(values: Iterable[object]) -> None:
    """5 subtasks over 128 key groups get 25 or 26 each by keyBy; here all get one fifth."""
    selector = SubtaskKeySelector(128, 5)
    counts = Counter(map(selector.key_for_value, values))
    assert counts.keys() == set(selector.keys)
    assert all(abs(share - 10_000) < 500 for share in counts.values())  # over 5 deviations


def test_a_value_may_need_its_type() -> None:
    selector = SubtaskKeySelector(128, 5)
    with pytest.raises(AmbiguousKeyTypeError):
        selector.key_for_value(-1)
    assert selector.key_for_value(-1, LONG) == selector.key_for_value(0)  # both hash to 0
    with pytest.raises(UnsupportedKeyTypeError):
        selector.key_for_value(object())
    with pytest.raises(InvalidValueError, match="key is None"):
        selector.key_for_value(None)


@pytest.mark.parametrize(
    ("subtask", "error", "says"),
    [
        (-1, InvalidValueError, "subtask must be from 0 to 4, got -1"),
        (5, InvalidValueError, "subtask must be from 0 to 4, got 5"),
        ("1", InvalidTypeError, "subtask must be an int, got '1'"),
        (True, InvalidTypeError, "subtask must be an int, got True"),
    ],
)
def test_selector_knows_no_such_subtask(subtask: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        SubtaskKeySelector(128, 5).key_for(subtask)


# --- salt -----------------------------------------------------------------------------------


@settings(deadline=None)
@given(jobs(50), st.text(), st.data())
def test_salts_are_the_smallest(job: tuple[int, int], key: str, data: st.DataObject) -> None:
    subtask = data.draw(st.integers(0, job[1] - 1))
    texts, pairs = (f"{key}#{salt}" for salt in count()), ((key, salt) for salt in count())
    for key_type, order in [(STRING, texts), (TUPLE(STRING, INT), pairs)]:
        expected = next(
            salted
            for salted in order
            if assign_key_to_parallel_operator(salted, *job, key_type) == subtask
        )
        assert salted_key(key, subtask, *job, key_type) == expected


def test_salts_of_other_types() -> None:
    day_and_salt = ROW(LOCAL_DATE, STRING)
    for subtask in range(4):
        for key_type, key in [(day_and_salt, DAY), (TUPLE(NULL, LONG), None)]:
            salted = salted_key(key, subtask, 128, 4, key_type)
            assert assign_key_to_parallel_operator(salted, 128, 4, key_type) == subtask
            assert salted == keys_for_subtasks(128, 4, key_type, template=(key, ...))[subtask]
        for wrapped in (PYFLINK(STRING), PYFLINK(TUPLE(STRING, INT)), SQL_ROW("STRING", "INT")):
            salted = salted_key("page", subtask, 128, 4, wrapped)
            assert assign_key_to_parallel_operator(salted, 128, 4, wrapped) == subtask
        text = salted_key("page", subtask, 128, 4, separator="")
        assert text == keys_for_subtasks(128, 4, STRING, prefix="page")[subtask]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("a", 2, 128, 2), InvalidValueError, "subtask must be from 0 to 1, got 2"),
        (("a", "0", 128, 2), InvalidTypeError, "subtask must be an int, got '0'"),
        (("a", 0, 128, 129), ParallelismError, "parallelism must be from 1 to 128"),
        ((1, 0, 128, 2), InvalidTypeError, "key of type STRING must be a str, got 1"),
        ((None, 0, 128, 2), InvalidValueError, "key is None"),
        (("a", 0, 128, 2, STRING, 1), InvalidTypeError, "separator must be a str, got 1"),
        ((1, 0, 128, 2, INT), InvalidTypeError, "STRING or have two fields.* got INT"),
        ((1, 0, 128, 2, TUPLE(INT)), InvalidTypeError, r"two fields.* got TUPLE\(INT\)"),
        ((1, 0, 128, 2, TUPLE(INT, INT, INT)), InvalidTypeError, "two fields"),
        ((1, 0, 128, 2, TUPLE(INT, UUID)), InvalidTypeError, "field 1 of .* got UUID"),
        (("a", 0, 128, 2, TUPLE(INT, INT)), InvalidTypeError, "field 0: key of type INT must"),
        ((..., 0, 128, 2, TUPLE(INT, INT)), InvalidTypeError, "field 0: key of type INT must"),
    ],
)
def test_bad_salts(arguments: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        salted_key(*arguments)


def test_two_salts_reach_two_subtasks_at_most() -> None:
    key_type = TUPLE(STRING, BOOLEAN)
    reached = {
        assign_key_to_parallel_operator(("page", salt), 128, 16, key_type)
        for salt in (False, True)
    }
    says = r"all 2 keys of type TUPLE\(STRING, BOOLEAN\) were tried: 1 subtasks"
    for subtask in set(range(16)) - reached:
        with pytest.raises(InvalidValueError, match=says):
            salted_key("page", subtask, 128, 16, key_type)
    for subtask in reached:
        assert salted_key("page", subtask, 128, 16, key_type)[0] == "page"


# --- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((0, 1), ParallelismError, "max_parallelism must be from 1 to 32768"),
        ((32769, 1), ParallelismError, "max_parallelism must be from 1 to 32768"),
        ((128, 0), ParallelismError, "parallelism must be from 1 to 128"),
        ((128, 129), ParallelismError, "parallelism must be from 1 to 128"),
        ((128.0, 2), ParallelismError, "max_parallelism must be an int, got 128.0"),
        ((128, 2, INT, 0), InvalidValueError, "n must be from 1 to 2147483647, got 0"),
        ((128, 2, INT, 1.0), InvalidTypeError, "n must be an int, got 1.0"),
        ((128, 2, INT, True), InvalidTypeError, "n must be an int, got True"),
        ((128, 2, "INT"), InvalidTypeError, "key_type must be .* got 'INT'"),
        ((128, 2, []), InvalidTypeError, r"key_type must be .* got \[\]"),
        ((128, 2, None), InvalidTypeError, "key_type must be .* got None"),
        ((128, 2, TUPLE), InvalidTypeError, "key_type must be .* got <class"),
        ((128, 2, DOUBLE), InvalidTypeError, "key_type must be .* got DOUBLE"),
        ((128, 2, CHAR), InvalidTypeError, "key_type must be .* got CHAR"),
        ((128, 2, BIG_DEC), InvalidTypeError, "key_type must be .* got BIG_DEC"),
        ((128, 2, UUID), InvalidTypeError, "key_type must be .* got UUID"),
        ((128, 2, NULL), InvalidTypeError, "key_type must be .* got NULL"),
        ((128, 2, LIST(INT)), InvalidTypeError, r"key_type must be .* got LIST\(INT\)"),
        ((128, 2, MAP(INT, INT)), InvalidTypeError, r"key_type must be .* got MAP\(INT, INT\)"),
        (
            (128, 2, TUPLE(INT, UUID)),
            InvalidTypeError,
            r"field 1 of TUPLE\(INT, UUID\): .* a value from template; got UUID",
        ),
        (
            (128, 2, SQL_ROW("INT", "CHAR(3)")),
            InvalidTypeError,
            r"field 1 of SQL_ROW\('INT', 'CHAR\(3\)'\): only .* got CHAR\(3\)",
        ),
        ((128, 2, SQL_ROW("DATE")), InvalidTypeError, "field 0 of .* got DATE"),
        ((128, 2, PYFLINK(DOUBLE)), InvalidTypeError, "key_type must be .* got DOUBLE"),
        ((128, 2, TUPLE()), InvalidValueError, r"a field of TUPLE\(\) free"),
    ],
)
def test_bad_arguments(arguments: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        keys_for_subtasks(*arguments)
    if len(arguments) < 4:
        with pytest.raises(error, match=says):
            SubtaskKeySelector(*arguments)


@pytest.mark.parametrize(
    ("key_type", "options", "error", "says"),
    [
        (INT, {"prefix": "a"}, InvalidValueError, "prefix must be '' .* got 'a' for INT"),
        (TUPLE(INT, STRING), {"prefix": "a"}, InvalidValueError, "prefix must be '' .* for INT"),
        (STRING, {"prefix": 1}, InvalidTypeError, "prefix must be a str, got 1"),
        (TUPLE(STRING), {"prefix": None}, InvalidTypeError, "prefix must be a str, got None"),
        (STRING, {"template": (...,)}, InvalidTypeError, "template must be left out .* STRING"),
        (PYFLINK(INT), {"template": (...,)}, InvalidTypeError, "template must be left out .* INT"),
        (SQL_ROW("INT"), {"prefix": "a"}, InvalidValueError, "field 0 of .* prefix must be ''"),
        (TUPLE(INT, INT), {"template": [...]}, InvalidTypeError, "template must be a tuple"),
        (TUPLE(INT, INT), {"template": (...,)}, InvalidValueError, "must have the 2 fields of"),
        (TUPLE(INT, INT), {"template": (1, 2)}, InvalidValueError, "free with ..., got .1, 2."),
        (TUPLE(INT, INT), {"template": ("a", ...)}, InvalidTypeError, "field 0: key of type INT"),
    ],
)
def test_bad_options(
    key_type: KeyType, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        keys_for_subtasks(128, 2, key_type, **options)
    with pytest.raises(error, match=says):
        SubtaskKeySelector(128, 2, key_type, **options)


def test_names_the_first_subtask_without_enough() -> None:
    with pytest.raises(InvalidValueError) as caught:
        keys_for_subtasks(300, 300, BYTE)
    reached = {assign_key_to_parallel_operator(k, 300, 300, BYTE) for k in range(-128, 128)}
    missed = sorted(set(range(300)) - reached)
    says = f"{len(missed)} subtasks got fewer than n = 1 of them, subtask {missed[0]} first"
    assert re.search(says, str(caught.value))
