"""Keys of Flink SQL against real Flink, and jobs that say on which subtask a key is.

Rows in bulk against Flink's own writer and the planner's key selector; jobs in a local cluster,
of SQL and one of a DataStream; plans of jobs that are explained and compiled. How many keys
were compared is in each test's properties; `pytest -rP` shows it too.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.flink.explain_jobs import explain_task, hashing_exchanges
from support.flink.flink_oracle import flink_jar
from support.flink.flink_sql import FlinkSql, in_java, in_sql
from support.golden import FOLDER
from support.keys.random_rows import BULK, random_rows

from keygroups import InvalidValueError, assign_key_to_parallel_operator, explain, hash_code
from keygroups.explain import hash_exchanges
from keygroups.types import SQL_ROW, STRING, KeyType

pytestmark = pytest.mark.flink

Record = Callable[[str, object], None]
Key = tuple[Any, ...]

MAX_PARALLELISM, PARALLELISM = 128, 5
KEYS = 3_000
TABLES = {
    "plain": "id BIGINT, name STRING",
    "wide": "id BIGINT, name STRING, more INT",
    "ints": "i INT",
}
SQL_TYPES = {"id": "BIGINT", "name": "STRING"}
FIRST_OF_EACH = """
    SELECT id, name FROM
    (SELECT *, ROW_NUMBER() OVER (PARTITION BY name, id ORDER BY more) AS n FROM wide)
    WHERE n = 1
"""
JOIN = """
    SELECT plain.id, plain.name FROM plain
    JOIN wide ON plain.name = wide.name AND plain.id = wide.id
"""
# Queries of ids and names, and the order in which Flink 2.3 hashes the two.
ORDERS = {
    "SELECT id, name, COUNT(*) FROM plain GROUP BY id, name": ("id", "name"),
    "SELECT id, name, COUNT(*) FROM plain GROUP BY name, id": ("id", "name"),
    "SELECT id, name, COUNT(*) FROM wide GROUP BY name, id": ("name", "id"),
    FIRST_OF_EACH: ("id", "name"),
    JOIN: ("name", "id"),
}
CAST_JOIN = "SELECT i, id FROM ints JOIN plain ON i = id"
KEYLESS = "SELECT COUNT(*) FROM plain"


@pytest.mark.parametrize("types", BULK, ids=", ".join)
def test_rows_in_bulk(
    flink_sql: FlinkSql, types: tuple[str, ...], record_property: Record
) -> None:
    rows = random_rows(types, BULK[types])
    flinks = flink_sql.row_hashes(types, rows)
    assert len(flinks) == len(rows)
    key_type = SQL_ROW(*types)
    wrong = [(row, code) for row, code in zip(rows, flinks) if hash_code(row, key_type) != code]
    assert wrong[:10] == []
    record(record_property, key_type, len(rows))


@dataclass(frozen=True)
class Jobs:
    """What jobs were given, and what `java/SubtaskReports.java` said of them."""

    rows: list[Key]
    ints: list[int]
    keys: list[str]
    by_query: dict[str, dict[str, Any]]
    data_stream: dict[str, Any]


@pytest.fixture(scope="module")
def jobs(flink_sql: FlinkSql, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """All jobs, run one after the other in one JVM."""
    rows = random_rows(("BIGINT", "STRING"), KEYS)
    ids = {row[0] for row in rows}
    ints = [i for i in ids if isinstance(i, int) and -(2**31) <= i < 2**31]
    data: dict[str, list[Key]] = {"plain": rows, "wide": rows, "ints": [(i,) for i in ints]}
    folder = tmp_path_factory.mktemp("tables")
    keys = [key for (key,) in random_rows(("STRING",), KEYS) if isinstance(key, str)]
    queries = [*ORDERS, CAST_JOIN, KEYLESS]
    task = {
        "parallelism": PARALLELISM,
        "max_parallelism": MAX_PARALLELISM,
        "tables": [create_table(folder, name, rows) for name, rows in data.items()],
        "queries": queries,
        "keys": keys,
    }
    *of_queries, data_stream = flink_sql.subtask_reports(task)
    return Jobs(rows, ints, keys, dict(zip(queries, of_queries)), data_stream)


def create_table(folder: Path, name: str, rows: Iterable[Key]) -> str:
    """Write a table's rows to a file, and return the DDL of the table."""
    columns = [column.partition(" ")[0] for column in TABLES[name].split(", ")]
    file = folder / f"{name}.json"
    lines = (json.dumps(dict(zip(columns, row))) for row in rows)
    file.write_text("\n".join(lines), encoding="ascii")
    return (
        f"CREATE TABLE {name} ({TABLES[name]}) "
        f"WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{file.as_uri()}')"
    )


@pytest.mark.parametrize(("query", "order"), ORDERS.items())
@pytest.mark.flink_since("1.20", "the API of its job")
def test_sql_jobs_hash_columns_in_the_order_of_the_plan(
    jobs: Jobs, query: str, order: tuple[str, ...], record_property: Record
) -> None:
    job = jobs.by_query[query]
    assert hash_exchanges(job["explain"]) == [order] * (2 if query == JOIN else 1)

    def expected(order: tuple[str, ...]) -> dict[Key, set[int]]:
        key_type = SQL_ROW(*map(SQL_TYPES.__getitem__, order))
        placed = {}
        for row in jobs.rows:
            if query != JOIN or None not in row:
                fields = dict(zip(SQL_TYPES, row))
                key = tuple(map(fields.__getitem__, order))
                placed[row[0], in_sql(row[1])] = {subtask(key, key_type)}
        return placed

    seen = reached(job, fields=2)
    assert seen == expected(order)
    assert seen != expected(order[::-1])
    assert len(seen) >= 2_000
    record(record_property, f"{', '.join(order)} in {' '.join(query.split())}", len(seen))


@pytest.mark.flink_since("1.20", "the API of its job")
def test_an_int_joined_to_a_bigint_is_hashed_as_a_bigint(
    jobs: Jobs, record_property: Record
) -> None:
    job = jobs.by_query[CAST_JOIN]
    assert hash_exchanges(job["explain"]) == [("i0",), ("id",)]
    seen = reached(job, fields=2)
    assert seen == {(i, i): {subtask((i,), SQL_ROW("BIGINT"))} for i in jobs.ints}
    assert seen != {(i, i): {subtask((i,), SQL_ROW("INT"))} for i in jobs.ints}
    assert len(seen) >= 500
    record(record_property, CAST_JOIN, len(seen))


@pytest.mark.flink_since("1.20", "the API of its job")
def test_a_keyless_aggregate_is_not_hashed(jobs: Jobs) -> None:
    job = jobs.by_query[KEYLESS]
    assert hash_exchanges(job["explain"]) == []
    nodes = json.loads(job["plan"])["nodes"]
    (aggregate,) = (node for node in nodes if node["type"].startswith("GroupAggregate"))
    assert aggregate["parallelism"] == 1
    assert ship_strategies(aggregate) == {"GLOBAL"}


@pytest.mark.flink_since("1.20", "the API of its job")
def test_string_keys_of_a_data_stream(jobs: Jobs, record_property: Record) -> None:
    seen = reached(jobs.data_stream, fields=1)
    assert seen == {(key,): {subtask(key, STRING)} for key in map(in_java, jobs.keys)}
    assert len(seen) >= 2_000
    record(record_property, "STRING in a DataStream job", len(seen))


# A string that breaks the tree, a comma in a column's name, and an exchange that is a batch job's
# too where no changelog mode is printed.
UNREADABLE = ["line break", "whole line", "forged heading", "comma"]
BATCH_TOO = ["shuffled lookup"]
# Queries that this Flink does not plan.
UNPLANNED = {
    "over two windows": "All aggregates must be computed on the same window",
    "top rank": "RANK() on streaming table is not supported",
}


@pytest.mark.flink_since("1.20", "the API of its job")
def test_explained_streaming_jobs_hash_what_they_compile_to(
    flink_sql: FlinkSql, record_property: Record
) -> None:
    task = explain_task(batch=False)
    compared = 0
    for job, output in zip(task["jobs"], flink_sql.explain_texts(task)):
        name = job["name"]
        if "error" in output:
            assert UNPLANNED[name] in output["error"], (name, output["error"])
            continue
        expected = sorted(hashing_exchanges(output["plan"]))
        for details, text in zip(job["details"], output["explain"]):
            if name in UNREADABLE or (name in BATCH_TOO and "CHANGELOG_MODE" not in details):
                with pytest.raises(InvalidValueError, match=r"line \d+ "):
                    hash_exchanges(text)
            else:
                assert sorted(hash_exchanges(text)) == expected, (name, details, text)
                compared += 1
    assert compared >= 400
    record_property("texts compared", compared)
    print(f"{compared:,} texts of streaming jobs compared")


@pytest.mark.flink_since("1.20", "the API of its job")
def test_explained_batch_jobs_are_refused_where_they_hash(
    flink_sql: FlinkSql, record_property: Record
) -> None:
    task = explain_task(batch=True)
    refused = 0
    for job, output in zip(task["jobs"], flink_sql.explain_texts(task)):
        for text in output.get("explain", ()):
            whole, _, execution = text.partition("\n== Optimized Execution Plan ==\n")
            _, _, physical = whole.partition("\n== Optimized Physical Plan ==\n")
            for part in (text, physical, execution.partition("\n== ")[0]):
                try:
                    assert hash_exchanges(part) == []
                except InvalidValueError:
                    refused += 1
                else:
                    assert "hash[" not in part, (job["name"], part)
                    assert "global=[" not in part, (job["name"], part)
    assert refused >= 1_000
    record_property("texts refused", refused)
    print(f"{refused:,} texts of batch jobs refused")


@pytest.mark.flink_since("1.20", "the API of its job")
def test_flink_still_makes_these_texts(flink_sql: FlinkSql, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "make_explain.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.iterdir()
    if not (FOLDER / made.name).exists():
        pytest.skip(f"there is no {made.name}")
    lines = gzip.decompress((FOLDER / made.name).read_bytes()).splitlines()
    assert gzip.decompress(made.read_bytes()).splitlines() == lines


@pytest.mark.flink_since("2.3", "the planner of its list")
def test_operators_are_those_of_the_planner() -> None:
    """Which classes of operators the planner has for each mode; the bases are never printed."""
    jar = flink_jar()
    if jar is None:
        pytest.skip("apache-flink-libraries is not installed")
    (loader,) = jar.parent.glob("flink-table-planner-loader-*.jar")
    with zipfile.ZipFile(loader) as outer:
        inner = io.BytesIO(outer.read("flink-table-planner.jar"))
    classes = re.compile(
        r".*/nodes/(?:physical|exec)/.*/(Stream|Batch)(?:Physical|Exec)(\w+)\.class"
    )
    found: dict[str, set[str]] = {"Stream": set(), "Batch": set()}
    with zipfile.ZipFile(inner) as planner:
        for entry in planner.namelist():
            if match := classes.fullmatch(entry):
                found[match[1]].add(match[2])
    streaming, batch = found["Stream"], found["Batch"]
    assert streaming - batch >= explain._STREAMING
    assert batch - streaming >= explain._BATCH - {"MultipleInput"}
    bases = {"Node", "Rel", "IntermediateTableScan", "MultipleInput", "ScriptTransformationExec"}
    known = explain._STREAMING | explain._BATCH | explain._EITHER | bases
    unknown = {name for name in streaming | batch if not name.endswith("Base")} - known
    assert unknown == set()


def reached(job: dict[str, Any], fields: int) -> dict[Key, set[int]]:
    """Return the subtasks that each key, the first fields of a report, has reached.

    The reporter must be on the subtask of the operator whose input is hashed.
    """
    nodes = {node["id"]: node for node in json.loads(job["plan"])["nodes"]}
    *_, operator = nodes.values()
    assert operator["type"] == "Map"
    while ship_strategies(operator) == {"FORWARD"}:
        (before,) = operator["predecessors"]
        operator = nodes[before["id"]]
    assert ship_strategies(operator) == {"HASH"}
    seen: dict[Key, set[int]] = defaultdict(set)
    for report in job["reports"]:
        seen[tuple(report[:fields])].add(report[-1])
    assert set().union(*seen.values()) == set(range(PARALLELISM))
    return seen


def ship_strategies(node: dict[str, Any]) -> set[str]:
    """Return the way in which records reach a node of a plan."""
    return {before["ship_strategy"] for before in node["predecessors"]}


def subtask(key: object, key_type: KeyType) -> int:
    return assign_key_to_parallel_operator(key, MAX_PARALLELISM, PARALLELISM, key_type)


def record(record_property: Record, what: object, count: int) -> None:
    record_property("keys compared", count)
    print(f"{what}: {count:,} keys compared")
