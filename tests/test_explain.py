r"""Column orders out of EXPLAIN texts.

The plans are Flink's: parts of the files that its planner's own tests compare with, below
flink-table/flink-table-planner/src/test/resources/ of its source. Each is named beside its plan;
without a folder it is below org/apache/flink/table/planner/plan/stream/sql/.
"""

from __future__ import annotations

from typing import Any

import pytest

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.explain import hash_exchanges

# agg/AggregateTest.xml, testGroupKeyNotMatchSinkPk
ALL_SECTIONS = """\
== Abstract Syntax Tree ==
LogicalSink(table=[default_catalog.default_database.sink], fields=[c, cnt])
+- LogicalAggregate(group=[{0}], cnt=[COUNT()])
   +- LogicalProject(c=[$2])
      +- LogicalTableScan(table=[[default_catalog, default_database, T]])

== Optimized Physical Plan ==
Sink(table=[default_catalog.default_database.sink], fields=[c, cnt], changelogMode=[NONE])
+- GroupAggregate(groupBy=[c], select=[c, COUNT(*) AS cnt], changelogMode=[I,UB,UA])
   +- Exchange(distribution=[hash[c]], changelogMode=[I])
      +- Calc(select=[c], changelogMode=[I])
         +- TableSourceScan(table=[[default_catalog, default_database, T]], fields=[a, b, c, d])

== Optimized Execution Plan ==
Sink(table=[default_catalog.default_database.sink], fields=[c, cnt])
+- GroupAggregate(groupBy=[c], select=[c, COUNT(*) AS cnt])
   +- Exchange(distribution=[hash[c]])
      +- Calc(select=[c])
         +- TableSourceScan(table=[[default_catalog, default_database, T]], fields=[a, b, c, d])
"""

# agg/IncrementalAggregateTest.xml, testFirstValueLastValueWithRetraction
CHANGELOG_MODES = """\
GroupAggregate(groupBy=[b], partialFinalType=[FINAL], select=[b], changelogMode=[I,UA,D])
+- Exchange(distribution=[hash[b]], changelogMode=[I,UB,UA,D])
   +- GroupAggregate(groupBy=[b, $f2], partialFinalType=[PARTIAL], select=[b, $f2])
      +- Exchange(distribution=[hash[b, $f2]], changelogMode=[I,UB,UA,D])
         +- Calc(select=[$f1 AS b, $f2 AS c, MOD(HASH_CODE($f2), 1024) AS $f2])
            +- GlobalGroupAggregate(groupBy=[a], partialFinalType=[FINAL], select=[a])
               +- Exchange(distribution=[hash[a]], changelogMode=[I])
                  +- IncrementalGroupAggregate(partialAggGrouping=[a, $f2], select=[a])
                     +- Exchange(distribution=[hash[a, $f2]], changelogMode=[I])
                        +- LocalGroupAggregate(groupBy=[a, $f2], select=[a, $f2])
"""

# agg/IncrementalAggregateTest.xml, testMultiDistinctAggs
SINGLE = """\
GlobalGroupAggregate(partialFinalType=[FINAL], select=[$SUM0(count$0) AS $f0, SUM(sum$1) AS $f1])
+- Exchange(distribution=[single])
   +- IncrementalGroupAggregate(partialAggGrouping=[$f2, $f3], finalAggGrouping=[])
      +- Exchange(distribution=[hash[$f2, $f3]])
         +- LocalGroupAggregate(groupBy=[$f2, $f3], partialFinalType=[PARTIAL])
"""

# SubplanReuseTest.xml, testDisableReuseTableSource
JOIN = """\
Join(joinType=[InnerJoin], where=[(b = e0)], select=[a, b, c, d, e, f, a0, b0, c0, d0, e0, f0])
:- Exchange(distribution=[hash[b]])
:  +- Join(joinType=[InnerJoin], where=[(a = d)], select=[a, b, c, d, e, f])
:     :- Exchange(distribution=[hash[a]])
:     :  +- Calc(select=[a, b, c], where=[(a < 10)])
:     +- Exchange(distribution=[hash[d]])
:        +- Calc(select=[d, e, f], where=[(d < 10)])
+- Exchange(distribution=[hash[e]])
   +- Join(joinType=[InnerJoin], where=[(a = d)], select=[a, b, c, d, e, f])
      :- Exchange(distribution=[hash[a]])
      :  +- Calc(select=[a, b, c], where=[(a > 5)])
      +- Exchange(distribution=[hash[d]])
         +- Calc(select=[d, e, f], where=[(d > 5)])
"""

# SubplanReuseTest.xml, testSourceReuseWithEmptyFilterCondAndIgnoreEmptyFilter
REUSED = """\
Join(joinType=[InnerJoin], where=[(a = a0)], select=[a, b, c, a0, b0, c0])
:- Exchange(distribution=[hash[a]])(reuse_id=[1])
:  +- Calc(select=[a, b, c], where=[(a > 5)])
:     +- TableSourceScan(table=[[default_catalog, default_database, MyTable, filter=[]]])
+- Reused(reference_id=[1])
"""

# agg/AggregateTest.xml, testAvgOnDifferentTypes (with rowType)
KEYLESS = """\
GroupAggregate(select=[AVG(byte) AS EXPR$0]), rowType=[RecordType(TINYINT EXPR$0)]
+- Exchange(distribution=[single]), rowType=[RecordType(TINYINT byte)]
   +- Calc(select=[byte]), rowType=[RecordType(TINYINT byte)]
"""

# explain/testSqlUpdateAndToDataStreamWithPlanAdvice.out
NO_EXCHANGE = """\
== Optimized Physical Plan With Advice ==
Sink(table=[default_catalog.default_database.MySink1], fields=[first])
+- TableSourceScan(table=[[default_catalog, default_database, MyTable, project=[first]]])

No available advice...

== Optimized Execution Plan ==
Sink(table=[default_catalog.default_database.MySink1], fields=[first])
+- TableSourceScan(table=[[default_catalog, default_database, MyTable, project=[first]]])
"""

# ../../batch/sql/MultipleInputCreationTest.xml, testIncludeCalcForChainableSource
MULTIPLE_INPUT = (
    r"MultipleInput(readOrder=[0,0,1], members=[\nNestedLoopJoin(joinType=[LeftOuterJoin], "
    r"where=[(a = a0)], select=[a, d, e, f, ny, a0, b, c], build=[right])\n"
    r":- [#2] Exchange(distribution=[broadcast])\n+- [#1] Exchange(distribution=[broadcast])\n])"
    """
:- Exchange(distribution=[broadcast])
:  +- Calc(select=[a, b, c], where=[(a > 10)])
+- Exchange(distribution=[broadcast])
   +- Calc(select=[d, e, f, ny], where=[(d > 10)])
"""
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ALL_SECTIONS, [("c",)]),
        (CHANGELOG_MODES, [("b",), ("b", "$f2"), ("a",), ("a", "$f2")]),
        (SINGLE, [("$f2", "$f3")]),
        (JOIN, [("b",), ("a",), ("d",), ("e",), ("a",), ("d",)]),
        (REUSED, [("a",)]),
        (KEYLESS, []),
        (NO_EXCHANGE, []),
    ],
)
def test_plans_of_flinks_own_tests(text: str, expected: list[tuple[str, ...]]) -> None:
    assert hash_exchanges(text) == expected
    assert hash_exchanges(text.replace("\n", "\r\n")) == expected


def test_execution_plan_goes_before_the_physical_one() -> None:
    """The physical plan has the same exchanges; each is told apart by its name here."""
    text = ALL_SECTIONS.replace("hash[c]], ", "hash[physical]], ")
    assert hash_exchanges(text) == [("c",)]
    physical, _, _ = text.partition("== Optimized Execution Plan ==")
    assert hash_exchanges(physical) == [("physical",)]
    _, heading, execution = text.partition("== Optimized Execution Plan ==")
    assert hash_exchanges(heading + execution) == [("c",)]
    assert hash_exchanges(execution) == [("c",)]


def test_what_follows_the_execution_plan_is_no_part_of_it() -> None:
    """EXPLAIN JSON_EXECUTION_PLAN adds the job graph."""
    graph = '\n== Physical Execution Plan ==\n{\n  "nodes" : [ {\n    "id" : 1\n  } ]\n}\n'
    assert hash_exchanges(ALL_SECTIONS + graph) == [("c",)]
    later = "\n== Other ==\n+- Exchange(distribution=[hash[x]])\n"
    assert hash_exchanges(ALL_SECTIONS + later) == [("c",)]


def test_row_of_explain_as_python_prints_it() -> None:
    assert hash_exchanges(f"+I[{ALL_SECTIONS}]") == [("c",)]


@pytest.mark.parametrize(
    "after",
    [
        ")",
        ")(reuse_id=[1])",
        ", changelogMode=[I,UB,UA,D])",
        ", upsertKeys=[[a], [b]])",
        "): rowcount = 1.0E8, cumulative cost = {1.0E8 rows, 1.62E10 cpu, 0.0 io}",
        "), rowType=[RecordType(INTEGER a, BIGINT b)]",
    ],
)
@pytest.mark.parametrize(
    "names",
    [
        ("a", "b"),
        ("$f0", "EXPR$1"),
        ("user id", "ü"),
        ("a[1]", "b"),
        ("a]", "[b"),
        ("a]]", "]"),
        ("f(x)", "`"),
        ("x,y", "Exchange(distribution=[hash[z]"),
    ],
)
def test_names_are_printed_bare(names: tuple[str, ...], after: str) -> None:
    """CommonPhysicalExchange: the type's short name and Java's List.toString of the names;
    RelTreeWriterImpl says what can follow."""
    node = f"Exchange(distribution=[hash[{', '.join(names)}]]{after}"
    plan = f"Join(joinType=[InnerJoin])\n:- {node}\n:  +- Calc(select=[a])\n+- {node}\n"
    assert hash_exchanges(plan) == [names, names]


def test_advice_comes_first_in_a_node() -> None:
    """RelTreeWriterImpl with PLAN_ADVICE."""
    plan = "Exchange(advice=[1, 2], distribution=[hash[a, b]], changelogMode=[I])\n"
    assert hash_exchanges(f"Calc(select=[a])\n+- {plan}") == [("a", "b")]


def test_members_of_a_multiple_input_only_refer_to_its_inputs() -> None:
    """Flink's own tests have a MultipleInput of batch jobs; this is one with a streaming join."""
    plan = MULTIPLE_INPUT.replace("NestedLoopJoin", "Join").replace("broadcast", "hash[a]")
    assert hash_exchanges(plan) == [("a",), ("a",)]
    assert hash_exchanges(plan.replace("\\n", "\\\n")) == [("a",), ("a",)]


@pytest.mark.parametrize(
    ("plan", "node"),
    [
        (MULTIPLE_INPUT, "NestedLoopJoin"),
        (MULTIPLE_INPUT.replace("\\n", "\\\n"), "NestedLoopJoin"),
        # ../../batch/sql/MultipleInputCreationTest.xml, testAvoidIncludingSingleton
        (
            "SortAggregate(isMerge=[true], select=[Final_COUNT(count1$0) AS cnt])\n"
            "+- Exchange(distribution=[single])\n"
            "   +- LocalSortAggregate(select=[Partial_COUNT(*) AS count1$0])\n",
            "SortAggregate",
        ),
        ("BoundedStreamScan(table=[[c, d, chainable]], fields=[a])\n", "BoundedStreamScan"),
        ("Calc(select=[a])\n+- HashAggregate(groupBy=[a])\n", "HashAggregate"),
        (":- HashJoin(joinType=[InnerJoin])\n", "HashJoin"),
        # BatchExecExchange.getDescription
        (
            "OverAggregate(partitionBy=[a])\n+- Exchange(distribution=[forward])\n",
            "Exchange(distribution=[forward",
        ),
        (
            "Calc(select=[a])\n+- Exchange(distribution=[keep_input_as_is[hash[a]]])\n",
            "Exchange(distribution=[keep_input_as_is",
        ),
    ],
)
def test_batch_plans_are_refused(plan: str, node: str) -> None:
    """BatchExecExchange: a BinaryHashPartitioner, which knows no key groups."""
    with pytest.raises(InvalidValueError, match="streaming job, got a batch plan with") as caught:
        hash_exchanges(plan)
    assert f"batch plan with {node}: its exchanges" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT a, COUNT(*) FROM T GROUP BY a",
        "== Abstract Syntax Tree ==\nLogicalProject(a=[$0])\n",
        "LogicalProject(a=[$0])\n+- LogicalTableScan(table=[[c, d, T]])\n",
        "== Optimized Execution Plan ==\n\n",
        "hash[a, b]",
    ],
)
def test_text_without_a_plan(text: str) -> None:
    with pytest.raises(InvalidValueError, match="explain_text must have an optimized plan"):
        hash_exchanges(text)


@pytest.mark.parametrize("text", [None, b"", ["Exchange"], 5])
def test_what_is_no_text(text: Any) -> None:
    with pytest.raises(InvalidTypeError, match="explain_text must be a str, got"):
        hash_exchanges(text)
