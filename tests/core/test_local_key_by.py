"""LocalKeyBy: when it flushes, what it takes for one key, and exactly once through rescales."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from enum import IntEnum
from operator import add
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError, LocalKeyBy, hash_code
from keygroups.rescale import redistribute_list_state

BERLIN = ZoneInfo("Europe/Berlin")
NAN = float("nan")


class Level(IntEnum):
    ONE = 1


class Page(NamedTuple):
    app: str
    number: object


def buffer(batch_size: int = 100) -> LocalKeyBy[Any, Any]:
    return LocalKeyBy(batch_size, add)


# --- when it flushes ------------------------------------------------------------------------


def test_batch_counts_records_not_keys() -> None:
    """The published function counts up once per record and flushes at the batch size."""
    local = buffer(3)
    sent = [local.process(key, 1) for key in "aaabca"]
    assert sent == [[], [], [("a", 3)], [], [], [("b", 1), ("c", 1), ("a", 1)]]


def test_batch_of_one_sends_every_record() -> None:
    local = buffer(1)
    assert local.process("a", 5) == [("a", 5)]
    assert local.process("a", 6) == [("a", 6)]
    assert local.snapshot_state() == []


def test_flush_starts_a_new_batch() -> None:
    local = buffer(2)
    assert local.flush() == []
    local.process("a", 1)
    assert local.flush() == [("a", 1)]
    assert local.process("b", 1) == []
    assert local.process("b", 1) == [("b", 2)]


def test_snapshot_leaves_the_buffer_alone() -> None:
    local = buffer(3)
    local.process("a", 1)
    state = local.snapshot_state()
    assert state == local.snapshot_state() == [("a", 1)]
    local.process("a", 1)
    assert state == [("a", 1)]
    assert local.process("b", 1) == [("a", 2), ("b", 1)]


def test_restore_merges_and_flushes_with_the_next_record() -> None:
    local = buffer(100)
    local.restore([("a", 1), ("b", 2), ("a", 4)])
    assert local.snapshot_state() == [("a", 5), ("b", 2)]
    assert local.process("b", 10) == [("a", 5), ("b", 12)]
    assert local.process("b", 10) == []


def test_restore_of_nothing_flushes_too() -> None:
    """The published function sets its counter wherever the job is restored."""
    local = buffer(100)
    local.restore([])
    assert local.process("a", 1) == [("a", 1)]


def test_combine_gets_the_older_value_first() -> None:
    local = buffer()
    for letter in "xyz":
        local.process("a", letter)
    assert local.flush() == [("a", "xyz")]


def test_falsy_values_are_values() -> None:
    local: LocalKeyBy[str, int | None] = LocalKeyBy(100, lambda a, b: (a or 0) + (b or 1))
    local.process("a", None)
    local.process("b", 0)
    local.process("a", None)
    assert local.snapshot_state() == [("a", 1), ("b", 0)]


def test_an_error_of_combine_changes_nothing() -> None:
    local = buffer(2)
    local.process("a", 1)
    with pytest.raises(TypeError, match="unsupported operand"):
        local.process("a", "text")
    assert local.snapshot_state() == [("a", 1)]
    assert local.process("a", 1) == [("a", 2)]


# --- what is one key ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (True, 1.0),
        (0.0, -0.0),
        (1.5, Decimal("1.5")),
        (Decimal("1.5"), Decimal("1.50")),
        (("a", 1), ("a", True)),
        (("a", ("b", 0.0)), ("a", ("b", -0.0))),
        (frozenset({1}), frozenset({True})),
        (
            dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN),
            dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1),
        ),
    ],
)
def test_equal_in_python_but_not_in_flink(one: object, other: object) -> None:
    assert one == other
    assert hash_code(one) != hash_code(other)
    local = buffer()
    for key, value in [(one, 1), (other, 10), (one, 100)]:
        local.process(key, value)
    assert repr(local.flush()) == repr([(one, 101), (other, 10)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((1, Level.ONE), (("a", 1), Page("a", 1)), (Page("a", 1), Page("a", True))),
        *(((1, 2), (2, 1)), ((1, 1, 2), (1, 2, 2)), (("a", ("b", "c")), ("a", ("c", "b")))),
        ((1, 2), frozenset({1, 2})),
    ],
)
def test_other_classes_and_other_orders_are_other_keys(one: object, other: object) -> None:
    local = buffer()
    local.process(one, 1)
    local.process(other, 10)
    assert repr(local.flush()) == repr([(one, 1), (other, 10)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("app1", "".join(["app", "1"])),
        (10**20, 10**20 + 1 - 1),
        (NAN, float("nan")),
        ((NAN, None), (float("nan"), None)),
        (None, None),
        (Decimal("1.50"), Decimal("1.50")),
        (frozenset({"a", 1}), frozenset({1, "a"})),
        (frozenset({0, 8}), frozenset({8, 0})),  # their iterations differ
        (dt.time(2, 30), dt.time(2, 30)),
        (dt.date(2024, 10, 27), dt.date(2024, 10, 27)),
        (
            dt.datetime(2024, 10, 27, 12, tzinfo=BERLIN),
            dt.datetime(2024, 10, 27, 11, tzinfo=dt.timezone.utc),
        ),
    ],
)
def test_equal_keys_share_an_entry(one: object, other: object) -> None:
    local = buffer()
    local.process(one, 1)
    local.process(other, 10)
    ((key, value),) = local.flush()
    assert key is one
    assert value == 11


# --- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [["a"], {"a": 1}, {"a"}, ("a", ["b"])])
def test_keys_have_to_be_hashable(key: object) -> None:
    local = buffer(1)
    with pytest.raises(InvalidTypeError, match=re.escape(f"key must be hashable, got {key!r}")):
        local.process(key, 1)
    local.restore([])  # no record has come in


@pytest.mark.parametrize(
    ("batch_size", "combine", "error", "says"),
    [
        (0, add, InvalidValueError, "batch_size must be from 1 to 2147483647, got 0"),
        (2**31, add, InvalidValueError, "batch_size must be from 1 to .* got 2147483648"),
        (2.0, add, InvalidTypeError, "batch_size must be an int, got 2.0"),
        (True, add, InvalidTypeError, "batch_size must be an int, got True"),
        (1, "sum", InvalidTypeError, "combine must be callable, got 'sum'"),
    ],
)
def test_bad_arguments(batch_size: Any, combine: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        LocalKeyBy(batch_size, combine)


@pytest.mark.parametrize("entry", ["ab", ("a",), ("a", 1, 2), ["a", 1], None])
def test_entries_have_to_be_pairs(entry: Any) -> None:
    says = re.escape(f"entries must be (key, value) tuples, got {entry!r} at position 1")
    with pytest.raises(InvalidTypeError, match=says):
        buffer().restore([("a", 1), entry])


def test_a_restore_that_fails_leaves_nothing() -> None:
    local = buffer(2)
    entries: list[Any] = [("a", 1), ("b", 2, 3)]
    with pytest.raises(InvalidTypeError, match=r"got \('b', 2, 3\) at position 1"):
        local.restore(entries)
    with pytest.raises(TypeError, match="unsupported operand"):
        local.restore([("a", 1), ("a", None)])
    local.restore([("a", 1)])
    assert local.snapshot_state() == [("a", 1)]


def test_restore_comes_first_and_once() -> None:
    used, restored = buffer(1), buffer(1)
    used.process("a", 1)  # even though it was sent on
    restored.restore([("a", 1)])
    for local in (used, restored):
        with pytest.raises(KeyGroupsError, match="once, before the first record"):
            local.restore([("a", 1)])


# --- the law: exactly once ------------------------------------------------------------------

# Told apart by repr, which is no part of how LocalKeyBy does it.
KEYS: list[object] = ["a", "b", 1, True, 1.0, 0.0, -0.0, ("a", 1), ("a", True), None]
Totals = dict[str, list[int]]


def totals_of(log: list[object]) -> Totals:
    totals: Totals = {}
    for number, key in enumerate(log):
        totals.setdefault(repr(key), []).append(number)
    return totals


class ExactlyOnce(RuleBasedStateMachine):
    """A job: a source that can be read again, LocalKeyBy subtasks, and totals downstream.

    The value of a record is its number in the source, in a list; the total of a key is all
    of its numbers. So a record that is lost, sent twice or sent under another key shows.
    A checkpoint holds the position in the source, the totals, and each subtask's list state; a
    crash goes back to it, at any parallelism, and the source may deal its records otherwise.
    """

    @initialize(batch_size=st.integers(1, 20), parallelism=st.integers(1, 4))
    def start(self, batch_size: int, parallelism: int) -> None:
        self.batch_size = batch_size
        self.source: list[object] = []
        self.checkpoint: tuple[int, Totals, list[list[Any]]] | None = None
        self.deploy(parallelism, 0)

    def deploy(self, parallelism: int, first_subtask: int) -> None:
        self.first_subtask = first_subtask
        self.position = 0
        self.totals: Totals = {}
        self.subtasks: list[LocalKeyBy[object, list[int]]] = [
            LocalKeyBy(self.batch_size, add) for _ in range(parallelism)
        ]

    def send(self, entries: list[tuple[object, list[int]]]) -> None:
        for key, numbers in entries:
            self.totals[repr(key)] = self.totals.get(repr(key), []) + numbers

    def read(self, count: int) -> None:
        end = min(self.position + count, len(self.source))
        for number in range(self.position, end):
            subtask = self.subtasks[(self.first_subtask + number) % len(self.subtasks)]
            self.send(subtask.process(self.source[number], [number]))
        self.position = end

    @rule(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=5))
    def records_arrive(self, keys: list[object]) -> None:
        self.source += keys
        self.read(len(keys))  # the oldest, where a crash has left some to be read again

    @rule()
    def catch_up(self) -> None:
        self.read(len(self.source))

    @rule()
    def take_checkpoint(self) -> None:
        state = [subtask.snapshot_state() for subtask in self.subtasks]
        self.checkpoint = self.position, dict(self.totals), state

    @rule(parallelism=st.integers(1, 4), first_subtask=st.integers(0, 3), backwards=st.booleans())
    def crash(self, parallelism: int, first_subtask: int, backwards: bool) -> None:
        self.deploy(parallelism, first_subtask)
        if self.checkpoint is None:
            return
        self.position, totals, state = self.checkpoint
        self.totals = dict(totals)
        for subtask, entries in zip(self.subtasks, redistribute_list_state(state, parallelism)):
            # Flink does not say in which order the elements come.
            subtask.restore(entries[::-1] if backwards else entries)

    @rule(subtask=st.integers(0, 3))
    def flush(self, subtask: int) -> None:
        self.send(self.subtasks[subtask % len(self.subtasks)].flush())

    @invariant()
    def every_record_is_in_one_place(self) -> None:
        seen = {key: list(numbers) for key, numbers in self.totals.items()}
        for subtask in self.subtasks:
            for key, numbers in subtask.snapshot_state():
                seen.setdefault(repr(key), []).extend(numbers)
        expected = totals_of(self.source[: self.position])
        assert {key: sorted(numbers) for key, numbers in seen.items()} == expected

    def teardown(self) -> None:
        self.read(len(self.source))
        for subtask in self.subtasks:
            self.send(subtask.flush())
        totals = {key: sorted(numbers) for key, numbers in self.totals.items()}
        assert totals == totals_of(self.source)


class TestExactlyOnce(ExactlyOnce.TestCase):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=50, stateful_step_count=51, deadline=None)


@pytest.mark.slow
class TestExactlyOnceManyTimes(ExactlyOnce.TestCase):  # type: ignore[misc, valid-type]
    # Starting counts as a step. About a fourth of the examples end early; 2,000 must not.
    settings = settings(max_examples=2800, stateful_step_count=51, deadline=None)
