"""Keyed state in RocksDB's files: every checkpoint, and savepoints in native format.

Each SST file holds records of one column family, which is one state. The newest record of a key
counts; a ListState's merges are joined to what they were merged with; deletions of ranges, which
a restore with another parallelism leaves, hide what is older between the bounds of their files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from heapq import heappop, heappush, merge
from itertools import chain, islice
from operator import lt
from typing import TYPE_CHECKING

from keygroups._checks import show
from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.data_input import ReadingContext
from keygroups.errors import SavepointError
from keygroups.savepoint._files.files import CHUNK, Files, Planned
from keygroups.savepoint._files.manifest import read_bounds
from keygroups.savepoint._files.sst import (
    DELETION,
    MERGE,
    SINGLE_DELETION,
    TAIL,
    VALUE,
    RangeDeletion,
    Record,
    Runs,
    SstFile,
)
from keygroups.savepoint._files.store_file import REQUEST
from keygroups.savepoint._metadata.handles import RocksDBHandle, StreamHandle
from keygroups.savepoint._state.entries import Entry, EntryReader, not_an_entry
from keygroups.savepoint._state.formats.format import Format, Selection
from keygroups.savepoint._state.header import KeyedHeader, StateDescriptor, read_keyed_header
from keygroups.savepoint._state.layouts import Layout, layout_of
from keygroups.savepoint._state.stored_values import joined_elements

if TYPE_CHECKING:
    from keygroups.savepoint._state.entry_columns import ColumnDecoder, EntryColumns, Pairs

Bounds = dict[str, tuple[bytes, bytes]]
"""The bounds of SST files by their names: the first key, and one past the last."""

# Low bytes of the orders of records whose value counts if no other has their key.
_ALONE = {-VALUE & 255, -MERGE & 255}


class RocksDBFiles(Format):
    """Managed keyed state in the files of RocksDB.

    Flink: RocksDBIncrementalRestoreOperation, RocksIncrementalSnapshotStrategy.
    """

    has_framed_columns = True

    def __init__(self, files: Files, handle: RocksDBHandle, context: ReadingContext) -> None:
        self._files = files
        self._handle = handle
        self._context = context

    @property
    def bytes(self) -> int:
        """The size of the SST files in bytes."""
        return sum(stream.size for name, stream in self._streams() if _is_sst(name))

    def header_plan(self) -> Iterator[Planned]:
        """Plan to read the header, of many bytes the first."""
        yield self._handle.meta, [(0, min(self._handle.meta.size, CHUNK))]

    def plan(self, selection: Selection) -> Iterator[Planned]:
        """Plan to read the header, and the end of each SST file, or all where all is wanted."""
        yield from self.header_plan()
        is_all = selection.states is None and len(selection.key_groups) == len(
            self._handle.key_groups
        )
        for name, stream in self._streams():
            if _is_sst(name):
                is_whole = is_all and stream.size <= REQUEST
                # Of a smaller file this is all too: what is before its start is not asked for.
                yield stream, [(0 if is_whole else stream.size - TAIL, stream.size)]

    def headers(self) -> list[KeyedHeader]:
        """Read the header, which has a stream of its own."""
        with self._files.open(self._handle.meta) as stream:
            return [read_keyed_header(stream, stream.size, self._context)]

    def weights(self) -> dict[int, int]:
        """Return equal weights, as key groups stand together in the files."""
        key_groups = self._handle.key_groups
        total = sum(stream.size for _, stream in self._streams())
        return dict.fromkeys(key_groups, total // max(1, len(key_groups)))

    def _streams(self) -> Iterator[tuple[str, StreamHandle]]:
        return chain(self._handle.shared, self._handle.private)

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        with ExitStack() as opened:
            prefix_bytes = selection.prefix_bytes
            states = [
                _state_entries(
                    name,
                    reader_of(layout_of(state)).framed,
                    _pairs(name, files, runs),
                    prefix_bytes,
                )
                for state, name, files, runs in self._states_of(selection, opened)
            ]
            yield from merge(*states, key=lambda entry: entry.key_group)

    def columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as columns, those of a state in order."""
        from keygroups.savepoint._state.entry_columns import ColumnDecoder

        return self._columns(selection, partial(ColumnDecoder, has_values=selection.has_values))

    def framed_columns(self, selection: Selection) -> Iterator[EntryColumns]:
        """Yield the entries that are wanted as a FramedDecoder makes columns of them."""
        from keygroups.savepoint._state.framed_columns import FramedDecoder

        return self._columns(selection, FramedDecoder)

    def _columns(
        self, selection: Selection, decoder_of: Callable[[StateDescriptor, int], ColumnDecoder]
    ) -> Iterator[EntryColumns]:
        from keygroups.savepoint._state.formats.rocksdb_columns import of_files

        with ExitStack() as opened:
            columns = [
                of_files(
                    decoder_of(state, selection.subtask),
                    name,
                    files,
                    runs,
                    selection.prefix_bytes,
                    partial(_pairs, name, files),
                )
                for state, name, files, runs in self._states_of(selection, opened)
            ]
            yield from chain.from_iterable(columns)

    def _states_of(
        self, selection: Selection, opened: ExitStack
    ) -> list[tuple[StateDescriptor, str, list[SstFile], Runs]]:
        """Return the states that are wanted, what errors call their files, these, and their runs.

        `opened` is to close the files.
        """
        states = self.states()
        tables: dict[str, list[SstFile]] = {state.stored_name: [] for state in states}
        bounds: Bounds | None = None
        prefix_bytes = selection.prefix_bytes
        # Half-open ranges of keys, one for each run of key groups that follow one another.
        runs = [
            (
                key_groups.start_key_group.to_bytes(prefix_bytes, "big"),
                (key_groups.end_key_group + 1).to_bytes(prefix_bytes, "big"),
            )
            for key_groups in selection.key_groups.ranges
        ]
        for name, stream in self._streams():
            if not _is_sst(name):
                continue
            table = SstFile(opened.enter_context(self._files.open(stream)))
            family = table.column_family.decode("utf-8", "replace")
            if family not in tables:
                raise SavepointError(f"{self._files.name_of(stream)}: {show(family)} is no state")
            tables[family].append(table)
            if table.range_deletions:
                bounds = self._bounds() if bounds is None else bounds
                if name in bounds:
                    table.bound_deletions(*bounds[name])
        wanted = [state for state in states if selection.has(state.name)]
        for state in wanted:  # All are asked for before the first is waited for.
            for table in tables[state.stored_name]:
                table.ask_index()
        found = []
        for state in wanted:
            name = f"{self._files.base}, the SST files of {state}"
            of_state: Runs = runs
            if selection.keys is not None and not layout_of(state).before_key:
                of_state = [(key, _behind(key)) for key in sorted(selection.keys)]
            found.append((state, name, tables[state.stored_name], of_state))
        return found

    def _bounds(self) -> Bounds:
        """Return the bounds of the SST files, none where there is no MANIFEST, or several."""
        manifests = [stream for name, stream in self._streams() if name.startswith("MANIFEST-")]
        if len(manifests) != 1:
            return {}
        with self._files.open(manifests[0]) as opened:
            return {f"{number:06}.sst": found for number, found in read_bounds(opened).items()}


def _behind(start: bytes) -> bytes:
    """Return the first bytes behind all that start with some, which are not all 0xFF."""
    kept = start.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1])


def _is_sst(name: str) -> bool:
    return name.endswith(".sst")


def _pairs(name: str, tables: list[SstFile], runs: Runs) -> Pairs:
    """Return the keys and values of a state, whose column family is in some files."""
    deletions = [deletion for table in tables for deletion in table.range_deletions]
    records = [table.records(runs) for table in tables]
    return _live(name, records[0] if len(records) == 1 else _merged(records), deletions)


def _merged(tables: Iterable[Iterator[list[Record]]]) -> Iterator[list[Record]]:
    """Yield the records of several files in order, some at once.

    Those up to the first of the last ones that are there are sorted together: Python's sort merges
    what is in order already. Two heaps say which files these are of, however many there are.
    """
    streams = [*tables]
    held: list[list[Record]] = [[] for _ in streams]
    starts: list[tuple[Record, int, int]] = []  # the next of each file, with where it is held
    ends: list[Record] = []  # the last that is held of each

    def hold(number: int) -> None:
        """Hold the next ones of a file."""
        for records in islice(streams[number], 1):
            held[number] = records
            heappush(starts, (records[0], number, 0))
            heappush(ends, records[-1])

    for number in range(len(streams)):
        hold(number)
    while ends:
        bound = heappop(ends)
        ready: list[Record] = []
        while starts and starts[0][0] <= bound:
            _, number, pos = heappop(starts)
            records = held[number]
            past = bisect_right(records, bound, pos)
            ready += records[pos:past]
            if past < len(records):
                heappush(starts, (records[past], number, past))
            else:
                hold(number)
        if ready:  # else two files have the same last one
            ready.sort()
            yield ready


def _state_entries(
    name: str,
    read: Callable[[int, bytes, bytes], Entry],
    pairs: Pairs,
    prefix_bytes: int,
) -> Iterator[Entry]:
    """Yield the entries of a state."""
    prefix: bytes | None = None
    key_group = -1
    for key, value in chain.from_iterable(zip(keys, values) for keys, values in pairs):
        if key[:prefix_bytes] != prefix:
            prefix = key[:prefix_bytes]
            key_group = int.from_bytes(prefix, "big")
        try:
            yield read(key_group, key[prefix_bytes:], value)
        except (*TRUNCATED, ValueError) as error:
            raise not_an_entry(name, key, error) from None


def _live(name: str, chunks: Iterable[list[Record]], deletions: list[RangeDeletion]) -> Pairs:
    """Yield the keys that are there with their values, from all versions, the newest first.

    RocksDB: db/dbformat.h, ValueType; StringAppendOperator, with the separator of Flink's
    ListDelimitedSerializer.
    """
    ahead = sorted(deletions, reverse=True)  # the next to start is the last
    are_bounded = all(deletion.is_bounded for deletion in deletions)
    begun: list[tuple[int, bytes]] = []  # a heap: the newest first, with where it ends
    current: bytes | None = None
    last = 0  # the order of the last record
    operands: list[bytes] = []
    is_done, deleted = False, 0
    for records in chunks:
        keys, orders, values = zip(*records)
        if (
            not deletions
            and keys[0] != current
            and all(map(lt, keys, islice(keys, 1, None)))
            and _ALONE.issuperset([order & 255 for order in orders])
        ):
            if current is not None and operands:
                yield [current], [joined_elements(reversed(operands))]
                operands = []
            yield keys[:-1], values[:-1]
            records = records[-1:]  # Its key may have more in the next chunk.
        live_keys: list[bytes] = []
        live_values: list[bytes] = []
        for key, order, value in records:
            if key != current:
                if current is not None and operands:
                    live_keys.append(current)
                    live_values.append(joined_elements(reversed(operands)))
                    operands = []
                current = key
                if deletions:
                    while ahead and ahead[-1].start <= key:
                        deletion = ahead.pop()
                        heappush(begun, (-deletion.sequence, deletion.end))
                    while begun and begun[0][1] <= key:
                        heappop(begun)
                    deleted = -begun[0][0] if begun else 0
            elif order == last:  # Nobody says which of the two counts.
                raise SavepointError(f"{name}: two records of key {show(key)} have one number")
            elif is_done:
                last = order
                continue
            last = order
            sequence, kind = divmod(-order, 256)
            if sequence < deleted and not (sequence or are_bounded):
                raise SavepointError(
                    f"{name}: no MANIFEST tells whether a deletion of a range reaches key "
                    f"{show(key)}"
                )
            if sequence < deleted or kind in (DELETION, SINGLE_DELETION):
                is_done = True
            elif kind in (VALUE, MERGE):
                operands.append(value)
                is_done = kind == VALUE
            else:
                raise SavepointError(f"{name}: records of kind {kind} are not read here")
        yield live_keys, live_values
    if current is not None and operands:
        yield [current], [joined_elements(reversed(operands))]
