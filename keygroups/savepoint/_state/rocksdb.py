"""Keyed state in RocksDB's files: every checkpoint, and savepoints in native format.

Each SST file holds records of one column family, which is one state. The newest record of a key
counts; a ListState's merges are joined to what they were merged with; deletions of ranges, which
a restore with another parallelism leaves, hide what is older.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from heapq import heappop, heappush, merge

from keygroups._checks import show
from keygroups._serializers.base import TRUNCATED
from keygroups.errors import SavepointError
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._files.sst import RangeDeletion, Record, SstFile
from keygroups.savepoint._metadata.handles import RocksDBHandle
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._state.entry_readers import Decode, Entry, EntryReaders
from keygroups.savepoint._state.header import read_keyed_header

_DELETION, _VALUE, _MERGE, _SINGLE_DELETION = 0, 1, 2, 7


def read_entries(
    files: Files,
    handle: RocksDBHandle,
    subtask: int,
    prefix_bytes: int,
    wanted: Callable[[str], bool],
    key_groups: KeyGroupRanges,
    readers: EntryReaders[Entry],
) -> Iterator[Entry]:
    """Yield the entries of some states and key groups, one key group after the other."""
    with ExitStack() as opened:
        meta = opened.enter_context(files.open(handle.meta))
        header = read_keyed_header(meta, meta.size)
        tables: dict[str, list[SstFile]] = {state.name: [] for state in header.states}
        for name, stream in (*handle.shared, *handle.private):
            if not name.endswith(".sst"):
                continue
            table = SstFile(opened.enter_context(files.open(stream)))
            family = table.column_family.decode("utf-8", "replace")
            if family not in tables:
                raise SavepointError(f"{files.name_of(stream)}: {show(family)} is no state")
            tables[family].append(table)
        # The bytes before which keys of key groups that follow one another start and end.
        runs = [
            (
                one.start_key_group.to_bytes(prefix_bytes, "big"),
                (one.end_key_group + 1).to_bytes(prefix_bytes, "big"),
            )
            for one in key_groups.ranges
        ]
        states = [
            _state_entries(
                f"{files.base}, the SST files of {state}",
                readers.decoder(state, subtask),
                tables[state.name],
                prefix_bytes,
                runs,
            )
            for state in header.states
            if wanted(state.name)
        ]
        yield from merge(*states, key=lambda entry: entry.key_group)


def _state_entries(
    name: str,
    decode: Decode[Entry],
    tables: list[SstFile],
    prefix_bytes: int,
    runs: Iterable[tuple[bytes, bytes]],
) -> Iterator[Entry]:
    deletions = [deletion for table in tables for deletion in table.range_deletions]
    records = [table.records(runs) for table in tables]
    in_order = records[0] if len(records) == 1 else merge(*records)
    for key, value in _live(name, in_order, deletions):
        key_group = int.from_bytes(key[:prefix_bytes], "big")
        try:
            yield decode(key_group, key, prefix_bytes, len(key), value, 0, len(value))
        except (*TRUNCATED, ValueError) as error:
            raise SavepointError(f"{name}: key {show(key)} is no entry: {error}") from None


def _live(
    name: str, records: Iterable[Record], deletions: list[RangeDeletion]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys that are there with their values, from all versions, the newest first."""
    ahead = sorted(deletions, reverse=True)  # the next to start is the last
    begun: list[tuple[int, bytes]] = []  # a heap: the newest first, with where it ends
    current: bytes | None = None
    operands: list[bytes] = []
    is_done, deleted = False, 0
    for key, order, value in records:
        if key != current:
            if current is not None and operands:
                yield current, b",".join(reversed(operands))
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
        yield current, b",".join(reversed(operands))
