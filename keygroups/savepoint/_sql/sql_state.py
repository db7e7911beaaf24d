"""Describes the keyed state of Flink SQL's operators, as nothing in a savepoint does.

Operators are told apart by the names, kinds and types of their states, which are those of Flink
1.20 and 2.3. Columns have no names in state; they are read from the text of EXPLAIN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from keygroups._checks import check_class
from keygroups._serializers.base import Serializer
from keygroups.errors import printable
from keygroups.explain import PlanNode, read_plan
from keygroups.savepoint._operator import Operator
from keygroups.savepoint._sql.column_names import (
    ColumnNames,
    columns_of,
    fits,
    key_columns,
    kind_of,
    same_names,
)
from keygroups.savepoint._sql.rules import REQUIRED, RULES, Rule
from keygroups.savepoint._state.header import StateDescriptor

_UNKNOWN = "not known"
_TIMERS = "_timer_state/"
_NUMBERED = re.compile(r"(agg|distinctAcc_)\d{1,9}")  # states of views
_PYTHON_VIEW = re.compile(r"(python-state-aggN\$).*", re.DOTALL)  # a field of an accumulator
_OPERATOR = re.compile(r"(\w{1,99})\[\d{1,9}\]")  # names such as "Join[7]", since Flink 1.15


@dataclass(frozen=True)
class SqlStateDescription:
    """Contents of one state of an operator of SQL; `str()` says them.

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
    user_key_columns: ColumnNames | None
    value_columns: ColumnNames | None

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
    """Contents of the keyed state of an operator of SQL; `str()` says them.

    `operator` is its label. `kinds` are the kinds of operator that have such states, by the names
    that EXPLAIN has for them: more than one where the states do not tell, none where they are not
    those of an operator that is known. `nodes` are the lines of the plan that may be this one.
    `key_columns` name the columns of the key, in its order, None where they are not known.
    """

    operator: str
    kinds: ColumnNames
    nodes: ColumnNames
    key_columns: ColumnNames | None
    states: tuple[SqlStateDescription, ...]

    def __str__(self) -> str:
        kinds = " or ".join(self.kinds) or "an operator that is not known"
        lines = [printable(f"{self.operator}: {kinds}")]
        if self.key_columns is not None:
            lines.append(printable(f"key: {', '.join(self.key_columns) or 'no columns'}"))
        return "\n".join((*lines, *map(str, self.states)))


def describe_sql_state(
    operator: Operator, explain_text: str | None = None
) -> SqlOperatorDescription:
    """Return a description of each keyed state of an operator of Flink SQL.

    `operator` is one of a savepoint. Which kind it is of is told by its states, and where the
    savepoint has it (Flink 2) by its name; where that is not sure, `kinds` has more than one, or
    none. `explain_text` is that of EXPLAIN of the job as in `hash_exchanges`: with it the columns
    of rows have names, if all operators of the plan that may be this one have the same.

    Raises InvalidTypeError for what is no operator or no text, InvalidValueError as
    `hash_exchanges` for a text that is no plan, SavepointError where the states cannot be read.

    Flink: StreamingJoinOperator, GroupAggFunction, AbstractTopNFunction and the like.

    Of a Deduplicate it says that `deduplicate-state` is "the row of the key that is kept, often of
    the row kind +U", and of one of the DataStream API:

    >>> from keygroups.savepoint import read_savepoint
    >>> operator = read_savepoint("examples/data/savepoint").operator("by-string")
    >>> str(describe_sql_state(operator)).splitlines()[:2]
    ['by-string: an operator that is not known', 'label: VALUE, not known']
    """
    check_class("operator", operator, Operator, "an Operator")
    plan_nodes = [] if explain_text is None else read_plan(explain_text).nodes
    states = operator.states
    rules = [_rule_of(state) for state in states]
    kinds = _kinds(operator, rules)
    fitting = [node for node in plan_nodes if kind_of(node) in kinds and fits(node, states, rules)]
    if fitting:
        of_nodes = {kind_of(node) for node in fitting}
        kinds = tuple(kind for kind in kinds if kind in of_nodes)
    return SqlOperatorDescription(
        operator.label,
        kinds,
        tuple(f"{node.name}({node.attributes})" for node in fitting),
        same_names(key_columns(node) for node in fitting),
        tuple(
            _described(state, rule if kinds else None, fitting)
            for state, rule in zip(states, rules)
        ),
    )


def _shape(serializer: Serializer | None) -> str | None:
    """Return a type as rules have it: a row without its fields, each window as WINDOW."""
    if serializer is None:
        return None
    if serializer.name == "SQL_ROW":
        return "ROW"
    if serializer.name.endswith("TIME_WINDOW"):  # The table runtime's name ends so, too.
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


def _rule_of(state: StateDescriptor) -> Rule | None:
    name = _PYTHON_VIEW.sub(r"\1VIEW", _NUMBERED.sub(r"\1N", state.name, count=1))
    for rule in RULES:
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


def _kinds(operator: Operator, rules: Sequence[Rule | None]) -> ColumnNames:
    """Return the kinds of operator that have all these states, and need no other one."""
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
        if kind not in REQUIRED or REQUIRED[kind] in names
    ]
    named = _OPERATOR.match(operator.name or "")
    return (named[1],) if named and named[1] in known else tuple(known)


def _is_of_timers(state: StateDescriptor) -> bool:
    return state.value_serializer is None and state.name.startswith(_TIMERS)


def _described(
    state: StateDescriptor, rule: Rule | None, nodes: Sequence[PlanNode]
) -> SqlStateDescription:
    text, namespace = _UNKNOWN, None
    value_columns = user_key_columns = None
    if _is_of_timers(state):
        is_event = state.name.startswith(f"{_TIMERS}event_")
        text = f"timers in {'event' if is_event else 'processing'} time"
    elif rule is not None:
        text = rule.text
        value_columns = columns_of(nodes, rule.value_place, state.value_serializer)
        user_key_columns = columns_of(nodes, rule.user_key_place, state.user_key_serializer)
    if text != _UNKNOWN:
        namespace = _NAMESPACE_TEXTS.get(_namespace(state))
    types = [state.namespace_serializer, state.user_key_serializer, state.value_serializer]
    return SqlStateDescription(
        state.name,
        state.kind,
        ", ".join(str(each) for each in types if each is not None),
        text,
        namespace,
        user_key_columns,
        value_columns,
    )
