"""KeyGroupLoad: the weight of each subtask at any parallelism, and which one to choose."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.html_tables import Tables
from support.inside.answers import show_weight

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    KeyGroupRange,
    KeyGroupsError,
    ParallelismError,
    compute_operator_index_for_key_group,
)
from keygroups.load import Recommendation, evenness, heaviest_weights


def brute_force(weights: list[float], parallelism: int) -> list[Fraction]:
    """Give each key group's weight to its subtask, one after the other and exactly."""
    subtasks = [Fraction(0)] * parallelism
    for key_group, weight in enumerate(weights):
        subtask = compute_operator_index_for_key_group(len(weights), parallelism, key_group)
        subtasks[subtask] += Fraction(weight)
    return subtasks


def test_load_of_a_mapping() -> None:
    load = KeyGroupLoad(5, {4: 2, 1: 0.5})
    assert load == KeyGroupLoad(5, [0, 0.5, 0, 0, 2])
    assert KeyGroupLoad(5, MappingProxyType({4: 2, 1: 0.5})) == load
    assert KeyGroupLoad(3, {}).weights == (0, 0, 0)


def test_load_of_an_iterator() -> None:
    assert KeyGroupLoad(3, iter([1, 2, 3])).weights == (1, 2, 3)


def test_load_is_a_value() -> None:
    load = KeyGroupLoad(4, [5, 0.25, 1, 1])
    assert repr(load) == "<KeyGroupLoad: 7.25 in 4 of 4 key groups>"
    assert hash(load) == hash(KeyGroupLoad(4, (5, 0.25, 1, 1)))
    for same in (pickle.loads(pickle.dumps(load)), copy.deepcopy(load)):
        assert same == load
        assert same.per_subtask(2) == [5.25, 2]


def test_subtasks() -> None:
    """Ranges of 10 key groups for 3 subtasks: 0-3, 4-6, 7-9 (Flink's createKeyGroupPartitions)."""
    load = KeyGroupLoad(10, [1, 2, 3, 4, 0, 0, 0, 5, 6, 7])
    assert load.per_subtask(3) == [10, 0, 18]
    assert load.groups_per_subtask(3) == [4, 3, 3]
    assert load.idle_subtasks(3) == [1]
    assert load.idle_subtasks(1) == []
    assert load.imbalance(3) == 18 * 3 / 28
    assert load.weight_of(KeyGroupRange(2, 4)) == 7
    assert load.weight_of(KeyGroupRange.EMPTY) == 0
    assert load.weight_of([9, 0]) == 8


def test_ints_stay_exact_ints() -> None:
    """Floats would lose the 1: 2^53 + 1 is none."""
    load = KeyGroupLoad(3, [2**53, 1, 0])
    assert load.per_subtask(1) == [2**53 + 1]
    assert type(load.per_subtask(1)[0]) is int
    assert load.weight_of([0, 1]) == 2**53 + 1


def test_floats_are_rounded_once() -> None:
    """Added up one after the other, ten times 0.1 is 0.9999999999999999."""
    assert KeyGroupLoad(10, [0.1] * 10).per_subtask(1) == [1.0]
    assert KeyGroupLoad(3, [1e16, 1.0, 1.0]).per_subtask(1) == [1e16 + 2]
    assert KeyGroupLoad(3, [5e-324, 1e308, 5e-324]).per_subtask(3) == [5e-324, 1e308, 5e-324]


def test_a_load_of_nothing() -> None:
    load = KeyGroupLoad(4, [0, 0, 0, 0.0])
    assert load.imbalance(3) == 1.0
    assert load.idle_subtasks(2) == [0, 1]
    assert load.recommend(3, 3) == [
        Recommendation(
            3,
            1.0,
            "3 subtasks over 4 key groups: 1 get 2, 2 get 1, uneven key groups: at best 1.50 "
            "times the mean; no weight anywhere",
            0,
        )
    ]


def test_recommend_ranks_by_the_heaviest_subtask() -> None:
    """128 even key groups: 20, 21 and 22 subtasks get at most 7, 7 and 6 of them."""
    found = KeyGroupLoad(128, [1] * 128).recommend(20, 22)
    assert [(one.parallelism, one.heaviest_weight) for one in found] == [(22, 6), (20, 7)]
    assert [one.imbalance for one in found] == [6 * 22 / 128, 7 * 20 / 128]
    reason = (
        "20 subtasks over 128 key groups: 8 get 7, 12 get 6; subtask 0 has 1.09 times the mean"
    )
    assert found[1].reason == reason
    text = f"parallelism 20: the heaviest subtask has 7, imbalance 1.09 ({reason})"
    assert str(found[1]) == text


def test_recommend_of_one_hot_key() -> None:
    """Subtask 1 starts at 128 / parallelism rounded up: at key group 4 up to 42, then at 3."""
    found = KeyGroupLoad(128, {2: 8_388, 3: 192_751}).recommend(40, 80)
    assert [(one.parallelism, one.heaviest_weight) for one in found] == [
        (43, 192_751),
        (40, 201_139),
    ]
    assert found[0].imbalance > found[1].imbalance  # it does not tell the better one
    assert found.floor == "key group 3 alone has 95.8%: beyond 43 subtasks nothing gets better"


def test_recommend_takes_the_fewest_subtasks_for_the_same() -> None:
    """12 even key groups: 7 to 11 subtasks get at most 2 of them, and so do 6."""
    found = KeyGroupLoad(12, [1] * 12).recommend(1, 12)
    assert [one.parallelism for one in found] == [12, 6, 4, 3, 2, 1]
    assert found[0].reason == (
        "12 subtasks over 12 key groups: 1 each; subtask 0 has 1.00 times the mean"
    )
    assert found[5].reason == (
        "1 subtask over 12 key groups: 12 each; subtask 0 has 1.00 times the mean"
    )


def test_recommend_knows_the_hot_subtask() -> None:
    load = KeyGroupLoad(8, [1, 1, 1, 1, 1, 9, 1, 1])
    (one,) = load.recommend(4, 4)
    assert one.imbalance == 10 * 4 / 16
    assert one.reason == "4 subtasks over 8 key groups: 2 each; subtask 2 has 2.50 times the mean"
    shown = load.recommend(4, 4)._repr_html_()
    for name in ("parallelism", "imbalance", "heaviest subtask", "reason"):
        assert f">{name}</th>" in shown


def test_recommend_weighs_the_heaviest_subtask() -> None:
    """At 3 the first has the key groups 0 and 1, as at 2."""
    found = KeyGroupLoad(4, [5, 0.5, 1, 1]).recommend(1, 4)
    assert [(one.parallelism, one.heaviest_weight) for one in found] == [
        (4, 5.0),
        (2, 5.5),
        (1, 7.5),
    ]


def test_recommend_leaves_out_many_subtasks_for_little() -> None:
    """At 4 the heaviest has 4 % or 5 % less than at 2, and 6 % less is kept.

    Where a tenth of the imbalance is not saved it is kept too: 20 % more subtasks for 4 %.
    """
    for second, kept in ((0.2, [2]), (0.25, [2]), (0.3, [4, 2])):
        found = KeyGroupLoad(4, [5, second, 1, 1]).recommend(2, 4)
        assert [one.parallelism for one in found] == kept
    load = KeyGroupLoad(128, {2: 8_388, 3: 192_751})
    assert [one.parallelism for one in load.recommend(40, 43)] == [43, 40]
    assert [one.parallelism for one in load.recommend(32, 43)] == [32]


def test_recommend_does_not_go_to_the_top_of_its_range_for_nothing() -> None:
    """Even key groups with a little noise: 64 has 2 each, as the heaviest of up to 127 have."""
    load = KeyGroupLoad(128, [1000 + i * 7919 % 31 for i in range(128)])
    assert load.recommend(60, 100)[0].parallelism == 64
    heaviest = {p: max(load.per_subtask(p)) for p in range(60, 101)}
    assert heaviest[64] > min(heaviest[p] for p in range(65, 101))


def test_recommend_of_no_weight() -> None:
    """The heaviest has nothing at any parallelism, so the fewest are enough."""
    assert [one.parallelism for one in KeyGroupLoad(128, {}).recommend(3, 128)] == [3]


def test_floor_of_a_thousandth() -> None:
    """Which is not written as 0.1000%."""
    floor = KeyGroupLoad(2000, [2, 0] + [1] * 1998).recommend(1999, 2000).floor
    assert floor.startswith("key group 0 alone has 0.1%: ")


def test_floor_that_some_parallelism_reaches() -> None:
    """2 subtasks have the key groups [0, 5] and [6, 10]; 3 have [0, 3], [4, 7] and [8, 10]."""
    load = KeyGroupLoad(11, {5: 5, 0: 4, 8: 1})
    assert load.recommend(1, 11).floor == (
        "key group 5 alone has 50.0%: beyond 3 subtasks nothing gets better"
    )
    assert load.recommend(7, 11).floor == load.recommend(1, 11).floor
    assert (
        load.recommend(1, 3).floor == "key group 5 alone has 50.0%: beyond 2 subtasks none is even"
    )
    assert load.recommend(1, 2).floor == ""


def test_floor_that_none_reaches() -> None:
    """Key group 0 has a neighbour in its subtask at any parallelism below 8."""
    load = KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1])
    assert (
        load.recommend(1, 8).floor == "key group 0 alone has 41.7%: beyond 2 subtasks none is even"
    )
    assert KeyGroupLoad(2, [3, 1]).recommend(1, 2).floor == (
        "key group 0 alone has 75.0%: beyond 1 subtask none is even"
    )


def test_no_floor() -> None:
    assert KeyGroupLoad(128, [1] * 128).recommend(1, 128).floor == ""
    assert KeyGroupLoad(128, [0] * 128).recommend(1, 128).floor == ""


def test_floor_of_a_small_share() -> None:
    load = KeyGroupLoad(32768, [2] + [1] * 32767)
    assert load.recommend(32000, 32768).floor == (
        "key group 0 alone has 0.0061%: beyond 16384 subtasks none is even"
    )


def test_recommendations_as_text() -> None:
    found = KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1]).recommend(2, 3)
    assert str(found).splitlines() == [*map(str, found), found.floor]
    even = KeyGroupLoad(8, [1] * 8).recommend(2, 3)
    assert str(even).splitlines() == list(map(str, even))
    for same in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert same == found
        assert same.floor == found.floor


def test_evenness() -> None:
    """The divisors: 720 = 2^4 3^2 5 has 5*3*2 of them, 840 = 2^3 3 5 7 has 4*2*2*2."""
    assert evenness(128) == [2**i for i in range(8)]
    assert (len(evenness(720)), len(evenness(840))) == (30, 32)
    assert evenness(1) == [1]
    assert evenness(127) == [1, 127]
    assert evenness(32768) == [2**i for i in range(16)]


def test_even_parallelisms_share_the_key_groups_evenly() -> None:
    for max_parallelism in range(1, 100):
        load = KeyGroupLoad(max_parallelism, [1] * max_parallelism)
        parallelisms = range(1, max_parallelism + 1)
        even = [p for p in parallelisms if len(set(load.groups_per_subtask(p))) == 1]
        assert evenness(max_parallelism) == even


# --- laws --------------------------------------------------------------------------------------

amounts = st.integers(0, 2**70) | st.floats(0, 1e300)


@st.composite
def loads(draw: st.DrawFn) -> tuple[list[float], int]:
    weights = draw(st.lists(amounts, min_size=1, max_size=40))
    return weights, draw(st.integers(1, len(weights)))


@given(loads())
def test_load_agrees_with_brute_force(drawn: tuple[list[float], int]) -> None:
    weights, parallelism = drawn
    load = KeyGroupLoad(len(weights), weights)
    exact = brute_force(weights, parallelism)
    total = sum(exact)
    all_ints = all(isinstance(weight, int) for weight in weights)
    assert load.per_subtask(parallelism) == (exact if all_ints else list(map(float, exact)))
    assert load.idle_subtasks(parallelism) == [i for i, one in enumerate(exact) if one == 0]
    assert load.imbalance(parallelism) == (
        float(max(exact) * parallelism / total) if total else 1.0
    )
    sizes = [0] * parallelism
    for key_group in range(len(weights)):
        sizes[compute_operator_index_for_key_group(len(weights), parallelism, key_group)] += 1
    assert load.groups_per_subtask(parallelism) == sizes


weighted = st.lists(st.integers(0, 3) | st.integers(0, 50), min_size=1, max_size=40)
weights_of_all_kinds = weighted | st.lists(amounts, min_size=1, max_size=20)


@given(weights_of_all_kinds, st.data())
def test_recommend_ranks_by_brute_force(weights: list[float], data: st.DataObject) -> None:
    groups = len(weights)
    low = data.draw(st.integers(1, groups))
    high = data.draw(st.integers(low, groups))
    load = KeyGroupLoad(groups, weights)
    found = load.recommend(low, high)
    heaviest = {p: max(brute_force(weights, p)) for p in range(low, high + 1)}
    lightest = min(heaviest.values())
    assert found[0].heaviest_weight <= 1.0500001 * lightest
    # Each is better than all below it, and each that is so is there, unless one of these does
    # nearly as well.
    better: list[int] = []
    for p in heaviest:
        if all(heaviest[p] < heaviest[q] for q in range(low, p)) and not any(
            heaviest[q] <= heaviest[p] * 21 / 20 and heaviest[q] * q <= heaviest[p] * p * 9 / 10
            for q in better
        ):
            better.append(p)
    assert [one.parallelism for one in found] == better[::-1]
    for one in found:
        assert one.heaviest_weight == max(load.per_subtask(one.parallelism))
        assert one.imbalance == load.imbalance(one.parallelism)
        sizes = load.groups_per_subtask(one.parallelism)
        few, many = min(sizes), max(sizes)
        counted = f"{sizes.count(many)} get {many}, {sizes.count(few)} get {few}"
        assert (f"{few} each" if few == many else counted) in one.reason


@given(weights_of_all_kinds, st.data())
def test_the_floor_is_true_of_every_parallelism(weights: list[float], data: st.DataObject) -> None:
    groups = len(weights)
    low = data.draw(st.integers(1, groups))
    high = data.draw(st.integers(low, groups))
    loads = {p: brute_force(weights, p) for p in range(1, groups + 1)}
    heaviest, total = {p: max(loads[p]) for p in loads}, sum(loads[1])
    alone = Fraction(max(weights))
    reached = [p for p in range(1, high) if heaviest[p] == alone]
    found = KeyGroupLoad(groups, weights).recommend(low, high)
    floor = found.floor
    if alone * high <= total:
        assert floor == ""
        return
    text = re.fullmatch(
        r"key group (\d+) alone has (.+)%: beyond (\d+) subtasks? (.+)",
        floor,
    )
    assert text
    group, share, last = int(text[1]), float(text[2]), int(text[3])
    assert weights[group] == alone
    assert share == pytest.approx(float(100 * alone / total), abs=0.05001)
    assert last < high
    beyond = range(last + 1, groups + 1)
    if text[4] == "nothing gets better":
        assert last == min(reached)
        assert all(heaviest[p] >= heaviest[last] for p in beyond)
        assert all(heaviest[p] * p > heaviest[last] * last for p in beyond)
        top = found[0].parallelism
        assert last < low or top == last or heaviest[top] <= heaviest[last] * 21 / 20
    else:
        assert text[4] == "none is even"
        assert not reached
        assert all(heaviest[p] * p > total for p in beyond)
        assert alone * last <= total


@pytest.mark.parametrize("groups", [128, 131])
@pytest.mark.parametrize("power", [1, 3])
def test_heaviest_subtasks_of_many_key_groups(power: int, groups: int) -> None:
    """So many parallelisms are alike that all runs of key groups are put in order."""
    weights = [number**power * 7919 % 1009 for number in range(groups)]
    expected = []
    for parallelism in range(1, groups + 1):
        subtasks = [0] * parallelism
        for key_group, weight in enumerate(weights):
            subtasks[key_group * parallelism // groups] += weight
        expected.append(max(subtasks))
    assert heaviest_weights(KeyGroupLoad(groups, weights), 1, groups) == expected


def test_recommend_over_the_largest_job() -> None:
    """Where all are alike the heaviest has groups / parallelism of them, rounded up."""
    found = KeyGroupLoad(32768, [1] * 32768).recommend(1, 1000)
    sizes = {-(-32768 // parallelism): parallelism for parallelism in range(1000, 0, -1)}
    assert {one.heaviest_weight: one.parallelism for one in found} == sizes
    assert len(found) == len(sizes)


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "error", "says"),
    [
        ({4: 1}, InvalidValueError, "key group of weights must be from 0 to 3, got 4"),
        ({-1: 1}, InvalidValueError, "key group of weights must be from 0 to 3, got -1"),
        ({"1": 1}, InvalidTypeError, "key group of weights must be an int, got '1'"),
        ({True: 1}, InvalidTypeError, "key group of weights must be an int, got True"),
        ({1: -2}, InvalidValueError, "weight of key group 1 must be a finite number >= 0, got -2"),
        ({2: float("nan")}, InvalidValueError, "weight of key group 2 must be a finite number"),
        ({2: None}, InvalidTypeError, "weight of key group 2 must be a number, got None"),
        (7, InvalidTypeError, "weights must be an iterable of numbers, got 7"),
        (None, InvalidTypeError, "weights must be an iterable of numbers, got None"),
        ("abcd", InvalidTypeError, "weights must be an iterable of numbers, got 'abcd'"),
        ([1e308] * 4, InvalidValueError, "weights must have a sum within the range of a float"),
        ([10**400] * 4, InvalidValueError, "weights must have a sum within the range of a float"),
    ],
)
def test_weights(weights: Any, error: type[KeyGroupsError], says: str) -> None:
    with pytest.raises(error, match=says):
        KeyGroupLoad(4, weights)


BAD_PARALLELISMS: list[Any] = [0, -1, 5, True, 2.0, "3", None]


@pytest.mark.parametrize("value", BAD_PARALLELISMS, ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("parallelism", KeyGroupLoad(4, [1] * 4).per_subtask),
        ("parallelism", KeyGroupLoad(4, [1] * 4).imbalance),
        ("parallelism", KeyGroupLoad(4, [1] * 4).idle_subtasks),
        ("parallelism", KeyGroupLoad(4, [1] * 4).groups_per_subtask),
        ("low", lambda v: KeyGroupLoad(4, [1] * 4).recommend(v, 4)),
        ("high", lambda v: KeyGroupLoad(4, [1] * 4).recommend(1, v)),
    ],
)
def test_parallelism(name: str, call: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ParallelismError, match=f"^{name} must be"):
        call(value)


def test_low_above_high() -> None:
    with pytest.raises(ParallelismError) as caught:
        KeyGroupLoad(4, [1] * 4).recommend(3, 2)
    assert str(caught.value) == "low must be from 1 to 2 (high), got 3"


@pytest.mark.parametrize("value", [0, -1, 32769, True, 2.0, "3", None], ids=repr)
def test_evenness_of_no_max_parallelism(value: Any) -> None:
    with pytest.raises(ParallelismError, match="max_parallelism must be"):
        evenness(value)


@pytest.mark.parametrize("key_group", [-1, 4, True, 1.0, "1", None], ids=repr)
def test_weight_of_unknown_key_groups(key_group: Any) -> None:
    with pytest.raises(KeyGroupsError, match="key group must be"):
        KeyGroupLoad(4, [1] * 4).weight_of([0, key_group])


def test_weight_of_a_range_that_goes_beyond() -> None:
    with pytest.raises(InvalidValueError, match="key group must be from 0 to 3, got 4"):
        KeyGroupLoad(4, [1] * 4).weight_of(KeyGroupRange(2, 4))


def test_a_weight_is_shown_in_19_characters() -> None:
    assert show_weight(123_456_789_012_345) == "123,456,789,012,345"
    assert show_weight(1_234_567_890_123_456) == "1.23457e+15"
    assert [show_weight(weight) for weight in (12_345.67, 0.12345678)] == ["12,345.7", "0.123457"]


def test_the_largest_sum_is_that_of_a_float() -> None:
    largest = int(sys.float_info.max)
    assert KeyGroupLoad(2, [largest - 1, 1]).total == sys.float_info.max
    with pytest.raises(InvalidValueError, match="a sum within the range of a float"):
        KeyGroupLoad(2, [largest, 1])


def test_notebook_shows_ten_key_groups() -> None:
    page = Tables(KeyGroupLoad(12, range(12))._repr_html_())
    assert page.rows == [
        ["key group", "weight", "share"],
        *([f"{weight}", f"{weight}", f"{weight / 66:.1%}"] for weight in range(11, 1, -1)),
    ]
    assert Tables(KeyGroupLoad(1, [0])._repr_html_()).rows[1:] == [["0", "0", "0.0%"]]


def test_notebook_marks_parallelisms_of_one_and_a_half_times_the_mean() -> None:
    """As 3 of 4 in one of two subtasks are, and not 4 of 4 in the only one."""
    page = Tables(KeyGroupLoad(2, [3, 1]).recommend(1, 2)._repr_html_())
    assert [row[:3] for row in page.rows[1:]] == [["2", "3", "1.50"], ["1", "4", "1.00"]]
    assert [row[0] for row in page.marked] == ["2"]
    assert page.left == ["parallelism", "reason"]
