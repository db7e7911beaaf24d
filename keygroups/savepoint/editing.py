"""A savepoint made from another: unchanged operators are copied byte for byte, in any format.

`SavepointWriter.from_existing_savepoint` returns a `SavepointEditor`, a SavepointWriter whose
`add_operator` is as in a new savepoint:

- `remove_operator`, `change_operator_identifier` and `add_operator_from` another savepoint, with
  an `OperatorId` of `keygroups.savepoint.sql` for operators without a uid;
- `set_max_parallelism` and `convert_to_canonical`, of all operators or of some;
- `operator` returns the `OperatorEditor` of one: `remove_state`, `rename_state`, `set_ttl`,
  `convert_state`, `delete_keys`, `map_entries`, `map_batches`, `map_timers`, `map_keys`, and of
  operator state `remove_operator_state`, `rename_operator_state`, `map_operator_state`;
- `report` returns a `keygroups.savepoint.reports.EditReport`: the edits of each operator, and the
  places that may still hold deleted keys.

A function of `map_entries` returns the new value, one of `map_timers` the new timestamp, or
`DELETE`; one of `map_batches` takes and returns thousands of values as columns of Arrow. All verbs
are done in one pass over the state. `keygroups.spark.edit_savepoint` has executors do it.
"""

from keygroups.savepoint._edits.editor import OperatorEditor
from keygroups.savepoint._edits.steps import DELETE
from keygroups.savepoint._writing.savepoint_writer import SavepointEditor

__all__ = ["DELETE", "OperatorEditor", "SavepointEditor"]
__dir__ = __all__.copy
