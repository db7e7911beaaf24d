"""What the keyed state of Flink SQL's operators holds: nothing in a savepoint says it.

Operators are told apart by the names, kinds and types of their states, which are those of Flink
1.20 and 2.3. Columns have no names in state; they are read from the text of EXPLAIN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from keygroups._checks import check_class
from keygroups._serializers.base import Serializer
from keygroups.errors import printable
from keygroups.explain import PlanNode, read_plan
from keygroups.logical_types import LogicalType
from keygroups.savepoint._savepoint import Operator
from keygroups.savepoint._state.header import StateDescriptor

Names = tuple[str, ...]

_UNKNOWN = "not known"
_TIMERS = "_timer_state/"
_NUMBERED = re.compile(r"(agg|distinctAcc_)\d{1,9}")  # states of views
_OPERATOR = re.compile(r"(\w{1,99})\[\d{1,9}\]")  # how Flink SQL names one since 1.15


@dataclass(frozen=True)
class SqlStateDescription:
    """What one state of an operator of SQL holds; `str()` says it.

    `state` is its name, `kind` and `types` are those of its descriptor, `text` says what an entry
    is, "not known" where that is not sure. `namespace_text` says what a namespace is, None where
    there is none. `user_key_columns` name the columns of the row that is the user key of a MAP,
    `value_columns` those of the row that is the value, or in it; None for what is no row and
    where the names are not known.
    """

    state: str
    kind: str
    types: str
    text: str
    namespace_text: str | None
    user_key_columns: Names | None
    value_columns: Names | None

    def __str__(self) -> str:
        lines = [f"{self.state}: {self.kind}, {self.text}"]
        if self.namespace_text is not None:
            lines.append(f"  namespace: {self.namespace_text}")
        if self.user_key_columns is not None:
            lines.append(f"  columns of the user key: {', '.join(self.user_key_columns)}")
        if self.value_columns is not None:
            lines.append(f"  columns of the row: {', '.join(self.value_columns)}")
        return "\n".join(map(printable, lines))


@dataclass(frozen=True)
class SqlOperatorDescription:
    """What the keyed state of an operator of SQL holds; `str()` says it.

    `operator` is its label. `kinds` are the kinds of operator that have such states, by the names
    that EXPLAIN has for them: more than one where the states do not tell, none where they are not
    those of an operator that is known. `nodes` are the lines of the plan that may be this one.
    `key_columns` name the columns of the key, in its order, None where they are not known.
    """

    operator: str
    kinds: Names
    nodes: Names
    key_columns: Names | None
    states: tuple[SqlStateDescription, ...]

    def __str__(self) -> str:
        kinds = " or ".join(self.kinds) or "an operator that is not known"
        lines = [printable(f"{self.operator}: {kinds}")]
        if self.key_columns is not None:
            lines.append(printable(f"key: {', '.join(self.key_columns) or 'no columns'}"))
        return "\n".join((*lines, *map(str, self.states)))


class _Place(NamedTuple):
    """Where in a plan the columns of a row are: which, of which input."""

    columns: str
    input: int = 0


class _Rule(NamedTuple):
    """What a state holds, in operators of some kinds, if its name, kind and types are these.

    An N in the name is a number. `namespace` is VOID, SLICE (the end of a window) or WINDOW.
    `user_key` and `value` are types as `_shape` has them, "" for any.
    """

    name: str
    kind: str
    namespace: str
    user_key: str | None
    value: str
    kinds: str
    text: str
    value_place: _Place | None = None
    user_key_place: _Place | None = None


_INPUT, _LEFT, _RIGHT = _Place("input"), _Place("input"), _Place("input", 1)
_ACCUMULATORS, _SORT_KEY = _Place("accumulators"), _Place("sort key")
_GROUPS = "GroupAggregate GlobalGroupAggregate"
_SLICED = "GlobalWindowAggregate WindowAggregate"
_WINDOWED = "GroupWindowAggregate WindowAggregate"
_VIEWS = {
    "VOID": f"{_GROUPS} IncrementalGroupAggregate OverAggregate",
    "SLICE": _SLICED,
    "WINDOW": _WINDOWED,
}


def _of_sides(*makers: Callable[[str, _Place], _Rule]) -> Iterator[_Rule]:
    for make in makers:
        yield make("left", _LEFT)
        yield make("right", _RIGHT)


_MATCHES = "how many rows of the other side it matches"
_RULES = [
    *_of_sides(
        lambda side, place: _Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "INT", "Join"),
            f"each row of the {side} input, and how often it is there",
            user_key_place=place,
        ),
        lambda side, place: _Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "TUPLE(INT, INT)", "Join"),
            f"each row of the {side} input, with how often it is there and {_MATCHES}",
            user_key_place=place,
        ),
        lambda side, place: _Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "ROW", "Join"),
            f"by its unique key, each row of the {side} input",
            place,
        ),
        lambda side, place: _Rule(
            *(f"{side}-records", "MAP", "VOID", "ROW", "TUPLE(ROW, INT)", "Join"),
            f"by its unique key, each row of the {side} input, and {_MATCHES}",
            place,
        ),
        lambda side, place: _Rule(
            *(f"{side}-records", "VALUE", "VOID", None, "ROW", "Join"),
            f"the row of the {side} input; there is one at most with this key",
            place,
        ),
        lambda side, place: _Rule(
            *(f"{side}-records", "VALUE", "VOID", None, "TUPLE(ROW, INT)", "Join"),
            f"the row of the {side} input, of which there is one at most with this key, and "
            f"{_MATCHES}",
            place,
        ),
        lambda side, place: _Rule(
            *(f"{side}-records", "LIST", "SLICE", None, "ROW", "WindowJoin"),
            f"the rows of the {side} input in the window",
            place,
        ),
        lambda side, place: _Rule(
            f"IntervalJoin{side.title()}Cache",
            *("MAP", "VOID", "LONG", "LIST(TUPLE(ROW, BOOLEAN))", "IntervalJoin"),
            f"by time in epoch milliseconds, the rows of the {side} input, and whether each was "
            "emitted",
            place,
        ),
        lambda side, place: _Rule(
            f"IntervalJoin{side.title()}TimerState",
            *("VALUE", "VOID", None, "LONG", "IntervalJoin"),
            f"the time of the timer that is set for the {side} input, 0 without one",
        ),
    ),
    _Rule(
        *("left", "MAP", "VOID", "LONG", "ROW", "TemporalJoin"),
        "by number, each row of the left input that waits for its time",
        _LEFT,
    ),
    _Rule(
        *("right", "MAP", "VOID", "LONG", "ROW", "TemporalJoin"),
        "by time in epoch milliseconds, each version of the row of the right input; of one with "
        "the row kind -D there is none from then on",
        _RIGHT,
    ),
    _Rule(
        *("next-index", "VALUE", "VOID", None, "LONG", "TemporalJoin"),
        "the number of the next row of the left input",
    ),
    _Rule(
        *("timer", "VALUE", "VOID", None, "LONG", "TemporalJoin"),
        "the time of the timer that is set",
    ),
    _Rule(
        *("accState", "VALUE", "VOID", None, "ROW", f"{_GROUPS} OverAggregate"),
        "the accumulators of the aggregates",
        _ACCUMULATORS,
    ),
    *(
        _Rule(*("window-aggs", "VALUE", namespace, None, "ROW", kinds), text, _ACCUMULATORS)
        for namespace, kinds, text in (
            ("SLICE", _SLICED, "the accumulators of the aggregates in the slice of a window"),
            ("WINDOW", _WINDOWED, "the accumulators of the aggregates in the window"),
        )
    ),
    _Rule(
        *("session-window-mapping", "MAP", "VOID", "WINDOW", "WINDOW", _WINDOWED),
        "each session, and the window under which its state is",
    ),
    *(
        rule
        for namespace, kinds in _VIEWS.items()
        for rule in (
            _Rule(
                *("distinctAcc_N", "MAP", namespace, "", "", kinds),
                "each value of an aggregate with DISTINCT, and how often it is there; with FILTER "
                "a bit for each aggregate that has it",
            ),
            _Rule(
                *("distinctAcc_N_null_state", "VALUE", namespace, None, "", kinds),
                "the same of NULL, which is no key of the map",
            ),
            _Rule(
                *("aggN$map", "MAP", namespace, "", "", kinds),
                "each value of the aggregate, and how often it is there; of JSON_OBJECTAGG each "
                "key and its value",
            ),
            _Rule(
                *("aggN$list", "LIST", namespace, None, "", kinds),
                "the values of the aggregate",
            ),
            _Rule(
                *("aggN$retractList", "LIST", namespace, None, "", kinds),
                "the values of the aggregate that were retracted before they came",
            ),
            _Rule(
                *("aggN$valueToOrderMap", "MAP", namespace, "", "", kinds),
                "each value of the aggregate, and the order numbers that it came with",
            ),
            _Rule(
                *("aggN$orderToValueMap", "MAP", namespace, "", "", kinds),
                "by order number, the values of the aggregate that came with it",
            ),
        )
    ),
    _Rule(
        *("deduplicate-state", "VALUE", "VOID", None, "ROW", "ChangelogNormalize Deduplicate"),
        "the row of the key that is kept, often of the row kind +U",
        _INPUT,
    ),
    _Rule(
        *("deduplicate-state", "VALUE", "VOID", None, "BOOLEAN", "Deduplicate"),
        "whether there was a row of the key",
    ),
    _Rule(
        *("already-emitted-state-boolean", "VALUE", "VOID", None, "BOOLEAN", "Deduplicate"),
        "whether the first row of the key was emitted",
    ),
    _Rule(
        *("waiting-to-emit-on-timer", "VALUE", "VOID", None, "ROW", "Deduplicate"),
        "the first row of the key, which waits for its time",
        _INPUT,
    ),
    *(
        _Rule(
            *(name, "MAP", "VOID", "ROW", "LIST(ROW)", "Rank SortLimit"),
            f"by sort key, {rows}",
            _INPUT,
            _SORT_KEY,
        )
        for name, rows in (
            ("data-state-with-append", "the rows that are first in order"),
            ("data-state", "all rows"),
        )
    ),
    _Rule(
        *("data-state-with-update", "MAP", "VOID", "ROW", "TUPLE(ROW, INT)", "Rank SortLimit"),
        "by its unique key, each row, and its place among those with the same sort key",
        _INPUT,
    ),
    _Rule(
        *("sorted-map", "VALUE", "VOID", None, "", "Rank SortLimit"),
        "the sort keys in order, each with how many rows have it",
    ),
    _Rule(
        *("dataState", "MAP", "VOID", "LONG", "LIST(ROW)", "TemporalSort"),
        "by time in epoch milliseconds, the rows that wait",
        _INPUT,
    ),
    _Rule(
        *("inputState", "MAP", "VOID", "LONG", "LIST(ROW)", "OverAggregate"),
        "by time in epoch milliseconds, the rows that wait or are within the frame",
        _INPUT,
    ),
    *(
        _Rule(name, "VALUE", "VOID", None, "LONG", kinds, text)
        for name, kinds, text in (
            (
                "lastTriggeringTsState",
                "OverAggregate TemporalSort",
                "the last time for which rows were emitted, in epoch milliseconds",
            ),
            ("processedCountState", "OverAggregate", "how many rows are within the frame"),
            (
                "smallestTSState",
                "OverAggregate",
                "the earliest time within the frame, in epoch milliseconds",
            ),
            (
                "cleanupTsState",
                "OverAggregate",
                "when the state is cleared, in epoch milliseconds",
            ),
        )
    ),
    _Rule(
        *("window_rank", "MAP", "SLICE", "ROW", "LIST(ROW)", "WindowRank"),
        "by sort key, the rows that are first in order in the window",
        _INPUT,
        _SORT_KEY,
    ),
    _Rule(
        *("window_deduplicate", "VALUE", "SLICE", None, "ROW", "WindowDeduplicate"),
        "the row of the key in the window",
        _INPUT,
    ),
    _Rule(
        *("values", "VALUE", "VOID", None, "LIST(ROW)", "SinkMaterializer"),
        "the rows of the key in the order in which they came; the last is in the sink",
        _INPUT,
    ),
    _Rule(
        *("nfaStateName", "VALUE", "VOID", None, "", "Match"),
        "the matches that are not complete",
    ),
    _Rule(
        *("eventQueuesStateName", "MAP", "VOID", "LONG", "LIST(ROW)", "Match"),
        "by time in epoch milliseconds, the rows that wait",
        _INPUT,
    ),
    _Rule(
        *("sharedBuffer-events", "MAP", "VOID", "", "LOCKABLE(ROW)", "Match"),
        "by event id, each row that is part of a match, and how many refer to it",
        _INPUT,
    ),
    _Rule(
        *("sharedBuffer-entries-with-lockable-edges", "MAP", "VOID", "", "", "Match"),
        "by event and stage, what precedes it in matches",
    ),
    _Rule(
        *("sharedBuffer-events-count", "MAP", "VOID", "LONG", "INT", "Match"),
        "by time in epoch milliseconds, how many events there are",
    ),
]
_REQUIRED = {
    **dict.fromkeys(("GroupAggregate", "GlobalGroupAggregate", "OverAggregate"), "accState"),
    **dict.fromkeys(("GroupWindowAggregate", *_SLICED.split()), "window-aggs"),
    "TemporalSort": "dataState",
}
"""The state without which there is no operator of a kind."""


def describe_sql_state(
    operator: Operator, explain_text: str | None = None
) -> SqlOperatorDescription:
    """Return what each keyed state of an operator of Flink SQL holds.

    `operator` is one of a savepoint. Which kind it is of is told by its states, and where the
    savepoint has it (Flink 2) by its name; where that is not sure, `kinds` has more than one, or
    none. `explain_text` is that of EXPLAIN of the job as in `hash_exchanges`: with it the columns
    of rows have names, if all operators of the plan that may be this one have the same.

    Raises InvalidTypeError for what is no operator or no text, InvalidValueError as
    `hash_exchanges` for a text that is no plan, SavepointError where the states cannot be read.

    Flink: StreamingJoinOperator, GroupAggFunction, AbstractTopNFunction and the like.

    >>> from keygroups.savepoint import read_savepoint
    >>> savepoint = read_savepoint("savepoint-9e1f20")                       # doctest: +SKIP
    >>> print(describe_sql_state(savepoint.operators[3], plan))              # doctest: +SKIP
    Deduplicate[14]: Deduplicate
    key: user_id
    deduplicate-state: VALUE, the row of the key that is kept, often of the row kind +U
      columns of the row: user_id, item, ts
    """
    check_class("operator", operator, Operator, "an Operator")
    plan_nodes = [] if explain_text is None else read_plan(explain_text).nodes
    states = operator.states
    rules = [_rule_of(state) for state in states]
    kinds = _kinds(operator, rules)
    fitting = [
        node for node in plan_nodes if _kind_of(node) in kinds and _fits(node, states, rules)
    ]
    if fitting:
        of_nodes = {_kind_of(node) for node in fitting}
        kinds = tuple(kind for kind in kinds if kind in of_nodes)
    return SqlOperatorDescription(
        operator.label,
        kinds,
        tuple(f"{node.name}({node.attributes})" for node in fitting),
        _same(_key_columns(node) for node in fitting),
        tuple(
            _described(state, rule if kinds else None, fitting)
            for state, rule in zip(states, rules)
        ),
    )


def _shape(serializer: Serializer | None) -> str | None:
    """Return a type without what differs from one operator to another of its kind."""
    if serializer is None:
        return None
    if serializer.name == "SQL_ROW":
        return "ROW"
    if serializer.name.endswith("TIME_WINDOW"):  # that of the table runtime too
        return "WINDOW"
    parts = [*map(_shape, serializer.parts)]
    return f"{serializer.name}({', '.join(map(str, parts))})" if parts else serializer.name


_NAMESPACES = {"VOID_NAMESPACE": "VOID", "LONG": "SLICE", "WINDOW": "WINDOW"}
_NAMESPACE_TEXTS = {
    "SLICE": "the end of the window or of its slice, in epoch milliseconds",
    "WINDOW": "the window",
}


def _namespace(state: StateDescriptor) -> str:
    return _NAMESPACES.get(str(_shape(state.namespace_serializer)), "")


def _rule_of(state: StateDescriptor) -> _Rule | None:
    name = _NUMBERED.sub(r"\1N", state.name, count=1)
    for rule in _RULES:
        if (
            rule.name == name
            and (rule.kind, rule.namespace) == (state.kind, _namespace(state))
            and _is_of(state.user_key_serializer, rule.user_key)
            and _is_of(state.value_serializer, rule.value)
        ):
            return rule
    return None


def _is_of(serializer: Serializer | None, shape: str | None) -> bool:
    return shape == "" or _shape(serializer) == shape


def _kinds(operator: Operator, rules: Sequence[_Rule | None]) -> Names:
    """Return the kinds of operator that have all these states, and none that they must not."""
    states = operator.states
    if not states or states[0].key_serializer.name != "SQL_ROW":
        return ()
    of_states = [
        set(rule.kinds.split()) if rule is not None else set()
        for state, rule in zip(states, rules)
        if not _is_of_timers(state)
    ]
    names = {state.name for state in states}
    known = [
        kind
        for kind in sorted(set.intersection(*of_states) if of_states else ())
        if kind not in _REQUIRED or _REQUIRED[kind] in names
    ]
    named = _OPERATOR.match(operator.name or "")
    return (named[1],) if named and named[1] in known else tuple(known)


def _is_of_timers(state: StateDescriptor) -> bool:
    return state.value_serializer is None and state.name.startswith(_TIMERS)


def _described(
    state: StateDescriptor, rule: _Rule | None, nodes: Sequence[PlanNode]
) -> SqlStateDescription:
    text, namespace = _UNKNOWN, None
    value_columns = user_key_columns = None
    if _is_of_timers(state):
        is_event = state.name.startswith(f"{_TIMERS}event_")
        text = f"timers in {'event' if is_event else 'processing'} time"
    elif rule is not None:
        text = rule.text
        value_columns = _columns(nodes, rule.value_place, state.value_serializer)
        user_key_columns = _columns(nodes, rule.user_key_place, state.user_key_serializer)
    if text != _UNKNOWN:
        namespace = _NAMESPACE_TEXTS.get(_namespace(state))
    types = [state.namespace_serializer, state.user_key_serializer, state.value_serializer]
    return SqlStateDescription(
        state.name,
        state.kind,
        ", ".join(str(one) for one in types if one is not None),
        text,
        namespace,
        user_key_columns,
        value_columns,
    )


def _same(columns: Iterable[Names | None]) -> Names | None:
    """Return what all have alike, None if they differ or one has none."""
    names = set(columns)
    return names.pop() if len(names) == 1 else None


def _row(serializer: Serializer | None) -> Serializer | None:
    """Return the serializer of the row that a value is or has in it."""
    if serializer is None or serializer.name == "SQL_ROW":
        return serializer
    return next((row for part in serializer.parts if (row := _row(part)) is not None), None)


# Plans


def _kind_of(node: PlanNode) -> str:
    """Return the kind of operator that a node is; a sink has one of its own before it."""
    if node.name == "Sink":
        return "SinkMaterializer" if "upsertMaterialize=[true]" in node.attributes else ""
    return node.name


def _fits(
    node: PlanNode, states: Sequence[StateDescriptor], rules: Sequence[_Rule | None]
) -> bool:
    """Whether an operator of a plan may be the one of some states: its rows are as wide."""
    key = _key_columns(node)
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


def _columns(
    nodes: Sequence[PlanNode], place: _Place | None, serializer: Serializer | None
) -> Names | None:
    """Return how the columns of a row are named, if all nodes say the same."""
    layouts = [_layouts(node, place, serializer) for node in nodes]
    return _same(None if one is None else _same(one) for one in layouts)


def _layouts(
    node: PlanNode, place: _Place | None, serializer: Serializer | None
) -> set[Names] | None:
    """Return the names that the columns of a row may have, none if it has others; or None."""
    row = _row(serializer)
    if place is None or row is None:
        return None
    if place.columns == "accumulators":
        return _accumulator_layouts(node, row.fields)
    names = _sort_key(node) if place == _SORT_KEY else _output(node.inputs[place.input])
    if names is None:
        return None
    return {names} if len(names) == len(row.fields) else set()


def _key_columns(node: PlanNode) -> Names | None:
    exchange = _resolved(node.inputs[0]) if node.inputs else None
    if exchange is None or exchange.name != "Exchange" or node.name == "Sink":
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


def _output(node: PlanNode) -> Names | None:
    """Return the columns of what an operator emits, None where the plan does not say it."""
    node = _resolved(node)
    for _ in range(_MOST_STEPS):  # a plan may refer to itself
        if node.name in _SAME_COLUMNS:
            node = _resolved(node.inputs[0])
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
    """Yield what commas separate that are in no brackets and in no string."""
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


def _sort_key(node: PlanNode) -> Names | None:
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
_WINDOW_TIMES = ("start", "end", "slice_end", "rowtime", "proctime")


def _accumulator_layouts(node: PlanNode, fields: Sequence[LogicalType]) -> set[Names] | None:
    select = _attribute(node, "select")
    if node.name == "OverAggregate":
        groups = _output(node.inputs[0])
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
    # What leaves the frame of an OVER is retracted, but no key goes with it.
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
