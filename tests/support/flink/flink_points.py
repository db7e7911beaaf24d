"""The recorded savepoints as jobs that restore them: operators, windows, what is to be found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mmh3 import hash_bytes

from keygroups import compute_operator_index_for_key_group
from keygroups.savepoint import Operator, Savepoint
from support.bytes.real_savepoints import (
    Point,
    point,
    seen_entry,
    true_entries,
    true_lines,
    true_value,
)
from support.flink.flink_oracle import version_numbers
from support.flink.flink_restores import Row

WINDOWS: dict[str, dict[str, Any]] = {
    "tumbling": {"kind": "tumbling", "size": 60_000},
    "sliding-list": {"kind": "sliding", "size": 60_000, "slide": 30_000},
    "session": {"kind": "session", "size": 20_000},
    "count-window": {"kind": "count", "count": 1},
}
"""The windows of the jobs; the next element of a key closes the one of so many elements."""

Seen = tuple[Any, ...]


def newest_point(name: str, version: str) -> Point:
    """Return the point that the newest Flink wrote of which this version restores points."""
    numbers = version_numbers(version)
    (newest, *_) = (
        one for one in ("2.3.0", "1.20.5", "1.17.2") if version_numbers(one) <= numbers
    )
    return point(f"{newest}-{name}")


def with_state(savepoint: Savepoint) -> list[Operator]:
    """Return the operators that a job has to have for Flink to restore it."""
    return [
        operator
        for operator in savepoint.operators
        if any(one.key_groups is not None or one.bytes for one in operator.subtasks)
    ]


def java_operators(savepoint: Savepoint) -> list[dict[str, Any]]:
    """Return them as tasks have them: with the serializers of the savepoint's headers."""
    return [
        {"id": operator.operator_id}
        | ({"max_parallelism": 1} if operator.max_parallelism == 1 else {})
        for operator in with_state(savepoint)
    ]


def with_windows(savepoint: Savepoint) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the same with the windows of the jobs, and the uids of these by their ids."""
    uids = {hash_bytes(uid, 0, x64arch=True).hex(): uid for uid in WINDOWS}
    operators, found = java_operators(savepoint), {}
    for operator in operators:
        uid = uids.get(operator["id"])
        if uid is not None:
            found[operator["id"]] = uid
            operator["window"] = WINDOWS[uid]
            operator["keys"] = _keys(savepoint.operator(uid)) if uid == "count-window" else []
    return operators, found


def _keys(operator: Operator) -> list[str]:
    """Return the bytes of all keys, in hexadecimal digits."""
    write = operator.states[0].key_serializer.write
    assert write is not None
    return sorted(write(key).hex() for key in {entry.key for entry in operator.entries()})


def true_rows(point: Point) -> Counter[Seen]:
    """Return Flink's reading of a point, as `row_of` has the entries of a job."""
    return Counter(row_of(line) for line in true_lines(point.entries))


def row_of(row: Row) -> Seen:
    """Return a row of the truth, or of what a job found, but for where that was."""
    values = (row["key"], row["namespace"], row.get("user_key"), row.get("value"))
    return (
        *(row["operator"], row["state"], row["kind"], *map(true_value, values)),
        *(row.get("ttl_timestamp"), row.get("timestamp")),
    )


def is_timer(row: Seen) -> bool:
    """Tell timers from what a state holds."""
    return str(row[2]) == "PRIORITY_QUEUE"


def is_event_timer(row: Seen) -> bool:
    """Tell the timers that fire as time ends; those of processing time are of the year 2100."""
    return is_timer(row) and str(row[1]).startswith("_timer_state/event_")


def misplaced(rows: Iterable[Row], max_parallelism: int, parallelism: int) -> Iterator[Row]:
    """Yield the rows of another subtask than that of the key group that Flink computed."""
    for row in rows:
        key_group = row["key_group"]
        if row["subtask"] != compute_operator_index_for_key_group(
            max_parallelism, parallelism, key_group
        ):
            yield row


def true_content(point: Point) -> Counter[Seen]:
    """Return Flink's reading of a point, as `content` has a savepoint."""
    return Counter(_without_place(entry) for entry in true_entries(point.entries))


def content(savepoint: Savepoint, names: Callable[[str], str], item: Savepoint) -> Counter[Seen]:
    """Return the entries of the operators of another savepoint, under their ids there."""
    found: Counter[Seen] = Counter()
    for operator in with_state(item):
        saved = savepoint.operator(names(operator.operator_id))
        states = {state.name: state for state in saved.states}
        for entry in saved.entries():
            seen = seen_entry(saved, states[entry.state], entry)
            found[_without_place((operator.operator_id, *seen[1:]))] += 1
    return found


def _without_place(seen: Seen) -> Seen:
    operator, _, state, kind, _, *rest = seen
    return operator, state, kind, *rest


def operator_state(operator: Operator) -> dict[tuple[str, str], Any]:
    """Return the elements of each operator state; unions and broadcasts without repetitions."""
    found: dict[tuple[str, str], list[str]] = {}
    for state, mode, _, elements in operator.operator_state():
        parts = elements.items() if mode == "BROADCAST" else elements
        found.setdefault((state, mode), []).extend(map(repr, parts))
    return {
        (state, mode): sorted(parts) if mode == "SPLIT_DISTRIBUTE" else set(parts)
        for (state, mode), parts in found.items()
    }


def closed_windows(point: Point, uids: dict[str, str]) -> Counter[Seen]:
    """Return the windows of a point as they have to close: operator id, key, window, content.

    `uids` are those of the window operators, by their ids.
    """
    contents: dict[Seen, Any] = {}
    merged: dict[Seen, Any] = {}
    for operator, _, state, _, _, key, namespace, _, value, _, _ in true_entries(point.entries):
        if operator in uids and state == "window-contents":
            contents[operator, key, namespace] = value
        elif operator in uids and state == "merging-window-set":
            for _, (window, state_window) in value[1]:
                merged[operator, key, window] = state_window
    found: Counter[Seen] = Counter()
    for (operator, key, window), value in contents.items():
        if uids[operator] != "session":
            found[operator, key, window, value] += 1
    for (operator, key, window), state_window in merged.items():
        found[operator, key, window, contents[operator, key, state_window]] += 1
    return found


def closed_rows(rows: Iterable[Row]) -> Counter[Seen]:
    """Return the windows that closed in a job, in the form of `closed_windows`."""
    return Counter(
        (row["operator"], *(true_value(row[part]) for part in ("key", "namespace", "value")))
        for row in rows
    )
