"""Entries with their new key groups in batches of Arrow: no entry is an object of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from keygroups import arrays
from keygroups.errors import KeyGroupsError
from keygroups.savepoint._columns.entry_batches import state_batch
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.entry_columns import EntryColumns
from keygroups.types import KeyType

Rekey = Callable[[Iterable[EncodedEntry]], Iterable[EncodedEntry]]
"""A function from entries in their old key groups to the same in the new ones; raises
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
        number, old, new = numbers[columns.state.name], columns.columns["key_group"], None
        encoded = [columns.columns[field] for field in ("encoded_key", "encoded_value")]
        keys = columns.columns.get("key")
        if keys is not None and key_type is not None:
            new = _new_key_groups(keys, key_type, old, *max_parallelisms)
        if new is None:
            each = zip(old.tolist(), encoded[0].to_pylist())
            rekeyed = rekey(EncodedEntry(group, number, key, b"") for group, key in each)
            new = np.fromiter((entry.key_group for entry in rekeyed), np.int32, columns.count)
        yield state_batch(new, number, *encoded)


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
