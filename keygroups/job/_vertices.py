"""The vertices of a job, and the counts of their subtasks, from /jobs/:jobid/vertices/:id."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from keygroups._checks import LONG_MAX, UPPER_BOUND_MAX_PARALLELISM
from keygroups.job._rest import Rest, is_id, is_state, member, not_flink

# Bounds of Flink's numbers: anything else is no answer of Flink's.
_SUBTASKS = range(UPPER_BOUND_MAX_PARALLELISM)
_COUNTS = range(LONG_MAX + 1)
_TIMES = range(-1, LONG_MAX + 1)
_LONGEST_PLACE = 1_024  # characters of a host or of a TaskManager's id
_NO_PLACE = "(unassigned)"

_PATIENCE = 3.0  # seconds for the first counts: Flink fetches them when it is asked for them
_PAUSE = 0.1  # seconds


class SubtaskReads(NamedTuple):
    """Counts that one subtask has read, and where it runs; None where Flink does not know yet.

    `host` is its TaskManager's, with the port where Flink says it. `start_time` is when it was
    deployed, in milliseconds since 1970.
    """

    subtask: int
    status: str
    read_records: int | None
    read_bytes: int | None
    host: str | None = None
    taskmanager_id: str | None = None
    start_time: int | None = None


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex of a job: one or more operators in one task.

    `is_keyed` says whether an input is sent by key group, which Flink's plan calls HASH.
    `read_at` is when Flink told what the subtasks have read, in milliseconds since 1970 by its
    own clock.
    """

    vertex_id: str
    name: str
    status: str
    parallelism: int
    max_parallelism: int
    is_keyed: bool
    subtasks: tuple[SubtaskReads, ...] = field(repr=False)
    read_at: int | None = field(default=None, repr=False, compare=False)

    @property
    def read_records(self) -> int | None:
        """The records that all subtasks have read, None where it is not known of each."""
        return _sum([subtask.read_records for subtask in self.subtasks])

    @property
    def read_bytes(self) -> int | None:
        """The bytes that all subtasks have read, None where it is not known of each."""
        return _sum([subtask.read_bytes for subtask in self.subtasks])


def read_vertices(rest: Rest, path: str, answer: Any, seconds: float) -> tuple[Vertex, ...]:
    """Return the vertices of a job in Flink's answer for a path, or raise JobError."""
    where = rest.url + path
    keyed = _keyed(where, answer)
    deadline = time.monotonic() + min(_PATIENCE, seconds)
    vertices: dict[str, Vertex] = {}
    for listed in member(where, answer, "vertices", list):
        vertex_id = member(where, listed, "id", str, is_id)
        if vertex_id in vertices:
            raise not_flink(where, f"vertex {vertex_id} twice")
        subtasks, read_at = _subtasks(rest, f"{path}/vertices/{vertex_id}", deadline)
        read = partial(member, where, listed)
        vertices[vertex_id] = Vertex(
            vertex_id=vertex_id,
            name=read("name", str),
            status=read("status", str, is_state),
            parallelism=read("parallelism", int, _is_parallelism),
            max_parallelism=read("maxParallelism", int, _is_parallelism),
            is_keyed=vertex_id in keyed,
            subtasks=subtasks,
            read_at=read_at,
        )
    return tuple(vertices.values())


def _is_parallelism(number: int) -> bool:
    """Tell whether a vertex can have this parallelism: -1 is one that is not decided yet."""
    return number == -1 or 1 <= number <= UPPER_BOUND_MAX_PARALLELISM


def _keyed(where: str, answer: Any) -> set[str]:
    """Return the ids of the vertices with an input that is sent by key group, from the plan."""
    keyed = set()
    for node in member(where, member(where, answer, "plan", dict), "nodes", list):
        vertex_id = member(where, node, "id", str)
        for edge in member(where, node, "inputs", list) if "inputs" in node else []:
            if isinstance(edge, dict) and edge.get("ship_strategy") == "HASH":
                keyed.add(vertex_id)
    return keyed


def _subtasks(
    rest: Rest, path: str, deadline: float
) -> tuple[tuple[SubtaskReads, ...], int | None]:
    """Return the SubtaskReads of a vertex, and Flink's time in epoch milliseconds.

    It asks until Flink knows the records of each running subtask, or the deadline is over.
    """
    where = rest.url + path
    while True:
        vertex = rest.get(path)
        listed = member(where, vertex, "subtasks", list)
        subtasks = tuple(_subtask(where, answer) for answer in listed)
        if len({subtask.subtask for subtask in subtasks}) < len(subtasks):
            raise not_flink(where, "a subtask twice")
        waits = any(
            subtask.read_records is None and subtask.status == "RUNNING" for subtask in subtasks
        )
        if not waits or time.monotonic() > deadline:
            return subtasks, _time(where, vertex, "now")
        time.sleep(_PAUSE)


def _subtask(where: str, answer: Any) -> SubtaskReads:
    metrics = member(where, answer, "metrics", dict)

    def count(name: str) -> int | None:
        number = member(where, metrics, name, int, _COUNTS.__contains__)
        return number if metrics.get(f"{name}-complete") is True else None

    return SubtaskReads(
        member(where, answer, "subtask", int, _SUBTASKS.__contains__),
        member(where, answer, "status", str, is_state),
        count("read-records"),
        count("read-bytes"),
        # Flink has both from 1.19 to 1.20, then the endpoint alone.
        _place(where, answer, "endpoint" if "endpoint" in answer else "host"),
        _place(where, answer, "taskmanager-id"),
        _time(where, answer, "start-time"),
    )


def _place(where: str, answer: Any, name: str) -> str | None:
    if name not in answer:
        return None
    text = member(where, answer, name, str, lambda text: 0 < len(text) <= _LONGEST_PLACE)
    return None if text == _NO_PLACE else text


def _time(where: str, answer: Any, name: str) -> int | None:
    """Return a time in milliseconds, or None where Flink says -1 for what did not begin yet."""
    if name not in answer:
        return None
    milliseconds = member(where, answer, name, int, _TIMES.__contains__)
    return None if milliseconds == _TIMES[0] else milliseconds


def _sum(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(count or 0 for count in counts)
