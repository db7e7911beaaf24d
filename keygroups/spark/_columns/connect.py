"""Expressions over Spark Connect, which takes none that nests deep.

A column goes to the server as protobuf messages in one another, two for each function call.
Protobuf parses no more than 100 levels of them, and calls of the user may follow ours. SQL text
may nest as deep as it likes: it is one message, which the server parses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from keygroups.errors import InvalidValueError
from keygroups.spark._columns.key_columns import KeyColumn, KeyTree
from keygroups.spark._columns.sql_text import SqlText

_DEEP = 64
"""An expression of more levels goes as SQL text, or little is left for calls of the user."""
# A dollar may begin a variable, which Spark's parser replaces.
_PART = r"(?:\w+|`[^`$]+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_LAMBDA_NAME = re.compile(r"`?x\d+\b", re.IGNORECASE)  # parameters of lambdas in our text


def shallow(
    client: Any,
    key: KeyTree,
    columns: Callable[[KeyTree], Column],
    text: Callable[[KeyTree], Any],
) -> Column:
    """Return an expression of a key, made by either function, that nests little.

    Text takes the server longer to read. Where all columns are given by name, it is that of
    the whole expression, else that of a lambda function that is called with the key.
    """
    leaves = list(_leaves(key))
    messages = [check_depth("key", leaf.column, client) for leaf in leaves]
    try:
        made = columns(key)
        if _depth(_message(made, client)) <= _DEEP:
            return made
    except _too_deep():
        pass
    names = [_name(message) for message in messages]
    if None not in names:
        return F.expr(text(_replaced(key, iter(names))).text)
    # aggregate() over an empty array is its last function, called with the start.
    if len(leaves) == 1:
        start, references = leaves[0].column, ["key"]
    else:
        references = [f"key.c{i}" for i in range(len(leaves))]
        pairs = ((F.lit(f"c{i}"), leaf.column) for i, leaf in enumerate(leaves))
        start = F.named_struct(*(column for pair in pairs for column in pair))
    finish = F.expr(f"key -> {text(_replaced(key, iter(references))).text}")
    made = F.call_function(
        "aggregate", F.expr("array()"), start, F.expr("(key, x) -> key"), finish
    )
    check_depth("key", made, client)
    return made


def check_depth(name: str, column: Column, client: Any) -> Any:
    """Return a column's message, or refuse a column that is too deep to be in a select()."""
    try:
        message = _message(column, client)
        # Two calls more stand for what goes around it there: a name, the number of a partition.
        _message(F.coalesce(F.coalesce(column)), client)
        return message
    except _too_deep():
        raise InvalidValueError(
            f"{name} must not nest deeper than Spark Connect takes: make it a column of the "
            "DataFrame first, with df.withColumn(), and pass that column's name"
        ) from None


def _message(column: Any, client: Any) -> Any:
    return column.to_plan(client)


def _depth(message: Any) -> int:
    """Return the number of levels of messages in one another."""
    deepest = 0
    for field, value in message.ListFields():
        if field.message_type is not None:
            messages = [value] if hasattr(value, "ListFields") else value
            deepest = max(deepest, *(_depth(nested) for nested in messages))
    return 1 + deepest


def _name(message: Any) -> str | None:
    """Return the SQL text of a column that is given by its name alone, else None."""
    attribute = message.unresolved_attribute  # empty where the message is another
    name: str = attribute.unparsed_identifier
    if attribute.HasField("plan_id") or attribute.is_metadata_column:
        return None
    if not _NAME.fullmatch(name) or _LAMBDA_NAME.match(name):
        return None
    return re.sub(_PART, lambda part: f"`{part[0].strip('`')}`", name)


def _leaves(key: KeyTree) -> Iterator[KeyColumn]:
    if isinstance(key, KeyColumn):
        yield key
    else:
        for field in key:
            yield from _leaves(field)


def _replaced(key: KeyTree, texts: Iterator[Any]) -> KeyTree:
    """Return a key with its columns replaced by SQL text, in order."""
    if isinstance(key, KeyColumn):
        text: Any = SqlText(next(texts))
        return KeyColumn(text, key.name, key.spark_type)
    return [_replaced(field, texts) for field in key]


def _too_deep() -> tuple[type[Exception], ...]:
    """Return the error of an expression that is too deep; protobuf is there for Connect alone."""
    from google.protobuf.message import Error

    return Error, RecursionError
