"""The backends of the column expressions, for fixtures that force each of them."""

from __future__ import annotations

import os
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from support.selections import first_by_default

IN_A_SESSION: list[Any] = ["fast", "portable", "arrow"]
if "KEYGROUPS_TEST_REMOTE" in os.environ:  # no fast backend there
    IN_A_SESSION = ["portable", "arrow", "fast"]
BACKENDS = first_by_default(2, IN_A_SESSION)
ONE_BACKEND = first_by_default(1, IN_A_SESSION)
"""All of them, the quickest by default: that of the session, where vectors go through both."""


def skip_without(backend: str) -> None:
    """Skip a test where a backend is not there."""
    if backend == "fast" and is_remote():
        pytest.skip("Spark Connect has no fast backend")
    if backend == "arrow":
        if not hasattr(F, "arrow_udf"):
            pytest.skip("PySpark before 4.1 has no Arrow UDF")
        pytest.importorskip("pyarrow")
