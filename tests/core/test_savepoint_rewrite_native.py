"""The hashmap backend's own format written anew, in what no real point here has."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.expected_savepoints import LONGS, STRINGS
from support.bytes.state_types import TYPES

from keygroups import assign_to_key_group
from keygroups.errors import SavepointError
from keygroups.savepoint import change_max_parallelism, convert_to_canonical, read_savepoint
from keygroups.types import STRING

KRYO = sb.kryo_of("A")
A = assign_to_key_group("a", 128, STRING)


def native(folder: Path, key: bytes, state: bytes, entry: bytes) -> Path:
    """Write a savepoint with one entry, of the key "a" if it is a string."""
    head = sb.keyed_header(key, [state])
    group = sb.i32(A) + b"\0\0" + sb.i32(1) + entry
    handle = sb.native(A, [len(head)], sb.inline(head + group))
    return sb.write(folder, [sb.operator([sb.subtask(managed_keyed=handle)], uid="a")])


@pytest.mark.parametrize(
    ("key", "state"),
    [
        (KRYO, sb.state("s", "VALUE", LONGS.snapshot)),
        (STRINGS.snapshot, sb.state("s", "VALUE", KRYO)),
        (STRINGS.snapshot, sb.state("s", "LIST", sb.list_of(KRYO))),
        (STRINGS.snapshot, sb.state("s", "MAP", sb.map_of(KRYO, LONGS.snapshot))),
        (STRINGS.snapshot, sb.state("s", "MAP", sb.map_of(LONGS.snapshot, KRYO))),
        (STRINGS.snapshot, sb.state("s", "VALUE", LONGS.snapshot, namespace=KRYO)),
        (KRYO, sb.state("s", "", sb.timer_of(KRYO, sb.NONE), backend_type=3)),
    ],
    ids=["key", "value", "element", "user key", "map value", "namespace", "timer"],
)
def test_classes_of_the_job(key: bytes, state: bytes, tmp_path: Path) -> None:
    """Nothing says there where such a value ends."""
    folder = native(tmp_path / "old", key, state, b"\0\x02a")
    with pytest.raises(SavepointError, match="takes the job's own classes to read"):
        convert_to_canonical(folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_null_in_a_map(tmp_path: Path) -> None:
    state = sb.state("s", "MAP", sb.map_of(STRINGS.snapshot, STRINGS.snapshot))
    items = sb.i32(2) + b"\x02b\x01" + b"\x02c\0\x02d"
    folder = native(tmp_path / "old", STRINGS.snapshot, state, b"\0\x02a" + items)
    change_max_parallelism(folder, 4096, tmp_path / "new")
    entries = read_savepoint(tmp_path / "new").operators[0].entries()
    assert [(one.key, one.user_key, one.value) for one in entries] == [
        ("a", "b", None),
        ("a", "c", "d"),
    ]


def test_no_state(tmp_path: Path) -> None:
    """A header that tells of none, of each type of key."""
    for number, one in enumerate(TYPES):
        head = sb.keyed_header(one.snapshot, [])
        task = sb.subtask(managed_keyed=sb.canonical(0, [0] * 128, sb.inline(head)))
        folder = sb.write(tmp_path / str(number), [sb.operator([task], uid="a")])
        change_max_parallelism(folder, 64, tmp_path / f"new {number}")
        (operator,) = read_savepoint(tmp_path / f"new {number}").operators
        assert (operator.max_parallelism, list(operator.entries())) == (64, [])


def test_max_parallelisms_that_differ(tmp_path: Path) -> None:
    """The report names each operator with its own."""
    head = sb.keyed_header(STRINGS.snapshot, [sb.state("s", "VALUE", LONGS.snapshot)])
    group = sb.canonical_key_group([(0, [(bytes([A]) + b"\x02a\0", sb.i64(5))])])
    offsets = [len(head) if number == A else 0 for number in range(128)]
    task = sb.subtask(managed_keyed=sb.canonical(0, offsets, sb.inline(head + group)))
    operators = [sb.operator([task], uid=uid, operator_id=uid.encode() * 16) for uid in ("a", "b")]
    folder = sb.write(tmp_path / "old", operators)
    report = change_max_parallelism(folder, 64, tmp_path / "new", operators=["a"])
    assert (
        str(report)
        .splitlines()[-1]
        .startswith("set max parallelism in the job, to 64 of a, 128 of b: ")
    )
