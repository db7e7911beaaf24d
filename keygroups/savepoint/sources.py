"""The splits of a source and the offset at which each continues, read and written.

`Operator.source_splits` returns `SourceSplits`, with a `KafkaSplit` for each partition, a
`FileSplit` for each file, a `KinesisSplit` for each shard of FlinkKinesisConsumer, a
`ConnectorSplit` for one of the connectors below them, and for other sources an `UnknownSplit` with
its bytes. `KafkaOffsets` are for `SavepointWriter.add_source`: an offset for each partition, or a
`SpecialOffset`.

>>> from tempfile import mkdtemp
>>> from keygroups.savepoint.writing import SavepointWriter
>>> offsets = {("clicks", 0): 4711, ("clicks", 1): SpecialOffset.EARLIEST}
>>> with SavepointWriter(mkdtemp() + "/savepoint") as writer:
...     writer.add_source("clicks", KafkaOffsets(offsets), 128, parallelism=2)
>>> source = writer.savepoint().operator("clicks").source_splits()
>>> [(split.partition, split.offset) for split in source.splits]
[(0, 4711), (1, <SpecialOffset.EARLIEST: -2>)]

The serializers of splits that are known, each with its versions, and how: by files that a real
connector wrote, or from its public source alone.

    source                    serializer                        versions  known by
    KafkaSource               KafkaPartitionSplitSerializer     0         run on real files
    DynamicKafkaSource        DynamicKafkaSourceSplitSerializer 1         run on real files
    FlinkKafkaConsumer        a union list of pairs                       run on real files
    FlinkKinesisConsumer      a union list of pairs                       run on real files
    FileSource                FileSourceSplitSerializer         1         run on real files
    HybridSource              HybridSourceSplitSerializer       0         run on real files
    Kinesis (KinesisStreams)  KinesisShardSplitSerializer       0 to 2    from source
    Pulsar                    PulsarPartitionSplitSerializer    0 to 2    from source
    MySQL CDC                 MySqlSplitSerializer              1 to 4    run on a real file of 4
    CDC (Postgres and others) SourceSplitSerializer             4 to 6    from source
    MongoDB                   MongoSourceSplitSerializer        0         from source
    JDBC                      JdbcSourceSplitSerializer         0 to 1    from source
    Iceberg                   IcebergSourceSplitSerializer      2 to 3    from source
    Paimon                    FileStoreSourceSplitSerializer    1         from source

`fields` of a ConnectorSplit are

- of Kinesis stream_arn, shard, starts (such as AFTER_SEQUENCE_NUMBER) and marker, a sequence
  number or epoch milliseconds; from version 1 parents and hash_keys, in 2 is_finished;
- of Pulsar topic, partition (-1 for a topic without), ranges, stop_cursor, last_message (ledger,
  entry, partition, place in its batch) and transaction;
- of MySQL CDC, and of CDC, which is the base of the other databases' connectors: of a stream
  split_id, starting_offset (such as file, pos and gtids), ending_offset, finished_chunks, tables,
  from version 3 total_finished_chunks, and is_suspended, of CDC 6 is_snapshot_completed; of a
  chunk of a snapshot split_id, table, key_type, start, end, high_watermark and tables;
- of MongoDB split_id, database, collection, min, max and hint; of JDBC split_id, sql, parameters,
  checkpointed_offset and, in version 1, snapshot_id;
- of Iceberg files (path, start, length), file_offset and record_offset; of Paimon split_id, split
  and records_to_skip.

What is an object of Java in them is its bytes, or, of the bounds of chunks, the hex text of these.
The splits of one's own source are read by a `SplitLayout`, which `splits` of `read_savepoint`
takes by operator.
"""

from keygroups.savepoint._sources.consumers import KinesisSplit
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaOffsets, KafkaSplit, SpecialOffset
from keygroups.savepoint._sources.source_splits import SourceSplits, UnknownSplit
from keygroups.savepoint._sources.split_layouts import ConnectorSplit, SplitLayout

__all__ = [
    "ConnectorSplit",
    "FileSplit",
    "KafkaOffsets",
    "KafkaSplit",
    "KinesisSplit",
    "SourceSplits",
    "SpecialOffset",
    "SplitLayout",
    "UnknownSplit",
]
__dir__ = __all__.copy
