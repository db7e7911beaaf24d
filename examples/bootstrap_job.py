"""Start a Flink job with state: count flights with Spark, and write the counts as a savepoint.

    python examples/bootstrap_job.py [--output DIR] [--max-parallelism N] [--parallelism N]

Of each carrier it counts the flights, and those of each of its aircraft: a ValueState and a
MapState of one operator. Without --output the savepoint goes to a temporary directory.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from command_line import OneLineParser, local_spark, run_bootstrap
from event_files import readable_uri
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from keygroups.savepoint import Savepoint
from keygroups.spark import KeyedState, MapState, ValueState, write_savepoint
from keygroups.types import LONG, STRING

FLIGHTS = Path(__file__).resolve().parent / "data" / "nycflights13.parquet"
UID = "flights-by-carrier"
# The job that is printed, and how its function opens the states.
JOB = """\
env.setMaxParallelism({max_parallelism});
flights.keyBy(flight -> flight.carrier)
    .process(new CountFlights())
    .uid("{uid}")
    .print();
env.execute();"""
OPEN = """\
flights = getRuntimeContext().getState(new ValueStateDescriptor<>("flights", Types.LONG));
byTailnum = getRuntimeContext().getMapState(
    new MapStateDescriptor<>("by-tailnum", Types.STRING, Types.LONG));"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; an error that the user can put right is one line and status 2."""
    parser = OneLineParser(
        prog="bootstrap_job",
        description="Count flights with Spark, and write the counts as the state of a Flink job.",
    )
    run_bootstrap(parser, argv, run)


def run(options: argparse.Namespace) -> None:
    """Write the savepoint, and print its contents and the job that starts from it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with local_spark("bootstrap_job", {"spark.ui.showConsoleProgress": "false"}) as spark:
        flights = spark.read.parquet(readable_uri(FLIGHTS))
        states = {
            "flights": ValueState("flights", LONG),
            "by-tailnum": MapState("tailnum", "of_tailnum", STRING, LONG),
        }
        savepoint = write_savepoint(
            count_flights(flights),
            options.output,
            {UID: KeyedState(None, "carrier", STRING, states)},
            options.max_parallelism,
            options.parallelism,
        )
    print_state(savepoint)
    job = JOB.format(max_parallelism=options.max_parallelism, uid=UID)
    print(f"\nThe job, to be started with `flink run -s {options.output}`:\n\n{job}")
    print(f"\nCountFlights is a KeyedProcessFunction that opens:\n\n{OPEN}")


def count_flights(flights: DataFrame) -> DataFrame:
    """Return a row for each carrier, and one for each of its aircraft, united by name.

    A row has nulls in the columns of the other kind; a cancelled flight may have no aircraft.
    """
    by_carrier = flights.groupBy("carrier").agg(F.count("*").alias("flights"))
    with_tailnum = flights.where(F.col("tailnum").isNotNull())
    by_tailnum = with_tailnum.groupBy("carrier", "tailnum").agg(F.count("*").alias("of_tailnum"))
    return by_carrier.unionByName(by_tailnum, allowMissingColumns=True)


def print_state(savepoint: Savepoint) -> None:
    """Print the state that a job will find."""
    operator = savepoint.operator(UID)
    entries = list(operator.entries())
    print(savepoint)
    for state, count in Counter(entry.state for entry in entries).items():
        print(f"{UID}, {state}: {count:,} entries")
    flights = {entry.key: entry.value for entry in entries if entry.state == "flights"}
    for carrier in sorted(flights, key=lambda one: -flights[one])[:3]:
        print(f"{carrier}: {flights[carrier]:,} flights")


if __name__ == "__main__":
    main()
