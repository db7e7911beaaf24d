"""Which of many cases the default tests take: the others are slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings


def first_by_default(count: int, cases: Sequence[Any]) -> list[Any]:
    """Return the cases of a test, tuples where it takes several arguments."""
    return [
        *cases[:count],
        *(
            pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.slow)
            for case in cases[count:]
        ),
    ]


def examples(most: int) -> settings:
    """Return the setting of so many examples where new ones are drawn, and else of two fifths."""
    return settings(max_examples=most * settings().max_examples // 100)
