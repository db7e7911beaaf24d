"""A new savepoint, from which a job starts.

`SavepointWriter.add_operator` takes the states as the job's own descriptors name them, which are
those of `keygroups.savepoint.descriptors`, and returns the `OperatorWriter` of their entries and
of list, union and broadcast states. `add_window_operator` takes one of
`keygroups.savepoint.windows`, and returns the `WindowOperatorWriter` of what is in them.
An operator without a uid in the job, such as one of Flink SQL, is named by an `OperatorId`, which
is in `keygroups.savepoint.sql`.
`add_source` with `keygroups.savepoint.sources.KafkaOffsets` says where a source goes on. With a
savepoint of the job as its `template` the writer takes ids and types from that, which is how
state of Flink SQL is written. `SavepointWriter.from_existing_savepoint` changes a savepoint: see
`keygroups.savepoint.editing`.

`keygroups.spark.write_savepoint` writes on executors.
"""

from keygroups.savepoint._windows.window_writer import WindowOperatorWriter
from keygroups.savepoint._writing.operator_writer import OperatorWriter
from keygroups.savepoint._writing.savepoint_writer import SavepointWriter

__all__ = ["OperatorWriter", "SavepointWriter", "WindowOperatorWriter"]
__dir__ = __all__.copy
