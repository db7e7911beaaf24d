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
    KafkaOffsets,
    KafkaProducerState,
    KafkaTransaction,
    KafkaWriterState,
    Operator,
    SavepointWriter,
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


# --- FlinkKafkaProducer --------------------------------------------------------------------------

PRODUCER, HINT = "state", "next-transactional-id-hint-v2"


def started(
    transactional_id: str | None,
    producer: int = 1000,
    epoch: int = 1,
    since: int = 1_632_995_566_106,
) -> bytes:
    """As TransactionStateSerializer does, and the start of a TransactionHolder."""
    name = b"\0" if transactional_id is None else b"\1" + sb.utf(transactional_id)
    return name + struct.pack(">qhq", producer, epoch, since)


def producer_bytes(pending: bytes, waiting: Sequence[bytes], ids: Sequence[str] | None) -> bytes:
    context = b"\0" if ids is None else b"\1" + sb.i32(len(ids)) + b"".join(map(sb.utf, ids))
    return pending + sb.i32(len(waiting)) + b"".join(waiting) + context


def producer(folder: Path, state: bytes, hint: bytes | None = None) -> Operator:
    """Return an operator with the two lists, whose serializers only the connector has."""
    own = "org.apache.flink.streaming.connectors.kafka.FlinkKafkaProducer$Own"
    lists = [(PRODUCER, state), *([] if hint is None else [(HINT, hint)])]
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"}
    serializer = {"VALUE_SERIALIZER": sb.snapshot(own, 3)}
    header = sb.operator_header(
        [sb.meta_info(name, 1, options, serializer) for name, _ in lists], []
    )
    data, places = header, []
    for name, element in lists:
        places.append((name, 0, [len(data)]))
        data += element
    handle = sb.operator_state(places, sb.inline(data))
    written = sb.operator([sb.subtask(0, managed_operator=handle)], uid="out")
    (operator,) = read_savepoint(sb.write(folder, [written])).operators
    return operator


@pytest.mark.parametrize("has_flag", [False, True])
def test_kafka_producer(has_flag: bool, tmp_path: Path) -> None:
    """What real ones wrote, of 1.8 and of 1.14, is read alike; it is not part of this project."""
    flag = b"\1" if has_flag else b""
    ids = ("tx-1", "tx-2")
    state = producer_bytes(flag + started("tx-2", 2006), [started("tx-1")], ids)
    operator = producer(tmp_path, state, struct.pack(">qi", 5, 1))
    assert operator.sink_state() == SinkState(
        (Committable(KafkaTransaction("tx-1", 1000, 1), None, 0, None, "RECEIVED", 0),),
        (
            KafkaProducerState(
                *(0, KafkaTransaction("tx-2", 2006, 1), 1_632_995_566_106, ids),
                next_free_id=5,
            ),
        ),
    )
    [report] = operator_reports(read_savepoint(tmp_path))
    assert str(report).splitlines() == [
        "== out: sink",
        "  1 committable; a restore commits them",
        "  committable                   checkpoint  subtask  state",
        "  tx-1, producer 1000, epoch 1                    0  RECEIVED",
        "  1 writer",
        "  transactional ids begin with       precommitted                        subtask",
        "  of FlinkKafkaProducer: tx-1, tx-2  open: tx-2, producer 2006, epoch 1        0",
    ]


def test_a_producer_without_transactions(tmp_path: Path) -> None:
    """It has one without an id, and with a producer and an epoch of -1."""
    state = producer_bytes(started(None, -1, -1), [], None)
    operator = producer(tmp_path / "a", state, struct.pack(">qi", 0, 0))
    none = KafkaTransaction(None, -1, -1)
    first = producer(
        tmp_path / "c", producer_bytes(started("tx", since=0), [], None), struct.pack(">qi", 0, 0)
    )
    assert first.sink_state().writers == (
        KafkaProducerState(0, KafkaTransaction("tx", 1000, 1), 0, next_free_id=0),
    )
    [writer] = operator.sink_state().writers
    assert writer == KafkaProducerState(0, none, 1_632_995_566_106, next_free_id=0)
    [report] = operator_reports(read_savepoint(tmp_path / "a"))
    assert "open: no transaction, producer -1, epoch -1" in str(report)
    operator = producer(tmp_path / "b", producer_bytes(b"\0", [], ()), struct.pack(">qi", 0, 0))
    assert operator.sink_state().writers == (KafkaProducerState(0, next_free_id=0),)
    [report] = operator_reports(read_savepoint(tmp_path / "b"))
    assert str(report).splitlines()[-1].split() == ["of", "FlinkKafkaProducer:", "0"]


@pytest.mark.parametrize(
    ("state", "hint"),
    [
        (producer_bytes(started("tx"), [], None) + b"\0", struct.pack(">qi", 0, 0)),
        (producer_bytes(started("tx", -2), [], None), struct.pack(">qi", 0, 0)),
        (producer_bytes(started("tx", 1, -2), [], None), struct.pack(">qi", 0, 0)),
        (producer_bytes(started(""), [], None), struct.pack(">qi", 0, 0)),
        (producer_bytes(started("tx", since=-1), [], None), struct.pack(">qi", 0, 0)),
        (producer_bytes(started("tx"), [], None), struct.pack(">qi", 0, 0) + b"\0"),
        (producer_bytes(started("tx"), [], None), struct.pack(">q", 0)),
    ],
)
def test_no_producer(state: bytes, hint: bytes, tmp_path: Path) -> None:
    operator = producer(tmp_path, state, hint)
    with pytest.raises(SavepointError, match="operator out, an element of subtask 0, offset"):
        operator.sink_state()


def test_damaged_producers(tmp_path: Path) -> None:
    state = producer_bytes(b"\1" + started("tx-2"), [started("tx-1")], ("tx-1", "tx-2"))
    chosen = random.Random(44)
    kinds: set[type] = set()
    for number in range(60):
        damaged = bytearray(state)
        damaged[chosen.randrange(len(state))] ^= chosen.choice((1, 0x80, 0xFF))
        operator = producer(tmp_path / str(number), bytes(damaged), struct.pack(">qi", 5, 1))
        try:
            kinds.add(type(operator.sink_state()))
        except SavepointError as error:
            kinds.add(type(error))
    assert kinds == {SinkState, SavepointError}


# --- a sink that is removed ----------------------------------------------------------------------


def test_what_a_removed_sink_had_to_commit(tmp_path: Path) -> None:
    old = tmp_path / "old"
    sink(old, [(COMMITTER, bytes.fromhex(element)) for element in COMMITTERS])
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.remove_operator("out")
        editor.add_source("other", KafkaOffsets({("a", 0): 5}), 128, parallelism=1)
    report = editor.report()
    [removed] = [edited for edited in report.operators if edited.operator is None]
    committables = removed.committables
    assert committables == read_savepoint(old).operator("out").sink_state().committables
    assert str(removed).splitlines() == [
        "out: removed",
        "  2 committables; the sink that had to commit what was prepared is removed",
        "    tx-0-1, producer 10, epoch 1",
        "    tx-1-1, producer 9, epoch 1",
    ]
    assert "What would have been committed" in report._repr_html_()


def test_a_removed_sink_that_cannot_be_read(tmp_path: Path) -> None:
    old = tmp_path / "old"
    sink(old, [(COMMITTER, bytes(3))])
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        editor.remove_operator("out")
        editor.add_source("other", KafkaOffsets({("a", 0): 5}), 128, parallelism=1)
    [removed] = [edited for edited in editor.report().operators if edited.operator is None]
    assert removed.committables is None
    assert str(removed) == "out: removed\n  what it had to commit cannot be read"


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
