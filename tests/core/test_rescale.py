"""Rescale plans, their comparison with modulo, and what may be restored.

Ranges are those of real Flink 2.3.0, where not otherwise said: the ones written out here are
among the vectors, all of which are read too.
"""

from __future__ import annotations

import copy
import pickle
import re
from collections import defaultdict
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import lines
from support.html_tables import Tables

from keygroups import (
    AmbiguousKeyTypeError,
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    KeyGroupRange,
    KeyGroupsError,
    ParallelismError,
    RescalePlan,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    check_restore,
    compute_default_max_parallelism,
    compute_operator_index_for_key_group,
    hash_code,
    murmur_hash,
)
from keygroups.errors import RestoreWarning
from keygroups.rescale import ModuloComparison, RescalePiece
from keygroups.types import INT, LONG, STRING


def joined(shares: list[tuple[int, KeyGroupRange]]) -> list[int]:
    """Return the key groups of all shares, in the order of the subtasks."""
    return [key_group for _, groups in shares for key_group in groups]


# --- the cases of real Flink -------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_vectors_of_ranges(every: int) -> None:
    """What a subtask restores from any other parallelism is its range, and so is what it hands on.

    Lines of `ranges.jsonl` within bounds, at three other parallelisms.
    """
    counts: defaultdict[str, int] = defaultdict(int)
    for line in islice(lines("independent/ranges"), 0, None, every):
        mp, p = line["mp"], line["p"]
        subtask = line["op"] if "kg" in line else line["i"]
        if p > mp or not 0 <= subtask < p or not 0 <= line.get("kg", 0) < mp:
            counts["out of bounds"] += 1
            continue
        for other in {1, min(mp, p + 1), mp - mp // 3}:
            if max(p, other) > 1000 and counts["large"] >= 100:
                continue  # a few of the plans with thousands of shares are enough
            counts["large"] += max(p, other) > 1000
            restored = joined(RescalePlan(mp, other, p).restores_from(subtask))
            assert restored == joined(RescalePlan(mp, p, other).hands_to(subtask))
            if "kg" in line:
                assert line["kg"] in restored, line
            else:
                assert restored == list(range(line["start"], line["end"] + 1)), line
            counts["plans"] += 1
    print("ranges:", dict(counts))
    assert counts["plans"] > 20_000 / every


def test_vectors_of_key_group_partitions() -> None:
    count = 0
    for line in lines("independent/operator_state"):
        if line["fn"] == "createKeyGroupPartitions":
            count += 1
            plan = RescalePlan(line["key_groups"], 1, line["p"])
            ranges = [[groups.start_key_group, groups.end_key_group] for _, _, groups in plan]
            assert ranges == line["ranges"], line
    print("operator_state:", {"createKeyGroupPartitions": count})
    assert count == 6


def test_ten_key_groups_from_3_to_4() -> None:
    """Ranges 0-3 4-6 7-9 become 0-2 3-4 5-7 8-9."""
    plan = RescalePlan(10, 3, 4)
    assert [plan.restores_from(new) for new in range(4)] == [
        [(0, KeyGroupRange(0, 2))],
        [(0, KeyGroupRange(3, 3)), (1, KeyGroupRange(4, 4))],
        [(1, KeyGroupRange(5, 6)), (2, KeyGroupRange(7, 7))],
        [(2, KeyGroupRange(8, 9))],
    ]
    assert [plan.hands_to(old) for old in range(3)] == [
        [(0, KeyGroupRange(0, 2)), (1, KeyGroupRange(3, 3))],
        [(1, KeyGroupRange(4, 4)), (2, KeyGroupRange(5, 6))],
        [(2, KeyGroupRange(7, 7)), (3, KeyGroupRange(8, 9))],
    ]
    assert plan.moved_key_groups == (3, 5, 6, 8, 9)
    assert plan.kept_key_groups == (0, 1, 2, 4, 7)
    assert plan.moved_share == 0.5
    assert list(plan)[1] == RescalePiece(0, 1, KeyGroupRange(3, 3)) == (0, 1, KeyGroupRange(3, 3))
    assert [piece.moves for piece in plan] == [False, True, False, True, False, True]


def test_unchanged_parallelism_moves_nothing() -> None:
    plan = RescalePlan(128, 3, 3)
    assert plan.restores_from(1) == [(1, KeyGroupRange(43, 85))]
    assert (plan.moved_key_groups, plan.moved_share) == ((), 0.0)


def test_plan_is_a_value() -> None:
    plan = RescalePlan(128, 3, 4)
    assert repr(plan) == "RescalePlan(max_parallelism=128, old_parallelism=3, new_parallelism=4)"
    assert eval(repr(plan)) == plan
    assert plan != RescalePlan(128, 4, 3)
    assert {plan: 1}[RescalePlan(128, 3, 4)] == 1
    for same in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert same == plan
    with pytest.raises(AttributeError):
        plan.new_parallelism = 5  # type: ignore[misc]


def test_moved_weight() -> None:
    plan = RescalePlan(10, 3, 4)
    load = KeyGroupLoad(10, {3: 1, 4: 10, 5: 100, 6: 1000, 9: 0.5})
    assert plan.moved_weight(load) == 1101.5
    assert RescalePlan(10, 3, 3).moved_weight(load) == 0


# --- the table ---------------------------------------------------------------------------------


def test_table_has_every_piece() -> None:
    plan = RescalePlan(128, 7, 5)
    weights = [i * 3 for i in range(128)]
    head, weight, imbalance, _, *rows = plan.table(KeyGroupLoad(128, weights)).splitlines()
    moved = plan.moved_key_groups
    share, total = sum(weights[group] for group in moved), sum(weights)
    assert head == (
        f"128 key groups, parallelism 7 -> 5: {len(moved)} move "
        f"({len(moved) / 128:.1%}), {128 - len(moved)} stay"
    )
    assert weight == f"weight: {share:,} of {total:,} moves ({share / total:.1%})"
    assert re.fullmatch(r"imbalance: \d\.\d\d before, \d\.\d\d after", imbalance)
    for row, (old, new, groups) in zip(rows, plan, strict=True):
        found = row.replace(",", "").replace("[", "").replace("]", "").split()
        expected = [new, old, groups[0], groups[-1], len(groups), sum(weights[g] for g in groups)]
        assert found == [*map(str, expected), *(["moves"] if old != new else [])]
    assert str(plan) == plan.table()
    assert "weight" not in str(plan)


def test_table_leaves_out_the_middle() -> None:
    plan = RescalePlan(32768, 1000, 1024)
    lines = str(plan).splitlines()
    assert len(lines) == 2 + 20 + 1 + 20
    assert lines[22] == f"... {len(list(plan)) - 40} more in between ..."
    assert [int(line.split()[0]) for line in (lines[2], lines[-1])] == [0, 1023]
    # 40 fit, 41 do not.
    assert len(str(RescalePlan(128, 40, 40)).splitlines()) == 42
    assert "... 1 more in between ..." in str(RescalePlan(128, 41, 41))


WIDEST = RescalePlan(32768, 32767, 32768)


@pytest.mark.parametrize("weight", [0, 1, 10**14 + 1, 10**40, 1 / 3, 123456789.5, 1e300, 5e-324])
@pytest.mark.parametrize("plan", [RescalePlan(32768, 99, 128), RescalePlan(1, 1, 1)])
def test_tables_fit_80_columns(plan: RescalePlan, weight: float) -> None:
    table = plan.table(KeyGroupLoad(plan.max_parallelism, {0: weight}))
    numbers = ModuloComparison(WIDEST, weight, weight, weight, 32768, 65535, weight)
    assert max(map(len, [*table.splitlines(), *str(numbers).splitlines()])) <= 80


def test_the_widest_table_fits_80_columns() -> None:
    table = WIDEST.table(KeyGroupLoad(32768, [10**13] * 32768))
    assert "32768 key groups, parallelism 32767 -> 32768: " in table
    assert max(map(len, table.splitlines())) <= 80


# --- beside modulo -----------------------------------------------------------------------------


def test_the_classic_illustration() -> None:
    """Identity hash, keys 0..19, 10 key groups: the example of the Apache Flink blog of 2017.

    Modulo 3 and modulo 4 agree for 0 1 2 and 12 13 14 only; of the key groups five stay,
    with two keys each.
    """
    found = RescalePlan(10, 3, 4).compare_with_modulo(range(20), scramble=lambda code: code)
    assert (found.total, found.moved_by_modulo, found.moved_by_key_groups) == (20, 14, 10)
    assert (found.ranges_by_modulo, found.ranges_by_key_groups) == (0, 6)
    assert found.scattered_by_modulo == 20


def test_keys_are_counted_where_flink_sends_them() -> None:
    keys = [f"user-{i}" for i in range(500)]
    hashes = [murmur_hash(hash_code(key)) for key in keys]
    for old, new in ((3, 4), (4, 3), (16, 4), (5, 5)):
        found = RescalePlan(128, old, new).compare_with_modulo(iter(keys), STRING)
        assert found.total == 500
        assert found.moved_by_modulo == sum(h % old != h % new for h in hashes)
        assert found.moved_by_key_groups == sum(
            assign_key_to_parallel_operator(key, 128, old)
            != assign_key_to_parallel_operator(key, 128, new)
            for key in keys
        )
        # Only where the new parallelism divides the old does a state go whole to one subtask.
        whole = (old, new) in ((16, 4), (5, 5))
        assert found.scattered_by_modulo == (0 if whole else 500)
        assert found.ranges_by_modulo == (old if whole else 0)


def test_a_load_counts_like_its_keys() -> None:
    keys = list(range(1000))
    weights = [0] * 840
    for key in keys:
        weights[assign_to_key_group(key, 840)] += 1
    load = KeyGroupLoad(840, weights)
    for old, new in ((3, 4), (8, 7), (12, 6), (5, 5)):
        plan = RescalePlan(840, old, new)
        assert plan.compare_with_modulo(load) == plan.compare_with_modulo(keys)


def test_no_keys_at_all() -> None:
    found = RescalePlan(128, 3, 4).compare_with_modulo([])
    assert (found.total, found.scattered_by_modulo) == (0, 0)
    assert "0 (0.0%)" in str(found)


def test_a_load_that_cannot_tell() -> None:
    load = KeyGroupLoad(128, [1] * 128)
    for old, new in ((3, 4), (4, 3)):
        with pytest.raises(InvalidValueError, match=r"both parallelisms divide, .* got 128"):
            RescalePlan(128, old, new).compare_with_modulo(load)
    plan = RescalePlan(128, 2, 4)
    assert plan.compare_with_modulo(load).moved_by_modulo == 64
    with pytest.raises(InvalidTypeError, match="key_type and scramble must be left out"):
        plan.compare_with_modulo(load, INT)
    with pytest.raises(InvalidTypeError, match="key_type and scramble must be left out"):
        plan.compare_with_modulo(load, scramble=lambda code: code)


@pytest.mark.parametrize("keys", ["abc", b"abc", 5, None], ids=repr)
def test_keys(keys: Any) -> None:
    with pytest.raises(InvalidTypeError, match="keys must be an iterable of keys"):
        RescalePlan(128, 3, 4).compare_with_modulo(keys)


def test_keys_of_no_known_hash() -> None:
    plan = RescalePlan(128, 3, 4)
    with pytest.raises(AmbiguousKeyTypeError):
        plan.compare_with_modulo([1, -1])
    assert plan.compare_with_modulo([1, -1], LONG).total == 2
    with pytest.raises(InvalidValueError, match="what scramble gives must be >= 0, got -1"):
        plan.compare_with_modulo([-1], INT, scramble=lambda code: code)
    with pytest.raises(InvalidTypeError, match=r"what scramble gives must be an int, got 0\.5"):
        plan.compare_with_modulo([1], scramble=lambda code: code / 2)  # type: ignore[arg-type,return-value]


# --- restoring ---------------------------------------------------------------------------------


def test_unset_max_parallelism_keeps_that_of_the_savepoint() -> None:
    """Taken at 3, whose default is 128, and restored at 90, whose default would be 256."""
    assert compute_default_max_parallelism(3) == 128
    assert compute_default_max_parallelism(90) == 256
    with pytest.warns(RestoreWarning, match="^set max parallelism in the job, to 128: where"):
        assert check_restore(128, 90) == 128
    with pytest.warns(RestoreWarning, match="to 256"):
        assert check_restore(256, 3) == 256
    with pytest.warns(RestoreWarning) as caught:
        assert check_restore(128, 128, None) == 128
    assert [warning.filename for warning in caught] == [__file__]  # the caller's file


def test_the_same_max_parallelism_is_accepted() -> None:
    assert check_restore(720, 90, 720) == 720


def test_another_max_parallelism_is_refused() -> None:
    with pytest.raises(ParallelismError) as caught:
        check_restore(128, 90, 256)
    assert str(caught.value) == (
        "max_parallelism must be 128, that of the savepoint, got 256: "
        "keygroups.savepoint.change_max_parallelism writes a savepoint with another"
    )
    with pytest.raises(ParallelismError, match="max_parallelism must be 256"):
        check_restore(256, 90, 128)


def test_parallelism_above_the_savepoint_is_refused() -> None:
    for max_parallelism in (None, 128):
        with pytest.raises(ParallelismError) as caught:
            check_restore(128, 129, max_parallelism)
        assert str(caught.value).startswith(
            "parallelism must be from 1 to 128 (the max parallelism of the restored state), "
            "got 129: 128 is the most, and even"
        )


# --- laws --------------------------------------------------------------------------------------


@st.composite
def jobs(draw: st.DrawFn, parallelisms: int) -> tuple[int, ...]:
    max_parallelism = draw(st.integers(1, 200))
    return max_parallelism, *(draw(st.integers(1, max_parallelism)) for _ in range(parallelisms))


@given(jobs(2))
def test_every_key_group_is_in_one_piece(job: tuple[int, int, int]) -> None:
    max_parallelism, old, new = job
    plan = RescalePlan(*job)
    pieces = list(plan)
    assert [kg for piece in pieces for kg in piece.key_group_range] == list(range(max_parallelism))
    for piece in pieces:
        for key_group in piece.key_group_range:
            for parallelism, subtask in ((old, piece.old_subtask), (new, piece.new_subtask)):
                assert subtask == compute_operator_index_for_key_group(
                    max_parallelism, parallelism, key_group
                )
    # One piece a pair of subtasks: a new subtask reads one range of an old one's state.
    assert len({piece[:2] for piece in pieces}) == len(pieces)
    assert sorted(plan.moved_key_groups + plan.kept_key_groups) == list(range(max_parallelism))
    assert plan.moved_share == len(plan.moved_key_groups) / max_parallelism


@given(jobs(2))
def test_hands_to_is_restores_from_the_other_way_round(job: tuple[int, int, int]) -> None:
    max_parallelism, old, new = job
    plan, back = RescalePlan(max_parallelism, old, new), RescalePlan(max_parallelism, new, old)
    handed = [
        RescalePiece(subtask, to, groups)
        for subtask in range(old)
        for to, groups in plan.hands_to(subtask)
    ]
    assert handed == list(plan)
    assert [plan.hands_to(subtask) for subtask in range(old)] == [
        back.restores_from(subtask) for subtask in range(old)
    ]


def test_3_to_4_to_2() -> None:
    check_composition((128, 3, 4, 2))
    check_composition((10, 3, 4, 2))


@given(jobs(3))
def test_composition(job: tuple[int, int, int, int]) -> None:
    check_composition(job)


def check_composition(job: tuple[int, int, int, int]) -> None:
    """Two rescales in a row bring every key group where one from first to last does."""
    max_parallelism, first, second, third = job
    one, two, whole = (
        {
            key_group: (piece.old_subtask, piece.new_subtask)
            for piece in RescalePlan(max_parallelism, *step)
            for key_group in piece.key_group_range
        }
        for step in ((first, second), (second, third), (first, third))
    )
    for key_group in range(max_parallelism):
        assert one[key_group][1] == two[key_group][0]
        assert (one[key_group][0], two[key_group][1]) == whole[key_group]


@given(jobs(2))
def test_weight_is_conserved(job: tuple[int, int, int]) -> None:
    max_parallelism, _, new = job
    weights = [key_group * 7919 % 101 for key_group in range(max_parallelism)]
    load = KeyGroupLoad(max_parallelism, weights)
    plan = RescalePlan(*job)
    assert plan.moved_weight(load) + load.weight_of(plan.kept_key_groups) == sum(weights)
    for subtask, weight in enumerate(load.per_subtask(new)):
        assert weight == load.weight_of(joined(plan.restores_from(subtask)))


# --- bad input ---------------------------------------------------------------------------------

BAD_PARALLELISMS: list[Any] = [0, -1, 129, True, 2.0, "3", None]


@pytest.mark.parametrize("value", BAD_PARALLELISMS, ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("old_parallelism", lambda v: RescalePlan(128, v, 1)),
        ("new_parallelism", lambda v: RescalePlan(128, 1, v)),
        ("parallelism", lambda v: check_restore(128, v)),
    ],
)
def test_parallelism(name: str, call: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ParallelismError, match=f"^{name} must be"):
        call(value)


@pytest.mark.parametrize("value", [0, -1, 32769, True, 2.0, "3", None], ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("max_parallelism", lambda v: RescalePlan(v, 1, 1)),
        ("savepoint_max_parallelism", lambda v: check_restore(v, 1)),
    ],
)
def test_max_parallelism(name: str, call: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ParallelismError, match=f"^{name} must be"):
        call(value)


@pytest.mark.parametrize("value", [0, -1, 32769, True, 2.0, "3"], ids=repr)
def test_max_parallelism_to_restore_with(value: Any) -> None:
    with pytest.raises(ParallelismError, match=r"^max_parallelism must be"):
        check_restore(128, 1, value)


def test_a_max_parallelism_that_equals_that_of_the_savepoint_must_be_an_int() -> None:
    with pytest.raises(ParallelismError, match=r"^max_parallelism must be an int, got 128\.0"):
        check_restore(128, 1, 128.0)  # type: ignore[arg-type]  # a user may do so


def test_a_limit_and_a_scramble_are_named_where_they_are_refused() -> None:
    plan, wrong = RescalePlan(128, 3, 4), 5
    with pytest.raises(InvalidValueError, match=r"^limit must be from 2 to"):
        plan.table(limit=1)
    with pytest.raises(InvalidTypeError, match=r"^scramble must be callable, got 5"):
        plan.compare_with_modulo([1], scramble=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("subtask", [-1, 4, True, 1.0, "1", None], ids=repr)
def test_subtasks(subtask: Any) -> None:
    plan = RescalePlan(128, 4, 4)
    with pytest.raises(KeyGroupsError, match="new_subtask must be"):
        plan.restores_from(subtask)
    with pytest.raises(KeyGroupsError, match="old_subtask must be"):
        plan.hands_to(subtask)


def test_load_of_another_job() -> None:
    plan = RescalePlan(128, 2, 4)
    other = KeyGroupLoad(256, [1] * 256)
    for call in (plan.moved_weight, plan.table, plan.compare_with_modulo):
        with pytest.raises(InvalidValueError, match=r"load must have max_parallelism 128"):
            call(other)
    for call in (plan.moved_weight, plan.table):
        with pytest.raises(InvalidTypeError, match="load must be a KeyGroupLoad, got"):
            call([1] * 128)  # type: ignore[arg-type]


@pytest.mark.parametrize(("limit", "first", "last"), [(2, 1, 1), (3, 2, 1), (4, 2, 2), (5, 3, 2)])
def test_the_middle_of_a_table_is_left_out(limit: int, first: int, last: int) -> None:
    """Of an odd limit there is one more before it."""
    plan = RescalePlan(10, 3, 4)
    title, header, *rows = str(plan).splitlines()
    assert len(rows) == 6
    shown = [*rows[:first], f"... {6 - limit} more in between ...", *rows[-last:]]
    assert plan.table(limit=limit).splitlines() == [title, header, *shown]


def test_notebook_says_how_many_pieces_are_left_out() -> None:
    for parallelism, more in ((40, ""), (41, "; pieces left out in the middle: 1")):
        page = Tables(RescalePlan(128, 1, parallelism)._repr_html_())
        assert page.captions == [f"Which subtask restores what from which{more}"]
        assert len(page.rows) == 1 + 40


def test_columns_have_their_widths() -> None:
    """A weight of up to 19 characters does not move the others."""
    plan = RescalePlan(4, 2, 1)
    for weight in (1, 100_000_000_000_000):
        lines = plan.table(KeyGroupLoad(4, [weight] * 4)).splitlines()
        assert lines[3] == (
            "new subtask  old subtask      key groups   count               weight"
        )
