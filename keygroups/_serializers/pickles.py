"""A reader of Python's pickles that knows values alone, and runs nothing.

It reads the opcodes of protocols 4 and 5 that Python's pickler writes for None, bools, numbers,
texts, bytes, lists, tuples, dicts, sets, Decimals, dates and times, and PyFlink's rows. A pickle
with anything else in it is a ForeignPickleError: no name in it is looked up or called.

At first it makes nodes, one an opcode at most. What refers to others by the memo may be the same
node many times, so that values are made of them after that, within bounds of depth and number.
"""

from __future__ import annotations

import datetime as dt
import pickle
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from keygroups._checks import MAX_DEPTH, show
from keygroups._serializers.collections import as_dict, as_set
from keygroups._serializers.data_input import check_repeated
from keygroups._values.rows import Row, row_of_kind

_MOST_INT = 1_024  # bytes of an int, which has fewer digits than Python refuses to show
_REPEATED = 16  # times as many values as bytes that the memo may make of them
_FREE = 64  # values that any pickle may have

_f64 = struct.Struct(">d").unpack_from


class ForeignPickleError(ValueError):
    """A pickle of other than values, or of too many of them for its bytes."""


class _Node:
    """A value that is not made yet: what makes it of its `items`, more of which may follow."""

    __slots__ = ("items", "make")

    def __init__(self, make: Callable[[list[Any]], Any], items: list[Any]) -> None:
        self.make = make
        self.items = items


class _Global(NamedTuple):
    """The name of a function or class in a pickle."""

    module: Any
    name: Any


_MARK = object()


def read_pickle(data: bytes) -> Any:
    """Return the value that bytes are a pickle of.

    Raises ForeignPickleError, also where they are no pickle.
    """
    try:
        node = _Machine(data).run()
        return _Values(len(data)).value(node, 0)
    except ForeignPickleError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise ForeignPickleError(f"no pickle of values: {error}") from None
    except InvalidOperation:
        raise ForeignPickleError("no text of a Decimal") from None


class _Values:
    """Makes values of the nodes of a pickle of some bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = _FREE + _REPEATED * size
        self._written = 0

    def value(self, node: Any, depth: int) -> Any:
        """Return the value of a node in others, so many around it."""
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            raise ForeignPickleError("values too deep in one another, or too often in others")
        if isinstance(node, _Node):
            return node.make([self.value(item, depth + 1) for item in node.items])
        if isinstance(node, (str, bytes)):
            self._written += len(node)
            check_repeated(self._written, self._size)
        if isinstance(node, _Global) or node is _MARK:
            raise ForeignPickleError("a name that nothing calls")
        return node


class _Machine:
    """The stack and the memo of a pickle, and what its opcodes do."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0
        self._stack: list[Any] = []
        self._memo: list[Any] = []

    def run(self) -> Any:
        """Do all opcodes up to the last, and return what they made."""
        while True:
            opcode = self._take(1)
            if opcode == pickle.STOP:
                break
            do = _OPCODES.get(opcode)
            if do is None:
                raise ForeignPickleError(f"opcode {opcode!r} is not known")
            do(self)
        if self._pos != len(self._data) or len(self._stack) != 1:
            raise ForeignPickleError("a pickle that ends elsewhere")
        return self._stack.pop()

    def _take(self, size: int) -> bytes:
        start = self._pos
        self._pos = start + size
        if self._pos > len(self._data):
            raise ForeignPickleError("a pickle that is cut off")
        return self._data[start : self._pos]

    def _number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self._stack.append(value)

    def skip(self, size: int) -> None:
        """Pass over the argument of an opcode that makes nothing."""
        self._take(size)

    def integer(self, size: int, signed: bool) -> None:
        """Put an int of a fixed size on the stack."""
        self.push(self._number(size, signed))

    def long(self, size: int) -> None:
        """Put an int behind its size on the stack."""
        count = self._number(size)
        if count > _MOST_INT:
            raise ForeignPickleError(f"an int of {count:,} bytes")
        self.push(self._number(count, signed=True))

    def floating(self) -> None:
        """Put a float on the stack."""
        self.push(_f64(self._take(8))[0])

    def text(self, size: int) -> None:
        """Put a str behind its size on the stack."""
        self.push(self._take(self._number(size)).decode("utf-8", "surrogatepass"))

    def binary(self, size: int) -> None:
        """Put bytes behind their size on the stack."""
        self.push(self._take(self._number(size)))

    def empty(self, make: Callable[[list[Any]], Any]) -> None:
        """Put an empty container on the stack."""
        self.push(_Node(make, []))

    def last(self, make: Callable[[list[Any]], Any], count: int | None) -> None:
        """Make a container of the last values, those behind the mark if `count` is None."""
        items = self._since_mark() if count is None else [self._pop() for _ in range(count)][::-1]
        self.push(_Node(make, items))

    def extend(self, count: int | None) -> None:
        """Add the last values to the container before them."""
        items = self._since_mark() if count is None else [self._pop() for _ in range(count)][::-1]
        container = self._stack[-1]
        if not isinstance(container, _Node) or container.make not in _GROWING:
            raise ForeignPickleError("items of no container")
        container.items += items

    def memoize(self) -> None:
        """Keep the last value under the next number."""
        self._memo.append(self._stack[-1])

    def recall(self, size: int) -> None:
        """Put what has a number on the stack."""
        self.push(self._memo[self._number(size)])

    def name(self) -> None:
        """Put the name of a function or class on the stack, its module first."""
        name, module = self._pop(), self._pop()
        self.push(_Global(module, name))

    def call(self) -> None:
        """Make a value of a name and its arguments, if both are known."""
        arguments, function = self._pop(), self._pop()
        make = _CALLS.get(function) if isinstance(function, _Global) else None
        if make is None or not isinstance(arguments, _Node):
            raise ForeignPickleError(f"{show(function)} is not known")
        if arguments.make is not tuple:
            raise ForeignPickleError("arguments that are no tuple")
        self.push(_Node(make, arguments.items))

    def _pop(self) -> Any:
        return self._stack.pop()

    def _since_mark(self) -> list[Any]:
        items = []
        while (item := self._stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]


def _dict(items: list[Any]) -> Any:
    return as_dict([*zip(items[::2], items[1::2], strict=True)])


def _frozenset(items: list[Any]) -> Any:
    made = as_set(items)
    return frozenset(made) if isinstance(made, set) else made


_GROWING = (list, _dict, as_set)


def _of(expected: tuple[type, ...], make: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """Return a maker that takes arguments of some classes, the last of which may be missing."""

    def made(items: list[Any]) -> Any:
        if [type(item) for item in items] != [*expected[: len(items)]]:
            raise ForeignPickleError("arguments of other classes")
        return make(*items)

    return made


def _row(items: list[Any]) -> Row:
    """Return a Row of what PyFlink calls `_create_row` with: names, values and a RowKind."""
    names, values, kind = items
    if type(values) not in (list, tuple) or type(kind) is not _RowKind:
        raise ForeignPickleError("a row of other than values and a kind")
    row = row_of_kind(values, kind.number)
    return row if names is None else row.named(names)


class _RowKind(NamedTuple):
    number: int


def _row_kind(number: int) -> _RowKind:
    if not 0 <= number <= 3:
        raise ForeignPickleError(f"row kind {number}")
    return _RowKind(number)


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if number.is_nan() and "n" not in text.lower():  # The caller's context may trap nothing.
        raise ForeignPickleError("no text of a Decimal")
    return number


def _checked(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a maker of dates or times of their state, all of which `replace` checks."""
    return lambda *state: make(*state).replace()


_CALLS: dict[_Global, Callable[[list[Any]], Any]] = {
    _Global("decimal", "Decimal"): _of((str,), _decimal),
    _Global("datetime", "date"): _of((bytes,), _checked(dt.date)),
    _Global("datetime", "time"): _of((bytes, dt.timezone), _checked(dt.time)),
    _Global("datetime", "datetime"): _of((bytes, dt.timezone), _checked(dt.datetime)),
    _Global("datetime", "timedelta"): _of((int, int, int), dt.timedelta),
    _Global("datetime", "timezone"): _of((dt.timedelta, str), dt.timezone),
    _Global("pyflink.common.types", "_create_row"): _row,
    _Global("pyflink.common.types", "RowKind"): _of((int,), _row_kind),
}
"""What pickles call, by its name, and what makes the value here."""

_Do = Callable[[_Machine], None]
_OPCODES: dict[bytes, _Do] = {
    pickle.PROTO: lambda machine: machine.skip(1),
    pickle.FRAME: lambda machine: machine.skip(8),
    pickle.MARK: lambda machine: machine.push(_MARK),
    pickle.NONE: lambda machine: machine.push(None),
    pickle.NEWTRUE: lambda machine: machine.push(True),
    pickle.NEWFALSE: lambda machine: machine.push(False),
    pickle.BININT: lambda machine: machine.integer(4, signed=True),
    pickle.BININT1: lambda machine: machine.integer(1, signed=False),
    pickle.BININT2: lambda machine: machine.integer(2, signed=False),
    pickle.LONG1: lambda machine: machine.long(1),
    pickle.LONG4: lambda machine: machine.long(4),
    pickle.BINFLOAT: _Machine.floating,
    pickle.SHORT_BINUNICODE: lambda machine: machine.text(1),
    pickle.BINUNICODE: lambda machine: machine.text(4),
    pickle.BINUNICODE8: lambda machine: machine.text(8),
    pickle.SHORT_BINBYTES: lambda machine: machine.binary(1),
    pickle.BINBYTES: lambda machine: machine.binary(4),
    pickle.BINBYTES8: lambda machine: machine.binary(8),
    pickle.EMPTY_LIST: lambda machine: machine.empty(list),
    pickle.EMPTY_TUPLE: lambda machine: machine.empty(tuple),
    pickle.EMPTY_DICT: lambda machine: machine.empty(_dict),
    pickle.EMPTY_SET: lambda machine: machine.empty(as_set),
    pickle.TUPLE: lambda machine: machine.last(tuple, None),
    pickle.TUPLE1: lambda machine: machine.last(tuple, 1),
    pickle.TUPLE2: lambda machine: machine.last(tuple, 2),
    pickle.TUPLE3: lambda machine: machine.last(tuple, 3),
    pickle.FROZENSET: lambda machine: machine.last(_frozenset, None),
    pickle.APPEND: lambda machine: machine.extend(1),
    pickle.APPENDS: lambda machine: machine.extend(None),
    pickle.SETITEM: lambda machine: machine.extend(2),
    pickle.SETITEMS: lambda machine: machine.extend(None),
    pickle.ADDITEMS: lambda machine: machine.extend(None),
    pickle.MEMOIZE: _Machine.memoize,
    pickle.BINGET: lambda machine: machine.recall(1),
    pickle.LONG_BINGET: lambda machine: machine.recall(4),
    pickle.STACK_GLOBAL: _Machine.name,
    pickle.REDUCE: _Machine.call,
}
"""What each opcode does that Python's picklers write for values."""
