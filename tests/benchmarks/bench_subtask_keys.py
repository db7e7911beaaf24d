"""The search for keys against hashing the keys it has to look at, both sides in one run.

Run `python tests/benchmarks/bench_subtask_keys.py`; it takes the best of interleaved rounds and
prints nanoseconds per key looked at. The limit is the one the project sets itself, for the
search over `hash_code` of the same keys, one by one; beside it is the search over
`assign_to_key_group` of them.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Iterator
from itertools import count

from keygroups import (
    assign_key_to_parallel_operator,
    assign_to_key_group,
    hash_code,
    keys_for_subtasks,
)
from keygroups.types import INT, LONG, STRING, TUPLE, KeyType

ROUNDS, LIMIT = 15, 3.0
PAIR = TUPLE(STRING, INT)
JOBS: list[tuple[KeyType, int, int]] = [
    (INT, 32768, 1024),
    (LONG, 32768, 1024),
    (STRING, 32768, 1024),
    (PAIR, 32768, 1024),
    (INT, 32768, 32768),
]


def in_order(key_type: KeyType) -> Iterator[object]:
    for number in count():
        if key_type is STRING:
            yield str(number)
        else:
            yield (str(number), 0) if key_type is PAIR else number


def looked_at(key_type: KeyType, max_parallelism: int, parallelism: int) -> list[object]:
    """Return the keys up to the one that completes the subtasks."""
    keys: list[object] = []
    missing = set(range(parallelism))
    for key in in_order(key_type):
        keys.append(key)
        missing.discard(
            assign_key_to_parallel_operator(key, max_parallelism, parallelism, key_type)
        )
        if not missing:
            break
    return keys


def measure(key_type: KeyType, max_parallelism: int, parallelism: int) -> None:
    """Print one line."""
    keys = looked_at(key_type, max_parallelism, parallelism)
    assert keys[-1] in keys_for_subtasks(max_parallelism, parallelism, key_type)

    def search() -> None:
        keys_for_subtasks(max_parallelism, parallelism, key_type)

    def hash_them() -> None:
        for key in keys:
            hash_code(key, key_type)

    def route_them() -> None:
        for key in keys:
            assign_to_key_group(key, max_parallelism, key_type)

    best = [float("inf")] * 3
    for _ in range(ROUNDS):
        for side, call in enumerate((search, hash_them, route_them)):
            best[side] = min(best[side], timeit.timeit(call, number=1) / len(keys) * 1e9)
    ours, hashing, routing = best
    job = f"{key_type!r}, {parallelism} of {max_parallelism}"
    print(
        f"{job:38} {len(keys):9,} {ours:7.0f} {hashing:8.0f} {ours / hashing:6.2f} {LIMIT:6.1f} "
        f"{routing:8.0f} {ours / routing:6.2f}"
    )


def main() -> None:
    """Print one line per job."""
    print(f"Python {sys.version.split()[0]}, best of {ROUNDS} rounds, ns per key looked at")
    print(
        f"{'key type, parallelism':38} {'keys':>9} {'search':>7} {'hashing':>8} {'ratio':>6} "
        f"{'limit':>6} {'routing':>8} {'ratio':>6}"
    )
    for job in JOBS:
        measure(*job)


if __name__ == "__main__":
    main()
