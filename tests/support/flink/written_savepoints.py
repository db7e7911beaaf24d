"""Savepoints of state that is known, written by keygroups, and what a job has to find in them."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from keygroups import assign_to_key_group, compute_operator_index_for_key_group, types
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    Savepoint,
    SavepointWriter,
    TtlValue,
    ValueStateDescriptor,
)
from keygroups.savepoint import Row as FlinkRow
from keygroups.state_keys import serializer_of
from keygroups.types import BOOLEAN, BYTE, CHAR, DOUBLE, FLOAT, INT, LONG, SHORT, STRING
from support.bytes.real_savepoints import seen_entry, seen_value, true_value
from support.flink.flink_restores import Row, State, java_type
from support.inside.savepoints import NewState

DAY = 24 * 3600 * 1000
EXPIRED = "expired"  # the name of state whose time to live is over; that of all other is not
NAMES = [
    *(
        "",
        "\0",
        "a",
        "0",
        "hello world",
        "\x7f\x80",
        "\u00e9",
        "e\u0301",
        "\u6771\u4eac",
        "\u07ff",
    ),
    *("\U0001f600", "a\U0010ffffb", "\ud800", "\udc00\ud800", "x\udbff", "\udfffy", "\uffff"),
    *("," * 3, "x" * 127, "x" * 128, "\u00fc" * 300, "\U0001f600" * 70),
]
_EDGES: dict[types.KeyType, list[Any]] = {
    BOOLEAN: [False, True],
    BYTE: [0, 1, -1, 127, -128, 44],
    SHORT: [0, 1, -1, 2**15 - 1, -(2**15)],
    INT: [0, 1, -1, 2**31 - 1, -(2**31), -2089875627],
    LONG: [0, 1, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)],
    FLOAT: [0.0, -0.0, 1.5, -(2.0**127), float("inf"), float("-inf"), float("nan"), 2.0**-149],
    DOUBLE: [0.0, -0.0, 0.1, -1e300, float("inf"), float("-inf"), float("nan"), 5e-324],
    CHAR: ["\0", "a", ",", "\ud800", "\uffff"],
    STRING: NAMES,
}
_BITS: dict[types.KeyType, int] = {BYTE: 8, SHORT: 16, INT: 32, LONG: 64}
_FLOAT = struct.Struct(">f")
Seen = tuple[Any, ...]


class Entry(NamedTuple):
    """An entry, as `OperatorWriter.write` takes it."""

    state: str
    key: Any
    value: Any
    user_key: Any = None
    last_access: int | None = None


@dataclass(frozen=True)
class KeyedOperator:
    """A keyed operator with what is in its states."""

    uid: str
    key_type: types.KeyType
    states: Sequence[State]
    entries: Sequence[Entry]

    @cached_property
    def by_name(self) -> dict[str, State]:
        """The states by their names."""
        return {state.name: state for state in self.states}

    def java(self) -> dict[str, Any]:
        """Return a job's view of it."""
        states = [state.java() for state in self.states]
        return {"uid": self.uid, "key": java_type(self.key_type), "states": states}


@dataclass(frozen=True)
class Case:
    """A savepoint."""

    operators: Sequence[KeyedOperator]
    max_parallelism: int
    parallelism: int

    def write(self, path: Path) -> None:
        """Write it with the library."""
        with SavepointWriter(path) as writer:
            for operator in self.operators:
                written = writer.add_operator(
                    operator.uid,
                    operator.key_type,
                    list(map(_descriptor, operator.states)),
                    self.max_parallelism,
                    self.parallelism,
                )
                entries = sorted(operator.entries, key=lambda one: written.key_group(one.key))
                for entry in entries:
                    written.write(*entry)

    @cached_property
    def counts(self) -> tuple[int, int]:
        """How many states and keys it has."""
        keys = {(one.uid, repr(entry.key)) for one in self.operators for entry in one.entries}
        return sum(len(one.states) for one in self.operators), len(keys)

    def found(self, parallelism: int) -> Counter[Seen]:
        """Return the rows that a job of this parallelism has to find: all that has not expired."""
        return self._entries(parallelism, with_times=False)

    def saved(self, parallelism: int) -> Counter[Seen]:
        """Return the same of a savepoint that the job takes, with the times of last access."""
        return self._entries(parallelism, with_times=True)

    def _entries(self, parallelism: int, with_times: bool) -> Counter[Seen]:
        found: Counter[Seen] = Counter()
        groups = self.max_parallelism
        for operator in self.operators:
            key_serializer = serializer_of(operator.key_type)
            for entry in operator.entries:
                state = operator.by_name[entry.state]
                if state.name == EXPIRED:
                    continue
                key_group = assign_to_key_group(entry.key, groups, operator.key_type)
                subtask = compute_operator_index_for_key_group(groups, parallelism, key_group)
                place = (operator.uid, subtask, key_group, state.name, state.kind)
                user_key, value = _seen(state, entry, with_times)
                seen = (seen_value(key_serializer, entry.key), user_key, value)
                time = entry.last_access if with_times and state.kind != "LIST" else None
                found[(*place, *seen, time)] += 1
        return found


def _descriptor(state: State) -> NewState:
    has_ttl = state.ttl is not None
    if state.kind == "MAP":
        assert state.user_key is not None
        return MapStateDescriptor(state.name, state.user_key, state.value, has_ttl=has_ttl)
    kinds: dict[str, Callable[..., NewState]] = {
        "VALUE": ValueStateDescriptor,
        "LIST": ListStateDescriptor,
        "REDUCING": ReducingStateDescriptor,
    }
    return kinds[state.kind](state.name, state.value, has_ttl=has_ttl)


def _seen(state: State, entry: Entry, with_times: bool) -> Seen:
    """Return user key and value in the form of `true_value`."""
    serializer = serializer_of(state.value)
    if state.kind == "LIST":
        elements = []
        for element in entry.value:
            plain = element.value if isinstance(element, TtlValue) else element
            seen = seen_value(serializer, plain)
            has_time = with_times and isinstance(element, TtlValue)
            elements.append(("ttl", element.last_access, seen) if has_time else seen)
        return None, ("list", tuple(elements))
    user_key = None
    if state.user_key is not None:
        user_key = seen_value(serializer_of(state.user_key), entry.user_key)
    return user_key, seen_value(serializer, entry.value)


def found_rows(rows: Iterable[Row]) -> Counter[Seen]:
    """Return the rows that a job found, in the form of `Case.found`."""
    return Counter(
        (
            *(row["operator"], row["subtask"], row["key_group"], row["state"], row["kind"]),
            *map(true_value, (row["key"], row.get("user_key"), row["value"])),
            None,
        )
        for row in rows
    )


def saved_entries(savepoint: Savepoint, operators: Iterable[KeyedOperator]) -> Counter[Seen]:
    """Return the contents of a savepoint in the form of `Case.saved`."""
    found: Counter[Seen] = Counter()
    for uid in (one.uid for one in operators):
        operator = savepoint.operator(uid)
        states = {state.name: state for state in operator.states}
        for entry in operator.entries():
            if entry.state != EXPIRED:
                seen = seen_entry(operator, states[entry.state], entry)
                _, subtask, state, kind, key_group, key, _, user_key, value, time, _ = seen
                found[uid, subtask, key_group, state, kind, key, user_key, value, time] += 1
    return found


def random_value(rng: random.Random, value_type: types.KeyType) -> Any:
    """Return a value of a type, one in four of them at an edge."""
    if isinstance(value_type, types.TUPLE):
        return tuple(random_value(rng, part) for part in value_type.parts)
    if isinstance(value_type, types.ROW):
        parts = (
            None if rng.random() < 0.2 else random_value(rng, part) for part in value_type.parts
        )
        return FlinkRow(tuple(parts))
    if isinstance(value_type, types.LIST):
        return [random_value(rng, value_type.element) for _ in range(rng.randrange(4))]
    if rng.random() < 0.25 or value_type is BOOLEAN:
        return rng.choice(_EDGES[value_type])
    if value_type is STRING:
        return f"{rng.choice(NAMES)}{rng.randrange(10**6)}"
    if value_type is CHAR:
        return chr(rng.randrange(2**16))
    if value_type is DOUBLE:
        return rng.uniform(-1e9, 1e9)
    if value_type is FLOAT:
        return _FLOAT.unpack(_FLOAT.pack(rng.uniform(-1e9, 1e9)))[0]
    bits = _BITS[value_type]
    return rng.getrandbits(bits) - 2 ** (bits - 1)


def distinct_values(rng: random.Random, value_type: types.KeyType, count: int) -> list[Any]:
    """Return up to so many values of a type, edges among them, none twice."""
    found = {repr(one): one for one in _EDGES.get(value_type, [])}
    for _ in range(4 * count):
        if len(found) >= count:
            break
        value = random_value(rng, value_type)
        found[repr(value)] = value
    return list(found.values())


def keys_of_groups(key_groups: Iterable[int], max_parallelism: int) -> list[str]:
    """Return a string that each of these key groups has."""
    wanted, found = set(key_groups), []
    number = 0
    while wanted:
        key = f"key-{number}"
        key_group = assign_to_key_group(key, max_parallelism, STRING)
        if key_group in wanted:
            wanted.remove(key_group)
            found.append(key)
        number += 1
    return found


def random_entries(
    rng: random.Random, states: Iterable[State], keys: Sequence[Any], now: int
) -> Iterator[Entry]:
    """Yield entries of four in five of the keys for each state."""
    for state in states:
        for key in keys:
            if rng.random() < 0.8:
                yield from _entries_of(rng, state, key, now)


def _entries_of(rng: random.Random, state: State, key: Any, now: int) -> Iterator[Entry]:
    def last_access() -> int | None:
        age = 3 * DAY if state.name == EXPIRED else 0
        return None if state.ttl is None else now - age - rng.randrange(3_600_000)

    def value() -> Any:
        return random_value(rng, state.value)

    if state.kind == "MAP":
        assert state.user_key is not None
        for user_key in distinct_values(rng, state.user_key, 3)[: rng.randint(1, 3)]:
            is_null = state.value is STRING and rng.random() < 0.2
            yield Entry(state.name, key, None if is_null else value(), user_key, last_access())
    elif state.kind == "LIST":
        elements = [value() for _ in range(rng.randint(1, 4))]
        if state.ttl is not None:
            elements = [TtlValue(last_access() or 0, one) for one in elements]
        yield Entry(state.name, key, elements)
    else:
        yield Entry(state.name, key, value(), None, last_access())


def now() -> int:
    """Return the time in epoch milliseconds."""
    return int(time.time() * 1000)
