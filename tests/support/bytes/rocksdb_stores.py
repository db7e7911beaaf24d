"""Savepoints of a subtask with the files of a store that RocksDB itself left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from keygroups.savepoint import Operator, read_savepoint
from support.bytes import savepoint_bytes as sb


def store(folder: Path, files: Mapping[str, bytes]) -> Operator:
    """The operator of a savepoint whose state has the name of RocksDB's first column family.

    Keys are Bytes, values Strings, as in `../flink/java/RangeDeletions.java`.
    """
    folder.mkdir()
    private = [(name, sb.inline(data)) for name, data in files.items()]
    header = sb.keyed_header(
        sb.simple("Byte"), [sb.state("default", "VALUE", sb.simple("String"))]
    )
    keyed = sb.rocksdb(0, 4, sb.inline(header), private=private)
    task = sb.subtask(managed_keyed=keyed)
    (operator,) = read_savepoint(sb.write(folder, [sb.operator([task])])).operators
    return operator


def first_letters(operator: Operator) -> list[str]:
    """The records of its state as RangeDeletions.java prints them, read one by one."""
    return [
        f"{entry.key_group:02x}{entry.key:02x}00 {entry.value[0]}" for entry in operator.entries()
    ]
