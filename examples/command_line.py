"""The options, the Spark session and the messages that the examples share as commands."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from event_files import SPARK_ERRORS, InputError, local_uri, reason
from pyspark.sql import DataFrame, SparkSession

from keygroups import KeyGroupsError, compute_key_group_range_for_operator_index

FOREVER = f"{2**63 - 1}ms"  # the age at which a file is too old for Spark


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def add_parallelisms(parser: argparse.ArgumentParser) -> None:
    """Add the options for max parallelism and parallelism of the Flink job."""
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


def add_stream(parser: argparse.ArgumentParser, line: str, results: str) -> None:
    """Add the options of a stream of page views; `line` and `results` go into their help."""
    parser.add_argument(
        "--input",
        type=Path,
        metavar="DIR",
        help=f"a directory of files *.json, with a line like {line} for each view; put files "
        "there complete, by renaming them, each by a new name (default: made-up views)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"where the {results} go, as Parquet, and the checkpoint; a new directory, or that "
        "of the run to go on with",
    )
    add_parallelisms(parser)
    parser.add_argument(
        "--files-per-batch",
        type=int,
        default=4,
        metavar="N",
        help="files that are counted at once (default: 4)",
    )


def run_stream(
    parser: OneLineParser,
    argv: Sequence[str] | None,
    make_views: Callable[[Path], None],
    run: Callable[[argparse.Namespace], None],
) -> None:
    """Run a stream's command; an error that the user can put right is one line and status 2.

    Without an input it runs on made-up views, in a temporary directory.
    """
    options = parser.parse_args(argv)
    try:
        check_stream(options)
        if options.input is not None:
            options.input, options.output = options.input.resolve(), options.output.resolve()
            run(options)
            return
        with tempfile.TemporaryDirectory(prefix=parser.prog) as directory:
            place = Path(directory).resolve()
            options.input, options.output = place / "input", place / "output"
            make_views(options.input)
            run(options)
    except (InputError, KeyGroupsError, *SPARK_ERRORS) as error:
        parser.error(reason(error))


def run_bootstrap(
    parser: OneLineParser, argv: Sequence[str] | None, run: Callable[[argparse.Namespace], None]
) -> None:
    """Run the command that writes a savepoint; errors end it as they end that of a stream.

    Without an output the savepoint goes to a temporary directory.
    """
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where the savepoint goes: a new directory (default: a temporary one)",
    )
    add_parallelisms(parser)
    options = parser.parse_args(argv)
    try:
        check_parallelisms(options, "parallelism")
        if options.output is not None:
            run(options)
            return
        with tempfile.TemporaryDirectory(prefix=parser.prog) as directory:
            options.output = Path(directory) / "savepoint"
            run(options)
    except (InputError, KeyGroupsError, *SPARK_ERRORS) as error:
        parser.error(reason(error))


def check_stream(options: argparse.Namespace) -> None:
    """Raise InputError for options that cannot work, before Spark starts."""
    check_parallelisms(options, "parallelism")
    if options.files_per_batch < 1:
        raise InputError(f"--files-per-batch: must be at least 1, got {options.files_per_batch}")
    if (options.input is None) != (options.output is None):
        raise InputError("--input and --output: give both, or neither")
    if options.input is not None and not options.input.is_dir():
        raise InputError(f"--input: no such directory: {options.input}")


def read_views(spark: SparkSession, options: argparse.Namespace, schema: str) -> DataFrame:
    """Return the stream of views; a line that does not have the schema makes its batch fail."""
    reader = spark.readStream.schema(schema).option("mode", "FAILFAST")
    return (
        reader.option("maxFilesPerTrigger", options.files_per_batch)
        .option("maxFileAge", FOREVER)  # Spark skips old files, and renaming keeps the old time.
        .option("pathGlobFilter", "*.json")
        .json(local_uri(options.input))
    )


def check_parallelisms(options: argparse.Namespace, *names: str) -> None:
    """Raise InputError for a max parallelism, or parallelism of these names, out of bounds."""
    parallelisms = {name: getattr(options, name) for name in names}
    for name, parallelism in {"max_parallelism": 1, **parallelisms}.items():
        try:
            compute_key_group_range_for_operator_index(options.max_parallelism, parallelism, 0)
        except KeyGroupsError as error:
            raise InputError(f"--{name.replace('_', '-')}: {error}") from None


@contextmanager
def local_spark(name: str, settings: dict[str, str]) -> Iterator[SparkSession]:
    """Start Spark and stop it in the end, or yield the session that is active already."""
    caller_has_spark = SparkSession.getActiveSession() is not None
    if not caller_has_spark:
        check_java()
        progress("starting Spark")
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "FATAL")  # Errors come back to main() as exceptions.
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
    """Raise InputError if there is no Java; Spark's own message names no way out."""
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
    """Print a step of the work to stderr."""
    print(f"{step} ...", file=sys.stderr, flush=True)
