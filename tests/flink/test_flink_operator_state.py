"""Operator state and sources that are written here, restored by real Flink.

Operators with list, union and broadcast state, at other parallelisms than they were written with,
and a source whose splits and enumerator have the bytes of Kafka's, which goes on at the offsets.
`pytest -rP` shows how much was compared.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.bytes.real_savepoints import Point, seen_value, true_value
from support.flink.flink_points import java_operators, newest_point
from support.flink.flink_restores import BACKENDS, FlinkRestores, Row, State, Task
from support.flink.written_savepoints import (
    Entry,
    KeyedOperator,
    distinct_values,
    found_rows,
    random_value,
)

from keygroups.savepoint import (
    DELETE,
    KafkaOffsets,
    KafkaSplit,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorId,
    OperatorStateElement,
    SavepointWriter,
    SpecialOffset,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import serializer_of
from keygroups.types import (
    BOOLEAN,
    BYTE,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    ROW,
    SHORT,
    STRING,
    TUPLE,
    KeyType,
)

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.17", "the API of its job"),
]

ELEMENTS: list[KeyType] = [
    *(BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, CHAR, STRING),
    TUPLE(STRING, INT),
    TUPLE(TUPLE(INT, BOOLEAN), STRING),
    ROW(STRING, TUPLE(INT, FLOAT), LIST(LONG)),
    LIST(STRING),
]
LIST_STATE, UNION, BROADCAST = "SPLIT_DISTRIBUTE", "UNION", "BROADCAST"
WRITTEN, MOST = 2, 3  # subtasks
Seen = tuple[Any, ...]


def states_of(mode: str) -> list[State]:
    """Return a state of each type of element."""
    user_key = STRING if mode == BROADCAST else None
    return [State(f"{mode} {item}", mode, item, user_key) for item in ELEMENTS]


STATES = [state for mode in (LIST_STATE, UNION, BROADCAST) for state in states_of(mode)]


def elements_of(state: State) -> list[tuple[Any, Any]]:
    """Return pairs of a user key, None but for broadcast state, and an element."""
    rng = random.Random(state.name)
    elements = [random_value(rng, state.value) for _ in range(rng.randint(0, 7))]
    if state.kind == BROADCAST:
        return [*zip(distinct_values(rng, STRING, len(elements)), elements)]
    return [(None, element) for element in elements]


def write_operators(path: Path, keyed: KeyedOperator) -> None:
    """Write an operator with operator state alone, and one with keyed state besides."""
    lists, unions = (
        [ListStateDescriptor(state.name, state.value) for state in states_of(mode)]
        for mode in (LIST_STATE, UNION)
    )
    broadcasts = [
        MapStateDescriptor(state.name, STRING, state.value) for state in states_of(BROADCAST)
    ]
    counts = [ValueStateDescriptor("count", LONG)]
    with SavepointWriter(path) as writer:
        for uid, key_type in (("rules", None), ("both", STRING)):
            written = writer.add_operator(
                uid,
                key_type,
                counts if key_type else [],
                128,
                WRITTEN,
                list_states=lists,
                union_list_states=unions,
                broadcast_states=broadcasts,
            )
            for state in STATES:
                pairs = elements_of(state)
                elements: Any = dict(pairs)
                if state.kind != BROADCAST:
                    elements = [element for _, element in pairs]
                written.write_operator_state(state.name, elements)
            if key_type:
                for entry in sorted(keyed.entries, key=lambda one: written.key_group(one.key)):
                    written.write(*entry)


def seen_elements(rows: Iterable[Row]) -> Counter[Seen]:
    return Counter(
        (row["subtask"], row["state"], true_value(row["user_key"]), true_value(row["value"]))
        for row in rows
    )


def true_elements(parallelism: int) -> Counter[Seen]:
    """Return the elements that each subtask has to find; of list state without the subtask."""
    found: Counter[Seen] = Counter()
    for state in STATES:
        serializer = serializer_of(state.value)
        for user_key, element in elements_of(state):
            seen = (state.name, user_key, seen_value(serializer, element))
            for subtask in [None] if state.kind == LIST_STATE else range(parallelism):
                found[(subtask, *seen)] += 1
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("parallelism", range(1, MOST + 1))
def test_flink_finds_the_operator_state(
    restores: FlinkRestores, backend: str, parallelism: int, tmp_path: Path
) -> None:
    count = [State("count", "VALUE", LONG)]
    entries = [Entry("count", f"key-{number}", number) for number in range(50)]
    keyed = KeyedOperator("both", STRING, count, entries)
    write_operators(tmp_path / "savepoint", keyed)
    states = [state.java() for state in STATES]
    operators = [
        {"uid": "rules", "states": [], "operator_states": states},
        keyed.java() | {"operator_states": states},
    ]
    task = Task(tmp_path / "savepoint", operators, backend, parallelism, 128)
    restored = restores.restore(task)
    assert restored.refused is None
    expected = true_elements(parallelism)
    rows = list(restored.found("operator"))
    for uid in ("rules", "both"):
        its = [row for row in rows if row["operator"] == uid]
        for row in its:
            if row["kind"] == LIST_STATE:
                row["subtask"] = None
        assert seen_elements(its) == expected
    found = found_rows(restored.found("keyed"))
    assert sorted((key, value[1]) for *_, key, _, value, _ in found) == sorted(
        (entry.key, entry.value) for entry in entries
    )
    print(
        f"{restores.version} {backend}: of {len(STATES)} states at parallelism {parallelism} from "
        f"{WRITTEN}: {expected.total()} elements, twice, and {len(entries)} keys"
    )


# --- edits --------------------------------------------------------------------------------


def another_place(element: OperatorStateElement) -> Any:
    """Delete what is at 500, have what is at 501 twice, and change the rest."""
    if element.value.endswith("@500"):
        return DELETE
    if element.value.endswith("@501"):
        return [element, element]
    return f"{element.value} and more"


def places(value: str) -> list[str]:
    """Return the element that one becomes, as `another_place` has it."""
    if value.endswith("@500"):
        return []
    return [value, value] if value.endswith("@501") else [f"{value} and more"]


def another_rule(element: OperatorStateElement) -> Any:
    """Delete odd rules, and have the first under one more key."""
    if element.key == "rule-0":
        return [element, element._replace(key="rule-00", value=-1)]
    return DELETE if element.value % 2 else element.value + 1


def true_edited(one: Point) -> Counter[Seen]:
    """Return the rest that the edit leaves of Flink's own: operator, state, key, value."""
    found: Counter[Seen] = Counter()
    for line in one.truth("operator_state"):
        operator_id, state = line["operator"], line["state"]
        if operator_id == OperatorId.of_uid("broadcast"):
            for name, value in line["entries"]["map"] if line["subtask"] == 0 else []:
                number = value["int"]
                if name == "rule-0":
                    found[operator_id, state, name, ("int", number)] += 1
                    found[operator_id, state, "rule-00", ("int", -1)] += 1
                elif not number % 2:
                    found[operator_id, state, name, ("int", number + 1)] += 1
        elif operator_id == OperatorId.of_uid("offsets") and state == "offsets":
            for element in line["elements"]:
                for place in places(element):
                    found[operator_id, "positions", None, place] += 1
        elif operator_id == OperatorId.of_uid("offsets"):
            for element in line["elements"]:
                found[operator_id, state, None, ("long", element["long"] + 1)] += 1
        elif state == "offsets":  # bc-left's, whose watermarks are removed
            for element in line["elements"]:
                found[operator_id, state, None, element] += 1
    return found


EDITED = {
    "offsets": [State("positions", LIST_STATE, STRING), State("watermarks", UNION, LONG)],
    "bc-left": [State("offsets", LIST_STATE, STRING), State("watermarks", UNION, LONG)],
    "broadcast": [State("rules", BROADCAST, INT, STRING)],
}


@pytest.mark.parametrize("parallelism", range(1, MOST + 1))
def test_flink_finds_what_an_edit_leaves_of_operator_state(
    restores: FlinkRestores, parallelism: int, tmp_path: Path
) -> None:
    one = newest_point("heap-canonical", restores.version)
    with SavepointWriter.from_existing_savepoint(one.read(), tmp_path / "edited") as writer:
        operator = writer.operator("offsets")
        operator.rename_operator_state("offsets", "positions")
        operator.map_operator_state("positions", another_place)
        operator.map_operator_state("watermarks", lambda element: element.value + 1)
        writer.operator("bc-left").remove_operator_state("watermarks")
        writer.operator("broadcast").map_operator_state("rules", another_rule)
    new = read_savepoint(tmp_path / "edited")
    operators: list[dict[str, Any]] = [
        {"uid": uid, "states": [], "operator_states": [state.java() for state in states]}
        for uid, states in EDITED.items()
    ]
    edited = set(map(OperatorId.of_uid, EDITED))
    operators += [known for known in java_operators(new) if known["id"] not in edited]
    backend = sorted(BACKENDS)[parallelism % 2]
    restored = restores.restore(Task(new.path, operators, backend, parallelism, 128))
    assert restored.refused is None
    expected = true_edited(one)
    rows = list(restored.found("operator"))
    of_subtask = {
        subtask: [row for row in rows if row["subtask"] == subtask]
        for subtask in range(parallelism)
    }
    for its in of_subtask.values():
        copied = [row for row in its if row["kind"] != LIST_STATE]
        assert seen_edited(copied) == Counter(
            {seen: n for seen, n in expected.items() if seen[1] in ("watermarks", "rules")}
        )
    assert seen_edited(row for row in rows if row["kind"] == LIST_STATE) == Counter(
        {seen: n for seen, n in expected.items() if seen[1] in ("positions", "offsets")}
    )
    print(f"{restores.version} {backend}: {expected.total()} elements at {parallelism}")


def seen_edited(rows: Iterable[Row]) -> Counter[Seen]:
    return Counter(
        (
            *(OperatorId.of_uid(row["operator"]), row["state"]),
            *(true_value(row["user_key"]), true_value(row["value"])),
        )
        for row in rows
    )


# --- sources ------------------------------------------------------------------------------

ENDS = {
    **{("clicks", number): 4_700 + 3 * number for number in range(6)},
    **{("views.of-users", number): 10 + number for number in range(3)},
    ("new", 0): 7,
}
OFFSETS: dict[tuple[str, int], int | SpecialOffset] = {
    ("clicks", 0): 4_695,
    ("clicks", 1): 4_703,  # its end
    ("clicks", 2): 4_700,
    ("clicks", 3): SpecialOffset.LATEST,
    ("clicks", 4): 4_711,
    ("clicks", 5): 4_000,
    ("views.of-users", 0): SpecialOffset.EARLIEST,
    ("views.of-users", 1): 0,
    ("views.of-users", 2): 3,
}
STOPS: dict[tuple[str, int], int | SpecialOffset] = {("clicks", 5): 4_002}


def records(
    offsets: Mapping[tuple[str, int], int | SpecialOffset], is_discovered: bool
) -> Counter[tuple[str, int]]:
    """Return the records that are read: a partition without offset is new, or waits at its end."""
    found: Counter[tuple[str, int]] = Counter()
    for (topic, number), end in ENDS.items():
        unknown = SpecialOffset.EARLIEST if is_discovered else SpecialOffset.LATEST
        offset = offsets.get((topic, number), unknown)
        places = {SpecialOffset.EARLIEST: 0, SpecialOffset.LATEST: end}
        start = offset if isinstance(offset, int) else places[offset]
        stop = STOPS.get((topic, number), end)
        assert isinstance(stop, int)
        for place in range(start, min(stop, end)):
            found[f"{topic}-{number}", place] += 1
    return found


@pytest.mark.parametrize("is_discovered", [True, False])
@pytest.mark.parametrize("parallelism", range(1, MOST + 1))
def test_a_source_goes_on_at_the_offsets(
    restores: FlinkRestores, parallelism: int, is_discovered: bool, tmp_path: Path
) -> None:
    """What is read is each record from the offsets on, once; the job's own savepoint goes on."""
    path = tmp_path / "savepoint"
    with SavepointWriter(path) as writer:
        source = KafkaOffsets(OFFSETS, STOPS, initial_discovery_finished=is_discovered)
        writer.add_source("clicks", source, 128, WRITTEN)
        written = writer.add_operator(
            "counts", STRING, [ValueStateDescriptor("count", LONG)], 128, WRITTEN
        )
        written.write("count", "ann", 4711)
    expected = records(OFFSETS, is_discovered)
    ends = {f"{topic}-{number}": end for (topic, number), end in ENDS.items()}
    counts = KeyedOperator("counts", STRING, [State("count", "VALUE", LONG)], [])
    operators = [
        {"uid": "clicks", "ends": ends, "records": expected.total()},
        counts.java(),
    ]
    backend = sorted(BACKENDS)[parallelism % 2]
    restored = restores.restore(Task(path, operators, backend, parallelism, 128))
    assert restored.refused is None
    assert Counter((row["split"], row["offset"]) for row in restored.found("read")) == expected
    assert [row["value"] for row in restored.found("keyed")] == [{"long": 4711}]
    own = restored.read().operator("clicks").source_splits()
    assert own.initial_discovery_finished
    splits = own.splits
    assert all(isinstance(split, KafkaSplit) for split in splits)
    rest = {split[:2]: split.offset for split in splits if isinstance(split, KafkaSplit)}
    assert rest == {partition: STOPS.get(partition, end) for partition, end in ENDS.items()}
    assert len(splits) == len(ENDS)
    assert {split.subtask for split in splits} <= set(range(parallelism))
    print(f"{restores.version} {backend}: {expected.total()} records at parallelism {parallelism}")
