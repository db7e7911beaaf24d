"""The bounds of what connectors wrote: each count, and the end of each frame in another one.

The bytes are put together as the public source of the connectors writes them, which the modules
of their layouts name: the least element of each count is written as DataOutput and the
connectors' own serializers do it for empty texts, sets and flags that are not set.
"""

from __future__ import annotations

import ast
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from support.bytes.connector_bytes import (
    ARN,
    COMMITTABLES,
    HEX,
    JAVA,
    JOB,
    LSN,
    MYSQL_STREAM,
    NO,
    NULL,
    OFFSET,
    STREAM,
    TOPIC,
    YES,
    as_json,
    i32,
    i64,
    paimon_row,
    texts,
)
from support.bytes.sink_bytes import COMMITTER, WRITER, sink
from support.bytes.source_bytes import framed, versioned
from support.inside.savepoints import connector_committables, connector_layouts, split_layouts
from support.inside.serializers import Cursor

import keygroups
from keygroups.errors import SavepointError
from keygroups.savepoint import KafkaWriterState, UnknownWriterState

LAYOUT_OF = {layout.source: layout for layout in connector_layouts.LAYOUTS}
SOURCES = Path(keygroups.__file__).parent / "savepoint"
MODULES = sorted(path for name in ("_sources", "_sinks") for path in (SOURCES / name).glob("*.py"))
FORWARDERS = {"unordered", "_inline"}  # whose callers say how large an element is
MANY = 200  # elements, more than what follows them has bytes

Read = Callable[[bytes, Path], object]


def split(name: str, version: int) -> Read:
    return lambda data, _: split_layouts.split_of(LAYOUT_OF[name], version, data, 0, "file")


def enumerator(name: str, version: int) -> Read:
    layout = LAYOUT_OF[name]
    return lambda data, _: split_layouts.enumerator_of(layout, (version, data), "file")


def committable(version: int) -> Read:
    read = connector_committables.read_connector_committable
    return lambda data, _: read(version, Cursor(data, "file"))


def paimon(version: int) -> Read:
    return lambda data, _: connector_committables.read_paimon(version, Cursor(data, "file"))


def manifests(data: bytes, _: Path) -> object:
    return connector_committables.read_manifests(5, Cursor(versioned(2, data), "file"))


def writer(version: int) -> Read:
    def read(data: bytes, folder: Path) -> object:
        [state] = sink(folder, [(WRITER, versioned(version, data))]).sink_state().writers
        if isinstance(state, UnknownWriterState):
            raise SavepointError("the state of no writer")
        return state

    return read


def committer(data: bytes, folder: Path) -> object:
    return sink(folder, [(COMMITTER, versioned(1, data))]).sink_state()


# --- counts -------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """A count, its least element, and the bytes around them.

    No element is of less than `size` bytes; its own is larger where the connector has more in
    each than is looked at before the elements are read.
    """

    read: Read
    before: bytes
    size: int
    element: bytes
    after: bytes = b""
    between: bytes = b""  # the count and its elements


BUCKET = struct.pack(">i", 0x1E764B79) + versioned(1, framed(b"b", "<")) + texts("p") + i64(5) + NO
CDC_BEGIN = i32(2) + texts("stream-split", "") + NO + NO
LEAST_CHUNK = framed(i32(1) + texts("", "", "", "", "") + NO + i32(0))
LEAST_PULSAR = texts("t") + i32(0, 0, 0) + framed(JAVA) + NO + NO
LEAST_MONGODB = i32(1) + texts("", "", "", "{}", "{}", "{}") + i32(0)
LEAST_JDBC = texts("", "") + framed(NULL) * 2
LEAST_ICEBERG = framed(i32(0) + i64(0) + i32(1) + framed(b"{}"))
LEAST_PAIMON = i64(0) + YES + i32(0, 10, 0)
CASES: dict[str, Counted] = {
    "chunks of MySQL": Counted(
        split("MySQL CDC", 2), MYSQL_STREAM + NO + NO, 9, texts("", "", "", "") + NO, i32(0)
    ),
    "tables of MySQL": Counted(
        split("MySQL CDC", 1), MYSQL_STREAM + NO + NO + i32(0), 4, texts("", "")
    ),
    "chunks of CDC": Counted(
        split("CDC", 3), CDC_BEGIN, 11, texts("", "", "", "", "") + NO, i32(0, 0)
    ),
    "tables of CDC": Counted(split("CDC", 3), CDC_BEGIN + i32(0), 6, texts("") + i32(0), i32(0)),
    "checkpoints of CDC": Counted(
        enumerator("CDC", 7), i32(5, 1, 0, 0, 0, 0, 0, 0) + NO + i32(0), 10, texts("") + i64(0)
    ),
    "processed tables": Counted(
        enumerator("CDC", 3), i32(3, 1), 2, texts(""), i32(0, 0, 0) + NO + i32(0) + NO
    ),
    "chunks that no reader has": Counted(
        enumerator("CDC", 3), i32(3, 1, 0), 4, LEAST_CHUNK, i32(0, 0) + NO + i32(0) + NO
    ),
    "assigned chunks": Counted(
        *(enumerator("CDC", 3), i32(3, 1, 0, 0), 6, texts("") + LEAST_CHUNK),
        i32(0) + NO + i32(0) + NO,
    ),
    "offsets of chunks": Counted(
        enumerator("CDC", 3), i32(3, 1, 0, 0, 0), 3, texts("") + NO, NO + i32(0) + NO
    ),
    "remaining tables": Counted(
        enumerator("CDC", 3), i32(3, 1, 0, 0, 0, 0) + NO, 2, texts(""), NO
    ),
    "parents of a shard": Counted(
        split("Kinesis", 1), texts(ARN, "s", "LATEST") + NO, 2, texts(""), texts("", "")
    ),
    "shards": Counted(
        *(enumerator("Kinesis", 0), NO, 4, framed(texts(ARN, "s", "LATEST") + NO)),
        between=i32(0),
    ),
    "children of a shard": Counted(
        split("DynamoDB Streams", 2), STREAM + NO + NO + NO, 7, texts("", "", "") + NO
    ),
    "ranges": Counted(split("Pulsar", 2), TOPIC, 8, i32(0, 0), framed(JAVA) + NO + NO),
    "partitions of one range": Counted(
        enumerator("Pulsar", 1), b"", 14, texts("t") + i32(0, 0, 0)
    ),
    "partitions": Counted(enumerator("Pulsar", 3), b"", 10, texts("t") + i32(0, 0)),
    "splits of Pulsar": Counted(enumerator("Pulsar", 0), i32(0), 22, LEAST_PULSAR, i32(0, 0) + NO),
    "shared splits": Counted(enumerator("Pulsar", 0), i32(0, 0), 8, i32(0, 0), i32(0) + NO),
    "readers of Pulsar": Counted(enumerator("Pulsar", 0), i32(0, 0, 0), 8, i32(0, 0), NO),
    "topics of a reader": Counted(enumerator("Pulsar", 0), i32(0, 0, 0, 1, 0), 2, texts(""), NO),
    "collections": Counted(enumerator("MongoDB", 0), b"", 2, texts(""), i32(0, 0, 0) + NO),
    "splits of MongoDB": Counted(
        enumerator("MongoDB", 0), i32(0, 0), 20, LEAST_MONGODB, i32(0) + NO
    ),
    "assigned splits of MongoDB": Counted(
        enumerator("MongoDB", 0), i32(0, 0, 0), 22, texts("") + LEAST_MONGODB, NO
    ),
    "splits of JDBC": Counted(
        enumerator("JDBC", 0), b"", 12, LEAST_JDBC, i32(0, 0) + framed(NULL)
    ),
    "tasks of Iceberg 2": Counted(split("Iceberg", 2), i32(0) + i64(0), 2, texts("{}")),
    "tasks of Iceberg 3": Counted(split("Iceberg", 3), i32(0) + i64(0), 4, framed(b"{}")),
    "splits of Iceberg": Counted(
        enumerator("Iceberg", 1), NO + i32(3), 6, LEAST_ICEBERG + texts("ASSIGNED")
    ),
    "counts of splits": Counted(enumerator("Iceberg", 2), NO + i32(3, 0), 4, i32(0)),
    "splits of Paimon": Counted(
        enumerator("Paimon", 1), b"", 4, framed(texts("") + JAVA + i64(0)), i64(0)
    ),
    "fields of equality": Counted(
        *(committable(1), texts("t", "") + i64(0) + NO, 4, i32(0)),
        texts(*JOB) + i64(5) + framed(b""),
    ),
    "manifests": Counted(committable(2), texts("t", "", *JOB) + i64(5), 4, framed(b"")),
    "files that deletes refer to": Counted(manifests, i32(0, 0), 2, texts("")),
    "tables of Paimon": Counted(paimon(1), i64(0, 0), 8, framed(b"t") + framed(LEAST_PAIMON)),
    "offsets of a log": Counted(paimon(3), i64(0) + YES, 12, bytes(12), i32(3, 0)),
    "properties": Counted(paimon(5), i64(0) + YES, 4, texts("", ""), i32(3, 0)),
    "messages": Counted(paimon(3), i64(0) + YES + i32(0, 3), 40, framed(b"") + bytes(36)),
    "rows of files": Counted(
        *(paimon(3), i64(0) + YES + i32(0, 3, 1) + framed(b"") + i32(0), 4),
        *(framed(paimon_row("d")), bytes(28)),
    ),
    "transactions of Kafka": Counted(writer(2), texts("p") + i32(0, 1, 0), 10, texts("") + i64(0)),
    "committables": Counted(committer, i32(1), 4, framed(b"")),
    "checkpoints of a bucket": Counted(writer(1), BUCKET + i32(1), 12, i64(3) + i32(0)),
    "files of a bucket": Counted(writer(1), BUCKET + i32(1, 1) + i64(3), 4, framed(b"")),
}


Site = tuple[str, int]


def sites() -> Iterator[set[Site]]:
    """Yield the lines of each call that counts elements of a size that it names."""
    for path in MODULES:
        for function in ast.parse(path.read_text("utf-8")).body:
            if isinstance(function, ast.FunctionDef) and function.name not in FORWARDERS:
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and is_count(node):
                        assert node.end_lineno is not None
                        lines = range(node.lineno, node.end_lineno + 1)
                        yield {(path.name, line) for line in lines}


def is_count(call: ast.Call) -> bool:
    """Tell whether a call reads a count of elements, and says how large one is at least."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name("cursor" | "inside"), attr="count")):
            return bool(call.args)
        case ast.Call(func=ast.Name("unordered")):
            return len(call.args) == 3  # The fourth is a count that was read before.
        case ast.Call(func=ast.Name("_inline")):
            return True
    return False


def counts_in(
    case: Counted, data: bytes, folder: Path
) -> tuple[list[tuple[Site, int, bool]], Any]:
    """Return the counts that are read, each its place, its number and whether it is taken.

    And what is read of the bytes, None where they are refused.
    """
    found: list[tuple[Site, int, bool]] = []
    count = Cursor.count

    def noted(cursor: Cursor, size: int = 1) -> int:
        number = struct.unpack_from(">i", cursor.data, cursor.pos)[0]
        place = caller()
        try:
            count(cursor, size)
        except SavepointError:
            found.append((place, number, False))
            raise
        found.append((place, number, True))
        return int(number)

    with patch.object(Cursor, "count", noted):
        try:
            read = case.read(data, folder)
        except SavepointError:
            read = None
    return found, read


def caller() -> Site:
    """Return the place of what counts in the modules, none of which forwards a size."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if Path(code.co_filename) in MODULES and code.co_name not in FORWARDERS:
            return Path(code.co_filename).name, frame.f_lineno
        frame = frame.f_back
    return "", 0


@pytest.mark.parametrize("name", CASES)
def test_as_many_elements_as_there_are_bytes_for(name: str, tmp_path: Path) -> None:
    """One more than fits is refused by its count, before any is read."""
    case = CASES[name]
    assert len(case.after) < MANY
    assert case.size <= len(case.element)
    whole = case.before + i32(MANY) + case.between + MANY * case.element + case.after
    assert counts_in(case, whole, tmp_path / "1")[1] is not None
    more = case.before + i32(MANY + 1) + bytes(MANY * case.size)
    found, _ = counts_in(case, more, tmp_path / "2")
    assert {is_taken for _, number, is_taken in found if number == MANY + 1} == {False}


def test_each_count_has_a_case(tmp_path: Path) -> None:
    """A count of a layout that is new fails here, until its least element is above."""
    met: set[Site] = set()
    for number, case in enumerate(CASES.values()):
        more = case.before + i32(MANY + 1) + bytes(MANY * case.size)
        found, _ = counts_in(case, more, tmp_path / str(number))
        met |= {place for place, count, _ in found if count == MANY + 1}
    assert [sorted(lines) for lines in sites() if not lines & met] == []


# --- the ends of frames -------------------------------------------------------------------------

CHUNK = i32(1) + texts("a", "a:0", "ROW<`id` INT>", HEX, HEX)
INSIDE: dict[str, tuple[Read, Callable[[bytes], bytes]]] = {
    "a chunk of MySQL": (
        enumerator("MySQL CDC", 2),
        lambda more: (
            i32(2, 1, 0, 0, 1)
            + texts("a:0")
            + framed(CHUNK + OFFSET + i32(0) + more)
            + i32(0)
            + NO
        ),
    ),
    "a chunk of CDC": (
        enumerator("CDC", 3),
        lambda more: (
            i32(3, 1, 0, 0, 1)
            + texts("a:0")
            + framed(CHUNK + YES + as_json(LSN) + i32(0) + more)
            + i32(0)
            + NO
            + i32(0)
            + NO
        ),
    ),
    "a chunk that no reader has": (
        enumerator("CDC", 3),
        lambda more: (
            i32(3, 1, 0, 1) + framed(CHUNK + NO + i32(0) + more) + i32(0, 0) + NO + i32(0) + NO
        ),
    ),
    "a shard": (
        enumerator("Kinesis", 0),
        lambda more: NO + i32(1, 0) + framed(texts(ARN, "s", "LATEST") + NO + more),
    ),
    "a position of Iceberg": (
        enumerator("Iceberg", 1),
        lambda more: YES + i32(1) + framed(YES + i64(7) + NO + more) + i32(3, 0),
    ),
    "the manifests of a checkpoint": (manifests, lambda more: i32(0, 0, 0) + more),
    "the manifests behind a version": (
        lambda data, _: connector_committables.read_manifests(5, Cursor(data, "file")),
        lambda more: versioned(2, i32(0, 0, 0)) + more,
    ),
    "the manifests of a table": (
        committable(2),
        lambda more: (
            texts("t", "", *JOB) + i64(5) + i32(1) + framed(versioned(2, i32(0, 0, 0)) + more)
        ),
    ),
    "a table of Paimon": (
        paimon(1),
        lambda more: i64(0, 0) + i32(1) + framed(b"t") + framed(LEAST_PAIMON + more),
    ),
    "all tables of Paimon": (
        paimon(1),
        lambda more: i64(0, 0) + i32(1) + framed(b"t") + framed(LEAST_PAIMON) + more,
    ),
    "a writer of Kafka": (writer(2), lambda more: texts("p") + i32(0, 1, 0, 0) + more),
    "a writer of an older Kafka": (writer(1), lambda more: texts("p") + more),
    "a bucket": (writer(3), lambda more: BUCKET + more),
    "the name of a bucket": (
        writer(3),
        lambda more: (
            BUCKET[:4] + versioned(1, framed(b"b", "<") + more) + texts("p") + i64(5) + NO
        ),
    ),
}


SAYS = {  # The others are of one layout of several that are tried.
    "a chunk of MySQL": "after a split$",
    "a chunk of CDC": "after a split$",
    "a chunk that no reader has": "after a split of CDC$",
    "a shard": "after a split of Kinesis$",
    "a position of Iceberg": "after a position$",
    "the manifests of a checkpoint": "after manifests$",
    "the manifests behind a version": "after manifests$",
    "all tables of Paimon": "after committables$",
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_byte_more_in_a_frame(name: str, tmp_path: Path) -> None:
    """What is in a frame takes up all of it: one byte more, and it is of no connector."""
    read, data = INSIDE[name]
    read(data(b""), tmp_path / "1")
    says = f"1 bytes are left {SAYS[name]}" if name in SAYS else None
    for more in (b"\0", b"\1"):
        with pytest.raises(SavepointError, match=says):
            read(data(more), tmp_path / f"2{more!r}")


# --- the numbers of versions, and the names of numbers ------------------------------------------


@pytest.mark.parametrize(
    ("read", "data", "message"),
    [
        (split("MySQL CDC", 4), i32(3), "kind of a split 3 is not known, only 2"),
        (split("CDC", 6), i32(0), "kind of a split 0 is not known, only 2"),
        (split("MongoDB", 0), i32(2), "kind of a split 2 is not known, only 1"),
        (enumerator("MySQL CDC", 5), i32(5, 1), "version of a split 5 is not known, only 1, 2, 3"),
        (enumerator("MySQL CDC", 5), i32(0, 1), "version of a split 0 is not known, only 1, 2, 3"),
        (enumerator("CDC", 8), i32(2, 1), "version of a split 2 is not known, only 3, 4, 5, 6$"),
        (enumerator("CDC", 8), i32(7, 1), "version of a split 7 is not known, only 3, 4, 5, 6$"),
        (enumerator("CDC", 8), i32(6, 4), "kind of an enumerator 4 is not known, only 1, 2, 3$"),
        (enumerator("CDC", 8), i32(6, 0), "kind of an enumerator 0 is not known, only 1, 2, 3$"),
        (enumerator("Kinesis", 1), NO + i32(0, 3), "version of a split 3 is not known, only 0, 1"),
        (enumerator("Iceberg", 1), NO + i32(4), "version of a split 4 is not known, only 1, 2, 3"),
        (
            enumerator("Iceberg", 1),
            YES + i32(2, 0),
            "version of a position 2 is not known, only 1",
        ),
    ],
)
def test_numbers_that_are_not_known(read: Read, data: bytes, message: str, tmp_path: Path) -> None:
    """The error says which number it is, and which are known."""
    with pytest.raises(SavepointError, match=message):
        read(data, tmp_path)


@pytest.mark.parametrize("case", COMMITTABLES, ids=lambda case: f"{case[0]}-{case[1]}-{case[3]}")
def test_versions_of_committables(case: tuple[Any, ...], tmp_path: Path) -> None:
    """The bytes of one version are of no other, but for Paimon's, of which several are alike."""
    name, version, data, *_ = case
    read = paimon if name == "Paimon" else committable
    read(version)(data, tmp_path)
    for other in {*range(-1, 8)} - ({2, 3, 4, 5} if name == "Paimon" else {version}):
        with pytest.raises(SavepointError):
            read(other)(data, tmp_path)


@pytest.mark.parametrize("version", range(-1, 7))
def test_versions_of_several_tables_of_paimon(version: int, tmp_path: Path) -> None:
    """WrappedManifestCommittableSerializer of Paimon is of version 1."""
    data = i64(0, 0) + i32(1) + framed(b"t") + framed(LEAST_PAIMON)
    if version == 1:
        assert paimon(1)(data, tmp_path)
    else:
        message = f"version of committables of several tables {version} is not known, only 1$"
        with pytest.raises(SavepointError, match=message):
            paimon(version)(data, tmp_path)


@pytest.mark.parametrize(
    ("version", "rest"), [(0, b""), (1, b""), (2, i32(0, 1, 0, 0)), (3, i32(0, 1, 0, 0)), (3, b"")]
)
def test_versions_of_a_writer_of_kafka(version: int, rest: bytes, tmp_path: Path) -> None:
    """KafkaWriterStateSerializer has been of versions 1 and 2: those after them may be others."""
    data = texts("p") + rest
    [state] = sink(tmp_path, [(WRITER, versioned(version, data))]).sink_state().writers
    if version in (1, 2):
        assert isinstance(state, KafkaWriterState)
        assert state.transactional_id_prefix == "p"
    else:
        assert state == UnknownWriterState(0, version, data)


@pytest.mark.parametrize("number", range(-1, 3))
def test_owners_of_transactions_of_kafka(number: int, tmp_path: Path) -> None:
    """TransactionOwnership of flink-connector-kafka, by its ordinal, and no other."""
    names = {0: "IMPLICIT_BY_SUBTASK_ID", 1: "EXPLICIT_BY_WRITER_STATE"}
    element = versioned(2, texts("p") + i32(3, 4, number, 1) + texts("p-1") + i64(9))
    [state] = sink(tmp_path, [(WRITER, element)]).sink_state().writers
    if number in names:
        assert state == KafkaWriterState("p", 0, 3, 4, names[number], (("p-1", 9),))
    else:
        assert isinstance(state, UnknownWriterState)


NEWER_STATUSES = {
    0: "INITIAL_ASSIGNING",
    1: "INITIAL_ASSIGNING_FINISHED",
    2: "NEWLY_ADDED_ASSIGNING",
    3: "NEWLY_ADDED_ASSIGNING_SNAPSHOT_FINISHED",
    4: "NEWLY_ADDED_ASSIGNING_FINISHED",
}
"""AssignerStatus of flink-cdc from release-2.4.0 on, by its status code."""
OLDER_STATUSES = {**NEWER_STATUSES, 2: "SUSPENDED", 3: "NEWLY_ADDED_ASSIGNING"}
"""The same at release-2.2.0 to release-2.3.0, where MySQL's connector alone has it."""


@pytest.mark.parametrize("number", range(-1, 6))
@pytest.mark.parametrize(
    ("source", "version", "rest", "names"),
    [
        ("MySQL CDC", 3, b"", OLDER_STATUSES),
        ("MySQL CDC", 4, i32(0), OLDER_STATUSES),
        ("CDC", 6, i32(0), NEWER_STATUSES),
    ],
)
def test_statuses_of_an_assigner(
    source: str, version: int, rest: bytes, names: dict[int, str], number: int
) -> None:
    """AssignerStatus of flink-cdc, by its status code, and no other."""
    data = i32(4, 1, 0, 0, 0, 0, number, 0) + NO + rest
    layout = LAYOUT_OF[source]
    if number in names:
        fields, _ = split_layouts.enumerator_of(layout, (version, data), "file")
        assert (fields or {})["status"] == names[number]
    else:
        message = f"status of an assigner {number} is not known|no enumerator of MySQL CDC"
        with pytest.raises(SavepointError, match=message):
            split_layouts.enumerator_of(layout, (version, data), "file")


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(
    ("tables", "releases"),
    [
        ([], (OLDER_STATUSES, NEWER_STATUSES)),
        (["shop.a"], (OLDER_STATUSES,)),
        (["`shop`.`a`"], (NEWER_STATUSES,)),
        (["`sh``op`.`a.b`", "`c`"], (NEWER_STATUSES,)),
        (["shop.`a`"], (OLDER_STATUSES,)),
        (["`shop`.`a`", "shop.b"], (OLDER_STATUSES, NEWER_STATUSES)),
    ],
)
def test_statuses_of_mysql_that_two_releases_mean_differently(
    tables: list[str], releases: tuple[dict[int, str], ...], number: int
) -> None:
    """Both 2.3.0 and 2.4.0 write version 5; from 2.4.0 on the tables of chunks are quoted.

    flink-cdc: AssignerStatus; MySqlSplitSerializer.serialize, which 2.4.0 changed from
    TableId.toString to StatementUtils.quote.
    """
    chunks = [i32(1) + texts(table, f"{table}:0", "ROW<>", "", "") + NO for table in tables]
    assigned = b"".join(
        texts(f"{table}:0") + framed(chunk + i32(0)) for table, chunk in zip(tables, chunks)
    )
    data = i32(4, 1, 0, 0, len(tables)) + assigned + i32(0, number, 0) + NO + i32(0) + NO
    fields, _ = split_layouts.enumerator_of(LAYOUT_OF["MySQL CDC"], (5, data), "file")
    assert (fields or {})["status"] == " or ".join({names[number]: 0 for names in releases})


@pytest.mark.parametrize("is_finished", [False, True])
@pytest.mark.parametrize(
    ("source", "version", "rest"), [("MySQL CDC", 2, b""), ("CDC", 3, i32(0) + NO)]
)
def test_statuses_of_an_older_assigner(
    source: str, version: int, rest: bytes, is_finished: bool
) -> None:
    """Before there were statuses a flag said whether the snapshot's chunks are all assigned."""
    data = i32(version, 1, 0, 0, 0, 0) + bytes([is_finished]) + rest
    fields, _ = split_layouts.enumerator_of(LAYOUT_OF[source], (version, data), "file")
    status = "INITIAL_ASSIGNING_FINISHED" if is_finished else "INITIAL_ASSIGNING"
    assert (fields or {})["status"] == status


@pytest.mark.parametrize(
    ("status", "is_known"),
    [
        ("UNASSIGNED", True),
        ("ASSIGNED", True),
        ("COMPLETED", True),
        ("FINISHED", False),
        ("assigned", False),
        ("", False),
    ],
)
def test_statuses_of_splits_of_iceberg(status: str, is_known: bool) -> None:
    """IcebergSourceSplitStatus of Iceberg, by its name, and no other."""
    data = NO + i32(3, 1) + LEAST_ICEBERG + texts(status)
    if is_known:
        fields, splits = split_layouts.enumerator_of(LAYOUT_OF["Iceberg"], (1, data), "file")
        assert (fields or {})["statuses"] == (status,)
        assert len(splits) == 1
    else:
        with pytest.raises(SavepointError, match="a status of no split"):
            split_layouts.enumerator_of(LAYOUT_OF["Iceberg"], (1, data), "file")


# --- texts and places that few have -------------------------------------------------------------

LONE = b'{"a": "\xed\xa0\x80"}'
"""JSON with half of a pair of surrogates, as Java's writeUTF writes it."""


def test_texts_that_are_no_unicode() -> None:
    """Java's texts may have half of a pair of surrogates, in JSON too."""
    text = struct.pack(">H", len(LONE)) + LONE
    mongo = i32(1) + texts("", "", "") + text * 3 + i32(0)
    read = split_layouts.split_of(LAYOUT_OF["MongoDB"], 0, mongo, 0, "file")
    assert [read.fields[name] for name in ("min", "max", "hint")] == [{"a": "\ud800"}] * 3
    for version, task in ((2, text), (3, framed(LONE))):
        data = i32(0) + i64(0) + i32(1) + task
        read = split_layouts.split_of(LAYOUT_OF["Iceberg"], version, data, 0, "file")
        assert read.fields["files"] == ((None, None, None),)


@pytest.mark.parametrize(
    ("offset", "is_mysql"),
    [
        ({"file": "b.1", "pos": "4"}, True),
        ({"kind": "EARLIEST", "row": "0"}, True),
        ({"lsn": "4"}, False),
        ({}, False),
    ],
)
def test_whose_place_in_a_log_it_is(offset: dict[str, str], is_mysql: bool) -> None:
    """BinlogOffset of flink-cdc has a file, or a kind of place; no other database's has one."""
    place = YES + as_json(offset)
    mysql = i32(2) + texts("binlog-split", "") + place + NO + i32(0, 0)
    cdc = i32(2) + texts("stream-split", "") + place + NO + i32(0, 0, 0)
    for source, version, data in (("MySQL CDC", 2, mysql), ("CDC", 3, cdc)):
        layout = LAYOUT_OF[source]
        if is_mysql is (source == "MySQL CDC"):
            read = split_layouts.split_of(layout, version, data, 0, "file")
            assert read.fields["starting_offset"] == offset
        else:
            with pytest.raises(SavepointError, match="place in a binlog"):
                split_layouts.split_of(layout, version, data, 0, "file")
