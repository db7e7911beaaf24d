"""What the examples share as commands: their options, their Spark, and what they say."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from event_files import InputError
from pyspark.sql import SparkSession

from keygroups import KeyGroupsError, compute_key_group_range_for_operator_index


class OneLineParser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def add_parallelisms(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what Flink job it is."""
    parser.add_argument(
        "--max-parallelism",
        type=int,
        default=128,
        metavar="N",
        help="the number of key groups, which has to be the Flink job's own (default: 128)",
    )
    parser.add_argument(
        "--parallelism", type=int, default=4, metavar="N", help="subtasks of the job (default: 4)"
    )


def check_parallelisms(options: argparse.Namespace, *names: str) -> None:
    """Refuse a max parallelism, or a parallelism by one of these names, out of bounds."""
    parallelisms = {name: getattr(options, name) for name in names}
    for name, parallelism in {"max_parallelism": 1, **parallelisms}.items():
        try:
            compute_key_group_range_for_operator_index(options.max_parallelism, parallelism, 0)
        except KeyGroupsError as error:
            raise InputError(f"--{name.replace('_', '-')}: {error}") from None


@contextmanager
def local_spark(name: str, settings: dict[str, str]) -> Iterator[SparkSession]:
    """Start Spark and stop it in the end, or lend the session that there is already."""
    caller_has_spark = SparkSession.getActiveSession() is not None
    if not caller_has_spark:
        check_java()
        progress("starting Spark")
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "FATAL")  # an error comes back to main()
    )
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        if not caller_has_spark:
            spark.stop()


def check_java() -> None:
    """Refuse to start Spark without a Java; Spark's own message names no way out."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    try:
        # Only running it tells: macOS has a java that does nothing but ask for an installation.
        found = java and subprocess.run([java, "-version"], capture_output=True).returncode == 0
    except OSError:
        found = False
    if not found:
        where = f"in JAVA_HOME, which is {home}" if home else "on the PATH"
        raise InputError(f"no Java {where}: PySpark needs Java 17 or 21")


def progress(step: str) -> None:
    """Say on stderr what is being done."""
    print(f"{step} ...", file=sys.stderr, flush=True)
