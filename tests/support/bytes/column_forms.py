"""Savepoints of one state in each form of Flink's, and what is read of them in both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from keygroups.errors import SavepointError
from keygroups.savepoint import Operator, read_savepoint
from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import changelog
from support.bytes.column_entries import by_state, column_entries
from support.bytes.sst_bytes import VALUE, sst

Entries = Sequence[tuple[bytes, bytes]]


def operator_of(folder: Path, keyed: bytes, max_parallelism: int = 128) -> Operator:
    task = sb.operator([sb.subtask(managed_keyed=keyed)], max_parallelism=max_parallelism)
    (operator,) = read_savepoint(sb.write(folder, [task])).operators
    return operator


def canonical_handle(key: bytes, state: bytes, entries: Entries) -> bytes:
    header = sb.keyed_header(key, [state])
    content = sb.canonical_key_group([(0, [(b"\3" + key, value) for key, value in entries])])
    return sb.canonical(3, [len(header)], sb.inline(header + content))


def canonical(folder: Path, key: bytes, state: bytes, entries: Entries) -> Operator:
    return operator_of(folder, canonical_handle(key, state, entries))


def materialized(folder: Path, key: bytes, state: bytes, entries: Entries) -> Operator:
    """State of the changelog backend, of which no format has columns of its own."""
    return operator_of(folder, changelog([canonical_handle(key, state, entries)], []))


def of_two_bytes(folder: Path, key: bytes, state: bytes, entries: Entries) -> Operator:
    header = sb.keyed_header(key, [state])
    members = [(b"\x01\x05" + key, value) for key, value in entries]
    content = header + sb.canonical_key_group([(0, members)])
    return operator_of(folder, sb.canonical(0x105, [len(header)], sb.inline(content)), 300)


def native(folder: Path, key: bytes, state: bytes, entries: Entries) -> Operator:
    """State without a namespace, whose byte is the last of a key, and the first here."""
    header = sb.keyed_header(key, [state])
    content = sb.i32(3) + sb.i16(0) + sb.i32(len(entries))
    content += b"".join(key[-1:] + key[:-1] + value for key, value in entries)
    return operator_of(folder, sb.native(3, [len(header)], sb.inline(header + content)))


def rocksdb(
    folder: Path, key: bytes, state: bytes, entries: Entries, per_block: int = 3
) -> Operator:
    header = sb.keyed_header(key, [state])
    members = sorted((b"\3" + key, 7, VALUE, value) for key, value in entries)
    table = sst(members, "s", per_block=per_block)
    keyed = sb.rocksdb(3, 4, sb.inline(header), [("1.sst", sb.inline(table))])
    return operator_of(folder, keyed)


FORMS = [canonical, of_two_bytes, native, rocksdb]
Form = Callable[[Path, bytes, bytes, Entries], Operator]


def read(entries: Callable[[], object]) -> object:
    """Return the values that are read, or the error."""
    try:
        return entries()
    except SavepointError as error:
        return str(error)


def assert_same(operator: Operator) -> int:
    """Return the number of entries."""
    ours = read(lambda: by_state(column_entries(operator)))
    theirs = read(lambda: by_state(operator.entries()))
    assert ours == theirs
    return sum(map(len, theirs.values())) if isinstance(theirs, dict) else 0


def is_arrow(operator: Operator, name: str) -> bool:
    """Tell whether a column is decoded as a whole."""
    import pyarrow as pa

    batches = [entries for task in operator.tasks() for entries in task.columns()]
    return all(isinstance(entries.columns[name], pa.Array) for entries in batches)
