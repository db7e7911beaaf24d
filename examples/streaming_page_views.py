"""Count page views per app with Structured Streaming, each view once whatever happens.

Reads the files of JSON lines in a directory, some files at a time, and counts the views of each
app where a keyed Flink operator would: in the partition that has the number of its subtask. Run
it again, after a crash too, and it goes on where it stopped: with files that came since, or
with the batch that was under way.

Each micro-batch writes its counts to a directory of its own, batch=N/subtask=M, and the sum of
an app's counts is its total. Every view is counted once because the checkpoint fixes the files
of a batch before it starts, and a batch that runs again, since its end was not noted down,
replaces its directory. Spark's own file sink could only append, for which a count has to wait
for a watermark and leave out what comes late.

Without arguments it counts some made-up views in a temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from route_events import (
    SPARK_ERRORS,
    InputError,
    OneLineParser,
    add_parallelisms,
    check_java,
    check_parallelisms,
    fit,
    local_uri,
    progress,
    reason,
)

from keygroups import KeyGroupsError
from keygroups.spark import pre_aggregate, with_routing

MOST_APPS = 20  # that are printed
CHECKPOINT = "_checkpoint"  # in the output; readers skip what starts with _


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; whatever the user can put right ends it with status 2 and one line."""
    parser = make_parser()
    options = parser.parse_args(argv)
    try:
        check_options(options)
        if options.input is not None:
            run(options)
            return
        with tempfile.TemporaryDirectory(prefix="page_views") as directory:
            options.input, options.output = Path(directory, "input"), Path(directory, "output")
            make_views(options.input)
            run(options)
    except (InputError, KeyGroupsError, *SPARK_ERRORS) as error:
        parser.error(reason(error))


def make_parser() -> OneLineParser:
    """Return the command line."""
    parser = OneLineParser(
        prog="streaming_page_views",
        description="Count page views per app with Structured Streaming, each exactly once.",
    )
    parser.add_argument(
        "--input",
        type=Path,
        metavar="DIR",
        help='a directory of files *.json, with a line like {"app": "maps"} for each view; put '
        "files there complete, by renaming them (default: made-up views)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="where the counts go, as Parquet, and the checkpoint; a new directory, or that of "
        "the run to go on with",
    )
    add_parallelisms(parser)
    parser.add_argument(
        "--files-per-batch",
        type=int,
        default=4,
        metavar="N",
        help="files that are counted at once (default: 4)",
    )
    return parser


def check_options(options: argparse.Namespace) -> None:
    """Refuse, before Spark starts, what cannot work."""
    check_parallelisms(options, "parallelism")
    if options.files_per_batch < 1:
        raise InputError(f"--files-per-batch: must be at least 1, got {options.files_per_batch}")
    if (options.input is None) != (options.output is None):
        raise InputError("--input and --output: give both, or neither")
    if options.input is None:
        return
    if not options.input.is_dir():
        raise InputError(f"--input: no such directory: {options.input}")
    if options.output.exists() and not (options.output / CHECKPOINT).is_dir():
        raise InputError(f"--output: exists already, without a checkpoint: {options.output}")


def make_views(directory: Path) -> None:
    """Write 16 files of 500 views of 10 apps, one of which has half of them."""
    directory.mkdir()
    for number in range(16):
        views = range(number * 500, (number + 1) * 500)
        apps = ("search" if view % 2 else f"app-{view // 2 % 9}" for view in views)
        lines = (json.dumps({"app": app}) + "\n" for app in apps)
        Path(directory, f"{number:02}.json").write_text("".join(lines))


def run(options: argparse.Namespace) -> None:
    """Count what is in the input and not counted yet, and print the totals."""
    caller_has_spark = SparkSession.getActiveSession() is not None
    if not caller_has_spark:
        check_java()
        progress("starting Spark")
    spark = (
        SparkSession.builder.appName("streaming_page_views")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "FATAL")  # an error comes back to main()
        .config("spark.sql.shuffle.partitions", os.cpu_count() or 1)
        .getOrCreate()
    )
    try:
        count_views(spark, options)
        print_totals(spark, options)
    finally:
        if not caller_has_spark:
            spark.stop()


def count_views(spark: SparkSession, options: argparse.Namespace) -> None:
    """Run the streaming query until no file is left."""
    job = (options.max_parallelism, options.parallelism)
    failures: list[InputError] = []

    def count_batch(batch: DataFrame, number: int) -> None:
        progress(f"counting batch {number}")
        views = pre_aggregate(batch, "app", [F.count(F.lit(1)).alias("views")], *job)
        routed = with_routing(views, "app", *job).drop("key_group")
        try:
            routed.write.mode("overwrite").partitionBy("subtask").parquet(
                local_uri(options.output / f"batch={number}")
            )
        except SPARK_ERRORS as error:  # what the query makes of it fills pages
            failures.append(InputError(f"--input: batch {number} fails: {reason(error)}"))
            raise

    # A line that is no JSON, and one without an app, make the batch fail.
    reader = spark.readStream.schema("app string").option("mode", "FAILFAST")
    query = (
        reader.option("maxFilesPerTrigger", options.files_per_batch)
        .option("pathGlobFilter", "*.json")
        .json(local_uri(options.input))
        .writeStream.foreachBatch(count_batch)
        .option("checkpointLocation", local_uri(options.output / CHECKPOINT))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except SPARK_ERRORS as error:
        raise failures[0] if failures else error from None
    finally:
        query.stop()


def print_totals(spark: SparkSession, options: argparse.Namespace) -> None:
    """Add up the counts of all batches, of this run and of those before it."""
    if not any(options.output.glob("batch=*/subtask=*")):
        raise InputError(f"--input: no page views: {options.input}")
    counts = spark.read.parquet(local_uri(options.output))
    totals = counts.groupBy("app").agg(F.sum("views").alias("views"))
    routed = with_routing(totals, "app", options.max_parallelism, options.parallelism)
    rows = routed.orderBy(F.desc("views"), "app").collect()
    print(f"{'app':40}  subtask           views")
    for row in rows[:MOST_APPS]:
        print(f"{fit(repr(row.app), 40):40}{row.subtask:>9}{row.views:>16,}")
    if len(rows) > MOST_APPS:
        print(f"{len(rows) - MOST_APPS} more apps")
    print(f"{len(rows):,} apps, {sum(row.views for row in rows):,} views")


if __name__ == "__main__":
    main()
