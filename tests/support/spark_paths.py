"""The paths of the column backend, for fixtures that force each of them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

PATHS: list[Any] = ["fast", "portable", pytest.param("arrow", marks=pytest.mark.slow)]


def skip_without(path: str) -> None:
    """Skip a test where a path is not there."""
    if path == "fast" and is_remote():
        pytest.skip("Spark Connect has no fast path")
    if path == "arrow":
        if not hasattr(F, "arrow_udf"):
            pytest.skip("PySpark before 4.1 has no Arrow UDF")
        pytest.importorskip("pyarrow")
