"""What sinks have open: committables and writers' states, of all layouts that Flink wrote.

Bytes of the newest are what jobs of Flink 2.0.2 with flink-connector-kafka 4.0.1 wrote. The others
are put together as CommittableCollectorSerializer of Flink 1.18.1 and 1.20.5 writes them, and
KafkaWriterStateSerializer of flink-connector-kafka v3.4.0.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.source_bytes import framed, versioned
from support.inside.savepoints import sink_sections

from keygroups import InvalidValueError
from keygroups.cli import main
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    Committable,
    KafkaTransaction,
    KafkaWriterState,
    Operator,
    SinkState,
    UnknownCommittable,
    UnknownWriterState,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.state_keys import BYTES

COMMITTER, WRITER = "streaming_committer_raw_states", "writer_raw_states"
MAGIC = bytes.fromhex("b91f252c")
# A job with two subtasks of KafkaSink, EXACTLY_ONCE, at its first checkpoint: both its operators.
COMMITTERS = [
    "0000000200000062b91f252c00000001000000010000005200000000000000010000000200000002000000010000"
    "003a0000000000000000000000010000002200000001000000120001000000000000000a000674782d302d310000"
    "0000000000000000000100000000",
    "0000000200000062b91f252c00000001000000010000005200000000000000010000000200000002000000010000"
    "003a00000001000000000000000100000022000000010000001200010000000000000009000674782d312d310000"
    "0000000000000000000100000000",
]
WRITERS = [
    "00000002000000240002747800000000000000020000000000000001000674782d302d310000000000000001",
    "00000002000000240002747800000001000000020000000000000001000674782d312d310000000000000001",
]
# The same with AT_LEAST_ONCE, which has no transactions.
AT_LEAST_ONCE = (
    "000000020000003cb91f252c00000001000000010000002c00000000000000010000000200000002000000010000"
    "00140000000000000000000000000000000000000000"
)
KAFKA = struct.pack(">hq", 3, 1000) + sb.utf("tx-0-7")
TRANSACTION = KafkaTransaction("tx-0-7", 1000, 3)


def sink(folder: Path, elements: Sequence[tuple[str, bytes]], snapshot: bytes = b"") -> Operator:
    """Return an operator each of whose subtasks has an element in a list."""
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    subtasks = []
    for index, (name, element) in enumerate(elements):
        serializer = {"VALUE_SERIALIZER": snapshot or BYTES.snapshot_bytes()[4:]}
        header = sb.operator_header([sb.meta_info(name, 1, options, serializer)], [])
        data = header + (element if snapshot else framed(element))
        handle = sb.operator_state([(name, 0, [len(header)])], sb.inline(data))
        subtasks.append(sb.subtask(index, managed_operator=handle))
    written = sb.operator(subtasks, uid="out", parallelism=len(elements))
    (operator,) = read_savepoint(sb.write(folder, [written])).operators
    return operator


def state_of(folder: Path, name: str, *elements: bytes) -> SinkState:
    return sink(folder, [(name, element) for element in elements]).sink_state()


def listed(version: int, *elements: bytes) -> bytes:
    """As SimpleVersionedSerialization.writeVersionAndSerializeList does."""
    return struct.pack(">ii", version, len(elements)) + b"".join(map(framed, elements))


def request(committable: bytes, version: int = 1, retries: int = 0, state: int = 0) -> bytes:
    return versioned(version, committable) + struct.pack(">ii", retries, state)


def collector(*checkpoints: bytes, version: int = 1) -> bytes:
    return versioned(2, MAGIC + listed(version, *checkpoints))


def test_what_kafka_sink_wrote(tmp_path: Path) -> None:
    found = state_of(tmp_path / "1", COMMITTER, *map(bytes.fromhex, COMMITTERS))
    assert found == SinkState(
        (
            Committable(KafkaTransaction("tx-0-1", 10, 1), 1, 0, 0, "RECEIVED", 0),
            Committable(KafkaTransaction("tx-1-1", 9, 1), 1, 1, 1, "RECEIVED", 0),
        ),
        (),
    )
    found = state_of(tmp_path / "2", WRITER, *map(bytes.fromhex, WRITERS))
    implicit = "IMPLICIT_BY_SUBTASK_ID"
    assert found.writers == (
        KafkaWriterState("tx", 0, 0, 2, implicit, (("tx-0-1", 1),)),
        KafkaWriterState("tx", 1, 1, 2, implicit, (("tx-1-1", 1),)),
    )
    assert state_of(tmp_path / "3", COMMITTER, bytes.fromhex(AT_LEAST_ONCE)) == SinkState((), ())


def test_flink_1_20(tmp_path: Path) -> None:
    """Which writes how many are committed, too; several checkpoints and writers are in one."""
    requests = listed(0, request(KAFKA, retries=2, state=1), request(b"?", version=9, state=2))
    counts = struct.pack(">iii", 2, 0, 1)
    writer = struct.pack(">i", 5) + requests + counts
    other = struct.pack(">i", 6) + listed(0, request(KAFKA, state=3)) + counts
    first = struct.pack(">qi", 7, 12) + listed(1, writer, other)
    last = struct.pack(">qi", 2**63 - 1, 12) + listed(1, other)
    found = state_of(tmp_path / "1", COMMITTER, collector(first, last))
    assert found.committables == (
        Committable(TRANSACTION, 7, 0, 5, "RETRY", 2),
        Committable(UnknownCommittable(9, b"?"), 7, 0, 5, "FAILED", 0),
        Committable(TRANSACTION, 7, 0, 6, "COMMITTED", 0),
        Committable(TRANSACTION, 2**63 - 1, 0, 6, "COMMITTED", 0),
    )


def test_flink_1_18(tmp_path: Path) -> None:
    """Which writes neither the number of writers nor which one it was."""
    checkpoint = struct.pack(">q", 7) + listed(0, listed(0, request(KAFKA)) + bytes(12))
    found = state_of(tmp_path / "1", COMMITTER, collector(checkpoint, version=0))
    assert found.committables == (Committable(TRANSACTION, 7, 0, None, "RECEIVED", 0),)


def test_flink_1_14(tmp_path: Path) -> None:
    """Which has a list of committables alone: SinkV1CommittableDeserializer."""
    found = state_of(tmp_path / "1", COMMITTER, versioned(1, listed(1, KAFKA, b"?")))
    assert found.committables == (
        Committable(TRANSACTION, None, 0, None, "RECEIVED", 0),
        Committable(UnknownCommittable(1, b"?"), None, 0, None, "RECEIVED", 0),
    )


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (2, KAFKA),
        (1, KAFKA + b"\0"),
        (1, KAFKA[:-1]),
        (1, struct.pack(">hq", -1, 5) + sb.utf("tx")),
        (1, struct.pack(">hq", 0, -1) + sb.utf("tx")),
        (1, struct.pack(">hq", 0, 0) + sb.utf("")),
    ],
)
def test_committables_of_other_sinks(version: int, data: bytes, tmp_path: Path) -> None:
    requests = listed(0, request(data, version=version))
    checkpoint = struct.pack(">qi", 7, 1) + listed(2, bytes(4) + requests + bytes(8))
    [found] = state_of(tmp_path / "1", COMMITTER, collector(checkpoint)).committables
    assert found.committable == UnknownCommittable(version, data)


NEW_WRITER = sb.utf("tx") + struct.pack(">iiii", 1, 2, 1, 0)


def test_writers_of_all_versions(tmp_path: Path) -> None:
    found = state_of(tmp_path / "1", WRITER, versioned(1, sb.utf("tx")), versioned(2, NEW_WRITER))
    explicit = "EXPLICIT_BY_WRITER_STATE"
    assert found.writers == (
        KafkaWriterState("tx", 0),
        KafkaWriterState("tx", 1, 1, 2, explicit, ()),
    )


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, sb.utf("tx") + b"\0"),
        (1, sb.utf("")),
        (3, NEW_WRITER),
        (2, sb.utf("tx")),
        (2, NEW_WRITER[:-5] + struct.pack(">bi", 2, 0)),
        (2, NEW_WRITER[:-4] + struct.pack(">i", 1)),
    ],
)
def test_writers_of_other_sinks(version: int, data: bytes, tmp_path: Path) -> None:
    found = state_of(tmp_path / "1", WRITER, versioned(version, data))
    assert found.writers == (UnknownWriterState(0, version, data),)


CHECKPOINT = struct.pack(">qi", 7, 1) + listed(2, bytes(4) + listed(0, request(KAFKA)) + bytes(8))


@pytest.mark.parametrize(
    ("element", "says"),
    [
        (versioned(3, MAGIC), "version of committables 3 is not known, only 1, 2"),
        (versioned(2, bytes(4)), "offset 12: these are no committables"),
        (versioned(2, MAGIC + listed(1) + b"\0"), "1 bytes are left after committables"),
        (versioned(2, MAGIC + listed(1)) + b"\0", "1 bytes are left after an element"),
        (collector(CHECKPOINT, version=2), "version of a checkpoint's committables 2"),
        (collector(CHECKPOINT + b"\0"), "1 bytes are left after an element of a list"),
        (
            collector(struct.pack(">qi", 7, 1) + listed(3)),
            None,  # A list without elements says nothing by its version.
        ),
        (
            collector(struct.pack(">qi", 7, 1) + listed(3, b"")),
            "version of a subtask's committables 3 is not known",
        ),
        (
            collector(struct.pack(">qi", 7, 1) + listed(2, bytes(4) + listed(1, b"") + bytes(8))),
            "version of a request to commit 1",
        ),
        (
            collector(
                struct.pack(">qi", 7, 1)
                + listed(2, bytes(4) + listed(0, request(KAFKA, state=4)) + bytes(8))
            ),
            "state of a request to commit 4 is not known",
        ),
        (versioned(2, MAGIC + struct.pack(">ii", 1, 2**31 - 1)), "a count of 2147483647"),
        (versioned(2, MAGIC)[:-1], "4 bytes were to follow"),
    ],
)
def test_damage(element: bytes, says: str | None, tmp_path: Path) -> None:
    operator = sink(tmp_path / "1", [(COMMITTER, element)])
    if says is None:
        assert operator.sink_state() == SinkState((), ())
        return
    with pytest.raises(SavepointError, match=says) as raised:
        operator.sink_state()
    assert "operator out, an element of subtask 0" in str(raised.value)
    [report] = operator_reports(read_savepoint(tmp_path / "1"))
    assert report.sink is None
    assert says in str(report)


def test_random_damage(tmp_path: Path) -> None:
    """Whatever is changed in it: other committables, or an error; neither time nor memory."""
    rng = random.Random(5)
    whole = bytes.fromhex(COMMITTERS[0])
    for number in range(100):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 127, 128, 255])
        try:
            state = state_of(tmp_path / str(number), COMMITTER, bytes(data))
        except SavepointError:
            continue
        assert len(state.committables) <= 1


def test_what_is_no_sink(tmp_path: Path) -> None:
    operator = sink(tmp_path / "1", [("other", b"")])
    with pytest.raises(InvalidValueError, match="'out' must be the committer or the writer of a"):
        operator.sink_state()
    operator = sink(tmp_path / "2", [(WRITER, bytes(8))], sb.simple("Long"))
    with pytest.raises(SavepointError, match="an element of subtask 0 is no bytes, but 0"):
        operator.sink_state()


def test_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "committer"
    sink(path, [(COMMITTER, bytes.fromhex(element)) for element in COMMITTERS])
    [report] = operator_reports(read_savepoint(path))
    assert str(report).splitlines() == [
        "== out: sink",
        "  2 committables; a restore commits them",
        "  committable                   checkpoint  subtask  state",
        "  tx-0-1, producer 10, epoch 1           1        0  RECEIVED",
        "  tx-1-1, producer 9, epoch 1            1        1  RECEIVED",
    ]
    assert "tx-1-1, producer 9, epoch 1" in report._repr_html_()
    assert "What a restore commits" in html_report(read_savepoint(path))
    assert main(["savepoint", str(path), "--quiet", "--json"]) == 0
    [data] = json.loads(capsys.readouterr().out)["reports"]
    transaction = {"transactional_id": "tx-0-1", "producer_id": 10, "epoch": 1}
    assert data["committables"][0]["committable"] == transaction
    assert data["writers"] == []
    assert data["splits"] is None


def test_reports_of_writers(tmp_path: Path) -> None:
    elements = [*map(bytes.fromhex, WRITERS), versioned(7, b"?")]
    sink(tmp_path / "writer", [(WRITER, element) for element in elements])
    [report] = operator_reports(read_savepoint(tmp_path / "writer"))
    assert str(report).splitlines() == [
        "== out: sink",
        "  3 writers",
        "  transactional ids begin with  precommitted  subtask",
        "  tx                            tx-0-1              0",
        "  tx                            tx-1-1              1",
        "  not known: b'?', version 7                        2",
    ]


def test_a_sink_without_anything(tmp_path: Path) -> None:
    sink(tmp_path / "1", [(COMMITTER, bytes.fromhex(AT_LEAST_ONCE))])
    [report] = operator_reports(read_savepoint(tmp_path / "1"))
    assert str(report) == "== out: sink\n  nothing is to be committed"


def test_very_many() -> None:
    """A table has a hundred of them; those without a checkpoint and of other sinks too."""
    what = Committable(UnknownCommittable(7, b"?"), None, 0, None, "RECEIVED", 0)
    [section] = sink_sections(SinkState((what,) * 101, ()))
    assert section.texts == ["101 committables, of which 100 follow; a restore commits them"]
    assert [tuple(row) for row in section.rows] == [("b'?', version 7", "", "0", "RECEIVED")] * 100
    writer = KafkaWriterState("tx", 3)
    [section] = sink_sections(SinkState((), (writer,) * 101))
    assert section.texts == ["101 writers, of which 100 follow"]
    assert [tuple(row) for row in section.rows] == [("tx", "", "3")] * 100
    both = [*sink_sections(SinkState((what,), (writer,)))]
    assert [section.texts for section in both] == [
        ["1 committable; a restore commits them"],
        ["1 writer"],
    ]
    assert [section.caption for section in both] == [
        "What a restore commits",
        "Writers of the sink",
    ]


@pytest.mark.parametrize("size", [100, 101])
def test_names_have_at_most_100_characters(size: int) -> None:
    name = "t" * size
    shown = name if size == 100 else f"{'t' * 50}...{'t' * 47}"
    writer = KafkaWriterState(name, 3, precommitted=((name, 1),))
    [section] = sink_sections(SinkState((), (writer,)))
    assert [tuple(row) for row in section.rows] == [(shown, shown, "3")]
