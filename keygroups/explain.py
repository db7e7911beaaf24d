"""The order in which a Flink SQL job hashes its columns, read from the text of EXPLAIN."""

from __future__ import annotations

import re

from keygroups.errors import InvalidTypeError, InvalidValueError, show

__all__ = ["hash_exchanges"]

# Explanation.java heads the parts like this; "With Advice" follows in EXPLAIN PLAN_ADVICE.
_HEADING = re.compile(r"^== (.+?) ==\s*?$", re.MULTILINE)
_PLANS = ("Optimized Execution Plan", "Optimized Physical Plan")  # the better one first
_TREE = r"^[ :]*(?:[:+]- )?"  # what RelTreeWriterImpl draws before a node
_NODE = re.compile(_TREE + r"(\w+)\(\w+=\[", re.MULTILINE)
_HASH = re.compile(
    # Names are printed bare, so only what follows the second bracket tells where they end.
    _TREE + r"Exchange\((?:advice=\[[^]]*\], )?distribution=\[hash\[(.+?)\]\](?:\)|, \w+=\[)",
    re.MULTILINE,
)
# What only a batch job has. The nodes in a MultipleInput follow "\n", spelled out.
_BATCH = re.compile(
    r"(?:" + _TREE + r"|\\n[ :]*(?:[:+]- )?)("
    r"(?:Local)?(?:Hash|Sort)(?:Window)?Aggregate|HashJoin|SortMergeJoin|NestedLoopJoin"
    r"|AdaptiveJoin|BoundedStreamScan|Exchange\(distribution=\[(?:forward|keep_input_as_is))\b",
    re.MULTILINE,
)


def hash_exchanges(explain_text: str) -> list[tuple[str, ...]]:
    """Return the columns of each exchange that hashes, in the order Flink hashes them.

    `explain_text` is what EXPLAIN or `Table.explain()` of a streaming job gives, or one of its
    optimized plans. The exchanges are those of the execution plan, else of the physical one,
    from the top of the plan down; one that the plan reuses counts once. Exchanges that do not
    hash are left out: a keyless aggregate's `single` sends all to one subtask, for one. So are
    those that a plan does not show, as of a sink with upsertMaterialize.

    The columns of one tuple, in this order and with the types that they have at the exchange,
    make the SQL_ROW of its keys. GROUP BY may have another order: where every column of the
    table is used plainly it is the table's. Join keys of two types are cast to one before the
    exchange. Names are as Flink prints them, without backquotes; one that contains a comma and
    a space reads as two.

    Raises InvalidTypeError for what is no str, and InvalidValueError for a text without an
    optimized plan and for the plan of a batch job, whose exchanges know no key groups.

    Flink: CommonPhysicalExchange and StreamExecExchange.

    >>> hash_exchanges('''
    ... == Optimized Execution Plan ==
    ... GroupAggregate(groupBy=[user_id, item], select=[user_id, item, COUNT(*) AS EXPR$0])
    ... +- Exchange(distribution=[hash[item, user_id]])
    ...    +- TableSourceScan(table=[[cat, db, clicks]], fields=[item, user_id])
    ... ''')
    [('item', 'user_id')]
    """
    if not isinstance(explain_text, str):
        raise InvalidTypeError(
            f"explain_text must be a str, got {show(explain_text)} "
            f"of class {type(explain_text).__name__}"
        )
    plan = _plan(explain_text)
    nodes = _NODE.findall(plan)
    if not nodes or any(name.startswith("Logical") for name in nodes):
        raise InvalidValueError(
            "explain_text must have an optimized plan of Flink SQL, as EXPLAIN prints it, got "
            f"{show(explain_text)}"
        )
    batch = _BATCH.search(plan)
    if batch is not None:
        raise InvalidValueError(
            f"explain_text must be of a streaming job, got a batch plan with {batch[1]}: its "
            "exchanges hash rows in another way (BinaryHashPartitioner), without key groups"
        )
    return [tuple(names.split(", ")) for names in _HASH.findall(plan)]


def _plan(text: str) -> str:
    """Return the best plan of a text with headings, or all of a text without."""
    headings = list(_HEADING.finditer(text))
    if not headings:
        return text
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for title in _PLANS:
        for heading, end in zip(headings, ends):
            if heading[1].startswith(title):
                return text[heading.end() : end]
    return ""
