"""Compressed operator state whose elements do not start where `_metadata` says (FLINK-33863).

Flink 1.18.0 and 1.18.1 say for each element of a list where the last chunk before it ended. A
recorded point has it; here are lists of several chunks, and what is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import corpus
from support.bytes.sst_bytes import varint
from support.inside.savepoints import OutputFolder, has_lost_offsets

from keygroups.errors import SavepointError
from keygroups.savepoint import (
    DELETE,
    Savepoint,
    SavepointEditor,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)

cramjam = pytest.importorskip("cramjam", reason="the state is compressed: the extra savepoint")

REAL = "1.18.0-hashmap-compressed-checkpoint"
KEYS = ["k0", "k1", "k2", "ключ"]
STREAM_START = b"\xff\6\0\0sNaPpY"
LONG, STRING = sb.simple("Long"), sb.simple("String")
OBJECT = sb.snapshot(
    f"{sb.JAVA}kryo.KryoSerializerSnapshot",
    2,
    sb.utf("java.lang.Object") + sb.optional_map({}) * 3,
)
UNKNOWN = sb.snapshot("a.B", 1, b"of the job")


def lists(savepoint: Savepoint) -> list[tuple[str, object]]:
    return [
        (state.state, state.elements)
        for operator in savepoint.operators
        for state in operator.operator_state()
    ]


def info(name: str, snapshot: bytes) -> bytes:
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    return sb.meta_info(name, 1, options, {"VALUE_SERIALIZER": snapshot})


def written(
    folder: Path,
    chunks: Sequence[bytes] = (sb.i64(1), sb.i64(2) + sb.i64(3)),
    starts: Sequence[int] = (0, 0, 1),
    *,
    snapshot: bytes = LONG,
    is_compressed: bool = True,
    other: Sequence[int] = (),
) -> Path:
    """Write an operator with a list `a` of elements that start at chunks, by their numbers.

    Those of another list `b` start at the same chunks; none where it is empty.
    """
    header = sb.operator_header(
        [info("a", snapshot), info("b", LONG)], [], compressed=is_compressed
    )
    data, places = header + (STREAM_START if is_compressed else b""), []
    for chunk in chunks:
        places.append(len(data))
        data += sb.snappy_chunk(chunk) if is_compressed else chunk
    states = [("a", 0, [places[start] for start in starts])]
    if other:
        states.append(("b", 0, [places[start] for start in other]))
    handle = sb.operator_state(states, sb.inline(data))
    return sb.write(folder, [sb.operator([sb.subtask(managed_operator=handle)])])


def test_a_real_point() -> None:
    savepoint = read_savepoint(corpus("versions") / REAL)
    numbers = savepoint.operator("numbers")
    assert {state.state: state.elements for state in numbers.operator_state()} == {
        "offsets": [1000, 1001, 1002, 1003],
        "names": KEYS,
        "rules": {key: number for number, key in enumerate(KEYS)},
    }
    ((_, handle, _),) = numbers._operator_state_handles()
    assert has_lost_offsets(numbers._files, handle, numbers._context)
    assert [offsets for state, _, offsets in handle.states if state == "offsets"] == [(654,) * 4]


@pytest.mark.parametrize("write", ["convert", "change", "edit"])
def test_a_real_point_is_written_so_that_flink_restores_it(write: str, tmp_path: Path) -> None:
    path = corpus("versions") / REAL
    savepoint = read_savepoint(path)
    if write == "convert":
        convert_to_canonical(path, tmp_path / "new")
    elif write == "change":
        change_max_parallelism(path, 64, tmp_path / "new")
    else:
        with SavepointEditor(savepoint, tmp_path / "new") as editor:
            editor.operator("states").delete_keys(["k0"])
    new = read_savepoint(tmp_path / "new")
    assert lists(new) == lists(savepoint)
    for operator in new.operators:
        for _, handle, _ in operator._operator_state_handles():
            assert not has_lost_offsets(operator._files, handle, operator._context)


def test_a_real_point_is_edited(tmp_path: Path) -> None:
    savepoint = read_savepoint(corpus("versions") / REAL)
    with SavepointEditor(savepoint, tmp_path / "new") as editor:
        numbers = editor.operator("numbers")
        numbers.map_operator_state(
            "offsets", lambda one: DELETE if one.value == 1001 else one.value + 1
        )
    edited = read_savepoint(tmp_path / "new").operator("numbers")
    assert {state.state: state.elements for state in edited.operator_state()} == {
        "offsets": [1001, 1003, 1004],
        "names": KEYS,
        "rules": {key: number for number, key in enumerate(KEYS)},
    }


@pytest.mark.parametrize("chunks", [1, 2, 3, 24])
def test_elements_in_any_chunks(chunks: int, tmp_path: Path) -> None:
    """A chunk may end within an element: those that follow start where it ended."""
    data = b"".join(map(sb.i64, range(3)))
    size = 24 // chunks
    cut = [data[start : start + size] for start in range(0, 24, size)]
    path = written(tmp_path / "savepoint", cut, [0, 0, chunks // 2])
    assert lists(read_savepoint(path)) == [("a", [0, 1, 2])]
    convert_to_canonical(path, tmp_path / "new")
    assert lists(read_savepoint(tmp_path / "new")) == [("a", [0, 1, 2])]


def test_a_large_list_is_written_to_a_file(tmp_path: Path) -> None:
    chunks = [b"".join(map(sb.i64, range(start, start + 8_000))) for start in (0, 8_000)]
    path = written(tmp_path / "savepoint", chunks, [0] * 8_001 + [1] * 7_999)
    convert_to_canonical(path, tmp_path / "new")
    assert lists(read_savepoint(tmp_path / "new")) == [("a", [*range(16_000)])]
    names = {one.name for one in (tmp_path / "new").iterdir()}
    assert len(names) == 2
    assert "_metadata" in names


CHUNK = 1 << 16
TEXT = [letter * 100_000 for letter in "abc"]


def chunks_of(texts: Sequence[str]) -> tuple[list[bytes], list[int]]:
    """The chunks of some texts, and the one at whose start each is said to be."""
    lengths = [varint(len(text) + 1) + text.encode() for text in texts]
    data = b"".join(lengths)
    starts = [sum(map(len, lengths[:place])) // CHUNK for place in range(len(texts))]
    return [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)], starts


@pytest.mark.parametrize("texts", [TEXT, TEXT[:2], [*TEXT, "d" * 300_000, "e"]])
def test_large_elements(texts: list[str], tmp_path: Path) -> None:
    """Each is above 64 kB, so that no two are said to start at one place."""
    chunks, starts = chunks_of(texts)
    path = written(tmp_path / "savepoint", chunks, starts, snapshot=STRING)
    assert lists(read_savepoint(path)) == [("a", texts)]
    convert_to_canonical(path, tmp_path / "new")
    new = read_savepoint(tmp_path / "new")
    assert lists(new) == [("a", texts)]
    [operator] = new.operators
    [(_, handle, _)] = operator._operator_state_handles()
    assert not has_lost_offsets(operator._files, handle, operator._context)
    assert (
        handle.stream != read_savepoint(path).operators[0]._operator_state_handles()[0][1].stream
    )


@pytest.mark.parametrize("size", [CHUNK - 3, 3_000])
def test_large_elements_that_are_where_it_is_said(size: int, tmp_path: Path) -> None:
    """Those of Flink 1.18.2 and newer, also where each fills its chunks."""
    texts = ["a" * size, "b" * size, "c"]
    encoded = [varint(len(text) + 1) + text.encode() for text in texts]
    assert (len(encoded[0]) == CHUNK) is (size > CHUNK // 2)
    path = written(tmp_path / "savepoint", encoded, range(3), snapshot=STRING)
    operator = read_savepoint(path).operators[0]
    [(_, handle, _)] = operator._operator_state_handles()
    assert not has_lost_offsets(operator._files, handle, operator._context)
    assert lists(read_savepoint(path)) == [("a", texts)]


def test_large_elements_that_compress_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snappy makes some 3,000 bytes of a chunk of one letter: what starts there is no element."""

    def compressed(data: bytes) -> bytes:
        return bytes(cramjam.snappy.compress(data)).removeprefix(STREAM_START)

    assert 2_048 < len(compressed(b"a" * CHUNK)) < 4_096
    monkeypatch.setattr(sb, "snappy_chunk", compressed)
    chunks, starts = chunks_of(TEXT)
    path = written(tmp_path / "savepoint", chunks, starts, snapshot=STRING)
    assert lists(read_savepoint(path)) == [("a", TEXT)]


def is_lost(path: Path) -> bool:
    [operator] = read_savepoint(path).operators
    [(_, handle, _)] = operator._operator_state_handles()
    return has_lost_offsets(operator._files, handle, operator._context)


def test_what_is_no_whole_chunk_is_no_sign_of_lost_offsets(tmp_path: Path) -> None:
    """The first element fills its chunk, and is damaged; the second fills none."""
    first = (b"\5aaaa").ljust(CHUNK, b"b")
    path = written(tmp_path, [first, bytes(3_000), b"\2a"], range(3), snapshot=STRING)
    assert not is_lost(path)
    with pytest.raises(SavepointError, match=f"a STRING of 5 bytes in {CHUNK}"):
        lists(read_savepoint(path))


def test_elements_of_two_whole_chunks(tmp_path: Path) -> None:
    text = "a" * (2 * CHUNK - 3)
    encoded = varint(len(text) + 1) + text.encode()
    assert len(encoded) == 2 * CHUNK
    halves = [encoded[:CHUNK], encoded[CHUNK:]]
    path = written(tmp_path, [*halves, *halves, b"\2a"], [0, 2, 4], snapshot=STRING)
    assert not is_lost(path)
    assert lists(read_savepoint(path)) == [("a", [text, text, "a"])]


@pytest.mark.parametrize(
    ("starts", "first", "chunks", "arguments"),
    [
        ([0, 0, 1, 1], 0, [sb.i64(1), sb.i64(2)], {"is_compressed": False}),
        ([0, 1, 1, 2, 2], 1, [sb.i64(1), sb.i64(2), sb.i64(3)], {"is_compressed": False}),
        ([0, 1, 2], 1, [bytes(CHUNK)] * 3, {"snapshot": UNKNOWN}),
    ],
)
def test_the_error_names_the_first_offset_that_is_lost(
    starts: list[int], first: int, chunks: list[bytes], arguments: dict[str, Any], tmp_path: Path
) -> None:
    path = written(tmp_path, chunks, starts, **arguments)
    [operator] = read_savepoint(path).operators
    [(_, handle, _)] = operator._operator_state_handles()
    [(_, _, offsets)] = handle.states
    with pytest.raises(SavepointError, match=f", offset {offsets[starts.index(first)]}: "):
        lists(read_savepoint(path))


def test_one_of_two_lists_has_lost_its_offsets(tmp_path: Path) -> None:
    """Another list, of one element behind it, has not."""
    chunks, starts = chunks_of(TEXT)
    other = [len(chunks)]
    path = written(tmp_path / "s", [*chunks, sb.i64(7)], starts, snapshot=STRING, other=other)
    savepoint = read_savepoint(path)
    assert lists(savepoint) == [("a", TEXT), ("b", [7])]
    [operator] = savepoint.operators
    [(_, handle, _)] = operator._operator_state_handles()
    assert has_lost_offsets(operator._files, handle, operator._context)


def test_elements_of_half_a_chunk_are_where_it_is_said(tmp_path: Path) -> None:
    """They are no whole chunks, so that those that only the job reads are known as well."""
    halves = [bytes(CHUNK // 2), b"a" * (CHUNK // 2)]
    path = written(tmp_path / "savepoint", halves, range(2), snapshot=UNKNOWN)
    assert lists(read_savepoint(path)) == [("a", halves)]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "only the job can tell": (
        {"snapshot": UNKNOWN},
        r"Flink 1\.18\.0 and 1\.18\.1 do not say .* \(FLINK-33863\), and of 'a' only the job's",
    ),
    "only the job can tell of large ones": (
        {"snapshot": UNKNOWN, "chunks": [bytes(CHUNK), bytes(CHUNK)], "starts": [0, 1]},
        r"Flink 1\.18\.0 and 1\.18\.1 do not say .* \(FLINK-33863\), and of 'a' only the job's",
    ),
    "only the job can tell of objects of Kryo": (
        {"snapshot": OBJECT, "chunks": [b"\1\0a.\xc2" + bytes(20)], "starts": [0, 0]},
        r"Flink 1\.18\.0 and 1\.18\.1 do not say .* only the job's classes can tell \(an object",
    ),
    "not compressed": ({"is_compressed": False}, "two elements of operator state start here"),
    "of two states": ({"other": [0]}, "two elements of operator state start here"),
    "among those of another state": (
        {"starts": [0, 0, 2], "other": [1], "chunks": [sb.i64(1), sb.i64(2), sb.i64(3)]},
        "two elements of operator state start here",
    ),
    "more bytes": ({"starts": [0, 0]}, "the elements of 'a' end after 16 bytes of 24"),
    "too few bytes": ({"starts": [0, 0, 1, 1]}, "no element of 'a': "),
    "no such value": (
        {"snapshot": sb.list_of(LONG), "chunks": [sb.i32(-1, 0)], "starts": [0, 0]},
        "no element of 'a': ",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_is_copied(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, message = REFUSED[name]
    path = written(tmp_path / "savepoint", **options)
    savepoint = read_savepoint(path)
    with pytest.raises(SavepointError, match=rf"_metadata.*, offset \d+: {message}"):
        lists(savepoint)
    with pytest.raises(SavepointError, match=message):
        convert_to_canonical(path, tmp_path / "new")
    monkeypatch.setattr(OutputFolder, "create", None)  # Nobody may call it.
    with (
        pytest.raises(SavepointError, match=message),
        SavepointEditor(savepoint, tmp_path / "edited"),
    ):
        pass
    for folder in ("new", "edited"):
        assert not (tmp_path / folder).exists() or not [*(tmp_path / folder).iterdir()]
