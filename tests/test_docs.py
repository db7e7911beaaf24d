"""The examples in docstrings and in the README are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

import keygroups

README = Path(__file__).parents[1] / "README.md"
MODULES = sorted(info.name for info in pkgutil.walk_packages(keygroups.__path__, "keygroups."))
CORE = [name for name in MODULES if not name.startswith("keygroups.spark")]
SPARK = [name for name in MODULES if name.startswith("keygroups.spark")]
# The modules whose names users call; the others of the adapter make the expressions.
PUBLIC_SPARK = [
    f"keygroups.spark.{name}"
    for name in ("dataframe", "functions", "placement", "rescale", "skew", "register")
]


def run_doctests(module: ModuleType, **extra: object) -> int:
    result = doctest.testmod(module, extraglobs=extra)
    assert result.failed == 0
    return result.attempted


@pytest.mark.parametrize("name", CORE)
def test_docstrings_of_the_core(name: str) -> None:
    run_doctests(importlib.import_module(name))


def test_core_has_doctests() -> None:
    assert sum(run_doctests(importlib.import_module(name)) for name in CORE) > 20


@pytest.mark.parametrize("name", SPARK)
def test_docstrings_of_the_adapter(name: str, spark: SparkSession) -> None:
    run_doctests(importlib.import_module(name), spark=spark)


@pytest.mark.parametrize("name", [*CORE, *PUBLIC_SPARK])
def test_public_functions_have_a_doctest(name: str) -> None:
    """Each public function and class shows a real value, but for the exceptions."""
    module = importlib.import_module(name)
    public = set(keygroups.__all__) if name in CORE else set(getattr(module, "__all__", ()))
    for attribute in sorted(public & vars(module).keys()):
        value = getattr(module, attribute)
        own = getattr(value, "__module__", None) == name
        if not own or not callable(value) or attribute in ("KeyTrace", "ColumnOrName", "Key"):
            continue
        if isinstance(value, type) and issubclass(value, Exception):
            continue
        assert ">>>" in (value.__doc__ or ""), f"{name}.{attribute} has no doctest"


def test_readme(spark: SparkSession) -> None:
    result = doctest.testfile(str(README), module_relative=False, globs={"spark": spark})
    assert result.failed == 0
    assert result.attempted >= 10
