"""A query of `group_aggregate` that goes on as another: its changelog is right, or it is refused.

A batch goes through the processor as Spark would have it, with the states of each group in memory.
What is right is said by a model: the aggregates of the values that are there, by SQL's rules.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.flink.group_histories import InMemoryHandle, rows_in, values

import keygroups
from keygroups import KeyGroupsError
from keygroups.types import LONG, SQL_ROW, STRING, KeyType

pytest.importorskip("pyspark", minversion="4.1")
pytest.importorskip("pyarrow")

from pyspark.sql import types as T
from support.inside.adapter import QUERY, Routing, _pack, landing_of

from keygroups.spark.state import GroupAggregate

KEYS = ("_key_group", "_lands_on")
SCHEMA = T.StructType(
    [
        T.StructField("k", T.StringType()),
        T.StructField("j", T.StringType()),
        T.StructField("id", T.LongType()),
        T.StructField("kind", T.StringType()),
        T.StructField("op", T.StringType()),
        T.StructField("seq", T.LongType()),
        T.StructField("v", T.LongType()),
        T.StructField("w", T.LongType()),
    ]
)
ALL = {"n": ("count", "*"), "s": ("sum", "v"), "lo": ("min", "v"), "d": ("count_distinct", "v")}
SUMS = {"n": ("count", "*"), "s": ("sum", "v")}  # their values have no TTL of their own
MINUTE = timedelta(minutes=1)
MS = 60_000
IDLE, LONGER = (10 * MINUTE, 16 * MINUTE), (20 * MINUTE, 30 * MINUTE)
TTL = {"state_ttl": 10 * MINUTE, "aggregates": SUMS}


@dataclass(frozen=True)
class Query:
    """The arguments of `group_aggregate`."""

    max_parallelism: int = 128
    parallelism: int = 4
    key: str = "k"
    key_type: KeyType = STRING
    aggregates: dict[str, tuple[str, str]] = field(default_factory=lambda: ALL)
    mini_batch: bool = False
    order_by: Any = "seq"
    kind: str = "kind"
    idle_retention: Any = None
    state_ttl: Any = None
    update_type: str = "OnCreateAndWrite"

    def processor(self) -> GroupAggregate:
        names = ("mini_batch", "order_by", "kind", "idle_retention", "state_ttl", "update_type")
        options = {name: getattr(self, name) for name in names}
        made = GroupAggregate(SCHEMA, self.aggregates, **options)
        routing = Routing(self.max_parallelism, self.parallelism, str(self.key_type))
        return made._with_key(T.StructType([SCHEMA[self.key]]), SCHEMA.names, routing)

    def group_of(self, row: dict[str, Any]) -> tuple[int, int]:
        key = (row[self.key],) if self.key_type == SQL_ROW("STRING") else row[self.key]
        at = self.max_parallelism, self.parallelism
        key_group = keygroups.assign_to_key_group(key, at[0], self.key_type)
        subtask = keygroups.compute_operator_index_for_key_group(*at, key_group)
        return key_group, landing_of(key_group, subtask)


class Store:
    """A checkpoint: the states of each group. A batch that fails leaves it as it was."""

    def __init__(self) -> None:
        self.groups: dict[tuple[int, int], InMemoryHandle] = {}

    def run(self, query: Query, rows: list[dict[str, Any]], now: int) -> list[T.Row]:
        """Return the changes of a batch."""
        groups = deepcopy(self.groups)
        processor = query.processor()
        changes: list[T.Row] = []
        clock = SimpleNamespace(getCurrentProcessingTimeInMs=lambda: now)
        packs = packs_of(query, rows)
        for key in sorted(packs):  # Spark's order, so each partition begins with its head
            handle = groups.setdefault(key, InMemoryHandle())
            handle.now = now
            processor.init(cast(Any, handle))
            packed = processor.handleInputRows(key, iter(packs[key]), clock)
            changes += rows_in([query.key, *processor.result_schema.names], packed)
        for key, handle in groups.items():
            handle.now = now
            for timer in sorted(timer for timer in handle.timers if timer <= now):
                processor.init(cast(Any, handle))
                info = SimpleNamespace(getExpiryTimeInMs=lambda timer=timer: timer)
                changes += processor.handleExpiredTimer(key, clock, info)
                handle.deleteTimer(timer)
        self.groups = groups
        return changes


def packs_of(query: Query, rows: list[dict[str, Any]]) -> dict[tuple[int, int], list[T.Row]]:
    pa = pytest.importorskip("pyarrow")
    groups = [dict(zip(KEYS, query.group_of(row))) for row in rows]
    fields = [
        pa.field(f.name, pa.string() if isinstance(f.dataType, T.StringType) else pa.int64())
        for f in SCHEMA.fields
    ]
    fields += [pa.field(name, pa.int32()) for name in KEYS]
    batch = pa.RecordBatch.from_pylist(
        [group | row for group, row in zip(groups, rows)], schema=pa.schema(fields)
    )
    heads = tuple((QUERY, landing_of(QUERY, n)) for n in range(query.parallelism))
    packs = defaultdict(list)
    for made in _pack(KEYS, heads, "a query", iter([batch])):
        for row in made.to_pylist():
            packs[row["_key_group"], row["_lands_on"]].append(T.Row(**row))
    return packs


class Model:
    """One key by the rules of SQL: the values that are there, and until when."""

    def __init__(self) -> None:
        self.there: list[Any] = []
        self.until: float | None = None

    def forget(self, now: int) -> None:
        if self.until is not None and self.until <= now:
            self.there, self.until = [], None

    def random_rows(self, chance: random.Random) -> list[tuple[str, Any]]:
        """Return a few rows: what they take back is there, or the first of them ignored."""
        rows, present = [], list(self.there)
        for number in range(chance.choice([0, 1, 1, 2, 3, 6])):
            if chance.random() < 0.5 and (present or not number):
                value = present.pop(chance.randrange(len(present))) if present else 1
                rows.append((chance.choice(["-U", "-D"]), value))
            else:
                present.append(chance.choice(values("BIGINT")))
                rows.append((chance.choice(["+I", "+U"]), present[-1]))
        return rows

    def run(self, query: Query, rows: list[tuple[str, Any]], now: int) -> Iterator[Any]:
        if query.idle_retention:
            low, high = (bound / timedelta(milliseconds=1) for bound in query.idle_retention)
            if self.until is None or now + low > self.until:
                self.until = now + high
        for bundle in [rows] if query.mini_batch else [[row] for row in rows]:
            yield from self._fold(query, bundle, now)

    def _fold(self, query: Query, rows: list[tuple[str, Any]], now: int) -> Iterator[Any]:
        before = self._results(query) if self.there else None
        for kind, value in rows:
            if kind in ("+I", "+U"):
                self.there.append(value)
            elif self.there:
                self.there.remove(value)
        if self.there and query.state_ttl:
            self.until = now + query.state_ttl / timedelta(milliseconds=1)
        after = self._results(query) if self.there else None
        if after is None:
            if before is not None:
                yield "-D", before
        elif before is None:
            yield "+I", after
        elif before != after or query.idle_retention or query.state_ttl:
            yield from (("-U", before), ("+U", after))

    def _results(self, query: Query) -> list[Any]:
        known = [value for value in self.there if value is not None]
        total = (sum(known) + 2**63) % 2**64 - 2**63 if known else None
        results = {
            ("count", "*"): len(self.there),
            ("sum", "v"): total,
            ("sum", "w"): total,
            ("min", "v"): min(known, default=None),
            ("count_distinct", "v"): len(set(known)),
        }
        return [results[made_of] for made_of in query.aggregates.values()]


# What a query was, what it becomes, and of which parameter the refusal is; None where it goes on.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "nothing": ({}, {}, None),
    "max parallelism 256": ({}, {"max_parallelism": 256}, r"max_parallelism was 128 .* got 256: "),
    "max parallelism 127": ({}, {"max_parallelism": 127}, r"max_parallelism was 128 .* got 127: "),
    "parallelism 3": ({}, {"parallelism": 3}, r"parallelism was 4 .* got 3: "),
    "parallelism 8": ({}, {"parallelism": 8}, r"parallelism was 4 .* got 8: "),
    "key": ({}, {"key": "j"}, r"key\[0\] was \['k', 'string'\] .* got \['j', 'string'\]: "),
    "key's type": (
        {},
        {"key": "id", "key_type": LONG},
        r"key\[0\] was \['k', 'string'\] .* got \['id', 'long'\]; key_type was 'STRING' .* 'LONG'",
    ),
    "key type": (
        {},
        {"key_type": SQL_ROW("STRING")},
        r"""key_type was 'STRING' in the checkpoint, got "SQL_ROW\('STRING'\)": """,
    ),
    "function": (
        {},
        {"aggregates": ALL | {"lo": ("max", "v")}},
        r"aggregates\[2\] was \['min', 'v', 'long'\] .* got \['max', 'v', 'long'\]: ",
    ),
    "column": (
        {},
        {"aggregates": ALL | {"s": ("sum", "w")}},
        r"aggregates\[1\] was \['sum', 'v', 'long'\] .* got \['sum', 'w', 'long'\]: ",
    ),
    "order of aggregates": (
        {"aggregates": {"a": ("sum", "v"), "b": ("sum", "w")}},
        {"aggregates": {"a": ("sum", "w"), "b": ("sum", "v")}},
        r"aggregates\[0\] was \['sum', 'v', .*; aggregates\[1\] was \['sum', 'w', ",
    ),
    "one more": (
        {},
        {"aggregates": ALL | {"m": ("sum", "w")}},
        r"aggregates\[4\] was None in the checkpoint, got \['sum', 'w', 'long'\]: ",
    ),
    "one less": ({}, {"aggregates": SUMS}, r"aggregates\[2\] was .* got None; aggregates\[3\] "),
    "a TTL": ({"aggregates": SUMS}, TTL, r"state_ttl \(in ms\) was None .* got 600000: "),
    "no TTL": (TTL, {"state_ttl": None}, r"state_ttl \(in ms\) was 600000 .* got None: "),
    "another TTL": (TTL, {"state_ttl": 20 * MINUTE}, r"was 600000 .* got 1200000: "),
    "idle": ({}, {"idle_retention": IDLE}, r"idle_retention was False .* got True: "),
    "no idle": ({"idle_retention": IDLE}, {"idle_retention": None}, r"was True .* got False: "),
    "TTL for idle": (
        {"idle_retention": IDLE, "aggregates": SUMS},
        {"idle_retention": None, **TTL},
        r"idle_retention was True .* got False; state_ttl \(in ms\) was None .* got 600000: ",
    ),
    "longer idle": ({"idle_retention": IDLE}, {"idle_retention": LONGER}, None),
    "shorter idle": ({"idle_retention": LONGER}, {"idle_retention": IDLE}, None),
    "update type": (TTL, {"update_type": "OnReadAndWrite"}, None),
    "names of results": ({}, {"aggregates": {f"{n}_": a for n, a in ALL.items()}}, None),
    "to mini-batches": ({}, {"mini_batch": True}, None),
    "to rows": ({"mini_batch": True}, {"mini_batch": False}, None),
    "order": ({}, {"order_by": ["seq", "id"]}, None),
    "kind": ({}, {"kind": "op"}, None),
}


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("keys", [12, pytest.param(1000, marks=pytest.mark.slow)])
def test_histories_across_a_change(change: str, keys: int) -> None:
    before, after, refusal = CHANGES[change]
    first, then = Query(**before), Query(**before | after)
    chance = random.Random(f"{change}{keys}")
    models = {f"key-{n}": Model() for n in range(keys)}
    store, now = Store(), 0
    for number in range(10):
        now += chance.choice([0, 1, 5 * MS, 10 * MS, 16 * MS])
        for model in models.values():
            model.forget(now)
        of_keys = {key: model.random_rows(chance) for key, model in models.items()}
        query = first if number < 4 or refusal else then
        if number == 4 and refusal:
            for key in chance.sample(list(models), 4):  # whichever key comes first
                with pytest.raises(KeyGroupsError, match=refusal):
                    store.run(then, rows_of({key: [("+I", 1)]}), now)
            with pytest.raises(KeyGroupsError, match=refusal):
                store.run(then, rows_of(of_keys), now)
        changes = defaultdict(list)
        for row in store.run(query, rows_of(of_keys), now):
            key, kind, *results = row
            changes[key].append((kind, results))
        for key, rows in of_keys.items():
            expected = list(models[key].run(query, rows, now)) if rows else []
            assert changes.pop(key, []) == expected
        assert not changes


def rows_of(of_keys: dict[str, list[tuple[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {"k": key, "j": key, "id": int(key[4:]), "kind": kind, "op": kind, "seq": seq}
        | {"v": value, "w": value}
        for key, rows in of_keys.items()
        for seq, (kind, value) in enumerate(rows)
    ]
