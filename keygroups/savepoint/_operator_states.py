"""The operator state of one operator: its elements, the splits of a source, a sink's commits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

from keygroups._checks import check_states, show
from keygroups._serializers.data_input import ReadingContext
from keygroups.errors import InvalidValueError
from keygroups.progress import ProgressCallback, measured
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import (
    OperatorStateHandle,
    StreamHandle,
    SubtaskState,
)
from keygroups.savepoint._sinks.committables import (
    HINT_STATE,
    PRODUCER_STATE,
    SINK_STATES,
    SinkState,
    read_producer_state,
    read_sink_state,
)
from keygroups.savepoint._sources.consumers import CONSUMERS
from keygroups.savepoint._sources.lag import Ends, is_of_one_cluster, source_with_lag
from keygroups.savepoint._sources.source_splits import (
    READER_STATE,
    SourceSplits,
    read_consumer_splits,
    read_source_splits,
)
from keygroups.savepoint._sources.split_layouts import SplitLayout
from keygroups.savepoint._state.operator_state import OperatorStateEntry, read_operator_state


class OperatorStateReader:
    """The half of an Operator that reads what is not keyed, from what the Operator holds."""

    _subtasks: list[SubtaskState]
    _coordinator: StreamHandle | None
    _files: Files
    _context: ReadingContext
    _progress: ProgressCallback | None
    _split_layout: SplitLayout | None
    _ends: Mapping[tuple[str, int], int] | None

    @property
    @abstractmethod
    def label(self) -> str:
        """The uid, else the name, else the id."""

    def operator_state(self, states: Iterable[str] | None = None) -> Iterator[OperatorStateEntry]:
        """Return an iterator over the operator states, list, union and broadcast, of all subtasks.

        `states` are names of operator states, of which a state that is not named is not read;
        None is all. An element that only the job's own classes can read is bytes.

        Raises InvalidValueError or InvalidTypeError for a name of no state, SavepointError where
        they are damaged.
        """
        handles = self._operator_state_handles()
        declared, names = self._context.declared, self._operator_state_names()
        if declared is not None:
            names = [declared.name_of(name) for name in names]
        wanted = None if states is None else check_states(states, names, self.label)
        if declared is None:
            return self._operator_state(handles, wanted)
        if wanted is not None:
            wanted = frozenset(map(declared.stored_name_of, wanted))
        entries = self._operator_state(handles, wanted)
        return (declared.of_operator_state(entry, self._files.base) for entry in entries)

    def _operator_state(
        self,
        handles: Sequence[tuple[int, OperatorStateHandle, bool]],
        wanted: frozenset[str] | None,
    ) -> Iterator[OperatorStateEntry]:
        plan = ((handle.stream, [(0, handle.stream.size)]) for _, handle, _ in handles)
        work = f"read the operator state of {self.label}"
        with (
            measured(
                self._progress, work, lambda: sum(handle.stream.size for _, handle, _ in handles)
            ) as meter,
            self._files.metered(meter).ahead(plan) as files,
        ):
            for index, handle, is_raw in handles:
                yield from read_operator_state(files, handle, index, is_raw, self._context, wanted)

    def _operator_state_names(self) -> list[str]:
        """Return the names of the operator states, as `_metadata` has them."""
        handles = self._operator_state_handles()
        return [name for _, handle, _ in handles for name, _, _ in handle.states]

    def _operator_state_handles(self) -> list[tuple[int, OperatorStateHandle, bool]]:
        """Return the handles of operator state, with their subtasks, and whether they are raw."""
        return [
            (subtask.index, handle, is_raw)
            for subtask in self._subtasks
            for handle, is_raw in (
                (subtask.managed_operator, False),
                (subtask.raw_operator, True),
            )
            if handle is not None
        ]

    def coordinator_state(self) -> bytes | None:
        """Return the state of the operator's coordinator, None where it has none.

        Raises SavepointError where it cannot be read.
        """
        if self._coordinator is None:
            return None
        with self._files.open(self._coordinator) as stream:
            return stream.read(0, stream.size)

    def source_splits(self, ends: Ends | None = None) -> SourceSplits:
        """Return the splits of a source, where each goes on.

        Those of the sources in the table of `keygroups.savepoint.sources` are decoded, and one's
        own by `splits` of `read_savepoint`; of others the bytes are told. `ends` maps partitions
        of Kafka, each a topic and a number, to the offset that the next record written there gets,
        which tells the lag of each split; the ends of partitions that the source does not read
        are not looked at. None is those of `read_savepoint`, for a source of one cluster of Kafka.

        Of Pulsar `ends` maps each topic and its number, -1 for one without partitions, to the
        ledger and the entry of the last message there: the lag is the entries after that of the
        split's `last_message`, each a batch of messages, and is refused where they are in two
        ledgers, as nobody here knows the entries of one. Kinesis has no lag that is exact: what
        lies between two sequence numbers is no count, and the state has no times.

        Raises InvalidValueError for an operator that is no such source, and for ends of one that
        is neither Kafka's nor Pulsar's, InvalidTypeError, SavepointError where the state is
        damaged.
        """
        names = self._operator_state_names()
        states = [state for state in (READER_STATE.name, *CONSUMERS) if state in names]
        if not states:
            raise InvalidValueError(
                f"operator {show(self.label)} must be a source, got one without "
                f"{READER_STATE.name}"
            )
        state, *_ = states
        elements: list[tuple[int, object]] = [
            (entry.subtask, element)
            for entry in self.operator_state([state])
            if entry.mode != "BROADCAST"
            for element in entry.elements
        ]
        name = f"{self._files.base}: operator {self.label}"
        if state in CONSUMERS:
            source = read_consumer_splits(state, elements, name)
        else:
            coordinator = self.coordinator_state()
            source = read_source_splits(elements, coordinator, name, self._split_layout)
        if ends is None and all(is_of_one_cluster(split) for split in source.splits):
            ends = self._ends
        return source_with_lag(source, ends)

    def sink_state(self) -> SinkState:
        """Return the open transactions of a sink, which a restore commits, and its writers.

        A sink of Flink's Sink API has two operators with state, its committer and its writer.
        Transactions of KafkaSink and Pulsar, files of FileSink, Iceberg's manifests and Paimon's
        messages are decoded, of other sinks the bytes are told. The older FlinkKafkaProducer and
        StreamingFileSink have all in one operator.

        Raises InvalidValueError for an operator that is neither, SavepointError where the state
        is damaged.

        Flink: CommittableCollectorSerializer. Kafka's sink: KafkaWriterStateSerializer.
        """
        names = self._operator_state_names()
        is_producer = HINT_STATE in names
        known = (PRODUCER_STATE, HINT_STATE) if is_producer else SINK_STATES
        wanted = [name for name in known if name in names]
        if not wanted:
            raise InvalidValueError(
                f"operator {show(self.label)} must be the committer or the writer of a sink, got "
                f"one without {' and '.join(SINK_STATES)}"
            )
        elements = (
            (entry.state, entry.subtask, element)
            for entry in self.operator_state(wanted)
            for element in entry.elements
        )
        read = read_producer_state if is_producer else read_sink_state
        return read(elements, f"{self._files.base}: operator {self.label}")


def is_source(operator: OperatorStateReader) -> bool:
    """Return whether an operator has the splits of a source."""
    names = operator._operator_state_names()
    return any(name in names for name in (READER_STATE.name, *CONSUMERS))


def is_sink(operator: OperatorStateReader) -> bool:
    """Return whether an operator is the committer or the writer of a sink."""
    names = operator._operator_state_names()
    return any(name in names for name in (*SINK_STATES, HINT_STATE))
