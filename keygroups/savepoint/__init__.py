"""Savepoints and checkpoints of Flink, read without a JVM.

`read_savepoint` reads what a job holds: its operators with their parallelism, max parallelism and
state, the keys and values of keyed state and how heavy they are, and operator state.
"""

from keygroups._row_reader import TimestampData
from keygroups._serializers import GlobalWindow, Row, Serializer, TimeWindow, TtlValue
from keygroups.savepoint._entries import StateEntry
from keygroups.savepoint._keyed_header import StateDescriptor
from keygroups.savepoint._operator_state import OperatorStateEntry
from keygroups.savepoint._read_task import ReadTask
from keygroups.savepoint._report import OperatorReport, operator_reports
from keygroups.savepoint._savepoint import KeySize, Operator, Savepoint, Subtask, read_savepoint

__all__ = [
    "GlobalWindow",
    "KeySize",
    "Operator",
    "OperatorReport",
    "OperatorStateEntry",
    "ReadTask",
    "Row",
    "Savepoint",
    "Serializer",
    "StateDescriptor",
    "StateEntry",
    "Subtask",
    "TimeWindow",
    "TimestampData",
    "TtlValue",
    "operator_reports",
    "read_savepoint",
]
__dir__ = __all__.copy
