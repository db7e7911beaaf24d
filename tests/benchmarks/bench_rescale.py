"""Planning for the largest job there can be, where a person waits for the answer.

Run `python tests/benchmarks/bench_rescale.py`; it takes the best of a few rounds and prints
milliseconds.
"""

from __future__ import annotations

import random
import sys
import timeit
from collections.abc import Callable

from keygroups import KeyGroupLoad, RescalePlan

ROUNDS = 5
GROUPS = 32768
WEIGHTS = random.Random(1).choices(range(1_000_000), k=GROUPS)
LOAD = KeyGroupLoad(GROUPS, WEIGHTS)

CASES: list[tuple[str, Callable[[], object]]] = [
    ("plan 1000 -> 1024, every piece", lambda: list(RescalePlan(GROUPS, 1000, 1024))),
    ("plan 1000 -> 1024, str()", lambda: str(RescalePlan(GROUPS, 1000, 1024))),
    ("plan 1000 -> 1024, table with a load", lambda: RescalePlan(GROUPS, 1000, 1024).table(LOAD)),
    ("plan 32767 -> 32768, str()", lambda: str(RescalePlan(GROUPS, 32767, 32768))),
    ("a load of as many weights", lambda: KeyGroupLoad(GROUPS, WEIGHTS)),
    ("recommend(1, 1000)", lambda: LOAD.recommend(1, 1000)),
]


def main() -> None:
    """Print one line per case."""
    print(f"Python {sys.version.split()[0]}, max parallelism {GROUPS}, best of {ROUNDS}")
    for name, call in CASES:
        print(f"{name:38} {min(timeit.repeat(call, number=1, repeat=ROUNDS)) * 1000:9.1f} ms")


if __name__ == "__main__":
    main()
