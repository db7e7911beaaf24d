"""Laws of the assignment: what must hold for every parallelism, key group and key."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keygroups import (
    KeyGroupLoad,
    KeyGroupRange,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_default_max_parallelism,
    compute_key_group_for_key_hash,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
    hash_code,
    murmur_hash,
    trace_key,
)
from keygroups.types import BIG_INT, INT, LIST, LONG, ROW, STRING, TUPLE

int32 = st.integers(-(2**31), 2**31 - 1)
max_parallelisms = st.integers(1, 32768)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[int, int]:
    max_parallelism = draw(max_parallelisms)
    return max_parallelism, draw(st.integers(1, max_parallelism))


def ranges(max_parallelism: int, parallelism: int) -> list[KeyGroupRange]:
    return [
        compute_key_group_range_for_operator_index(max_parallelism, parallelism, index)
        for index in range(parallelism)
    ]


@pytest.mark.parametrize("most", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_ranges_partition_and_invert(most: int) -> None:
    """For every max parallelism to the most and every parallelism below it.

    The subtask rises with the key group, so the ends of a range speak for all between.
    """
    for max_parallelism in range(1, most + 1):
        for parallelism in range(1, max_parallelism + 1):
            expected = 0
            for index, groups in enumerate(ranges(max_parallelism, parallelism)):
                assert groups.start_key_group == expected
                expected = groups.end_key_group + 1
                for key_group in (groups.start_key_group, groups.end_key_group):
                    assert index == compute_operator_index_for_key_group(
                        max_parallelism, parallelism, key_group
                    )
            assert expected == max_parallelism


@given(jobs(), st.data())
def test_range_and_subtask_are_inverse(job: tuple[int, int], data: st.DataObject) -> None:
    max_parallelism, parallelism = job
    key_group = data.draw(st.integers(0, max_parallelism - 1))
    subtask = compute_operator_index_for_key_group(max_parallelism, parallelism, key_group)
    assert 0 <= subtask < parallelism
    groups = compute_key_group_range_for_operator_index(max_parallelism, parallelism, subtask)
    assert key_group in groups
    assert len(groups) in (
        max_parallelism // parallelism,
        -(-max_parallelism // parallelism),
    )


@given(int32, max_parallelisms)
def test_key_group_is_in_range(code: int, max_parallelism: int) -> None:
    assert 0 <= murmur_hash(code) < 2**31
    assert 0 <= compute_key_group_for_key_hash(code, max_parallelism) < max_parallelism


@given(st.text(), jobs())
def test_steps_agree_with_the_whole(key: str, job: tuple[int, int]) -> None:
    max_parallelism, parallelism = job
    key_group = assign_to_key_group(key, max_parallelism)
    assert key_group == compute_key_group_for_key_hash(hash_code(key), max_parallelism)
    subtask = assign_key_to_parallel_operator(key, max_parallelism, parallelism)
    assert subtask == compute_operator_index_for_key_group(max_parallelism, parallelism, key_group)
    trace = trace_key(key, max_parallelism, parallelism)
    assert (trace.key_group, trace.subtask) == (key_group, subtask)
    assert trace.murmur_hash == murmur_hash(trace.hash_code)
    assert trace.key_group in trace.key_group_range


@given(st.text(st.integers(0, sys.maxunicode).map(chr)))
def test_string_hash_is_the_polynomial_over_code_units(text: str) -> None:
    """JDK String.hashCode: s[0]*31^(n-1) + ... + s[n-1] in 32 bits."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
    total = sum(unit * 31 ** (len(units) - 1 - i) for i, unit in enumerate(units))
    assert (hash_code(text) - total) % 2**32 == 0


@given(st.integers(0, 2**31 - 1))
def test_integer_and_long_agree_from_zero(value: int) -> None:
    assert hash_code(value) == hash_code(value, INT) == hash_code(value, LONG) == value


@given(st.integers(-(2**31), -1))
def test_integer_and_long_disagree_below_zero(value: int) -> None:
    """Long's high word is all ones there, so its hash is the complement."""
    assert hash_code(value, LONG) == ~value
    assert hash_code(value, INT) == value


@given(st.integers())
def test_big_integer_hash_is_odd(value: int) -> None:
    """JDK BigInteger.hashCode is the magnitude's hash times the sign."""
    assert (hash_code(value, BIG_INT) + hash_code(-value, BIG_INT)) % 2**32 == 0


@given(st.lists(st.text()))
def test_list_hash_folds_from_one(values: list[str]) -> None:
    """JDK List.hashCode, as its Javadoc defines it."""
    code = 1
    for value in values:
        code = 31 * code + hash_code(value)
    assert (hash_code(values, LIST(STRING)) - code) % 2**32 == 0


@given(st.text(), int32)
def test_row_of_one_adds_62(text: str, number: int) -> None:
    """A +I Row(x) hashes to 62 plus the hash of x (Flink's RowUtils)."""
    assert (hash_code((text,), ROW(STRING)) - 62 - hash_code(text)) % 2**32 == 0
    assert hash_code((text,), TUPLE(STRING)) == hash_code(text)
    assert (hash_code((number,), ROW(INT)) - 62 - number) % 2**32 == 0


@given(st.integers(1, 32768))
def test_default_is_a_power_of_two_in_bounds(parallelism: int) -> None:
    default = compute_default_max_parallelism(parallelism)
    assert 128 <= default <= 32768
    assert default & (default - 1) == 0
    assert default >= parallelism
    assert default in (128, 32768) or default // 2 < parallelism * 3 // 2 <= default


ranges_of_groups = st.tuples(st.integers(0, 300), st.integers(0, 300)).map(
    lambda ends: KeyGroupRange(min(ends), max(ends))
)


@given(ranges_of_groups, ranges_of_groups)
def test_range_behaves_as_the_set_of_its_key_groups(a: KeyGroupRange, b: KeyGroupRange) -> None:
    assert set(a & b) == set(a) & set(b)
    assert a & b == b & a
    assert a & a == a
    assert a & KeyGroupRange.EMPTY == KeyGroupRange.EMPTY
    assert list(a) == [a[i] for i in range(len(a))] == list(reversed(a))[::-1]
    assert (a == b) == (set(a) == set(b))
    assert a != b or hash(a) == hash(b)


@given(jobs(), st.data())
def test_load_is_conserved(job: tuple[int, int], data: st.DataObject) -> None:
    max_parallelism = min(job[0], 200)
    parallelism = min(job[1], max_parallelism)
    weights = data.draw(
        st.lists(st.integers(0, 100), min_size=max_parallelism, max_size=max_parallelism)
    )
    load = KeyGroupLoad(max_parallelism, weights)
    per_subtask = load.per_subtask(parallelism)
    assert sum(per_subtask) == sum(weights)
    for key_group, weight in enumerate(weights):
        subtask = compute_operator_index_for_key_group(max_parallelism, parallelism, key_group)
        assert per_subtask[subtask] >= weight
    assert 1.0 <= load.imbalance(parallelism) <= parallelism
