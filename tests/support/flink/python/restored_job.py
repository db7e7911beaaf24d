"""A PyFlink job that goes on from a savepoint, and prints what its state has as lines of JSON.

    python restored_job.py SAVEPOINT BACKEND PARALLELISM MAX_PARALLELISM UID...

It runs in a Python of its own, which has PyFlink and not keygroups. Operators that are called
"kinds" and "ttl" get one element a key, and say what all their states have of it; "timers",
"tumble" and "session" get none, and say what fires at the end of the input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pyflink.common import Configuration, Time, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import (
    AggregateFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
)
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

KEYS = 7
ELEMENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class Sum(ReduceFunction):
    def reduce(self, left: int, right: int) -> int:
        return left + right


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> list[int]:
        return [*accumulator]

    def merge(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return left[0] + right[0], left[1] + right[1]


class Kinds(KeyedProcessFunction):
    def __init__(self, uid: str) -> None:
        self.uid = uid

    def open(self, context: RuntimeContext) -> None:
        descriptors = {
            "value": ValueStateDescriptor("value", Types.LONG()),
            "list": ListStateDescriptor("list", Types.STRING()),
            "map": MapStateDescriptor("map", Types.STRING(), Types.LONG()),
            "maplp": MapStateDescriptor("maplp", Types.LONG(), Types.PICKLED_BYTE_ARRAY()),
            "reducing": ReducingStateDescriptor("reducing", Sum(), Types.LONG()),
            "aggregating": AggregatingStateDescriptor("aggregating", Mean(), PAIR),
        }
        if self.uid == "ttl":
            for descriptor in descriptors.values():
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(9999)).build())
        self.value = context.get_state(descriptors["value"])
        self.list = context.get_list_state(descriptors["list"])
        self.map = context.get_map_state(descriptors["map"])
        self.maplp = context.get_map_state(descriptors["maplp"])
        self.reducing = context.get_reducing_state(descriptors["reducing"])
        self.aggregating = context.get_aggregating_state(descriptors["aggregating"])

    def process_element(self, element: Any, context: Any) -> Iterator[str]:
        held = {
            "value": self.value.value(),
            "list": [*(self.list.get() or ())],
            "map": sorted(self.map.items()),
            "maplp": sorted(self.maplp.items()),
            "reducing": self.reducing.get(),
            "aggregating": self.aggregating.get(),
        }
        yield json.dumps([self.uid, context.get_current_key(), held])


class Timers(KeyedProcessFunction):
    def open(self, context: RuntimeContext) -> None:
        self.count = context.get_state(ValueStateDescriptor("n", Types.LONG()))

    def process_element(self, element: Any, context: Any) -> None:
        raise AssertionError("it gets no element")

    def on_timer(self, timestamp: int, context: Any) -> Iterator[str]:
        yield json.dumps(["timers", context.get_current_key(), [timestamp, self.count.value()]])


class Contents(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Sequence[Any]) -> Iterator[str]:
        window = context.window()
        numbers = sorted(element[2] for element in elements)
        yield json.dumps([elements[0][0], key, [window.start, window.end, numbers]])


def operator(uid: str, elements: DataStream, none: DataStream) -> DataStream:
    if uid in ("kinds", "ttl"):
        keyed = elements.key_by(lambda element: element[1], key_type=Types.LONG())
        made = keyed.process(Kinds(uid), Types.STRING())
    else:
        keyed = none.key_by(lambda element: element[1], key_type=Types.LONG())
        if uid == "timers":
            made = keyed.process(Timers(), Types.STRING())
        else:
            windows = TumblingEventTimeWindows.of(Time.milliseconds(1_000_000))
            if uid == "session":
                windows = EventTimeSessionWindows.with_gap(Time.milliseconds(100_000))
            made = keyed.window(windows).process(Contents(), Types.STRING())
    return made.uid(uid)


def main(savepoint: str, backend: str, parallelism: str, max_parallelism: str, *uids: str) -> None:
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    for name in ("execution.state-recovery.", "execution.savepoint."):  # Flink 2 and 1
        configuration.set_string(f"{name}path", savepoint)
        configuration.set_string(f"{name}ignore-unclaimed-state", "true")
    for name in ("python.executable", "python.client.executable"):
        configuration.set_string(name, sys.executable)
    configuration.set_string("rest.port", "0")
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(int(parallelism))
    environment.set_max_parallelism(int(max_parallelism))
    elements = environment.from_collection(
        [("new", key, 9) for key in range(KEYS)], type_info=ELEMENT
    ).uid("source of this run")
    none = elements.filter(lambda element: False)
    first, *others = [operator(uid, elements, none) for uid in uids]
    lines = first.union(*others) if others else first
    with lines.execute_and_collect() as results:
        for line in results:
            print(f"STATE {line}", flush=True)


main(*sys.argv[1:])
