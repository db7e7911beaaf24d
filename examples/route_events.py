"""Show where Flink would send the events of a table, and how even the load would be.

Reads a CSV or Parquet table with Spark and reports the load of each subtask of a keyed Flink
operator, why it is uneven, the key groups that move when the operator is rescaled, and better
parallelisms. Without arguments it does so for the flights in examples/data.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap

try:
    from command_line import (
        OneLineParser,
        add_parallelisms,
        check_parallelisms,
        local_spark,
        progress,
    )
    from event_files import (
        SPARK_ERRORS,
        InputError,
        check_csv,
        find_table,
        fit,
        local_uri,
        quote,
        read_events,
        reason,
    )

    from keygroups import KeyGroupsError, RescalePlan, keys_for_subtasks
    from keygroups.reports import RescaleReport
    from keygroups.spark import rebalance_keys, skew_report, with_routing
except ModuleNotFoundError as missing:
    print(
        f'route_events: no module {missing.name}: pip install "keygroups[spark]"', file=sys.stderr
    )
    raise SystemExit(2) from None

FLIGHTS = Path(__file__).resolve().parent / "data" / "nycflights13.parquet"
LONGEST_LIST = 20  # texts in a printed list
HOTTEST_KEYS = 5  # printed keys of a hot subtask


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; an error that the user can put right is one line and status 2."""
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
    """Return the parser of the command line."""
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
        "--subtask",
        type=int,
        metavar="N",
        help="a subtask to look at closely, hot or not: its key groups, and their heaviest keys",
    )
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
    """Raise InputError for options that cannot work, before Spark starts."""
    check_parallelisms(options, "parallelism", "rescale_to")
    if options.subtask is not None and not 0 <= options.subtask < options.parallelism:
        last = options.parallelism - 1
        raise InputError(f"--subtask: subtask must be from 0 to {last}, got {options.subtask}")
    if not options.input.exists():
        raise InputError(f"--input: no such file or directory: {options.input}")
    if options.output is not None and options.output.exists():
        raise InputError(f"--output: exists already: {options.output}")


def run(options: argparse.Namespace) -> None:
    """Read, measure, report and, if asked to, write."""
    names, job = key_names(options.key), (options.max_parallelism, options.parallelism)
    keys = [quote(name) for name in names]
    table, csv_records = find_table(options.input), None
    if table.header is not None:
        check_columns(names, [*table.header, *table.folder_columns])
        progress(f"checking {options.input}")
        csv_records = check_csv(table.files)
    settings = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    with local_spark("route_events", settings) as spark:
        progress(f"reading {options.input}")
        events = read_events(spark, table, csv_records)
        check_columns(names, events.columns)
        routed = with_routing(events, keys, *job)
        if options.fix:
            routed = rebalance_keys(routed, keys, *job)

        progress("counting the records of each key")
        asked = options.subtask
        report = skew_report(events, keys, *job, top=HOTTEST_KEYS, subtask=asked, nulls="drop")
        records = report.records + report.null_keys
        if csv_records is not None and records != csv_records.count:
            counts = f"Spark finds {records:,} records where the files have {csv_records.count:,}"
            raise InputError(f"--input: {counts}")
        if records == 0:
            raise InputError("--input: the table is empty")
        if records == report.null_keys:
            problem = f"null in all {records:,} records, and Flink would fail on the first"
            raise InputError(f"--key: {problem}")

        note = "" if table.header is None else " (CSV: all text)"
        print(f"input      {fit(table.root.name)}{note}")
        print(f"records    {records:,}")
        print(f"key        {fit(options.key, 69)}")
        print(f"null keys  {report.null_keys:,}\n")
        print(report)
        if options.fix:
            print("\nSubstitute keys of type INT that reach the subtasks, from subtask 0")
            print("\n".join(wrap(listed(map(str, keys_for_subtasks(*job))), 80)))
        print("\nRescaling, where the weight is the number of records")
        print(RescaleReport(RescalePlan(*job, options.rescale_to), report.load))
        if options.output is not None:
            progress(f"writing {options.output}")
            routed.write.parquet(local_uri(options.output.resolve()))


def key_names(text: str) -> list[str]:
    """Return the column names in the value of --key, a line of CSV."""
    try:
        (names,) = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, ValueError):
        raise InputError(f"--key: must be one line of CSV, got {text!r}") from None
    return names


def check_columns(names: Iterable[str], columns: Sequence[str]) -> None:
    """Raise InputError for a key column that the table lacks."""
    for name in names:
        if name not in columns:
            known = listed(map(as_key, columns)) or "none"
            raise InputError(f"--key: no column {name!r}; the columns are: {known}")


def as_key(name: str) -> str:
    """Return the name of a column as --key takes it."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"\r\n') else name


def listed(texts: Iterable[str]) -> str:
    """Return the first texts, joined, and the number of the others."""
    first, rest = (texts := [*texts])[:LONGEST_LIST], texts[LONGEST_LIST:]
    return ", ".join(first) + (f", and {len(rest)} more" if rest else "")


if __name__ == "__main__":
    main()
