"""Costs grow about as their arguments do: counted in steps and bytes, not timed.

What makes each public callable of the core grow is in the registry, or why nothing does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from support.growth import MOST, TIMES, count_bytes, count_steps
from support.registry import REGISTRY

GROWING = {
    f"{name} {title}".rstrip(): call
    for name, registered in REGISTRY.items()
    for title, call in {"": registered.grows, **registered.more}.items()
    if call is not None
}


@pytest.mark.parametrize("call", GROWING.values(), ids=GROWING.keys())
@pytest.mark.parametrize(
    ("measure", "size"),
    [
        (count_steps, 80),
        # Python has the ints to 256 already.
        pytest.param(count_bytes, 280, marks=pytest.mark.slow),
    ],
    ids=["steps", "bytes"],
)
def test_growth(
    call: Callable[[int], object], measure: Callable[[Callable[[], object]], int], size: int
) -> None:
    """Four times the size takes at most about four times the steps, and the bytes."""
    for n in (size, TIMES * size):
        call(n)  # the first call may keep something for the next one
    small, large = (measure(partial(call, n)) for n in (size, TIMES * size))
    assert large <= MOST * small, f"{small} to {large}"
