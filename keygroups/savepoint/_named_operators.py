"""Operators by what a caller names: a uid, a name or an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from keygroups._checks import check_str, show
from keygroups.errors import InvalidValueError
from keygroups.savepoint._metadata.handles import operator_id_of
from keygroups.savepoint._operator import Operator


def find_operator(operators: Collection[Operator], name: str) -> Operator:
    """Return an operator by its uid, its name or its id, as `Savepoint.operator` does."""
    text = check_str("operator", name)
    by_uid = operator_id_of(text)
    for operator in operators:
        if by_uid == operator.operator_id:
            operator.uid = text
            return operator
    matching = [
        operator
        for operator in operators
        if text in (operator.operator_id, operator.uid, operator.name)
    ]
    if len(matching) == 1:
        (operator,) = matching
        return operator
    labels = ", ".join(labels_of(matching or operators))
    problem = "one operator by its uid or id" if matching else "an operator's uid, name or id"
    raise InvalidValueError(f"operator must be {problem}, of {labels}, got {show(text)}")


def labels_of(operators: Collection[Operator]) -> list[str]:
    """Return the labels of operators, with the ids of those that have the same one."""
    times = Counter(operator.label for operator in operators)
    return [
        f"{operator.label} ({operator.operator_id})"
        if times[operator.label] > 1
        else operator.label
        for operator in operators
    ]


def known_uids(operators: Iterable[Operator]) -> list[str]:
    """Return the uids whose hashes are the operators' ids, as `read_savepoint` takes them."""
    return [
        operator.uid
        for operator in operators
        if operator.uid and operator_id_of(operator.uid) == operator.operator_id
    ]
