r"""Column orders out of EXPLAIN texts.

The plans are Flink's: parts of the files that its planner's own tests compare with, below
flink-table/flink-table-planner/src/test/resources/ of its source. Each is named beside its plan;
without a folder it is below org/apache/flink/table/planner/plan/stream/sql/. Where a part is cut
below, a scan stands in for the rest. Whole texts are in vectors/explain-*.jsonl.gz.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from textwrap import indent
from typing import Any

import pytest
from support.golden import FOLDER, read

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupsError
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
                           +- TableSourceScan(table=[[c, d, T]])
"""

# agg/IncrementalAggregateTest.xml, testMultiDistinctAggs
SINGLE = """\
GlobalGroupAggregate(partialFinalType=[FINAL], select=[$SUM0(count$0) AS $f0, SUM(sum$1) AS $f1])
+- Exchange(distribution=[single])
   +- IncrementalGroupAggregate(partialAggGrouping=[$f2, $f3], finalAggGrouping=[])
      +- Exchange(distribution=[hash[$f2, $f3]])
         +- LocalGroupAggregate(groupBy=[$f2, $f3], partialFinalType=[PARTIAL])
            +- TableSourceScan(table=[[c, d, T]])
"""

# SubplanReuseTest.xml, testDisableReuseTableSource
JOIN = """\
Join(joinType=[InnerJoin], where=[(b = e0)], select=[a, b, c, d, e, f, a0, b0, c0, d0, e0, f0])
:- Exchange(distribution=[hash[b]])
:  +- Join(joinType=[InnerJoin], where=[(a = d)], select=[a, b, c, d, e, f])
:     :- Exchange(distribution=[hash[a]])
:     :  +- Calc(select=[a, b, c], where=[(a < 10)])
:     :     +- TableSourceScan(table=[[c, d, T]])
:     +- Exchange(distribution=[hash[d]])
:        +- Calc(select=[d, e, f], where=[(d < 10)])
:           +- TableSourceScan(table=[[c, d, T]])
+- Exchange(distribution=[hash[e]])
   +- Join(joinType=[InnerJoin], where=[(a = d)], select=[a, b, c, d, e, f])
      :- Exchange(distribution=[hash[a]])
      :  +- Calc(select=[a, b, c], where=[(a > 5)])
      :     +- TableSourceScan(table=[[c, d, T]])
      +- Exchange(distribution=[hash[d]])
         +- Calc(select=[d, e, f], where=[(d > 5)])
            +- TableSourceScan(table=[[c, d, T]])
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
      +- TableSourceScan(table=[[c, d, T]]), rowType=[RecordType(TINYINT byte)]
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
    for end in ("\r\n", "\t\n", " \n"):
        assert hash_exchanges(text.replace("\n", end)) == expected


def test_one_plan_is_enough() -> None:
    physical, heading, execution = ALL_SECTIONS.partition("== Optimized Execution Plan ==")
    _, physical_heading, physical = physical.partition("== Optimized Physical Plan ==")
    assert hash_exchanges(physical_heading + physical) == [("c",)]
    assert hash_exchanges(physical) == [("c",)]
    assert hash_exchanges(heading + execution) == [("c",)]
    assert hash_exchanges(execution) == [("c",)]
    assert hash_exchanges(execution.replace("\n", "\n    ")) == [("c",)]


def test_what_the_execution_plan_reuses_counts_once() -> None:
    physical = REUSED.replace("(reuse_id=[1])", "").replace("Reused(reference_id=[1])", "{}")
    below = physical.partition(":- ")[2].partition("+- {}")[0].replace("\n:  ", "\n   ")
    physical = physical.format(below.rstrip())
    assert hash_exchanges(physical) == [("a",), ("a",)]
    text = f"== Optimized Physical Plan ==\n{physical}\n== Optimized Execution Plan ==\n{REUSED}"
    assert hash_exchanges(text) == [("a",)]


def test_the_plans_of_one_text_must_agree() -> None:
    text = ALL_SECTIONS.replace("hash[c]], ", "hash[b]], ")
    with pytest.raises(InvalidValueError, match="line 14 '== Optimized Execution Plan =='"):
        hash_exchanges(text)


def test_the_plans_of_one_text_have_their_exchanges_in_one_order() -> None:
    plan = (
        "Join(a=[])\n:- Exchange(distribution=[hash[{}]])\n:  +- Values(a=[])\n"
        "+- Exchange(distribution=[hash[{}]])\n   +- Values(a=[])\n"
    )
    physical = f"== Optimized Physical Plan ==\n{plan.format('a', 'b')}"
    text = f"{physical}\n== Optimized Execution Plan ==\n{plan}"
    assert hash_exchanges(text.format("a", "b")) == [("a",), ("b",)]
    for others in (("b", "a"), ("a", "a")):
        with pytest.raises(InvalidValueError, match="heads other exchanges or sinks"):
            hash_exchanges(text.format(*others))


def test_a_comma_in_a_name_is_seen_in_the_syntax_tree() -> None:
    """Not one in a value, and not beside another column."""
    plan = "GroupAggregate(a=[])\n+- Exchange(distribution=[hash[{}]])\n   +- Values(a=[])\n"
    tree = "LogicalProject(a, b=[$0], c=[_UTF-16LE'[], y, z, x'])\n"
    text = f"== Abstract Syntax Tree ==\n{tree}\n== Optimized Execution Plan ==\n{plan}"
    for columns in (("a", "c"), ("c", "b"), ("y", "z")):
        assert hash_exchanges(text.format(", ".join(columns))) == [columns]
    with pytest.raises(InvalidValueError, match=r"line 6 .* has a column with a comma"):
        hash_exchanges(text.format("a, b"))


def test_a_legacy_sink_is_a_sink() -> None:
    text = ALL_SECTIONS.replace("LogicalSink(table=", "LogicalLegacySink(name=")
    assert hash_exchanges(text.replace("\nSink(table=", "\nLegacySink(name=")) == [("c",)]


def with_sinks(*names: str) -> str:
    """Return a text with the sinks of its syntax tree, its physical and its execution plan."""
    first, *others = ALL_SECTIONS.split("default_database.sink")
    return first + "".join(name + other for name, other in zip(names, others))


@pytest.mark.parametrize(
    ("part", "number", "than"),
    [
        (0, 7, "sinks than the syntax tree has"),
        (1, 14, "exchanges or sinks than the plan above"),
        (2, 14, "exchanges or sinks than the plan above"),
    ],
)
def test_the_parts_of_one_text_have_the_same_sinks(part: int, number: int, than: str) -> None:
    """A table's name ends at the first comma or bracket, as some parts say more of the table."""
    names = ["default_database.sink"] * 3
    assert hash_exchanges(with_sinks(*names)) == [("c",)]
    names[part] += ", targetColumns=[[0],[1]]"
    assert hash_exchanges(with_sinks(*names)) == [("c",)]
    names[part] = "default_database.other"
    with pytest.raises(InvalidValueError, match=f"line {number} .* heads other {than}"):
        hash_exchanges(with_sinks(*names))


def test_what_follows_the_execution_plan_is_no_part_of_it() -> None:
    """EXPLAIN JSON_EXECUTION_PLAN adds the job graph; nothing else is added."""
    graph = '\n== Physical Execution Plan ==\n{\n  "nodes" : [ {\n    "id" : 1\n  } ]\n}\n'
    assert hash_exchanges(ALL_SECTIONS + graph) == [("c",)]
    for title in ("Other", "Optimized Execution Plan With Advice"):
        later = f"\n== {title} ==\n+- Exchange(distribution=[hash[x]])\n"
        with pytest.raises(InvalidValueError, match=f"line 21 '== {title} ==' heads no part"):
            hash_exchanges(ALL_SECTIONS + later)


@pytest.mark.parametrize("line", ["== x", "x =="])
def test_half_a_heading_is_none(line: str) -> None:
    """As of a string with a line break, which the plans may do without."""
    head, tree, *plans = ALL_SECTIONS.partition("+- LogicalAggregate(")
    assert hash_exchanges("".join([head, line, "\n", tree, *plans])) == [("c",)]


@pytest.mark.parametrize("separator", ["", "\n", "\n\n"])
def test_several_texts_are_refused(separator: str) -> None:
    """Whether they are of one job cannot be told, nor which exchange is of which."""
    other = ALL_SECTIONS.replace("[c", "[d")
    with pytest.raises(InvalidValueError, match=r"Abstract Syntax Tree ==' starts another text"):
        hash_exchanges(ALL_SECTIONS + separator + other)
    _, _, plan = ALL_SECTIONS.partition("== Optimized Execution Plan ==\n")
    _, _, plan = plan.partition("\n+- ")
    plan = plan.replace("\n   ", "\n")
    assert hash_exchanges(plan) == [("c",)]
    with pytest.raises(InvalidValueError, match=r"line 1 .* is the tree of another job"):
        hash_exchanges(f"{plan}\n{plan}")


def test_row_of_explain_as_python_prints_it() -> None:
    assert hash_exchanges(f"+I[{ALL_SECTIONS}]") == [("c",)]
    assert hash_exchanges(f"+I[{ALL_SECTIONS.rstrip()}]") == [("c",)]
    assert hash_exchanges(indent(f"+I[{ALL_SECTIONS}]", "  ")) == [("c",)]
    with pytest.raises(InvalidValueError, match=r"line 1 '\+I\[== Abstract Syntax Tree =='"):
        hash_exchanges(f"+I[{ALL_SECTIONS.rstrip()})")


@pytest.mark.parametrize("line", ["advice[1]: [ADVICE] ...", "No available advice..."])
def test_nothing_but_advice_follows_a_plan_with_advice(line: str) -> None:
    assert hash_exchanges(NO_EXCHANGE.replace("No available advice...", line)) == []
    with pytest.raises(InvalidValueError, match=r"line 5 .* is no operator"):
        hash_exchanges(NO_EXCHANGE.replace("No available advice...", f"x{line}"))
    with pytest.raises(InvalidValueError, match=r"line 5 .* is no operator"):
        hash_exchanges(NO_EXCHANGE.replace("No available advice...", line[:2]))
    with pytest.raises(InvalidValueError, match=r"line 5 .* is no operator"):
        hash_exchanges(NO_EXCHANGE.replace(" With Advice", "").replace("No available", line))
    with pytest.raises(InvalidValueError, match=r"line 4 .* is no operator"):
        hash_exchanges(NO_EXCHANGE.replace("\nNo available advice...", line))
    with pytest.raises(InvalidValueError, match=r"line 1 .* is followed by no plan"):
        hash_exchanges(f"== Optimized Physical Plan With Advice ==\n\n{line}\n")


@pytest.mark.parametrize(
    "after",
    [
        ")",
        ")(reuse_id=[1])",
        ", changelogMode=[I,UB,UA,D])",
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
    plan = (
        f"Join(joinType=[InnerJoin])\n:- {node}\n:  +- Values(tuples=[[]])\n"
        f"+- {node}\n   +- Values(tuples=[[]])\n"
    )
    if "reuse_id" in after:
        once = plan.replace(f"+- {node}\n   +- Values(tuples=[[]])", "+- Reused(reference_id=[1])")
        assert hash_exchanges(once) == [names]
    else:
        assert hash_exchanges(plan) == [names, names]


@pytest.mark.parametrize(
    "names",
    [
        ("(reuse_id=[1])", "b"),
        ("a", "changelogMode=[I]", "b"),
        (": rowcount = 1", "cumulative cost = unknown", "b"),
        ("a)", "rowType=[RecordType(b"),
    ],
)
def test_what_may_follow_a_node_may_be_in_a_name(names: tuple[str, ...]) -> None:
    node = f"Exchange(distribution=[hash[{', '.join(names)}]])"
    assert hash_exchanges(f"GroupAggregate(a=[])\n+- {node}\n   +- Values(a=[])") == [names]


def test_what_could_be_an_attribute_or_part_of_a_name_is_refused() -> None:
    """Only Flink's own tests print upsert keys."""
    node = "Exchange(distribution=[hash[a]], upsertKeys=[[a], [b]])"
    with pytest.raises(InvalidValueError, match=r"line 2 .* has no distribution"):
        hash_exchanges(f"GroupAggregate(select=[a])\n+- {node}\n   +- Values(tuples=[[]])")


def test_advice_comes_first_in_a_node() -> None:
    """RelTreeWriterImpl with PLAN_ADVICE."""
    plan = "Exchange(advice=[1, 2], distribution=[hash[a, b]], changelogMode=[I])\n"
    plan = f"Calc(select=[a])\n+- {plan}   +- Values(tuples=[[]])\n"
    assert hash_exchanges(plan) == [("a", "b")]


@pytest.mark.parametrize(
    ("plan", "node"),
    [
        (MULTIPLE_INPUT, "MultipleInput"),
        (MULTIPLE_INPUT.replace("\\n", "\\\n"), "MultipleInput"),
        # ../../batch/sql/MultipleInputCreationTest.xml, testAvoidIncludingSingleton
        (
            "SortAggregate(isMerge=[true], select=[Final_COUNT(count1$0) AS cnt])\n"
            "+- Exchange(distribution=[single])\n"
            "   +- LocalSortAggregate(select=[Partial_COUNT(*) AS count1$0])\n",
            "SortAggregate",
        ),
        ("BoundedStreamScan(table=[[c, d, chainable]], fields=[a])\n", "BoundedStreamScan"),
        ("Calc(select=[a])\n+- HashAggregate(groupBy=[a])\n", "HashAggregate"),
        ("HashJoin(joinType=[InnerJoin])\n", "HashJoin"),
        *(
            (
                f"Calc(a=[])\n+- Exchange(distribution=[{kind}[a]])\n",
                f"Exchange(distribution=[{shown}",
            )
            for kind, shown in (("x" * 29, "x" * 29), ("x" * 30, "..."))
        ),
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


def read_vectors() -> Iterator[Any]:
    """Yield the tasks that `vectors/make_explain.py` wrote of each Flink."""
    for file in sorted(FOLDER.glob("explain-*")):
        header, lines = read(file.name.partition(".jsonl")[0])
        for line in lines:
            name = f"{header['flink']}-{line['job']}-{'batch' if line['batch'] else 'streaming'}"
            yield pytest.param(line, id="-".join([name, *line["details"]]))


VECTORS = list(read_vectors())
# A string that breaks the tree, or a comma that makes two names of one.
UNREADABLE = ["line break", "whole line", "forged heading", "comma"]


def physical_part(text: str) -> str:
    head, _, _ = text.partition("\n== Optimized Execution Plan ==")
    return head


def test_the_vectors_are_there() -> None:
    lines = [param.values[0] for param in VECTORS]
    assert {line["job"] for line in lines} >= set(UNREADABLE)
    assert len([line for line in lines if line["batch"]]) >= 40
    assert len([line for line in lines if line["exchanges"]]) >= 50


@pytest.mark.parametrize("line", VECTORS)
def test_texts_of_real_flink(line: Any) -> None:
    """The compiled plan says what a streaming job hashes; a batch job knows no key groups."""
    text, has_changes = line["text"], "CHANGELOG_MODE" in line["details"]
    if line["job"] == "union of three, no sink":
        assert hash_exchanges(text) == []  # there is no exchange, and nothing tells the mode
    elif line["batch"] or line["job"] in UNREADABLE:
        with pytest.raises(InvalidValueError, match=r"line \d+ "):
            hash_exchanges(text)
        with pytest.raises(InvalidValueError):
            hash_exchanges(physical_part(text))
    elif line["job"] == "shuffled lookup" and line["exchanges"] and not has_changes:
        with pytest.raises(InvalidValueError, match="as EXPLAIN CHANGELOG_MODE does"):
            hash_exchanges(text)  # a batch job has the same plan
    else:
        expected = [tuple(columns) for columns in line["exchanges"]]
        assert sorted(hash_exchanges(text)) == sorted(expected)
        assert set(hash_exchanges(physical_part(text))) == set(expected)


READABLE = [
    param
    for param in VECTORS
    if str(param.id).startswith("2.3.0")
    and not param.values[0]["batch"]
    and param.values[0]["job"] not in (*UNREADABLE, "shuffled lookup")
    and not param.values[0]["details"]
]


def without_lines(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for index in range(len(lines)):
        yield "".join(lines[:index] + lines[index + 1 :])


def with_doubled_lines(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for index in range(len(lines)):
        yield "".join(lines[:index] + lines[index : index + 1] + lines[index:])


def with_swapped_lines(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for index in range(len(lines) - 1):
        yield "".join([*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]])


def truncated(text: str) -> Iterator[str]:
    for end in range(len(text)):
        yield text[:end]


def without_beginning(text: str) -> Iterator[str]:
    """A scan alone is the plan of a job, too; so this stops at the last line."""
    for start in range(1, text.rindex("\n", 0, -2)):
        yield text[start:]


# Those of every character take long.
STRUCTURAL = [
    without_lines,
    with_doubled_lines,
    with_swapped_lines,
    pytest.param(truncated, marks=pytest.mark.slow),
    pytest.param(without_beginning, marks=pytest.mark.slow),
]


def mistyped(text: str) -> Iterator[str]:
    rng = random.Random(len(text))
    for _ in range(300):
        index = rng.randrange(len(text))
        yield (
            text[:index]
            + rng.choice(["", "a", "]", "[", ")", "\n", ", ", "+- "])
            + text[index + 1 :]
        )


@pytest.mark.parametrize(
    "mutations", [*STRUCTURAL, pytest.param(mistyped, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("line", READABLE)
def test_a_spoilt_text_is_refused_or_read_right(
    line: Any, mutations: Callable[[str], Iterator[str]]
) -> None:
    text = line["text"]
    # A text that ends with its physical plan shows there again what the other one reuses.
    right = [hash_exchanges(text), hash_exchanges(physical_part(text))]
    refused = 0
    for spoilt in mutations(text):
        try:
            assert hash_exchanges(spoilt) in right, spoilt
        except KeyGroupsError:
            refused += 1
    assert refused


@pytest.mark.parametrize("mutations", STRUCTURAL)
@pytest.mark.parametrize("line", READABLE)
def test_a_spoilt_execution_plan_is_refused_or_read_right(
    line: Any, mutations: Callable[[str], Iterator[str]]
) -> None:
    _, _, text = line["text"].partition("== Optimized Execution Plan ==\n")
    right = hash_exchanges(text)
    for spoilt in mutations(text):
        try:
            assert hash_exchanges(spoilt) == right, spoilt
        except KeyGroupsError:
            continue


EXCHANGE = "Exchange(distribution=[hash[a]])"


@pytest.mark.parametrize(
    ("lines", "number", "problem"),
    [
        (["Calc(select=[a])", "+- Scan(table=[[t]])"], 2, "is no operator"),
        (["Calc(select=[a])", "+- Calc"], 2, "is not a whole operator"),
        (["Calc(select=[a])", "+- Calc(select=[a)"], 2, "is not a whole operator"),
        (["Calc(select=[a])", "+- Calc(select=[a])"], 2, "is not followed by the inputs"),
        (["Calc(select=[a])", ":- Values(a=[])"], 1, "is not followed by the inputs"),
        (["Join(a=[])", "+- Values(a=[])"], 1, "is not followed by the inputs"),
        (["Values(a=[])", "+- Values(a=[])"], 1, "is not followed by the inputs"),
        (["Calc(select=[a])", "   +- Values(a=[])"], 2, "is no branch of the tree"),
        (["Calc(select=[a])", "   Values(a=[])"], 2, "is no branch of a tree"),
        (["+- Calc(select=[a])"], 1, "is no branch of the tree"),
        (
            ["Join(a=[])", f":- {EXCHANGE}", "   +- Values(a=[])", "+- Values(a=[])"],
            3,
            "is no branch of the tree",
        ),
        (
            ["Join(a=[])", ":- Values(a=[])", f"+- {EXCHANGE}", ":  +- Values(a=[])"],
            4,
            "is no branch of the tree",
        ),
        (
            ["Calc(a=[])", "+- Values(a=[])", f"+- {EXCHANGE}", "   +- Values(a=[])"],
            3,
            "follows the last input",
        ),
        ([f"{EXCHANGE}(reuse_id=[1])", "+- Values(a=[])"], 1, "is not reused below"),
        (  # a tree of its own is there for two
            [
                *("Values(a=[])(reuse_id=[1])", ""),
                *("Sink(table=[s])", "+- Reused(reference_id=[1])"),
            ],
            1,
            "is not reused below",
        ),
        (["Calc(a=[])", "+- Reused(reference_id=[1])"], 2, "refers to no operator"),
        (
            ["Join(a=[])", ":- Values(a=[])(reuse_id=[1])", "+- Values(a=[])(reuse_id=[1])"],
            3,
            "has the reuse_id 1",
        ),
        (
            [  # a string that draws a branch of its own; RexLiteral doubles a quote in it
                "Union(all=[true], union=[a])",
                ":- Calc(select=[a], where=[=(c, _UTF-16LE'x'')])",
                f":  +- {EXCHANGE}",
                ":     +- Values(tuples=[[]])",
                ":- Calc(select=[a], where=[=(c, '')'])",
                ":  +- Values(tuples=[[]])",
                "+- Values(tuples=[[]])",
            ],
            2,
            "is not a whole operator",
        ),
        (["Calc(a=[])", "+- Exchange(distribution=[hash[]])", "   +- Values(a=[])"], 2, "has no"),
        (["Calc(a=[])", "+- Exchange(distribution=[hash[a])", "   +- Values(a=[])"], 2, "has no"),
        (["Exchange(distribution=[hash[a, bc])", "+- Values(a=[])"], 1, "has no"),
        (["Calc(a=[])", "+- Exchange(keys=[hash[a]])", "   +- Values(a=[])"], 2, "has no"),
        (["Exchange(distribution=[hash[a]]x, changelogMode=[I])", "+- Values(a=[])"], 1, "has no"),
        (["Calc(a=[]): rowcount = 1.0", "+- Values(a=[])"], 1, "is not a whole operator"),
    ],
)
def test_the_line_that_cannot_be_read_is_named(
    lines: list[str], number: int, problem: str
) -> None:
    with pytest.raises(InvalidValueError, match=f"line {number} .*{problem}"):
        hash_exchanges("\n".join(lines))


ANY = 1_000


@pytest.mark.parametrize(
    ("name", "fewest", "most"),
    [
        *((name, 0, 0) for name in ("DataStreamScan", "LegacyTableSourceScan", "TableSourceScan")),
        *((name, 1, 1) for name in ("Calc", "ChangelogNormalize", "GroupAggregate", "Sink")),
        *((f"{kind}Join", 2, 2) for kind in ("Delta", "Interval", "", "Temporal", "Window")),
        *(("MultiJoin", 2, ANY), ("ProcessTableFunction", 0, ANY), ("Union", 1, ANY)),
    ],
)
def test_how_many_inputs_an_operator_has(name: str, fewest: int, most: int) -> None:
    for inputs in (0, 1, 2, 3, ANY):
        branches = [":- Values(a=[])"] * (inputs - 1) + ["+- Values(a=[])"] * (inputs > 0)
        text = "\n".join([f"{name}(a=[])", *branches])
        if fewest <= inputs <= most:
            assert hash_exchanges(text) == []
        else:
            with pytest.raises(InvalidValueError, match=f"the inputs that {name} has"):
                hash_exchanges(text)


@pytest.mark.parametrize(
    ("above", "after"),
    [
        ("GroupAggregate(select=[a])", ""),
        ("Rank(strategy=[UndefinedStrategy], rankType=[ROW_NUMBER])", ""),
        ("OverAggregate(partitionBy=[a], window=[ ROWS BETWEEN 1 PRECEDING AND CURRENT ROW])", ""),
        ("Calc(select=[a])", ", changelogMode=[I]"),
    ],
)
def test_what_only_a_streaming_plan_has(above: str, after: str) -> None:
    below = f"+- Exchange(distribution=[hash[a]]{after})\n   +- Values(tuples=[[]])"
    assert hash_exchanges(f"{above}\n{below}") == [("a",)]


def test_an_exchange_alone_may_be_of_a_batch_job() -> None:
    with pytest.raises(InvalidValueError, match="may have this plan too, got line 1 'Exchange"):
        hash_exchanges("Exchange(distribution=[hash[a]])\n+- Values(a=[])")


def steps_to_read(text: str) -> int:
    """Return the number of our lines that run; each is a bounded match or a str method."""
    steps = 0

    def count(frame: Any, event: str, _: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        hash_exchanges(text)
    except KeyGroupsError:
        pass
    finally:
        sys.settrace(before)
    return steps


def chain(size: int) -> str:
    depth = int(size**0.5)
    nodes = (f"{'   ' * level}+- Calc(select=[a])\n" for level in range(depth))
    return "Calc(select=[a])\n" + "".join(nodes)


@pytest.mark.parametrize(
    "hostile",
    [
        lambda size: "Exchange(distribution=[hash[" + "]], " * size,
        lambda size: f"GroupAggregate(a=[])\n+- Exchange(distribution=[hash[{'a, ' * size}a]])",
        lambda size: "Calc(select=[" + "_UTF-16LE'" * size,
        lambda size: "Calc(select=[_UTF-16LE'" + "''" * size,
        lambda size: "Calc(select=[" + ": rowcount = " * size,
        lambda size: "Calc(select=[a" + ", changelogMode=[I]" * size + ")",
        lambda size: "Calc" + "(reuse_id=[1])" * size,
        lambda size: " " * size + "Calc(",
        lambda size: ":  " * size + "Calc(",
        lambda size: "\n" * size,
        lambda size: "== " * size + "==",
        lambda size: "== Abstract Syntax Tree ==\n" + "LogicalProject(a, b=[$0], " * size,
        lambda size: "Union(all=[true])\n" + ":- Values(tuples=[[]])\n" * (size // 20),
        lambda size: "Sink(table=[a])\n+- Values(tuples=[[]])\n\n" * (size // 20),
        chain,
    ],
)
def test_the_cost_grows_no_faster_than_the_text(hostile: Callable[[int], str]) -> None:
    size = 30_000
    short, long = hostile(size), hostile(2 * size)
    assert steps_to_read(long) <= 2.2 * steps_to_read(short) + 1_000


def plan_of(*lines: str) -> str:
    return "\n".join(["== Optimized Execution Plan ==", *lines, ""])


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (["Rank(rankType=[ROW_NUMBER])", "+- Values(a=[])"], "Rank without strategy="),
        (
            [
                "Calc(select=[a])",
                "+- Exchange(distribution=[hash[a]], shuffle_mode=[BATCH])",
                "   +- Values(a=[])",
            ],
            "shuffle_mode=",
        ),
        (  # BatchPhysicalOverAggregate numbers its windows; a streaming one has one of no number
            [
                "OverAggregate(partitionBy=[a], window#0=[COUNT(*) AS w0$o0], select=[a, w0$o0])",
                "+- Exchange(distribution=[hash[a]])",
                "   +- Values(a=[])",
            ],
            "OverAggregate with window#0=",
        ),
        *(
            ([f"{name}(offset=[0], fetch=[5], global=[{phase}])", "+- Values(a=[])"], f"a {name}")
            for name in ("Limit", "SortLimit")
            for phase in ("true", "false")
        ),
    ],
)
def test_operators_of_a_batch_job(lines: list[str], what: str) -> None:
    with pytest.raises(InvalidValueError, match=f"a batch plan with {what}"):
        hash_exchanges(plan_of(*lines))


def test_an_operator_without_attributes() -> None:
    text = plan_of(
        "GroupAggregate(groupBy=[a], select=[a])",
        "+- Exchange(distribution=[hash[a]])",
        "   +- DropUpdateBefore",
        "      +- Values(a=[])",
    )
    assert hash_exchanges(text) == [("a",)]
