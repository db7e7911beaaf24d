"""The bytes of entries in batches of Arrow: a row an entry, a column a field of EncodedEntry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from keygroups.savepoint._state.entries import EncodedEntry

KEY_GROUP, STATE, KEY, VALUE = range(4)
"""The places of the columns."""
BYTES = pa.large_binary()  # a batch may have more than the 2 GiB of binary()
SCHEMA = pa.schema(zip(EncodedEntry._fields, (pa.int32(), pa.int32(), BYTES, BYTES)))


def entry_batch(entries: Iterable[EncodedEntry]) -> pa.RecordBatch:
    """Return a batch with a row for each entry."""
    columns = [*zip(*entries)] or [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def state_batch(key_groups: Any, state: int, keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
    """Return entries of the state with a number as a batch."""
    states = pa.repeat(pa.scalar(state, pa.int32()), len(keys))
    arrays = [pa.array(key_groups, pa.int32()), states, keys, values]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def with_types(batch: Any, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of entries cast to a schema, whose type of bytes may be another."""
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def entries_of(batch: pa.RecordBatch) -> Iterator[EncodedEntry]:
    """Return an iterator over the entries of a batch."""
    return map(EncodedEntry, *(column.to_pylist() for column in batch.columns))
