"""RocksDB's full format where the handle does not tell it from the hashmap backend's.

So are RocksDB's savepoints up to Flink 1.12, and its checkpoints up to 1.15 that are not
incremental. A key group without entries has the offset 0; the hashmap backend writes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb

from keygroups.errors import SavepointError
from keygroups.savepoint import Operator, read_savepoint

STATES = [sb.state(f"s{number}", "VALUE", sb.simple("Long")) for number in range(8)]
HEADER = sb.keyed_header(sb.simple("Int"), STATES)


def operator_of(
    folder: Path, first: int, key_groups: Sequence[bytes], header: bytes = HEADER
) -> Operator:
    """What is empty has the offset 0."""
    offsets, data = [], header
    for written in key_groups:
        offsets.append(len(data) if written else 0)
        data += written
    keyed = sb.older(first, offsets, sb.inline(data))
    path = sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    (operator,) = read_savepoint(path).operators
    return operator


def framed(key_group: int, key: int = 5, state: int = 0) -> bytes:
    entry = bytes([key_group]) + sb.i32(key) + b"\0", sb.i64(9)
    return sb.canonical_key_group([(state, [entry])])


def unframed(key_group: int, numbers: Sequence[int], key: int = 5) -> bytes:
    """Of the hashmap backend: an entry of the first state, none of the others."""
    data = sb.i32(key_group)
    for place, number in enumerate(numbers):
        entry = b"\0" + sb.i32(key) + sb.i64(-1) if not place else b""
        data += sb.i16(number) + sb.i32(len(entry) > 0) + entry
    return data


def test_a_key_group_without_entries(tmp_path: Path) -> None:
    written = [b"", framed(1), b"", framed(3), b""]
    operator = operator_of(tmp_path, 0, written)
    assert [(entry.key_group, entry.key, entry.value) for entry in operator.entries()] == [
        (1, 5, 9),
        (3, 5, 9),
    ]
    assert [entry.key_group for entry in operator.entries(key_groups=[3])] == [3]
    weights = operator.key_group_bytes().weights
    assert weights[:6] == (0, len(written[1]), 0, len(written[3]), 0, 0)


def test_no_entries_at_all(tmp_path: Path) -> None:
    operator = operator_of(tmp_path, 0, [b"", b""])
    assert [state.name for state in operator.states] == [f"s{number}" for number in range(8)]
    assert [*operator.entries()] == []
    assert sum(operator.key_group_bytes().weights) == 0


@pytest.mark.parametrize("chosen", [[0], [0, 1], [1]])
def test_some_key_groups(tmp_path: Path, chosen: list[int]) -> None:
    """Key group 0 alone looks like the hashmap backend's, but for those beside it."""
    operator = operator_of(tmp_path, 0, [framed(0), framed(1)])
    assert [entry.key_group for entry in operator.entries(key_groups=chosen)] == chosen
    assert [*operator.key_group_bytes().weights[:2]] == [len(framed(0)), len(framed(1))]


def test_key_group_0_alone(tmp_path: Path) -> None:
    operator = operator_of(tmp_path, 0, [framed(0)])
    assert [entry.value for entry in operator.entries()] == [9]
    assert operator.key_group_bytes().weights[0] == len(framed(0))


@pytest.mark.parametrize("numbers", [[0, 1], [6, 0, 3], [6, 0]])
def test_key_group_0_alone_of_the_hashmap_backend(tmp_path: Path, numbers: list[int]) -> None:
    """Its states come in any order: the number of the first may look like the size of a key."""
    operator = operator_of(tmp_path, 0, [unframed(0, numbers)])
    wanted = [f"s{number}" for number in numbers]
    assert [entry.value for entry in operator.entries(wanted)] == [-1]


def test_key_group_0_alone_and_short(tmp_path: Path) -> None:
    operator = operator_of(tmp_path, 0, [sb.i32(0) + sb.i16(0) + sb.i32(0)])
    assert [*operator.entries(["s0"])] == []


@pytest.mark.parametrize("number", [1, 3])
def test_key_group_0_alone_of_few_bytes(tmp_path: Path, number: int) -> None:
    """Both formats in 14 bytes that end in 0xFFFF: a key is of 2 bytes at least, and fits."""
    byte, short = sb.simple("Byte"), sb.simple("Short")
    header = sb.keyed_header(byte, [sb.state(f"s{n}", "VALUE", short) for n in range(4)])
    native = sb.i32(0) + sb.i16(number) + sb.i32(1) + b"\0\5" + sb.i16(-1)
    operator = operator_of(tmp_path / "native", 0, [native], header)
    ((key, value),) = [(entry.key, entry.value) for entry in operator.entries([f"s{number}"])]
    assert (len(native), key, value) == (14, 5, -1)
    own = sb.snapshot("org.example.NothingSerializerSnapshot", 1)
    header = sb.keyed_header(byte, [sb.state("s", "VALUE", own, namespace=own)])
    shortest = sb.canonical_key_group([(0, [(b"\0\5", b"")])])
    (entry,) = operator_of(tmp_path / "framed", 0, [shortest], header).entries()
    assert (len(shortest), entry.key, entry.namespace, entry.value) == (14, 5, b"", b"")


@pytest.mark.parametrize("more", [b"", b"\0"])
def test_key_group_0_alone_that_ends_behind_its_number(tmp_path: Path, more: bytes) -> None:
    operator = operator_of(tmp_path, 0, [sb.i32(0) + more])
    with pytest.raises(SavepointError, match="the bytes end too early"):
        list(operator.entries())


@pytest.mark.parametrize("count", [0, 4_000])
def test_a_key_group_that_is_wanted_tells_the_format(count: int, tmp_path: Path) -> None:
    """Where its number would mean a key of more bytes than it has: others may be damaged."""
    more = count * (b"\0" + sb.i32(5) + sb.i64(-1))
    key_group = unframed(1, [*range(7)]) + sb.i16(7) + sb.i32(count) + more
    assert len(key_group) < 1 << 16
    operator = operator_of(tmp_path, 0, [b"\xff" * (1 << 16), key_group])
    assert [entry.key_group for entry in operator.entries(key_groups=[1])] == [1] * (1 + count)


def test_a_key_whose_size_looks_like_the_number_of_its_key_group(tmp_path: Path) -> None:
    """The first bytes are 0, of the state, and 65,538, of the key: or 1, and 2 behind it."""
    text = b"\xfe\xff\x03" + b"a" * 65_533  # one more than its letters, 7 bits in a byte
    entries = [(b"\1" + text + b"\0", sb.i64(7))], [(b"\2\2a\0", sb.i64(8))]
    written = [sb.canonical_key_group([(0, of_group)]) for of_group in entries]
    assert written[0][:6] == sb.i16(0) + sb.i32(65_538) == sb.i32(1) + sb.i16(2)
    header = sb.keyed_header(sb.simple("String"), STATES[:1])
    operator = operator_of(tmp_path, 1, written, header)
    assert [entry.value for entry in operator.entries()] == [7, 8]


def test_numbers_of_key_groups(tmp_path: Path) -> None:
    """Some tell the formats apart, and all are compared."""
    written = [unframed(number, [*range(8)]) for number in range(9)]
    assert len([*operator_of(tmp_path, 0, written).entries()]) == 9
    written[8] = unframed(7, [*range(8)])
    operator = operator_of(tmp_path, 0, written)
    with pytest.raises(SavepointError, match="is not the start of key group 8"):
        list(operator.entries())
    assert [entry.key_group for entry in operator.entries(key_groups=[7])] == [7]
    written[8] = b"\0"
    with pytest.raises(SavepointError, match="is not the start of key group 8"):
        list(operator_of(tmp_path, 0, written).entries())
