"""Savepoints of any size: the header of a real one, and entries String -> Long as Flink has them.

The keys of each key group, some of them again and again, are in the key group that Flink computes.
They are written piece by piece, so that ten million take no memory. A savepoint that was taken
later has other keys: the first are gone, as many are new, and as many have another value.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count, islice
from pathlib import Path

from keygroups import assign_to_key_group
from keygroups.state_keys import CompositeKeySerializer
from keygroups.types import STRING
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.bytes.sst_bytes import VALUE, sst
from support.bytes.trimmed_savepoints import content, fewer_states, first_subtask
from support.inside.savepoints import KeyGroupsHandle, header_size

KEY_GROUPS = 128
PER_BLOCK = 128  # entries of an SST file's block, about 4 KiB as in RocksDB
DISTINCT = 12_800  # keys of a canonical or native savepoint


USER_KEYS = 10  # user keys of each key of a MAP


@lru_cache
def header(state: str = "count") -> bytes:
    """The header of a real operator with nothing but one state.

    That is `count`, String -> Long, or `byCity`, a MAP String -> Long.
    """
    one = point("2.3.0-heap-canonical")
    handle = first_subtask(one, "by-string").managed_keyed
    assert isinstance(handle, KeyGroupsHandle)
    return fewer_states(content(one, handle.stream)[: header_size(handle)], [state])


def keys(number: int, later: int = 0, one_size: bool = True) -> list[list[str]]:
    """Return as many keys, those of each key group, without the first ones."""
    found: list[list[str]] = [[] for _ in range(KEY_GROUPS)]
    ends = [""] * 10 if one_size else ["x" * (7 * end % 10) for end in range(10)]
    for key in islice((f"user-{index:09d}{ends[index % 10]}" for index in count(later)), number):
        found[assign_to_key_group(key, KEY_GROUPS, STRING)].append(key)
    return found


def value(key: str, later: int) -> bytes:
    """The value of a key: 5, and 6 of as many keys of a later savepoint as there are new ones."""
    return sb.i64(6 if key < f"user-{2 * later:09d}" else 5)


def text(key: str) -> bytes:
    return bytes([len(key) + 1]) + key.encode()


def canonical_key_group(
    key_group: int, keys: list[str], times: int, later: int = 0
) -> Iterator[bytes]:
    entries = [
        sb.i32(len(key) + 3)
        + bytes([key_group])
        + text(key)
        + b"\0"
        + sb.i32(8)
        + value(key, later)
        for key in keys
    ]
    return framed(entries, times)


def map_key_group(key_group: int, keys: list[str], times: int, later: int = 0) -> Iterator[bytes]:
    user_keys = [text(f"city-{number}") for number in range(USER_KEYS)]
    entries = [
        sb.i32(len(key) + 3 + len(user_key))
        + bytes([key_group])
        + text(key)
        + b"\0"
        + user_key
        + sb.i32(9)
        + b"\0"
        + value(key, later)
        for key in keys
        for user_key in user_keys
    ]
    return framed(entries, times)


def framed(entries: list[bytes], times: int) -> Iterator[bytes]:
    if not entries or not times:
        return
    last = bytearray(entries[-1])
    last[4] |= 0x80
    whole = b"".join(entries)
    yield b"\0\0"
    for _ in range(times - 1):
        yield whole
    yield b"".join(entries[:-1]) + last + b"\xff\xff"


def native_key_group(
    key_group: int, keys: list[str], times: int, later: int = 0
) -> Iterator[bytes]:
    yield sb.i32(key_group) + b"\0\0" + sb.i32(len(keys) * times)
    whole = b"".join(b"\0" + text(key) + value(key, later) for key in keys)
    for _ in range(times):
        yield whole


def write(folder: Path, form: str, entries: int, later: int = 0, one_size: bool = True) -> int:
    """Write a savepoint of one subtask, and return how many entries it has.

    `form` is canonical, map, which is canonical too and has a MAP, native or rocksdb; `later` is
    of how many keys there are other ones, `one_size` whether all have as many characters.
    """
    folder.mkdir(exist_ok=True)
    if form == "rocksdb":
        return _write_rocksdb(folder, keys(entries, later, one_size), later)
    of_key = USER_KEYS if form == "map" else 1
    distinct = min(DISTINCT, entries) // of_key
    times = entries // (distinct * of_key)
    groups = {
        "canonical": canonical_key_group,
        "map": map_key_group,
        "native": native_key_group,
    }[form]
    offsets = []
    with (folder / "keyed").open("wb") as file:
        file.write(header("byCity" if form == "map" else "count"))
        for key_group, members in enumerate(keys(distinct, later, one_size)):
            start = file.tell()
            for piece in groups(key_group, members, times, later):
                file.write(piece)
            offsets.append(start if file.tell() > start else 0)
        stream = sb.relative("keyed", file.tell())
    handle = (sb.native if form == "native" else sb.canonical)(0, offsets, stream)
    sb.write(folder, [sb.operator([sb.subtask(managed_keyed=handle)], uid="by-string")])
    return distinct * times * of_key


def write_longs(folder: Path, entries: int) -> int:
    """Write a canonical savepoint of entries Long -> Long; return how many.

    Their key groups are those that they are written in, whatever the hash of their keys.
    """
    folder.mkdir(exist_ok=True)
    header_of_longs = sb.keyed_header(
        sb.simple("Long"), [sb.state("count", "VALUE", sb.simple("Long"))]
    )
    each = entries // KEY_GROUPS
    offsets = []
    with (folder / "keyed").open("wb") as file:
        file.write(header_of_longs)
        for key_group in range(KEY_GROUPS):
            offsets.append(file.tell())
            members = [
                sb.i32(10)
                + bytes([key_group])
                + sb.i64(key_group * each + number)
                + b"\0"
                + sb.i32(8)
                + sb.i64(number)
                for number in range(each)
            ]
            file.writelines(framed(members, 1))
        stream = sb.relative("keyed", file.tell())
    handle = sb.canonical(0, offsets, stream)
    sb.write(folder, [sb.operator([sb.subtask(managed_keyed=handle)], uid="by-string")])
    return each * KEY_GROUPS


def _write_rocksdb(folder: Path, keys: list[list[str]], later: int, files: int = 4) -> int:
    """SST files whose keys go one between the other, as after several checkpoints."""
    serializer = CompositeKeySerializer(KEY_GROUPS, STRING)
    records = sorted(
        (serializer.serialize(key), 7, VALUE, value(key, later)) for group in keys for key in group
    )
    shared = []
    for number in range(files):
        table = sst(records[number::files], "count", per_block=PER_BLOCK)
        (folder / f"{number:06d}.sst").write_bytes(table)
        shared.append((f"{number:06d}.sst", sb.relative(f"{number:06d}.sst", len(table))))
    keyed = sb.rocksdb(0, KEY_GROUPS, sb.inline(header()), shared)
    sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-string")])
    return len(records)


def wide_metadata(subtasks: int, operators: int = 4) -> bytes:
    """`_metadata` of so many subtasks in all, each with 128 key groups of canonical state."""
    each = subtasks // operators
    out = []
    for number in range(operators):
        tasks = []
        for index in range(each):
            offsets = [5_000 + 100 * group for group in range(KEY_GROUPS)]
            stream = sb.relative(f"{number}-{index}", 20_000)
            keyed = sb.canonical(index * KEY_GROUPS, offsets, stream)
            tasks.append(sb.subtask(index, managed_keyed=keyed))
        out.append(
            sb.operator(
                tasks,
                parallelism=each,
                max_parallelism=each * KEY_GROUPS,
                uid=f"operator {number}",
                operator_id=bytes([number] * 16),
            )
        )
    return sb.metadata(out)
