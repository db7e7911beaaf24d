"""Streaming queries with state by processing time, in a session that lets them end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from support.inside.adapter import ROCKSDB

DEADLINE = 600  # seconds for what takes some twenty


@contextmanager
def state_settings(spark: SparkSession, **others: str) -> Iterator[None]:
    """Give a session what such a query needs, and other settings, for a while."""
    settings = {
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        # Spark would run batches without rows for ever.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
        **others,
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def finish(query: StreamingQuery) -> None:
    """Wait for the end of a query, which is to come."""
    if not query.awaitTermination(DEADLINE):
        query.stop()
        raise AssertionError(f"the query has not ended in {DEADLINE} seconds")
