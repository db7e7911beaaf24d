"""Flink's channel selectors, against those of real Flink.

Expected values are those of real Flink 2.3.0, the same in 1.20.5: the cases written out here
are among the vectors, all of which are read too.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import lines

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    RescalePlan,
    partitioners,
)
from keygroups.partitioners import (
    BroadcastPartitioner,
    CustomPartitionerWrapper,
    ForwardPartitioner,
    GlobalPartitioner,
    KeyGroupStreamPartitioner,
    RebalancePartitioner,
    RescalePartitioner,
    ShufflePartitioner,
    StreamPartitioner,
    SubtaskStateMapper,
    pointwise_edges,
    subtask_state_mapping,
)
from keygroups.types import INT, LONG, STRING


class JavaRandom:
    """java.util.Random by the formulas of its API documentation."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ 0x5DEECE66D) % 2**48

    def next_int(self, bound: int) -> int:
        while True:
            self._seed = (self._seed * 0x5DEECE66D + 0xB) % 2**48
            bits = self._seed >> 17  # next(31)
            if bound & -bound == bound:
                return (bound * bits) >> 31
            if bits - bits % bound + (bound - 1) < 2**31:
                return bits % bound


def select(partitioner: StreamPartitioner, count: int) -> list[int]:
    return [partitioner.select_channel(None) for _ in range(count)]


def make_partitioner(line: dict[str, Any]) -> StreamPartitioner:
    channels = line["channels"]
    make: dict[str, Callable[[], StreamPartitioner]] = {
        "forward": lambda: ForwardPartitioner(channels),
        "global": lambda: GlobalPartitioner(channels),
        "broadcast": lambda: BroadcastPartitioner(channels),
        "rebalance": lambda: RebalancePartitioner(channels, line["init"]),
        "rescale": lambda: RescalePartitioner(channels),
        "shuffle": lambda: ShufflePartitioner(
            channels, JavaRandom(int(line["java_util_random_seed"])).next_int
        ),
    }
    return make[line["partitioner"]]()


def select_keys(line: dict[str, Any]) -> list[int]:
    channels, max_parallelism = line["channels"], line["max_parallelism"]
    by_type = {
        java_type: KeyGroupStreamPartitioner(channels, max_parallelism, key_type)
        for java_type, key_type in (("Integer", INT), ("String", STRING))
    }
    return [by_type[key["t"]].select_channel(key["v"]) for key in line["keys"]]


# --- the cases of real Flink -------------------------------------------------------------------


def test_vectors() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/partitioners"):
        kind = line.get("pattern") or line["partitioner"]
        counts[kind] += 1
        if kind == "pointwise":
            found = [list(edge) for edge in pointwise_edges(line["up"], line["down"])]
            assert found == line["edges"], line
        elif kind == "info":
            named: type[StreamPartitioner] = getattr(partitioners, line["class"])
            assert (named.name, named.is_pointwise, named.is_broadcast) == (
                line["name"], line["pointwise"], line["broadcast"],
            )  # fmt: skip
            mappers = named.upstream_subtask_state_mapper, named.downstream_subtask_state_mapper
            assert mappers == (line["upstream_state_mapper"], line["downstream_state_mapper"])
        elif kind == "hash":
            assert select_keys(line) == line["seq"], line
        elif "exception" in line:
            assert line["is_broadcast"] == make_partitioner(line).is_broadcast
            with pytest.raises(KeyGroupsError):
                make_partitioner(line).select_channel(None)
        else:
            assert select(make_partitioner(line), len(line["seq"])) == line["seq"], line
    print("partitioners:", dict(counts))
    assert sum(counts.values()) == 162


def test_vectors_of_subtask_state_mapping() -> None:
    counts: Counter[str] = Counter()
    for line in lines("independent/operator_state"):
        if not line["fn"].startswith("getOldSubtasks"):
            continue  # test_rescale.py and test_operator_state.py have it
        counts[line["fn"]] += 1
        old, new, mapper = line["old_p"], line["new_p"], line["mapper"]
        if "exception" in line:
            with pytest.raises(InvalidValueError, match="mapper must not be UNSUPPORTED"):
                subtask_state_mapping(mapper, old, new)
            continue
        found = subtask_state_mapping(mapper, old, new)
        if "rows" in line:
            for row in line["rows"]:
                one = found[row["new"]]
                ends = (one[0], one[-1]) if one else (None, None)
                summary = len(one), *ends, sum(one)
                assert summary == (row["n"], row["first"], row["last"], int(row["sum"])), line
        else:
            assert found == line["old_by_new"], line
        if not line["ambiguous"]:
            assert sorted(chain.from_iterable(found)) == list(range(old)), line
    print("operator_state:", dict(counts))
    assert sum(counts.values()) == 341


def test_round_robin() -> None:
    assert select(RebalancePartitioner(4, start=1), 6) == [2, 3, 0, 1, 2, 3]
    assert select(RebalancePartitioner(1, start=0), 3) == [0, 0, 0]
    assert select(RescalePartitioner(4), 6) == [0, 1, 2, 3, 0, 1]


def test_constant_channels() -> None:
    assert select(ForwardPartitioner(7), 3) == select(GlobalPartitioner(7), 3) == [0, 0, 0]


def test_shuffle() -> None:
    shuffle = ShufflePartitioner(7, JavaRandom(29345).next_int)
    assert select(shuffle, 12) == [5, 3, 5, 6, 2, 5, 5, 6, 1, 2, 0, 5]
    drawn = select(ShufflePartitioner(3, random.Random(1).randrange), 100)
    assert set(drawn) == {0, 1, 2}


def test_rescale_reaches_a_later_subtask_first() -> None:
    """2 -> 5: the second upstream subtask's records go to 4, then 3, as in a running cluster."""
    targets = [edge.downstream_subtask for edge in pointwise_edges(2, 5) if edge[0] == 1]
    assert [targets[channel] for channel in select(RescalePartitioner(len(targets)), 3)] == [
        4,
        3,
        4,
    ]


def test_pointwise_to_fewer_and_to_as_many() -> None:
    assert [tuple(edge) for edge in pointwise_edges(5, 3)] == [
        (0, 0, 0), (1, 0, 1), (2, 0, 1), (3, 0, 2), (4, 0, 2),
    ]  # fmt: skip
    assert [tuple(edge) for edge in pointwise_edges(3, 3)] == [(0, 0, 0), (1, 0, 1), (2, 0, 2)]


def test_key_groups() -> None:
    partitioner = KeyGroupStreamPartitioner(3, 128)
    # Strings "A" and "B" have key groups 104 and 17; the ranges of 3 subtasks start at 43 and 86.
    assert [partitioner.select_channel(key) for key in ("A", "B")] == [2, 0]
    with pytest.raises(InvalidTypeError):
        partitioner.select_channel(-1)  # an Integer or a Long?
    assert KeyGroupStreamPartitioner(128, 128, LONG).select_channel(-1) == 94


def test_custom() -> None:
    seen = []

    def partition(key: str, parallelism: int) -> int:
        seen.append((key, parallelism))
        return len(key) % parallelism

    partitioner = CustomPartitionerWrapper(4, partition)
    assert [partitioner.select_channel(key) for key in ("a", "bcdef", "ghi")] == [1, 1, 3]
    assert seen == [("a", 4), ("bcdef", 4), ("ghi", 4)]


def test_state_mappings() -> None:
    assert subtask_state_mapping("ARBITRARY", 10, 4) == [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]
    assert subtask_state_mapping("FIRST", 2, 3) == [[0, 1], [], []]
    assert subtask_state_mapping("FULL", 2, 3) == [[0, 1]] * 3
    assert subtask_state_mapping("RANGE", 8, 6) == [
        [0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7],
    ]  # fmt: skip


# --- laws --------------------------------------------------------------------------------------

parallelisms = st.integers(1, 200)


@given(parallelisms, parallelisms)
def test_pointwise_feeds_everyone_evenly(up: int, down: int) -> None:
    edges = pointwise_edges(up, down)
    assert edges == sorted(edges)
    assert len(edges) == max(up, down)
    for side, parallelism in ((0, up), (2, down)):
        fan = Counter(edge[side] for edge in edges)
        assert set(fan) == set(range(parallelism))
        assert max(fan.values()) - min(fan.values()) <= 1
    for upstream in range(up):
        channels = [edge.channel for edge in edges if edge.upstream_subtask == upstream]
        assert channels == (list(range(len(channels))) if down > up else [0])


@given(parallelisms, parallelisms)
def test_range_mapping_is_that_of_the_widest_plan(old: int, new: int) -> None:
    plan = RescalePlan(32768, old, new)
    expected = [[one for one, _ in plan.restores_from(subtask)] for subtask in range(new)]
    assert subtask_state_mapping("RANGE", old, new) == expected


@given(parallelisms, parallelisms)
def test_every_old_subtask_is_read(old: int, new: int) -> None:
    mappers: list[SubtaskStateMapper] = ["ARBITRARY", "FIRST", "FULL", "RANGE", "ROUND_ROBIN"]
    for mapper in mappers:
        found = subtask_state_mapping(mapper, old, new)
        assert len(found) == new
        assert set().union(*found) == set(range(old))
        if mapper in ("ARBITRARY", "FIRST", "ROUND_ROBIN"):
            assert sum(map(len, found)) == old


# --- bad input ---------------------------------------------------------------------------------

BAD_PARALLELISMS: list[Any] = [0, -1, 32769, True, 2.0, "3", None]


@pytest.mark.parametrize("value", BAD_PARALLELISMS, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        ForwardPartitioner,
        GlobalPartitioner,
        BroadcastPartitioner,
        lambda v: RebalancePartitioner(v, 0),
        RescalePartitioner,
        lambda v: ShufflePartitioner(v, random.randrange),
        lambda v: CustomPartitionerWrapper(v, lambda key, n: 0),
        lambda v: KeyGroupStreamPartitioner(v, 32768),
    ],
)
def test_number_of_channels(make: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ParallelismError, match="number_of_channels must be"):
        make(value)


@pytest.mark.parametrize("value", BAD_PARALLELISMS, ids=repr)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("upstream_parallelism", lambda v: pointwise_edges(v, 1)),
        ("downstream_parallelism", lambda v: pointwise_edges(1, v)),
        ("old_parallelism", lambda v: subtask_state_mapping("FULL", v, 1)),
        ("new_parallelism", lambda v: subtask_state_mapping("FULL", 1, v)),
        ("max_parallelism", lambda v: KeyGroupStreamPartitioner(1, v)),
    ],
)
def test_parallelism(name: str, call: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(ParallelismError, match=f"{name} must be"):
        call(value)


def test_more_channels_than_key_groups() -> None:
    with pytest.raises(ParallelismError) as caught:
        KeyGroupStreamPartitioner(129, 128)
    says = "number_of_channels must be from 1 to 128 (max_parallelism), got 129"
    assert str(caught.value) == says


@pytest.mark.parametrize("start", [-1, 4, True, 1.0, None], ids=repr)
def test_start(start: Any) -> None:
    with pytest.raises(KeyGroupsError, match="start must be"):
        RebalancePartitioner(4, start)


@pytest.mark.parametrize("channel", [-1, 4, True, 1.0, None], ids=repr)
def test_channels_of_functions(channel: Any) -> None:
    with pytest.raises(KeyGroupsError, match="what partitioner gives must be"):
        CustomPartitionerWrapper(4, lambda key, n: channel).select_channel("key")
    with pytest.raises(KeyGroupsError, match="what next_int gives must be"):
        ShufflePartitioner(4, lambda n: channel).select_channel("record")


def test_functions() -> None:
    with pytest.raises(InvalidTypeError, match="partitioner must be callable, got 5"):
        CustomPartitionerWrapper(4, 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="next_int must be callable, got <random"):
        ShufflePartitioner(4, random.Random(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("mapper", ["range", "POINTWISE", None, 3, ["RANGE"]], ids=repr)
def test_mapper(mapper: Any) -> None:
    with pytest.raises(InvalidValueError, match="mapper must be one of ARBITRARY, FIRST"):
        subtask_state_mapping(mapper, 2, 3)
