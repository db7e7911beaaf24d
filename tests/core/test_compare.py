"""Two savepoints compared: what is equal, changed, touched, only here, only there.

Of real points that is counted from what Flink's own classes read in either; what edits change is
known from the edit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from real_savepoints import POINTS, Point, plain, point, true_entries

from keygroups.savepoint import StateComparison

KINDS = ("equal", "changed", "touched", "only_here", "only_there")
Counts = dict[tuple[str, str], dict[str, int]]
"""By the id of an operator and the name of a state."""


def counted(comparison: StateComparison) -> dict[str, int]:
    return {kind: number for kind in KINDS if (number := getattr(comparison, kind))}


def compared(here: Point, there: Point) -> tuple[Counts, Counts]:
    """Return the counts of keyed and of operator state, without states that have no entries."""
    report = here.read().compare(there.read())
    keyed, others = (
        {
            (operator.operator_id, state.state): counts
            for operator in report.operators
            for state in getattr(operator, name)
            if (counts := counted(state))
        }
        for name in ("states", "operator_states")
    )
    return keyed, others


def entries(one: Point) -> dict[Any, tuple[Any, Any]]:
    """Return what Flink read: by what an entry is found by its value and its times."""
    found = {}
    for line in true_entries(one.entries, one.archive):
        operator, _, state, kind, _, key, namespace, user_key, value, time, timestamp = line
        if kind == "LIST" and "ttl" in [element[0] for element in value[1] if element]:
            time = tuple(element[1] for element in value[1])
            value = tuple(element[2] for element in value[1])
        found[operator, state, kind, key, namespace, user_key, timestamp] = value, time
    return found


def expected(here: Point, there: Point) -> Counts:
    first, second = entries(here), entries(there)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for place in {**first, **second}:
        if place not in second:
            kind = "only_here"
        elif place not in first:
            kind = "only_there"
        elif first[place][0] != second[place][0]:
            kind = "changed"
        else:
            kind = "equal" if first[place][1] == second[place][1] else "touched"
        counts.setdefault(place[:2], Counter())[kind] += 1
    return {state: dict(found) for state, found in counts.items()}


def elements(one: Point) -> dict[tuple[str, str], Any]:
    """Return what Flink read of operator state: of broadcast state the entries."""
    found: dict[tuple[str, str], Any] = {}
    for line in one.truth("operator_state"):
        place = (line["operator"], line["state"])
        if line["mode"] == "BROADCAST":
            found.setdefault(place, {}).update(plain(line["entries"]))
        else:
            found.setdefault(place, Counter()).update(map(plain, line["elements"]))
    return found


def expected_elements(here: Point, there: Point) -> Counts:
    first, second = elements(here), elements(there)
    counts: Counts = {}
    for place in {**first, **second}:
        left, right = first.get(place, Counter()), second.get(place, Counter())
        if isinstance(left, Counter) and isinstance(right, Counter):
            both = left & right
            found = {
                "equal": both.total(),
                "only_here": (left - both).total(),
                "only_there": (right - both).total(),
            }
        else:
            equal = sum(right.get(key) == value for key, value in left.items())
            common = len(left.keys() & right.keys())
            found = {
                "equal": equal,
                "changed": common - equal,
                "only_here": len(left) - common,
                "only_there": len(right) - common,
            }
        counts[place] = {kind: number for kind, number in found.items() if number}
    return {place: found for place, found in counts.items() if found}


QUICK = [
    ("2.3.0-heap-canonical", "2.3.0-heap-native"),
    ("2.3.0-heap-canonical", "2.3.0-rescaled-canonical"),
    ("2.3.0-heap-canonical", "1.20.5-heap-checkpoint"),
    ("2.3.0-rocksinc-native", "1.17.2-rocksinc-checkpoint"),
    ("1.20.5-heaptimers-canonical", "1.20.5-heaptimers-checkpoint"),
    ("2.3.0-heap-canonical", "2.3.0-wide-canonical"),
]


def pairs() -> Iterator[Any]:
    """Yield pairs of points to compare: all with the same job, and those with the next ones."""
    names = [one.name for one in POINTS if "pojo" not in one.name]  # of Kryo only the class
    for here, there in combinations(names, 2):
        same_job = here.split("-")[1] == there.split("-")[1]
        if same_job or names.index(there) - names.index(here) < 3 or (here, there) in QUICK:
            marks = [] if (here, there) in QUICK else pytest.mark.slow
            yield pytest.param(here, there, marks=marks, id=f"{here} {there}")


@pytest.mark.parametrize(("here", "there"), [*pairs()])
def test_real_points(here: str, there: str) -> None:
    sides = point(here), point(there)
    keyed, others = compared(*sides)
    assert keyed == expected(*sides)
    assert others == expected_elements(*sides)
