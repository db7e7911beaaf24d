"""Start a Flink job in the middle of a topic, with state and Kafka's offsets from an archive.

    python examples/backfill.py [--output DIR] [--max-parallelism N] [--parallelism N]

The flights of 2013 stand for a Kafka topic with a partition for each airport; an archive has the
records before October. Spark counts the flights of each carrier in the archive, and writes one
savepoint with the counts and with the offset after the last record of each partition.
The job goes on there, and counts every flight once. Without --output the savepoint goes to a
temporary directory.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import reduce
from operator import or_
from pathlib import Path

from command_line import OneLineParser, local_spark, run_bootstrap
from event_files import readable_uri
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from keygroups.savepoint import KafkaOffsets, KafkaSplit, Savepoint
from keygroups.spark import KeyedState, ValueState, kafka_offsets, write_savepoint
from keygroups.types import LONG, STRING

FLIGHTS = Path(__file__).resolve().parent / "data" / "nycflights13.parquet"
TOPIC, UID = "flights", "flights-by-carrier"
AIRPORTS = ("EWR", "JFK", "LGA")  # partitions 0, 1 and 2
ARCHIVED_UNTIL = "2013-10-01"
# The job that is printed.
JOB = """\
KafkaSource<Flight> source = KafkaSource.<Flight>builder()
    .setBootstrapServers("kafka:9092")
    .setTopics("{topic}")
    .setValueOnlyDeserializer(new FlightSchema())
    .build();
env.setMaxParallelism({max_parallelism});
env.fromSource(source, WatermarkStrategy.noWatermarks(), "{topic}")
    .uid("{topic}")
    .keyBy(flight -> flight.carrier)
    .process(new CountFlights())  // getState(new ValueStateDescriptor<>("flights", Types.LONG))
    .uid("{uid}")
    .print();
env.execute();"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; an error that the user can put right is one line and status 2."""
    parser = OneLineParser(
        prog="backfill",
        description="Count archived flights with Spark, for a Flink job that goes on in Kafka.",
    )
    run_bootstrap(parser, argv, run)


def run(options: argparse.Namespace) -> None:
    """Write the savepoint, and print its contents, the records to come, and the job."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}
    with local_spark("backfill", settings) as spark:
        topic = read_topic(spark)
        archive = topic.where(F.col("time_hour") < F.lit(ARCHIVED_UNTIL).cast("timestamp"))
        # The offsets come first, and limit the records that are counted: later additions to the
        # archive are left for the job.
        read = archive.groupBy("topic", "partition").agg((F.max("offset") + 1).alias("offset"))
        offsets = kafka_offsets(read)
        counts = archive.where(comes_before(offsets)).groupBy("carrier").count()
        state = KeyedState(counts, "carrier", STRING, {"flights": ValueState("count", LONG)})
        savepoint = write_savepoint(
            None,
            options.output,
            {TOPIC: offsets, UID: state},
            options.max_parallelism,
            options.parallelism,
        )
        print(savepoint)
        print_lags(savepoint, topic)
        print_counts(savepoint, topic.where(~comes_before(offsets)))
    job = JOB.format(topic=TOPIC, max_parallelism=options.max_parallelism, uid=UID)
    print(f"\nThe job, to be started with `flink run -s {options.output}`:\n\n{job}")


def read_topic(spark: SparkSession) -> DataFrame:
    """Return the flights as records of a topic, in each partition in the order of their hours."""
    flights = spark.read.parquet(readable_uri(FLIGHTS))
    in_order = Window.partitionBy("origin").orderBy("time_hour", "carrier", "flight", "dest")
    return flights.select(
        F.lit(TOPIC).alias("topic"),
        (F.array_position(F.array(*map(F.lit, AIRPORTS)), F.col("origin")) - 1)
        .cast("int")
        .alias("partition"),
        (F.row_number().over(in_order) - 1).cast("bigint").alias("offset"),
        "time_hour",
        "carrier",
    )


def comes_before(offsets: KafkaOffsets) -> Column:
    """Return the condition that a record comes before the offset of its partition."""
    return reduce(
        or_,
        (
            (F.col("topic") == topic)
            & (F.col("partition") == number)
            & (F.col("offset") < F.lit(offset))
            for (topic, number), offset in offsets.offsets.items()
        ),
    )


def print_lags(savepoint: Savepoint, topic: DataFrame) -> None:
    """Print the offsets at which the job goes on, and the number of records to read."""
    ends = topic.groupBy("topic", "partition").agg(F.count("*").alias("end")).collect()
    splits = savepoint.operator(TOPIC).source_splits({(row[0], row[1]): row[2] for row in ends})
    kafka_splits = [split for split in splits.splits if isinstance(split, KafkaSplit)]
    for split in sorted(kafka_splits, key=lambda split: split.partition):
        place = f"{split.topic}, partition {split.partition} ({AIRPORTS[split.partition]})"
        print(f"{place}: goes on at {split.offset:,}, {split.lag:,} records to read")


def print_counts(savepoint: Savepoint, rest: DataFrame) -> None:
    """Print the largest carriers: the flights in state, and those that the job will count."""
    to_come = {row[0]: row[1] for row in rest.groupBy("carrier").count().collect()}
    counted = {entry.key: entry.value for entry in savepoint.operator(UID).entries()}
    for carrier in sorted(counted, key=lambda carrier: -counted[carrier])[:3]:
        more = to_come.get(carrier, 0)
        total = counted[carrier] + more
        print(f"{carrier}: {counted[carrier]:,} flights in state, and {more:,} more: {total:,}")


if __name__ == "__main__":
    main()
