"""Rows that become entries: the shapes that columns of states may have, and who encodes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from keygroups._serializers.base import Serializer
from keygroups.savepoint._columns.column_types import column_to_write
from keygroups.savepoint._columns.entry_batches import with_types
from keygroups.savepoint._columns.row_shapes import StateColumns, WideRows
from keygroups.savepoint._jobs.entry_pieces import RowPieces
from keygroups.savepoint._jobs.file_jobs import ENTRIES, FilesJob, files_job
from keygroups.savepoint._state.writing.write_task import OperatorFiles
from keygroups.types import KeyType


class RowsJob(NamedTuple):
    """The two halves of writing rows: `encode` makes batches of entries, of which `files` writes.

    `encode` takes the batches of rows of one task, wherever their keys are, and may be pickled.
    """

    encode: Callable[[Iterable[Any]], Iterator[pa.RecordBatch]]
    files: FilesJob


@dataclass(frozen=True)
class _SentEntries:
    """Makes entries of rows, in the schema ENTRIES; it may be pickled."""

    encode: Callable[[Iterable[Any]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Yield the entries; raises what `encode` raises."""
        return (with_types(batch, ENTRIES) for batch in self.encode(batches))


def rows_job(
    encode: Callable[[Iterable[Any]], Iterator[pa.RecordBatch]],
    files: OperatorFiles,
    elements_of: Collection[int] = (),
) -> RowsJob:
    """Return the job of a WideRows or LongRows and of the files that it is for."""
    job = files_job(files, elements_of)
    if job.schema is ENTRIES:
        return RowsJob(_SentEntries(encode), job)
    return RowsJob(RowPieces(encode, files.max_parallelism, files.parallelism), job)


def wide_rows_job(
    uid: str,
    files: OperatorFiles,
    key_type: KeyType,
    has_ttl: bool,
    states: Sequence[StateColumns],
) -> RowsJob:
    """Return the job that writes an operator from wide rows, by the arguments of a WideRows."""
    encode = WideRows(uid, files.task(0), key_type, has_ttl, tuple(states))
    elements_of = [number for number, state in enumerate(states) if state.is_element]
    return rows_job(encode, files, elements_of)


class WideShape(NamedTuple):
    """A shape that the columns of a state may have: their Arrow types, None for no user key."""

    columns: StateColumns
    value: pa.DataType
    user_key: pa.DataType | None = None

    def at(self, value: int, user_key: int | None = None) -> StateColumns:
        """Return the StateColumns of columns at these places of a wide table."""
        return self.columns._replace(value=value, user_key=user_key)


def wide_shapes(
    name: str,
    value_type: KeyType | Serializer,
    *,
    is_list: bool = False,
    user_key_type: KeyType | Serializer | None = None,
    is_map: bool = False,
) -> list[WideShape]:
    """Return the shapes of a state in wide rows; the first one that fits is meant.

    A list is a column of elements, else one of arrays of them. A MAP is two columns, its user keys
    and its values, and with `is_map` one of whole maps.
    """
    columns = StateColumns(name, -1, value_type, user_key_type=user_key_type)
    value = column_to_write(value_type).data_type
    if is_list:
        return [
            WideShape(columns._replace(is_element=True), value),
            WideShape(columns._replace(is_array=True), pa.list_(value)),
        ]
    if user_key_type is None:
        return [WideShape(columns, value)]
    user_key = column_to_write(user_key_type).data_type
    if is_map:
        return [WideShape(columns._replace(is_map=True), pa.map_(user_key, value))]
    return [WideShape(columns, value, user_key)]
