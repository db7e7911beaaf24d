"""Columns of state in Arrow: what reads and writes them. It needs PyArrow."""

from keygroups.savepoint._columns import (
    batch_sorter,
    byte_arrays,
    column_encoder,
    column_types,
    entry_order,
    plain_rows,
    row_encoder,
    table_rows,
    table_writer,
)
from keygroups.savepoint._columns.arrow_values import arrow_array, values
from keygroups.savepoint._columns.batches import (
    TYPED,
    layout_of,
    names_of,
    record_batches,
    typed_columns,
)
from keygroups.savepoint._columns.column_types import (
    COLUMNS,
    column_of,
    column_of_key_type,
    column_to_write,
    is_open,
    is_written,
    key_column_of,
)
from keygroups.savepoint._columns.column_writers import column_writer
from keygroups.savepoint._columns.columns import TEXT, ArrowColumn
from keygroups.savepoint._columns.entry_batches import SCHEMA, entries_of, entry_batch
from keygroups.savepoint._columns.entry_frames import EntryFrames, FileWriter
from keygroups.savepoint._columns.plain_rows import PlainRows
from keygroups.savepoint._columns.readers import abreast, numbers, parts, readers, sql, texts
from keygroups.savepoint._columns.row_shapes import (
    ColumnPlace,
    LongRows,
    StateColumns,
    WideRows,
    check_states_of_rows,
    long_columns,
)
from keygroups.savepoint._columns.scalar_writers import UnwrittenError
from keygroups.savepoint._columns.table_rows import table_columns
from keygroups.savepoint._comparison import difference_columns, value_texts
from keygroups.savepoint._comparison.difference_columns import difference_layout
from keygroups.savepoint._jobs import entry_pieces, state_query
from keygroups.savepoint._jobs.cluster_editors import ClusterEditor, RowsEditor
from keygroups.savepoint._jobs.parted_job import PartedJob
from keygroups.savepoint._jobs.questions import difference_job, key_size_job
from keygroups.savepoint._jobs.row_jobs import wide_rows_job, wide_shapes
from keygroups.savepoint._state import entry_columns, framed_chains, patterns, scans, skips
from keygroups.savepoint._state.formats import rocksdb_columns
from keygroups.savepoint._state.framed_columns import framed_chunks

reader_of, list_reader_of = readers.reader_of, readers.list_reader_of

__all__ = [
    "COLUMNS",
    "SCHEMA",
    "TEXT",
    "TYPED",
    "ArrowColumn",
    "ClusterEditor",
    "ColumnPlace",
    "EntryFrames",
    "FileWriter",
    "LongRows",
    "PartedJob",
    "PlainRows",
    "RowsEditor",
    "StateColumns",
    "UnwrittenError",
    "WideRows",
    "abreast",
    "arrow_array",
    "batch_sorter",
    "byte_arrays",
    "check_states_of_rows",
    "column_encoder",
    "column_of",
    "column_of_key_type",
    "column_to_write",
    "column_types",
    "column_writer",
    "difference_columns",
    "difference_job",
    "difference_layout",
    "entries_of",
    "entry_batch",
    "entry_columns",
    "entry_order",
    "entry_pieces",
    "framed_chains",
    "framed_chunks",
    "is_open",
    "is_written",
    "key_column_of",
    "key_size_job",
    "layout_of",
    "list_reader_of",
    "long_columns",
    "names_of",
    "numbers",
    "parts",
    "patterns",
    "plain_rows",
    "reader_of",
    "readers",
    "record_batches",
    "rocksdb_columns",
    "row_encoder",
    "scans",
    "skips",
    "sql",
    "state_query",
    "table_columns",
    "table_rows",
    "table_writer",
    "texts",
    "typed_columns",
    "value_texts",
    "values",
    "wide_rows_job",
    "wide_shapes",
]
