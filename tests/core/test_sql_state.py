"""What the states of Flink SQL's operators hold: told by the states, and named by EXPLAIN.

The operators are those of real jobs, whose vertices say what they are. The plans are in the form
of `tests/vectors/explain-*.jsonl.gz`, with as many columns as the rows in state have.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from support.bytes.job_points import JOB_POINTS, job_point
from support.bytes.real_savepoints import point

from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint import (
    Operator,
    SavepointWriter,
    SqlOperatorDescription,
    ValueStateDescriptor,
    describe_sql_state,
    read_savepoint,
)
from keygroups.types import LONG, SQL_ROW

cramjam = pytest.importorskip("cramjam", reason="some points are compressed: the extra savepoint")

SQL = [one for one in JOB_POINTS if one.job.startswith("sql") and one.kind == "canonical"]
# Flink before 2.0 stored no names, and these have the same states.
ALIKE = [
    {"ChangelogNormalize", "Deduplicate"},
    {"GlobalGroupAggregate", "GroupAggregate", "OverAggregate"},
    {"GlobalWindowAggregate", "WindowAggregate"},
    {"GroupWindowAggregate", "WindowAggregate"},
    {"Rank", "SortLimit"},
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one.name, marks=[] if one.flink == "1.20.5" else pytest.mark.slow)
        for one in SQL
    ],
)
def test_each_operator_is_told(name: str) -> None:
    """By its states alone in 1.20.5, in 2.3.0 by its name too."""
    one = job_point(name)
    for operator in one.read().operators:
        if operator.operator_id not in one.operators:
            continue
        kind = one.operators[operator.operator_id].partition("[")[0]
        described = describe_sql_state(operator)
        assert kind in described.kinds
        assert len(described.kinds) == 1 or (
            set(described.kinds) in ALIKE and operator.name is None
        )
        assert described.operator == operator.label
        assert [state.state for state in described.states] == [
            state.name for state in operator.states
        ]
        assert "not known" not in str(described)
        assert described.key_columns is None


def test_all_kinds_are_told() -> None:
    kinds = Counter(vertex.partition("[")[0] for one in SQL for vertex in one.operators.values())
    assert len(kinds) == 20


@pytest.mark.parametrize("name", ["2.3.0-heap-canonical", "2.3.0-rowkey-canonical"])
def test_a_job_without_sql_is_not_known(name: str) -> None:
    for operator in point(name).read().operators:
        described = describe_sql_state(operator)
        assert described.kinds == ()
        assert {state.text for state in described.states if "timer" not in state.text} <= {
            "not known"
        }
        if operator.states:
            assert "an operator that is not known" in str(described)


@lru_cache
def operators(name: str) -> dict[str, Operator]:
    return {str(operator.name): operator for operator in job_point(name).read().operators}


def described(job: str, vertex: str, plan: str) -> SqlOperatorDescription:
    """Describe an operator of a job with the plan of one, whose source comes after Exchange."""
    return describe_sql_state(operators(f"2.3.0-{job}-rocksdb-canonical")[vertex], plan)


def of_input(node: str, keys: str, fields: str) -> str:
    """Return the text of a plan of one operator over a source."""
    return (
        f"Sink(table=[c.d.s], fields=[x])\n+- {node}\n"
        f"   +- Exchange(distribution=[{keys}])\n"
        f"      +- TableSourceScan(table=[[c, d, t]], fields=[{fields}])\n"
    )


def of_inputs(node: str, keys: str, left: str, right: str) -> str:
    of_right = ", ".join(f"{key}0" for key in keys.split(", "))
    return (
        f"Sink(table=[c.d.s], fields=[x])\n+- {node}\n"
        f"   :- Exchange(distribution=[hash[{keys}]])\n"
        f"   :  +- Calc(select=[{left}])\n"
        "   :     +- TableSourceScan(table=[[c, d, t]], fields=[z])\n"
        f"   +- Exchange(distribution=[hash[{of_right}]])\n"
        "      +- WatermarkAssigner(rowtime=[ts], watermark=[ts])\n"
        f"         +- Calc(select=[{right}])\n"
        "            +- TableSourceScan(table=[[c, d, u]], fields=[z])\n"
    )


JOIN = "Join(joinType=[LeftOuterJoin], where=[(k = k0)], select=[id, k, v, k0], {})"


def test_a_join() -> None:
    """[173]: input rows of three columns and of one; the left is an outer side."""
    plan = of_inputs(JOIN.format("leftInputSpec=[NoUniqueKey]"), "k", "id, k, v", "UPPER(a) AS k0")
    join = described("sqljoin", "Join[173]", plan)
    assert (join.kinds, join.key_columns) == (("Join",), ("k",))
    left, right = join.states
    assert (left.user_key_columns, left.value_columns) == (("id", "k", "v"), None)
    assert (right.user_key_columns, right.value_columns) == (("k0",), None)
    assert "how many rows of the other side it matches" in left.text
    assert str(join).splitlines() == [
        "Join[173]: Join",
        "key: k",
        "left-records: MAP, each row of the left input, with how often it is there and how many "
        "rows of the other side it matches",
        "  columns of the user key: id, k, v",
        "right-records: MAP, each row of the right input, and how often it is there",
        "  columns of the user key: k0",
    ]


def test_a_join_with_unique_keys() -> None:
    """[148]: the columns of unique keys are in no plan; [133]: the key is the join key."""
    plan = of_inputs(JOIN.format("leftInputSpec=[HasUniqueKey]"), "k", "id, k, v", "a, b, c")
    left, right = described("sqljoin", "Join[148]", plan).states
    assert (left.user_key_columns, left.value_columns) == (None, ("id", "k", "v"))
    assert (right.user_key_columns, right.value_columns) == (None, ("a", "b", "c"))
    plan = of_inputs(JOIN.format("leftInputSpec=[NoUniqueKey]"), "k", "id, v", "a, b")
    left, right = described("sqljoin", "Join[133]", plan).states
    assert (left.value_columns, right.value_columns) == (("id", "v"), ("a", "b"))
    assert "at most" in left.text
    assert str(left).endswith("  columns of the row: id, v")


def test_one_plan_of_many_operators() -> None:
    """The join that has rows as wide; and names only if all that may be meant say the same."""
    node = JOIN.format("leftInputSpec=[NoUniqueKey]")
    three, four = "id, k, v", "id, k, v, w"
    plans = [of_inputs(node, "k", rest, "k0").rstrip() for rest in (three, four)]
    both = "\n\n".join(plans)
    join = described("sqljoin", "Join[173]", both)
    assert join.nodes == (node,)
    assert join.states[0].user_key_columns == ("id", "k", "v")
    plans = [of_inputs(node, keys, rest, "k0") for keys, rest in (("k", three), ("k", "a, k, b"))]
    join = described("sqljoin", "Join[173]", "\n\n".join(plans))
    assert (join.key_columns, len(join.nodes)) == (("k",), 2)
    assert join.states[0].user_key_columns is None
    assert join.states[1].user_key_columns == ("k0",)


def test_the_plan_of_another_job_names_nothing() -> None:
    for plan in (
        of_inputs(JOIN.format("a=[b]"), "k", "id, k", "k0"),  # narrower
        of_inputs(JOIN.format("a=[b]"), "k, j", "id, k, v", "k0"),  # other keys
        of_input("Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])", "hash[k]", "a"),
    ):
        join = described("sqljoin", "Join[173]", plan)
        assert (join.kinds, join.nodes, join.key_columns) == (("Join",), (), None)
        assert {state.user_key_columns for state in join.states} == {None}


@pytest.mark.parametrize(
    ("job", "vertex", "node", "keys", "fields", "state", "user_key", "value"),
    [
        (
            *("sqlrank", "Rank[594]"),
            "Rank(strategy=[AppendFastStrategy], rankType=[ROW_NUMBER], rankRange=[rankStart=1, "
            "rankEnd=3], partitionBy=[k], orderBy=[price DESC, n ASC], select=[a, k, n, price])",
            *("hash[k]", "id, k, n, price, ts", "data-state-with-append"),
            *(("price", "n"), ("id", "k", "n", "price", "ts")),
        ),
        (
            *("sqlrank", "SortLimit[666]"),
            "SortLimit(orderBy=[v ASC-nulls-last], offset=[0], fetch=[5], "
            "strategy=[RetractStrategy])",
            *("single", "id, k, v, w, ts", "data-state"),
            *(("v",), ("id", "k", "v", "w", "ts")),
        ),
        (
            *("sqlrank", "TemporalSort[660]", "TemporalSort(orderBy=[ts ASC, n ASC])"),
            *("single", "id, n, ts", "dataState", None, ("id", "n", "ts")),
        ),
        (
            *("sqlrank", "Deduplicate[644]"),
            "Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])",
            *("hash[k]", "id, k, x, ts", "deduplicate-state", None, ("id", "k", "x", "ts")),
        ),
        (
            *("sqlmini", "Deduplicate[491]"),  # one state
            "Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])",
            *("hash[k]", "id, k, ts", "deduplicate-state", None, ("id", "k", "ts")),
        ),
        (
            *("sqljoin", "ChangelogNormalize[140]", "ChangelogNormalize(key=[id])"),
            *("hash[id]", "id, k, v", "deduplicate-state", None, ("id", "k", "v")),
        ),
        (
            *("sqlup", "SinkMaterializer[1006]", ""),
            *("hash[id]", "id, k, n", "values", None, ("id", "k", "n")),
        ),
        (
            *("sqlagg", "GroupAggregate[364]"),
            "GroupAggregate(groupBy=[k], select=[k, LISTAGG_RETRACT(s) AS a])",
            *("hash[k]", "k, s", "accState", None, None),
        ),
        *(
            (
                *("sqlagg", "GroupAggregate[364]"),
                f"GroupAggregate(groupBy=[k], select=[k, LISTAGG(s, {delimiter}) AS a, "
                "FIRST_VALUE(v) AS b, LAST_VALUE(v) AS c, COLLECT(s) AS d, ARRAY_AGG(v) AS e, "
                "COUNT(DISTINCT s) AS f])",
                *("hash[k]", "k, s, v", "accState", None),
                ("a", "b", "c", "d", "e", "f", "count of rows", "distinct values"),
            )
            for delimiter in ("','", "', '", "'('", "')'", "'}, {'", "'it''s ['")
        ),
        (
            *("sqlagg", "GroupAggregate[392]"),
            "GroupAggregate(select=[COUNT(*) AS n, SUM(v) AS v])",
            *("single", "v", "accState", None, ("n", "v.sum", "v.count")),
        ),
        (
            *("sqlover", "OverAggregate[761]"),
            "OverAggregate(partitionBy=[k], orderBy=[pt ASC], window=[ ROWS BETWEEN 2 PRECEDING "
            "AND CURRENT ROW], select=[id, k, v, pt, COUNT(v) AS w0$o0, SUM(v) AS w0$o1])",
            *("hash[k]", "id, k, v, pt", "accState", None),
            ("w0$o0", "w0$o1.sum", "w0$o1.count"),
        ),
        (
            *("sqlrank", "Rank[594]"),
            "Rank(strategy=[AppendFastStrategy], partitionBy=[k])",  # no Flink prints it so
            *("hash[k]", "id, k, n, price, ts", "data-state-with-append"),
            *(None, ("id", "k", "n", "price", "ts")),
        ),
        (
            *("sqlrank", "Rank[594]", "Rank(strategy=[], orderBy=[price DESC, n])"),  # nor so
            *("hash[k]", "id, k, n, price, ts", "data-state-with-append"),
            *(None, ("id", "k", "n", "price", "ts")),
        ),
        (
            *("sqlagg", "GroupAggregate[392]", "GroupAggregate(groups=[k])"),  # nor this
            *("single", "v", "accState", None, None),
        ),
        (
            *("sqlagg", "GroupAggregate[378]", "GroupAggregate(groupBy=[k, d], select=[k, d])"),
            *("hash[k, d]", "k, d", "accState", None, ()),
        ),
        (
            *("sqlwin", "GlobalWindowAggregate[862]"),
            "GlobalWindowAggregate(groupBy=[k], window=[TUMBLE(slice_end=[$slice_end], "
            "size=[1 min])], select=[k, COUNT(count1$0) AS n, SUM(sum$1) AS v, MAX(max$2) AS m, "
            "start('w$) AS window_start, end('w$) AS window_end])",
            *("hash[k]", "k, count1$0, sum$1, max$2, $slice_end", "window-aggs", None),
            ("n", "v", "m"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "[" in value else "",
)
def test_columns(
    job: str,
    vertex: str,
    node: str,
    keys: str,
    fields: str,
    state: str,
    user_key: tuple[str, ...] | None,
    value: tuple[str, ...] | None,
) -> None:
    plan = of_input(node, keys, fields)
    if not node:  # a sink's
        plan = (
            "Sink(table=[c.d.s], fields=[id, k, n], upsertMaterialize=[true])\n"
            f"+- TableSourceScan(table=[[c, d, t]], fields=[{fields}])\n"
            "\nSink(table=[c.d.r], fields=[id, k, n])\n"
            "+- ChangelogNormalize(key=[i])\n   +- Exchange(distribution=[hash[i]])\n"
            "      +- TableSourceScan(table=[[c, d, t]], fields=[i, j, l])\n"
        )
    one = described(job, vertex, plan)
    [about] = [one for one in one.states if one.state == state]
    assert (about.user_key_columns, about.value_columns) == (user_key, value)
    expected = tuple(keys.partition("[")[2].strip("]").split(", ")) if node else None
    if keys == "single":
        expected = ()
    assert one.key_columns == expected


def of_aggregates(vertex: str, aggregates: str) -> str:
    """Return the text of a plan of one operator, which has a key but for [392]."""
    kind = vertex.partition("[")[0]
    if vertex == "GroupAggregate[392]":
        return of_input(f"{kind}(select=[{aggregates}])", "single", "v")
    return of_input(f"{kind}(groupBy=[k], select=[k, {aggregates}])", "hash[k]", "k, v")


@pytest.mark.parametrize(
    ("job", "vertex", "aggregates", "columns"),
    [
        *(
            (*("sqlwin", "WindowAggregate[940]"), f"{function}(v) AS v", ("v",))
            for function in ("COUNT", "MAX", "MIN", "SUM", "$SUM0")
        ),
        # With retraction there is one column more, as there is no COUNT(*).
        *(
            (
                *("sqlagg", "GroupAggregate[392]", f"MAX(u) AS u, {function}(v) AS v"),
                ("u", "v", "count of rows"),
            )
            for function in ("MAX", "MIN", "$SUM0")
        ),
        (
            *("sqlagg", "GroupAggregate[343]", "MAX(t) AS t, MAX(u) AS u, COUNT(v) AS v"),
            ("t", "u", "v", "count of rows", *["distinct values"] * 3),
        ),
        *(
            (
                *("sqlagg", "GroupAggregate[343]", f"MAX(u) AS u, {function}(v) AS v"),
                ("u", "v.sum", "v.count", "count of rows", *["distinct values"] * 3),
            )
            for function in ("AVG", "SUM")
        ),
        (
            *("sqlagg", "GroupAggregate[392]", "MAX(u) AS u, AVG(v) AS v"),
            ("u", "v.sum", "v.count"),
        ),
        *(
            (
                *("sqlwin", "GroupWindowAggregate[892]", f"MAX(u) AS u, {function}(v) AS v"),
                ("u", "v"),
            )
            for function in ("ARRAY_AGG", "COLLECT", "FIRST_VALUE", "LAST_VALUE")
        ),
        *(
            (
                *("sqlmini", "GlobalGroupAggregate[483]", f"MAX(u) AS u, {function}(v) AS v"),
                ("u", "v", "count of rows"),
            )
            for function in ("ARRAY_AGG", "COLLECT", "FIRST_VALUE", "LAST_VALUE", "LISTAGG")
        ),
        (
            *(
                "sqlagg",
                "GroupAggregate[358]",
                "LISTAGG(a) AS a, MAX(b) AS b, MAX(c) AS c, MAX(d) AS d, MAX(e) AS e",
            ),
            ("a.delimiter", "a.list", "b", "c", "d", "e"),
        ),
        *(
            (*("sqlwin", "WindowAggregate[940]"), f"MAX(v) AS v, {time}('w$) AS w", ("v",))
            for time in ("start", "end", "rowtime", "proctime")
        ),
    ],
)
def test_columns_of_accumulators(
    job: str, vertex: str, aggregates: str, columns: tuple[str, ...]
) -> None:
    """By function and by whether it retracts, of states that are as wide as one of the two."""
    one = described(job, vertex, of_aggregates(vertex, aggregates))
    assert {state.value_columns for state in one.states} == {None, columns}


@pytest.mark.parametrize(
    ("vertex", "aggregates"),
    [
        # DECIMAL is the second of three, and the first and the last are BIGINT.
        ("GroupAggregate[392]", "COUNT(*) AS a, COUNT(v) AS b, MAX(v) AS c"),
        ("GroupAggregate[392]", "AVG(v) AS a, COUNT(*) AS b"),
        ("GroupAggregate[392]", "SUM(v) AS a, COUNT(*) AS b"),
        ("GroupAggregate[392]", "MAX(v) AS a, LISTAGG(v) AS b"),
        *(
            ("GroupAggregate[392]", f"COUNT(*) AS a, {function}(v) AS b, MAX(v) AS c")
            for function in ("ARRAY_AGG", "COLLECT", "FIRST_VALUE", "LAST_VALUE", "LISTAGG")
        ),
        # STRING is the second of six, and a row the third.
        (
            "GroupAggregate[358]",
            "MAX(v) AS a, LISTAGG(v) AS b, MIN(v) AS c, MIN(v) AS d, MIN(v) AS e",
        ),
        # BOOLEAN is the last of ten, and no count of rows.
        ("GroupAggregate[336]", ", ".join(f"MAX(v) AS v{index}" for index in range(9))),
    ],
)
def test_accumulators_have_the_types_of_their_functions(vertex: str, aggregates: str) -> None:
    assert described("sqlagg", vertex, of_aggregates(vertex, aggregates)).nodes == ()


@pytest.mark.parametrize(
    "same",
    [
        "ChangelogNormalize(key=[id])",
        "Deduplicate(keep=[FirstRow], key=[id], order=[PROCTIME])",
        "DropUpdateBefore",
        "Exchange(distribution=[hash[id]])",
        "Limit(offset=[0], fetch=[5])",
        "MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])",
        "Sort(orderBy=[id ASC])",
        "SortLimit(orderBy=[id ASC], offset=[0], fetch=[5], strategy=[RetractStrategy])",
        "TemporalSort(orderBy=[ts ASC])",
        "WatermarkAssigner(rowtime=[ts], watermark=[ts])",
    ],
)
def test_operators_that_emit_what_comes_in(same: str) -> None:
    plan = (
        "Sink(table=[c.d.s], fields=[x])\n"
        "+- Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])\n"
        f"   +- Exchange(distribution=[hash[k]])\n      +- {same}\n"
        "         +- TableSourceScan(table=[[c, d, t]], fields=[id, k, x, ts])\n"
    )
    one = described("sqlrank", "Deduplicate[644]", plan)
    assert one.states[0].value_columns == ("id", "k", "x", "ts")


def test_a_union_names_its_columns() -> None:
    """Those of its inputs have names of their own."""
    plan = (
        "Sink(table=[c.d.s], fields=[x])\n"
        "+- Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])\n"
        "   +- Exchange(distribution=[hash[k]])\n"
        "      +- Union(all=[true], union=[id, k, x, ts])\n"
        "         :- TableSourceScan(table=[[c, d, t]], fields=[a, b, c, d])\n"
        "         +- TableSourceScan(table=[[c, d, u]], fields=[e, f, g, h])\n"
    )
    one = described("sqlrank", "Deduplicate[644]", plan)
    assert one.states[0].value_columns == ("id", "k", "x", "ts")


def test_an_operator_whose_input_is_not_exchanged() -> None:
    """Its key is that of the operator before it, which may name it in another way."""
    node = "Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])"
    plan = (
        f"Sink(table=[c.d.s], fields=[x])\n+- {node}\n   +- Calc(select=[id, k, x, ts])\n"
        "      +- TableSourceScan(table=[[c, d, t]], fields=[z])\n"
    )
    one = described("sqlrank", "Deduplicate[644]", plan)
    assert (one.nodes, one.key_columns) == ((node,), None)
    assert one.states[0].value_columns == ("id", "k", "x", "ts")


def test_namespaces_are_windows() -> None:
    operator = operators("2.3.0-sqlwin-rocksdb-canonical")["GroupWindowAggregate[899]"]
    lines = str(describe_sql_state(operator)).splitlines()
    at = lines.index("window-aggs: VALUE, the accumulators of the aggregates in the window")
    assert lines[at + 1] == "  namespace: the window"
    assert lines[at + 2].startswith("session-window-mapping: ")  # it has none
    sliced = operators("2.3.0-sqlwin-rocksdb-canonical")["WindowDeduplicate[917]"]
    assert str(describe_sql_state(sliced)).splitlines()[-2:] == [
        "window_deduplicate: VALUE, the row of the key in the window",
        "  namespace: the end of the window or of its slice, in epoch milliseconds",
    ]


def test_the_plan_tells_which_of_two() -> None:
    """1.20.5 stored no name: GROUP BY of one key with COUNT, SUM and MAX, no OVER."""
    [operator] = [
        one
        for one in point("1.20.5-sqlrocks-canonical").read().operators
        if any("BIGINT, INT, STRING" in str(state) for state in one.states)
    ]
    assert len(describe_sql_state(operator).kinds) == 3
    other = "GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n, LISTAGG(s) AS s])"
    reports = describe_sql_state(operator, of_input(other, "hash[k]", "k, s"))
    assert (len(reports.kinds), reports.nodes) == (3, ())  # the second is INT, and no delimiter
    node = "GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS n, SUM(i) AS i, MAX(s) AS s])"
    reports = describe_sql_state(operator, of_input(node, "hash[k]", "k, i, s"))
    assert (reports.kinds, reports.nodes) == (("GroupAggregate",), (node,))
    assert reports.states[0].value_columns == ("n", "i", "s")


def test_reused_and_endless_plans() -> None:
    """What a Reused refers to is its input; a plan that refers to itself has no columns."""
    node = "Deduplicate(keep=[LastRow], key=[k], order=[ROWTIME])"
    plan = (
        "Sink(table=[c.d.s], fields=[x])\n"
        "+- Union(all=[true], union=[a])\n"
        "   :- Exchange(distribution=[hash[k]])(reuse_id=[1])\n"
        "   :  +- TableSourceScan(table=[[c, d, t]], fields=[id, k, x, ts])\n"
        f"   +- {node}\n"
        "      +- Reused(reference_id=[1])\n"
    )
    one = described("sqlrank", "Deduplicate[644]", plan)
    assert (one.nodes, one.key_columns) == ((node,), ("k",))
    assert one.states[0].value_columns == ("id", "k", "x", "ts")
    endless = (
        f"{node}\n+- Exchange(distribution=[hash[k]])(reuse_id=[1])\n"
        "   +- Reused(reference_id=[1])"
    )
    one = described("sqlrank", "Deduplicate[644]", endless)
    assert one.states[0].value_columns is None


def test_arguments() -> None:
    operator = point("2.3.0-sqlheap-canonical").read().operators[0]
    with pytest.raises(InvalidTypeError, match="operator must be an Operator"):
        describe_sql_state("GroupAggregate")  # type: ignore[arg-type]  # a user may do so
    with pytest.raises(InvalidTypeError, match="explain_text must be a str"):
        describe_sql_state(operator, b"plan")  # type: ignore[arg-type]  # a user may do so
    with pytest.raises(InvalidValueError, match="explain_text must have an optimized plan"):
        describe_sql_state(operator, "no plan")


def test_names_do_not_break_lines() -> None:
    plan = of_inputs(JOIN.format("leftInputSpec=[NoUniqueKey]"), "k", "id, k, v", "a AS k\x1b[2J")
    join = described("sqljoin", "Join[173]", plan)
    assert join.states[1].user_key_columns == ("k\x1b[2J",)
    assert "\x1b" not in str(replace(join, operator="\x1b"))


@pytest.mark.parametrize("name", ["accState", "deduplicate-state", "waiting-to-emit-on-timer"])
def test_a_state_of_another_type(name: str, tmp_path: Path) -> None:
    """A job of its own may call its state so; SQL's has rows in it."""
    key = SQL_ROW("STRING")
    for state, is_known in ((LONG, False), (SQL_ROW("STRING"), True)):
        folder = tmp_path / str(is_known)
        with SavepointWriter(folder) as writer:
            operator = writer.add_operator("op", key, [ValueStateDescriptor(name, state)], 128, 1)
            operator.write(name, ("a",), 5 if state is LONG else ("b",))
        found = describe_sql_state(read_savepoint(folder).operator("op"))
        assert bool(found.kinds) is is_known
        assert ("not known" in str(found)) is not is_known
