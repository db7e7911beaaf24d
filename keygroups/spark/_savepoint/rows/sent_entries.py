"""The bytes of entries in batches of Arrow, between the two halves of writing: encode, write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.spark._savepoint.arrow_map import map_in_arrow

_TYPES = (T.IntegerType(), T.IntegerType(), T.BinaryType(), T.BinaryType())
ENTRIES = T.StructType(list(map(T.StructField, EncodedEntry._fields, _TYPES)))
"""The schema of entries, whose fields are those of an EncodedEntry."""


def entries_of(df: DataFrame, encode: Callable[[Iterable[Any]], Iterator[Any]]) -> DataFrame:
    """Return the entries that a WideRows or LongRows makes of the rows of a DataFrame."""
    return map_in_arrow(df, _Sent(encode), ENTRIES)


@dataclass(frozen=True)
class _Sent:
    """Makes entries with Spark's type of bytes, binary for large_binary; it may be pickled."""

    encode: Callable[[Iterable[Any]], Iterator[Any]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the entries; raises what `encode` raises."""
        return map(sent, self.encode(batches))


def sent(batch: Any) -> Any:
    """Return a batch of entries in Spark's types."""
    import pyarrow as pa

    columns = [*batch.columns[:2], *(column.cast(pa.binary()) for column in batch.columns[2:])]
    return pa.RecordBatch.from_arrays(columns, EncodedEntry._fields)
