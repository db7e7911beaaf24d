"""How costs grow: steps and bytes counted, not timed."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

TIMES = 4
# Sorting, searching and tables that double cost more than their share, but far from the square.
MOST = TIMES * 2.5


def count_steps(run: Callable[[], object]) -> int:
    """Return the number of lines and calls that a call runs, each turn of a loop counted."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return steps


def count_bytes(run: Callable[[], object]) -> int:
    """Return the most bytes that a call has at once, with its result."""
    tracemalloc.start()
    try:
        result = run()
        return tracemalloc.get_traced_memory()[1] + sys.getsizeof(result)
    finally:
        tracemalloc.stop()
