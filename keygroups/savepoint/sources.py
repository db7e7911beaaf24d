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

The serializers of splits that are known, each with its versions, those of the enumerator's state,
and how: by files that a real connector wrote, by bytes that its own classes made, or from its
public source alone.

    source            serializer                           versions  enumerator  known by
    KafkaSource       KafkaPartitionSplitSerializer        0         0 to 3      real files
    DynamicKafka      DynamicKafkaSourceSplitSerializer    1         1 to 2      real files
    KafkaConsumer     a union list of pairs                          none        real files
    KinesisConsumer   a union list of pairs                          none        real files
    FileSource        FileSourceSplitSerializer            1         1           real files
    HybridSource      HybridSourceSplitSerializer          0         0           real files
    Kinesis           KinesisShardSplitSerializer          0 to 2    0 to 1      source
    DynamoDB Streams  DynamoDbStreamsShardSplitSerializer  0 to 2    0           source
    Pulsar            PulsarPartitionSplitSerializer       0 to 2    0 to 3      source
    MySQL CDC         MySqlSplitSerializer                 1 to 4    1 to 5      real files of 4
    CDC               SourceSplitSerializer                3 to 6    3 to 8      its classes
    MongoDB           MongoSourceSplitSerializer           0         0           source
    JDBC              JdbcSourceSplitSerializer            0 to 1    0           source
    Iceberg           IcebergSourceSplitSerializer         1 to 3    1 to 2      its classes
    Paimon            FileStoreSourceSplitSerializer       1         1           source

Kinesis is that of KinesisStreamsSource, CDC that of Postgres and others. Its own classes wrote
CDC's newest, 6 and 8, and MySQL's newest enumerator, 5; all else of these is from source.
No release of CDC's base wrote the versions 1 and 2. Some chunks of version 3 have the same bytes
in MySQL's: the source is "MySQL CDC or CDC" then.

`fields` of a ConnectorSplit are

- of Kinesis stream_arn, shard, starts (such as AFTER_SEQUENCE_NUMBER) and marker, a sequence
  number or epoch milliseconds; from version 1 parents and hash_keys, in 2 is_finished; of
  DynamoDB the same but for the keys, with parent and children, each with its parent and ends;
- of Pulsar topic, partition (-1 for a topic without), ranges, stop_cursor, last_message (ledger,
  entry, partition, place in its batch) and transaction;
- of MySQL CDC, and of CDC, which is the base of the other databases' connectors: of a stream
  split_id, starting_offset (such as file, pos and gtids), ending_offset, finished_chunks, tables,
  from version 3 total_finished_chunks, and is_suspended, of CDC 6 is_snapshot_completed; of a
  chunk of a snapshot split_id, table, key_type, start, end, high_watermark and tables;
- of MongoDB split_id, database, collection, min, max, hint and offset; of JDBC split_id, sql,
  parameters, checkpointed_offset and, in version 1, snapshot_id;
- of Iceberg files (path, start, length), file_offset and record_offset; of Paimon split_id, split
  and records_to_skip.

`enumerator_fields` are, besides the splits that no reader has, which are among `splits`,

- of Kinesis last_seen_shard, assigned_splits and finished_splits, of DynamoDB also
  start_timestamp; of Pulsar partitions, those that readers have got;
- of both CDC processed_tables, remaining_tables, assigned_splits, finished_offsets, status,
  schemas, is_case_sensitive, the splitting_table with next_chunk_start and next_chunk_id,
  is_stream_assigned, and of the base finished_checkpoint_ids, as far as the version has them; a
  status is "SUSPENDED or NEWLY_ADDED_ASSIGNING" where MySQL's 2.3.0 and 2.4.0 mean other ones;
- of MongoDB remaining_collections, processed_collections, assigned_splits and is_initialized; of
  JDBC completed_splits, pending_splits and state;
- of Iceberg snapshot (its id and time), statuses of the splits and split_counts; of Paimon
  next_snapshot.

`diff` compares them as sets where the state is one.

The lag behind ends that `Operator.source_splits` takes is exact or refused: records of Kafka;
entries of Pulsar within one ledger; of Kinesis none, as what lies between two sequence numbers
is no count, and the state has no times.

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
