"""Which max parallelism suits some parallelisms, against counts of all of them by hand."""

from __future__ import annotations

import json
import math
import os
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bytes.sample_savepoints import NewPath
from support.html_tables import shown

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    RescalePlan,
    check_restore,
    compute_key_group_range_for_operator_index,
    suggest_max_parallelism,
)
from keygroups.cli import main
from keygroups.errors import ParallelismTypeError
from keygroups.load import KeyGroupLoad, evenness
from keygroups.max_parallelism import Suggestion, Suggestions
from keygroups.savepoint import SavepointWriter, ValueStateDescriptor
from keygroups.types import INT, LONG

DAILY = [6, 8, 10, 12, 15, 20, 24]


def imbalance(max_parallelism: int, parallelism: int) -> float:
    """Return the most key groups of a subtask over the mean, counted subtask by subtask."""
    sizes = [
        len(compute_key_group_range_for_operator_index(max_parallelism, parallelism, subtask))
        for subtask in range(parallelism)
    ]
    return max(sizes) * parallelism / max_parallelism


def test_the_smallest_that_all_divide_comes_first() -> None:
    """120, of which each of them is a divisor; below it there is none."""
    found = suggest_max_parallelism(DAILY)
    assert found[0] == Suggestion(120, 1.0, None, 960, 1200)
    assert next(groups for groups in range(24, 999) if {*DAILY} <= {*evenness(groups)}) == 120
    assert found.parallelisms == tuple(DAILY)
    assert (found.lowest, found.default) == (24, Suggestion(128, 1.125, 24, 1024, 1280))
    assert found == suggest_max_parallelism(iter([*DAILY, *DAILY]))


def test_growth() -> None:
    """Tenfold: 240, which 24 divides too; and 1.1 times 10 are 11, as floats a little more."""
    assert [one.max_parallelism for one in suggest_max_parallelism(24, 10)] == [240]
    assert suggest_max_parallelism(10, 1.1).lowest == 11
    assert suggest_max_parallelism([7, 10], 1.01).lowest == 11
    assert suggest_max_parallelism(24, 1).lowest == 24
    assert suggest_max_parallelism(32768).lowest == 32768


def test_parallelisms_that_share_nothing() -> None:
    """60 to 100 divide no max parallelism of Flink's: the most even is nearly so."""
    found = suggest_max_parallelism(range(60, 101))
    assert found[0].imbalance <= 1.05 < found[1].imbalance
    assert found[-1].max_parallelism == 100
    assert math.lcm(*range(60, 101)) > 32768


wanted_parallelisms = st.lists(st.integers(1, 60), min_size=1, max_size=5)


@pytest.mark.long
@given(wanted_parallelisms, st.sampled_from([1, 1.5, 3]))
def test_each_is_as_said_and_better_than_any_below(wanted: list[int], growth: float) -> None:
    found = suggest_max_parallelism(wanted, growth)
    assert found.lowest == math.ceil(max(wanted) * growth)
    for one in found:
        groups = one.max_parallelism
        worst = {parallelism: imbalance(groups, parallelism) for parallelism in wanted}
        assert one.imbalance == pytest.approx(max(worst.values()))
        if one.parallelism is None:
            assert one.imbalance == 1.0
        else:
            assert worst[one.parallelism] == pytest.approx(one.imbalance)
        assert one[3:] == (8 * groups, 10 * groups)
    ranked = [(one.max_parallelism, one.imbalance) for one in found]
    assert ranked == sorted(ranked, key=lambda both: (-both[0], both[1]))
    # None that is left out has both fewer key groups and a fifth less beyond the mean.
    for groups in range(found.lowest, min(found[0].max_parallelism, found.lowest + 50)):
        most = max(imbalance(groups, parallelism) for parallelism in wanted)
        below = min(worst for kept, worst in ranked if kept <= groups)
        assert most - 1 > 0.8 * (below - 1) - 1e-9 or (groups, most) in ranked or below <= 1.05
    multiple = math.lcm(*wanted) * -(-found.lowest // math.lcm(*wanted))
    if multiple <= 32768:
        assert ranked[0] == (multiple, 1.0)


def test_text_and_table() -> None:
    found = suggest_max_parallelism([7, 9], 8)
    assert str(found).splitlines() == [
        "for 7, 9 subtasks, with room for 72",
        "at worst: the heaviest subtask's key groups, in times the mean",
        "Flink's default is 128: 1.05 at 9",
        "max parallelism  at worst  of subtasks  _metadata bytes  hashmap bytes",
        "            126      1.00            -            1,008          1,260",
        "             81      1.04            7              648            810",
        "             77      1.05            9              616            770",
        "             72      1.07            7              576            720",
    ]
    assert [row[0] for row in shown(found).rows[1:]] == ["126", "81", "77", "72"]
    assert "above 128 each entry of state has a byte more" in str(suggest_max_parallelism(130))
    for wanted, is_said in ([60, 90], True), ([129], True), ([128], False):
        assert ("above 128 each entry" in str(suggest_max_parallelism(wanted))) is is_said
    many = str(suggest_max_parallelism(range(2, 12), 20))
    assert "for 2, 3, 4, 5, 6, 7, 8, 9 and 2 more subtasks, with room for 220" in many
    assert "Flink's default is 128: 1.05 at 9, without that room" in many
    assert "Flink's default is 128: even at all" in str(suggest_max_parallelism([4, 8]))
    assert Suggestions().lowest == 1
    just_enough = str(suggest_max_parallelism([8], 16))
    assert "with room for 128" in just_enough
    assert "without that room" not in just_enough
    assert "  2,001    1.0005  " in str(suggest_max_parallelism(7, 285.8))


def test_none_is_nearly_even() -> None:
    """Up to Flink's bound: 32,767 subtasks share 32,768 key groups, so one of them has two."""
    [only] = suggest_max_parallelism([32767, 32768])
    assert only[:3] == (32768, 2 * 32767 / 32768, 32767)


def test_none_is_above_the_bound_of_flink() -> None:
    """From 31,352 on, 32,769 is the first with a fifth less beyond the mean."""
    assert [one.max_parallelism for one in suggest_max_parallelism(20_000, 1.5676)] == [31_352]
    best = suggest_max_parallelism(16_384, 1.5)[0]
    assert (best.max_parallelism, best.imbalance) == (32_768, 1.0)


@pytest.mark.parametrize(
    ("wanted", "growth", "suggested"),
    [
        ([4, 6], 1, [12, 11, 10, 6]),
        ([3, 5], 1, [15, 14, 9, 5]),
        # 40 is a 20th above the mean, which is even enough: 41 is left out.
        ([21], 1.01, [42, 40, 39, 38, 36, 34, 32, 30, 28, 25, 22]),
        ([7] * 32_768, 1, [7]),
    ],
)
def test_all_that_is_suggested(wanted: list[int], growth: float, suggested: list[int]) -> None:
    """By hand: each has at most four fifths of what the one below it is beyond the mean."""
    found = suggest_max_parallelism(wanted, growth)
    assert [one.max_parallelism for one in found] == suggested


def test_the_default_is_that_of_the_largest_parallelism() -> None:
    """Of 100 Flink makes 256: one and a half times it, rounded up to a power of two."""
    assert suggest_max_parallelism([2, 100]).default == Suggestion(256, 1.171875, 100, 2048, 2560)


def test_suggestions_without_a_default() -> None:
    assert str(Suggestions(suggest_max_parallelism(4), [4], 4)).splitlines()[2].startswith("max")


def test_suggestions_as_a_data_frame() -> None:
    pytest.importorskip("pandas")
    frame = suggest_max_parallelism(DAILY).to_pandas()
    assert frame["max_parallelism"].tolist()[:2] == [120, 116]


def test_what_key_groups_cost() -> None:
    """An offset of 8 bytes each in `_metadata`; other numbers keep their size."""
    sizes = []
    for max_parallelism in (120, 32768):
        path = os.fspath(NewPath())
        with SavepointWriter(path) as writer:
            states = [ValueStateDescriptor("count", LONG)]
            by_id = writer.add_operator("by-id", INT, states, max_parallelism, 1)
            by_id.write("count", 5, 7)
        sizes.append(Path(path, "_metadata").stat().st_size)
    few, many = (suggest_max_parallelism(p, 1)[0].metadata_bytes for p in (120, 32768))
    assert sizes[1] - sizes[0] == many - few


# --- the command ---------------------------------------------------------------------------------


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", *map(str, DAILY)]) == 0
    assert capsys.readouterr().out == f"{suggest_max_parallelism(DAILY)}\n"
    assert main(["suggest", "6-8", "24", "--growth", "2.5", "--json"]) == 0
    found = suggest_max_parallelism([6, 7, 8, 24], 2.5)
    assert json.loads(capsys.readouterr().out) == {
        "parallelisms": [6, 7, 8, 24],
        "lowest": 60,
        "default": found.default and found.default._asdict(),
        "suggestions": [one._asdict() for one in found],
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["9-6"], "parallelism 9 must be at most 6, the last one"),
        (["0"], "parallelism must be from 1 to 32768"),
        (["6-40000"], "PARALLELISM must be from 1 to 32768 numbers, got more"),
        (["6-"], "must be an int, got ''"),
        (["a"], "must be an int, got 'a'"),
        (["6", "--growth", "0.9"], "growth must be from 1 to 5,461.33"),
        (["6", "--growth", "x"], "must be a number, got 'x'"),
        ([], "required"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["suggest", *arguments]) == 2
    assert says in capsys.readouterr().err


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parallelisms", "error", "says"),
    [
        ([], InvalidValueError, "parallelisms must be from 1 to 32768 numbers, got none"),
        (repeat(6), InvalidValueError, "parallelisms must be from 1 to 32768 numbers, got more"),
        ([6, 0], ParallelismError, "parallelism must be from 1 to 32768"),
        ([6, 32769], ParallelismError, "parallelism must be from 1 to 32768"),
        ([6, True], ParallelismTypeError, "parallelism must be an int, got True"),
        (True, ParallelismTypeError, "parallelism must be an int, got True"),
        (None, ParallelismTypeError, "parallelism must be an int, got None"),
        (6.0, ParallelismTypeError, "parallelism must be an int, got 6.0"),
        ("6", InvalidTypeError, "parallelisms must be an iterable of ints, got '6'"),
    ],
)
def test_bad_parallelisms(parallelisms: Any, error: type[KeyGroupsError], says: str) -> None:
    with pytest.raises(error, match=says):
        suggest_max_parallelism(parallelisms)


@pytest.mark.parametrize(
    ("growth", "error", "says"),
    [
        (0.99, ParallelismError, "growth must be from 1 to 1,365.33 .*, got 0.99"),
        (1366, ParallelismError, "growth must be from 1 to 1,365.33 .*, got 1366"),
        (float("nan"), ParallelismError, "growth must be from 1 to"),
        (float("inf"), ParallelismError, "growth must be from 1 to"),
        (10**400, ParallelismError, "growth must be from 1 to"),
        pytest.param(10**5000, ParallelismError, "got int too long to print", id="long"),
        ("2", InvalidTypeError, "growth must be a number, got '2'"),
        (True, InvalidTypeError, "growth must be a number, got True"),
    ],
)
def test_bad_growth(growth: Any, error: type[KeyGroupsError], says: str) -> None:
    with pytest.raises(error, match=says):
        suggest_max_parallelism(24, growth)


# --- a rescale above it --------------------------------------------------------------------------


@pytest.mark.parametrize("old_parallelism", [96, 128])
def test_a_rescale_above_the_max_parallelism_names_the_way_out(old_parallelism: int) -> None:
    """96 is even, as every max parallelism is; and no parallelism above it is."""
    says = "got 128: 96 is the most, and even; .*change_max_parallelism writes the savepoint with"
    with pytest.raises(ParallelismError, match=says):
        RescalePlan(96, old_parallelism, 128)
    with pytest.raises(ParallelismError, match=says):
        check_restore(96, 128, 96)
    assert evenness(96)[-1] == 96
    assert KeyGroupLoad(96, [1] * 96).imbalance(96) == 1.0
    with pytest.raises(ParallelismError) as caught:
        RescalePlan(96, 0, 96)
    assert str(caught.value) == "old_parallelism must be from 1 to 96 (max_parallelism), got 0"
