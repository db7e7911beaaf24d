"""The order in which a Flink SQL job hashes its columns, read from the text of EXPLAIN.

The order is part of the key. If every column of the table is used plainly, it is the table's;
with one unused column more it is that of GROUP BY (seen in Flink 2.3), for a join that of the ON
conditions. Only the plan is sure: `hash[...]` of its exchanges, which `hash_exchanges` reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from keygroups._checks import check_str, show
from keygroups.errors import InvalidValueError

__all__ = ["hash_exchanges"]
__dir__ = __all__.copy

# Explanation.java heads the parts like this, in this order.
_SYNTAX_TREE = "Abstract Syntax Tree"
_PHYSICAL = "Optimized Physical Plan"
_EXECUTION = "Optimized Execution Plan"
_TITLES = (_SYNTAX_TREE, _PHYSICAL, _EXECUTION, "Physical Execution Plan")
_WITH_ADVICE = " With Advice"  # EXPLAIN PLAN_ADVICE adds it to the title of the physical plan.


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The planner's StreamPhysical*, StreamExec*, BatchPhysical* and BatchExec* of Flink 1.16 to 2.3.
# StreamPlanner has no ExecNodeGraphProcessor, so only batch jobs have a MultipleInput.
_STREAMING = _names(
    "ChangelogNormalize DataStreamScan Deduplicate DeltaJoin DropUpdateBefore "
    "GlobalGroupAggregate GlobalWindowAggregate GroupAggregate GroupTableAggregate "
    "GroupWindowAggregate GroupWindowTableAggregate IncrementalGroupAggregate IntervalJoin Join "
    "LocalGroupAggregate LocalWindowAggregate MiniBatchAssigner MultiJoin "
    "PythonGroupTableAggregate TemporalJoin TemporalSort WatermarkAssigner WindowAggregate "
    "WindowDeduplicate WindowJoin WindowRank"
)
_BATCH = _names(
    "AdaptiveJoin BoundedStreamScan DynamicFilteringDataCollector DynamicFilteringTableSourceScan "
    "ExecutionOrderEnforcer GlobalRuntimeFilterBuilder HashAggregate HashJoin HashWindowAggregate "
    "InputAdapter LocalHashAggregate LocalHashWindowAggregate LocalRuntimeFilterBuilder "
    "LocalSortAggregate LocalSortWindowAggregate MultipleInput NestedLoopJoin RuntimeFilter "
    "ScriptTransform SortAggregate SortMergeJoin SortWindowAggregate"
)
# Operators of both modes, or so young that the other mode may follow.
_EITHER = _names(
    "AsyncCalc AsyncCorrelate Calc Correlate Exchange Expand LegacySink LegacyTableSourceScan "
    "Limit LookupJoin MLPredictTableFunction Match OverAggregate ProcessTableFunction "
    "PythonAsyncCalc PythonCalc PythonCorrelate PythonGroupAggregate PythonGroupWindowAggregate "
    "PythonOverAggregate Rank Reused Sink Sort SortLimit TableSourceScan Union Values "
    "VectorSearchTableFunction WindowTableFunction"
)
_SINKS = ("Sink", "LegacySink")
# The fewest and the most inputs of an operator; the others have one.
_INPUTS = {
    **dict.fromkeys(
        ("DataStreamScan", "LegacyTableSourceScan", "Reused", "TableSourceScan", "Values"), (0, 0)
    ),
    **dict.fromkeys(("DeltaJoin", "IntervalJoin", "Join", "TemporalJoin", "WindowJoin"), (2, 2)),
    "MultiJoin": (2, 1_000_000),
    "ProcessTableFunction": (0, 1_000_000),
    "Union": (1, 1_000_000),
}

_NAME = re.compile(r"[A-Z]\w{0,99}")
_COST = re.compile(r": rowcount = [^ ,]{1,99}, cumulative cost = (?:\{[^{}]{1,999}\}|unknown)$")
_REUSE = re.compile(r"\(reuse_id=\[(\d{1,9})\]\)$")
_REUSED = re.compile(r"Reused\(reference_id=\[(\d{1,9})\]\)")
_ADVICE = re.compile(r"advice=\[[\d, ]{1,999}\], ")
_CHANGES = re.compile(r", changelogMode=\[[A-Z,]{1,19}\]$")
# A second attribute of an Exchange, which no EXPLAIN prints, or the end of a column's odd name.
_ATTRIBUTE = re.compile(r"\]\], \w{1,99}=\[")
_STRING = "_UTF-16LE'"  # A string of a physical plan opens so; quotes inside are doubled.


def hash_exchanges(explain_text: str) -> list[tuple[str, ...]]:
    """Return the columns of each exchange that hashes, in the order Flink hashes them.

    `explain_text` is what EXPLAIN or `Table.explain()` of one streaming job gives, or one of its
    optimized plans; the INSERT must be explained, since its SELECT may have other exchanges. Those
    of the execution plan are returned, else of the physical one, from the top of the plan down;
    one that the execution plan reuses counts once. Exchanges that do not hash are left out: a
    keyless aggregate's `single` sends all to one subtask, for one. So are those that a plan does
    not show, as of a sink with upsertMaterialize.

    The columns of one tuple, in this order and with the types that they have at the exchange,
    make the SQL_ROW of its keys. GROUP BY may have another order: where every column of the
    table is used plainly it is the table's. Join keys of two types are cast to one before the
    exchange. Names are as Flink prints them, without backquotes; one that contains a comma and
    a space raises where the text has a syntax tree that shows it, and else reads as two.

    Raises InvalidTypeError for what is no str. Raises InvalidValueError, naming the line, for
    whatever is not the whole tree of a plan as Flink prints it (a string with a line break in it
    breaks the tree), for the texts of several jobs, for the plan of a batch job, whose exchanges
    know no key groups, and for one that a batch job may have too: `EXPLAIN CHANGELOG_MODE` tells
    the two apart.

    Flink: RelTreeWriterImpl, ExecNodePlanDumper, CommonPhysicalExchange and StreamExecExchange.

    >>> hash_exchanges('''
    ... == Optimized Execution Plan ==
    ... GroupAggregate(groupBy=[user_id, item], select=[user_id, item, COUNT(*) AS EXPR$0])
    ... +- Exchange(distribution=[hash[item, user_id]])
    ...    +- TableSourceScan(table=[[cat, db, clicks]], fields=[item, user_id])
    ... ''')
    [('item', 'user_id')]
    """
    return [columns for _, columns in read_plan(explain_text).exchanges]


def read_plan(explain_text: str) -> Plan:
    """Return the execution plan of a streaming job, else the physical one; raise if it is none."""
    sections = _parts(check_str("explain_text", explain_text))
    plans = {
        title: Plan(sections[title]) for title in (_PHYSICAL, _EXECUTION) if title in sections
    }
    if not plans:
        raise InvalidValueError(
            f"explain_text must have an optimized plan of Flink SQL, got {show(explain_text)}"
        )
    _check_agreement(sections, plans)
    plan = plans.get(_EXECUTION) or plans[_PHYSICAL]
    if plan.exchanges and not any(plan.streaming for plan in plans.values()):
        raise InvalidValueError(
            "explain_text must show that the job is a streaming one, as EXPLAIN CHANGELOG_MODE "
            "does: a batch job, whose exchanges hash rows in another way (BinaryHashPartitioner), "
            f"may have this plan too, got {plan.exchanges[0][0]}"
        )
    return plan


@dataclass(frozen=True)
class _Line:
    number: int
    text: str

    def __str__(self) -> str:
        return f"line {self.number} {show(self.text)}"

    def error(self, problem: str) -> InvalidValueError:
        return InvalidValueError(
            "explain_text must have an optimized plan of Flink SQL, as EXPLAIN of one job prints "
            f"it, whole and unchanged: {self} {problem}"
        )

    def batch(self, sign: str) -> InvalidValueError:
        return InvalidValueError(
            f"explain_text must be of a streaming job, got a batch plan with {sign}: its "
            "exchanges hash rows in another way (BinaryHashPartitioner), without key groups; "
            f"see {self}"
        )


def _parts(text: str) -> dict[str, list[_Line]]:
    """Return the lines of each part by its title; a text without titles is an execution plan."""
    texts = [line.rstrip(" \t\r") for line in text.split("\n")]
    written = [index for index, line in enumerate(texts) if line]
    if not written:
        return {}
    first, last = written[0], written[-1]
    margin = texts[first][: len(texts[first]) - len(texts[first].lstrip(" "))]
    texts = [line.removeprefix(margin) for line in texts]
    if texts[first].startswith("+I[") and texts[last].endswith("]"):  # Row.toString adds both.
        texts[first], texts[last] = texts[first][3:], texts[last][:-1]
    sections: dict[str, list[_Line]] = {}
    rank = -1
    lines: list[_Line] = []
    for number, content in enumerate(texts, 1):
        line = _Line(number, content)
        if line.text.startswith("== ") and line.text.endswith(" =="):
            title = line.text[3:-3]
            if title == _PHYSICAL + _WITH_ADVICE:
                title = _PHYSICAL
            if title not in _TITLES:
                raise line.error("heads no part that Flink 1.16 to 2.3 print")
            if not sections and any(before.text for before in lines):
                raise next(before for before in lines if before.text).error("precedes the plan")
            if _TITLES.index(title) <= rank:
                raise line.error(f"starts another text after the part {_TITLES[rank]!r}")
            rank = _TITLES.index(title)
            lines = sections[title] = []
        lines.append(line)
    return sections or {_EXECUTION: lines}


def _check_agreement(sections: dict[str, list[_Line]], plans: dict[str, Plan]) -> None:
    """Raise if the parts of a text are of several jobs, or show a comma in a column's name.

    Flink translates the physical plan node by node, so both plans have the same exchanges, except
    that the execution plan shows once what it reuses.
    """
    if len(plans) == 2:
        physical, execution = (
            [columns for _, columns in plans[title].exchanges] for title in (_PHYSICAL, _EXECUTION)
        )
        reused = plans[_EXECUTION].reusable
        is_same = set(physical) == set(execution) if reused else physical == execution
        if not is_same or plans[_PHYSICAL].sinks != plans[_EXECUTION].sinks:
            raise sections[_EXECUTION][0].error(
                "heads other exchanges or sinks than the plan above"
            )
    sinks, with_comma = [], set()
    for line in sections.get(_SYNTAX_TREE, ()):
        if line.text.startswith(("LogicalSink(", "LogicalLegacySink(")):
            sinks.append(_target(line.text.partition("(")[2]))
        for attribute in line.text.partition("LogicalProject(")[2].split("], "):
            name, is_assigned, _ = attribute.partition("=[")
            if is_assigned and ", " in name:
                with_comma.update(name.split(", "))
    for title, plan in plans.items():
        if _SYNTAX_TREE in sections and (
            set(plan.sinks) != set(sinks) or len(plan.sinks) > len(sinks)
        ):
            raise sections[title][0].error("heads other sinks than the syntax tree has")
        for line, columns in plan.exchanges:
            if any({*pair} <= with_comma for pair in pairwise(columns)):
                raise line.error("has a column with a comma and a space in its name")


@dataclass(eq=False)
class PlanNode:
    """An operator: its name, its attributes as they are printed, and its inputs.

    `reused` is the operator to which a Reused refers.
    """

    line: _Line
    name: str
    is_last: bool
    attributes: str = ""
    inputs: list[PlanNode] = field(default_factory=list)
    reused: PlanNode | None = None
    is_closed: bool = False  # whether its last input has been read

    def close(self) -> None:
        fewest, most = _INPUTS.get(self.name, (1, 1))
        if not fewest <= len(self.inputs) <= most or self.is_closed != bool(self.inputs):
            raise self.line.error(f"is not followed by the inputs that {self.name} has")


@dataclass
class Plan:
    """A parsed plan: its operators from the top down, its hash exchanges and its sinks."""

    lines: Sequence[_Line]
    nodes: list[PlanNode] = field(default_factory=list)
    exchanges: list[tuple[_Line, tuple[str, ...]]] = field(default_factory=list)
    streaming: bool = False
    sinks: list[str] = field(default_factory=list)
    reusable: dict[str, PlanNode] = field(default_factory=dict)  # operators by reuse_id
    _open: list[PlanNode] = field(default_factory=list)  # the path from the root to the last node
    _roots: list[tuple[_Line, bool]] = field(default_factory=list)
    _references: dict[str, int] = field(default_factory=dict)  # missing uses by reuse_id

    def __post_init__(self) -> None:
        heading = self.lines[0]
        with_advice = heading.text.endswith(f"{_WITH_ADVICE} ==")
        advice = ("advice[", "No available advice...")
        for line in self.lines[heading.text.startswith("== ") :]:
            if not line.text:
                self._close(0)
            elif with_advice and not self._open and line.text.startswith(advice):
                break  # Advice may quote plans, and nothing but advice follows it.
            else:
                self._read(line)
        self._close(0)
        if not self._roots:
            raise heading.error("is followed by no plan")
        for line, is_one_of_many in self._roots:
            if len(self._roots) > 1 and not is_one_of_many:
                raise line.error("is the tree of another job")
        for reuse_id, missing in self._references.items():
            if missing > 0:
                raise self.reusable[reuse_id].line.error("is not reused below")

    def _close(self, depth: int) -> None:
        """Close the nodes at this depth and below."""
        while len(self._open) > depth:
            self._open.pop().close()

    def _read(self, line: _Line) -> None:
        """Add the node of a line to the tree."""
        branches, start = _branches(line)
        self._close(len(branches))
        match = _NAME.match(line.text, start)
        name = match[0] if match else ""
        if name in _BATCH:
            raise line.batch(name)
        if name not in _STREAMING and name not in _EITHER:
            raise line.error("is no operator of a plan of Flink 1.16 to 2.3")
        node = PlanNode(line, name, is_last=branches[-1:] == ["+- "])
        self._join(node, branches)
        self._open.append(node)
        self.nodes.append(node)
        self.streaming |= name in _STREAMING
        self._read_node(node, line.text[start:], is_root=not branches)

    def _join(self, node: PlanNode, branches: list[str]) -> None:
        """Add an operator to its parent's inputs."""
        line = node.line
        if not branches:
            return
        if len(branches) > len(self._open) or any(
            branch != ("   " if above.is_last else ":  ")
            for branch, above in zip(branches, self._open[1:])
        ):
            raise line.error("is no branch of the tree above it")
        parent = self._open[len(branches) - 1]
        if parent.is_closed:
            raise line.error("follows the last input of its operator")
        parent.inputs.append(node)
        parent.is_closed = node.is_last

    def _read_node(self, read: PlanNode, node: str, is_root: bool) -> None:
        """Read the attributes of a node: exchanges, reuse, and signs of batch or streaming."""
        line, name = read.line, read.name
        cost = _COST.search(node)
        node = node[: cost.start()] if cost else node
        row_type = node.find("), rowType=[RecordType(")  # Flink's own tests print it.
        if row_type >= 0 and node.endswith(")]"):
            node = node[: row_type + 1]
        reuse = _REUSE.search(node)
        if reuse:
            node = node[: reuse.start()]
            if reuse[1] in self.reusable:
                raise line.error(f"has the reuse_id {reuse[1]} of an operator above")
            self.reusable[reuse[1]] = read
            self._references[reuse[1]] = 1 + is_root  # A root of its own is no use yet.
        if is_root:
            self._roots.append((line, name in _SINKS or reuse is not None))
        if name == "Reused":
            reference = _REUSED.fullmatch(node)
            if reference is None or reference[1] not in self.reusable:
                raise line.error("refers to no operator above")
            self._references[reference[1]] -= 1
            read.reused = self.reusable[reference[1]]
            return
        if node == "DropUpdateBefore":  # No other operator is without attributes.
            return
        if not node.startswith("(", len(name)) or not node.endswith("])") or _is_open(node):
            raise line.error("is not a whole operator")
        attributes = node[len(name) + 1 : -1]
        advice = _ADVICE.match(attributes)
        attributes = attributes[advice.end() :] if advice else attributes
        changes = _CHANGES.search(attributes)
        attributes = attributes[: changes.start()] if changes else attributes
        read.attributes = attributes
        if name in _SINKS:
            self.sinks.append(_target(attributes))
        elif name == "Exchange":
            self._read_exchange(line, attributes, changes is not None)
        elif name == "Rank":
            if not attributes.startswith("strategy=["):
                raise line.batch("Rank without strategy=[")
            self.streaming = True
        elif name in ("Limit", "SortLimit"):
            if attributes.endswith((", global=[true]", ", global=[false]")):
                raise line.batch(f"a {name} of two phases")
        elif name == "OverAggregate" and ", window#0=[" in attributes:
            raise line.batch("OverAggregate with window#0=[")

    def _read_exchange(self, line: _Line, attributes: str, has_changes: bool) -> None:
        if attributes.endswith(", shuffle_mode=[BATCH]"):
            raise line.batch("shuffle_mode=[BATCH]")
        # Column names are printed bare, so that only both ends of the attribute delimit them.
        if not attributes.startswith("distribution=[") or not attributes.endswith("]"):
            raise line.error("has no distribution that Flink prints")
        distribution = attributes[len("distribution=[") : -1]
        if distribution == "single":
            return
        if not distribution.startswith("hash["):  # StreamExecExchange has no third kind.
            kind = distribution.partition("[")[0]
            raise line.batch(f"Exchange(distribution=[{kind if len(kind) < 30 else '...'}")
        columns = tuple(distribution[len("hash[") : -1].split(", "))
        if not distribution.endswith("]") or "" in columns or _ATTRIBUTE.search(distribution):
            raise line.error("has no distribution that Flink prints")
        self.exchanges.append((line, columns))
        # Only a StreamPhysicalRel has a changelog mode, and only a streaming job has no sort
        # between an exchange and an OverAggregate.
        above = self._open[-2].name if len(self._open) > 1 else ""
        self.streaming |= has_changes or above == "OverAggregate"


def _branches(line: _Line) -> tuple[list[str], int]:
    """Return the pieces of the tree that are drawn before a node, and the node's offset.

    "   :- Calc(...)" has the pieces "   " and ":- ", and the node begins at 6.
    """
    branches: list[str] = []
    start = 0
    while line.text.startswith((":  ", "   ", ":- ", "+- "), start):
        branches.append(line.text[start : start + 3])
        start += 3
        if branches[-1].endswith("- "):
            return branches, start
    if branches:
        raise line.error("is no branch of a tree")
    return branches, start


def _target(attributes: str) -> str:
    """Return the table's name, with which the first attribute of a sink begins."""
    return attributes.partition("]")[0].partition(", ")[0]


def _is_open(node: str) -> bool:
    """Return whether a string begins in the line and does not end there."""
    end = 0
    while (start := node.find(_STRING, end)) >= 0:
        end = start + len(_STRING)
        while (end := node.find("'", end)) >= 0 and node.startswith("''", end):
            end += 2
        if end < 0:
            return True
    return False
