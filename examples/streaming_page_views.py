"""Count page views per app with Structured Streaming, each view once whatever happens.

Reads the files of JSON lines in a directory, some files at a time, and counts the views of each
app where a keyed Flink operator would: in the partition that has the number of its subtask. Run
it again, after a crash too, and it goes on where it stopped: with files that came since, or
with the batch that was under way.

Each micro-batch writes its counts to a directory of its own, batch=N/subtask=M, and the sum of
an app's counts is its total. Every view is counted once because the checkpoint fixes the files
of a batch before it starts, and a batch that runs again, since its end was not recorded, replaces
its directory. Spark's own file sink could only append, for which a count has to wait for a
watermark and leave out late views.

Spark's file source is silent about views that it leaves out: old files, by default, new ones
under the name of a counted one, those of a batch that are gone when it runs again, and the rest
of a line after its JSON. So each batch records the files of its counts beside them, and a run
ends well only if these are all the files that it found.

Without arguments it counts some made-up views in a temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from command_line import OneLineParser, add_stream, local_spark, progress, read_views, run_stream
from event_files import (
    SPARK_ERRORS,
    InputError,
    fit,
    is_hidden,
    local_uri,
    readable_uri,
    reason,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from keygroups.spark import pre_aggregate, with_routing

MOST_APPS = 20  # printed apps
CHECKPOINT = "_checkpoint"  # a directory in the output; readers skip names with _ at the start
COUNTED = "_counted"  # a file in the directory of a batch, with a line for each of its files

Stamps = dict[Path, tuple[int, int]]  # files with their size and time of change, in nanoseconds
Counted = dict[str, Stamps]  # files of each batch, by the name of its directory


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    run_stream(make_parser(), argv, make_views, run)


def make_parser() -> OneLineParser:
    """Return the parser of the command line."""
    parser = OneLineParser(
        prog="streaming_page_views",
        description="Count page views per app with Structured Streaming, each exactly once.",
    )
    add_stream(parser, '{"app": "maps"}', "counts")
    return parser


def make_views(directory: Path) -> None:
    """Write 16 files of 500 views of 10 apps, one of which has half of them."""
    directory.mkdir()
    for number in range(16):
        views = range(number * 500, (number + 1) * 500)
        apps = ("search" if view % 2 else f"app-{view // 2 % 9}" for view in views)
        lines = (json.dumps({"app": app}) + "\n" for app in apps)
        Path(directory, f"{number:02}.json").write_text("".join(lines))


def run(options: argparse.Namespace) -> None:
    """Count the new files in the input, and print the totals."""
    if options.output.exists() and not (options.output / CHECKPOINT).is_dir():
        raise InputError(f"--output: exists already, without a checkpoint: {options.output}")
    found = list(find_files(options.input))
    counted = read_counted(options.output)
    for file in (file for files in counted.values() for file in files):
        if file.parent != options.input:
            raise InputError(f"--input: the output has the counts of {file.parent}")
    settings = {
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }
    with local_spark("streaming_page_views", settings) as spark:
        count_views(spark, options, counted)
        check_counted(found, counted)
        print_totals(spark, options)


def count_views(spark: SparkSession, options: argparse.Namespace, counted: Counted) -> None:
    """Run the streaming query until no file is left."""
    job = (options.max_parallelism, options.parallelism)
    failures: list[InputError] = []

    def count_batch(batch: DataFrame, number: int) -> None:
        progress(f"counting batch {number}")
        directory = options.output / f"batch={number}"
        counted.pop(directory.name, None)
        try:
            done = {file for files in counted.values() for file in files}
            stamps = {file: stamp(file) for file in sorted(read_planned(options.output) - done)}
            lines = sum(map(count_lines, stamps))
            views = pre_aggregate(batch, "app", [F.count(F.lit(1)).alias("views")], *job)
            routed = with_routing(views, "app", *job).drop("key_group")
            routed.write.mode("overwrite").partitionBy("subtask").parquet(local_uri(directory))
            written = spark.read.schema("views bigint").parquet(readable_uri(directory))
            (total,) = written.agg(F.coalesce(F.sum("views"), F.lit(0))).first() or (0,)
            if total != lines:
                raise InputError(f"{total:,} views counted where the files have {lines:,}")
            record = (json.dumps([str(file), *seen]) + "\n" for file, seen in stamps.items())
            (directory / COUNTED).write_text("".join(record))
            counted[directory.name] = stamps
        except (InputError, OSError, *SPARK_ERRORS) as error:  # The query's own error is pages.
            failures.append(InputError(f"--input: batch {number} fails: {reason(error)}"))
            raise

    query = (
        read_views(spark, options, "app string")
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


def find_files(directory: Path) -> Iterator[Path]:
    """Yield the files to be counted; raise for one that Spark would skip or count twice."""
    for file in directory.rglob("*.json"):
        *folders, name = file.relative_to(directory).parts
        if name.startswith(".") or any(map(is_hidden, folders)):
            continue
        if folders or is_hidden(name) or not file.is_file():
            raise InputError(f"--input: not a file that is counted: {file}: move or rename it")
        if readable_uri(file) != local_uri(file):  # Patterns could match, and count, others too.
            raise InputError(f"--input: Spark takes the name for a pattern: {file}: rename it")
        yield file


def stamp(file: Path) -> tuple[int, int]:
    """Return the stamp of a file, its size and time of change, which changes if it does."""
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def read_planned(output: Path) -> set[Path]:
    """Return the files of all batches that were ever begun, from the checkpoint."""
    files = set()
    logs = (output / CHECKPOINT / "sources" / "0").glob("[0-9]*")
    for log in sorted(logs, key=lambda log: -int(log.stem)):
        for line in log.read_text().splitlines()[1:]:  # The first line is the version.
            files.add(Path(unquote(urlsplit(json.loads(line)["path"]).path)))
        if log.suffix == ".compact":  # A compact log has the lines of all before it.
            break
    return files


def read_counted(output: Path) -> Counted:
    """Return the files of the counts of each batch."""
    counted: Counted = {}
    for record in output.glob(f"batch=*/{COUNTED}"):
        files = map(json.loads, record.read_text().splitlines())
        counted[record.parent.name] = {Path(file): (size, time) for file, size, time in files}
    return counted


def count_lines(file: Path) -> int:
    """Return the number of views; raise for two in a line: Spark would ignore the second."""
    last = blank = 0
    with file.open(encoding="utf-8-sig") as lines:
        try:
            for line in lines:
                last += 1
                if not line.strip():
                    blank += 1
                elif not isinstance(json.loads(line), dict):
                    raise ValueError("something else")
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file} has no JSON object in line {last}: {error}") from None
    return last - blank


def check_counted(found: Iterable[Path], counted: Counted) -> None:
    """Raise InputError if a file of the start of the run is not counted, or has changed."""
    stamps = {file: seen for files in counted.values() for file, seen in files.items()}
    for file in found:
        if file not in stamps:
            raise InputError(f"--input: not counted: {file}")
        if file.exists() and stamp(file) != stamps[file]:
            raise InputError(f"--input: has changed since it was counted: {file}: rename it")


def print_totals(spark: SparkSession, options: argparse.Namespace) -> None:
    """Print the sums of the counts of all batches, of this run and earlier ones."""
    if not any(options.output.glob("batch=*/subtask=*")):
        raise InputError(f"--input: no page views: {options.input}")
    counts = spark.read.parquet(readable_uri(options.output))
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
