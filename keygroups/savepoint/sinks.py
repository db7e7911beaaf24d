"""The open work of a job's sinks: transactions and files that a restore commits.

`Operator.sink_state` returns the `SinkState` of a sink's committer or writer, whose classes are
of Flink's own Sink API. A `Committable` is what the committer is to commit: a `KafkaTransaction`,
a `FileCommittable`, a `ConnectorCommittable` of Iceberg, Paimon or Pulsar, of other sinks an
`UnknownCommittable` with its bytes. A `KafkaWriterState` has the transactional ids of a writer of
KafkaSink, a `KafkaProducerState` those of the older FlinkKafkaProducer, which has both in one
operator; a `BucketState` has the file that a writer of FileSink, or of the older
StreamingFileSink, has in progress, each a `PartFile`; an `UnknownWriterState` has the bytes of
another sink's. The manifests of Iceberg's older FlinkSink, and Paimon's committables, are in the
state of an operator too, which are `committables` here.

A job that restores commits each of them, and does so again if it was committed before. Where the
operator is removed from a savepoint, nobody commits them: transactions of Kafka stay open until
they time out, and files in progress stay as they are.
"""

from keygroups._values.streaming import KafkaTransaction
from keygroups.savepoint._sinks.committables import (
    Committable,
    KafkaProducerState,
    KafkaWriterState,
    SinkState,
    UnknownCommittable,
    UnknownWriterState,
)
from keygroups.savepoint._sinks.connector_committables import ConnectorCommittable
from keygroups.savepoint._sinks.part_files import BucketState, FileCommittable, PartFile

__all__ = [
    "BucketState",
    "Committable",
    "ConnectorCommittable",
    "FileCommittable",
    "KafkaProducerState",
    "KafkaTransaction",
    "KafkaWriterState",
    "PartFile",
    "SinkState",
    "UnknownCommittable",
    "UnknownWriterState",
]
__dir__ = __all__.copy
