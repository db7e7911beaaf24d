"""The settings of a Spark session, other values for them, and keys to hash under each.

Which settings there are, and which values each takes, the session says itself, so that those of
a new Spark are among them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

NO_VALUE = "keygroups: no such value"
NO_BOOLEAN = re.compile(r"\bboolean\b", re.IGNORECASE)
OPTIONS = re.compile(
    r"(?:should be one of|Valid values are):?\s*(?P<options>[^;]*?)(?:, but|\.|$| SQLSTATE)"
)
WITHOUT_VALUES: dict[str, list[str]] = {
    "spark.sql.session.timeZone": ["America/New_York", "Asia/Kathmandu"],
    "spark.sql.codegen.maxFields": ["1"],
    "spark.sql.codegen.hugeMethodLimit": ["1"],
    "spark.sql.codegen.methodSplitThreshold": ["1"],
    "spark.sql.optimizer.inSetConversionThreshold": ["0"],
    "spark.sql.execution.arrow.maxRecordsPerBatch": ["1"],
    "spark.sql.optimizer.excludedRules": [
        ",".join(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in ("ConstantFolding", "SimplifyCasts", "NullPropagation", "CombineConcats")
        )
    ],
}
"""Settings that are neither booleans nor of some options, and values that may matter."""


def names_of(spark: SparkSession) -> list[str]:
    """Return the names of the settings that may change at run time.

    A classic session tells its internal ones too, of which most legacy settings are.
    """
    names = {row["key"] for row in spark.sql("SET -v").collect()}
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is not None:
        companion = getattr(jvm.org.apache.spark.sql.internal, "SQLConf$")
        iterator = getattr(companion, "MODULE$").getConfigEntries().iterator()
        while iterator.hasNext():
            names.add(iterator.next().key())
    return sorted(name for name in names if spark.conf.isModifiable(name))


def set_now(spark: SparkSession, name: str) -> str | None:
    """Return the value that a setting was given, None where it has its default."""
    value: str | None = spark.conf.get(name, None)
    return value


def other_values(spark: SparkSession, name: str) -> list[str]:
    """Return the values of a boolean, or of one with options, that it does not have now."""
    try:
        with changed(spark, {name: NO_VALUE}):
            return WITHOUT_VALUES.get(name, [])  # it takes any text
    except (PySparkException, Py4JError) as error:
        says = str(error)
    if NO_BOOLEAN.search(says):
        values = ["true", "false"]
    elif options := OPTIONS.search(says):
        values = re.findall(r"[\w.\-]+", options["options"].replace(" and ", " "))
    else:
        values = WITHOUT_VALUES.get(name, [])
    try:
        now = str(spark.conf.get(name)).lower()
    except (PySparkException, Py4JError):  # it has no default
        now = ""
    return [value for value in values if value.lower() != now and _is_taken(spark, name, value)]


def _is_taken(spark: SparkSession, name: str, value: str) -> bool:
    """Return whether a setting may have a value here: some go with others alone."""
    try:
        with changed(spark, {name: value}):
            return True
    except (PySparkException, Py4JError):
        return False


@contextmanager
def changed(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Have other settings for a while."""
    before = {name: set_now(spark, name) for name in settings}
    try:
        for name, value in settings.items():
            _set(spark, name, value)
        yield
    finally:
        for name, old in before.items():
            _set(spark, name, old)


def _set(spark: SparkSession, name: str, value: str | None) -> None:
    with warnings.catch_warnings():
        # Connect says of some settings that it does not support them, or that they are old.
        warnings.filterwarnings("ignore", "The SQL config .*", UserWarning)
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
