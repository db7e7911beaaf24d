"""Entries with their new key groups in batches of Arrow: no entry is an object of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups import arrays
from keygroups.errors import KeyGroupsError
from keygroups.savepoint._columns.entry_batches import SCHEMA
from keygroups.savepoint._state.entry_columns import EntryColumns
from keygroups.savepoint._state.framed_columns import python_keys
from keygroups.types import KeyType

Rekey = Callable[[str, int, Any], int]
"""A function from a state, an old key group and a key to the new key group; raises
SavepointError for a key that hashes to another old one."""


def rekeyed_batches(
    entries: Iterator[EntryColumns],
    numbers: Mapping[str, int],
    key_type: KeyType | None,
    max_parallelisms: tuple[int, int],
    rekey: Rekey,
) -> Iterator[pa.RecordBatch]:
    """Yield the entries that FramedDecoders made columns as batches for a BatchSorter.

    `numbers` are those of the states by name, `max_parallelisms` the old one and the new one. Keys
    that arrays do not hash go to `rekey`, which names the one that is wrong.
    """
    for columns in entries:
        name, old, keys = columns.state.name, columns.columns["key_group"], None
        if "key" in columns.columns:
            keys = columns.columns["key"]
        new = None
        if isinstance(keys, pa.Array) and key_type is not None:
            new = _new_key_groups(keys, key_type, old, *max_parallelisms)
        if new is None:
            each = [None] * columns.count if keys is None else python_keys(keys)
            rekeyed = (rekey(name, *pair) for pair in zip(old.tolist(), each))
            new = np.fromiter(rekeyed, np.int32, columns.count)
        number = pa.repeat(pa.scalar(numbers[name], pa.int32()), columns.count)
        encoded = (columns.columns[field] for field in ("encoded_key", "encoded_value"))
        yield pa.RecordBatch.from_arrays([pa.array(new), number, *encoded], schema=SCHEMA)


def _new_key_groups(
    keys: pa.Array, key_type: KeyType, old: NDArray[np.int32], before: int, after: int
) -> NDArray[np.int32] | None:
    """Return the new key groups; None where a key has no hash, or one of another old key group."""
    try:
        codes = arrays.hash_code(keys, key_type)
    except KeyGroupsError:
        return None
    if not np.array_equal(arrays.compute_key_group_for_key_hash(codes, before), old):
        return None
    return arrays.compute_key_group_for_key_hash(codes, after)
