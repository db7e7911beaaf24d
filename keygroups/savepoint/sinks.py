"""The open work of a job's sinks: transactions and files that a restore commits.

`Operator.sink_state` returns the `SinkState` of a sink's committer or writer, whose classes are
of Flink's own Sink API. A `Committable` is what the committer is to commit: a `KafkaTransaction`,
of other sinks an `UnknownCommittable` with its bytes. A `KafkaWriterState` has the transactional
ids of a writer of KafkaSink, a `KafkaProducerState` those of the older FlinkKafkaProducer, which
has both in one operator, an `UnknownWriterState` the bytes of another sink's.

A job that restores commits each of them, and does so again if it was committed before. Where the
operator is removed from a savepoint, nobody commits them: transactions of Kafka stay open until
they time out, and files in progress stay as they are.
"""

from keygroups.savepoint._sinks.committables import (
    Committable,
    KafkaProducerState,
    KafkaTransaction,
    KafkaWriterState,
    SinkState,
    UnknownCommittable,
    UnknownWriterState,
)

__all__ = [
    "Committable",
    "KafkaProducerState",
    "KafkaTransaction",
    "KafkaWriterState",
    "SinkState",
    "UnknownCommittable",
    "UnknownWriterState",
]
__dir__ = __all__.copy
