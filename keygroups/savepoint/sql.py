"""What the state of Flink SQL holds, which nothing in a savepoint says.

`describe_sql_state` tells the operators of SQL apart by their states, and returns the
`SqlOperatorDescription` of one, with a `SqlStateDescription` for each state. The names of columns
come from the text of EXPLAIN. Rows are read, as tuples with a row kind, without any of it:
`keygroups.savepoint.values.Row`.
"""

from keygroups.savepoint._metadata.handles import OperatorId
from keygroups.savepoint._sql.sql_state import (
    SqlOperatorDescription,
    SqlStateDescription,
    describe_sql_state,
)

__all__ = ["OperatorId", "SqlOperatorDescription", "SqlStateDescription", "describe_sql_state"]
__dir__ = __all__.copy
