"""The large set of vectors: made apart from the library, by another hand's generator.

Made by real Flink 2.3.0, and byte for byte the same by 1.20.5. Every line of every file is checked
for something: keys that a key type holds through `hash_code`, the rest at least from their hash
to their key groups. `pytest -rP` shows the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from support.golden import lines
from support.keys.java_values import (
    WRAPPERS,
    BeyondPythonError,
    NoKeyTypeError,
    by_formula,
    decode,
)

import keygroups
from keygroups import KeyGroupRange, KeyGroupsError


def test_keys() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/keys"):
        java_type, value, code = line["type"], line["value"], line["hash"]
        counts["lines"] += 1
        for max_parallelism, key_group in line["kg"].items():
            assert (
                keygroups.compute_key_group_for_key_hash(code, int(max_parallelism)) == key_group
            ), line
        wrapped, added = WRAPPERS.get(java_type, (java_type, 0))
        try:
            key_type, key = decode(wrapped, value)
        except (NoKeyTypeError, BeyondPythonError) as error:
            formula = by_formula(java_type, value)
            counts[f"{type(error).__name__}, by formula: {formula is not None}"] += 1
            assert formula in (None, code), line
            continue
        counts["hash_code"] += 1
        assert (keygroups.hash_code(key, key_type) + added - code) % 2**32 == 0, line
        if not added:
            for max_parallelism, key_group in line["kg"].items():
                mp = int(max_parallelism)
                assert keygroups.assign_to_key_group(key, mp, key_type) == key_group, line
    print("keys:", dict(counts))
    assert counts["lines"] > 7000
    assert counts["hash_code"] > 5500


def test_ranges() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/ranges"):
        mp, p = line["mp"], line["p"]
        try:
            if "kg" in line:
                op = keygroups.compute_operator_index_for_key_group(mp, p, line["kg"])
                same = op == line["op"]
            else:
                index = line["i"]
                found = keygroups.compute_key_group_range_for_operator_index(mp, p, index)
                same = (found.start_key_group, found.end_key_group) == (line["start"], line["end"])
        except KeyGroupsError:  # Flink checks none of these
            assert p > mp or not (0 <= line["kg"] < mp if "kg" in line else 0 <= line["i"] < p)
            counts["out of bounds, only we refuse"] += 1
        else:
            assert same, line
            counts["same answer"] += 1
    print("ranges:", dict(counts))
    assert counts["same answer"] > 9000


def test_default_max_parallelism() -> None:
    count = 0
    for line in lines("independent/default_max_parallelism"):
        count += 1
        assert keygroups.compute_default_max_parallelism(line["p"]) == line["default_mp"], line
    assert count > 16000


def flink_range(bounds: list[int]) -> KeyGroupRange:
    """KeyGroupRange.of, which answers an end below the start with the empty range."""
    start, end = bounds
    return KeyGroupRange.EMPTY if start >= 0 and end < start else KeyGroupRange(start, end)


def as_json(found: KeyGroupRange) -> dict[str, int]:
    return {"start": found.start_key_group, "end": found.end_key_group}


def tagged(value: dict[str, Any]) -> Any:
    return None if value["t"] == "null" else decode(value["t"], value["v"])[1]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "computeDefaultMaxParallelism": keygroups.compute_default_max_parallelism,
    "checkParallelismPreconditions": keygroups.compute_default_max_parallelism,
    "computeKeyGroupRangeForOperatorIndex": lambda *args: as_json(
        keygroups.compute_key_group_range_for_operator_index(*args)
    ),
    "computeOperatorIndexForKeyGroup": keygroups.compute_operator_index_for_key_group,
    "computeKeyGroupForKeyHash": keygroups.compute_key_group_for_key_hash,
    "assignToKeyGroup": lambda key, mp: keygroups.assign_to_key_group(tagged(key), mp),
    "assignKeyToParallelOperator": lambda key, mp, p: keygroups.assign_key_to_parallel_operator(
        tagged(key), mp, p
    ),
    "<init>": lambda start, end: as_json(KeyGroupRange(start, end)),
    "of": lambda start, end: as_json(flink_range([start, end])),
}
METHODS: dict[str, Callable[..., Any]] = {
    "contains": lambda r, kg: kg in r,
    "getNumberOfKeyGroups": len,
    "getStartKeyGroup": lambda r: r.start_key_group,
    "getEndKeyGroup": lambda r: r.end_key_group,
    "prettyPrintInterval": str,
    "getIntersection": lambda r, other: as_json(r.intersection(other and flink_range(other))),
    "equals": lambda r, other: r == (other and flink_range(other)),
    "getKeyGroupId": lambda r, index: r[index],
}
# Java's own hashCode, toString and iterator protocol, which Python spells its own way; and
# classes of other modules.
ELSEWHERE = {"hashCode", "toString", "iterator.exhausted.next", "iterator.remove"}


def test_errors() -> None:
    """What Flink refuses we refuse; where we answer, our answer is Flink's."""
    counts: Counter[str] = Counter()
    for line in lines("independent/errors"):
        method, args = line["method"], line["args"]
        if line["class"] not in ("KeyGroupRange", "KeyGroupRangeAssignment"):
            counts["other classes"] += 1
            continue
        if method in ELSEWHERE:
            counts["Java's own protocols"] += 1
            continue
        try:
            if method in METHODS:
                result = METHODS[method](flink_range(line["on"]), *args)
            else:
                result = FUNCTIONS[method](*args)
        except (KeyGroupsError, IndexError):
            counts["both refuse" if "exception" in line else "only we refuse"] += 1
            continue
        if method == "checkParallelismPreconditions":
            assert line.get("result", "missing") is None  # it returns nothing
        elif method == "getKeyGroupId" and args[0] < 0:
            # Flink has no negative index; Python's counts from the end.
            assert result == list(flink_range(line["on"]))[args[0]]
        else:
            assert result == line["result"], line
        counts["same answer"] += 1
    print("errors:", dict(counts))
    assert counts["both refuse"] > 60
    assert counts["same answer"] > 80
