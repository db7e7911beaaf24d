"""The splits of a source and the offset at which each continues, read and written.

`Operator.source_splits` returns `SourceSplits`, with a `KafkaSplit` for each partition, a
`FileSplit` for each file, a `KinesisSplit` for each shard of FlinkKinesisConsumer, and for other
sources an `UnknownSplit` with its bytes. `KafkaOffsets` are for `SavepointWriter.add_source`: an
offset for each partition, or a `SpecialOffset`.

>>> from tempfile import mkdtemp
>>> from keygroups.savepoint.writing import SavepointWriter
>>> offsets = {("clicks", 0): 4711, ("clicks", 1): SpecialOffset.EARLIEST}
>>> with SavepointWriter(mkdtemp() + "/savepoint") as writer:
...     writer.add_source("clicks", KafkaOffsets(offsets), 128, parallelism=2)
>>> source = writer.savepoint().operator("clicks").source_splits()
>>> [(split.partition, split.offset) for split in source.splits]
[(0, 4711), (1, <SpecialOffset.EARLIEST: -2>)]
"""

from keygroups.savepoint._sources.consumers import KinesisSplit
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaOffsets, KafkaSplit, SpecialOffset
from keygroups.savepoint._sources.source_splits import SourceSplits, UnknownSplit

__all__ = [
    "FileSplit",
    "KafkaOffsets",
    "KafkaSplit",
    "KinesisSplit",
    "SourceSplits",
    "SpecialOffset",
    "UnknownSplit",
]
__dir__ = __all__.copy
