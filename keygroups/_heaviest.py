"""The heaviest subtask at each of many parallelisms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from operator import sub
from typing import NamedTuple


class Heaviest(NamedTuple):
    """The subtask with the largest weight at a parallelism, the first of equals."""

    weight: int
    subtask: int


def heaviest_subtasks(sums: Sequence[int], low: int, high: int) -> Iterator[Heaviest]:
    """Yield the heaviest subtask at each parallelism `low..high`, by the sums of the weights.

    Of all parallelisms together there are half as many subtasks as the square of the key groups.
    So where many parallelisms give a subtask the same number of key groups, all runs of that
    many are put in order by weight, once; the first of them that is a subtask's is the heaviest.
    """
    groups = len(sums) - 1
    sorted_size, runs, longer_runs = 0, [], []
    for parallelism in range(low, high + 1):
        size, more = divmod(groups, parallelism)
        if sorted_size != size:
            alike = min(high, groups // size) - parallelism + 1
            # Sorting costs about as much as adding up a dozen times the key groups.
            if alike * parallelism > 12 * groups:
                sorted_size = size
                runs, longer_runs = _by_weight(sums, size), _by_weight(sums, size + 1)
        if sorted_size != size:
            starts = [-(-i * groups // parallelism) for i in range(parallelism + 1)]
            weights = [sums[end] - sums[start] for start, end in pairwise(starts)]
            yield Heaviest(max(weights), weights.index(max(weights)))
            continue
        # The subtasks with `size` key groups and those with one more, both in order.
        less = parallelism - more
        short = (-(-(i + 1) * parallelism // less) - 1 for i in range(less))
        long = (i * parallelism // more for i in range(more))
        found = [_first(sums, runs, size, parallelism, less, short)]
        if more:
            found.append(_first(sums, longer_runs, size + 1, parallelism, more, long))
        yield max(found, key=lambda one: (one.weight, -one.subtask))


def _by_weight(sums: Sequence[int], size: int) -> list[int]:
    """Return the first key group of each run of `size`, the heaviest run first."""
    weights = list(map(sub, sums[size:], sums))
    return sorted(range(len(weights)), key=weights.__getitem__, reverse=True)


def _first(
    sums: Sequence[int],
    runs: list[int],
    size: int,
    parallelism: int,
    count: int,
    subtasks: Iterable[int],
) -> Heaviest:
    """Return the first of the runs that is one of the `count` subtasks of `size` key groups."""
    groups = len(sums) - 1
    for start in islice(runs, count):
        subtask = start * parallelism // groups
        if -(-subtask * groups // parallelism) == start and (
            -(-(subtask + 1) * groups // parallelism) == start + size
        ):
            return Heaviest(sums[start + size] - sums[start], subtask)
    # Among the heavy runs few are subtasks: then the subtasks are the fewer to look at.
    weights = {}
    for subtask in subtasks:
        start = -(-subtask * groups // parallelism)
        weights[subtask] = sums[start + size] - sums[start]
    subtask = max(weights, key=weights.__getitem__)
    return Heaviest(weights[subtask], subtask)
