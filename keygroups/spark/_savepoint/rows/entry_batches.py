"""The bytes of entries in batches of Arrow, which one half of writing hands to the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T

from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry

_TYPES = (T.IntegerType(), T.IntegerType(), T.BinaryType(), T.BinaryType())
ENTRIES = T.StructType(list(map(T.StructField, EncodedEntry._fields, _TYPES)))
"""The schema of entries, whose fields are those of an EncodedEntry."""


def entry_batch(entries: Sequence[EncodedEntry]) -> Any:
    """Return a batch of Arrow with some entries."""
    import pyarrow as pa

    types = (pa.int32(), pa.int32(), pa.binary(), pa.binary())
    rows = zip(*entries) if entries else [()] * len(types)
    columns = [pa.array(column, arrow_type) for column, arrow_type in zip(rows, types)]
    return pa.RecordBatch.from_arrays(columns, EncodedEntry._fields)
