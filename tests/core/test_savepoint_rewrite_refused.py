"""What cannot be moved with certainty is refused whole: nothing is written, nothing changed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.damaged_files import damages, digests
from support.bytes.expected_savepoints import LONGS, STRINGS
from support.bytes.real_savepoints import point
from support.bytes.state_types import row_of
from support.bytes.trimmed_savepoints import HEADERS, SMALL
from support.inside.savepoints import KeyGroupsHandle

from keygroups import assign_to_key_group
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    ParallelismError,
    SavepointError,
)
from keygroups.savepoint import (
    Operator,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)
from keygroups.types import STRING

Record = Callable[[str, object], None]
HEAP = point("2.3.0-heap-canonical")


def refused(source: Any, message: str, folder: Path, max_parallelism: int = 64) -> None:
    """Ask for a change, which is refused with nothing left of it."""
    before = digests(folder)
    with pytest.raises(SavepointError, match=message) as caught:
        change_max_parallelism(source, max_parallelism, folder / "new")
    assert "\n" not in str(caught.value)
    assert digests(folder) == before
    assert not (folder / "new").exists()
    assert not list(folder.glob(".*"))


# Real savepoints


@pytest.mark.parametrize(
    ("name", "max_parallelism", "message"),
    [
        ("2.3.0-unaligned-checkpoint", 64, "operator slow cannot be written .*in-flight data"),
        ("2.3.0-pojo-canonical", 129, r"has keys of POJO\(.*must be a divisor of 128, got 129"),
        ("2.3.0-pojo-canonical", 256, r"has keys of POJO\(.*must be a divisor of 128, got 256"),
        ("2.3.0-pojo-canonical", 96, r"has keys of POJO\(.*must be a divisor of 128, got 96"),
    ],
)
def test_points(name: str, max_parallelism: int, message: str, tmp_path: Path) -> None:
    one = point(name)
    before = digests(one.path.parent)
    refused(one.read(), message, tmp_path, max_parallelism)
    assert digests(one.path.parent) == before
    if "pojo" not in name:
        with pytest.raises(SavepointError, match=message):
            convert_to_canonical(one.read(), tmp_path / "new")
        assert not list(tmp_path.iterdir())


def test_files_that_are_gone(tmp_path: Path) -> None:
    """A checkpoint that was moved, whose files are elsewhere; a file of a savepoint."""
    moved = read_savepoint(point("2.3.0-merged-checkpoint").path)
    refused(moved, "is not in the savepoint: pass allow=", tmp_path)
    folder = tmp_path / "old"
    shutil.copytree(point("2.3.0-files-canonical").path, folder)
    keyed_file(folder)[0].unlink()
    refused(folder, "cannot be opened: No such file", tmp_path, 256)


def keyed_file(folder: Path) -> tuple[Path, KeyGroupsHandle]:
    """Return the file of the first subtask of `by-string`, and what tells of it."""
    task = read_savepoint(folder).operator("by-string").tasks()[0]
    (handle,) = task.handles
    assert isinstance(handle, KeyGroupsHandle)
    return folder / handle.stream.path, handle


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_that_is_cut(share: float, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(point("2.3.0-files-canonical").path, folder)
    path, _ = keyed_file(folder)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refused(
        folder, f"{path.name}: the file has .* bytes, its handle says {len(data)}$", tmp_path, 256
    )


def test_a_key_in_a_wrong_key_group(tmp_path: Path) -> None:
    """One letter of one key of Flink's own is another: the key's group is another too."""
    folder = tmp_path / "old"
    shutil.copytree(point("2.3.0-files-canonical").path, folder)
    path, handle = keyed_file(folder)
    data = bytearray(path.read_bytes())
    key = next(
        entry.key
        for entry in read_savepoint(folder).operator("by-string").entries()
        if entry.subtask == 0 and entry.key.isascii() and len(entry.key) > 3
    )
    place = data.index(key.encode(), min(filter(None, handle.offsets)))
    data[place] ^= 1
    path.write_bytes(data)
    other = chr(ord(key[0]) ^ 1) + key[1:]
    group = assign_to_key_group(other, 200, STRING)
    message = rf"key '{other}' of state '.*' is in key group \d+, and of key group {group} by its"
    refused(folder, message, tmp_path, 256)
    refused(folder, message, tmp_path, 100)
    with pytest.raises(SavepointError, match=message):  # keys are checked there too
        convert_to_canonical(folder, tmp_path / "new")
    with pytest.raises(SavepointError, match=message):  # all is written anew
        change_max_parallelism(folder, 256, tmp_path / "new", operators=["by-long"])


# Savepoints that no real job has written


COUNT = sb.state("count", "VALUE", LONGS.snapshot)
TEXT = sb.state("count", "VALUE", STRINGS.snapshot)


def stream(
    entries: Sequence[tuple[bytes, bytes]] = (),
    *,
    first: int = 0,
    key_groups: int = 128,
    key: bytes = STRINGS.snapshot,
    states: Sequence[bytes] = (COUNT,),
) -> bytes:
    """Return the handle of entries with their key groups before them, of one state."""
    data = sb.keyed_header(key, states)
    offsets = [0] * key_groups
    for group in sorted({one[0] for one, _ in entries}):
        offsets[group - first] = len(data)
        members = [one for one in entries if one[0][0] == group]
        data += sb.canonical_key_group([(0, members)])
    return sb.canonical(first, offsets, sb.inline(data))


def savepoint(folder: Path, *handles: bytes, **named: Any) -> Path:
    """Write a savepoint of one operator, of a subtask for each handle."""
    tasks = [sb.subtask(index, managed_keyed=one) for index, one in enumerate(handles)]
    one = sb.operator(tasks, parallelism=max(1, len(handles)), uid="a", **named)
    return sb.write(folder / "old", [one])


A = assign_to_key_group("a", 128, STRING)
ENTRY = bytes([A]) + b"\x02a\0", sb.i64(5)


def test_nothing_is_wrong(tmp_path: Path) -> None:
    """With the one that the others below are made of."""
    change_max_parallelism(savepoint(tmp_path, stream([ENTRY])), 64, tmp_path / "new")
    (entry,) = read_savepoint(tmp_path / "new").operators[0].entries()
    assert (entry.key, entry.value) == ("a", 5)


@pytest.mark.parametrize(
    ("handles", "message"),
    [
        (
            [stream([(bytes([A ^ 1]) + b"\x02a\0", sb.i64(5))])],
            "key 'a' of state 'count' is in key",
        ),
        ([stream([(bytes([A]) + b"\0\0", sb.i64(5))])], "a key of state 'count' in key .*is None"),
        ([stream([ENTRY, ENTRY])], "must come once, got key 'a' in state 'count' twice"),
        (
            [stream([ENTRY]), stream([ENTRY])],
            "subtasks 0 and 1 of operator 0+ both have key group",
        ),
        (
            [stream(key_groups=64), stream(first=64, key_groups=64, key=LONGS.snapshot)],
            "operator a cannot be written anew: it has other serializers of keys in one subtask",
        ),
        (
            [stream(key_groups=64), stream(first=64, key_groups=64, states=[TEXT])],
            "it has other serializers of count: VALUE <STRING, STRING> in one subtask",
        ),
        ([stream(states=[sb.state("a", "VALUE", sb.simple("No"))])], None),
        ([stream(states=[COUNT, COUNT])], "the state 'count' is there twice"),
        ([stream([(bytes([A]) + b"\x02a\0", b"")])], None),
    ],
)
def test_damaged(handles: list[bytes], message: str | None, tmp_path: Path) -> None:
    folder = savepoint(tmp_path, *handles)
    if message is None:  # a value is not looked into
        change_max_parallelism(folder, 64, tmp_path / "new")
        return
    refused(folder, message, tmp_path)


def test_a_row_of_another_kind(tmp_path: Path) -> None:
    """Whose hash is that of its kind too, which the job's stream has or has not."""
    key = bytes([5]) + b"\xc0\x02a\0"
    folder = savepoint(tmp_path, stream([(key, sb.i64(5))], key=row_of(STRINGS.snapshot)))
    refused(folder, r"a key of state 'count' .*must be a row of kind \+I, got Row", tmp_path)


def finished(*indexes: int) -> list[bytes]:
    return [sb.i32(-index - 1) for index in indexes]


def test_subtasks_that_are_finished(tmp_path: Path) -> None:
    """With keyed state nothing can move; without it only their number."""
    handle = stream([(b"\x62\x02a\0", sb.i64(5))][:0], first=64, key_groups=64)
    keyed = sb.operator(
        [sb.subtask(1, managed_keyed=handle), *finished(0)], parallelism=2, uid="a"
    )
    folder = sb.write(tmp_path / "old", [keyed])
    refused(folder, "operator a .*has subtasks that are finished, and others", tmp_path)
    with pytest.raises(SavepointError, match="has subtasks that are finished"):
        convert_to_canonical(folder, tmp_path / "new", parallelism=1)
    convert_to_canonical(folder, tmp_path / "same")
    assert read_savepoint(tmp_path / "same").metadata.operators[0].subtasks[0].is_finished


# Arguments


@pytest.mark.parametrize("wrong", [0, -1, 32769, 2**70, 1.5, "128", None, True])
def test_max_parallelisms(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(ParallelismError, match=r"new_max_parallelism must be .*got"):
        change_max_parallelism(HEAP.path, wrong, tmp_path / "new")


@pytest.mark.parametrize("wrong", [0, -1, 257, 1.5, "2", True])
def test_parallelisms(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(ParallelismError, match=r"parallelism must be .*got"):
        change_max_parallelism(HEAP.path, 256, tmp_path / "new", parallelism=wrong)
    if wrong == 257:
        wrong = 129
        with pytest.raises(ParallelismError, match="cannot have parallelism 129 and max"):
            convert_to_canonical(HEAP.path, tmp_path / "new", wrong)
    else:
        with pytest.raises(ParallelismError, match=r"parallelism must be .*got"):
            convert_to_canonical(HEAP.path, tmp_path / "new", wrong)
    assert not list(tmp_path.iterdir())


def test_a_max_parallelism_below_the_parallelism(tmp_path: Path) -> None:
    """Of any operator; but of those without operator state it may be lowered too."""
    with pytest.raises(ParallelismError, match="cannot have parallelism 3 and max parallelism 2"):
        change_max_parallelism(HEAP.path, 2, tmp_path / "new")
    with pytest.raises(ParallelismError, match="offsets cannot have parallelism 3 and max paral"):
        change_max_parallelism(HEAP.path, 2, tmp_path / "new", parallelism=2)
    keyed = ["by-string", "by-int"]
    change_max_parallelism(HEAP.path, 2, tmp_path / "new", parallelism=2, operators=keyed)


def test_operators(tmp_path: Path) -> None:
    for wrong, error, message in (
        (["by-string", "no"], InvalidValueError, "operator must be an operator's uid.*got 'no'"),
        ([""], InvalidValueError, "operator must be an operator's uid.*got ''"),
        (["Sink: Unnamed"], InvalidValueError, "must be one operator by its uid"),
        ("by-string", InvalidTypeError, "operators must be an iterable of names, got 'by-string'"),
        (5, InvalidTypeError, "operators must be an iterable of names, got 5"),
        ([5], InvalidTypeError, "operator must be a str, got 5"),
    ):
        operators: Any = wrong
        with pytest.raises(error, match=message):
            change_max_parallelism(HEAP.path, 256, tmp_path / "new", operators=operators)
    assert not list(tmp_path.iterdir())


def test_an_output_inside(tmp_path: Path) -> None:
    """Also by way of a link, or of the folder's own `_metadata`."""
    folder = savepoint(tmp_path, stream([ENTRY]))
    (tmp_path / "link").symlink_to(folder)
    before = digests(folder)
    for source in (folder, folder / "_metadata", tmp_path / "link", f"file:{folder}"):
        for output in (folder / "new", tmp_path / "link" / "new", folder / "a" / "b" / ".."):
            with pytest.raises(InvalidValueError, match="output must be outside the savepoint"):
                change_max_parallelism(source, 64, output)
    assert digests(tmp_path) == {f"old/{name}": digest for name, digest in before.items()}
    beside = tmp_path / "old-beside"
    change_max_parallelism(folder, 64, beside)
    assert (beside / "_metadata").exists()


def test_what_is_no_savepoint(tmp_path: Path) -> None:
    nothing: Any = None
    with pytest.raises(SavepointError, match="cannot be opened"):
        change_max_parallelism(tmp_path / "nowhere", 64, tmp_path / "new")
    with pytest.raises(InvalidTypeError, match="path must be a str or a path, got None"):
        change_max_parallelism(nothing, 64, tmp_path / "new")
    assert not list(tmp_path.iterdir())


# Damage of any kind


def rekeyed(operator: Operator, max_parallelism: int | None) -> Counter[str] | None:
    """Return the entries under another max parallelism, None where they cannot be read."""
    found: Counter[str] = Counter()
    try:
        key_types = {state.name: state.key_type for state in operator.states}
        for entry in operator.entries():
            key_group = entry.key_group
            key_type = key_types[entry.state]
            if max_parallelism is not None and key_type is not None:
                key_group = assign_to_key_group(entry.key, max_parallelism, key_type)
            found[repr(entry._replace(key_group=key_group, subtask=0, bytes=0))] += 1
    except KeyGroupsError:
        return None
    return found


SAMPLE = 211  # damages for one that the default suite takes


@pytest.mark.long
@pytest.mark.parametrize("name", ["canonical", "sql", "snappy"])
@pytest.mark.parametrize("every", [SAMPLE, pytest.param(3, marks=pytest.mark.slow)])
def test_any_damage(name: str, every: int, tmp_path: Path, record_property: Record) -> None:
    """Each byte changed, each file cut: refused whole, or moved as what is read of it."""
    if name == "snappy":
        pytest.importorskip("cramjam", reason="it is compressed: the extra savepoint")
    folder, new = SMALL[name](tmp_path / name), tmp_path / "new"
    counts: Counter[str] = Counter()
    number = 0
    for path in sorted(folder.iterdir()):
        intact = path.read_bytes()
        for what, damaged in damages(intact, HEADERS.get(name, {}).get(path.name, 0)):
            number += 1
            if number % every:
                continue
            path.write_bytes(damaged)
            message = ""
            try:
                change_max_parallelism(folder, 4096, new)
            except SavepointError as error:
                message = str(error)
            if message:
                assert name in message
                assert [one.name for one in tmp_path.iterdir()] == [name], what
                counts["refused"] += 1
                continue
            counts["moved"] += 1
            pairs = zip(read_savepoint(folder).operators, read_savepoint(new).operators)
            for before, after in pairs:
                moved = 4096 if before.max_parallelism > 1 else None
                assert rekeyed(after, None) == rekeyed(before, moved), (path.name, what)
            shutil.rmtree(new)
        path.write_bytes(intact)
    shown = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    record_property(name, shown)
    print(f"{name}: {shown}")
    assert counts["refused"] > counts["moved"]
