"""Keyed state in RocksDB's files: every checkpoint, and savepoints in native format.

Each SST file holds records of one column family, which is one state. The newest record of a key
counts; a ListState's merges are joined to what they were merged with; deletions of ranges, which
a restore with another parallelism leaves, hide what is older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from heapq import heappop, heappush, merge
from itertools import chain

from keygroups._checks import show
from keygroups._serializers.base import TRUNCATED
from keygroups._serializers.data_input import ReadingContext
from keygroups.errors import SavepointError
from keygroups.savepoint._files.files import CHUNK, Files, Planned
from keygroups.savepoint._files.sst import TAIL, RangeDeletion, Record, SstFile
from keygroups.savepoint._files.store_file import REQUEST
from keygroups.savepoint._metadata.handles import RocksDBHandle, StreamHandle
from keygroups.savepoint._state.entries import Entry, EntryReader
from keygroups.savepoint._state.format import Format, Selection
from keygroups.savepoint._state.header import KeyedHeader, read_keyed_header
from keygroups.savepoint._state.layouts import SEPARATOR, Layout, layout_of

_DELETION, _VALUE, _MERGE, _SINGLE_DELETION = 0, 1, 2, 7


class RocksDBFiles(Format):
    """Managed keyed state in the files of RocksDB.

    Flink: RocksDBIncrementalRestoreOperation, RocksIncrementalSnapshotStrategy.
    """

    def __init__(self, files: Files, handle: RocksDBHandle, context: ReadingContext) -> None:
        self._files = files
        self._handle = handle
        self._context = context

    @property
    def bytes(self) -> int:
        """How many bytes the SST files have."""
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
                yield stream, [(0 if is_whole else max(0, stream.size - TAIL), stream.size)]

    def header(self) -> KeyedHeader:
        """Read the header, which has a stream of its own."""
        with self._files.open(self._handle.meta) as stream:
            return read_keyed_header(stream, stream.size, self._context)

    def weights(self) -> dict[int, int]:
        """Return the same for each key group: they stand together in the files."""
        key_groups = self._handle.key_groups
        total = sum(stream.size for _, stream in self._streams())
        return dict.fromkeys(key_groups, total // max(1, len(key_groups)))

    def _streams(self) -> Iterator[tuple[str, StreamHandle]]:
        return chain(self._handle.shared, self._handle.private)

    def _entries(
        self, selection: Selection, reader_of: Callable[[Layout], EntryReader[Entry]]
    ) -> Iterator[Entry]:
        header = self.header()
        tables: dict[str, list[SstFile]] = {state.name: [] for state in header.states}
        prefix_bytes = selection.prefix_bytes
        # The bytes before which keys of key groups that follow one another start and end.
        runs = [
            (
                key_groups.start_key_group.to_bytes(prefix_bytes, "big"),
                (key_groups.end_key_group + 1).to_bytes(prefix_bytes, "big"),
            )
            for key_groups in selection.key_groups.ranges
        ]
        with ExitStack() as opened:
            for name, stream in self._streams():
                if not _is_sst(name):
                    continue
                table = SstFile(opened.enter_context(self._files.open(stream)))
                family = table.column_family.decode("utf-8", "replace")
                if family not in tables:
                    raise SavepointError(
                        f"{self._files.name_of(stream)}: {show(family)} is no state"
                    )
                tables[family].append(table)
            wanted = [state for state in header.states if selection.has(state.name)]
            if runs:
                for state in wanted:  # before any is waited for
                    for table in tables[state.name]:
                        table.ask_index()
            states = [
                _state_entries(
                    f"{self._files.base}, the SST files of {state}",
                    reader_of(layout_of(state)).framed,
                    [
                        deletion
                        for table in tables[state.name]
                        for deletion in table.range_deletions
                    ],
                    [table.records(runs) for table in tables[state.name]],
                    prefix_bytes,
                )
                for state in wanted
            ]
            yield from merge(*states, key=lambda entry: entry.key_group)


def _is_sst(name: str) -> bool:
    return name.endswith(".sst")


def _state_entries(
    name: str,
    read: Callable[[int, bytes, bytes], Entry],
    deletions: list[RangeDeletion],
    records: list[Iterator[Record]],
    prefix_bytes: int,
) -> Iterator[Entry]:
    """Yield the entries of a state, whose column family is in some files."""
    in_order = records[0] if len(records) == 1 else merge(*records)
    prefix: bytes | None = None
    key_group = -1
    for key, value in _live(name, in_order, deletions):
        if key[:prefix_bytes] != prefix:
            prefix = key[:prefix_bytes]
            key_group = int.from_bytes(prefix, "big")
        try:
            yield read(key_group, key[prefix_bytes:], value)
        except (*TRUNCATED, ValueError) as error:
            raise SavepointError(f"{name}: key {show(key)} is no entry: {error}") from None


def _live(
    name: str, records: Iterable[Record], deletions: list[RangeDeletion]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys that are there with their values, from all versions, the newest first.

    RocksDB: db/dbformat.h, ValueType; StringAppendOperator, with the separator of Flink's
    ListDelimitedSerializer.
    """
    ahead = sorted(deletions, reverse=True)  # the next to start is the last
    begun: list[tuple[int, bytes]] = []  # a heap: the newest first, with where it ends
    current: bytes | None = None
    operands: list[bytes] = []
    is_done, deleted = False, 0
    for key, order, value in records:
        if key != current:
            if current is not None and operands:
                yield current, SEPARATOR.join(reversed(operands))
                operands = []
            current, is_done = key, False
            if deletions:
                while ahead and ahead[-1].start <= key:
                    deletion = ahead.pop()
                    heappush(begun, (-deletion.sequence, deletion.end))
                while begun and begun[0][1] <= key:
                    heappop(begun)
                deleted = -begun[0][0] if begun else 0
        elif is_done:
            continue
        sequence, kind = divmod(-order, 256)
        if sequence < deleted or kind in (_DELETION, _SINGLE_DELETION):
            is_done = True
        elif kind in (_VALUE, _MERGE):
            operands.append(value)
            is_done = kind == _VALUE
        else:
            raise SavepointError(f"{name}: records of kind {kind} are not read here")
    if current is not None and operands:
        yield current, SEPARATOR.join(reversed(operands))
