"""Writes the state of one operator of a new savepoint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from keygroups._checks import (
    check_choice,
    check_str,
    show,
)
from keygroups.errors import InvalidValueError, KeyGroupsError, SavepointError
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.progress import Meter, ProgressCallback
from keygroups.savepoint._columns.plain_rows import PlainRows
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._metadata.handles import (
    OperatorMetadata,
    SubtaskState,
    coordinator_handle,
)
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.entry_encoder import EntryEncoder, joined_lists
from keygroups.savepoint._state.writing.keyed_state_file import KeyedStateFile
from keygroups.savepoint._state.writing.new_states import (
    EVENT_TIME,
    TIME_DOMAINS,
    USER_TIMERS,
    timer_state_name,
)
from keygroups.savepoint._state.writing.operator_state_writer import (
    NewOperatorState,
    OperatorStateWriter,
)
from keygroups.savepoint._state.writing.spill import EntrySorter, Sorter
from keygroups.savepoint._state.writing.write_task import OperatorFiles, WriteTask

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from keygroups.savepoint._columns.table_writer import TableWriter

_FEW = 10_000  # plain rows before any become columns
_AT_ONCE = 1 << 17  # numbers and texts of the rows that become columns together

Item = TypeVar("Item")
_key_group_of = attrgetter("key_group")


def _plain_rows(states: Iterable[StateDescriptor]) -> dict[str, PlainRows]:
    """Return the PlainRows of states by name; none without NumPy and PyArrow, of an extra."""
    if not all(map(find_spec, ("numpy", "pyarrow"))):
        return {}
    found = ((state.name, PlainRows.of(state)) for state in states)
    return {name: rows for name, rows in found if rows is not None}


_SORT = ": pass sort=True to add_operator, which takes any order"


class OperatorWriter(OperatorFiles):
    """Writes the entries of one operator; `SavepointWriter.add_operator` makes it.

    `states` are the states as the reader will find them.
    """

    def __init__(
        self,
        folder: OutputFolder,
        operator_id: str,
        header: bytes,
        states: tuple[StateDescriptor, ...],
        max_parallelism: int,
        parallelism: int,
        allow_any_last_access: bool = False,
        operator_states: tuple[NewOperatorState, ...] = (),
        coordinator: bytes | None = None,
        elements_of: Collection[int] = (),
        sort: bool = False,
    ) -> None:
        super().__init__(
            folder,
            operator_id,
            header,
            states,
            max_parallelism,
            parallelism,
            allow_any_last_access,
        )
        self._operator_state = OperatorStateWriter(
            folder, operator_id, operator_states, parallelism
        )
        self._coordinator = coordinator
        self._encoder: EntryEncoder | None = None
        if states:
            self._encoder = EntryEncoder(states, max_parallelism, allow_any_last_access)
        self._elements_of = elements_of  # numbers of LIST states whose entries are elements
        self._numbers = {state.name: number for number, state in enumerate(self.states)}
        self._of_values = {
            state.name: number
            for number, state in enumerate(states)
            if state.value_serializer is not None
        }
        self._sorter = EntrySorter(folder.scratch) if sort else None
        self._tables: TableWriter | None = None  # None before the first table
        self._plain = _plain_rows(states) if sort else {}
        self._single_rows = _FEW  # the number of plain rows that still stay single
        self._taken = 0  # numbers and texts of the rows in `_plain`
        self._key_group = -1
        self._entries: list[EncodedEntry] = []  # entries of `_key_group`, to be sorted
        self._open: tuple[WriteTask, KeyedStateFile] | None = None
        self._closing = ExitStack()
        self._is_broken = False
        self._check_key_group: Callable[[], None] = lambda: None
        self._meter: Meter | None = None

    def _tell(self, progress: ProgressCallback, work: str) -> None:
        """Report to a callback how many key groups are written, if there is keyed state."""
        if self.states:
            self._meter = Meter(progress, work, self.max_parallelism, "key groups")

    def key_group(self, key: Any) -> int:
        """Return the key group of a key, by which entries have to be sorted without `sort`."""
        if self._encoder is None:
            raise InvalidValueError(
                f"key must be None, as the operator has no keyed state, got {show(key)}"
            )
        return self._encoder.key_group(key)

    def write(
        self,
        state: str,
        key: Any,
        value: Any,
        user_key: Any = None,
        last_access: int | None = None,
        namespace: Any = None,
    ) -> None:
        """Write an entry: the value of a key, or of a user key in a MAP.

        `state` is a state's name, `namespace` a window or what else it is by, None without.
        Key groups come in ascending order, within one the order is free; the entries of one are
        held until the next. An operator that sorts takes them in any order. A `value` is that of
        a VALUE or REDUCING state, a list of at least one element, or one value in a MAP, which
        may be None if it is a STRING; `user_key` is its key there, never None. `last_access` is
        the epoch milliseconds at which a state with a time to live was last used; elements of a
        LIST may each have theirs, as a TtlValue.

        Raises InvalidValueError for a state that is not the operator's, a key group after a
        higher one, the same entry twice, which is found when its key group ends, or all entries
        are sorted, and values beyond their types; InvalidTypeError; SavepointError where a file
        cannot be written.
        """
        if namespace is None and type(state) is str:
            plain = self._plain.get(state)
            if plain is not None and plain.take(key, value, user_key, last_access):
                self._taken += plain.width
                if self._taken >= _AT_ONCE:
                    self._end_plain()
                return
        self._write(self._number_of(state), key, value, user_key, last_access, namespace)

    def _write(self, number: int, key: Any, *row: Any) -> None:
        """Write the entry of a row by itself."""
        assert self._encoder is not None
        self._hold(key, self._encoder.encode(number, key, *row), _SORT)

    def _end_plain(self) -> None:
        """Hold the entries of all plain rows to be sorted."""
        self._taken = 0
        for name, plain in self._plain.items():
            if not (count := plain.count):
                continue
            number, rows = self._of_values[name], plain.rows()
            batch = self._batch_of(number, plain) if count > self._single_rows else None
            plain.clear()
            if batch is None:
                for row in rows:
                    self._write(number, *row)
            else:
                self._hold_batch(self._table_writer(), batch)
            self._single_rows = max(0, self._single_rows - count)

    def _batch_of(self, number: int, rows: PlainRows) -> RecordBatch | None:
        """Return the entries of plain rows as columns, None if they have to be written singly."""
        from keygroups.savepoint._columns.plain_columns import plain_columns

        columns = plain_columns(rows)
        return None if columns is None else self._table_writer().entries(number, columns)

    def write_table(self, state: str, table: Any) -> None:
        """Write the entries of a state that are the rows of a table.

        `table` is a table, a RecordBatch or a RecordBatchReader of Arrow, or a DataFrame of
        pandas (2.2 and newer) or Polars, of which a batch is held at a time. It has the columns
        `key` and `value`, and where the state needs them `user_key`, `namespace` and
        `last_access`, of the types that `Operator.to_arrow` gives them; integers, text, bytes and
        timestamps may be of other widths. Other columns are passed over. In a MAP each row is a
        user key. The order is that of `write`. Pandas makes a null of a NaN, also within a dict or
        a list, unless the column has a type of Arrow, as those of `Operator.to_pandas` have.

        Raises what `write` raises, which has written the rows before; InvalidValueError where a
        column is missing, InvalidTypeError for one of another type and for what is no table,
        UnsupportedKeyTypeError for state whose columns are not what is written, such as text of
        Kryo; ModuleNotFoundError without NumPy and PyArrow.
        """
        number = self._number_of(state)
        # It needs NumPy and PyArrow.
        from keygroups.savepoint._columns.table_rows import table_columns

        parts = table_columns(table, self.states[number])
        tables = self._table_writer()
        for columns in parts:
            batch = tables.entries(number, columns)
            if batch is None or not self._hold_batch(tables, batch):
                for row in columns.rows():  # row by row, so that an error names the row's key
                    self.write(state, *row)

    def _table_writer(self) -> TableWriter:
        from keygroups.savepoint._columns.table_writer import TableWriter

        if self._tables is None:
            self._tables = TableWriter(
                self.states,
                self.max_parallelism,
                self.parallelism,
                self._allow_any_last_access,
                self._folder.scratch,
            )
        return self._tables

    def _number_of(self, state: str) -> int:
        """Return the number of a state of values."""
        number = self._of_values.get(check_str("state", state))
        if number is None:
            names = ", ".join(self._of_values) or "none, without keyed state"
            raise InvalidValueError(f"state must be one of {names}, got {show(state)}")
        return number

    def write_timer(
        self,
        key: Any,
        timestamp: int,
        time_domain: str = EVENT_TIME,
        namespace: Any = None,
        service: str = USER_TIMERS,
    ) -> None:
        """Write a timer of a key: `timestamp` is the epoch milliseconds at which it fires.

        `time_domain` is "EVENT_TIME" or "PROCESSING_TIME", `namespace` a value of the
        `namespace_type` of the TimerServiceDescriptor that has the name `service`, None for none.
        The order is that of `write`, with whose entries timers take turns.

        A job that is restored is before all watermarks: timers of event time wait for its first
        one, those of processing time fire as soon as the clock of the machine has passed them.

        Raises InvalidValueError for a timer service that is not the operator's, a timestamp
        beyond Java's longs, a key group after a higher one and the same timer twice, which Flink
        has once; InvalidTypeError.
        """
        check_choice("time_domain", time_domain, TIME_DOMAINS)
        number = self._numbers.get(timer_state_name(check_str("service", service), time_domain))
        if number is None:
            raise InvalidValueError(
                "service must be the name of a TimerServiceDescriptor of the operator, got "
                f"{show(service)}"
            )
        assert self._encoder is not None
        entry = self._encoder.encode(number, key, namespace=namespace, timestamp=timestamp)
        self._hold(key, entry, _SORT)

    def _hold(self, key: Any, entry: EncodedEntry, advice: str = "") -> None:
        """Hold an entry of a key until the next key group comes, or the writer is closed.

        `advice` ends the error for an entry whose key group comes after a higher one.
        """
        if self._sorter is not None:
            if self._sorter.add(entry):
                self._spill(self._sorter)
            return
        if entry.key_group != self._key_group:
            if entry.key_group < self._key_group:
                raise InvalidValueError(
                    f"entries must come in the order of key groups, got key {show(key)} of key "
                    f"group {entry.key_group} after key group {self._key_group}{advice}"
                )
            with self._unbroken():
                self._end_key_group()
                if self._meter is not None:
                    self._meter.add(entry.key_group - max(self._key_group, 0))
            self._key_group = entry.key_group
        self._entries.append(entry)

    def _spill(self, sorter: Sorter[Any]) -> None:
        with self._unbroken():
            sorter.spill()

    def _hold_batch(self, tables: TableWriter, batch: RecordBatch) -> bool:
        """Hold a batch as `_hold` does and return True; False if key groups are out of order."""
        if self._sorter is not None:
            if tables.sorter.add(batch):
                self._spill(tables.sorter)
            return True
        from keygroups.savepoint._columns.table_writer import key_group_of, split_last

        parts = split_last(batch)
        if parts is None or key_group_of(batch, 0) < self._key_group:
            return False
        before, last = parts
        key_group = key_group_of(last, 0)
        if key_group > self._key_group:
            with self._unbroken():
                if before.num_rows:
                    tables.hold(before)
                self._end_key_group()
                if self._meter is not None:
                    self._meter.add(key_group - max(self._key_group, 0))
            self._key_group = key_group
        tables.hold(last)
        return True

    def write_operator_state(self, name: str, elements: Any, subtask: int | None = None) -> None:
        """Write elements of an operator state; of a broadcast state a dict of its entries.

        `name` is a state's name. Elements of a list state are dealt out to the subtasks when
        all are there, in equal parts as Flink does it on a restore, unless `subtask`,
        0..parallelism-1, says who has these. Each element of a union list is to be written once,
        as all subtasks of the job get all elements; it is in subtask 0 unless one is named. The
        entries of a broadcast state, a dict, or pairs where Python takes two keys for one, reach
        all in any case. What is written of a state with another call is added. The bytes of all
        elements are held until the end.

        Raises InvalidValueError for a state that is not the operator's, a subtask that it does
        not have or of a broadcast state, a key of that which is there twice, and values beyond
        their types; InvalidTypeError.
        """
        self._operator_state.write(name, elements, subtask)

    def close(self) -> None:
        """Write the held and the sorted entries, and close the file."""
        self._end_plain()
        with self._unbroken():
            if self._sorter is not None:
                with closing(self._sorter.entries()) as entries:
                    if self._tables is None:
                        counted = self._counted(entries, _key_group_of)
                        self._write_sorted(entries if self._meter is None else counted)
                    else:
                        self._write_batches(self._tables, entries)
                self._close_sorters()
            self._end_key_group()
            self._end_subtask()
            self._operator_state.close()
            if self._meter is not None:
                meter, self._meter = self._meter, None
                meter.finish()

    def _write_batches(self, tables: TableWriter, entries: Iterator[EncodedEntry]) -> None:
        """Write the sorted entries of tables, merged with those of single writes."""
        from keygroups.savepoint._columns.table_writer import key_group_of

        with closing(tables.sorter.batches(entries)) as batches:
            counted = self._counted(batches, lambda batch: key_group_of(batch, 0))
            tables.write_sorted(counted, self._file_of)

    def _counted(
        self, items: Iterator[Item], key_group_of: Callable[[Item], int]
    ) -> Iterator[Item]:
        """Yield sorted entries, or batches of them, and report the key groups that are done."""
        for item in items:
            if self._meter is not None and (key_group := key_group_of(item)) > self._key_group:
                self._meter.add(key_group - max(self._key_group, 0))
                self._key_group = key_group
            yield item

    def _close_sorters(self) -> None:
        """Remove the files in which entries were sorted."""
        if self._sorter is not None:
            self._sorter.close()
            if self._tables is not None:
                self._tables.sorter.close()

    def abandon(self) -> None:
        """Close the file, incomplete as it may be, after an error elsewhere."""
        with suppress(KeyGroupsError):
            self._closing.close()
        with suppress(KeyGroupsError):
            self._close_sorters()

    def metadata(self) -> OperatorMetadata:
        """Return the OperatorMetadata of the operator, with the handles of its files."""
        keyed, operator_state = self.written, self._operator_state.handles
        subtasks = tuple(
            SubtaskState(
                subtask,
                managed_operator=operator_state.get(subtask),
                managed_keyed=keyed[subtask].handle if subtask in keyed else None,
            )
            for subtask in sorted({*keyed, *operator_state})
        )
        coordinator = None
        if self._coordinator is not None:
            coordinator = coordinator_handle(self.operator_id, self._coordinator)
        return OperatorMetadata(
            self.operator_id,
            "",
            "",
            self.parallelism,
            self.max_parallelism,
            subtasks,
            coordinator=coordinator,
        )

    @property
    def file_names(self) -> list[str]:
        """The names of the operator's files."""
        return [*super().file_names, *self._operator_state.file_names]

    @contextmanager
    def _unbroken(self) -> Iterator[None]:
        """Close the file after an error, and refuse all further writes: the file is incomplete."""
        if self._is_broken:
            raise SavepointError(f"operator {self.operator_id} cannot be written after an error")
        self._is_broken = True
        try:
            yield
        except BaseException as error:
            self._closing.__exit__(type(error), error, error.__traceback__)
            raise
        self._is_broken = False

    def _end_key_group(self) -> None:
        self._check_key_group()
        entries, self._entries = self._entries, []
        if self._tables is not None and self._tables.write_held(entries, self._file_of):
            return
        if not entries:
            return
        subtask = compute_operator_index_for_key_group(
            self.max_parallelism, self.parallelism, self._key_group
        )
        file = self._file_of(subtask)
        for entry in joined_lists(sorted(entries), self._elements_of):
            file.add(entry)

    def _file_of(self, subtask: int) -> KeyedStateFile:
        """Return the open file of a subtask; finish that of the subtask before."""
        if self._open is None or self._open[0].subtask != subtask:
            self._end_subtask()
            task = self.task(subtask)
            self._open = task, self._closing.enter_context(task.open())
        return self._open[1]

    def _end_subtask(self) -> None:
        if self._open is not None:
            task, file = self._open
            self._open = None
            self._closing.close()
            self.add(task.written(file))
