"""Keys that Flink sends to a chosen subtask, and a salt that moves a key there.

Keys are tried in one fixed order, so the answer is the same on every machine:

- BYTE, SHORT, INT, LONG, BIG_INT, SCALA_BIG_INT, HASHED: 0, 1, 2, ... and past the type's last
  value -1, -2, ...
- STRING: "0", "1", "2", ..., each behind the prefix
- BOOLEAN: False, True, the numbers 0 and 1
- TUPLE, ROW, SQL_ROW and others with fields: the first free field runs as above; the other free
  fields keep their first value (0, "0", False); in SQL these are integers, BOOLEAN, VARCHAR and
  STRING
- PYFLINK: as the key type in it

A search that starts at another number leaves out those before it.

A template, a tuple, has `...` for the free fields and a value for the others; without one all are
free. A field of any other type has to get its value there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice, takewhile
from typing import Any

from keygroups import types
from keygroups._checks import (
    INT_MAX,
    LONG_MAX,
    check_class,
    check_int,
    check_parallelisms,
    check_str,
    record_repr,
    show,
)
from keygroups._show.progress import checked_progress
from keygroups._values.checks import expect
from keygroups.assignment import assign_to_key_group
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.hashing import finalise, hasher_of
from keygroups.logical_types import LogicalType
from keygroups.progress import Meter, ProgressCallback, measured
from keygroups.types import KeyType

__all__ = ["SubtaskKeySelector", "keys_for_subtasks", "salted_key"]
__dir__ = __all__.copy

_Compound = types.FieldsType | types.SQL_ROW


def keys_for_subtasks(
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType = types.INT,
    n: int = 1,
    *,
    prefix: str = "",
    template: tuple[object, ...] | None = None,
    start: int = 0,
    progress: ProgressCallback | bool | None = None,
) -> list[Any]:
    """Return the first key that Flink sends to each subtask, from subtask 0.

    1 <= parallelism <= max_parallelism <= 32768. With n > 1 there is a list of the first `n`
    keys for each subtask. The order of the keys is in the module's docstring: `prefix` goes
    before the number of a STRING, `template` is a tuple of a compound key's fields. `start` is the
    number that the search starts at, from 0 to the type's last value: 1 for BOOLEAN, 127 for BYTE
    or TINYINT, and so on, 2^63 - 1 for BIG_INT and text. `progress` is a function that gets the
    number of found keys, as `keygroups.progress` has it, or True for a bar.

    The search ends with an InvalidValueError where the type has no more values (BOOLEAN has
    2, BYTE 256), and after (2n + 50) * max_parallelism / (max_parallelism // parallelism)
    keys, which would take a hash that spreads badly. Raises ParallelismError,
    InvalidTypeError for a key type that is not counted through, InvalidValueError or
    InvalidTypeError for the rest, and what `hash_code` raises for a value in the template.

    Flink: KeyGroupRangeAssignment.assignKeyToParallelOperator, asked backwards.

    >>> from keygroups.types import INT, STRING, TUPLE
    >>> keys_for_subtasks(128, 5)
    [4, 9, 10, 0, 2]
    >>> keys_for_subtasks(128, 2, STRING, n=2, prefix="bucket-")
    [['bucket-0', 'bucket-7'], ['bucket-1', 'bucket-2']]
    >>> keys_for_subtasks(128, 4, TUPLE(STRING, INT), template=("page", ...))
    [('page', 2), ('page', 0), ('page', 3), ('page', 1)]
    >>> keys_for_subtasks(128, 5, start=1000)
    [1000, 1003, 1001, 1009, 1002]
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    n = check_int("n", n, 1, INT_MAX)
    candidates = _candidates(key_type, prefix, template, start)
    subtasks = range(parallelism)
    callback = checked_progress(progress)
    with measured(callback, "find keys", lambda: n * parallelism, "keys") as meter:
        keys = _find(candidates, subtasks, max_parallelism, parallelism, key_type, n, meter)
    return keys if n > 1 else [key for (key,) in keys]


@dataclass(frozen=True, slots=True)
class SubtaskKeySelector:
    """Substitute keys, one per subtask, so that keyBy reaches them evenly; immutable.

    Takes what `keys_for_subtasks` does but for `n`, `start` and `progress`, and raises the same.
    `keys` are its keys, from subtask 0.

    Flink: a KeySelector for a keyBy that has to balance rather than to group.

    >>> selector = SubtaskKeySelector(128, 5)
    >>> selector.key_for(4), selector.keys
    (2, (4, 9, 10, 0, 2))
    >>> selector.key_for_value("hello")
    2
    """

    max_parallelism: int
    parallelism: int
    key_type: KeyType = types.INT
    prefix: str = field(default="", kw_only=True)
    template: tuple[object, ...] | None = field(default=None, kw_only=True)
    keys: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return record_repr(self)

    def __post_init__(self) -> None:
        groups, parallelism = check_parallelisms(self.max_parallelism, self.parallelism)
        keys = keys_for_subtasks(
            groups, parallelism, self.key_type, prefix=self.prefix, template=self.template
        )
        object.__setattr__(self, "max_parallelism", groups)
        object.__setattr__(self, "parallelism", parallelism)
        object.__setattr__(self, "keys", tuple(keys))

    def key_for(self, subtask: int) -> Any:
        """Return the key of a subtask, 0 <= subtask < parallelism.

        Raises InvalidValueError or InvalidTypeError.
        """
        return self.keys[check_int("subtask", subtask, 0, self.parallelism - 1)]

    def key_for_value(self, value: object, value_type: KeyType | None = None) -> Any:
        """Return the key that stands in for a value, always the same one.

        `value_type` is a key type, or None to infer it. Subtasks share the values evenly:
        the value's subtask is its murmur hash modulo the parallelism, which is its key group
        in a job whose max parallelism is this parallelism. Raises what `hash_code` raises.
        """
        return self.keys[assign_to_key_group(value, self.parallelism, value_type)]


def salted_key(
    key: object,
    subtask: int,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType = types.STRING,
    separator: str = "#",
) -> Any:
    """Return a key with the smallest salt that moves it to a subtask.

    `key_type` is that of the salted key: STRING makes it the key, the separator and the salt;
    a TUPLE, ROW or SQL_ROW of two fields makes it a tuple of the key and the salt; PYFLINK of
    these is as they are. The salts run as keys do, from 0. Ranges: 1 <= parallelism <=
    max_parallelism <= 32768 and 0 <= subtask < parallelism.

    Raises what `keys_for_subtasks` does, whose search this is, and what `hash_code` does for
    the key. For a salt behind more fields, see `template` there.

    >>> [salted_key("page", subtask, 128, 4) for subtask in range(4)]
    ['page#0', 'page#2', 'page#1', 'page#18']
    >>> from keygroups.types import INT, STRING, TUPLE
    >>> salted_key("page", 3, 128, 4, TUPLE(STRING, INT))
    ('page', 1)

    As many salts as subtasks, counted from 0, do not reach all of these: 'page#0' to 'page#7' go
    to six of eight, and subtasks 6 and 7 stay empty.

    >>> from keygroups import assign_key_to_parallel_operator
    >>> salted = [f"page#{salt}" for salt in range(8)]
    >>> [assign_key_to_parallel_operator(key, 128, 8) for key in salted]
    [0, 4, 3, 1, 5, 2, 2, 1]
    >>> [salted_key("page", subtask, 128, 8) for subtask in (6, 7)]
    ['page#18', 'page#21']
    """
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    subtask = check_int("subtask", subtask, 0, parallelism - 1)
    shape = _without_pyflink(key_type)
    candidates: Iterator[Any]
    if shape is types.STRING:
        text = expect("STRING", key, str, "a str")
        candidates = _candidates(types.STRING, text + check_str("separator", separator), None, 0)
    elif isinstance(shape, _Compound) and len(shape.fields) == 2:
        candidates = ((key, salt) for salt in _field(shape, 1, "", 0))
    else:
        raise InvalidTypeError(
            "key_type of a salted key must be STRING or have two fields, the key and the salt, "
            f"got {show(key_type)}"
        )
    return _find(candidates, [subtask], max_parallelism, parallelism, key_type, 1)[subtask][0]


def _find(
    candidates: Iterator[Any],
    wanted: Sequence[int],
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType,
    n: int,
    meter: Meter | None = None,
) -> list[list[Any]]:
    """Return at most n candidates of each subtask, and the first n of each wanted one."""
    per_subtask: list[list[Any]] = [[] for _ in range(parallelism)]
    missing = len(wanted) * n
    # After so many keys the smallest subtask can expect 2n + 50 of them. By the Poisson
    # distribution the chance that one of 32768 gets fewer than n is below 10^-14 for any n.
    limit = -(-(2 * n + 50) * max_parallelism // (max_parallelism // parallelism))
    # Locals are faster than globals on this hot path.
    hasher, finish, tried = hasher_of(key_type), finalise, 0
    for tried, key in enumerate(islice(candidates, limit), 1):  # noqa: B007  # The error has it.
        subtask = finish(hasher(key)) % max_parallelism * parallelism // max_parallelism
        keys = per_subtask[subtask]
        if len(keys) < n:
            keys.append(key)
            missing -= subtask in wanted
            if meter is not None:
                meter.add(1)
            if not missing:
                return per_subtask
    short = [subtask for subtask in wanted if len(per_subtask[subtask]) < n]
    raise InvalidValueError(
        f"{'all' if tried < limit else 'the first'} {tried} keys of type {key_type!r} were tried: "
        f"{len(short)} subtasks got fewer than n = {n} of them, subtask {short[0]} first "
        f"(max_parallelism {max_parallelism}, parallelism {parallelism})"
    )


def _candidates(
    key_type: KeyType, prefix: str, template: tuple[object, ...] | None, start: int
) -> Iterator[Any]:
    """Return an iterator over the keys of a type, in the order of the module's docstring."""
    check_str("prefix", prefix)
    key_type = _without_pyflink(key_type)
    if isinstance(key_type, _Compound):
        return _tuples(key_type, prefix, template, start)
    if template is not None:
        raise InvalidTypeError(
            f"template must be left out for a key_type without fields, got {show(template)} "
            f"for {show(key_type)}"
        )
    if key_type is types.STRING:
        first = check_int("start", start, 0, LONG_MAX)
        return (f"{prefix}{number}" for number in count(first))
    if not isinstance(key_type, types.ScalarType) or key_type not in _COUNTED:
        raise InvalidTypeError(
            "key_type must be an integer type, STRING, BOOLEAN or made of these; a field of "
            f"another type takes a value from template; got {show(key_type)}"
        )
    if prefix:
        raise InvalidValueError(
            f"prefix must be '' where no STRING is counted, got {show(prefix)} for {key_type!r}"
        )
    first = check_int("start", start, 0, _COUNTED[key_type])
    if key_type is types.BOOLEAN:
        return iter((False, True)[first:])
    if key_type in (types.BIG_INT, types.SCALA_BIG_INT):
        return count(first)
    return _integers(first, _COUNTED[key_type])


def _tuples(
    key_type: _Compound, prefix: str, template: tuple[object, ...] | None, start: int
) -> Iterator[tuple[Any, ...]]:
    arity = len(key_type.fields)
    values = (...,) * arity if template is None else template
    values = check_class("template", values, tuple, "a tuple")
    if len(values) != arity:
        raise InvalidValueError(
            f"template must have the {arity} fields of {key_type!r}, got {show(template)}"
        )
    free = [index for index, value in enumerate(values) if value is ...]
    if not free:
        raise InvalidValueError(
            f"template must leave a field of {key_type!r} free with ..., got {show(template)}"
        )
    runs, *others = free
    filled = list(values)
    for index in others:
        filled[index] = next(_field(key_type, index, "", 0))
    head, tail = filled[:runs], filled[runs + 1 :]
    return ((*head, value, *tail) for value in _field(key_type, runs, prefix, start))


def _field(key_type: _Compound, index: int, prefix: str, start: int) -> Iterator[Any]:
    field = key_type.fields[index]
    try:
        if isinstance(field, LogicalType):
            return _sql_values(field, prefix, start)
        return _candidates(field, prefix, None, start)
    except KeyGroupsError as error:
        raise type(error)(f"field {index} of {key_type!r}: {error}") from None


def _sql_values(logical_type: LogicalType, prefix: str, start: int) -> Iterator[Any]:
    if logical_type.name == "VARCHAR":
        length = logical_type.length or 0
        texts = _candidates(types.STRING, prefix, None, start)
        return takewhile(lambda text: len(text) <= length, texts)
    if logical_type.name not in _SQL_COUNTED:
        raise InvalidTypeError(
            "only integers, BOOLEAN, VARCHAR and STRING are counted through; a field of another "
            f"type takes a value from template; got {logical_type}"
        )
    return _candidates(_SQL_COUNTED[logical_type.name], prefix, None, start)


def _without_pyflink(key_type: KeyType) -> KeyType:
    return key_type.element if isinstance(key_type, types.PYFLINK) else key_type


def _integers(first: int, highest: int) -> Iterator[int]:
    # The highest number is apart, as a range whose end exceeds C's long is slow.
    return chain(range(first, highest), (highest,), range(-1, -highest - 2, -1))


_COUNTED: dict[KeyType, int] = {
    types.BOOLEAN: 1,
    types.BYTE: 127,
    types.SHORT: 32767,
    types.INT: INT_MAX,
    types.LONG: LONG_MAX,
    types.BIG_INT: LONG_MAX,
    types.SCALA_BIG_INT: LONG_MAX,
    types.HASHED: INT_MAX,
}
"""Key types whose values are counted through, with the highest number to start at."""
_SQL_COUNTED = {
    "BOOLEAN": types.BOOLEAN,
    "TINYINT": types.BYTE,
    "SMALLINT": types.SHORT,
    "INT": types.INT,
    "BIGINT": types.LONG,
}
