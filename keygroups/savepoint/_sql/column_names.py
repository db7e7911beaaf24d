"""Names of the columns of rows in state, from the text of EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from keygroups._serializers.base import Serializer
from keygroups.explain import PlanNode
from keygroups.logical_types import LogicalType
from keygroups.savepoint._sql.rules import SORT_KEY, PlanPlace, Rule
from keygroups.savepoint._state.header import StateDescriptor

ColumnNames = tuple[str, ...]


def kind_of(node: PlanNode) -> str:
    """Return the kind of operator that a node is; a sink has one of its own before it."""
    if node.name == "Sink":
        return "SinkMaterializer" if "upsertMaterialize=[true]" in node.attributes else ""
    return node.name


def fits(node: PlanNode, states: Sequence[StateDescriptor], rules: Sequence[Rule | None]) -> bool:
    """Whether an operator of a plan may be the one of some states: its rows are as wide."""
    key = key_columns(node)
    if key is not None and len(key) != len(states[0].key_serializer.fields):
        return False
    return all(
        _layouts(node, place, serializer) != set()
        for state, rule in zip(states, rules)
        if rule is not None
        for place, serializer in (
            (rule.value_place, state.value_serializer),
            (rule.user_key_place, state.user_key_serializer),
        )
    )


def columns_of(
    nodes: Sequence[PlanNode], place: PlanPlace | None, serializer: Serializer | None
) -> ColumnNames | None:
    """Return the names of a row's columns, None unless all nodes say the same."""
    layouts = [_layouts(node, place, serializer) for node in nodes]
    return same_names(None if layout is None else same_names(layout) for layout in layouts)


def _layouts(
    node: PlanNode, place: PlanPlace | None, serializer: Serializer | None
) -> set[ColumnNames] | None:
    """Return possible names of a row's columns, none where it does not fit, None if unknown."""
    row = _row(serializer)
    if place is None or row is None:
        return None
    if place.columns == "accumulators":
        return _accumulator_layouts(node, row.fields)
    names = _sort_key(node) if place == SORT_KEY else _output(node.inputs[place.input])
    if names is None:
        return None
    return {names} if len(names) == len(row.fields) else set()


def key_columns(node: PlanNode) -> ColumnNames | None:
    exchange = _resolved(node.inputs[0])
    if exchange.name != "Exchange" or node.name == "Sink":
        return None
    distribution = exchange.attributes[len("distribution=[") : -1]
    if distribution == "single":
        return ()
    return tuple(distribution[len("hash[") : -1].split(", "))


def _resolved(node: PlanNode) -> PlanNode:
    return node.reused or node


_SAME_COLUMNS = {
    *("ChangelogNormalize", "Deduplicate", "DropUpdateBefore", "Exchange", "Limit"),
    *("MiniBatchAssigner", "Sort", "SortLimit", "TemporalSort", "WatermarkAssigner"),
}
_MOST_STEPS = 100
_COLUMNS = {"TableSourceScan": "fields", "Union": "union"}
_ATTRIBUTE_END = re.compile(r"\](?:, \w{1,99}=\[|$)")
_SORTED = re.compile(r"(\S{1,999}) (?:ASC|DESC)\S{0,20}")


def _output(node: PlanNode) -> ColumnNames | None:
    """Return the names of an operator's output columns, None where the plan lacks them."""
    node = _resolved(node)
    for _ in range(_MOST_STEPS):  # A plan may refer to itself.
        if node.name in _SAME_COLUMNS:
            [source] = node.inputs
            node = _resolved(source)
    pieces = _attribute(node, _COLUMNS.get(node.name, "select"))
    return None if pieces is None else tuple(name for _, name in pieces)


def _attribute(node: PlanNode, name: str) -> list[tuple[str, str]] | None:
    """Return the expressions of an attribute, each with its name."""
    _, start, rest = f", {node.attributes}".partition(f", {name}=[")
    end = _ATTRIBUTE_END.search(rest)
    if not start or end is None:
        return None
    return [*map(_named, _pieces(rest[: end.start()]))]


def _pieces(text: str) -> Iterator[str]:
    """Yield the pieces between commas outside of brackets and strings: "a, f(b, c)" has two."""
    start = depth = 0
    is_string = False
    for index, char in enumerate(text):
        if char == "'":
            is_string = not is_string
        elif is_string:
            continue
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and not depth and text.startswith(" ", index + 1):
            yield text[start:index]
            start = index + 2
    yield text[start:]


def _named(piece: str) -> tuple[str, str]:
    expression, alias, name = piece.rpartition(" AS ")
    return (expression, name) if alias and ")" not in name else (piece, piece)


def _sort_key(node: PlanNode) -> ColumnNames | None:
    pieces = _attribute(node, "orderBy")
    if pieces is None:
        return None
    matches = [_SORTED.fullmatch(piece) for piece, _ in pieces]
    return tuple(match[1] for match in matches if match) if all(matches) else None


_ANY, _ROW, _COUNT = (":",), (":ROW",), (":BIGINT",)
_AVERAGE = ("sum:", "count:BIGINT")
_ACCUMULATORS_OF = {
    "ARRAY_AGG": (_ROW, _ROW),
    "AVG": (_AVERAGE, _AVERAGE),
    "COLLECT": (_ROW, _ROW),
    "COUNT": (_COUNT, _COUNT),
    "FIRST_VALUE": (_ROW, _ROW),
    "LAST_VALUE": (_ROW, _ROW),
    "LISTAGG": (("delimiter:VARCHAR", "list:VARCHAR"), _ROW),
    "MAX": (_ANY, _ANY),
    "MIN": (_ANY, _ANY),
    "SUM": (_ANY, _AVERAGE),
    "$SUM0": (_ANY, _ANY),
}
"""By function: the columns of its accumulator and their types, without retraction and with."""
_WINDOW_TIMES = ("start", "end", "rowtime", "proctime")


def _accumulator_layouts(node: PlanNode, fields: Sequence[LogicalType]) -> set[ColumnNames] | None:
    """Return possible names of the columns of a row of accumulators, None if one is not known.

    Without retraction SUM(x) AS s is "s"; with it "s.sum", "s.count" and "count of rows". Fields
    after these are RAW: the maps of distinct values.
    """
    select = _attribute(node, "select")
    if node.name == "OverAggregate":
        [source] = node.inputs
        groups = _output(source)
    else:
        groups = tuple(name for _, name in _attribute(node, "groupBy") or ())
    if select is None or groups is None:
        return None
    aggregates = [
        (function, expression, name)
        for expression, name in select[len(groups) :]
        if (function := expression.partition("(")[0]) not in _WINDOW_TIMES
    ]
    if not all(function in _ACCUMULATORS_OF for function, _, _ in aggregates):
        return None
    # An OVER retracts rows that leave its frame, but its key stays: it needs no count of rows.
    has_count = node.name == "OverAggregate" or "COUNT(*)" in {text for _, text, _ in aggregates}
    layouts = set()
    for retracts in (False, True):
        columns = [
            (name, *column.split(":"))
            for function, _, name in aggregates
            for column in _ACCUMULATORS_OF[function][retracts]
        ]
        if retracts and not has_count:
            columns.append(("count of rows", "", "BIGINT"))
        views = fields[len(columns) :]
        if (
            len(columns) <= len(fields)
            and all(view.name == "RAW" for view in views)
            and all(kind in ("", field.name) for field, (*_, kind) in zip(fields, columns))
        ):
            names = [f"{name}.{inner}" if inner else name for name, inner, _ in columns]
            layouts.add((*names, *("distinct values" for _ in views)))
    return layouts


def same_names(columns: Iterable[ColumnNames | None]) -> ColumnNames | None:
    """Return the names that all have, None if they differ or one has none."""
    names = set(columns)
    return names.pop() if len(names) == 1 else None


def _row(serializer: Serializer | None) -> Serializer | None:
    """Return the serializer of the row that a value is or has in it."""
    if serializer is None or serializer.name == "SQL_ROW":
        return serializer
    return next((row for part in serializer.parts if (row := _row(part)) is not None), None)
