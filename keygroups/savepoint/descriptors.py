"""The states of an operator: `StateDescriptor` of one that is read, the others to write one.

`Operator.states` has a `StateDescriptor` for each state. `SavepointWriter.add_operator` takes the
other classes, by the names of Flink's own. Which one a job uses is in its `open`:

    getState(new ValueStateDescriptor<>(...))                    ValueStateDescriptor
    getListState(new ListStateDescriptor<>(...))                 ListStateDescriptor
    getMapState(new MapStateDescriptor<>(...))                   MapStateDescriptor
    getReducingState(new ReducingStateDescriptor<>(...))         ReducingStateDescriptor
    getAggregatingState(new AggregatingStateDescriptor<>(...))   AggregatingStateDescriptor
    ctx.timerService()                                           TimerServiceDescriptor

A time to live, `StateTtlConfig` in the job, is `has_ttl=True`.
"""

from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.new_states import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    TimerServiceDescriptor,
    ValueStateDescriptor,
)

__all__ = [
    "AggregatingStateDescriptor",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "ReducingStateDescriptor",
    "StateDescriptor",
    "TimerServiceDescriptor",
    "ValueStateDescriptor",
]
__dir__ = __all__.copy
