"""Packs the rows of a key group into one row: PySpark hands rows to `transformWithState` singly.

PySpark makes a Python value of each cell by itself, which takes longer than all that is done with
the values. So the rows of an Arrow batch with one key group become a single row, with an array for
each column, of which Arrow makes a list at once. So do the results of a key group, `results_of`,
which Spark makes rows of again, `unpacked`: PySpark makes a dict of each row that it is given.

`heads` are groups without rows, one in each partition of the state, where the query's own layout
is kept. A row for each of them comes first: so the layout of the checkpoint is compared with the
query's before any state is used or passed over. They come with the first batch of a query's run
only, as each costs as much as a key group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

if TYPE_CHECKING:
    import pyarrow as pa

# Properties of Spark's tasks: two that change with a query's run, one with its batch.
_RUN, _BATCH = ("sql.streaming.queryId", "spark.jobGroup.id"), "streaming.sql.batchId"
_MOST_RUNS = 100
_MOST_RESULTS = 10_000  # in a row of Spark
_first_batches: dict[tuple[str | None, ...], str] = {}  # the batch with heads, by run


def packed(df: DataFrame, keys: Sequence[str], heads: Sequence[tuple[int, ...]]) -> DataFrame:
    """Return the rows packed by the columns `keys`; the first, ints from 0 on, decides the others.

    Each of `heads` has the values of `keys` in a row that comes before all rows of a run.
    """
    fields = [
        field if field.name in keys else T.StructField(field.name, T.ArrayType(field.dataType))
        for field in df.schema.fields
    ]
    query = uuid4().hex
    return df.mapInArrow(partial(_pack, tuple(keys), tuple(heads), query), T.StructType(fields))


def unpacked(df: DataFrame, schema: T.StructType) -> DataFrame:
    """Return the rows, of a schema, that are packed as `packed_type` says."""
    columns = [F.col(name) for name in df.columns]
    rows = df.select(F.inline(F.arrays_zip(*columns)))
    # Fields of arrays that are zipped may be null; the kind of a change never is.
    return rows.select(
        *(
            (F.col(name) if field.nullable else F.coalesce(name, F.lit(""))).alias(field.name)
            for name, field in zip(rows.columns, schema.fields)
        )
    )


def packed_type(schema: T.StructType) -> T.StructType:
    """Return the type of a row that `results_of` makes of many of a schema."""
    return T.StructType(
        [
            T.StructField(f"c{number}", T.ArrayType(field.dataType, field.nullable), False)
            for number, field in enumerate(schema.fields)
        ]
    )


def results_of(rows: Iterator[tuple[Any, ...]]) -> Iterator[Row]:
    """Yield rows with a list for each column, of up to `_MOST_RESULTS` rows each."""
    while some := list(islice(rows, _MOST_RESULTS)):
        yield _ResultColumns(list(column) for column in zip(*some))


class _ResultColumns(Row):
    """A Row of lists whose `asDict` is fast: Row's own looks for rows in them."""

    def __new__(cls, columns: Iterable[list[Any]]) -> _ResultColumns:
        made = tuple.__new__(cls, columns)
        made.__fields__ = [f"c{number}" for number in range(len(made))]
        return made

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        return dict(zip(self.__fields__, self))


def _pack(
    keys: tuple[str, ...],
    heads: tuple[tuple[int, ...], ...],
    query: str,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    import numpy as np
    import pyarrow as pa

    is_before_rows = True
    for batch in batches:
        key = batch.column(keys[0]).to_numpy()
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        bounds = pa.array(np.append(starts, len(key)), pa.int32())
        columns = [
            column.take(pa.array(starts))
            if name in keys
            else pa.ListArray.from_arrays(bounds, column)
            for name, column in zip(batch.schema.names, batch.take(pa.array(order)).columns)
        ]
        made = pa.RecordBatch.from_arrays(columns, batch.schema.names)
        if is_before_rows and len(key):
            is_before_rows = False
            if _is_first_batch(query):
                yield _rows_of(keys, heads, made.schema)
        yield made


def _rows_of(
    keys: tuple[str, ...], heads: tuple[tuple[int, ...], ...], schema: pa.Schema
) -> pa.RecordBatch:
    import pyarrow as pa

    values = dict(zip(keys, zip(*heads)))
    columns = [pa.array(values.get(f.name, [None] * len(heads)), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema.names)


def _is_first_batch(query: str) -> bool:
    """Tell whether this process has sent the heads with no other batch of the query's run.

    A task that Spark tries again has the same batch. Where Spark names no batch or no run, each
    counts as the first.
    """
    context = TaskContext.get()
    if context is None:
        return True
    batch = context.getLocalProperty(_BATCH)
    run = (query, *(context.getLocalProperty(name) for name in _RUN))
    if batch is None or None in run:
        return True
    while len(_first_batches) >= _MOST_RUNS and run not in _first_batches:
        del _first_batches[next(iter(_first_batches))]
    return _first_batches.setdefault(run, batch) == batch
