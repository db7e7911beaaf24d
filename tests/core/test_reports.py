"""What reports say of records that are counted by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

import pytest
from support.html_tables import Tables, shown
from support.inside.answers import (
    SkewQuestion,
    diagnose,
    subtask_detail,
    subtask_rows,
)

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupLoad,
    ParallelismError,
    RescalePlan,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    keys_for_subtasks,
)
from keygroups.reports import HotKey, RescaleReport, SkewReport, _line
from keygroups.skew import HOT, diagnosis_of, remedy_of
from keygroups.types import INT, LONG, STRING, TUPLE, KeyType

UNLUCKY = "many keys unluckily together"


def skew(
    records: dict[Any, int],
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType = LONG,
    sent: Sequence[int] | None = None,
    asked: int | None = None,
    null_keys: int = 0,
) -> SkewReport:
    """Count what `keygroups.spark.skew_report` measures."""
    weights, distinct = [0] * max_parallelism, [0] * max_parallelism
    groups = {key: assign_to_key_group(key, max_parallelism, key_type) for key in records}
    for key, count in records.items():
        weights[groups[key]] += count
        distinct[groups[key]] += 1
    load = KeyGroupLoad(max_parallelism, weights)
    behind = None if sent is None else KeyGroupLoad(max_parallelism, sent)
    rows = subtask_rows(load, distinct, behind, parallelism)
    top_keys: dict[int, list[HotKey]] = {}
    for key, count in sorted(records.items(), key=lambda one: -one[1]):
        subtask = assign_key_to_parallel_operator(key, max_parallelism, parallelism, key_type)
        hot_key = HotKey(key, groups[key], count, count / rows[subtask].records)
        top_keys.setdefault(subtask, []).append(hot_key)
    shown = {
        subtask: keys for subtask, keys in top_keys.items() if rows[subtask].times_mean >= HOT
    }
    causes, hot = diagnose(rows, shown, load)
    batch_size = None if sent is None else 10
    text = (key_type, parallelism, batch_size, load, behind, tuple(rows), hot)
    why = diagnosis_of(causes), remedy_of(causes), null_keys
    if asked is None:
        return SkewReport(*text, *why, causes=causes)
    detail = subtask_detail(rows, asked, hot, top_keys.get(asked, []), load, distinct, top=2)
    return SkewReport(*text, *why, detail, causes=causes)


def placed(counts: list[list[int]]) -> dict[int, int]:
    """Return LONG keys of so many records each, by the subtask of 128 key groups they are in."""
    found = keys_for_subtasks(128, len(counts), LONG, n=max(2, *map(len, counts), 2))
    return {
        key: count
        for subtask, of_subtask in enumerate(counts)
        for key, count in zip(found[subtask], of_subtask)
        if count
    }


@pytest.mark.parametrize(
    ("counts", "diagnoses"),
    [
        ([[10], [10], [10], [10]], {}),
        ([[14], [9], [9], [8]], {}),  # 1.4 times the mean
        ([[15], [9], [8], [8]], {0: "one hot key"}),  # 1.5 times
        ([[8], [7, 8], [9], [8]], {1: UNLUCKY}),
        ([[8], [14, 1], [9], [8]], {1: UNLUCKY}),  # alone 1.4 times
        ([[0], [20, 20], [0], [0]], {1: "too few keys"}),
        ([[97], [0], [0], [1, 1, 1]], {0: "too few keys"}),  # 3.88 times the mean key
        ([[97], [0], [1], [1, 1, 1]], {0: "one hot key"}),  # 4.80 times
        ([[80], [0], [5], [5, 5, 5]], {0: "one hot key"}),  # 4 times
        ([[36, 1], [5], [30], [1]], {0: "one hot key", 2: "one hot key"}),
        ([[1], [20], [11, 11], [1]], {1: "one hot key", 2: UNLUCKY}),  # 1.82 and 2 times
        ([[100]], {}),
    ],
)
def test_diagnoses(counts: list[list[int]], diagnoses: dict[int, str]) -> None:
    report = skew(placed(counts), 128, len(counts))
    assert [row.records for row in report.subtasks] == list(map(sum, counts))
    assert {one.subtask: one.diagnosis for one in report.hot_subtasks} == diagnoses
    hottest = max(diagnoses, key=lambda subtask: sum(counts[subtask]), default=None)
    assert report.diagnosis == ("even" if hottest is None else diagnoses[hottest])
    assert report.imbalance == pytest.approx(max(row.times_mean for row in report.subtasks))


def test_too_few_keys_without_a_hot_subtask() -> None:
    report = skew(placed([[7], [7], [7], []]), 128, 4)
    assert report.hot_subtasks == ()
    assert report.diagnosis == "too few keys"
    assert "3 keys reach 3 of 4 subtasks" in report.remedy


@pytest.mark.parametrize(
    ("parallelism", "counts", "says"),
    [
        # Key group 0 has 4 keys of 131, and a subtask to itself at 128 only.
        (
            64,
            [4] + [1] * 127,
            "the best up to 128 is 128, and still has 4 in its heaviest subtask, imbalance 3.91: ",
        ),
        # Of 256 keys a key group has up to 3, as much as 1.5 subtasks at 128.
        (
            64,
            [3, 3, 1, 1] + [2] * 124,
            "the best up to 128 is 128, and still has 3 in its heaviest subtask, imbalance 1.50: ",
        ),
        # It has a neighbour without keys.
        (
            100,
            [4, 0] + [1] * 126,
            "no parallelism up to 128 has a much lighter heaviest subtask: try another max",
        ),
        (
            128,
            [4] + [1] * 127,
            "a higher parallelism needs a higher max parallelism: try another max",
        ),
    ],
)
def test_remedy_for_unlucky_keys(parallelism: int, counts: list[int], says: str) -> None:
    keys = keys_for_subtasks(128, 128, LONG, n=4)
    chosen = {key: 1 for group, count in zip(keys, counts) for key in group[:count]}
    report = skew(chosen, 128, parallelism)
    uneven = " and uneven key groups" if parallelism == 100 else ""
    assert report.diagnosis == f"{UNLUCKY}{uneven}"
    assert report.remedy.startswith(says)


@pytest.mark.parametrize(
    ("parallelism", "highest", "best", "heaviest"),
    [(10, 20, 20, 89), (64, 128, 112, 48), (65, 129, 112, 48), (100, 164, 112, 48)],
)
def test_remedy_looks_at_up_to_twice_the_parallelism_and_64_more(
    parallelism: int, highest: int, best: int, heaviest: int
) -> None:
    """Subtask 0 has 1000 / parallelism key groups, rounded up: 40 records and as many less one.

    With 47 it has at 125, and 46 at 143, for more than a tenth more imbalance than at 100.
    """
    load = KeyGroupLoad(1000, [40] + [1] * 999)
    rows = subtask_rows(load, [1] * 1000, None, parallelism)
    causes, _ = diagnose(rows, {0: [HotKey(0, 0, 1, 0.1)]}, load)
    assert remedy_of(causes).startswith(
        f"the best up to {highest} is {best}, and still has {heaviest} in its heaviest subtask, "
        f"imbalance {heaviest * best / 1039:.2f}: "
    )


def test_repr_is_short() -> None:
    text = repr(skew(placed([[15], [9], [8], [8]]), 128, 4, sent=[1] * 128, asked=0))
    names = ["key_type", "parallelism", "batch_size", "diagnosis", "remedy", "null_keys"]
    assert re.findall(r"(\w+)=", text) == names


def test_no_records() -> None:
    report = skew({}, 128, 3, sent=[0] * 128)
    assert (report.records, report.distinct_keys, report.imbalance) == (0, 0, 1.0)
    assert report.diagnosis == "even"
    assert [row[1:5] for row in report.subtasks] == [(0, 0.0, 0.0, 0)] * 3
    assert "sends 0 records for 0, at most 0 to a subtask where 0 went" in " ".join(
        str(report).split()
    )
    assert "key groups  keys  sent\n" in str(report)
    assert "key groups  keys\n" in str(skew({}, 128, 3))
    assert "get no record" not in str(report)


def test_text() -> None:
    report = skew(placed([[8], [7, 8], [1009], [800]]), 128, 4, sent=[1] * 128)
    assert str(report).splitlines() == [
        "one hot key: the heaviest of 4 subtasks has 2.20 times the mean",
        *[
            "remedy: a key is in one subtask at any parallelism: pre-aggregate before the",
            "keyBy (LocalKeyBy), or split the key with salts (salted_key: counted ones leave",
            "subtasks empty) and aggregate in two steps",
        ],
        "1,832 records, 5 distinct keys of type LONG, max parallelism 128",
        "",
        "subtask  records  share  x mean  key groups  keys  sent",
        "      0        8   0.4%    0.02        0-31     1    32",
        "      1       15   0.8%    0.03       32-63     2    32",
        "      2    1,009  55.1%    2.20       64-95     1    32",
        "      3      800  43.7%    1.75      96-127     1    32",
        "",
        "LocalKeyBy with batches of 10 sends 128 records for 1,832, at most 32 to a",
        "subtask where 1,009 went",
        "",
        "subtask 2: one hot key",
        "records  of the subtask  key group  key",
        *[
            f"{hot.records:>7,}          100.0%  {hot.key_group:>9}  {hot.key}"
            for hot in report.hot_subtasks[0].top_keys
        ],
        "",
        "subtask 3: one hot key",
        "records  of the subtask  key group  key",
        *[
            f"{hot.records:>7,}          100.0%  {hot.key_group:>9}  {hot.key}"
            for hot in report.hot_subtasks[1].top_keys
        ],
    ]
    assert "SkewReport(key_type=LONG, parallelism=4" in repr(report)


def test_remedies_that_differ_are_both_said() -> None:
    text = str(skew(placed([[1], [20], [11, 11], [1]]), 128, 4))
    assert "subtask 1: one hot key\nremedy: a key is in one subtask" in text


def test_a_tuple_that_nobody_declared_is_noted() -> None:
    report = skew({("UA", "LAX"): 3}, 128, 4, TUPLE(STRING, STRING))
    note = (
        "note: the TUPLE is inferred, which is the Java Tuple of Flink: pass key_type=SQL_ROW(...)"
    )
    assert note not in str(report).replace("\n", " ")
    inferred = replace(report, is_inferred=True)
    assert note in str(inferred).replace("\n", " ")
    assert note in inferred._repr_html_()
    assert "note" not in str(replace(inferred, key_type=STRING))


def test_text_of_many_subtasks() -> None:
    long = {(f"{'x' * 60}{i}", None): 1 for i in range(200)}
    report = skew(long, 2**15, 2000, TUPLE(STRING, STRING))
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 80
    table = lines.index("The 20 heaviest subtasks of 2,000")
    records = sorted((row.records for row in report.subtasks), reverse=True)
    assert lines[table + 1 : table + 3] == [
        f"The others have {records[-1]} to {records[20]} records each",
        f"{records.count(0):,} of 2,000 subtasks get no record",
    ]
    more = lines.index(f"{len(report.hot_subtasks) - 3} more hot subtasks: too few keys")
    assert [int(line.split()[0]) for line in lines[more + 2 :]] == [
        one.subtask for one in report.hot_subtasks[3:]
    ]
    assert sum("...xxx" in line and line.endswith(", NULL)") for line in lines) >= 3
    assert len(report.subtasks) == 2000


@pytest.mark.parametrize("item", [20, 21])
def test_text_of_more_than_20_subtasks_has_the_heaviest(item: int) -> None:
    """And what the others have, here the one that is left."""
    lines = str(skew(placed([[100 + subtask] for subtask in range(item)]), 128, item)).splitlines()
    is_cut = item == 21
    assert ("The 20 heaviest subtasks of 21" in lines) == is_cut
    assert ("The others have 100 to 100 records each" in lines) == is_cut
    listed = [int(line.split()[0]) for line in lines if re.match(r" +\d+ +1\d\d ", line)]
    assert listed == ([*range(20, 0, -1)] if is_cut else [*range(20)])


def test_of_subtasks_that_have_as_much_the_first_are_shown() -> None:
    lines = str(skew(placed([[100]] * 22), 128, 22)).splitlines()
    assert [int(line.split()[0]) for line in lines if " 4.5% " in line] == [*range(20)]


def test_what_is_left_out_is_told_from_the_least_to_the_most() -> None:
    lines = str(skew(placed([[100 + subtask] for subtask in range(23)]), 128, 23)).splitlines()
    assert "The others have 100 to 102 records each" in lines


# 1,200 records in 12 subtasks: hot are those with 150, and keys with 150.
MANY_HOT = [[210], [60, 60, 60], [200], [190], [80, 75], [160], *[[20]] * 3, *[[15]] * 3]


def listed(report: SkewReport) -> list[int]:
    """Return the subtasks that the text has a section or a line of, beside the table of all."""
    found, more = [], False
    for line in str(report).splitlines():
        more = bool(line) and (more or " more hot subtask" in line)
        if match := re.match(r"subtask (\d+): " if not more else r" +(\d+) .*%", line):
            found.append(int(match[1]))
    return found


def test_every_hot_subtask_is_listed_once() -> None:
    report = skew(placed(MANY_HOT), 128, 12)
    assert [one.subtask for one in report.hot_subtasks] == [0, 2, 3, 1, 5, 4]
    assert listed(report) == [0, 2, 3, 1, 4, 5]
    hot = {one.subtask: one for one in report.hot_subtasks}
    keys = {subtask: [key.key for key in one.top_keys] for subtask, one in hot.items()}
    remedy = "\n".join(wrap(f"remedy: {hot[1].remedy}", 80))
    first, second, third = keys[1]
    assert str(report).endswith(
        f"""
2 more hot subtasks: many keys unluckily together
{remedy}
subtask  records  share  x mean  heaviest keys
      1      180  15.0%    1.80  {first} 33.3%, {second} 33.3%, {third} 33.3%
      4      155  12.9%    1.55  {keys[4][0]} 51.6%, {keys[4][1]} 48.4%

1 more hot subtask: one hot key
subtask  records  share  x mean  heaviest keys
      5      160  13.3%    1.60  {keys[5][0]} 100.0%"""
    )


def test_each_remedy_is_said_once() -> None:
    """Here of the third subtask, whose own section says it, and of the last one."""
    report = skew(placed([*MANY_HOT[:1], [66, 66, 66], *MANY_HOT[2:]]), 128, 12, asked=0)
    assert [one.subtask for one in report.hot_subtasks] == [0, 2, 1, 3, 5, 4]
    remedies = [report.hot_subtasks[place].remedy for place in (0, 2, 5)]
    assert remedies[1] == remedies[2]
    text = " ".join(str(report).split())
    assert [text.count(f"remedy: {remedy}") for remedy in remedies] == [1, 1, 1]


def test_a_line_has_as_many_keys_as_fit() -> None:
    """36 characters, and of a key 28."""

    def line(*keys: str) -> str:
        return _line([HotKey(key, 0, 1, 0.5) for key in keys])

    assert line("x" * 26) == f"'{'x' * 26}' 50.0%"
    assert line("x" * 27) == f"'{'x' * 11}...{'x' * 12}' 50.0%"
    assert line("x" * 9, "y" * 9) == "'xxxxxxxxx' 50.0%, 'yyyyyyyyy' 50.0%"
    assert line("x" * 9, "y" * 10, "z") == "'xxxxxxxxx' 50.0%"


def test_rows_of_html_are_named() -> None:
    """By their subtasks, the key groups of the one that is asked for, and keys."""
    report = skew(placed([[8], [7, 8], [1009], [800]]), 128, 4, asked=1)
    assert report.detail is not None
    groups = [one.key_group for one in report.detail.top_key_groups]
    keys = [one.key for one in report.detail.top_keys]
    hot = [one.top_keys[0].key for one in report.hot_subtasks]
    named = re.findall('<th scope="row"[^>]*>([^< ]*)', report._repr_html_())
    assert list(map(int, named)) == [*range(4), *groups, *keys, *hot]


@pytest.mark.parametrize("asked", range(12))
def test_the_subtask_that_is_asked_for(asked: int) -> None:
    report = skew(placed(MANY_HOT), 128, 12, asked=asked)
    detail, counts = report.detail, sorted(MANY_HOT[asked], reverse=True)
    assert detail is not None
    assert detail.row == report.subtasks[asked]
    found = {one.subtask: one for one in report.hot_subtasks}
    if asked in found:
        assert detail[1:3] == found[asked][1:3]
        assert detail.top_keys == found[asked].top_keys
    else:
        assert detail[1:3] == ("not hot", "nothing to do")
        assert [key.records for key in detail.top_keys] == counts
    by_group: dict[int, list[int]] = {}
    for key in placed(MANY_HOT):
        group = assign_to_key_group(key, 128, LONG)
        if group in report.subtasks[asked].key_groups:
            by_group.setdefault(group, []).append(placed(MANY_HOT)[key])
    heaviest = sorted(by_group, key=lambda group: (-sum(by_group[group]), group))[:2]
    assert [tuple(one) for one in detail.top_key_groups] == [
        (group, sum(by_group[group]), sum(by_group[group]) / sum(counts), len(by_group[group]))
        for group in heaviest
    ]
    assert listed(report).count(asked) == 1
    assert set(listed(report)) == {0, 1, 2, 3, 4, 5, asked}


def test_text_of_the_subtask_that_is_asked_for() -> None:
    counts = [[8], [7, 8], [1009], [800]]
    report = skew(placed(counts), 128, 4, asked=1)
    assert report.detail is not None
    [one, other], keys = report.detail.top_key_groups, report.detail.top_keys
    assert f"""
subtask 1: not hot, with 0.03 times the mean
15 records (0.8%) in key groups 32 to 63
records  of the subtask  key group  keys
      8           53.3%  {one.key_group:>9}     1
      7           46.7%  {other.key_group:>9}     1

records  of the subtask  key group  key
      8           53.3%  {keys[0].key_group:>9}  {keys[0].key}
      7           46.7%  {keys[1].key_group:>9}  {keys[1].key}

subtask 2: one hot key
""" in str(report)


def test_an_idle_subtask_that_is_asked_for() -> None:
    report = skew(placed([[97], [], [1], [1, 1, 1]]), 128, 4, asked=1)
    assert report.diagnosis == "one hot key"
    assert report.detail is not None
    assert report.detail.diagnosis == "too few keys"
    assert report.detail[3:] == ((), ())
    lines = str(report).splitlines()
    at = lines.index("subtask 1: too few keys, with 0.00 times the mean")
    assert lines[at + 1].startswith("remedy: 5 keys reach 3 of 4 subtasks: ")
    assert "0 records (0.0%) in key groups 32 to 63" in lines
    nothing = skew({}, 128, 4, asked=3).detail
    assert nothing is not None
    assert nothing.diagnosis == "not hot"


def test_long_keys_in_a_line() -> None:
    """However long its keys, a hot subtask shows one of them, in 80 columns."""
    keys: dict[Any, int] = {}
    for number in range(2000):
        key = f"{'x' * 60}{number}"
        if assign_key_to_parallel_operator(key, 128, 128, STRING) < 8:
            keys[key] = 10**9
    lines = str(skew(keys, 128, 128, STRING)).splitlines()
    shown = [line for line in lines if line.startswith(" ") and "'xxxxxxxxxxx...xxxx" in line]
    assert len(shown) == 5
    assert max(map(len, lines)) <= 80


def test_null_keys_are_said() -> None:
    for count in (1, 7):
        assert (
            f"\n{count} records with a null key are left out: Flink would fail on them\n"
            in str(skew(placed([[1], [1]]), 128, 2, null_keys=count))
        )
    assert "null key" not in str(skew(placed([[1], [1]]), 128, 2))


def test_html() -> None:
    bad = "<script>alert('&')</script>"
    report = skew({bad: 50} | dict.fromkeys("abcdefgh", 2), 128, 3, STRING, sent=[1] * 128)
    page = report._repr_html_()
    assert "<script" not in page
    cells = Tables(page)
    assert cells.rows[0][:3] == ["subtask", "records", "share"]
    assert [row[:2] for row in cells.rows[1:4]] == [
        [str(row.subtask), str(row.records)] for row in report.subtasks
    ]
    assert ["50", repr(bad)] in [[row[0], row[-1]] for row in cells.rows[4:]]
    assert report.diagnosis in page


def test_html_has_a_heading_for_each_column() -> None:
    for sent, columns in ((None, 6), ([1] * 128, 7)):
        cells = shown(skew(placed([[1], [1]]), 128, 2, sent=sent))
        assert [len(row) for row in cells.rows] == [columns] * 3


def test_key_types_of_up_to_40_characters_are_said_whole() -> None:
    text = "TUPLE(STRING, STRING, STRING, INT, LONG)"
    assert len(text) == 40
    three = ("a", "b", "c")
    of_40 = skew({(*three, 1, 2): 1}, 128, 2, TUPLE(STRING, STRING, STRING, INT, LONG))
    assert f"of type {text}, max" in str(of_40)
    of_41 = skew({(*three, 1, 2): 1}, 128, 2, TUPLE(STRING, STRING, STRING, LONG, LONG))
    assert "of type TUPLE(STRING, STRI...STRING, LONG, LONG), max" in str(of_41)


# --- rescaling ------------------------------------------------------------------------------


def test_rescale_report() -> None:
    report = RescaleReport(RescalePlan(8, 2, 3), KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1]))
    assert (report.weight_before, report.weight_after) == ([8, 4], [7, 2, 3])
    assert report.imbalance_before == pytest.approx(8 * 2 / 12)
    assert report.imbalance_after == pytest.approx(7 * 3 / 12)
    assert (report.hot_subtask_before, report.hot_subtask_after) == (0, 0)
    assert report.moved_weight == 4
    assert report.moved_weight_share == pytest.approx(1 / 3)
    text = str(report)
    assert text.startswith(f"{report.plan.table(report.load)}\n")
    assert "\nhot subtask before: 0 of 2 has 8, 66.7% of the weight\n" in text
    assert "\nhot subtask after: 0 of 3 has 7, 58.3% of the weight\n" in text
    # At 2 the heaviest has 8, at 3 it has 7, from 4 to 6 it has 6.
    (best, new), floor = report.recommendations, report.recommendations.floor
    assert [(one.parallelism, one.heaviest_weight) for one in (best, new)] == [(4, 6), (3, 7)]
    assert floor == "key group 0 alone has 41.7%: beyond 2 subtasks none is even"
    assert " ".join(text.split()).endswith(f" than at 3: {best} {new} {floor}")


def test_no_weight() -> None:
    report = RescaleReport(RescalePlan(128, 3, 4), KeyGroupLoad(128, [0] * 128))
    assert (report.weight_before, report.weight_after) == ([0] * 3, [0] * 4)
    assert (report.moved_weight, report.moved_weight_share) == (0, 0)
    assert " has 0, 0.0% of the weight" in str(report)


def test_few_subtasks_that_are_even_are_no_better_where_they_have_more_to_do() -> None:
    # At 2 the subtasks have 6 and 6, at 4 they have 5, 1, 3 and 3, and at 3 they have 6, 3 and 3.
    report = RescaleReport(RescalePlan(4, 1, 4), KeyGroupLoad(4, [5, 1, 3, 3]))
    assert [one.parallelism for one in report.load.recommend(2, 4)] == [4, 2]
    assert [one.parallelism for one in report.recommendations] == [4]
    # Here the heaviest has 6 at each of them, and 2 subtasks are enough for that.
    report = RescaleReport(RescalePlan(4, 1, 4), KeyGroupLoad(4, [0, 6, 3, 3]))
    assert [one.parallelism for one in report.recommendations] == [2]


def test_a_lower_parallelism_with_no_heavier_subtask_takes_the_place_of_the_new_one() -> None:
    # Key groups 3 and 4 are together at 2 and 4: the heaviest has 7, 4, 6, 3 and 3 from 2 to 6.
    load = KeyGroupLoad(6, [0, 0, 0, 3, 3, 1])
    report = RescaleReport(RescalePlan(6, 1, 4), load)
    assert [one.parallelism for one in report.recommendations] == [5, 3]


def test_a_lower_parallelism_that_does_nearly_as_well_is_recommended() -> None:
    """At 100 the heaviest of 28 subtasks with 2 key groups has 2000, at 64 one has 2060.

    At 65 the last two subtasks have one key group each, and the others two of 1000.
    """
    load = KeyGroupLoad(128, [1000] * 126 + [1030] * 2)
    report = RescaleReport(RescalePlan(128, 128, 100), load)
    assert [one.parallelism for one in report.recommendations] == [128, 65, 64]
    assert load.per_subtask(64)[63] == 2060 > max(report.weight_after) == 2000
    text = " ".join(str(report).split())
    assert "after, uneven key groups: 28 subtasks have 2 key groups, 72 have 1: at best" in text
    assert "before, uneven" not in text


@pytest.mark.parametrize(
    ("sizes", "low", "high"),
    [
        ((128, 3, 1), 1, 2),
        ((128, 3, 9), 5, 18),
        ((128, 3, 100), 50, 128),
        ((4096, 3, 501), 251, 1001),
        ((4096, 3, 2000), 1500, 2500),
    ],
)
def test_what_is_near(sizes: tuple[int, int, int], low: int, high: int) -> None:
    report = RescaleReport(RescalePlan(*sizes), KeyGroupLoad(sizes[0], [1] * sizes[0]))
    assert f"\nrecommended, from {low} to {high} with " in str(report)
    assert all(low <= one.parallelism <= high for one in report.recommendations)


def test_no_parallelism_below_the_least_is_recommended() -> None:
    """The heaviest of 6 and 7 subtasks has 3 key groups of 16, of 8 to 10 it has 2."""
    plan, load = RescalePlan(16, 3, 7), KeyGroupLoad(16, [1] * 16)
    report = RescaleReport(plan, load)
    assert [one.parallelism for one in report.recommendations] == [8, 6]
    report = RescaleReport(plan, load, at_least=7)
    assert "\nrecommended, from 7 to 14 with " in str(report)
    assert [one.parallelism for one in report.recommendations] == [8, 7]
    assert report == RescaleReport(plan, load, 7) != RescaleReport(plan, load)


@pytest.mark.parametrize("at_least", [0, 5, True, "3", None])
def test_bad_least(at_least: Any) -> None:
    with pytest.raises(ParallelismError, match="at_least must be"):
        RescaleReport(RescalePlan(128, 3, 4), KeyGroupLoad(128, [1] * 128), at_least)


def test_the_floor_is_in_the_text_once_and_in_the_notebook_once() -> None:
    load = KeyGroupLoad(128, {5: 9, 40: 8, 70: 7, 90: 6})
    report = RescaleReport(RescalePlan(128, 8, 12), load, at_least=12)
    floor = "key group 5 alone has 30.0%: beyond 5 subtasks nothing gets better"
    assert report.recommendations.floor == floor
    assert str(report).endswith(f"\n{floor}")
    for text in (str(report), report._repr_html_()):
        assert text.count(floor) == 1


@pytest.mark.long
@pytest.mark.parametrize("weight", [1, 2**300, 0.1])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (128, 3, 4), (32768, 32768, 10001)])
def test_text_fits_80_columns(sizes: tuple[int, int, int], weight: float) -> None:
    load = KeyGroupLoad(sizes[0], {sizes[0] // 2: weight})
    lines = str(RescaleReport(RescalePlan(*sizes), load)).splitlines()
    assert max(map(len, lines)) <= 80


def test_lines_are_as_long_as_fits() -> None:
    report = RescaleReport(RescalePlan(720, 3, 52), KeyGroupLoad(720, [1] * 720))
    line = "  parallelism 103: the heaviest subtask has 7, imbalance 1.00 (103 subtasks over"
    assert len(line) == 80
    assert line in str(report).splitlines()


def test_report_refuses_what_does_not_belong_together() -> None:
    plan, load = RescalePlan(128, 3, 4), KeyGroupLoad(10, [1] * 10)
    with pytest.raises(InvalidValueError, match="load must have max_parallelism 128"):
        RescaleReport(plan, load)
    with pytest.raises(InvalidTypeError, match="load must be a KeyGroupLoad, got None"):
        RescaleReport(plan, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"plan must be a RescalePlan, got \(128, 3, 4\)"):
        RescaleReport((128, 3, 4), load)  # type: ignore[arg-type]


@pytest.mark.extras
def test_rows_of_a_skew_report_as_pandas_and_as_a_picture() -> None:
    pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    report = skew(placed([[9], [1], [2], [0]]), 128, 4)
    frame = report.to_pandas()
    assert list(frame.columns) == list(report.subtasks[0]._fields)
    assert list(frame["records"]) == [9, 1, 2, 0]
    bars: Any = report.plot().patches
    heights = {round(bar.get_x() + 0.4): bar.get_height() for bar in bars}
    assert heights == {0: 9, 1: 1, 2: 2, 3: 0}
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("weights", "subtask", "asked"),
    [
        *(([0, 1, 9, 1], subtask, asked) for subtask, asked in ((None, {2}), (1, {1, 2}))),
        *(([0, 1, 9, 1], subtask, {2}) for subtask in (2, 0)),
        ([1, 3, 2, 2], None, {1}),  # 1.5 times the mean
    ],
)
def test_keys_are_counted_where_they_are_told(
    weights: list[int], subtask: int | None, asked: set[int]
) -> None:
    """Of subtasks that are hot or asked for, and have records."""
    distinct = [int(weight > 0) for weight in weights]
    calls: list[set[int]] = []

    def top_keys_of(wanted: list[bool]) -> list[Any]:
        calls.append({number for number, is_wanted in enumerate(wanted) if is_wanted})
        return []

    question = SkewQuestion(4, 4, 3, None, subtask)
    question.report(LONG, False, weights, distinct, [], 0, top_keys_of)
    assert calls == [asked]


def test_three_parallelisms_are_shown() -> None:
    load = KeyGroupLoad(128, [number * 7919 % 1000 for number in range(128)])
    report = RescaleReport(RescalePlan(128, 7, 9), load)
    assert len(report.recommendations) > 3
    shown_ones = re.findall(r"^  parallelism (\d+):", str(report), re.MULTILINE)
    assert shown_ones == [str(better.parallelism) for better in report.recommendations[:3]]
