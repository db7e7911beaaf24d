"""What the ranges of key groups do to a subtask, and what its keys do: alike on every surface.

Expected ranges are those of Flink's KeyGroupRangeAssignment, added up key group by key group.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from support.html_tables import Tables, shown
from support.inside.answers import SkewQuestion

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    KeyGroupsError,
    ParallelismError,
    RescalePlan,
    SubtaskCounts,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
)
from keygroups.cli import main
from keygroups.job import Job, SubtaskReads, Vertex, VertexSkew
from keygroups.load import evenness
from keygroups.reports import RescaleReport, SkewReport
from keygroups.skew import ALIKE, Cause, excess_shares
from keygroups.testing import assert_spread
from keygroups.types import LONG

UNEVEN = "uneven key groups"
KEYS = "uneven keys"
HOT_KEY, FEW, UNLUCKY = "one hot key", "too few keys", "many keys unluckily together"
SIZES = [(128, 128), (128, 64), (128, 24), (128, 85), (128, 90), (128, 96), (128, 100)]
SIZES += [(256, 171), (512, 240), (2048, 240), (10, 8)]


def subtask_of(max_parallelism: int, parallelism: int) -> list[int]:
    return [
        compute_operator_index_for_key_group(max_parallelism, parallelism, group)
        for group in range(max_parallelism)
    ]


def at_best(max_parallelism: int, parallelism: int) -> float:
    """Return the heaviest subtask over the mean, were all key groups alike."""
    sizes = Counter(subtask_of(max_parallelism, parallelism))
    return max(sizes.values()) * parallelism / max_parallelism


def group_of_a_subtask(max_parallelism: int, parallelism: int, most: bool) -> int:
    """Return a key group of a subtask with the most of them, or with the fewest."""
    owners = subtask_of(max_parallelism, parallelism)
    sizes = Counter(owners)
    wanted = (max if most else min)(sizes.values())
    return next(group for group, owner in enumerate(owners) if sizes[owner] == wanted)


def counted(
    keys: dict[int, list[int]], max_parallelism: int, parallelism: int, asked: int | None = None
) -> SkewReport:
    """Report keys that have so many records each, by their key group."""
    owners = subtask_of(max_parallelism, parallelism)

    def top_keys_of(wanted: list[bool]) -> Iterator[tuple[int, int, int, Any]]:
        for group, records in keys.items():
            if wanted[owners[group]]:
                yield from ((owners[group], group, n, group * 1000) for n in records)

    def most_first(wanted: list[bool]) -> list[tuple[int, int, int, Any]]:
        return sorted(top_keys_of(wanted), key=lambda key: (key[0], -key[2]))

    groups = [keys.get(group, []) for group in range(max_parallelism)]
    question = SkewQuestion(max_parallelism, parallelism, 3, None, asked)
    records, distinct = [*map(sum, groups)], [*map(len, groups)]
    return question.report(LONG, False, records, distinct, [], 0, most_first)


def vertex_of(max_parallelism: int, counts: list[int]) -> Vertex:
    subtasks = tuple(SubtaskReads(i, "RUNNING", count, None) for i, count in enumerate(counts))
    sizes = (len(counts), max_parallelism)
    return Vertex("0" * 32, "by-user", "RUNNING", *sizes, True, subtasks)


def job_skew(max_parallelism: int, counts: list[int]) -> VertexSkew:
    vertex = vertex_of(max_parallelism, counts)
    return Job("http://u", "0" * 32, "clicks", "RUNNING", (vertex,)).skew(vertex)


# --- the table: which keys, and what each surface names ------------------------------------------


def even(max_parallelism: int, parallelism: int) -> dict[int, list[int]]:
    return {group: [10] * 10 for group in range(max_parallelism)}


def one_hot_key(max_parallelism: int, parallelism: int) -> dict[int, list[int]]:
    """A key as heavy as three subtasks, where there are the fewest key groups."""
    group = group_of_a_subtask(max_parallelism, parallelism, most=False)
    heavy = 3 * 100 * max_parallelism // parallelism
    return even(max_parallelism, parallelism) | {group: [heavy] + [10] * 10}


def few_keys(max_parallelism: int, parallelism: int) -> dict[int, list[int]]:
    return {max_parallelism - 1: [100]}


def unlucky(max_parallelism: int, parallelism: int) -> dict[int, list[int]]:
    """A key group with as many small keys more as two subtasks have in the mean."""
    group = group_of_a_subtask(max_parallelism, parallelism, most=False)
    more = 2 * 10 * max_parallelism // parallelism
    return even(max_parallelism, parallelism) | {group: [10] * (10 + more)}


def two_causes(max_parallelism: int, parallelism: int) -> dict[int, list[int]]:
    """A hot key where there are the most key groups."""
    group = group_of_a_subtask(max_parallelism, parallelism, most=True)
    heavy = 3 * 100 * max_parallelism // parallelism
    return even(max_parallelism, parallelism) | {group: [heavy] + [10] * 10}


LOADS: dict[Callable[[int, int], dict[int, list[int]]], set[str]] = {
    even: set(),
    one_hot_key: {HOT_KEY},
    few_keys: {FEW},
    unlucky: {UNLUCKY},
    two_causes: {HOT_KEY},
}


def said_of_counts(names: set[str]) -> set[str]:
    """Return the diagnoses as they are known without the keys."""
    return {KEYS if name in (HOT_KEY, UNLUCKY) else name for name in names}


@pytest.mark.parametrize(("max_parallelism", "parallelism"), SIZES)
@pytest.mark.parametrize("load_of", LOADS, ids=lambda load: load.__name__)
def test_causes_on_every_surface(
    load_of: Callable[[int, int], dict[int, list[int]]],
    max_parallelism: int,
    parallelism: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keys = load_of(max_parallelism, parallelism)
    best = at_best(max_parallelism, parallelism)
    names = LOADS[load_of] | ({UNEVEN} if best >= 1.2 else set())
    by_keys = counted(keys, max_parallelism, parallelism)
    check_causes(by_keys, names)
    load = by_keys.load
    counts = load.skew(parallelism)
    report = RescaleReport(RescalePlan(max_parallelism, 1, parallelism), load)
    in_job = job_skew(max_parallelism, [row.records for row in by_keys.subtasks])
    for skew in (counts, in_job, report.skew_after):
        check_causes(skew, said_of_counts(names))
    assert (in_job.diagnosis, in_job.remedy) == (counts.diagnosis, counts.remedy)
    file = tmp_path / "load"
    file.write_text(json.dumps(load.weights))
    sizes = [str(max_parallelism), "1", str(parallelism)]
    assert main(["plan", *sizes, "--load", str(file), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["skew_after"]["diagnosis"] == counts.diagnosis
    assert [tuple(cause.values()) for cause in data["skew_after"]["causes"]] == [*counts.causes]
    assert data["skew_before"]["diagnosis"] == "even"
    # What says it in the words of the ranges, and only where they are uneven.
    recommended = load.recommend(parallelism, parallelism)
    texts = [str(by_keys), str(counts), str(report), str(in_job), str(recommended)]
    pages = [one._repr_html_() for one in (by_keys, counts, report, in_job, recommended)]
    for text in (*texts, *pages):
        words = " ".join(text.split())
        assert (UNEVEN in words) == (UNEVEN in names)
        assert (f"at best {best:.2f} times the mean" in words) == (UNEVEN in names)


def check_causes(skew: Any, names: set[str]) -> None:
    assert {cause.name for cause in skew.causes} == names
    assert skew.diagnosis == (" and ".join(cause.name for cause in skew.causes) or "even")
    shares = [cause.share for cause in skew.causes]
    assert shares == sorted(shares, reverse=True)
    assert min(shares, default=0.0) >= 0
    if shares:
        assert sum(shares) == pytest.approx(skew.imbalance - 1)
        assert all(cause.remedy in skew.remedy for cause in skew.causes)


@pytest.mark.parametrize(("max_parallelism", "parallelism"), [(128, 100), (128, 85)])
def test_the_shares_of_two_causes(max_parallelism: int, parallelism: int) -> None:
    """A key of three subtasks' even load, in a subtask of two key groups and in one of one."""
    ordinary = parallelism / max_parallelism
    keys = two_causes(max_parallelism, parallelism)
    report = counted(keys, max_parallelism, parallelism)
    records = report.records / (100 * max_parallelism)  # for even ones
    own = 300 * max_parallelism // parallelism * parallelism / report.records
    of_ranges = 2 * ordinary - 1
    hot, ranges = report.causes
    assert (hot.name, ranges.name) == (HOT_KEY, UNEVEN)
    assert ranges.share == pytest.approx(of_ranges)
    assert hot.share == pytest.approx(own + 2 * ordinary / records - 2 * ordinary)
    assert report.hot_subtasks[0].causes == report.causes
    text = " ".join(str(report).split())
    excess = f"{report.imbalance:.2f}"
    first = Fraction(excess) - 1 - Fraction(f"{ranges.share:.2f}")
    assert re.search(rf"of [\d.]+ beyond the mean: {HOT_KEY} ([\d.]+), {UNEVEN} ([\d.]+)", text)
    assert float(first) == pytest.approx(hot.share, abs=0.011)
    alone = counted(one_hot_key(max_parallelism, parallelism), max_parallelism, parallelism)
    assert [cause.share for cause in alone.causes] == [alone.imbalance - 1, 0.0]
    assert [cause.name for cause in alone.hot_subtasks[0].causes] == [HOT_KEY]


def test_ordinary_keys_are_a_little_uneven() -> None:
    """Up to 1.05 times what its key groups give a subtask, nothing is its keys' share."""
    expected = 2 * 100 / 128
    ordinary = ALIKE * expected
    assert excess_shares(128, 100, 2, ordinary) == (ordinary - 1, 0.0)
    more = math.nextafter(ordinary, 2)
    of_ranges, of_keys = excess_shares(128, 100, 2, more)
    assert (of_ranges, of_keys) == (more - 1 - of_keys, more - expected)
    assert excess_shares(128, 100, 2, 0.5) == (0.0, 0.0)  # below the mean


def test_the_hottest_subtask_comes_first() -> None:
    assert SubtaskCounts(128, [0, 7, 0, 0, 9, 0, 7, 0]).hot_subtasks == (4, 1, 6)


def test_a_key_that_is_hot_by_itself_is_named_where_the_ranges_would_explain_as_much() -> None:
    """At 100 two key groups have 1.56 times the mean; here one key has it, and its neighbour 0."""
    group = group_of_a_subtask(128, 100, most=True)
    keys = even(128, 100) | {group: [200], group + 1: []}
    report = counted(keys, 128, 100)
    [cause] = report.hot_subtasks[0].causes
    assert cause.name == HOT_KEY
    assert cause.share == pytest.approx(0.5625)
    assert {hot.diagnosis for hot in report.hot_subtasks[1:]} == {UNEVEN}


def test_hot_subtasks_without_a_share_of_the_ranges_do_not_name_them() -> None:
    """Of 100 subtasks the second has one key group of 128: what is hot in it are its keys."""
    keys = even(128, 100) | {2: [10] * 30, 1: [10] * 20}
    report = counted(keys, 128, 100, asked=1)
    assert report.detail is not None
    by_subtask = {hot.subtask: hot for hot in report.hot_subtasks}
    assert by_subtask[1].diagnosis == report.detail.diagnosis == UNLUCKY
    assert by_subtask[0].diagnosis == f"{UNLUCKY} and {UNEVEN}"
    assert UNEVEN in report.diagnosis


def test_too_few_keys_are_named_where_the_ranges_explain_the_heaviest() -> None:
    """Key groups [0, 1], 2 and 3 at 3 subtasks: 2, 2 and 0 of 4, 4 and 1 are 1.5 times."""
    report = counted({0: [1], 1: [1], 2: [2]}, 4, 3)
    assert {cause.name for cause in report.causes} == {FEW, UNEVEN}
    assert sum(cause.share for cause in report.causes) == pytest.approx(0.5)


def test_assert_spread_names_uneven_key_groups() -> None:
    with pytest.raises(AssertionError, match=UNEVEN) as caught:
        assert_spread(range(20_000), 128, 100)
    text = " ".join(str(caught.value).split())
    assert "28 subtasks have 2 key groups, 72 have 1: at best 1.56 times the mean" in text


# --- laws ----------------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=40)
@given(st.sampled_from([sizes for sizes in SIZES if sizes[0] < 200]), st.data())
def test_no_text_blames_keys_where_the_ranges_explain_the_load(
    sizes: tuple[int, int], data: st.DataObject
) -> None:
    """Within 5 %: each key group has from 1000 to 1050, in keys of that many records or one."""
    groups, parallelism = sizes
    weights = data.draw(st.lists(st.integers(1000, 1050), min_size=groups, max_size=groups))
    whole = data.draw(st.booleans())
    keys = {group: [n] if whole else [n - 500, 250, 250] for group, n in enumerate(weights)}
    report = counted(keys, groups, parallelism, asked=parallelism - 1)
    load = report.load
    output: list[Any] = [report, load.skew(parallelism), load.recommend(1, parallelism)]
    output.append(RescaleReport(RescalePlan(groups, parallelism, parallelism), load))
    output.append(job_skew(groups, [row.records for row in report.subtasks]))
    for value in output:
        for text in (str(value), value._repr_html_()):
            assert not re.search("hot key|unluck", text)


@given(st.integers(1, 40), st.data())
@example(groups=4, data=None)
def test_the_shares_add_up_to_the_excess(groups: int, data: st.DataObject | None) -> None:
    parallelism, records = 3, [[1], [1], [2], []]
    if data is not None:
        parallelism = data.draw(st.integers(1, groups))
        of_group = st.lists(st.integers(1, 9) | st.integers(1, 900), max_size=4)
        records = data.draw(st.lists(of_group, min_size=groups, max_size=groups))
    report = counted(dict(enumerate(records)), groups, parallelism)
    counts = report.load.skew(parallelism)
    for skew in (report, counts):
        if skew.causes:
            assert sum(one.share for one in skew.causes) == pytest.approx(skew.imbalance - 1)
            assert min(one.share for one in skew.causes) >= 0
    for hot in report.hot_subtasks:
        excess = report.subtasks[hot.subtask].times_mean - 1
        assert sum(one.share for one in hot.causes) == pytest.approx(excess)
        assert min(one.share for one in hot.causes) > 0
        assert hot.diagnosis == " and ".join(one.name for one in hot.causes)
    uneven = at_best(groups, parallelism) >= 1.2
    assert (
        (UNEVEN in counts.diagnosis)
        == (UNEVEN in report.diagnosis)
        == (uneven and report.records > 0)
    )
    shown_shares = re.search("of ([0-9.]+) beyond the mean: (.*?) remedy", texts_of(counts))
    if shown_shares:
        numbers = re.findall(r" (\d+\.\d\d)", shown_shares[2])
        assert sum(map(Fraction, numbers)) == Fraction(shown_shares[1])


def texts_of(value: object) -> str:
    return " ".join(str(value).split())


# --- the remedy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        (
            (128, 100),
            "28 subtasks have 2 key groups, 72 have 1: at best 1.56 times the mean; even are "
            "64 subtasks (36 fewer, 100% of the heaviest load), 128 subtasks (28 more, 50% of the "
            "heaviest load), or 100 with max parallelism 200, which takes change_max_parallelism",
        ),
        (
            (512, 240),
            "32 subtasks have 3 key groups, 208 have 2: at best 1.41 times the mean; even are "
            "128 subtasks (112 fewer, 133% of the heaviest load), 256 subtasks (16 more, 67% of "
            "the heaviest load), or 240 with max parallelism 720, which takes "
            "change_max_parallelism",
        ),
        # 1 and 131 are its only divisors, and both are far away.
        (
            (131, 50),
            "31 subtasks have 3 key groups, 19 have 2: at best 1.15 times the mean; even are "
            "50 with max parallelism 150, which takes change_max_parallelism",
        ),
        # 127 is more than twice 60, and 45 is not less than the half of 90.
        (
            (127, 60),
            "7 subtasks have 3 key groups, 53 have 2: at best 1.42 times the mean; even are 60 "
            "with max parallelism 180, which takes change_max_parallelism",
        ),
        (
            (135, 90),
            "45 subtasks have 2 key groups, 45 have 1: at best 1.33 times the mean; even are 45 "
            "subtasks (45 fewer, 150% of the heaviest load), 135 subtasks (45 more, 50% of the "
            "heaviest load), or 90 with max parallelism 180, which takes change_max_parallelism",
        ),
        # The next multiple of 8,192 is Flink's bound.
        (
            (25000, 8192),
            "424 subtasks have 4 key groups, 7,768 have 3: at best 1.31 times the mean; even are "
            "6,250 subtasks (1,942 fewer, 100% of the heaviest load), 12,500 subtasks (4,308 "
            "more, 50% of the heaviest load), or 8,192 with max parallelism 32,768, which takes "
            "change_max_parallelism",
        ),
        # The next multiple of 20,000 is above Flink's bound.
        (
            (32768, 20000),
            "12,768 subtasks have 2 key groups, 7,232 have 1: at best 1.22 times the mean; even "
            "are 16,384 subtasks (3,616 fewer, 100% of the heaviest load), 32,768 subtasks "
            "(12,768 more, 50% of the heaviest load), or 20,000 with max parallelism 20,000, "
            "which takes change_max_parallelism",
        ),
        # 11 is one more than twice 5, which is far away.
        (
            (11, 5),
            "1 subtask has 3 key groups, 4 have 2: at best 1.36 times the mean; even are 5 with "
            "max parallelism 15, which takes change_max_parallelism",
        ),
        (
            (3, 2),
            "1 subtask has 2 key groups, 1 has 1: at best 1.33 times the mean; even are "
            "1 subtask (1 fewer, 150% of the heaviest load), 3 subtasks (1 more, 50% of the "
            "heaviest load), or 2 with max parallelism 4, which takes change_max_parallelism",
        ),
    ],
)
def test_remedy_of_uneven_key_groups(sizes: tuple[int, int], says: str) -> None:
    from keygroups.skew import uneven_remedy

    assert uneven_remedy(*sizes) == says


@given(st.integers(1, 600), st.data())
def test_the_remedy_names_what_is_even(groups: int, data: st.DataObject) -> None:
    parallelism = data.draw(st.integers(1, groups))
    load = KeyGroupLoad(groups, [1] * groups)
    assume(at_best(groups, parallelism) >= 1.2)
    [cause] = load.skew(parallelism).causes
    assert cause.name == UNEVEN
    assert cause.share == pytest.approx(at_best(groups, parallelism) - 1)
    near = [int(n) for n in re.findall(r"(\d+) subtasks \(", cause.remedy)]
    divisors = evenness(groups)
    lower = [p for p in divisors if parallelism <= 2 * p < 2 * parallelism]
    higher = [p for p in divisors if parallelism < p <= 2 * parallelism]
    assert near == [*lower[-1:], *higher[:1]]
    text = re.search(r"(\d+) with max parallelism ([\d,]+), which", cause.remedy)
    assert text
    assert int(text[1]) == parallelism in evenness(int(text[2].replace(",", "")))


# --- SubtaskCounts -------------------------------------------------------------------------------


def test_counts_of_subtasks() -> None:
    counts = SubtaskCounts(128, [3, 0.5, 0, 9])
    assert counts.counts == (3, 0.5, 0, 9)
    assert (counts.parallelism, counts.imbalance) == (4, 9 * 4 / 12.5)
    assert (counts.hot_subtasks, counts.idle_subtasks) == ((3,), (2,))
    [cause] = counts.causes
    assert cause == Cause(FEW, 9 * 4 / 12.5 - 1, cause.remedy)
    assert cause.remedy.startswith("1 of 4 subtasks have nothing: key by more values")
    assert str(counts).splitlines() == [
        "too few keys: the heaviest of 4 subtasks has 2.88 times the mean",
        "remedy: 1 of 4 subtasks have nothing: key by more values or, where the keyBy has",
        "to balance and not to group, by substitute keys (keys_for_subtasks); skew_report",
        "counts the keys",
        "subtask  count  share  x mean  key groups",
        "      0      3  24.0%    0.96        0-31",
        "      1    0.5   4.0%    0.16       32-63",
        "      2      0   0.0%    0.00       64-95",
        "      3      9  72.0%    2.88      96-127  hot",
    ]
    page = Tables(counts._repr_html_())
    assert page.rows[0] == ["subtask", "count", "share", "x mean", "key groups"]
    assert [row[0] for row in page.marked] == ["3"]
    assert SubtaskCounts(2, [1e308, 7e307]).imbalance == pytest.approx(2 / 1.7)


def test_one_and_a_half_times_the_mean_is_hot() -> None:
    """3 of 94 on 47 subtasks; 3 / 94 * 47 is a little less in floats."""
    counts = SubtaskCounts(128, [3, *[2] * 45, 1])
    assert (counts.hot_subtasks, counts.imbalance) == ((0,), 1.5)
    [cause] = counts.causes
    assert (cause.name, cause.share) == (KEYS, 0.5)
    assert cause.remedy.startswith("128 key groups at this parallelism would give 1.10 if all")


def test_shares_are_shown_so_that_they_add_up() -> None:
    """13 of 24 are 1.625 means: 4 of 10 key groups explain 0.2 of them, and the keys 0.425."""
    counts = SubtaskCounts(10, [13, 6, 5])
    assert repr(counts) == "SubtaskCounts(max_parallelism=10, counts=(13, 6, 5))"
    lines = str(counts).splitlines()
    assert lines[0].endswith("the heaviest of 3 subtasks has 1.62 times the")
    assert "of 0.62 beyond the mean: uneven keys 0.43, uneven key groups 0.19" in lines
    assert (
        "remedy: 10 key groups at this parallelism would give 1.20 if all were alike, so" in lines
    )
    assert len(lines[0]) <= 80
    # With "has", which comes next, the second line would have 81 columns.
    lines = str(SubtaskCounts(128, [0, *[5] * 9])).splitlines()
    assert lines[1] == (
        "remedy: 1 of 10 subtasks have nothing: key by more values or, where the keyBy"
    )


def test_a_hot_subtask_with_few_key_groups_owes_nothing_to_the_ranges() -> None:
    """Subtask 0 of 100 has one key group of 128 and 50 of 149 records."""
    ranges = [compute_key_group_range_for_operator_index(128, 100, i) for i in range(100)]
    subtask = next(i for i, held in enumerate(ranges) if len(held) == 1)
    counts = SubtaskCounts(128, [50 if i == subtask else 1 for i in range(100)])
    assert [(cause.name, cause.share) for cause in counts.causes] == [
        (KEYS, counts.imbalance - 1),
        ("uneven key groups", 0.0),
    ]


def test_counts_of_nothing_and_of_one() -> None:
    nothing = SubtaskCounts(128, [0, 0])
    assert (nothing.imbalance, nothing.causes, nothing.diagnosis) == (1.0, (), "even")
    assert (nothing.hot_subtasks, nothing.remedy) == ((), "nothing to do")
    assert str(nothing).endswith("1      0   0.0%    0.00      64-127")
    assert SubtaskCounts(1, [7]).diagnosis == "even"


def test_many_subtasks_are_cut() -> None:
    counts = SubtaskCounts(128, range(100))
    lines = str(counts).splitlines()
    assert "The 40 heaviest subtasks of 100" in lines
    assert [int(line.split()[0]) for line in lines[-40:]] == [*range(99, 59, -1)]
    assert len(shown(counts).rows) == 41
    assert "heaviest subtasks of" not in str(SubtaskCounts(128, range(40)))
    assert "The 40 heaviest subtasks of 41" in str(SubtaskCounts(128, range(41)))


def test_counts_as_a_data_frame() -> None:
    pytest.importorskip("pandas")
    frame = SubtaskCounts(10, [4, 2, 2]).to_pandas()
    assert frame.to_dict("records")[0] == {
        "subtask": 0,
        "count": 4,
        "share": 0.5,
        "times_mean": 1.5,
        "first_key_group": 0,
        "last_key_group": 3,
    }


def test_a_picture_of_counts() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("matplotlib").use("agg")
    axes = SubtaskCounts(10, [4, 2, 2, 2, 2, 4, 2, 2]).plot()
    assert axes.get_title() == "uneven key groups: 1.60 times the mean"
    assert axes.get_xlabel() == "subtask, of 8"
    title = KeyGroupLoad(10, [1] * 10).plot(8).get_title()
    assert title.endswith("\nuneven key groups: at best 1.60 times the mean")
    pyplot.close("all")


@pytest.mark.parametrize(
    ("counts", "error", "says"),
    [
        ([], ParallelismError, "length of counts must be from 1 to 4"),
        ([1] * 5, ParallelismError, "length of counts must be from 1 to 4"),
        ([1, -1], InvalidValueError, "count of subtask 1 must be a finite number >= 0, got -1"),
        ([1, float("inf")], InvalidValueError, "count of subtask 1 must be a finite number >= 0"),
        ([None], InvalidTypeError, "count of subtask 0 must be a number, got None"),
        ([True], InvalidTypeError, "count of subtask 0 must be a number, got True"),
        ("12", InvalidTypeError, "counts must be an iterable of numbers, got '12'"),
        (7, InvalidTypeError, "counts must be an iterable of numbers, got 7"),
        ([1e308] * 4, InvalidValueError, "counts must have a sum within the range of a float"),
        ([10**400], InvalidValueError, "counts must have a sum within the range of a float"),
    ],
)
def test_bad_counts(counts: Any, error: type[KeyGroupsError], says: str) -> None:
    with pytest.raises(error, match=says):
        SubtaskCounts(4, counts)


def test_counts_of_an_endless_iterator() -> None:
    with pytest.raises(ParallelismError, match="length of counts must be from 1 to 4"):
        SubtaskCounts(4, repeat(1))


@pytest.mark.parametrize("value", [0, 32769, True, "3", None], ids=repr)
def test_counts_of_no_max_parallelism(value: Any) -> None:
    with pytest.raises(ParallelismError, match="max_parallelism must be"):
        SubtaskCounts(value, [1])


# --- counts in hand ------------------------------------------------------------------------------

PROMETHEUS = """
# TYPE flink_taskmanager_job_task_numRecordsIn gauge
flink_taskmanager_job_task_numRecordsIn{job_name="a",subtask_index="1",host="b",} 70.0
flink_taskmanager_job_task_numRecordsIn{subtask_index="0",task_name="x } y"} 10 1764000000000
flink_taskmanager_job_task_numRecordsIn{a="subtask_index=\\"9\\"",subtask_index="2"} 1e1
"""


@pytest.mark.parametrize(
    "text",
    [
        "0 10\n1 70\n2 10",
        " 1\t70 \r\n\n# a comment\n0, 10\n2;10.0\n",
        PROMETHEUS,
        '[{"id": "2.numRecordsIn", "value": "10"}, {"id": "0.numRecordsIn", "value": "10"}, '
        '{"id": "1.numRecordsIn", "value": 70}]',
        " [10, 70, 10.0]",
    ],
)
def test_pasted_counts_get_the_diagnosis_of_a_job(text: str) -> None:
    counts = SubtaskCounts.from_text(128, text)
    assert counts == SubtaskCounts(128, [10, 70, 10])
    skew = job_skew(128, [10, 70, 10])
    assert (counts.diagnosis, counts.remedy) == (skew.diagnosis, skew.remedy)
    assert (counts.causes, counts.imbalance) == (skew.causes, skew.imbalance)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "length of counts must be from 1 to 128"),
        ("0 5\n0 6", "text must have each subtask once, got 0 twice"),
        ("subtask\n0 5", "got 'subtask' in line 1"),
        ("0 5\n2 6", "text must have each subtask from 0, got none of 1"),
        ("0 5 6", "got '0 5 6' in line 1"),
        ("0 5\nsubtask", "got 'subtask' in line 2"),
        ("0 1_000", "in line 1"),
        ("0 1,000", "in line 1"),
        ("0.5 1", "in line 1"),
        ("-1 1", "in line 1"),
        ("0 -1", "count of subtask 0 must be a finite number >= 0, got -1.0"),
        ("0 nan", "count of subtask 0 must be a finite number >= 0, got nan"),
        ('a{subtask_index="0"}', "in line 1"),
        ("[1, 2", "text must be a JSON array of counts"),
        ("[" * 99999, "text must be a JSON array of counts"),
        ('[{"id": 5, "value": 6}]', "text must be a JSON array of counts"),
        ('[{"id": "0.n"}]', "text must be a JSON array of counts"),
        ('[{"id": "x.n", "value": "1"}]', "text must be a JSON array of counts"),
        ('[{"id": "0e0.n", "value": "1"}]', "text must be a JSON array of counts"),
        ("[true]", "count of subtask 0 must be a number, got True"),
        (" " * (2**25 + 1), "text must have at most 33554432 characters, got more"),
    ],
)
def test_bad_texts(text: str, says: str) -> None:
    with pytest.raises(KeyGroupsError, match=re.escape(says)):
        SubtaskCounts.from_text(128, text)


def test_the_command_of_pasted_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "counts"
    file.write_text(PROMETHEUS)
    counts = SubtaskCounts(128, [10, 70, 10])
    assert main(["counts", "128", str(file)]) == 0
    assert capsys.readouterr().out.replace("70.0", "70") == f"{counts}\n"
    assert main(["counts", "128", str(file), "--json"]) == 0
    [cause] = counts.causes
    assert json.loads(capsys.readouterr().out) == {
        "max_parallelism": 128,
        "counts": [10, 70, 10],
        "imbalance": counts.imbalance,
        "hot_subtasks": [1],
        "idle_subtasks": [],
        "diagnosis": KEYS,
        "remedy": counts.remedy,
        "causes": [cause._asdict()],
    }
    for arguments in (["counts", "0", str(file)], ["counts", "128", str(tmp_path / "none")]):
        assert main(arguments) == 2
    text = capsys.readouterr().err
    assert "MAX_PARALLELISM must be from 1 to 32768" in text
    assert "counts cannot be read from" in text


def test_the_longest_text() -> None:
    assert SubtaskCounts.from_text(128, "0 5" + " " * (2**25 - 3)).counts == (5,)


@pytest.mark.parametrize("text", [None, b"0 5", 5, ["0 5"]])
def test_what_is_no_text(text: Any) -> None:
    with pytest.raises(InvalidTypeError, match="text must be a str"):
        SubtaskCounts.from_text(128, text)


# The header of the table of subtasks in Flink's web UI, since 1.16.
HEADER = "\t".join(
    [
        *("ID", "Bytes Received", "Records Received", "Bytes Sent", "Records Sent", "Attempt"),
        *("Host", "Start Time", "Duration", "End Time"),
        *("Accumulated Time (Backpressured/Idle/Busy)", "Status Durations", "Status", "More"),
    ]
)


def ui_row(subtask: int, records: str) -> str:
    """Return a row of the web UI's table without its last cell, which is an icon."""
    times = "2026-01-02 03:04:05\t5m 1s\t-\t0ms / 5s / 1s\t-\tRUNNING"
    return f"{subtask}\t1.20 MB\t{records}\t3 B\t77\t1\ttm-1:6122\t{times}"


@pytest.mark.parametrize(
    "text",
    [
        "\n".join([HEADER, ui_row(1, "1,234,567"), ui_row(0, "890") + "\t", ui_row(2, "12,345")]),
        "id; Status ;RECORDS  received\n0;x;890\n1;y;1234567\n# 3\n\n2;z;12345",
        "Status,Records Received,Subtask\nx,890,0\ny,1234567,1\nz,12345,2",
        "subtask   records   x mean\n  0         890     0.1\n1  1,234,567  5.8\n 2  12,345  0.2 ",
        "subtask_index\tany other name\n0\t890\n1\t1,234,567\n2\t12,345",
        "bytes of it,ID\n890,0\n1234567,1\n12345,2",
    ],
)
def test_a_pasted_table_is_read_by_its_header(text: str) -> None:
    assert SubtaskCounts.from_text(128, text).counts == (890, 1_234_567, 12_345)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER, "length of counts must be from 1 to 128"),
        ("ID\tSubtask\tCount\n0\t0\t5", "one column such as ID in its header, got ['ID', 'Subt"),
        ("ID\tID\n0\t5", "one column such as ID in its header, got ['ID', 'ID']"),
        ("Host\tRecords Received\n0\t5", "such as ID in its header, got ['Host', 'Records Rec"),
        (
            "ID\tRecords Received\tStatus\tRecords Received\n0\t5\tx\t6",
            "such as Records Received in its header, got ['Records Received', 'Records Received']",
        ),
        ("ID\tCount\tRecords\n0\t5\t6", "Records Received in its header, got ['Count', 'Reco"),
        (
            "ID\tBytes Received\tRecords Sent\n0\t5\t6",
            "Received in its header, got ['ID', 'Bytes Received', 'Records Sent']",
        ),
        (
            f"{HEADER}\n{ui_row(0, 'loading...')}",
            "have 'ID' and 'Records Received' in each line below its header, got '0\\t1.2",
        ),
        (f"{HEADER}\n{ui_row(0, '1,23')}", "in line 2"),
        (f"{HEADER}\n{ui_row(0, '1234,567')}", "in line 2"),
        (f"{HEADER}\n{ui_row(0, '1.2k')}", "in line 2"),
        (f"{HEADER}\n0\t1 B", "got '0\\t1 B' in line 2"),
        (f"{HEADER}\n\n{ui_row(0, '5')}\t\t", "in line 3"),
        ("ID\tn\n0\t5\n1.0\t6", "'ID' and 'n' in each line below its header, got '1.0\\t6' in li"),
        (
            "id,records\n0,12,345",
            "'id' and 'records' in each line below its header, got '0,12,345'",
        ),
        ("id,records,x\n0,5", "got '0,5' in line 2"),
        ("id;records;x\n0;5", "got '0;5' in line 2"),
        ("id  records  x\n0  5", "got '0  5' in line 2"),
        ("id\trecords\n0 5", "got '0 5' in line 2"),
        ("id\trecords\n0\t5\n0\t5", "text must have each subtask once, got 0 twice"),
        ("id\t5\n0\t5", "got 'id\\t5' in line 1"),
        ("id\t-5\n0\t5", "in line 1"),
        ("id\t.5\n0\t5", "in line 1"),
        ('n{a="1",\tb}\n0\t5', "in line 1"),
        ("id\tn}\n0\t5", "in line 1"),
        ("\t".join(["x"] * 101) + "\tid\n0", "one column such as ID in its header"),
    ],
)
def test_bad_tables(text: str, says: str) -> None:
    with pytest.raises(InvalidValueError, match=re.escape(says)):
        SubtaskCounts.from_text(128, text)


def test_a_table_has_at_most_a_hundred_columns_that_count() -> None:
    names = ["id", "count", *["x"] * 98]
    row = ["0", "5", *["y"] * 98]
    assert SubtaskCounts.from_text(8, "\t".join(names) + "\n" + "\t".join(row)).counts == (5,)
    # What is behind the hundredth is one cell more.
    last = "\t".join(["id", *["x"] * 99, "count"]) + "\n" + "\t".join([*"0", *"y" * 99, "5"])
    assert SubtaskCounts.from_text(8, last).counts == (5,)
    with pytest.raises(InvalidValueError, match="in line 2"):
        SubtaskCounts.from_text(8, "\t".join(names) + "\n" + "\t".join([*row, "y"]))


@pytest.mark.parametrize("count_name", ["Records Received", "records", "COUNT"])
@pytest.mark.parametrize(
    "name", ["ID", "subtask", "Subtask ID", "subtask  index", "subtask_index", "SubTask"]
)
def test_headers_of_pasted_tables(name: str, count_name: str) -> None:
    text = f"{count_name}\thost\t{name}\n7\tx\t1\n5\ty\t0\n"
    assert SubtaskCounts.from_text(128, text).counts == (5, 7)
    other = text.replace(count_name, "bytes")
    with pytest.raises(InvalidValueError, match="one column such as Records Received in its head"):
        SubtaskCounts.from_text(128, other)
    with pytest.raises(InvalidValueError, match="one column such as ID in its header"):
        SubtaskCounts.from_text(128, text.replace(name, "number"))


def test_what_uneven_key_groups_explain_has_no_other_cause() -> None:
    """Up to 1.05 times what they give by themselves, 1.2 times the mean, is chance."""
    for counts, diagnosis in (
        ([62, 40], "uneven key groups"),
        ([63, 37], "uneven key groups"),  # 1.26 times the mean, which is 1.05 times that
        ([64, 36], "uneven key groups and uneven keys"),
    ):
        assert SubtaskCounts(5, counts).diagnosis == diagnosis
