"""Histories of changes of a key: made at random, and told to Flink and to our group aggregate."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import types as T

from support.inside.adapter import AGGREGATES, KeyGroup, RecordLayout, Retention, Routing

Batch = tuple[int, list[tuple[str, Any]]]  # when, and the kind and value of each row

SPARK_TYPES: dict[str, T.DataType] = {
    "TINYINT": T.ByteType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "DOUBLE": T.DoubleType(),
    "STRING": T.StringType(),
    "DATE": T.DateType(),
}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
SQL = {
    "count(*)": "COUNT(*)",
    "count": "COUNT(v)",
    "sum": "SUM(v)",
    "min": "MIN(v)",
    "max": "MAX(v)",
    "count_distinct": "COUNT(DISTINCT v)",
}
EPOCH = dt.date(1970, 1, 1)
ROUTING = Routing(128, 4, "LONG")


def values(flink_type: str) -> list[Any]:
    """Return a few values of a type, with the ends of its range, and null."""
    if flink_type == "DOUBLE":
        return [None, 0.1, 0.2, 0.3, -0.0, 1e300, 1e16, 1.0, float("inf"), float("nan")]
    if flink_type == "STRING":
        return [None, "", "a", "b", "ab", "\u00e9", "\uffff", "\U0001f600"]
    if flink_type == "DATE":
        return [None, *(EPOCH + dt.timedelta(days) for days in (-700_000, -1, 0, 1, 20_000))]
    half = 1 << _BITS[flink_type] - 1
    return [None, -half, half - 1, 0, 1, 2, 3, -1]


def random_history(chance: random.Random, pool: Sequence[Any], gaps: Sequence[int]) -> list[Batch]:
    """Return batches of changes: most retractions are of what is there, some of what is not."""
    batches: list[Batch] = []
    present: list[Any] = []
    now = chance.randrange(10**6)
    retracts = chance.choice([0.2, 0.45, 0.55])
    few = chance.sample(pool, chance.randint(1, len(pool)))
    for _ in range(chance.randint(1, 15)):
        changes: list[tuple[str, Any]] = []
        for _ in range(chance.choice([1, 1, 2, 3, 6])):
            if chance.random() < retracts:
                known = present and chance.random() < 0.85
                value = (
                    present.pop(chance.randrange(len(present))) if known else chance.choice(few)
                )
                changes.append((chance.choice(["-U", "-D"]), value))
            else:
                present.append(chance.choice(few))
                changes.append((chance.choice(["+I", "+U"]), present[-1]))
        batches.append((now, changes))
        now += chance.choice(gaps)
    return batches


def flink_lines(
    names: Sequence[str],
    flink_type: str,
    retention: Retention,
    mini_batch: bool,
    histories: Iterable[list[Batch]],
) -> Iterator[str]:
    """Yield the lines for `java/GroupAggregates.java`."""
    job: dict[str, object] = {
        "sql": f"SELECT k, {', '.join(SQL[name] for name in names)} FROM changes GROUP BY k",
        "type": flink_type,
        "results": [flink_type if name in ("sum", "min", "max") else "BIGINT" for name in names],
        "mini_batch": mini_batch,
    }
    if retention.idle is not None:
        job["min_retention"], job["max_retention"] = retention.idle
    if retention.ttl is not None:
        job["ttl"] = retention.ttl
        job["update_type"] = "OnReadAndWrite" if retention.touch else "OnCreateAndWrite"
    yield json.dumps(job)
    for history in histories:
        yield json.dumps(
            [[now, [[kind, _java(value)] for kind, value in rows]] for now, rows in history]
        )


def _java(value: Any) -> object:
    if isinstance(value, dt.date):
        return (value - EPOCH).days
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), str(value))
    return value


def told_by_flink(batches: list[Any], names: Sequence[str], flink_type: str) -> list[Any]:
    """Return Flink's answer to a history as texts of Python's values."""

    def result(name: str, value: Any) -> Any:
        if value is None or name not in ("sum", "min", "max"):
            return value
        if flink_type == "DOUBLE":
            return float(value.replace("Infinity", "inf"))
        return EPOCH + dt.timedelta(value) if flink_type == "DATE" else value

    return [
        [repr((kind, *map(result, names, results))) for kind, *results in changes]
        for changes in batches
    ]


def pack_of(rows: Sequence[T.Row]) -> T.Row:
    """Return rows of a key group as a processor gets them: one, with a list for each column."""
    return T.Row(*rows[0].__fields__)(*map(list, zip(*rows)))


def told_by_us(
    names: Sequence[str],
    flink_type: str,
    retention: Retention,
    mini_batch: bool,
    history: list[Batch],
) -> list[Any]:
    """Return the answer of our group aggregate, in the same form."""
    (answers,) = told_together(names, flink_type, retention, mini_batch, [history])
    return answers


def told_together(
    names: Sequence[str],
    flink_type: str,
    retention: Retention,
    mini_batch: bool,
    histories: Sequence[list[Batch]],
    handle: InMemoryHandle | None = None,
) -> list[list[Any]]:
    """Return the answers of our group aggregate to histories of as many keys of a key group."""
    handle = InMemoryHandle() if handle is None else handle
    spark_type = SPARK_TYPES[flink_type]
    made = [
        AGGREGATES[name.removesuffix("(*)")]("*" if name.endswith("(*)") else "v", spark_type)
        for name in names
    ]
    key_group = KeyGroup(handle, RecordLayout(made, retention), "a layout", "names")
    answers: list[list[Any]] = [[None] * len(history) for history in histories]
    batches: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for index, history in enumerate(histories):
        for number, (now, _) in enumerate(history):
            batches[now].append((index, number))
    for now in sorted(batches):
        # A history may have several batches at one time, and a batch of Spark one of each key.
        rounds: dict[int, dict[bytes, tuple[int, int]]] = defaultdict(dict)
        for index, number in batches[now]:
            turn = sum(b"%d" % index in others for others in rounds.values())
            rounds[turn][b"%d" % index] = index, number
        for asked in rounds.values():
            handle.now = now
            changes = {
                key: [(kind, [value] * len(names)) for kind, value in histories[index][number][1]]
                for key, (index, number) in asked.items()
            }
            for index, number in asked.values():
                answers[index][number] = []
            for key, made_of_key in key_group.apply(changes, now, mini_batch):
                index, number = asked[key]
                answers[index][number] += [repr((kind, *row)) for kind, row in made_of_key]
            # As Spark does: after the rows, and again only with the next batch.
            for timer in sorted(handle.timers):
                if timer <= now:
                    key_group.fire(timer, now)
                    handle.deleteTimer(timer)
    return answers


def rows_in(names: Sequence[str], packed: Iterable[T.Row]) -> list[T.Row]:
    """Return the rows in those that a processor packed."""
    make = T.Row(*names)
    return [make(*values) for columns in packed for values in zip(*columns)]


class InMemoryHandle:
    """Spark's StatefulProcessorHandle of one key, with a clock to set and counts of accesses."""

    def __init__(self) -> None:
        self.now = 0
        self.reads = self.writes = 0
        self.timers: set[int] = set()
        self._states: dict[str, _Entries] = {}

    def getValueState(self, name: str, schema: object, ttl: int | None = None) -> _Entries:
        return self._states.setdefault(name, _Entries(self, ttl))

    def getMapState(self, name: str, key: object, value: object, ttl: int | None = None) -> Any:
        return self._states.setdefault(name, _Entries(self, ttl))

    def registerTimer(self, time: int) -> None:
        self.timers.add(time)

    def deleteTimer(self, time: int) -> None:
        self.timers.remove(time)


class _Entries:
    """A map state, or a value state, which has one entry."""

    def __init__(self, handle: InMemoryHandle, ttl: int | None) -> None:
        self._handle = handle
        self._ttl = float("inf") if ttl is None else ttl
        self._entries: dict[Any, tuple[Any, float]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self) -> Any:
        return self.getValue(None)

    def update(self, value: Any) -> None:
        self.updateValue(None, value)

    def getValue(self, key: Any) -> Any:
        self._handle.reads += 1
        value, expires = self._entries.get(key, (None, 0))
        return value if expires > self._handle.now else None

    def updateValue(self, key: Any, value: Any) -> None:
        self._handle.writes += 1
        self._entries[key] = tuple(value), self._handle.now + self._ttl

    def removeKey(self, key: Any) -> None:
        self._handle.writes += 1
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._handle.writes += 1
        self._entries.clear()

    def iterator(self) -> Iterator[Any]:
        for key, (value, expires) in list(self._entries.items()):
            self._handle.reads += 1
            if expires > self._handle.now:
                yield key, value
