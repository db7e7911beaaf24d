"""Queries of many shapes, for Flink SQL to explain, and what a compiled plan says of exchanges."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

COLUMNS = "a INT, b BIGINT, c STRING, d DOUBLE, ts TIMESTAMP(3)"
SOURCES = {
    "t": f"{COLUMNS}, pt AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND",
    "u": f"{COLUMNS}, WATERMARK FOR ts AS ts",
    "p": "a INT, b BIGINT, c STRING, pt AS PROCTIME()",
    "nested": "i INT, r ROW<`x` INT, `y` ARRAY<STRING>>, arr ARRAY<INT>",
    "hostile": "`y]])` INT, `x]` INT, `it's` INT, `a, b` INT, `größe 😀` INT, `f(x` STRING,"
    " `[` INT, `z]],changelogMode=[I` INT, `=[single]` INT, pt AS PROCTIME()",
}
KEYED = {
    "v": "id BIGINT, n STRING, k INT, PRIMARY KEY (id) NOT ENFORCED",
    "versions": "id BIGINT, n STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts,"
    " PRIMARY KEY (id) NOT ENFORCED",
}
UPSERTS = "'changes' = 'INSERT,UPDATE_AFTER,DELETE'"
MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "100",
}
SPLIT = {**MINI_BATCH, "table.optimizer.distinct-agg.split.enabled": "true"}

TUMBLE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
GROUP = "SELECT b, a, COUNT(*) FROM t GROUP BY b, a"
COUNTS = "(SELECT a, COUNT(*) AS n FROM t GROUP BY a)"
ROW_NUMBER = "ROW_NUMBER() OVER (PARTITION BY c, b ORDER BY"
QUERIES = {
    "scan": "SELECT a, b FROM t",
    "group": GROUP,
    "group of a string": "SELECT c, SUM(b) FROM t GROUP BY c",
    "group without a key": "SELECT COUNT(*) FROM t",
    "distinct": "SELECT DISTINCT c, a FROM t",
    "distinct count": "SELECT c, COUNT(DISTINCT a), MAX(d) FROM t GROUP BY c",
    "filtered counts": "SELECT a, COUNT(*) FILTER (WHERE b > 3), COUNT(DISTINCT c) FROM t"
    " GROUP BY a",
    "group of groups": f"SELECT n, COUNT(*) FROM {COUNTS} GROUP BY n",
    "grouping sets": "SELECT a, c, COUNT(*) FROM t GROUP BY GROUPING SETS ((a, c), (a), ())",
    "group of an expression": "SELECT UPPER(c), COUNT(*) FROM t GROUP BY UPPER(c), a + 1",
    "group of a field": "SELECT r.x, COUNT(*) FROM nested GROUP BY r.x",
    "group with a hint": "SELECT /*+ STATE_TTL('t' = '1d') */ c, COUNT(*) FROM t GROUP BY c",
    "over": "SELECT a, SUM(b) OVER (PARTITION BY c, a ORDER BY pt) FROM t",
    "over without a watermark": "SELECT a, SUM(b) OVER (PARTITION BY c, a ORDER BY pt) FROM p",
    "over rows": "SELECT SUM(b) OVER (PARTITION BY c ORDER BY ts ROWS BETWEEN 2 PRECEDING"
    " AND CURRENT ROW) FROM t",
    "over without a key": "SELECT a, SUM(b) OVER (ORDER BY pt) FROM t",
    "over two windows": "SELECT SUM(b) OVER (PARTITION BY c ORDER BY pt),"
    " SUM(b) OVER (PARTITION BY a ORDER BY pt) FROM t",
    "top": f"SELECT a FROM (SELECT *, {ROW_NUMBER} d DESC) AS n FROM t) WHERE n <= 3",
    "top by number": f"SELECT a, n FROM (SELECT *, {ROW_NUMBER} d DESC) AS n FROM t) WHERE n <= 3",
    "top rank": "SELECT a, n FROM (SELECT *, RANK() OVER (PARTITION BY c ORDER BY b) AS n FROM t)"
    " WHERE n <= 3",
    "top without a key": "SELECT a FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY b) AS n FROM t)"
    " WHERE n <= 3",
    "first": f"SELECT a FROM (SELECT *, {ROW_NUMBER} pt) AS n FROM t) WHERE n = 1",
    "first without a watermark": f"SELECT a FROM (SELECT *, {ROW_NUMBER} pt) AS n FROM p)"
    " WHERE n = 1",
    "last": f"SELECT a FROM (SELECT *, {ROW_NUMBER} ts DESC) AS n FROM t) WHERE n = 1",
    "limit": "SELECT a FROM t LIMIT 5 OFFSET 2",
    "limit of groups": "SELECT a, COUNT(*) FROM t GROUP BY a LIMIT 5",
    "group of a limit": "SELECT a, COUNT(*) FROM (SELECT a FROM t LIMIT 5) GROUP BY a",
    "sorted limit": "SELECT a, b FROM t ORDER BY b LIMIT 5",
    "sorted": "SELECT a, ts FROM t ORDER BY ts",
    "join": "SELECT t.a, u.b FROM t JOIN u ON t.c = u.c AND t.a = u.a",
    "join to the left": "SELECT t.a, u.b FROM t LEFT JOIN u ON t.c = u.c",
    "join of two types": "SELECT t.a, u.b FROM t JOIN u ON t.a = u.b",
    "join on one column twice": "SELECT t.a FROM t JOIN u ON t.a = u.a AND t.a = u.b",
    "join without a key": "SELECT t.a, u.b FROM t, u",
    "join of three": "SELECT t.a FROM t JOIN u ON t.c = u.c JOIN v ON u.b = v.id",
    "join with itself": "SELECT x.a, y.b FROM t x JOIN t y ON x.a = y.a",
    "join of groups": f"WITH g AS {COUNTS} SELECT x.a FROM g x JOIN g y ON x.n = y.n",
    "join with hints": "SELECT /*+ STATE_TTL('t' = '1d', 'u' = '2d') */ t.a FROM t"
    " JOIN u ON t.c = u.c",
    "in": "SELECT a FROM t WHERE c IN (SELECT c FROM u)",
    "not in": "SELECT a FROM t WHERE c NOT IN (SELECT c FROM u)",
    "join within an interval": "SELECT t.a, u.b FROM t JOIN u ON t.c = u.c"
    " AND t.ts BETWEEN u.ts - INTERVAL '1' MINUTE AND u.ts",
    "join of a time": "SELECT t.a, v.n FROM t JOIN versions FOR SYSTEM_TIME AS OF t.ts AS v"
    " ON t.b = v.id",
    "lookup": "SELECT t.a, v.n FROM t JOIN v FOR SYSTEM_TIME AS OF t.pt ON t.b = v.id",
    "shuffled lookup": "SELECT /*+ LOOKUP('table' = 'v', 'shuffle' = 'true') */ p.a, v.n FROM p"
    " JOIN v FOR SYSTEM_TIME AS OF p.pt ON p.b = v.id",
    "group of changes": "SELECT n, COUNT(*) FROM v GROUP BY n",
    "union all": "SELECT a, c FROM t UNION ALL SELECT a, c FROM u",
    "union": "SELECT a, c FROM t UNION SELECT a, c FROM u",
    "union of three": "SELECT a FROM t WHERE c = 'x' UNION ALL SELECT a FROM u WHERE c = 'y'"
    " UNION ALL SELECT a FROM p WHERE c = 'z'",
    "intersect": "SELECT a, c FROM t INTERSECT SELECT a, c FROM u",
    "except": "SELECT a, c FROM t EXCEPT SELECT a, c FROM u",
    "intersect all": "SELECT a, c FROM t INTERSECT ALL SELECT a, c FROM u",
    "values": "SELECT s, COUNT(*) FROM (VALUES (1, 'x'), (2, 'y''z]')) AS v(i, s) GROUP BY s",
    "tumble": f"SELECT window_start, c, COUNT(*) FROM {TUMBLE}"
    " GROUP BY window_start, window_end, c",
    "hop": "SELECT window_end, c, SUM(b) FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts),"
    " INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)) GROUP BY window_start, window_end, a, c",
    "session": "SELECT c, SUM(b) FROM TABLE(SESSION(TABLE t PARTITION BY c, DESCRIPTOR(ts),"
    " INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, c",
    "tumble and top": "SELECT a FROM (SELECT *, ROW_NUMBER() OVER"
    f" (PARTITION BY window_start, window_end, c ORDER BY b) AS n FROM {TUMBLE}) WHERE n <= 3",
    "tumble and last": "SELECT a FROM (SELECT *, ROW_NUMBER() OVER"
    f" (PARTITION BY window_start, window_end, c ORDER BY ts DESC) AS n FROM {TUMBLE})"
    " WHERE n = 1",
    "tumble and join": f"SELECT x.a FROM {TUMBLE} x JOIN {TUMBLE.replace('t,', 'u,')} y"
    " ON x.c = y.c AND x.window_start = y.window_start AND x.window_end = y.window_end",
    "old tumble": "SELECT c, SUM(b) FROM t GROUP BY c, TUMBLE(ts, INTERVAL '1' HOUR)",
    "pattern": "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY c ORDER BY ts MEASURES B.b AS bb"
    " PATTERN (A B+ C) DEFINE A AS A.b = 1, B AS B.b > 1, C AS C.b = 0)",
    "unnest": "SELECT e, COUNT(*) FROM nested CROSS JOIN UNNEST(arr) AS x(e) GROUP BY e",
    "strings": "SELECT a, 'tab\t', x'0aff', COUNT(*) FROM t WHERE c = 'it''s' OR c = '])'"
    " OR c LIKE '%(ü😀[%' GROUP BY a",
    "ranges": "SELECT a, COUNT(*) FROM t WHERE a >= 3 AND a < 10 OR a > 20 GROUP BY a",
    "line break": "SELECT a, COUNT(*) FROM t"
    " WHERE c = '\n+- Exchange(distribution=[hash[fake]])' GROUP BY a",
    "whole line": "SELECT a, COUNT(*) FROM t"
    " WHERE c = 'x''y)])\n+- Exchange(distribution=[hash[fake]])' GROUP BY a",
    "forged heading": "SELECT a, COUNT(*) FROM t WHERE c = 'x\n\n== Optimized Execution Plan ==\n"
    "Calc(select=[a])\n+- Values(tuples=[[]])\n' GROUP BY a",
    "brackets": "SELECT `y]])`, `x]`, COUNT(*) FROM hostile GROUP BY `y]])`, `x]`",
    "quote": "SELECT `it's`, COUNT(*) FROM hostile GROUP BY `it's`",
    "comma": "SELECT `a, b`, COUNT(*) FROM hostile GROUP BY `a, b`",
    "letters": "SELECT `größe 😀`, `f(x`, `[`, COUNT(*) FROM hostile"
    " GROUP BY `größe 😀`, `f(x`, `[`",
    "attributes": "SELECT SUM(`x]`) OVER (PARTITION BY `z]],changelogMode=[I`, `=[single]`"
    " ORDER BY pt) FROM hostile",
}
DETAILS = [
    [],
    ["CHANGELOG_MODE"],
    ["ESTIMATED_COST"],
    ["PLAN_ADVICE"],
    ["CHANGELOG_MODE", "ESTIMATED_COST", "JSON_EXECUTION_PLAN"],
]
NO_SINK = ("group", "over", "top", "last", "limit", "join", "join of groups", "union of three")
NO_KEY = ") WITH ('connector' = 'explained')"


def explain_task(batch: bool) -> dict[str, Any]:
    """Return the task for `java/ExplainTexts.java`, with a name for each job."""
    bounded = f"'connector' = 'explained', 'bounded' = '{str(batch).lower()}'"
    changes = "" if batch else f", {UPSERTS}"
    return {
        "batch": batch,
        "tables": [
            f"CREATE TABLE {name} ({item}) WITH ({bounded})" for name, item in SOURCES.items()
        ]
        + [
            f"CREATE TABLE {name} ({item}) WITH ({bounded}{changes})"
            for name, item in KEYED.items()
        ],
        "jobs": list(_batch_jobs() if batch else _streaming_jobs()),
    }


def _job(
    name: str,
    *queries: str,
    settings: dict[str, str] | None = None,
    sink: str = NO_KEY,
    details: list[list[str]] = DETAILS,
    select: bool = False,
) -> dict[str, Any]:
    return {
        "name": name,
        "queries": queries,
        "settings": settings or {},
        "sink": sink,
        "details": details,
        "select": select,
    }


def _streaming_jobs() -> Iterator[dict[str, Any]]:
    upsert = f", PRIMARY KEY (c0) NOT ENFORCED) WITH ('connector' = 'explained', {UPSERTS})"
    for name, query in QUERIES.items():
        yield _job(name, query)
    for name in NO_SINK:
        yield _job(f"{name}, no sink", QUERIES[name], select=True, details=DETAILS[:2])
    for name in ("group", "distinct count", "filtered counts", "tumble", "last", "union"):
        yield _job(f"{name}, mini batch", QUERIES[name], settings=MINI_BATCH)
        yield _job(f"{name}, split", QUERIES[name], settings=SPLIT)
    yield _job("two sinks", GROUP, QUERIES["join"])
    yield _job("two sinks of one", f"SELECT a, n FROM {COUNTS}", QUERIES["group of groups"])
    yield _job("one query twice", GROUP, GROUP)
    two = upsert.replace("c0", "c0, c1")
    yield _job("sink with a key", GROUP, sink=two)
    yield _job("sink of upserts", f"SELECT a, n FROM {COUNTS}", sink=upsert)
    cdc = "SELECT CAST(a AS BIGINT), MAX(b) FROM t GROUP BY a"
    yield _job("no update before", cdc, sink=upsert, settings=MINI_BATCH)
    materialize = {"table.exec.sink.upsert-materialize": "FORCE"}
    yield _job("sink that materializes", GROUP, sink=upsert, settings=materialize)
    joins = {"table.optimizer.multi-join.enabled": "true"}
    yield _job("multi join", QUERIES["join of three"], settings=joins)
    for reuse in (
        "table.optimizer.reuse-sub-plan-enabled",
        "table.optimizer.reuse-source-enabled",
    ):
        yield _job(f"no {reuse}", QUERIES["join with itself"], settings={reuse: "false"})


def _batch_jobs() -> Iterator[dict[str, Any]]:
    details = [names for names in DETAILS if "PLAN_ADVICE" not in names]
    for name, query in QUERIES.items():
        yield _job(name, query, details=details)
    for name in NO_SINK:
        yield _job(f"{name}, no sink", QUERIES[name], select=True, details=DETAILS[:1])
    operators = ("HashJoin", "SortMergeJoin", "NestedLoopJoin", "HashAgg", "SortAgg")
    for name in ("group", "distinct count", "over", "top", "join", "not in", "join of groups"):
        for operator in operators:
            settings = {"table.exec.disabled-operators": operator}
            yield _job(f"{name}, no {operator}", QUERIES[name], settings=settings, details=details)
        for phases in ("ONE_PHASE", "TWO_PHASE"):
            settings = {"table.optimizer.agg-phase-strategy": phases}
            yield _job(f"{name}, {phases}", QUERIES[name], settings=settings, details=details)
    yield _job("two sinks", GROUP, QUERIES["join"], details=details)


def hashing_exchanges(compiled_plan: str) -> list[tuple[str, ...]]:
    """Return the columns of each exchange that hashes in what `CompiledPlan.asJsonString` says."""
    exchanges = []
    for node in json.loads(compiled_plan)["nodes"]:
        if node["type"].startswith("stream-exec-exchange_"):
            distribution = node["inputProperties"][0]["requiredDistribution"]
            if distribution["type"] == "HASH":
                names = _field_names(node["outputType"])
                exchanges.append(tuple(names[key] for key in distribution["keys"]))
    return exchanges


def _field_names(row_type: str | dict[str, Any]) -> list[str]:
    """Return the names of the fields of `ROW<...>`, which may hold further rows."""
    if not isinstance(row_type, str):  # a row with time attributes
        return [field["name"] for field in row_type["fields"]]
    names = []
    depth = 0
    for token in re.finditer(r"`((?:[^`]|``)*)`|[<>]", row_type):
        if token[1] is None:
            depth += 1 if token[0] == "<" else -1
        elif depth == 1:
            names.append(token[1].replace("``", "`"))
    return names
