"""`_metadata` of every version, and what is refused in it; `savepoint_bytes` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import changelog, in_streams, inline
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import POINTS
from support.inside.savepoints import (
    ChangelogHandle,
    ChangesHandle,
    KeyedHandle,
    KeyGroupsHandle,
    Metadata,
    OperatorMetadata,
    OperatorStateHandle,
    RawTimersHandle,
    RocksDBHandle,
    StreamHandle,
    SubtaskState,
    read_metadata,
    write_metadata,
    write_operator,
)

from keygroups import KeyGroupRange
from keygroups.errors import SavepointError
from keygroups.savepoint import read_savepoint


def parsed(
    subtasks: Sequence[bytes] = (), *, version: int = 6, properties: bytes = sb.NO_PROPERTIES
) -> Metadata:
    operator = sb.operator(subtasks, version=version, name="a name", uid="a uid", parallelism=4)
    data = sb.metadata([operator], version=version, properties=properties)
    return read_metadata(data, "here/_metadata")


def unread(operator: OperatorMetadata) -> OperatorMetadata:
    """Return an operator as if it were new."""
    subtasks = tuple(replace(subtask, as_read={}) for subtask in operator.subtasks)
    return replace(operator, subtasks=subtasks, as_read={})


@pytest.mark.parametrize("flink", ["1.14.6", "1.17.2", "1.20.5", "2.3.0"])
def test_what_flink_wrote_is_written_again(flink: str) -> None:
    """Versions 3, 4 and 6, with operator state and finished subtasks: the same bytes."""
    canonical = [one for one in POINTS if one.flink == flink and one.kind == "canonical"]
    for written in canonical:
        data = (written.path / "_metadata").read_bytes()
        metadata = read_metadata(data, written.name)
        operators = (write_operator(unread(one), metadata.version) for one in metadata.operators)
        assert write_metadata(metadata, operators) == data, written
    assert len(canonical) >= 3


def test_what_was_read_is_written_as_it_was() -> None:
    """Of every format: RocksDB's, ForSt's, of changelogs, merged files, channels."""
    points = [*POINTS, *JOB_POINTS]
    for written in points:
        data = (written.path / "_metadata").read_bytes()
        metadata = read_metadata(data, written.name)
        operators = [write_operator(one, metadata.version) for one in metadata.operators]
        assert write_metadata(metadata, operators) == data, written
    assert len(points) > 100


@pytest.mark.parametrize(
    "field", ["managed_operator", "raw_operator", "managed_keyed", "raw_keyed"]
)
def test_state_in_files_elsewhere_is_written_as_it_was(field: str) -> None:
    """A handle with an absolute path, of each field: new ones have none."""
    file = sb.absolute("f", 3)
    keyed, of_operator = sb.native(3, [-1, 0], file), sb.operator_state([("s", 0, [0])], file)
    fields: dict[str, Any] = {field: keyed if "keyed" in field else of_operator}
    data = sb.metadata([sb.operator([sb.subtask(**fields)])])
    metadata = read_metadata(data, "x")
    operators = [write_operator(operator, metadata.version) for operator in metadata.operators]
    assert write_metadata(metadata, operators) == data


def subtask_of(data: bytes, *, version: int = 6) -> SubtaskState:
    (operator,) = parsed([data], version=version).operators
    (subtask,) = operator.subtasks
    return subtask


def test_raw_keyed_state_is_of_key_groups() -> None:
    """Flink: StreamTaskStateInitializerImpl.transform takes nothing but a KeyGroupsStateHandle."""
    raw = subtask_of(sb.subtask(raw_keyed=sb.native(3, [-1, 0], sb.inline(b"abc")))).raw_keyed
    stream = StreamHandle(3, b"abc", name="inline")
    assert raw == RawTimersHandle(KeyGroupRange(3, 4), sb.i64(-1, 0), stream, is_canonical=False)
    files = sb.rocksdb(0, 128, sb.inline(b""), [])
    with pytest.raises(SavepointError, match="raw keyed state in a RocksDBHandle"):
        parsed([sb.subtask(raw_keyed=files)])


def keyed(handle: bytes) -> KeyedHandle:
    found = subtask_of(sb.subtask(managed_keyed=handle)).managed_keyed
    assert found is not None
    return found


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_versions(version: int) -> None:
    """Name and uid from 5 on, properties from 4 on, the coordinator from 3 on."""
    tasks = [sb.subtask(index, version=version) for index in (2, 0)]
    metadata = parsed(tasks, version=version)
    assert (metadata.version, metadata.checkpoint_id, metadata.kind) == (version, 7, None)
    (operator,) = metadata.operators
    assert (operator.name, operator.uid) == (("a name", "a uid") if version >= 5 else ("", ""))
    assert (operator.parallelism, operator.max_parallelism) == (4, 128)
    assert [subtask.index for subtask in operator.subtasks] == [2, 0]


def test_fully_finished() -> None:
    operator = sb.operator([])[:-4] + sb.i32(-1)
    (found,) = read_metadata(sb.metadata([operator]), "x").operators
    assert found.is_fully_finished
    assert found.subtasks == ()


def test_finished_subtasks() -> None:
    """An index -(index)-1 and nothing after it."""
    (operator,) = parsed([sb.i32(-3), sb.subtask(0)]).operators
    assert [(one.index, one.is_finished) for one in operator.subtasks] == [(2, True), (0, False)]
    (operator,) = parsed([sb.i32(-1), sb.subtask(1)]).operators
    assert [(one.index, one.is_finished) for one in operator.subtasks] == [(0, True), (1, False)]


def test_master_states_and_coordinators() -> None:
    operator = sb.operator([], coordinator=sb.inline(b"state"))
    metadata = read_metadata(sb.metadata([operator], master_states=[b"abc", b""]), "x")
    assert len(metadata.operators) == 1


@pytest.mark.parametrize(
    ("pos", "message"),
    [
        (0, "offset 0: this is not the _metadata"),
        (20, "offset 24: mark of a master state [0-9]+ is not known"),
    ],
)
def test_each_bit_of_a_mark_counts(pos: int, message: str) -> None:
    data = sb.metadata([], master_states=[b"abc"])
    for bit in range(32):
        flipped = bytearray(data)
        flipped[pos + bit // 8] ^= 1 << bit % 8
        with pytest.raises(SavepointError, match=message):
            read_metadata(bytes(flipped), "x")


STREAM = sb.inline(b"x")
PLAIN = sb.i32(0, 1, 2, 2) + sb.i64(5, 6) + sb.i64(7) + STREAM
MERGED = sb.i32(0) + sb.i64(3) + STREAM + sb.i32(24) + sb.i32(1, 1, 2) + sb.i64(3) + sb.i32(0)


def test_channels() -> None:
    """Before version 6 without a type, from it on plain (1, 2) and merged (3, 4)."""
    older = sb.subtask(3, inputs=[PLAIN], outputs=[PLAIN, PLAIN], version=5)
    assert subtask_of(older, version=5).index == 3
    inputs, outputs = [b"\1" + PLAIN, b"\3" + MERGED], [b"\2" + PLAIN, b"\4" + MERGED]
    assert subtask_of(sb.subtask(3, inputs=inputs, outputs=outputs)).index == 3


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (sb.inline(b"abc"), StreamHandle(3, b"abc")),
        (sb.absolute("file:/a/b", 9), StreamHandle(9, path="file:/a/b")),
        (sb.relative("b", 9), StreamHandle(9, path="b", is_relative=True)),
        (sb.segment("s3://a/b", 5, 9), StreamHandle(9, path="s3://a/b", is_segment=True, start=5)),
        (sb.EMPTY_SEGMENT, StreamHandle(0, b"")),
    ],
)
def test_streams(stream: bytes, expected: StreamHandle) -> None:
    handle = keyed(sb.rocksdb(0, 1, stream))
    assert isinstance(handle, RocksDBHandle)
    assert handle.meta == expected


def test_keyed_handles() -> None:
    stream = sb.inline(bytes(20))
    for write, is_canonical in ((sb.canonical, True), (sb.native, False), (sb.older, False)):
        handle = keyed(write(3, [0, 5, 7], stream))
        assert isinstance(handle, KeyGroupsHandle)
        assert handle.key_groups == KeyGroupRange(3, 5)
        assert handle.offsets == (0, 5, 7)
        assert handle.is_canonical is is_canonical
    for code in (5, 11):
        files = [("1.sst", sb.relative("x", 4))]
        found = keyed(sb.rocksdb(2, 4, stream, files, [("CURRENT", stream)], code=code))
        assert isinstance(found, RocksDBHandle)
        assert found.key_groups == KeyGroupRange(2, 5)
        assert [name for name, _ in found.shared] == ["1.sst"]
        assert [name for name, _ in found.private] == ["CURRENT"]


def test_no_key_groups() -> None:
    assert keyed(sb.canonical(0, [], STREAM)).key_groups == KeyGroupRange.EMPTY


@pytest.mark.parametrize("code", [8, 14])
@pytest.mark.parametrize("change", [9, 10, 13])
def test_changelog(code: int, change: int, tmp_path: Path) -> None:
    """How large the state is is known: six bytes of changes after four that were materialized."""
    materialized = sb.native(0, [1], sb.inline(b"abcd"))
    two = [(0, b"abc"), (5, b"def")]
    changes = inline(two) if change == 9 else in_streams([(7, sb.absolute("f", 99))], change)
    handle = changelog([materialized, b"\0"], [changes, b"\0"], code)
    found = keyed(handle)
    assert isinstance(found, ChangelogHandle)
    assert found.materialized == (keyed(materialized),)
    if change == 9:
        assert found.changes == (ChangesHandle(6, (), tuple(two)),)
    else:
        assert found.changes == (ChangesHandle(6, ((7, StreamHandle(99, path="f")),)),)
    folder = sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=handle)])])
    (operator,) = read_savepoint(folder).operators
    assert operator.subtasks[0].bytes == 10


def test_where_changes_end() -> None:
    """Where others of their file start, or it ends; only one of these files is of several."""
    several, single = sb.absolute("f", 300), sb.absolute("g", 50)
    places = [(1, several), (100, several), (1, single)]
    found = keyed(changelog([], [in_streams([place]) for place in places]))
    assert isinstance(found, ChangelogHandle)
    assert [changes.ends for changes in found.changes] == [(100,), (300,), (50,)]


def test_operator_states() -> None:
    states = [("a", 0, [1, 2]), ("b", 1, []), ("c", 2, [3])]
    expected = (("a", "SPLIT_DISTRIBUTE", (1, 2)), ("b", "UNION", ()), ("c", "BROADCAST", (3,)))
    handle = sb.operator_state(states, STREAM)
    subtask = subtask_of(sb.subtask(managed_operator=handle, raw_operator=handle))
    assert subtask.managed_operator == OperatorStateHandle(expected, StreamHandle(1, b"x"))
    assert subtask.raw_operator == subtask.managed_operator
    merged = b"\x11" + handle[1 : -len(STREAM)] + sb.utf("d") * 2
    found = subtask_of(sb.subtask(managed_operator=merged + b"\0" + STREAM)).managed_operator
    assert found == subtask.managed_operator
    nothing = OperatorStateHandle(expected, StreamHandle(0, b""))
    for stream in (b"\0", sb.EMPTY_SEGMENT):
        task = sb.subtask(managed_operator=merged + b"\1" + stream)
        assert subtask_of(task).managed_operator == nothing


def test_no_operator_state() -> None:
    assert subtask_of(sb.subtask(managed_operator=b"\0")).managed_operator is None


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        (java.text("no object"), None),
        (java.instance("P", [("L", "checkpointType", java.NULL)]), None),
        (
            java.instance("P", [("L", "checkpointType", java.instance("T", []))]),
            "checkpoint",
        ),
        (
            java.instance(
                "P",
                [
                    (
                        "L",
                        "checkpointType",
                        java.instance("T", [("L", "formatType", java.enum("F", "NATIVE"))]),
                    )
                ],
            ),
            "native savepoint",
        ),
    ],
)
def test_kinds(properties: bytes, kind: str | None) -> None:
    assert parsed(properties=java.stream(properties)).kind == kind


def nested(depth: int) -> bytes:
    return changelog([nested(depth - 1)] if depth else [], [])


def broken(**changed: bytes) -> bytes:
    return sb.metadata([sb.operator([sb.subtask(**changed)])])  # type: ignore[arg-type]


BAD = [
    (b"", "this is not the _metadata"),
    (b"\0" * 20, "this is not the _metadata"),
    (sb.metadata([], version=1), "version of _metadata 1 is not known, only 2, 3, 4, 5, 6"),
    (sb.metadata([], version=7), "version of _metadata 7 is not known"),
    (sb.metadata([])[:17], "4 bytes were to follow, and 1 are left"),
    (sb.metadata([]) + b"ab", "2 bytes are left after the end"),
    (sb.metadata([], properties=b"abcd"), "a Java object stream was to follow"),
    (
        sb.metadata([], master_states=[b"x"]).replace(b"\x16\x96", b"\0\0"),
        "mark of a master state",
    ),
    (sb.metadata([sb.operator([])])[:20] + b"\x7f\xff\xff\xff", "a count of 2147483647 cannot be"),
    (sb.metadata([])[:20] + sb.i32(-1), "a count of -1 cannot be"),
    (sb.metadata([sb.operator([], parallelism=0)]), "parallelism 0 and max parallelism 128"),
    (sb.metadata([sb.operator([], parallelism=129)]), "cannot have parallelism 129"),
    (sb.metadata([sb.operator([], max_parallelism=32769)]), "max parallelism 32769"),
    (sb.metadata([sb.operator([sb.subtask(1)])]), "subtask 1 cannot be, with parallelism 1"),
    (sb.metadata([sb.operator([sb.i32(-9)])]), "subtask 8 cannot be"),
    (
        sb.metadata(
            [sb.operator([sb.i32(0) + sb.i64(0) + sb.i32(1)], version=2)],
            version=2,
        ),
        "number of legacy states 1 is not known, only 0",
    ),
    (broken(inputs=[b"\5" + PLAIN]), "channel handle 5 is not known"),  # type: ignore[arg-type]
    (broken(managed_keyed=b"\x63"), "keyed state handle 99 is not known"),
    (broken(managed_operator=b"\5"), "operator state handle 5 is not known, only 0, 4, 17"),
    (broken(managed_operator=sb.operator_state([("a", 3, [])], STREAM)), "mode 3 is not known"),
    (broken(managed_operator=sb.operator_state([], b"\0")), "a stream handle was to come"),
    (broken(managed_operator=sb.operator_state([], b"\x09")), "stream handle 9 is not known"),
    (broken(managed_keyed=sb.canonical(0, [1], sb.absolute("f", -5))), "a size or offset of -5"),
    (broken(managed_keyed=sb.rocksdb(0, 129, STREAM)), "129 key groups from 0 on cannot be"),
    (broken(managed_keyed=sb.rocksdb(-1, 2, STREAM)), "2 key groups from -1 on cannot be"),
    (broken(managed_keyed=sb.rocksdb(0, -1, STREAM)), "-1 key groups from 0 on cannot be"),
    (broken(managed_keyed=sb.canonical(0, [2], STREAM)), "an offset of 2 in 1 bytes, after 0"),
    (broken(managed_keyed=sb.canonical(0, [-1], STREAM)), "an offset of -1 in 1 bytes"),
    (broken(managed_keyed=sb.native(0, [-2], STREAM)), "an offset of -2 in 1 bytes"),
    (
        broken(managed_keyed=sb.native(0, [3, 2], sb.inline(bytes(9)))),
        "an offset of 2 in 9 bytes, after 3",
    ),
    (
        broken(managed_keyed=sb.canonical(0, [5, 0, 3], sb.inline(bytes(9)))),
        "an offset of 3 in 9 bytes, after 5",
    ),
    *(
        (
            broken(managed_keyed=sb.native(0, offsets, sb.inline(bytes(9)))),
            f"an offset of {offsets[-1]} in 9 bytes, after {offsets[0]}",
        )
        for offsets in ([9, 10], [3, 3, 2])
    ),
    (broken(managed_keyed=nested(12)), "keyed state handles nest too deep"),
    (
        sb.metadata([sb.operator([], uid="ab")]).replace(b"ab", b"\xff\xfe"),
        "not in modified UTF-8",
    ),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_refused(number: int) -> None:
    data, message = BAD[number]
    with pytest.raises(SavepointError, match=rf"here/_metadata, offset \d+: .*{message}"):
        read_metadata(data, "here/_metadata")


@pytest.mark.parametrize(
    ("data", "wrong", "message"),
    [
        (broken(managed_operator=sb.operator_state([], b"\x63")), b"\x63", "stream handle 99"),
        (broken(managed_keyed=b"\x63"), b"\x63", "keyed state handle 99"),
        (sb.metadata([], properties=b"abcd"), b"abcd", "a Java object stream"),
        (sb.metadata([], properties=java.stream(b"\x79")), b"\x79", "type code 0x79"),
        (sb.metadata([])[:20] + sb.i32(-7), sb.i32(-7), "a count of -7"),
    ],
)
def test_what_is_wrong_is_found_where_it_begins(data: bytes, wrong: bytes, message: str) -> None:
    with pytest.raises(SavepointError, match=f"offset {data.index(wrong)}: {message}"):
        read_metadata(data, "x")


def test_modified_utf_8() -> None:
    """NUL in two bytes, a character beyond 16 bits as two surrogates of three bytes each."""
    for text in ("a", "\0", "\u4e2d", "\U0001f600", "\ud800"):
        operator = sb.operator([], uid=text, name=text)
        (found,) = read_metadata(sb.metadata([operator]), "x").operators
        assert (found.uid, found.name) == (text, text)
