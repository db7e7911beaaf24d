"""The checks of arguments and keys, and the words in which they refuse them.

Each returns what it checked, or raises with the name of the argument or key type, the value and
the bound.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from reprlib import Repr
from typing import Any, ParamSpec, TypeVar

from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    ParallelismTypeError,
    printable,
)

P = ParamSpec("P")
T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
UPPER_BOUND_MAX_PARALLELISM = 32768
"""The largest max parallelism of a Flink job: 2^15; the last key group is one less."""

MAX_DEPTH = 50
"""The deepest nesting of a key type, which keeps a key within Python's own call stack."""
_LONGEST = 120  # characters of a value in a message


def exact_repr(value: object) -> str:
    """Return the whole repr of a value that was read; two values with one repr are equal.

    An int of more digits than Python prints is hexadecimal in it, however deep it is nested.
    """
    try:
        return repr(value)
    except ValueError:
        return _nested_repr(value)


def _nested_repr(value: Any) -> str:
    """Return the repr of a value for which Python raises, since an int in it is too long."""
    cls = type(value)
    if cls is int:
        return hex(value)
    if cls is dict:
        items = (f"{exact_repr(key)}: {exact_repr(held)}" for key, held in value.items())
        return f"{{{', '.join(items)}}}"
    if is_dataclass(cls) or hasattr(cls, "_fields"):
        return record_repr(value)
    if cls not in _BRACKETS:
        return object.__repr__(value)
    start, end = _BRACKETS[cls]
    comma = "," if cls is tuple and len(value) == 1 else ""
    return f"{start}{', '.join(map(exact_repr, value))}{comma}{end}"


_BRACKETS: dict[type, Sequence[str]] = {
    tuple: "()",
    list: "[]",
    set: "{}",
    frozenset: ("frozenset({", "})"),
}


def record_repr(record: Any) -> str:
    """Return the repr of a dataclass or a NamedTuple as Python writes it, with `exact_repr`.

    It is the `__repr__` of public classes with a key or a value that was read.
    """
    names = getattr(record, "_fields", None)
    if names is None:
        names = [field.name for field in fields(record) if field.repr]
    members = (f"{name}={exact_repr(getattr(record, name))}" for name in names)
    return f"{type(record).__qualname__}({', '.join(members)})"


def has_digits(number: int) -> bool:
    """Return whether Python prints an int: by default one of up to 4300 digits."""
    try:
        repr(number)
    except ValueError:
        return False
    return True


class ShortRepr(Repr):
    """A repr of a size that a message has room for, however deep or long the value is.

    `longest` bounds each text in it, in characters.
    """

    def __init__(self, longest: int) -> None:
        super().__init__()
        self.maxlevel = 5
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = 10
        self.maxstring = self.maxother = longest

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if has_digits(x) else f"{hex(x)[: self.maxlong]}..."

    def repr_instance(self, x: Any, level: int) -> str:
        text = exact_repr(x)
        return text if len(text) <= self.maxother else f"{text[: self.maxother]}..."


_short = ShortRepr(_LONGEST)


def show(value: object) -> str:
    """Return the repr of a value, short enough for a message; raises nothing."""
    cls = type(value).__name__
    if isinstance(value, int) and value.bit_length() > 4 * _LONGEST:
        return f"{cls} too long to print"  # Python refuses ints of more than 4300 digits.
    try:
        text = _short.repr(value)
    except Exception:  # The `__repr__` of a foreign class may raise anything.
        return f"{cls} that cannot be printed"
    text = printable(" ".join(text.splitlines()))  # A message is one line.
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def from_numpy(value: object, scalar: str) -> object:
    """Return the Python value of a NumPy scalar of the class `scalar`, any other as it is.

    NumPy is not imported for that: before it is, there are no such scalars.
    """
    cls = getattr(sys.modules.get("numpy"), scalar, None)
    if isinstance(cls, type) and isinstance(value, cls):
        return value.item()  # type: ignore[attr-defined]  # Every NumPy scalar has `item`.
    return value


def to_int(name: str, value: Any, error: type[InvalidTypeError] = InvalidTypeError) -> int:
    """Return `value` as an int, or raise `error` with `name` and value.

    Any object with `__index__` is an int (NumPy's integers are), except bools and enums.
    """
    if not isinstance(from_numpy(value, "bool_"), (bool, Enum)):
        try:
            number = operator.index(value)  # Its TypeError is the check.
        except TypeError:
            pass
        else:
            return int.__index__(number)  # A plain int: a subclass may have methods of its own.
    raise error(f"{name} must be an int, got {show(value)} of class {type(value).__name__}")


def to_number(name: str, value: Any) -> float:
    """Return `value` as an int or a float, or raise with `name` and value."""
    number = from_numpy(value, "floating")
    if isinstance(number, float):
        return float.__float__(number)  # A plain float: a subclass may have its own methods.
    try:
        return to_int(name, number)
    except InvalidTypeError:
        raise InvalidTypeError(f"{name} must be a number, got {show(value)}") from None


def check_amount(name: str, index: int, value: Any) -> float:
    """Return a finite number >= 0, an int or a float, or raise with `name` and `index`.

    A `name` such as "weight of key group" has a number at each index.
    """
    number = from_numpy(value, "floating")
    if not isinstance(number, float):
        try:
            number = to_int(name, number)
        except InvalidTypeError:
            raise InvalidTypeError(f"{name} {index} must be a number, got {show(value)}") from None
    if not 0 <= number < math.inf:
        raise InvalidValueError(f"{name} {index} must be a finite number >= 0, got {show(value)}")
    return number


def check_int(name: str, value: object, low: int, high: int) -> int:
    """Return `value` as an int of `low..high`, or raise with `name`, value and bounds."""
    number = to_int(name, value)
    if not low <= number <= high:
        raise InvalidValueError(f"{name} must be from {low} to {high}, got {show(number)}")
    return number


def check_str(name: str, value: object, description: str = "a str") -> str:
    """Return a str, a plain one where it is of a subclass, or raise with `name`."""
    if not isinstance(value, str):
        raise InvalidTypeError(
            f"{name} must be {description}, got {show(value)} of class {type(value).__name__}"
        )
    return str.__str__(value)


def check_class(name: str, value: object, cls: type[T], description: str) -> T:
    """Return an instance of a class, which is `description` in words, or raise with `name`."""
    if not isinstance(value, cls):
        raise InvalidTypeError(f"{name} must be {description}, got {show(value)}")
    return value


def iterate(name: str, elements: str, values: Iterable[T] | None) -> Iterator[T]:
    """Return an iterator over some values, which text never is, or raise with `name`."""
    if values is not None and not isinstance(values, (str, bytes)):
        try:
            return iter(values)
        except TypeError:  # A NumPy array without a dimension has `__iter__`, which raises.
            pass
    raise InvalidTypeError(f"{name} must be an iterable of {elements}, got {show(values)}")


def check_callable(name: str, value: Callable[P, T]) -> Callable[P, T]:
    """Return a function, or whatever else can be called; or raise with `name`."""
    if not callable(value):
        raise InvalidTypeError(f"{name} must be callable, got {show(value)}")
    return value


def check_choice(name: str, value: object, choices: Sequence[Choice]) -> Choice:
    """Return the choice that a str equals, or raise with `name` and all choices."""
    # Only a str is compared: any other object may have an `__eq__` of its own.
    if not isinstance(value, str) or value not in choices:
        raise InvalidValueError(f"{name} must be one of {', '.join(choices)}, got {show(value)}")
    return choices[choices.index(value)]


def null_key(name: str = "key", rows: int | None = None) -> str:
    """Return the message that refuses a null key, with the number of such rows if counted."""
    got = "" if rows is None else f", got {rows} such rows"
    return (
        f"{name} must not be null{got}, which Flink refuses: pass nulls='drop' to leave out the "
        "rows with one"
    )


def check_null_keys(null_keys: int, drop: bool) -> None:
    """Raise InvalidValueError for null keys, unless they are dropped."""
    if null_keys and not drop:
        raise InvalidValueError(null_key(rows=null_keys))


def check_states(states: Iterable[str], described: Iterable[str], whose: str) -> frozenset[str]:
    """Return the names as a set; InvalidValueError for one that is not among `described`.

    `whose` is the operator in the error.
    """
    known = dict.fromkeys(described)  # a set in the order of the states
    names = set()
    for count, name in enumerate(iterate("states", "names", states)):
        names.add(check_str("state", name))
        if name not in known:
            raise InvalidValueError(
                f"states must be of {whose}, which has {', '.join(known) or 'none'}, "
                f"got {show(name)}"
            )
        if count == len(known):
            raise InvalidValueError(
                f"states must be at most {len(known)} names, all that {whose} has, got more"
            )
    return frozenset(names)


def did_you_mean(word: str, names: Iterable[str], of_others: Mapping[str, str]) -> str:
    """Return the end of a message that refuses a word, ": did you mean X?", "" without a guess.

    `names` are the allowed ones; `of_others` maps names of other systems to allowed ones.
    """
    from difflib import get_close_matches  # Only a mistake needs the module.

    name = word.upper() if word.isascii() else ""
    if name in of_others:
        likely = of_others[name]
    else:
        likely = "".join(get_close_matches(name[:_LONGEST], names, n=1, cutoff=0.65))
    return f": did you mean {likely}?" if likely else ""


# --- parallelism ------------------------------------------------------------------------


def check_max_parallelism(max_parallelism: object) -> int:
    """Return a max parallelism of 1..32768 as an int, or raise ParallelismError."""
    return check_bounds("max_parallelism", max_parallelism)


def check_parallelism(parallelism: object, max_parallelism: int) -> int:
    """Return a parallelism of 1..max_parallelism as an int, or raise ParallelismError."""
    return check_bounds("parallelism", parallelism, max_parallelism, "max_parallelism")


def check_bounds(
    name: str,
    value: object,
    high: int = UPPER_BOUND_MAX_PARALLELISM,
    bound: str = "Flink's upper bound",
    way_out: str = "",
) -> int:
    """Return a parallelism of 1..high as an int, or raise with its name and the bound's.

    `way_out` is the advice for one that is too high.
    """
    number = to_int(name, value, ParallelismTypeError)
    if not 1 <= number <= high:
        advice = f": {way_out}" if number > high and way_out else ""
        raise ParallelismError(
            f"{name} must be from 1 to {high} ({bound}), got {show(number)}{advice}"
        )
    return number


def check_parallelisms(max_parallelism: object, parallelism: object) -> tuple[int, int]:
    """Return both as ints, 1 <= parallelism <= max_parallelism <= 32768, or raise."""
    groups = check_max_parallelism(max_parallelism)
    return groups, check_parallelism(parallelism, groups)


# --- keys -------------------------------------------------------------------------------
