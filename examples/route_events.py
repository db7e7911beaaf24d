"""Show where Flink would send the events of a table, and how even the load would be.

Reads a CSV or Parquet table with Spark, gives each event the key group and the subtask that
a keyed Flink operator would, and reports the load of each subtask, the hottest keys, the
key groups that move when the operator is rescaled, and which parallelism would serve better.
Without arguments it does so for the flights in examples/data.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import NoReturn

try:
    from event_files import (
        SPARK_ERRORS,
        CsvRecords,
        InputError,
        Table,
        check_csv,
        find_table,
        fit,
        local_uri,
        quote,
        read_events,
        reason,
    )
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    from keygroups import (
        KeyGroupLoad,
        KeyGroupsError,
        RescalePlan,
        compute_key_group_range_for_operator_index,
        keys_for_subtasks,
    )
    from keygroups.reports import HOT, HotKey, SubtaskRow, diagnose, subtask_rows
    from keygroups.spark import RescaleReport, infer_key_type, rebalance_keys, with_routing
    from keygroups.types import KeyType
except ModuleNotFoundError as missing:
    print(
        f'route_events: no module {missing.name}: pip install "keygroups[spark]"', file=sys.stderr
    )
    raise SystemExit(2) from None

FLIGHTS = Path(__file__).resolve().parent / "data" / "nycflights13.parquet"
LONGEST_TABLE = 20  # rows of a table that are printed
HOTTEST_KEYS = 5


class OneLineParser(argparse.ArgumentParser):
    """Reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"{self.prog}: {message}\n")


@dataclass(frozen=True)
class Measured:
    """What a table of events says about its keys."""

    load: KeyGroupLoad  # records
    distinct_keys: tuple[int, ...]  # of each key group
    null_keys: int  # records


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; whatever the user can put right ends it with status 2 and one line."""
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.rescale_to is None:
        options.rescale_to = min(options.parallelism + 1, options.max_parallelism)
    try:
        check_options(options)
        run(options)
    except (InputError, KeyGroupsError, *SPARK_ERRORS) as error:
        parser.error(reason(error))


def make_parser() -> OneLineParser:
    """Return the command line."""
    parser = OneLineParser(
        prog="route_events",
        description="Show where Flink would send the events of a table, and how even the load is.",
    )
    parser.add_argument(
        "--input",
        type=Path,
        default=FLIGHTS,
        metavar="PATH",
        help="a Parquet file or a directory of them; or, by the ending .csv, .csv.gz or .csv.bz2, "
        "CSV in UTF-8 with the same header in each file, whose columns are all read as text (key "
        "type STRING) and whose empty fields are empty strings, not nulls, as in Flink's CSV "
        "format (default: the flights in examples/data)",
    )
    parser.add_argument(
        "--key",
        default="tailnum",
        metavar="COLUMN[,COLUMN...]",
        help="the key column; several make a Flink Tuple; a name with a comma in it stands in "
        """quotes, as in CSV: '"a,b",c' (default: tailnum)""",
    )
    add_parallelisms(parser)
    parser.add_argument(
        "--rescale-to",
        type=int,
        metavar="N",
        help="subtasks later (default: one more, if --max-parallelism allows it)",
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="show a substitute key for each subtask; --output then has them in a column "
        "substitute_key, for a job whose keyBy has to balance rather than to group",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="write the table with its key_group and subtask to this new directory, as Parquet; "
        "both are null where the key is",
    )
    return parser


def check_options(options: argparse.Namespace) -> None:
    """Refuse, before Spark starts, what cannot work."""
    check_parallelisms(options, "parallelism", "rescale_to")
    if not options.input.exists():
        raise InputError(f"--input: no such file or directory: {options.input}")
    if options.output is not None and options.output.exists():
        raise InputError(f"--output: exists already: {options.output}")


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


def run(options: argparse.Namespace) -> None:
    """Read, measure, report and, if asked to, write."""
    names = key_names(options.key)
    table, csv_records = find_table(options.input), None
    if table.header is not None:
        check_columns(names, [*table.header, *table.folder_columns])
        progress(f"checking {options.input}")
        csv_records = check_csv(table.files)
    caller_has_spark = SparkSession.getActiveSession() is not None
    if not caller_has_spark:
        check_java()
        progress("starting Spark")
    spark = (
        SparkSession.builder.appName("route_events")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
        .config("spark.log.level", "FATAL")  # an error comes back to main()
        .getOrCreate()
    )
    try:
        progress(f"reading {options.input}")
        events = read_events(spark, table, csv_records)
        check_columns(names, events.columns)
        keys = [quote(name) for name in names]
        routed = with_routing(events, keys, options.max_parallelism, options.parallelism)
        if options.fix:
            routed = rebalance_keys(routed, keys, options.max_parallelism, options.parallelism)
        # A cached plan keeps all its shuffle partitions, hundreds for whatever little data.
        cores = spark.sparkContext.defaultParallelism
        per_key = count_per_key(routed, keys).coalesce(cores).persist()
        try:
            progress("counting the records of each key")
            measured = measure(per_key, options.max_parallelism)
            check_count(measured, csv_records)
            plan = RescalePlan(options.max_parallelism, options.parallelism, options.rescale_to)
            report = RescaleReport(plan, measured.load)
            load, parallelism = measured.load, options.parallelism
            subtasks = subtask_rows(load, measured.distinct_keys, None, parallelism)
            hottest = subtasks[report.hot_subtask_before]
            progress(f"looking for the hottest keys of subtask {hottest.subtask}")
            hot_keys = find_hot_keys(per_key, hottest)
        finally:
            per_key.unpersist()
        for line in (
            *header_lines(options, table, infer_key_type(events, keys), measured),
            *subtask_lines(subtasks, report.imbalance_before),
            *hot_key_lines(hottest, hot_keys),
            *verdict_lines(subtasks, hottest, hot_keys, load),
            *(substitute_lines(options) if options.fix else []),
            "",
            "Rescaling, where the weight is the number of records",
            report,
        ):
            print(line)
        if options.output is not None:
            progress(f"writing {options.output}")
            routed.write.parquet(local_uri(options.output.resolve()))
    finally:
        if not caller_has_spark:
            spark.stop()


def progress(step: str) -> None:
    """Say on stderr what is being done."""
    print(f"{step} ...", file=sys.stderr, flush=True)


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


def key_names(text: str) -> list[str]:
    """Split the value of --key, a line of CSV."""
    try:
        (names,) = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, ValueError):
        raise InputError(f"--key: must be one line of CSV, got {text!r}") from None
    return names


def check_columns(names: Iterable[str], columns: Sequence[str]) -> None:
    """Refuse a key column that is not there."""
    for name in names:
        if name not in columns:
            more = f", and {len(columns) - LONGEST_TABLE} more"
            shown = ", ".join(map(as_key, columns[:LONGEST_TABLE])) or "none"
            shown += more if len(columns) > LONGEST_TABLE else ""
            raise InputError(f"--key: no column {name!r}; the columns are: {shown}")


def as_key(name: str) -> str:
    """Write the name of a column as --key takes it."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name


def count_per_key(routed: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Count the records of each key: the one time that the table is read."""
    # The key is a struct of renamed fields, for a column may be called "records" or "key".
    key = F.struct(*(F.col(name).alias(f"f{i}") for i, name in enumerate(keys)))
    return (
        routed.select("key_group", key.alias("key"))
        .groupBy("key_group", "key")
        .agg(F.count(F.lit(1)).alias("records"))
    )


def measure(per_key: DataFrame, max_parallelism: int) -> Measured:
    """Bring a row for each key group to the driver."""
    records, distinct_keys, null_keys = [0] * max_parallelism, [0] * max_parallelism, 0
    sums = per_key.groupBy("key_group").agg(F.sum("records"), F.count(F.lit(1)))
    for key_group, group_records, group_keys in sums.collect():
        if key_group is None:
            null_keys = group_records
        else:
            records[key_group], distinct_keys[key_group] = group_records, group_keys
    if not any(records):
        raise InputError(
            f"--key: null in all {null_keys:,} records, and Flink would fail on the first"
            if null_keys
            else "--input: the table is empty"
        )
    return Measured(KeyGroupLoad(max_parallelism, records), tuple(distinct_keys), null_keys)


def check_count(measured: Measured, csv_records: CsvRecords | None) -> None:
    """Refuse a report on other records than those of the CSV files."""
    records = sum(measured.load.weights) + measured.null_keys
    if csv_records is not None and records != csv_records.count:
        there = f"Spark finds {records:,.0f} records where the files have {csv_records.count:,}"
        raise InputError(f"--input: {there}")


def find_hot_keys(per_key: DataFrame, subtask: SubtaskRow) -> list[HotKey]:
    """Return the keys of a subtask that have the most records."""
    key_groups = subtask.key_groups
    fields = per_key.select("key.*").schema.fields
    rows = (
        per_key.filter(
            F.col("key_group").between(key_groups.start_key_group, key_groups.end_key_group)
        )
        .orderBy(F.desc("records"), "key_group", "key")
        .limit(HOTTEST_KEYS)
        .select("key_group", "records", *(F.col(f"key.{f.name}").cast("string") for f in fields))
        .collect()
    )
    is_text = [isinstance(field.dataType, T.StringType) for field in fields]
    return [
        HotKey(
            key_text(row[2:], is_text), row.key_group, row.records, row.records / subtask.records
        )
        for row in rows
    ]


def key_text(values: Iterable[str | None], is_text: Iterable[bool]) -> str:
    """Show a key: text in quotes, so that an empty string can be seen; tuples in brackets."""
    shown = [
        "null" if value is None else repr(value) if quoted else value
        for value, quoted in zip(values, is_text)
    ]
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"


def header_lines(
    options: argparse.Namespace, table: Table, key_type: KeyType, measured: Measured
) -> list[str]:
    """Say what was read and how it was routed."""
    note = "" if table.header is None else " (CSV: all text)"
    nulls = f"{measured.null_keys:,}"
    if measured.null_keys:
        nulls += " records, left out below: Flink would fail on them"
    return [
        f"input            {fit(table.root.name, 40)}{note}",
        f"records          {sum(measured.load.weights) + measured.null_keys:,.0f}",
        f"key              {fit(options.key, 62)}",
        f"key type         {fit(repr(key_type), 62)}",
        f"null keys        {nulls}",
        f"distinct keys    {sum(measured.distinct_keys):,}",
        f"max parallelism  {options.max_parallelism} (has to be that of the Flink job)",
        f"parallelism      {options.parallelism}",
    ]


def subtask_lines(subtasks: Sequence[SubtaskRow], imbalance: float) -> list[str]:
    """Show the load of each subtask, or of the heaviest ones."""
    by_records = sorted(subtasks, key=lambda subtask: -subtask.records)
    shown, rest = by_records[:LONGEST_TABLE], by_records[LONGEST_TABLE:]
    if not rest:
        shown.sort(key=lambda subtask: subtask.subtask)
    lines = [
        "",
        f"Load of the {len(shown)} heaviest subtasks" if rest else "Load of the subtasks",
        "subtask         records   share  x mean      key groups  groups  distinct keys",
    ]
    lines += [
        f"{subtask.subtask:>7}{subtask.records:>16,}{subtask.share:>8.1%}"
        f"{subtask.times_mean:>8.2f}{subtask.key_groups!s:>16}"
        f"{len(subtask.key_groups):>8}{subtask.distinct_keys:>15,}"
        for subtask in shown
    ]
    if rest:
        most, least = rest[0].records, rest[-1].records
        spread = f"{least:,} to {most:,} records each" if most else "none"
        lines.append(f"{len(rest)} more have {spread}")
    idle = sum(not subtask.records for subtask in subtasks)
    if idle:
        lines.append(f"{idle} of {len(subtasks)} subtasks get no record at all")
    lines.append(f"imbalance {imbalance:.2f}: the heaviest subtask over the mean")
    sizes = sorted(len(subtask.key_groups) for subtask in subtasks)
    lines.append(
        f"key groups per subtask: {sizes[0]}"
        if sizes[0] == sizes[-1]
        else f"key groups per subtask: {sizes[0]} in {sizes.count(sizes[0])} subtasks, "
        f"{sizes[-1]} in {sizes.count(sizes[-1])}"
    )
    return lines


def hot_key_lines(hottest: SubtaskRow, hot_keys: Iterable[HotKey]) -> list[str]:
    """Show the hottest keys of the hottest subtask."""
    return [
        "",
        f"Hottest keys of subtask {hottest.subtask}, the heaviest",
        f"{'key':36}  key group         records  of the subtask",
        *(
            f"{fit(key.key, 36):36}{key.key_group:>11}{key.records:>16,}{key.share:>16.1%}"
            for key in hot_keys
        ),
    ]


def verdict_lines(
    subtasks: Sequence[SubtaskRow], hottest: SubtaskRow, hot_keys: list[HotKey], load: KeyGroupLoad
) -> list[str]:
    """Say why the load is uneven, if it is, and what helps."""
    top_keys = {hottest.subtask: hot_keys} if hottest.times_mean >= HOT else {}
    diagnosis, remedy, _ = diagnose(subtasks, top_keys, load)
    return ["", f"Verdict: {diagnosis}", *wrap(f"remedy: {remedy}", 80)]


def substitute_lines(options: argparse.Namespace) -> list[str]:
    """Show the keys that reach each subtask."""
    keys = keys_for_subtasks(options.max_parallelism, options.parallelism)
    more = f", and {len(keys) - LONGEST_TABLE} more" if len(keys) > LONGEST_TABLE else ""
    shown = ", ".join(map(str, keys[:LONGEST_TABLE]))
    return [
        "",
        "Substitute keys of type INT that reach the subtasks, from subtask 0",
        *wrap(f"{shown}{more}", 80),
    ]


if __name__ == "__main__":
    main()
