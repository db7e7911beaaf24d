"""Whether all of a savepoint is there, undamaged, and where Flink looks for it.

`Savepoint.verify` returns a `SavepointVerification`, with an `OperatorVerification` for each
operator; both have a `FaultCount` for each kind of fault that there is, which says how many, and
has the first few, each a `StateFault`. `keygroups.spark.verify_savepoint` verifies on executors,
and `keygroups verify PATH` in a shell. Of an unaligned checkpoint, which keeps what was on its way
between operators, `Operator.in_flight_data` has a `ChannelState` for each channel.
"""

from keygroups.savepoint._metadata.handles import ChannelState
from keygroups.savepoint._verification.faults import FaultCount, StateFault
from keygroups.savepoint._verification.report import (
    OperatorVerification,
    SavepointVerification,
)

__all__ = [
    "ChannelState",
    "FaultCount",
    "OperatorVerification",
    "SavepointVerification",
    "StateFault",
]
__dir__ = __all__.copy
