"""Operator state as Flink's RoundRobinOperatorStateRepartitioner hands it out.

Expected values are those of real Flink 2.3.0, the same in 1.20.5: the cases written out here
are among the vectors, all of which are read too.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import lines

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    rescale,
)
from keygroups.operator_state import (
    Mode,
    redistribute_list_state,
    redistribute_operator_state,
    split_distribute_order,
)

Element = tuple[str, int, int]


def make_states(
    states: list[dict[str, Any]],
) -> dict[str, tuple[Mode, list[list[Element] | None]]]:
    """Make elements that say where they come from: state, old subtask, offset number."""
    return {
        state["name"]: (
            state["mode"],
            [
                None if length is None else [(state["name"], old, i) for i in range(length)]
                for old, length in enumerate(state["lengths"])
            ],
        )
        for state in states
    }


def pieces_of(new: int, result: dict[str, list[list[Element]]]) -> list[dict[str, Any]]:
    """Return the elements that a new subtask restores, as the vectors write them."""
    pieces: dict[tuple[str, int], list[int]] = {}
    for name, lists in result.items():
        for state, old, index in lists[new]:
            assert state == name
            pieces.setdefault((name, old), []).append(index)
    return [{"state": name, "old": old, "idx": idx} for (name, old), idx in pieces.items()]


# --- the cases of real Flink -----------------------------------------------------------------


def test_vectors() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/operator_state"):
        if line["fn"] != "repartitionState":
            continue  # test_rescale.py and test_partitioners.py have it
        counts["repartitionState"] += 1
        states = make_states(line["states"])
        order = line["split_order"]
        walked = {name: states[name] for name in [*order, *(states.keys() - set(order))]}
        result = redistribute_operator_state(walked, line["old_p"], line["new_p"])
        in_order = {name: result[name] for name in states}
        for new, pieces in enumerate(line["out"]):
            assert pieces_of(new, in_order) == pieces, line
        counts["pieces"] += sum(map(len, line["out"]))
        if len(states) == 1 and states.keys() == set(order):
            ((_, lists),) = states.values()
            assert redistribute_list_state(lists, line["new_p"]) == result[order[0]], line
            counts["as a single list state"] += 1
        try:
            walk = split_distribute_order(sorted(order))
        except InvalidValueError:
            counts["order not decided by the names"] += 1
            continue
        assert walk == order, line
        counts["same order"] += 1
        counts["same order of several"] += len(order) > 1
    print("operator_state:", dict(counts))
    assert counts["repartitionState"] == 344
    assert counts["same order of several"] > 100
    assert counts["order not decided by the names"] < 30


def test_one_list() -> None:
    assert redistribute_list_state([["a", "b", "c"], ["d", "e", "f", "g"]], 3) == [
        ["a", "b", "c"], ["d", "e"], ["f", "g"],
    ]  # fmt: skip
    assert redistribute_list_state([["a", "b"], [], list("cdefg"), ["h"]], 1) == [list("abcdefgh")]
    assert redistribute_list_state([["a", "b"]], 4) == [["a"], ["b"], [], []]
    assert redistribute_list_state([["a", "b"], None], 8) == [
        ["a"],
        ["b"],
        *([] for _ in range(6)),
    ]


def test_unchanged_parallelism_keeps_lists_in_place() -> None:
    lists = [[1, 2, 3, 4], None, [5], []]
    assert redistribute_list_state(lists, 4) == [[1, 2, 3, 4], [], [5], []]
    result = redistribute_operator_state({"s": ("SPLIT_DISTRIBUTE", lists)}, 4, 4)
    assert result == {"s": [[1, 2, 3, 4], [], [5], []]}


def test_the_next_state_starts_where_the_extras_ended() -> None:
    """Line 10 of the vectors but for its union state, and that order the other way round."""
    a: tuple[Mode, list[list[str]]] = ("SPLIT_DISTRIBUTE", [["a0", "a1", "a2", "a3"], []])
    b: tuple[Mode, list[list[str]]] = ("SPLIT_DISTRIBUTE", [["b0"], ["b1"]])
    assert redistribute_operator_state({"a": a, "b": b}, 2, 3) == {
        "a": [["a0", "a1"], ["a2"], ["a3"]],
        "b": [[], ["b0"], ["b1"]],
    }
    other = redistribute_operator_state({"b": b, "a": a}, 2, 3)
    assert other["b"] == [["b0"], ["b1"], []]
    assert other["a"] == [["a2"], ["a3"], ["a0", "a1"]]


def test_union_goes_to_all() -> None:
    for new in (2, 5):
        result = redistribute_operator_state({"u": ("UNION", [[1, 2], [3, 4, 5]])}, 2, new)
        assert result == {"u": [[1, 2, 3, 4, 5]] * new}


def test_broadcast() -> None:
    def broadcast(lists: list[list[int] | None], new: int) -> list[list[int]]:
        return redistribute_operator_state({"b": ("BROADCAST", lists)}, len(lists), new)["b"]

    assert broadcast([[1], [2]], 4) == [[1], [2], [1], [2]]
    assert broadcast([[1], [2], [3]], 3) == [[1], [2], [3]]
    # Of three subtasks the second did not report: the third gets two entries.
    assert broadcast([[1], None, [3]], 3) == [[1], [3], [1, 3]]
    assert broadcast([None, [2], None], 2) == [[2], [2]]
    assert broadcast([None, None], 2) == [[], []]
    assert broadcast([None, None], 3) == [[], [], []]


def test_results_are_fresh_lists() -> None:
    lists = [[1], [2]]
    for mode in get_args(Mode):
        for new in (2, 3):
            for one in redistribute_operator_state({"s": (mode, lists)}, 2, new)["s"]:
                one.append(9)
                assert one.count(9) == 1
            assert lists == [[1], [2]]


def test_names_of_the_design() -> None:
    assert rescale.redistribute_list_state is redistribute_list_state
    assert rescale.redistribute_operator_state is redistribute_operator_state


# --- laws ------------------------------------------------------------------------------------

parallelisms = st.integers(1, 20)
elements = st.lists(st.integers(), max_size=8)
modes = st.sampled_from(get_args(Mode))


@st.composite
def operators(draw: st.DrawFn) -> tuple[list[dict[str, Any]], int, int]:
    old, new = draw(parallelisms), draw(parallelisms)
    lengths = st.lists(st.none() | st.integers(0, 8), min_size=old, max_size=old)
    states = draw(st.lists(st.tuples(modes, lengths), max_size=6))
    named = [
        {"name": f"s{i}", "mode": mode, "lengths": lengths}
        for i, (mode, lengths) in enumerate(states)
    ]
    return named, old, new


@given(st.lists(elements, min_size=1, max_size=12), parallelisms)
def test_every_list_element_is_somewhere_once(lists: list[list[int]], new: int) -> None:
    numbered = [[(old, i) for i in range(len(one))] for old, one in enumerate(lists)]
    found = redistribute_list_state(numbered, new)
    assert len(found) == new
    assert list(chain.from_iterable(found)) == list(chain.from_iterable(numbered))
    if new != len(lists):
        sizes = [len(one) for one in found]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] - sizes[-1] <= 1


@given(operators())
def test_every_mode_keeps_its_promise(operator: tuple[list[dict[str, Any]], int, int]) -> None:
    described, old, new = operator
    states = make_states(described)
    result = redistribute_operator_state(states, old, new)
    assert list(result) == list(states)
    split_sizes = [0] * new
    for name, (mode, lists) in states.items():
        found = result[name]
        assert len(found) == new
        everything = [element for one in lists if one is not None for element in one]
        if mode == "UNION":
            assert found == [everything] * new
        elif mode == "SPLIT_DISTRIBUTE":
            assert sorted(chain.from_iterable(found)) == everything
            split_sizes = [size + len(one) for size, one in zip(split_sizes, found)]
        else:
            reported = [one for one in lists if one is not None]
            for i, one in enumerate(found):
                own = (lists[i] or []) if old == new else []
                given_out = reported[i % len(reported)] if reported else []
                assert one == sorted({*own, *given_out})
    if old != new:  # the extras of all states go round without a gap
        assert max(split_sizes) - min(split_sizes) <= 1


# --- the order of Flink's HashMap ---------------------------------------------------------------


def names(*hash_codes: int) -> list[str]:
    """Return names with these hash codes: the hash of one character is its code unit."""
    return [chr(code) for code in hash_codes]


def test_order_of_the_buckets() -> None:
    assert split_distribute_order([]) == []
    assert split_distribute_order(names(3)) == names(3)
    # A new HashMap has 16 buckets, so 17 is in bucket 1.
    assert split_distribute_order(names(5, 17, 0)) == names(0, 17, 5)
    # Hash codes beyond 16 bits, whose high half HashMap.hash takes in: a line of the vectors.
    assert split_distribute_order(iter(["state-2", "Aa", "pending"])) == [
        "Aa", "pending", "state-2",
    ]  # fmt: skip


def test_order_in_a_larger_table() -> None:
    """12 names fit 16 buckets; the 14th call of computeIfAbsent doubles them first."""
    assert split_distribute_order(names(*range(11), 27)) == names(*range(11), 27)
    assert split_distribute_order(names(27, *range(13))) == names(*range(13), 27)
    with pytest.raises(InvalidValueError, match="share a bucket"):
        split_distribute_order(names(*range(12), 27))  # 13: at most 16 buckets are sure


def test_order_of_13_names_can_depend_on_who_reported() -> None:
    """JDK 17 walks these as .. 27 12 after 13 calls and as .. 12 27 after 14."""
    with pytest.raises(InvalidValueError, match="names must not fill a table of 16 to its limit"):
        split_distribute_order(names(*range(11), 12, 27))
    assert split_distribute_order(names(28, *range(12))) == names(*range(12), 28)


def test_names_that_share_a_bucket() -> None:
    """ "Aa" and "BB" have one hash code, 2112: the best known collision of the JDK."""
    with pytest.raises(InvalidValueError, match="got 'Aa' and 'BB'"):
        split_distribute_order(["Aa", "BB"])
    with pytest.raises(InvalidValueError, match="must not share a bucket"):
        split_distribute_order(names(1, 17))


@pytest.mark.parametrize("bad", [1, None, b"a", ("a",)], ids=repr)
def test_names_are_strings(bad: Any) -> None:
    with pytest.raises(KeyGroupsError):
        split_distribute_order(["a", bad])


def test_names_are_distinct() -> None:
    with pytest.raises(InvalidValueError, match="names must be distinct, got 'a' twice"):
        split_distribute_order(["a", "b", "a"])


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 32769, True, 2.0, "3", None], ids=repr)
def test_parallelism(value: Any) -> None:
    with pytest.raises(ParallelismError, match="new_parallelism must be"):
        redistribute_list_state([[1]], value)
    with pytest.raises(ParallelismError, match="new_parallelism must be"):
        redistribute_operator_state({}, 1, value)
    with pytest.raises(ParallelismError, match="old_parallelism must be"):
        redistribute_operator_state({}, value, 1)


@pytest.mark.parametrize(
    ("lists", "error", "says"),
    [
        ([], ParallelismError, "length of old_lists must be from 1 to 32768"),
        ("abc", InvalidTypeError, "old_lists must be a list of lists, got 'abc'"),
        (5, InvalidTypeError, "old_lists must be a list of lists, got 5"),
        ({1: [2]}, InvalidTypeError, "old_lists must be a list of lists"),
        ([[1], "ab"], InvalidTypeError, "old_lists must have a list or None at 1, got 'ab'"),
        ([[1], 2], InvalidTypeError, "old_lists must have a list or None at 1, got 2"),
    ],
)
def test_old_lists(lists: Any, error: type[KeyGroupsError], says: str) -> None:
    with pytest.raises(error, match=says):
        redistribute_list_state(lists, 2)


@pytest.mark.parametrize(
    ("states", "error", "says"),
    [
        ([("s", "UNION", [])], InvalidTypeError, "states must map names to"),
        ({1: ("UNION", [[], []])}, InvalidTypeError, "name of a state must be a str, got 1"),
        ({"s": [[1], [2]]}, InvalidTypeError, "state 's' must be a tuple"),
        ({"s": ("UNION",)}, InvalidTypeError, "state 's' must be a tuple"),
        ({"s": ("union", [[], []])}, InvalidValueError, "mode of state 's' must be one of SPLIT"),
        ({"s": ("UNION", [[]])}, InvalidValueError, "lists of state 's' must be 2, .* got 1"),
        ({"s": ("UNION", [[]] * 3)}, InvalidValueError, "lists of state 's' must be 2, .* got 3"),
        ({"s": ("UNION", None)}, InvalidTypeError, "lists of state 's' must be a list of lists"),
        ({"s": ("UNION", [[], b"x"])}, InvalidTypeError, "lists of state 's' must have a list"),
    ],
)
def test_states(states: Any, error: type[KeyGroupsError], says: str) -> None:
    with pytest.raises(error, match=says):
        redistribute_operator_state(states, 2, 3)
