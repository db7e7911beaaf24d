"""Rows of a key group side by side, as PySpark hands rows to `transformWithState` one by one.

It makes a Python value of each cell by itself, which takes longer than what is done with the
values. So the rows of an Arrow batch that are of one key group become a single row, with an array
for each column, of which Arrow makes a list at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as T

if TYPE_CHECKING:
    import pyarrow as pa


def packed(df: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows packed by the columns `keys`; the first, of ints from 0 on, tells all."""
    fields = [
        field if field.name in keys else T.StructField(field.name, T.ArrayType(field.dataType))
        for field in df.schema.fields
    ]
    return df.mapInArrow(partial(_pack, tuple(keys)), T.StructType(fields))


def _pack(keys: tuple[str, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import numpy as np
    import pyarrow as pa

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
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)
