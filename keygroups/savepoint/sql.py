"""Descriptions of the state of Flink SQL: its operators, and the columns in their states.

A savepoint names neither. `describe_sql_state` recognises an operator of SQL by its states, and
returns its `SqlOperatorDescription`, with a `SqlStateDescription` for each state. The names of
columns come from the text of EXPLAIN. Rows can be read without a description, as tuples with a row
kind: `keygroups.savepoint.values.Row`.
"""

from keygroups.savepoint._metadata.handles import OperatorId
from keygroups.savepoint._sql.sql_state import (
    SqlOperatorDescription,
    SqlStateDescription,
    describe_sql_state,
)

__all__ = ["OperatorId", "SqlOperatorDescription", "SqlStateDescription", "describe_sql_state"]
__dir__ = __all__.copy
