"""Texts of differences: two values that are not equal never print alike, however long they are."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.inside.savepoints import exact
from support.inside.serializers import PojoSerializer

from keygroups.savepoint import (
    Change,
    EntryDifference,
    FileSplit,
    KafkaSplit,
    Pojo,
    Row,
    SplitDifference,
    StateComparison,
    StateEntry,
    TtlValue,
)
from keygroups.savepoint.values import Left

LONG = "x" * 200
IDS = [750036093000 + number for number in range(1000)]


def entry(value: Any) -> StateEntry:
    return StateEntry("s", "VALUE", 3, 0, "ann", None, None, value, None, None, 9)


def changed(here: Any, there: Any) -> str:
    line = str(EntryDifference("a", "s", "changed", entry(here), entry(there)))
    assert line.startswith("key 'ann': ")
    return line.removeprefix("key 'ann': ")


@pytest.mark.parametrize(
    ("here", "there", "text"),
    [
        (7, 8, "7 -> 8"),
        (1, True, "1 -> True"),
        (IDS[:10], IDS, "number of elements: 10 -> 1000"),
        (IDS, [*IDS[:-1], 5], "[999]: 750036093999 -> 5"),
        (array("q", IDS), array("q", [*IDS[:-1], 5]), "[999]: 750036093999 -> 5"),
        (Pojo("a.B", {"x": LONG, "y": IDS}), Pojo("a.B", {"x": LONG, "y": IDS[1:]}), "y, number"),
        (Pojo("a.B", {"x": LONG}), Pojo("a.C", {"x": LONG}), "class: 'a.B' -> 'a.C'"),
        ({"x": LONG, "z": 2}, {"x": LONG, "z": 3}, "['z']: 2 -> 3"),
        ({"x": LONG}, {"x": LONG, "z": 3}, "['z']: none -> 3"),
        ({*range(60)}, {*range(1, 60)}, "[0]: 0 -> none"),
        (Row([LONG], "+I"), Row([LONG], "-D"), "kind: '+I' -> '-D'"),
        (Row([LONG, 1], names=["a", "b"]), Row([LONG, 2], names=["a", "b"]), "b: 1 -> 2"),
        ([TtlValue(5, LONG)], [TtlValue(6, LONG)], "[0].last_access: 5 -> 6"),
        (Left(LONG), Left(f"{LONG}y"), "value: ...xxxxxxxx' -> ...xxxxxxxxy'"),
        (f"{LONG}a{LONG}", f"{LONG}b{LONG}", "...xxxxxxxxaxxx"),
        (bytes(99), bytes(98) + b"1", r"...\x00\x00\x00' -> ...\x00\x001'"),
        (LONG, [LONG], "'xxxxx"),
        (float("nan"), float("nan"), "nan, of other bytes"),
    ],
)
def test_the_part_that_differs_is_shown(here: Any, there: Any, text: str) -> None:
    assert changed(here, there).startswith(text)


VALUES = st.recursive(
    st.one_of(
        st.integers(),
        st.booleans(),
        st.text(max_size=90),
        st.floats(allow_nan=False),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.binary(max_size=90),
        st.none(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=30),
        st.dictionaries(st.text(max_size=40), inner, max_size=9),
        st.tuples(inner, inner).map(Row),
        st.tuples(inner, inner).map(lambda both: Pojo("a.B", dict(zip("xy", both)))),
    ),
    max_leaves=40,
)


@pytest.mark.long
@given(VALUES, VALUES)
def test_no_two_values_print_alike(here: Any, there: Any) -> None:
    assume(exact(here) != exact(there))
    text = changed(here, there)
    first, _, second = text.rpartition(" -> ")
    assert first != second
    assert not first.endswith(f" {second}")


@given(st.lists(st.integers(-(2**31), 2**31), min_size=30, max_size=60), st.data())
def test_one_element_of_many(values: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    other = [*values]
    other[place] += 1
    assert changed(values, other).endswith(f"{values[place]} -> {values[place] + 1}")


def test_what_is_added_prints_otherwise_than_what_is_removed() -> None:
    removed = EntryDifference("a", "s", "only_here", entry(1), None)
    added = EntryDifference("a", "s", "only_there", None, entry(1))
    assert (str(removed), str(added)) == ("key 'ann': 1 -> none", "key 'ann': none -> 1")
    split = KafkaSplit("clicks", 0, 5, None, 0)
    gone, new = (
        SplitDifference("only_here", split, None),
        SplitDifference("only_there", None, split),
    )
    assert str(gone).endswith(" -> none")
    assert "none -> " in str(new)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("path", f"/{LONG}b", "path ...xxxxxxxxa' -> ...xxxxxxxxb'"),
        ("hosts", ("b",), "hosts ('a',) -> ('b',)"),
        ("file_size", 7, "file_size 9 -> 7"),
        ("modification_time", None, "modification_time 5 -> None"),
    ],
)
def test_every_field_of_a_split_that_differs_is_shown(field: str, value: Any, text: str) -> None:
    here = FileSplit("1", f"/{LONG}a", 0, 9, 5, 9, ("a",), None, 3)
    there = here._replace(**{field: value}, subtask=4)
    assert str(SplitDifference("changed", here, there)) == f"split 1: {text}"


def test_splits_of_two_clusters() -> None:
    splits = [KafkaSplit("clicks", 0, 5, None, 0, cluster=cluster) for cluster in "ab"]
    first, second = (str(SplitDifference("only_here", split, None)) for split in splits)
    assert (first, second) == (
        "split a: clicks/0: offset 5, is_assigned False -> none",
        "split b: clicks/0: offset 5, is_assigned False -> none",
    )


def test_types_that_differ_in_their_middle() -> None:
    """A line has 80 characters, and shows what is another about two long types."""
    here, there = (PojoSerializer(f"shop.{LONG}{end}.{LONG}") for end in "ab")
    change = Change("value_serializer", here, there)
    assert str(change) == f"value serializer: {here} -> {there}"
    lines = str(StateComparison("s", "VALUE", (change,), 0, 0, 0, 0, 0, ())).splitlines()
    [line] = [line for line in lines if "serializer" in line]
    assert len(line) <= 80
    assert "xxxxxxxa.xx" in line
    assert "xxxxxxxb.xx" in line
