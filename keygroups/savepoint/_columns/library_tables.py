"""One state as a table: of Arrow, in batches or whole, of pandas or of Polars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

try:
    import numpy  # noqa: F401  # only to say which extra is missing
    import pyarrow as pa
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "tables of state need NumPy and PyArrow: pip install 'keygroups[arrays]'", name=error.name
    ) from None

from keygroups.errors import KeyGroupsError
from keygroups.progress import Meter
from keygroups.savepoint._columns.batches import (
    layout_of,
    named_schema,
    names_of,
    record_batches,
)
from keygroups.savepoint._columns.key_tables import key_table as key_table
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._tasks.read import ReadTask, ahead

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame


def batch_reader(
    tasks: Sequence[ReadTask],
    state: StateDescriptor,
    metered: AbstractContextManager[Meter | None],
) -> pa.RecordBatchReader:
    """Return a reader of the entries of a state, batch by batch; the meter counts the bytes."""
    layout = layout_of([state])
    names = names_of(state)

    def batches() -> Iterator[Any]:
        with metered as meter:
            for task in ahead(tasks, meter=meter):
                yield from record_batches(task, layout, names)

    return pa.RecordBatchReader.from_batches(named_schema(layout, names), batches())


def pandas_frame(table: pa.Table) -> PandasFrame:
    """Return a DataFrame of pandas with Arrow's types, as NumPy's have no null."""
    try:
        import pandas as pd
    except ImportError:
        raise KeyGroupsError("to_pandas needs pandas: pip install pandas") from None
    frame: PandasFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def polars_frame(table: pa.Table) -> PolarsFrame:
    """Return a DataFrame of Polars."""
    try:
        import polars as pl
    except ImportError:
        raise KeyGroupsError("to_polars needs Polars: pip install polars") from None
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
