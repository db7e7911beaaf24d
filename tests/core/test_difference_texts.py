"""The texts of two values that differ, in a comparison's lines and tables."""

from __future__ import annotations

import struct
from array import array
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from support.inside.columns import value_texts

from keygroups.savepoint import Row, TimeWindow, TtlValue
from keygroups.savepoint.values import Pojo, Some

BEFORE, BEHIND = "x" * 20, "y" * 20
ONE, TWO = f"{BEFORE}1{BEHIND}", f"{BEFORE}2{BEHIND}"
OTHER_NAN = struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]

# The values, how many characters each may have, and the text.
CHANGES: list[tuple[Any, Any, int, str]] = [
    (7, 8, 20, "7 -> 8"),
    (1, 1.0, 20, "1 -> 1.0"),
    (None, 0, 4, "None -> 0"),
    ("aaaaaaaa", "b", 10, "'aaaaaaaa' -> 'b'"),
    ("aaaaaaaa", "b", 9, "'aaaaaaaa... -> 'b'"),
    ("b", "aaaaaaaa", 9, "'b' -> 'aaaaaaaa..."),
    ("a\n", "b", 9, "'a\\n' -> 'b'"),
    (ONE, TWO, 43, f"'{ONE}' -> '{TWO}'"),
    (ONE, TWO, 30, f"...xxxxxxxx1{BEHIND}' -> ...xxxxxxxx2{BEHIND}'"),
    (ONE, TWO, 29, f"...xxxxxxxx1{BEHIND}... -> ...xxxxxxxx2{BEHIND}..."),
    (ONE, TWO, 10, "...xxxxxxxx1y... -> ...xxxxxxxx2y..."),
    (float("nan"), OTHER_NAN, 20, "nan, of other bytes"),
    ([0] * 10, [0] * 1_000, 20, "number of elements: 10 -> 1000"),
    ((0,) * 10, (0,) * 11, 20, "number of elements: 10 -> 11"),
    (array("i", [0] * 10), array("i", [0] * 11), 20, "number of elements: 10 -> 11"),
    ({"a": [1] * 20}, {"a": [1] * 30}, 20, "['a'], number of elements: 20 -> 30"),
    ([1, 22_222, 3], [1, 22_223, 3], 5, "[1]: 22222 -> 22223"),
    (array("i", [1, 22_222]), array("i", [1, 22_223]), 5, "[1]: 22222 -> 22223"),
    ([1, 2], (1, 2), 3, "[1,... -> (1,..."),
    ([[1, (2, 3)]], [[1, (2, 4)]], 5, "[0][1][1]: 3 -> 4"),
    ({"a": 1, "b": 2}, {"a": 1, "b": 3}, 5, "['b']: 2 -> 3"),
    ({"a": 1}, {"b": 1}, 5, "['a']: 1 -> none"),
    ({"a": 1}, {"a": 1, "b": 2}, 5, "['b']: none -> 2"),
    ({1, 2}, {1, 3}, 4, "[2]: 2 -> none"),
    (frozenset([1]), frozenset([1, 3]), 4, "[3]: none -> 3"),
    ([1], [1.0], 4, "[0]: 1 -> 1.0"),
    ({"k" * 50: 1}, {"k" * 50: 2}, 9, f"['{'k' * 13}...{'k' * 10}']: 1 -> 2"),
    (Pojo("a.B", {"x": 1, "y": 2}), Pojo("a.B", {"x": 1, "y": 3}), 5, "y: 2 -> 3"),
    (Pojo("a.B", {"x": 1}), Pojo("a.C", {"x": 1}), 5, "class: 'a.B' -> 'a.C'"),
    (Pojo("a.B", {"x": [1, 2]}), Pojo("a.B", {"x": [1, 3]}), 5, "x[1]: 2 -> 3"),
    (TimeWindow(0, 5), TimeWindow(0, 6), 5, "end: 5 -> 6"),
    (TtlValue(1, [2]), TtlValue(1, [3]), 5, "value[0]: 2 -> 3"),
    (Some([1, 2]), Some([1, 3]), 5, "value[1]: 2 -> 3"),
    (Row((1, 2)), Row((1, 3)), 5, "[1]: 2 -> 3"),
    (Row((1, 2), names=("s", "n")), Row((1, 3), names=("s", "n")), 5, "n: 2 -> 3"),
    (Row((1,), "+I"), Row((1,), "-D"), 5, "kind: '+I' -> '-D'"),
]


@pytest.mark.parametrize(("own", "other", "most", "text"), CHANGES)
def test_values_that_differ(own: Any, other: Any, most: int, text: str) -> None:
    assert value_texts.change_text(own, other, most) == text


@pytest.mark.parametrize(
    ("own", "other", "most", "text"),
    [
        ("a", "b", 1, "a -> b"),
        ("a" * 10, "a" * 12, 12, f"{'a' * 10} -> {'a' * 12}"),
        ("a" * 10, "a" * 12, 8, f"...{'a' * 8} -> ...{'a' * 8}..."),
        ("a" * 10, "a" * 12, 11, f"...{'a' * 8} -> ...{'a' * 10}"),
        (f"{'a' * 8}bz", f"{'a' * 8}cz", 9, "aaaaaaaab... -> aaaaaaaac..."),
        (f"{'a' * 9}b", f"{'a' * 9}c", 9, "...aaaaaaaab -> ...aaaaaaaac"),
        ("x" * 5, "x" * 5, 5, "xxxxx, of other bytes"),
        ("x" * 6, "x" * 6, 5, "xxxxx..., of other bytes"),
    ],
)
def test_texts_that_differ(own: str, other: str, most: int, text: str) -> None:
    """Eight characters before the first that differs, unless both texts are short."""
    assert value_texts.text_change(own, other, most) == text
