"""What sinks have open: committables and writers' states, of all layouts that Flink wrote.

Bytes of the newest are what jobs of Flink 2.0.2 with flink-connector-kafka 4.0.1 wrote. The others
are put together as CommittableCollectorSerializer of Flink 1.18.1 and 1.20.5 writes them, and
KafkaWriterStateSerializer of flink-connector-kafka v3.4.0.
"""

from __future__ import annotations

import json
import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.sink_bytes import (
    BUCKETS,
    COMMITTER,
    FILES_TO_COMMIT,
    HINT,
    MAGIC,
    PRODUCER,
    WRITER,
    collector,
    kafkas,
    listed,
    producer,
    producer_bytes,
    request,
    sink,
    started,
    two_phases,
)
from support.bytes.source_bytes import framed, versioned
from support.inside.savepoints import sink_sections

from keygroups import InvalidValueError
from keygroups.cli import main
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    BucketState,
    Committable,
    FileCommittable,
    KafkaOffsets,
    KafkaProducerState,
    KafkaTransaction,
    KafkaWriterState,
    PartFile,
    SavepointWriter,
    SinkState,
    UnknownCommittable,
    UnknownWriterState,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.savepoint.comparing import CommittableDifference
from keygroups.savepoint.values import (
    NextTransactionalIdHint,
    Some,
    TransactionHolder,
    TwoPhaseCommitState,
)

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


def state_of(folder: Path, name: str, *elements: bytes) -> SinkState:
    return sink(folder, [(name, element) for element in elements]).sink_state()


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


@pytest.mark.parametrize("epoch", [0, 1 << 14, (1 << 15) - 1, -(1 << 15), -1])
def test_epochs_of_transactions(epoch: int, tmp_path: Path) -> None:
    """Kafka has them in a short, which KafkaCommittableSerializer writes, and none is below 0."""
    data = struct.pack(">hq", epoch, 5) + sb.utf("tx")
    [found] = state_of(tmp_path, COMMITTER, versioned(1, listed(1, data))).committables
    if epoch >= 0:
        assert found.committable == KafkaTransaction("tx", 5, epoch)
    else:
        assert found.committable == UnknownCommittable(1, data)


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
    with pytest.raises(SavepointError, match="an element of subtask 0 is no state of "):
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


INT = sb.simple("Int")


@pytest.mark.parametrize("version", ["", "011"])
@pytest.mark.parametrize(("outer", "flag"), [(1, b""), (4, b"\1"), (4, b"\0")])
def test_values_of_a_kafka_producer(version: str, outer: int, flag: bytes, tmp_path: Path) -> None:
    """With the serializers that Kafka's classes have the lists are values, which can be edited."""
    serializers = (
        two_phases(
            kafkas("TransactionState", version), kafkas("ContextState", version), outer, flag
        ),
        kafkas("NextTransactionalIdHint", version),
    )
    before = b"\1" if flag == b"\1" else b""
    state = producer_bytes(
        before + started("tx-2", 2006), [started("tx-1"), started("tx-3")], ("tx-1", "tx-2")
    )
    operator = producer(tmp_path / "old", state, struct.pack(">qi", 5, 1), serializers)
    old = {entry.state: entry.elements for entry in operator.operator_state()}
    since = 1_632_995_566_106
    waiting = [
        TransactionHolder(KafkaTransaction("tx-1", 1000, 1), since),
        TransactionHolder(KafkaTransaction("tx-3", 1000, 1), since),
    ]
    pending = TransactionHolder(KafkaTransaction("tx-2", 2006, 1), since)
    ids = ["tx-1", "tx-2"]
    assert old == {
        PRODUCER: [TwoPhaseCommitState(pending, waiting, Some(ids))],
        HINT: [NextTransactionalIdHint(5, 1)],
    }
    read = operator.sink_state()
    assert [it.committable for it in read.committables] == [it.handle for it in waiting]
    assert read.writers == (KafkaProducerState(0, pending.handle, since, tuple(ids), 5),)
    new = tmp_path / "new"
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", new) as editor:
        editor.operator("out").map_operator_state(
            PRODUCER,
            lambda it: it._replace(
                value=it.value._replace(pending_commit_transactions=waiting[:1])
            ),
        )
    edited = read_savepoint(new).operator("out")
    assert edited.sink_state() == replace(read, committables=read.committables[:1])
    written = producer_bytes(before + started("tx-2", 2006), [started("tx-1")], tuple(ids))
    [handle] = [subtask.managed_operator for subtask in edited._subtasks]
    assert handle is not None
    assert handle.stream.data is not None
    assert written in handle.stream.data


@pytest.mark.parametrize(
    ("state", "serializers"),
    [
        (
            b"\0" + sb.i32(1) + sb.i32(5) + bytes(8) + b"\0",
            (sb.simple("Int"), kafkas("ContextState")),
        ),
        (b"\0" + sb.i32(0) + b"\1" + sb.i32(5), (kafkas("TransactionState"), sb.simple("Int"))),
        (
            b"\0" + sb.i32(0) + b"\1" + sb.i32(1) + sb.i32(5),
            (kafkas("TransactionState"), sb.list_of(sb.simple("Int"))),
        ),
    ],
)
def test_states_of_other_transactions(
    state: bytes, serializers: tuple[bytes, bytes], tmp_path: Path
) -> None:
    """Another sink of two phases has a list of the same name, but not the hint beside it."""
    known = (two_phases(*serializers), kafkas("NextTransactionalIdHint"))
    operator = producer(tmp_path, state, struct.pack(">qi", 5, 1), known)
    with pytest.raises(SavepointError, match="is no state of FlinkKafkaProducer: TwoPhaseCommitS"):
        operator.sink_state()


def test_a_list_of_another_kind_beside_the_hint(tmp_path: Path) -> None:
    known = (INT, kafkas("NextTransactionalIdHint"))
    operator = producer(tmp_path, sb.i32(5), struct.pack(">qi", 5, 1), known)
    with pytest.raises(SavepointError, match="is no state of FlinkKafkaProducer: 5"):
        operator.sink_state()


# --- compared ------------------------------------------------------------------------------------


def one_checkpoint(committable: bytes, checkpoint: int = 7, **tries: int) -> bytes:
    """As CommittableCollectorSerializer does, of one checkpoint and one writer."""
    subtask = bytes(4) + listed(0, request(committable, **tries)) + bytes(8)
    return collector(struct.pack(">qi", checkpoint, 1) + listed(2, subtask))


def test_what_two_sinks_are_to_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A transaction of one of both, and one that was tried; who has it is no difference."""
    first, second = (struct.pack(">hq", 3, it) + sb.utf(f"tx-0-{it}") for it in (7, 8))
    old = [one_checkpoint(first, 1), one_checkpoint(second), one_checkpoint(KAFKA, 1_234)]
    new = [one_checkpoint(KAFKA, 1_234), one_checkpoint(second, state=1, retries=2)]
    for name, elements in (("old", old), ("new", new)):
        sink(tmp_path / name, [*((COMMITTER, element) for element in elements), ("list", b"")])
    here, there = (read_savepoint(tmp_path / name) for name in ("old", "new"))
    [operator] = here.compare(there).operators
    gone, waiting, _ = here.operator("out").sink_state().committables
    tried = there.operator("out").sink_state().committables[1]
    assert operator.committables == (
        CommittableDifference("only_here", gone, None),
        CommittableDifference("changed", waiting, tried),
    )
    assert operator.has_differences
    assert [*map(str, operator.committables)] == [
        "committable tx-0-7, producer 7, epoch 3, checkpoint 1",
        "committable tx-0-8, producer 8, epoch 3, state 'RECEIVED' -> 'RETRY', retries 0 -> 2",
    ]
    assert str(there.compare(here)).splitlines()[-2].split()[:2] == ["changed", "committable"]
    assert str(there.compare(here)).splitlines()[-1] == (
        "  only there committable tx-0-7, producer 7, epoch 3, checkpoint 1"
    )
    assert here.compare(there, states=["list"]).operators[0].committables == ()
    [same] = here.compare(here).operators
    assert (same.committables, same.has_differences) == ((), False)
    assert main(["diff", str(tmp_path / "old"), str(tmp_path / "new"), "--json"]) == 0
    [data] = json.loads(capsys.readouterr().out)["operators"]
    kinds = [(it["kind"], it["there"] and it["there"]["retries"]) for it in data["committables"]]
    assert kinds == [("only_here", None), ("changed", 2)]


def test_a_checkpoint_of_a_transaction_that_is_not_told() -> None:
    what = Committable(TRANSACTION, None, 0, None, "RECEIVED", 0)
    text = "committable tx-0-7, producer 1000, epoch 3"
    assert str(CommittableDifference("only_there", None, what)) == text
    later = what._replace(checkpoint_id=1_234, writer_subtask=2)
    assert str(CommittableDifference("only_here", later, None)) == f"{text}, checkpoint 1,234"
    assert str(CommittableDifference("changed", what, later)) == (
        f"{text}, checkpoint_id None -> 1234, writer_subtask None -> 2"
    )


def test_sinks_of_which_one_is_none_or_cannot_be_read(tmp_path: Path) -> None:
    """There is no answer then, and the elements of the states are compared."""
    elements = {
        "sink": (COMMITTER, one_checkpoint(KAFKA)),
        "other": ("list", b""),
        "bad": (COMMITTER, b"?"),
        "unknown": (COMMITTER, one_checkpoint(b"?")),
        "none": (COMMITTER, collector()),
    }
    for name, element in elements.items():
        sink(tmp_path / name, [element])
    here = read_savepoint(tmp_path / "sink")
    for name, count in (("other", 0), ("bad", 0), ("unknown", 1), ("none", 1)):
        [operator] = here.compare(read_savepoint(tmp_path / name)).operators
        assert len(operator.committables) == count, name
        assert operator.has_differences


def test_twenty_committables_of_an_operator_are_shown(tmp_path: Path) -> None:
    more = [struct.pack(">hq", 3, it) + sb.utf(f"tx-{it}") for it in range(21)]
    for count in (20, 21):
        folder = tmp_path / str(count)
        sink(folder, [(COMMITTER, one_checkpoint(it)) for it in more[:count]])
        sink(tmp_path / "none", [(COMMITTER, collector())])
        report = str(read_savepoint(folder).compare(read_savepoint(tmp_path / "none")))
        assert report.count("only here  committable tx-") == 20
        assert ("and 1 committables more" in report) == (count > 20)


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


# --- of files ------------------------------------------------------------------------------------

BUCKET_WITHOUT_A_FILE = (
    "000000030000003c1e764b7900000001000000080400000032303236001d66696c653a2f646174612f6f72646572"
    "732f726f6c6c65642f323032367fffffffffffffff00"
)
COMMIT, BUCKET, PENDING, OPEN = (
    struct.pack(">I", number) for number in (0x1E765C80, 0x1E764B79, 0x2C853C89, 0xB3A4073D)
)
LOCAL, HADOOP = struct.pack("<I", 0x1E744B57), struct.pack("<I", 0xD7436C5E)


def stream(path: str, hidden: str, size: int, magic: bytes = LOCAL) -> bytes:
    """As LocalRecoverableSerializer and HadoopRecoverableSerializer do, in little endian."""
    names = path.encode(), hidden.encode()
    return magic + struct.pack("<qii", size, *map(len, names)) + b"".join(names)


def bucket(version: int, rest: bytes, created: int = 5) -> bytes:
    name = versioned(1, framed(b"2026", "<"))
    state = BUCKET + name + sb.utf("hdfs://a/2026") + struct.pack(">q", created) + rest
    return versioned(version, state)


@pytest.mark.parametrize(
    ("version", "name", "size"),
    [
        ("1.20.5", "ee6361a0-4987-4a7c-9eed-e992d786f176-0", 1532),
        ("2.3.0", "5371fb50-65ac-4dca-be5c-76eb646799e4-0", 1218),
    ],
)
def test_what_file_sink_is_to_commit(version: str, name: str, size: int, tmp_path: Path) -> None:
    element = bytes.fromhex(FILES_TO_COMMIT[version])
    [found] = state_of(tmp_path / "1", COMMITTER, element).committables
    what = found.committable
    assert isinstance(what, FileCommittable)
    pending = what.pending
    assert pending is not None
    assert (pending.path, pending.bytes) == (f"file:/data/orders/rolled/2026/part-{name}", size)
    hidden = f"/data/orders/rolled/2026/.part-{name}.inprogress."
    assert (pending.hidden_path or "").startswith(hidden)
    assert what == FileCommittable("2026", pending, None, None)
    assert found == Committable(what, 1, 0, 0, "RECEIVED", 0)
    [report] = operator_reports(read_savepoint(tmp_path / "1"))
    assert f"  {pending.path}, {size:,} bytes" in str(report)
    assert main(["savepoint", str(tmp_path / "1"), "--json"]) == 0


@pytest.mark.parametrize(
    ("version", "name", "created", "size"),
    [
        ("1.20.5", "13258763-7818-408f-a913-3dc46adf3ecd-0", 1795729660080, 1532),
        ("2.3.0", "bdfc1536-ce1f-4722-bae0-64ac85d9ebea-0", 1795729605476, 1234),
    ],
)
def test_what_file_sink_has_in_progress(
    version: str, name: str, created: int, size: int, tmp_path: Path
) -> None:
    [found] = state_of(tmp_path / "1", WRITER, bytes.fromhex(BUCKETS[version])).writers
    assert isinstance(found, BucketState)
    file = found.in_progress
    assert file is not None
    assert (file.path, file.bytes) == (f"file:/data/orders/open/part-{name}", size)
    assert (file.hidden_path or "").startswith(f"/data/orders/open/.part-{name}.inprogress.")
    assert found == BucketState(0, "", "file:/data/orders/open", created, file, ())
    [report] = operator_reports(read_savepoint(tmp_path / "1"))
    header, row = (line.split() for line in str(report).splitlines()[2:])
    assert header == ["bucket", "files", "subtask"]
    assert row[:3] == ["file:/data/orders/open", "in", "progress:"]
    [found] = state_of(tmp_path / "2", WRITER, bytes.fromhex(BUCKET_WITHOUT_A_FILE)).writers
    assert found == BucketState(0, "2026", "file:/data/orders/rolled/2026", None, None, ())


def test_files_of_older_flinks_and_other_stores(tmp_path: Path) -> None:
    """Put together as the classes named in `part_files` do: their first versions, and uploads."""
    local, upload = stream("/a/b", "/a/.b", 7), b"an upload that only S3 reads"
    first = PENDING + versioned(1, local)
    second = PENDING + b"\1" + sb.utf("s3://a/b") + struct.pack(">q", 9) + versioned(1, upload)
    abandoned = OPEN + b"\1" + sb.utf("s3://a/c") + versioned(1, upload)
    without = PENDING + b"\0" + struct.pack(">q", 9) + versioned(1, upload)
    # OutputStreamBasedPendingFileRecoverable(commitRecoverable) has no path, and the size -1.
    compacted = PENDING + b"\0" + struct.pack(">q", -1)
    plain = PartFile("/a/b", "/a/.b", 7)
    stored = PartFile("s3://a/b", None, 9)
    cases = {
        (1, b"\1" + versioned(1, first) + b"\0"): FileCommittable(None, plain, None, None),
        (1, b"\0\1" + versioned(1, OPEN + versioned(1, local))): FileCommittable(
            None, None, plain, None
        ),
        (2, sb.utf("x") + b"\1" + versioned(2, second) + b"\0\0"): FileCommittable(
            "x", stored, None, None
        ),
        (2, sb.utf("") + b"\0\1" + versioned(2, abandoned) + b"\1" + sb.utf("s3://a/d")): (
            FileCommittable("", None, PartFile("s3://a/c", None, None), "s3://a/d")
        ),
        (2, sb.utf("") + b"\1" + versioned(2, without) + b"\0\0"): FileCommittable(
            "", PartFile(None, None, 9), None, None
        ),
        (2, sb.utf("c") + b"\1" + versioned(2, compacted + versioned(1, local)) + b"\0\0"): (
            FileCommittable("c", plain, None, None)
        ),
        (2, sb.utf("d") + b"\1" + versioned(2, compacted + versioned(1, upload)) + b"\0\0"): (
            FileCommittable("d", PartFile(None, None, None), None, None)
        ),
    }
    legacy = [versioned(1, listed(version, COMMIT + data)) for version, data in cases]
    found = state_of(tmp_path / "1", COMMITTER, *legacy).committables
    assert [one.committable for one in found] == [*cases.values()]
    [section] = sink_sections(SinkState(found, ()))
    assert [row[0] for row in section.rows] == [
        "/a/b, 7 bytes",
        "/a/b, 7 bytes is removed",
        "s3://a/b, 9 bytes",
        "s3://a/c is removed; s3://a/d is removed",
        "a file, 9 bytes",
        "/a/b, 7 bytes",
        "a file",
    ]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_versions_of_a_file_in_progress(version: int, tmp_path: Path) -> None:
    """Of version 2 a flag says whether its name is there; other versions nobody knows."""
    local = versioned(1, stream("/a/b", "/a/.b", 7))
    state = bucket(3, b"\1" + versioned(version, OPEN + b"\0" * (version == 2) + local))
    [found] = state_of(tmp_path, WRITER, state).writers
    if version in (1, 2):
        assert isinstance(found, BucketState)
        assert found.in_progress == PartFile("/a/b", "/a/.b", 7)
    else:
        assert found == UnknownWriterState(0, 3, state[8:])


def test_a_file_of_fewer_bytes_than_none(tmp_path: Path) -> None:
    data = COMMIT + b"\1" + versioned(1, PENDING + versioned(1, stream("/a", "/b", -1))) + b"\0"
    [found] = state_of(tmp_path, COMMITTER, versioned(1, listed(1, data))).committables
    assert found.committable == UnknownCommittable(1, data)


def test_buckets_of_older_flinks(tmp_path: Path) -> None:
    """StreamingFileSink has what waits for its commit there; its state is `bucket-states`."""
    hadoop = stream("hdfs://a/b", "hdfs://a/.b", 7, HADOOP)
    file = PartFile("hdfs://a/b", "hdfs://a/.b", 7)
    counts = struct.pack(">ii", 1, 2), struct.pack(">qi", 3, 2), struct.pack(">qi", 4, 0)
    first = b"\1" + versioned(1, hadoop) + counts[0] + counts[1] + 2 * framed(hadoop) + counts[2]
    pending = PENDING + versioned(1, hadoop)
    second = b"\0" + struct.pack(">iiqi", 1, 1, 8, 1) + framed(pending)
    elements = bucket(1, first), bucket(2, second), bucket(2, b"\0" + struct.pack(">ii", 1, 0))
    found = state_of(tmp_path / "1", "bucket-states", *elements)
    rest = "2026", "hdfs://a/2026", 5
    assert found == SinkState(
        (),
        (
            BucketState(0, *rest, file, ((3, file), (3, file))),
            BucketState(1, *rest, None, ((8, file),)),
            BucketState(2, *rest, None, ()),
        ),
    )
    [section] = sink_sections(found)
    assert [row[1] for row in section.rows] == [
        "in progress: hdfs://a/b, 7 bytes; hdfs://a/b, 7 bytes; hdfs://a/b, 7 bytes",
        "hdfs://a/b, 7 bytes",
        "",
    ]


def test_as_many_as_there_are_bytes_for(tmp_path: Path) -> None:
    """Of a bucket: checkpoints of 12 bytes, which have no file, and files of 4, of no bytes."""
    many = 100
    none = struct.pack(">qi", 3, 0)
    empty = struct.pack(">qi", 3, many) + many * framed(b"")
    elements = [
        bucket(1, b"\0" + struct.pack(">ii", 1, many) + many * none),
        bucket(1, b"\0" + struct.pack(">ii", 1, 1) + empty),
    ]
    writers = state_of(tmp_path / "1", "bucket-states", *elements).writers
    assert [len(getattr(writer, "pending", "?")) for writer in writers] == [0, many]
    data = versioned(1, listed(1, *[b""] * many))
    assert len(state_of(tmp_path / "2", COMMITTER, data).committables) == many


@pytest.mark.parametrize("kind", ["committable", "bucket"])
def test_files_that_are_damaged(kind: str, tmp_path: Path) -> None:
    """Cut short, longer or with another number in front they are bytes, and no error."""
    read = {"committable": COMMITTER, "bucket": WRITER}[kind]
    whole = bytes.fromhex({"committable": FILES_TO_COMMIT, "bucket": BUCKETS}[kind]["2.3.0"])
    inside = whole[whole.index(COMMIT if kind == "committable" else BUCKET) :]
    inside = inside[: -16 if kind == "committable" else None]  # less the tries and the counts
    version = 2 if kind == "committable" else 3
    for data in (inside[:-1], inside + b"\0", inside[:70], b"\0" + inside, b""):
        element = versioned(version, data)
        if kind == "committable":
            element = versioned(1, listed(version, data))
        found = state_of(tmp_path / f"{len(data)}", read, element)
        if kind == "committable":
            [one] = found.committables
            assert one.committable == UnknownCommittable(version, data)
        else:
            assert found.writers == (UnknownWriterState(0, version, data),)
    for other, is_known in ((0, False), (4, False), (version, True)):
        element = versioned(1, listed(other, inside)) if version == 2 else versioned(other, inside)
        found = state_of(tmp_path / f"other {other}", read, element)
        what = [one.committable for one in found.committables] or found.writers
        assert isinstance(what[0], UnknownCommittable | UnknownWriterState) is not is_known
