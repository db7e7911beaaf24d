"""The core against what one would write by hand, both sides in one run.

Run `python tests/benchmarks/bench_core.py`; it takes the best of interleaved rounds and prints
nanoseconds per call and the ratio of each pair. The limits are those the project sets itself.
"""

from __future__ import annotations

import struct
import sys
import timeit
from collections.abc import Callable

import mmh3

from keygroups import assign_to_key_group
from keygroups.types import INT, STRING, TUPLE

ROUNDS, CALLS = 15, 20_000
KEY = "user-123456789"
PAIR = TUPLE(STRING, INT)
assert len(KEY) == 14


def port(key: str, max_parallelism: int) -> int:
    """Straight port of the Java: a loop over characters, then MathUtils.murmurHash."""
    code = 0
    for char in key:
        code = (31 * code + ord(char)) & 0xFFFFFFFF
    code = (code * 0xCC9E2D51) & 0xFFFFFFFF
    code = ((code << 15) | (code >> 17)) & 0xFFFFFFFF
    code = (code * 0x1B873593) & 0xFFFFFFFF
    code = ((code << 13) | (code >> 19)) & 0xFFFFFFFF
    code = (code * 5 + 0xE6546B64) & 0xFFFFFFFF
    code ^= 4
    code = ((code ^ (code >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    code = ((code ^ (code >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    code ^= code >> 16
    if code >= 2**31:
        code = 2**32 - code
    return (code & 0x7FFFFFFF) % max_parallelism


PAIRS: list[tuple[str, Callable[[], object], Callable[[], object], float]] = [
    (
        "14-character str / straight port",
        lambda: assign_to_key_group(KEY, 128),
        lambda: port(KEY, 128),
        1.0,
    ),
    (
        "14-character str, STRING / straight port",
        lambda: assign_to_key_group(KEY, 128, STRING),
        lambda: port(KEY, 128),
        1.0,
    ),
    (
        "int / mmh3.hash(struct.pack('<i', n))",
        lambda: assign_to_key_group(123456, 128),
        lambda: mmh3.hash(struct.pack("<i", 123456)),
        5.0,
    ),
    (
        "int, INT / mmh3.hash(struct.pack('<i', n))",
        lambda: assign_to_key_group(123456, 128, INT),
        lambda: mmh3.hash(struct.pack("<i", 123456)),
        5.0,
    ),
    (
        "(str, int), TUPLE / straight port of its str",
        lambda: assign_to_key_group((KEY, 123456), 128, PAIR),
        lambda: port(KEY, 128),
        float("inf"),
    ),
]


def main() -> None:
    """Print one line per pair."""
    assert assign_to_key_group(KEY, 128) == port(KEY, 128)
    print(f"Python {sys.version.split()[0]}, best of {ROUNDS} rounds of {CALLS} calls")
    print(f"{'ours / theirs':46} {'ours ns':>8} {'theirs ns':>9} {'ratio':>6} {'limit':>6}")
    for name, ours, theirs, limit in PAIRS:
        best = [float("inf"), float("inf")]
        for _ in range(ROUNDS):
            for side, call in enumerate((ours, theirs)):
                best[side] = min(best[side], timeit.timeit(call, number=CALLS) / CALLS * 1e9)
        ratio = best[0] / best[1]
        print(f"{name:46} {best[0]:8.0f} {best[1]:9.0f} {ratio:6.2f} {limit:6.1f}")


if __name__ == "__main__":
    main()
