"""A PyFlink job that goes on from a savepoint, and prints what its state has as lines of JSON.

    python restored_job.py OPTIONS

It runs in a Python of its own, which has PyFlink and not keygroups. OPTIONS are JSON: the
backend, the mode, parallelisms and so on. Operators that are called "kinds" and "ttl" get one
element a key, and say what all their states have of it; the others but "count" and "slides" get
none, and say what fires at the end of the input.
With `make` the job begins without a savepoint, gets some elements of each key, and leaves one.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    StreamExecutionEnvironment,
)
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
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from pyflink.java_gateway import get_gateway

KEYS = 7
FED = ("kinds", "ttl", "count", "slides")  # operators that get an element of each key
COUNTED = 3
SLIDING = 4, 2
MADE_KEYS, NUMBERS = range(5), range(4)
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
        made, _, number = element
        if made == "made":
            self.value.update((self.value.value() or 0) + number)
            self.list.add(f"n{number}")
            self.map.put(f"m{number % 3}", number)
            self.maplp.put(number, ("p", number))
            self.reducing.add(number)
            self.aggregating.add(number)
        else:
            yield json.dumps([self.uid, context.get_current_key(), self.held()])

    def held(self) -> dict[str, Any]:
        return {
            "value": self.value.value(),
            "list": [*(self.list.get() or ())],
            "map": sorted(self.map.items()),
            "maplp": sorted(self.maplp.items()),
            "reducing": self.reducing.get(),
            "aggregating": self.aggregating.get(),
        }


class Timers(KeyedProcessFunction):
    def open(self, context: RuntimeContext) -> None:
        self.count = context.get_state(ValueStateDescriptor("n", Types.LONG()))

    def process_element(self, element: Any, context: Any) -> Iterator[str]:
        _, key, number = element
        self.count.update((self.count.value() or 0) + 1)
        context.timer_service().register_event_time_timer(10_000_000 + 1_000 * key + number)
        yield from ()

    def on_timer(self, timestamp: int, context: Any) -> Iterator[str]:
        yield json.dumps(["timers", context.get_current_key(), [timestamp, self.count.value()]])


class Contents(ProcessWindowFunction):
    def __init__(self, uid: str) -> None:
        self.uid = uid

    def process(self, key: int, context: Any, elements: Sequence[Any]) -> Iterator[str]:
        window = context.window()
        place = [window.id] if self.uid in ("count", "slides") else [window.start, window.end]
        numbers = sorted(element[2] for element in elements)
        yield json.dumps([self.uid, key, [*place, numbers]])


class Numbers(Mean):
    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return super().add(value[2], accumulator)


class Result(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Sequence[Any]) -> Iterator[str]:
        window = context.window()
        yield json.dumps(["sums", key, [window.start, window.end, *elements]])


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 1_000 * int(value[2])


def operator(uid: str, elements: DataStream) -> DataStream:
    keyed = elements.key_by(lambda element: element[1], key_type=Types.LONG())
    if uid in ("kinds", "ttl"):
        made = keyed.process(Kinds(uid), Types.STRING())
    elif uid == "timers":
        made = keyed.process(Timers(), Types.STRING())
    else:
        made = windowed(uid, keyed)
    return made.uid(uid)


def windowed(uid: str, keyed: KeyedStream) -> DataStream:
    if uid == "count":
        return keyed.count_window(COUNTED).process(Contents(uid), Types.STRING())
    if uid == "slides":
        return keyed.count_window(*SLIDING).process(Contents(uid), Types.STRING())
    if uid == "session":
        windows = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(100_000)))
        return windows.process(Contents(uid), Types.STRING())
    if uid == "sums":
        windows = keyed.window(
            SlidingEventTimeWindows.of(Time.milliseconds(1_000_000), Time.milliseconds(500_000))
        )
        return windows.aggregate(Numbers(), Result(), PAIR, Types.STRING())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(1_000_000)))
    if uid == "late":
        windows = windows.allowed_lateness(5_000)
    return windows.process(Contents(uid), Types.STRING())


def environment_of(options: dict[str, Any]) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("state.backend.type", options["backend"])
    configuration.set_string("python.execution-mode", options["mode"])
    if "savepoint" in options:
        for name in ("execution.state-recovery.", "execution.savepoint."):  # Flink 2 and 1
            configuration.set_string(f"{name}path", options["savepoint"])
            configuration.set_string(f"{name}ignore-unclaimed-state", "true")
    for name in ("python.executable", "python.client.executable"):
        configuration.set_string(name, sys.executable)
    configuration.set_string("rest.port", "0")
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(options["parallelism"])
    environment.set_max_parallelism(options["max_parallelism"])
    return environment


def restore(options: dict[str, Any]) -> None:
    environment = environment_of(options)
    elements = environment.from_collection(
        [("new", key, 9) for key in range(KEYS)], type_info=ELEMENT
    ).uid("source of this run")
    none = elements.filter(lambda element: False)
    first, *others = [operator(uid, elements if uid in FED else none) for uid in options["uids"]]
    lines = first.union(*others) if others else first
    with lines.execute_and_collect() as results:
        for line in results:
            print(f"STATE {line}", flush=True)


def make(options: dict[str, Any]) -> None:
    """Run a job until it has left a savepoint."""
    folder = Path(options["make"])
    folder.mkdir(parents=True)
    seen = folder / "seen"
    seen.touch()

    def parsed(line: str) -> tuple[str, int, int]:
        with seen.open("a") as file:
            file.write(".")
        key, number = line.split()
        return "made", int(key), int(number)

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        environment = environment_of(options)
        environment.set_parallelism(1)  # Elements come in the order of the lines.
        lines = DataStream(
            environment._j_stream_execution_environment.socketTextStream("127.0.0.1", port)
        )
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        elements = lines.map(parsed, ELEMENT).assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(Seconds())
        )
        made = [operator(uid, elements) for uid in options["uids"]]
        for stream in made:
            stream.set_parallelism(options["parallelism"]).print()
        client = environment.execute_async("made")
        with server.accept()[0] as connection:
            rows = [f"{key} {number}\n" for number in NUMBERS for key in MADE_KEYS]
            connection.sendall("".join(rows).encode())
            while len(seen.read_bytes()) < len(rows):
                assert str(client.get_job_status().result().name) in ("CREATED", "RUNNING")
                time.sleep(0.5)
            path = savepoint(client, (folder / "points").as_uri(), options["is_native"])
            client.cancel().result()
    print(f"SAVEPOINT {path}", flush=True)


def savepoint(client: Any, folder: str, is_native: bool) -> str:
    """Return the path of a savepoint of the job, once all of its tasks run."""
    formats = get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType
    chosen = formats.NATIVE if is_native else formats.CANONICAL
    for _ in range(100):
        try:
            return str(client._j_job_client.triggerSavepoint(folder, chosen).get())
        except Py4JJavaError as error:
            if "Not all required tasks are currently running" not in str(error):
                raise
            time.sleep(1)
    raise AssertionError("the job's tasks do not run")


chosen_options = json.loads(sys.argv[1])
if "make" in chosen_options:
    make(chosen_options)
else:
    restore(chosen_options)
