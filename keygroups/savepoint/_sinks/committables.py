"""The state of a sink: what its committer is to commit, and what KafkaSink's writers know.

The layouts are those of Flink's CommittableCollectorSerializer, whose three versions are those of
1.14 and before, 1.15 to 1.20 and 2.0 to 2.3; and of flink-connector-kafka at its tags v3.0.1 to
v5.0.0: KafkaCommittableSerializer and KafkaWriterStateSerializer. Those of files are in
`part_files`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from keygroups._checks import show
from keygroups._serializers import kafka_producer
from keygroups._serializers.base import Serializer
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.streaming import TwoPhaseCommitSerializer
from keygroups._values.streaming import (
    KafkaTransaction,
    NextTransactionalIdHint,
    TransactionHolder,
    TwoPhaseCommitState,
)
from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint._sinks.connector_committables import (
    ICEBERG_STATE,
    ConnectorCommittable,
    read_connector_committable,
    read_manifests,
    read_paimon,
    the_only,
)
from keygroups.savepoint._sinks.part_files import (
    BUCKETS_STATE,
    BucketState,
    FileCommittable,
    PartFile,
    read_bucket,
    read_file_committable,
    versioned,
)

T = TypeVar("T")

COMMITTER_STATE = "streaming_committer_raw_states"
"""What is to be committed. Flink: CommitterOperator.STREAMING_COMMITTER_RAW_STATES_DESC."""
WRITER_STATE = "writer_raw_states"
"""What the writers know. Flink: StatefulSinkWriterStateHandler.WRITER_RAW_STATES_DESC."""
SINK_STATES = (COMMITTER_STATE, WRITER_STATE, BUCKETS_STATE, ICEBERG_STATE)
PRODUCER_STATE, HINT_STATE = "state", "next-transactional-id-hint-v2"
"""The state of FlinkKafkaProducer. Flink: TwoPhaseCommitSinkFunction, FlinkKafkaProducer."""

_MAGIC = 0xB91F252C - (1 << 32)
_STATES = ("RECEIVED", "RETRY", "FAILED", "COMMITTED")  # Flink: CommitRequestState
_OWNERSHIPS = ("IMPLICIT_BY_SUBTASK_ID", "EXPLICIT_BY_WRITER_STATE")  # TransactionOwnership


class UnknownCommittable(NamedTuple):
    """A committable of another sink: the bytes of its own serializer, and their version."""

    version: int
    data: bytes


Committed = KafkaTransaction | FileCommittable | ConnectorCommittable | UnknownCommittable


class Committable(NamedTuple):
    """A transaction or file that waits for its commit, which a restore does.

    `subtask` of the committer has it; `writer_subtask` made it, for the checkpoint
    `checkpoint_id`. The first of these is None where Flink did not write it, as in 1.18, and both
    are in what a Flink before 1.15 wrote. `state` is RECEIVED, RETRY, FAILED or COMMITTED, and
    `retries` is how often it was tried again.
    """

    committable: Committed
    checkpoint_id: int | None
    subtask: int
    writer_subtask: int | None
    state: str
    retries: int


def committed_text(what: Committed) -> str:
    """Return a few words on a transaction or file, as reports have them."""
    if isinstance(what, KafkaTransaction):
        name = what.transactional_id or "no transaction"
        return f"{name}, producer {what.producer_id}, epoch {what.epoch}"
    if isinstance(what, FileCommittable):
        removed = [what.abandoned and file_text(what.abandoned), what.compacted]
        texts = [file_text(what.pending)] if what.pending else []
        return "; ".join(texts + [f"{path} is removed" for path in removed if path])
    if isinstance(what, ConnectorCommittable):
        return f"{what.sink}: {what.name}"
    return f"{show(what.data)}, version {what.version}"


def file_text(file: PartFile) -> str:
    """Return the name of a file, the one that it will have if that is known, and its size."""
    size = "" if file.bytes is None else f", {file.bytes:,} bytes"
    return f"{file.path or file.hidden_path or 'a file'}{size}"


class KafkaWriterState(NamedTuple):
    """The state of a writer of KafkaSink: its prefix of transactional ids, and what it prepared.

    `precommitted` are the transactions of its last checkpoints, each its id and the checkpoint.
    It was `owned_subtask` of `total_subtasks` that own the ids, by `ownership`: Kafka's
    TransactionOwnership. Before flink-connector-kafka 4.0 there is the prefix alone: a text, as
    which a writer of Doris (its connector 1.1) has its prefix of labels.
    """

    transactional_id_prefix: str
    subtask: int
    owned_subtask: int | None = None
    total_subtasks: int | None = None
    ownership: str | None = None
    precommitted: tuple[tuple[str, int], ...] = ()


class KafkaProducerState(NamedTuple):
    """The state of a subtask of FlinkKafkaProducer besides what waits for its commit.

    A restore aborts `pending`, which it had open since `pending_since`, epoch milliseconds, and
    every transaction of its `transactional_ids`; all three are None or empty where there is none.
    `next_free_id` is the number of the next id that no producer has had, in one subtask alone.
    """

    subtask: int
    pending: KafkaTransaction | None = None
    pending_since: int | None = None
    transactional_ids: tuple[str, ...] = ()
    next_free_id: int | None = None


class UnknownWriterState(NamedTuple):
    """The state of a writer of another sink: bytes of its own serializer, and their version."""

    subtask: int
    version: int
    data: bytes


SinkWriter = KafkaWriterState | KafkaProducerState | BucketState | UnknownWriterState


@dataclass(frozen=True)
class SinkState:
    """The state of an operator of a sink: what is to be committed, and what its writers know.

    A sink has them in two operators, its committer and its writer.
    """

    committables: tuple[Committable, ...]
    writers: tuple[SinkWriter, ...]


def read_sink_state(elements: Iterable[tuple[str, int, object]], name: str) -> SinkState:
    """Return the state of a sink, of its elements with their states and subtasks.

    `name` is that of the savepoint and its operator, for errors. Bytes do not say of which class
    they are: they are Kafka's, of files, or of another connector, if they pass as such and as
    nothing else. Raises SavepointError.
    """
    committables: list[Committable] = []
    writers: list[SinkWriter] = []
    for state, subtask, element in elements:
        if state == ICEBERG_STATE:
            committables += _of_iceberg(element, subtask, name)
            continue
        cursor = _cursor(element, subtask, name)
        version, framed = versioned(cursor)
        cursor.expect_end("an element")
        if state == COMMITTER_STATE:
            committables += _committables(version, framed, subtask)
        else:
            writers.append(_writer(version, framed, subtask))
    return SinkState(tuple(committables), tuple(writers))


def _cursor(element: object, subtask: int, name: str) -> Cursor:
    """Return a cursor on the bytes of an element."""
    if not isinstance(element, bytes):
        raise SavepointError(
            f"{name}: an element of subtask {subtask} is no bytes, but {show(element)}"
        )
    return Cursor(element, f"{name}, an element of subtask {subtask}")


def _listed(cursor: Cursor, read: Callable[[int, Cursor], T]) -> list[T]:
    """Read a list that has its version once. Flink: readVersionAndDeserializeList."""
    version = cursor.i32()
    read_elements = []
    for _ in range(cursor.count(4)):
        framed = cursor.frame()
        read_elements.append(read(version, framed))
        framed.expect_end("an element of a list")
    return read_elements


def _committables(version: int, cursor: Cursor, subtask: int) -> list[Committable]:
    """Return the committables of an element: Flink's own, or Paimon's under the same name.

    What neither can read is an error of Flink's.
    Flink: CommittableCollectorSerializer.deserialize.
    """
    start = cursor.pos
    try:
        return _of_flink(version, cursor, subtask)
    except SavepointError as error:
        cursor.pos = start
        with suppress(SavepointError):
            return [
                _waiting(what, what.fields["checkpoint_id"], subtask)
                for what in read_paimon(version, cursor)
            ]
        raise error


def _of_flink(version: int, cursor: Cursor, subtask: int) -> list[Committable]:
    cursor.expect("version of committables", version, 1, 2)
    if version == 1:
        found = [_waiting(what, None, subtask) for what in _listed(cursor, _committable)]
    else:
        if cursor.i32() != _MAGIC:
            raise cursor.error("these are no committables")
        checkpoints = _listed(cursor, lambda version, at: _checkpoint(version, at, subtask))
        found = [what for checkpoint in checkpoints for what in checkpoint]
    cursor.expect_end("committables")
    return found


def _of_iceberg(element: object, subtask: int, name: str) -> Iterator[Committable]:
    """Yield the committables of Iceberg's FlinkSink; a checkpoint without one has no bytes."""
    checkpoints = element if isinstance(element, dict) else {None: element}
    for checkpoint_id, data in checkpoints.items():
        if not isinstance(checkpoint_id, int):
            raise SavepointError(
                f"{name}: an element of subtask {subtask} has no map of checkpoints, but "
                f"{show(element)}"
            )
        if data != b"":
            cursor = _cursor(data, subtask, name)
            yield _waiting(read_manifests(checkpoint_id, cursor), checkpoint_id, subtask)


def _waiting(
    what: Committed,
    checkpoint_id: int | None,
    subtask: int,
) -> Committable:
    """Return a committable of which there is no more than that it waits."""
    return Committable(what, checkpoint_id, subtask, None, _STATES[0], 0)


def _checkpoint(version: int, cursor: Cursor, subtask: int) -> list[Committable]:
    """Read a CheckpointCommittableManagerImpl: those of one checkpoint, of several writers."""
    cursor.expect("version of a checkpoint's committables", version, 0, 1)
    checkpoint_id = cursor.i64()
    if version == 1:
        cursor.i32()  # the number of writers

    def read(version: int, at: Cursor) -> list[Committable]:
        cursor.expect("version of a subtask's committables", version, 0, 1, 2)
        writer = at.i32() if version else None
        requests = _listed(at, _request)
        for _ in range(2 if version == 2 else 3):
            at.i32()  # how many there were in all, are committed (to version 1), have failed
        return [
            Committable(what, checkpoint_id, subtask, writer, state, retries)
            for what, retries, state in requests
        ]

    return [what for found in _listed(cursor, read) for what in found]


def _request(version: int, cursor: Cursor) -> tuple[Committed, int, str]:
    """Read a CommitRequestImpl."""
    cursor.expect("version of a request to commit", version, 0)
    what = _committable(*versioned(cursor))
    retries, state = cursor.i32(), cursor.i32()
    cursor.expect("state of a request to commit", state, *range(len(_STATES)))
    return what, retries, _STATES[state]


def _committable(version: int, cursor: Cursor) -> Committed:
    start = cursor.pos
    reads: tuple[Callable[[int, Cursor], Committed], ...] = (
        *(_kafka_transaction, read_file_committable, read_connector_committable),
    )
    with suppress(SavepointError):
        return the_only(cursor, [partial(read, version) for read in reads])
    cursor.pos = start
    return UnknownCommittable(version, cursor.take(cursor.left))


def _kafka_transaction(version: int, cursor: Cursor) -> KafkaTransaction:
    """Read all that is left. Kafka's sink: KafkaCommittableSerializer."""
    cursor.expect("version of a transaction of Kafka", version, 1)
    epoch, producer = cursor.u16(), cursor.i64()
    transaction = KafkaTransaction(cursor.utf(), producer, epoch)
    cursor.expect_end("a transaction")
    if epoch >= 1 << 15 or producer < 0 or not transaction.transactional_id:
        raise cursor.error(f"{show(transaction)} is no transaction of Kafka")
    return transaction


def _writer(version: int, cursor: Cursor, subtask: int) -> SinkWriter:
    start = cursor.pos
    for read in (_kafka_writer, read_bucket):
        cursor.pos = start
        with suppress(SavepointError):
            return read(version, cursor, subtask)
    cursor.pos = start
    return UnknownWriterState(subtask, version, cursor.take(cursor.left))


def _kafka_writer(version: int, cursor: Cursor, subtask: int) -> KafkaWriterState:
    """Read all that is left. Kafka's sink: KafkaWriterStateSerializer."""
    cursor.expect("version of a writer of Kafka", version, 1, 2)
    state = KafkaWriterState(cursor.utf(), subtask)
    if version == 2:
        owned, total, ownership = cursor.i32(), cursor.i32(), cursor.i32()
        cursor.expect("ownership of transactions", ownership, *range(len(_OWNERSHIPS)))
        precommitted = tuple((cursor.utf(), cursor.i64()) for _ in range(cursor.count(10)))
        state = state._replace(
            owned_subtask=owned,
            total_subtasks=total,
            ownership=_OWNERSHIPS[ownership],
            precommitted=precommitted,
        )
    cursor.expect_end("the state of a writer")
    if not state.transactional_id_prefix:
        raise cursor.error("a prefix of transactional ids is missing")
    return state


# --- FlinkKafkaProducer --------------------------------------------------------------------------

_HINTS = (kafka_producer.TransactionHintSerializer(),)
# Older versions have no flag before the pending transaction, whose start is always written.
_PRODUCERS = tuple(
    TwoPhaseCommitSerializer(
        kafka_producer.TransactionSerializer(),
        kafka_producer.TransactionContextSerializer(),
        has_flag,
    )
    for has_flag in (True, False)
)


def read_producer_state(elements: Iterable[tuple[str, int, object]], name: str) -> SinkState:
    """Return the state of FlinkKafkaProducer; the arguments are those of `read_sink_state`.

    Kafka's sink: TwoPhaseCommitSinkFunction.initializeState, FlinkKafkaProducer.initializeState.
    """
    committables: list[Committable] = []
    writers: dict[int, KafkaProducerState] = {}
    for state_name, subtask, element in elements:
        writer = writers.get(subtask, KafkaProducerState(subtask))
        where = f"{name}, an element of subtask {subtask}"
        if state_name == HINT_STATE:
            hint: NextTransactionalIdHint = _value(element, _HINTS, _is_hint, where)
            writer = writer._replace(next_free_id=hint.next_free_transactional_id)
        else:
            state: TwoPhaseCommitState = _value(element, _PRODUCERS, _is_of_kafka, where)
            if state.pending_transaction is not None:
                pending, since = state.pending_transaction
                writer = writer._replace(pending=pending, pending_since=since)
            if state.context is not None:
                writer = writer._replace(transactional_ids=tuple(state.context.value))
            committables += (
                _waiting(holder.handle, None, subtask)
                for holder in state.pending_commit_transactions
            )
        writers[subtask] = writer
    return SinkState(tuple(committables), tuple(writers[subtask] for subtask in sorted(writers)))


def _value(
    element: object,
    serializers: Sequence[Serializer],
    is_one: Callable[[object], bool],
    where: str,
) -> Any:
    """Return the value of an element, which is bytes where its serializer is not known.

    So it is with a copy of Kafka's classes in a package of the job's own. Which version wrote the
    bytes they do not say: they are those of one layout alone.
    """
    values = [element]
    if isinstance(element, bytes):
        values = []
        for serializer in serializers:
            with suppress(InvalidValueError):
                values.append(serializer.decode(element))
    found = [value for value in values if is_one(value)]
    if len(found) != 1:
        raise SavepointError(f"{where} is no state of FlinkKafkaProducer: {show(element)}")
    return found[0]


def _is_hint(value: object) -> bool:
    return isinstance(value, NextTransactionalIdHint)


def _is_of_kafka(value: object) -> bool:
    if not isinstance(value, TwoPhaseCommitState):
        return False
    pending, waiting, context = value
    ids = [] if context is None else context.value
    return (
        isinstance(ids, list)
        and all(isinstance(name, str) for name in ids)
        and all(_is_started(it) for it in [*waiting, *([] if pending is None else [pending])])
    )


def _is_started(holder: TransactionHolder) -> bool:
    """Return whether a transaction is Kafka's; it has an id where the semantic is EXACTLY_ONCE."""
    it, since = holder
    return (
        isinstance(it, KafkaTransaction)
        and it.transactional_id != ""
        and min(it.producer_id, it.epoch) >= -1
        and since >= 0
    )
