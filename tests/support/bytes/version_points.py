"""Points that one job's state took in many forms: versions of Flink, backends, compressions.

They are in `tests/vectors/versions.tar.xz`, as `make_versions.py` has their jobs made them. What
is in the state follows from the keys and from how many numbers each of them was sent.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from keygroups.savepoint import Operator, Savepoint
from support.bytes.real_savepoints import corpus

KEYS = ("k0", "k1", "k2", "ключ")
OLD_ROCKSDB = {
    "1.13.6-rocksdb-checkpoint": "Snappy",
    "1.13.6-rocksdb-lz4-checkpoint": "LZ4",
    "1.13.6-rocksdb-zlib-checkpoint": "zlib",
    "1.13.6-rocksdb-zstd-checkpoint": "ZSTD",
}
COMPRESSED = ("1.13.6-hashmap-compressed-checkpoint", "1.18.0-hashmap-compressed-checkpoint")
ASYNC = (
    "2.3.0-forst-async-native",
    "2.3.0-forst-async-heap-timers-native",
    "2.3.0-rocksdb-async-native",
    "2.3.0-hashmap-async-native",
)
OLD = (*OLD_ROCKSDB, *COMPRESSED)
TIME = 4_000_000_000_000  # the timers' time, and as many milliseconds more as the number is
Content = Counter[tuple[Any, ...]]


def path_of(name: str) -> Path:
    return corpus("versions") / name


def with_keyed_state(savepoint: Savepoint) -> list[Operator]:
    return [operator for operator in savepoint.operators if operator.states]


def as_seen(value: Any) -> Any:
    """Return a value that can be hashed, without the times of what has a time to live."""
    if isinstance(value, list):
        return tuple(getattr(element, "value", element) for element in value)
    return value


def content(operator: Operator) -> Content:
    """Return the entries, each with all of its fields but those of its place."""
    return Counter(
        (*one[:2], *one[4:7], as_seen(one.value), one.timestamp, one.last_access is not None)
        for one in operator.entries()
    )


def row(state: str, kind: str, key: str, value: Any = None, **more: Any) -> tuple[Any, ...]:
    named = (more.get(name) for name in ("namespace", "user_key"))
    return (state, kind, key, *named, value, more.get("timestamp"), more.get("kept", False))


def timers(key: str, numbers: range) -> list[tuple[Any, ...]]:
    name, kind = "_timer_state/event_user-timers", "PRIORITY_QUEUE"
    return [row(name, kind, key, timestamp=TIME + number) for number in numbers]


def old_states() -> Content:
    """What `OldStates.java` puts into the operator `states`."""
    found: Content = Counter()
    numbers = range(1, 41)
    for key in KEYS:
        texts = tuple(f"{key},{number}" for number in numbers)
        found.update([row("value", "VALUE", key, 40), row("list", "LIST", key, texts)])
        found.update(row("map", "MAP", key, text, user_key=n) for n, text in zip(numbers, texts))
        found.update(timers(key, numbers))
    return found


def async_states(has_ttl: bool) -> Content:
    """What `AsyncStates.java` puts into the operator `states`.

    Flink 2.3.0 does without the time to live where the backend itself is not asynchronous.
    """
    found: Content = Counter()
    numbers = range(1, 4)
    for key in KEYS:
        texts = tuple(f"{key},{number}" for number in numbers)
        found.update(
            [
                row("value", "VALUE", key, 3),
                row("kept-value", "VALUE", key, texts[-1], kept=has_ttl),
                row("list", "LIST", key, texts),
                row("kept-list", "LIST", key, tuple(numbers)),
                row("sum", "REDUCING", key, 6),
                row("total", "AGGREGATING", key, 60),
            ]
        )
        for number, text in zip(numbers, texts):
            found[row("map", "MAP", key, number, user_key=text)] += 1
            found[row("kept-map", "MAP", key, text, user_key=number, kept=has_ttl)] += 1
        found.update(timers(key, numbers))
    return found


def async_windows() -> Content:
    """What is in the windows of two milliseconds: 1, then 2 and 3; each has a timer at its end."""
    return Counter(
        one
        for key in KEYS
        for end, total in ((2, 1), (4, 5))
        for one in (
            row("window-contents", "AGGREGATING", key, total, namespace=(end - 2, end)),
            row(
                "_timer_state/event_window-timers",
                "PRIORITY_QUEUE",
                key,
                namespace=(end - 2, end),
                timestamp=end - 1,
            ),
        )
    )


def expected(name: str) -> dict[str, Content]:
    """What is in the operators with keyed state, by their uids."""
    if name in OLD:
        return {"states": old_states()}
    return {"states": async_states("forst" in name), "sums": async_windows()}


def seen(savepoint: Savepoint, name: str) -> dict[str, Content]:
    assert len(with_keyed_state(savepoint)) == len(expected(name))
    return {uid: content(savepoint.operator(uid)) for uid in expected(name)}
