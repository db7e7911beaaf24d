"""Compares the keyed state of an operator in shares, on other machines too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import gcd

from keygroups._serializers.data_input import ReadingContext
from keygroups.savepoint._comparison.compare import OperatorPair
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import OperatorStateHandle
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.savepoint.comparing import EntryDifference


@dataclass(frozen=True)
class OperatorShare:
    """Some key groups of an operator, without its other state; it may be pickled."""

    operator_id: str
    uid: str | None
    name: str | None
    parallelism: int
    max_parallelism: int
    is_fully_finished: bool
    read_tasks: tuple[ReadTask, ...]
    _files: Files
    _context: ReadingContext

    _has_channel_state = False
    _progress = None

    def tasks(self, states: Iterable[str] | None = None) -> list[ReadTask]:
        """Return the tasks that read the entries of keyed state, of `states` alone unless None."""
        names = None if states is None else frozenset(states)
        return [replace(task, states=names) for task in self.read_tasks]

    def _operator_state_handles(self) -> list[tuple[int, OperatorStateHandle, bool]]:
        return []

    def source_splits(self) -> None:
        """Return nothing: splits belong to no key group."""

    def sink_state(self) -> None:
        """Return nothing: the state of a sink belongs to no key group."""

    def coordinator_state(self) -> None:
        """Return nothing: a coordinator's state belongs to no key group."""


@dataclass(frozen=True)
class ComparisonTask:
    """Compares some keyed state of an operator of two savepoints; it may be pickled.

    Entries with a counterpart have it in the same task. `states` are names, all if None.
    """

    own: OperatorShare | None
    other: OperatorShare | None
    states: frozenset[str] | None

    def differences(self) -> Iterator[EntryDifference]:
        """Yield every entry that is not the same, as `Savepoint.differences` does."""
        pair = OperatorPair(self.own, self.other)
        if self.states is not None:
            pair.keep_only(self.states)
        return pair.differences()


def comparison_tasks(
    own: Operator | None, other: Operator | None, states: frozenset[str] | None, size: int
) -> list[ComparisonTask]:
    """Return tasks that together compare an operator, each about `size` bytes of both sides.

    Under max parallelisms 128 and 96 a key of hash h is in key groups h % 128 and h % 96. Both
    have the remainder h % 32, as 32 divides both: key groups with one remainder modulo the
    greatest common divisor stay in one task, so that entries meet their counterparts.
    """
    sides = [side for side in (own, other) if side is not None]
    divisor = gcd(*(side.max_parallelism for side in sides))
    read_tasks = [[] if side is None else side.tasks() for side in (own, other)]
    tasks_of_both = [task for of_side in read_tasks for task in of_side]
    weights: Counter[int] = Counter()
    for task in tasks_of_both:
        for key_group, weight in task.format.weights().items():
            weights[key_group % divisor] += weight
    most = divisor
    if not all(task.bytes for task in tasks_of_both):
        # Changelogs do not say how many bytes a key group has: a task has no more than a subtask.
        most = max(divisor // max(side.parallelism for side in sides), 1)
    shares = _shares(divisor, weights, size, most)
    count = shares[-1] + 1
    first, second = (
        [None] * count if side is None else _operator_shares(side, tasks, shares, count)
        for side, tasks in zip((own, other), read_tasks)
    )
    return [
        ComparisonTask(*share, states)
        for share in zip(first, second)
        if any(side is not None and side.read_tasks for side in share)
    ]


def _shares(divisor: int, weights: Counter[int], size: int, most: int) -> list[int]:
    """Return the number of the share of each remainder, in ascending order.

    Weights 5, 5, 2 and a size of 10 give 0, 0, 1.
    """
    shares: list[int] = []
    share, room, count = 0, size, 0
    for remainder in range(divisor):
        if count and (weights[remainder] > room or count == most):
            share, room, count = share + 1, size, 0
        room -= weights[remainder]
        count += 1
        shares.append(share)
    return shares


def _operator_shares(
    operator: Operator, tasks: Iterable[ReadTask], shares: list[int], count: int
) -> list[OperatorShare | None]:
    read_tasks: list[list[ReadTask]] = [[] for _ in range(count)]
    for task in tasks:
        runs: dict[int, list[tuple[int, int]]] = {}
        for key_group in task.key_groups:
            share = shares[key_group % len(shares)]
            runs.setdefault(share, []).append((key_group, key_group))
        for share, of_share in runs.items():
            read_tasks[share].append(replace(task, key_groups=KeyGroupRanges.of(of_share)))
    return [
        OperatorShare(
            operator.operator_id,
            operator.uid,
            operator.name,
            operator.parallelism,
            operator.max_parallelism,
            operator.is_fully_finished,
            tuple(of_share),
            operator._files,
            operator._context,
        )
        for of_share in read_tasks
    ]
