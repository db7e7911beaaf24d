"""The step of `map_batches`: a function of record batches, and the checks of what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "map_batches needs NumPy and PyArrow: pip install 'keygroups[arrays]'", name=error.name
    ) from None

from numpy.typing import NDArray

from keygroups._checks import show
from keygroups.errors import InvalidValueError, KeyGroupsError, SavepointError
from keygroups.savepoint._columns.arrow_values import values
from keygroups.savepoint._columns.batches import (
    batches_of,
    layout_of,
    names_of,
    times_of,
    typed_columns,
)
from keygroups.savepoint._columns.byte_arrays import bytes_array, octets_of
from keygroups.savepoint._columns.column_encoder import StateRows, retimed, table_encoder
from keygroups.savepoint._columns.scalar_writers import UnwrittenError
from keygroups.savepoint._columns.table_rows import (
    cast,
    check_type,
    check_written,
    reader_of_table,
)
from keygroups.savepoint._edits.steps import (
    MapBatches,
    StepContext,
    named_entry,
    noted,
)
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.entry_columns import ColumnDecoder, EntryColumns, FramedRows
from keygroups.savepoint._state.framed_columns import chosen, single_entries, with_part
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.stored_values import check_time, stored_value

ROW, VALUE, LAST_ACCESS = "row", "value", "last_access"


def check_columns(state: StateDescriptor) -> None:
    """Raise InvalidValueError where no column has the name of a field in a state."""
    layout_of([state])


class BatchMapping:
    """Calls a function with batches of the entries of a state, and writes what it returns.

    Entries are known by their numbers in the batch, and keep their keys.
    """

    def __init__(
        self, number: int, step: MapBatches, state: StateDescriptor, place: StepContext
    ) -> None:
        self._number, self._step, self._state, self._place = number, step, state, place
        self._name = f"state {state.name!r}"
        self._layout, self._names = layout_of([state]), names_of(state)
        self._decoder = ColumnDecoder(state, place.subtask)
        self._stored = stored_value(state)
        self._encoder = table_encoder(number, state, allow_any_last_access=True)
        *_, self._column = typed_columns(state)
        self._types = {ROW: pa.int64(), **dict.fromkeys(times_of(state), pa.int64())}
        if self._column is not None:
            self._types[VALUE] = self._column.data_type

    def __call__(self, columns: EntryColumns) -> EntryColumns:
        """Return the entries that the function returned rows for, with the values that they get.

        Raises InvalidTypeError, InvalidValueError or UnsupportedKeyTypeError for what it returns
        and cannot be written, SavepointError for bytes that are no entries.
        """
        batch = self._batch(columns)
        arrays = self._returned(batch)
        if self._state.has_ttl and not self._step.allow_any_last_access:
            self._check_times(arrays, batch)
        rows = arrays[ROW].to_numpy()
        if len(rows) < columns.count:
            columns = chosen(columns, rows)
        if VALUE in arrays:
            changed = self._encoded(columns, arrays, batch)
        elif LAST_ACCESS in arrays:
            changed = self._retimed(columns, arrays[LAST_ACCESS])
        else:
            return columns
        return with_part(columns, "encoded_value", changed)

    def _batch(self, columns: EntryColumns) -> pa.RecordBatch:
        """Return entries with the columns of `Operator.to_arrow`, and their numbers."""
        encoded = (columns.columns[part] for part in ("encoded_key", "encoded_value"))
        (keys, key_bounds), (stored, bounds) = map(octets_of, encoded)

        def error(number: int, cause: Exception) -> SavepointError:
            return self._place.damaged(self._state, self._entry(columns, number), cause)

        rows = FramedRows(
            columns.columns["key_group"],
            *(keys.tobytes(), key_bounds[:-1], key_bounds[1:]),
            *(stored.tobytes(), bounds[:-1], bounds[1:]),
            error,
        )
        decoded = [self._decoder.framed(rows)]
        [batch] = batches_of(decoded, self._place.subtask, self._layout, self._names)
        numbers = pa.array(np.arange(columns.count, dtype=np.int64))
        names = [ROW, *batch.schema.names]
        return pa.RecordBatch.from_arrays([numbers, *batch.columns], names=names)

    def _returned(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns that the function returns for a batch, in the order of its rows."""
        try:
            result = self._step.function(batch)
            table = reader_of_table(f"what function returns for {self._name}", result).read_all()
        except Exception as error:
            raise noted(error, f"map_batches: {len(batch)} entries of {self._name}") from None
        # Pandas adds the index of a frame of which some rows were left out.
        index = (table.schema.pandas_metadata or {}).get("index_columns", ())
        names = [name for name in table.schema.names if name in self._types or name not in index]
        if ROW not in names or len({*names}) < len(names) or not {*names} <= {*self._types}:
            others = " and ".join(name for name in self._types if name != ROW)
            raise InvalidValueError(
                f"function must return the column row, and of {others} those that change, for "
                f"{self._name}, got the columns {show(names)}"
            )
        arrays = {name: self._array(name, table.column(name)) for name in names}
        rows = self._checked_rows(arrays[ROW], len(batch))
        if (np.diff(rows) < 0).any():
            order = pa.array(np.argsort(rows))
            arrays = {name: array.take(order) for name, array in arrays.items()}
        return arrays

    def _array(self, name: str, column: pa.ChunkedArray) -> pa.Array:
        """Return a column of what the function returned, as the one that it was called with."""
        named, data_type = f"{name} of {self._name}", self._types[name]
        if name == VALUE:
            check_written(VALUE, self._state)
        elif column.null_count:
            raise InvalidValueError(f"{named} must not be null, as function returned it")
        check_type(name, self._name, column.type, data_type)
        return cast(named, column, data_type).combine_chunks()

    def _checked_rows(self, array: pa.Array, count: int) -> NDArray[np.int64]:
        rows: NDArray[np.int64] = array.to_numpy()
        wrong = rows[(rows < 0) | (rows >= count)]
        if wrong.size:
            raise InvalidValueError(
                f"row of {self._name} must be from 0 to {count - 1}, as function got it, got "
                f"{wrong[0]}"
            )
        times = np.bincount(rows, minlength=count)
        if times.max() > 1:
            row = int(np.argmax(times))
            raise InvalidValueError(
                f"row of {self._name} must come once, got {row} {times[row]} times"
            )
        return rows

    def _check_times(self, arrays: dict[str, pa.Array], batch: pa.RecordBatch) -> None:
        """Refuse times that were not in the batch, and cannot be of a last access."""
        name = LAST_ACCESS if LAST_ACCESS in self._types else VALUE
        if name not in arrays:
            return
        new, old = (_times_in(source) for source in (arrays[name], batch.column(name)))
        for time in np.setdiff1d(new, old).tolist():
            try:
                check_time(time)
            except InvalidValueError as error:
                raise InvalidValueError(f"{self._name}: {error}") from None

    def _encoded(
        self, columns: EntryColumns, arrays: dict[str, pa.Array], batch: pa.RecordBatch
    ) -> pa.Array:
        """Return the bytes of new values with their times of last access.

        Nulls that were there stay, such as those of LONG, which its serializer does not write,
        and lists without elements, of which there is nothing to write.
        """
        rows, value, times = arrays[ROW], arrays[VALUE], arrays.get(LAST_ACCESS)
        old_times = pa.nulls(len(rows))
        if LAST_ACCESS in self._types:
            old_times = batch.column(LAST_ACCESS).take(rows)
        times = old_times if times is None else times
        if self._encoder is not None:
            try:
                return self._encoder.values(StateRows(value, last_access=times))
            except UnwrittenError:
                pass
        assert self._column is not None  # or there were no values
        write = self._stored.writer(allow_any_last_access=True)
        is_list = self._state.kind == "LIST"

        def write_or_keep(value: Any, time: int | None, *old: Any) -> bytes:
            was_nothing, old_time, encoded = old
            is_nothing = not value if is_list else value is None
            is_kept = is_nothing and was_nothing and time == old_time
            return encoded if is_kept else write(value, time)

        new = values(f"{VALUE} of {self._name}", value, self._column)
        old_values = batch.column(VALUE).take(rows)
        was_nothing = (
            pc.equal(pc.list_value_length(old_values), 0) if is_list else old_values.is_null()
        )
        others = times, was_nothing, old_times, columns.columns["encoded_value"]
        lists = (each.to_pylist() for each in others)
        return self._one_by_one(columns, write_or_keep, new, *lists)

    def _retimed(self, columns: EntryColumns, times: pa.Array) -> pa.Array:
        """Return the bytes of values with other times of last access."""
        old, stored = columns.columns["encoded_value"], self._stored
        try:
            return retimed(stored, old, times.to_numpy())
        except UnwrittenError:
            return self._one_by_one(
                columns,
                lambda time, value: stored.retimed(time)(value),
                *(times.to_pylist(), old.to_pylist()),
            )

    def _one_by_one(
        self, columns: EntryColumns, write: Callable[..., bytes], *arguments: list[Any]
    ) -> pa.Array:
        """Return the bytes of values; an error names the first entry that gets none."""
        written = []
        for row, each in enumerate(zip(*arguments)):
            try:
                written.append(write(*each))
            except KeyGroupsError as error:
                key_group, _, key, value = self._entry(columns, row)
                entry = self._decoder.reader.framed(key_group, key, value)
                raise type(error)(f"{named_entry(entry)}: {error}") from None
        return bytes_array(written)

    def _entry(self, columns: EntryColumns, row: int) -> EncodedEntry:
        [entry] = single_entries(self._number, chosen(columns, np.array([row])))
        return entry


def _times_in(array: pa.Array) -> NDArray[np.int64]:
    """Return the times in a column of them, or of lists of elements with theirs."""
    if pa.types.is_list(array.type):
        array = pc.struct_field(array.flatten(), LAST_ACCESS)
    times: NDArray[np.int64] = array.drop_null().to_numpy()
    return times
