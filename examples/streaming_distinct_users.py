"""Keep the number of distinct users of each app, and forget apps that nobody uses.

Reads the files of JSON lines in a directory, some files at a time, and keeps for each app what
Flink SQL keeps for

    SELECT app, COUNT(*) AS views, COUNT(DISTINCT user) AS users FROM views GROUP BY app

in mini-batches: an accumulator and the users one by one, in the partition of Spark's state
store that has the number of the app's subtask. An app without views for the time
of --idle-retention is forgotten, and starts anew from one view when it comes back, as in Flink
until 1.11. Run it again, after a crash too, and it goes on where it stopped.

Each micro-batch writes the changes of its apps to a directory of its own, changes/batch=N. One
that runs again, since its end was not recorded, starts from the same state and replaces its
directory, so every view counts once. The table is the last change of each app. As in Flink, there
is no change that says that an app was forgotten.

Needs PySpark 4.1 and `pip install 'keygroups[spark,state]'`. Without arguments it counts some
made-up views in a temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from command_line import OneLineParser, add_stream, local_spark, progress, read_views, run_stream
from event_files import InputError, fit, local_uri, readable_uri
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from keygroups.spark import with_routing
from keygroups.spark.state import GroupAggregate, group_aggregate, state_accesses

MOST_APPS = 20  # printed apps
CHECKPOINT = "_checkpoint"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    run_stream(make_parser(), argv, make_views, run)


def make_parser() -> OneLineParser:
    """Return the parser of the command line."""
    parser = OneLineParser(
        prog="streaming_distinct_users",
        description="Keep the number of distinct users of each app; forget apps nobody uses.",
    )
    add_stream(parser, '{"app": "maps", "user": 17}', "changes")
    parser.add_argument(
        "--idle-retention",
        type=float,
        nargs=2,
        default=(3600, 7200),
        metavar=("MIN", "MAX"),
        help="seconds without views after which an app is forgotten, at least and at most; they "
        "are at least 300 apart (default: 3600 7200)",
    )
    return parser


def make_views(directory: Path) -> None:
    """Write 8 files of 500 views of 10 apps, one of which has half of them."""
    directory.mkdir()
    for number in range(8):
        lines = []
        for view in range(number * 500, (number + 1) * 500):
            app = "search" if view % 2 else f"app-{view // 2 % 9}"
            lines.append(json.dumps({"app": app, "user": view * view % 1009}) + "\n")
        Path(directory, f"{number:02}.json").write_text("".join(lines))


def run(options: argparse.Namespace) -> None:
    """Count the new views in the input, and print the table."""
    # The processor runs in workers, which would else be any python3 on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(options.parallelism),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        # Else a run would wait until apps are forgotten; due ones are before the next view.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    with local_spark("streaming_distinct_users", settings) as spark:
        count_users(spark, options)
        print_table(spark, options)


def count_users(spark: SparkSession, options: argparse.Namespace) -> None:
    """Run the streaming query until no file is left."""
    views = read_views(spark, options, "app string, user bigint")
    views = views.withColumn("kind", F.lit("+I"))  # A view is never retracted.
    low, high = (timedelta(seconds=seconds) for seconds in options.idle_retention)
    users = GroupAggregate(
        views.schema,
        {"views": ("count", "*"), "users": ("count_distinct", "user")},
        idle_retention=(low, high),
        mini_batch=True,
    )
    changes = group_aggregate(views, "app", users, options.max_parallelism, options.parallelism)

    def write_batch(batch: DataFrame, number: int) -> None:
        progress(f"counting batch {number}")
        directory = options.output / "changes" / f"batch={number}"
        batch.write.mode("overwrite").parquet(local_uri(directory))

    query = (
        changes.writeStream.foreachBatch(write_batch)
        .outputMode("update")
        .option("checkpointLocation", local_uri(options.output / CHECKPOINT))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    for batch in query.recentProgress:
        reads, writes = state_accesses(batch)
        progress(
            f"batch {batch.batchId}: {batch.numInputRows:,} views, {reads:,} reads and "
            f"{writes:,} writes of state"
        )


def print_table(spark: SparkSession, options: argparse.Namespace) -> None:
    """Print the last change of each app, of this run and earlier ones."""
    if not any((options.output / "changes").glob("batch=*")):
        raise InputError(f"--input: no views: {options.input}")
    changes = spark.read.parquet(readable_uri(options.output / "changes"))
    last = (
        changes.where("kind IN ('+I', '+U')")
        .groupBy("app")
        .agg(F.max_by(F.struct("views", "users"), "batch").alias("last"))
        .select("app", "last.*")
    )
    routed = with_routing(last, "app", options.max_parallelism, options.parallelism)
    rows = routed.orderBy(F.desc("users"), "app").collect()
    print(f"{'app':40}  subtask           views           users")
    for row in rows[:MOST_APPS]:
        print(f"{fit(repr(row.app), 40):40}{row.subtask:>9}{row.views:>16,}{row.users:>16,}")
    if len(rows) > MOST_APPS:
        print(f"{len(rows) - MOST_APPS} more apps")
    print(f"{len(rows):,} apps, {sum(row.views for row in rows):,} views")


if __name__ == "__main__":
    main()
