"""The standard streams and the signals of the command."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, TypeVar

from keygroups._checks import exact_repr, has_digits, show
from keygroups.cli._progress import LINE
from keygroups.errors import InvalidValueError, KeyGroupsError, printable

T = TypeVar("T")

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_LONGEST_LINE = 1 << 24  # characters of a key in standard input, whose lines may be endless


class OutputError(Exception):
    """Standard output takes no more."""


def print_lines(lines: Iterable[str]) -> None:
    """Print lines to standard output, or raise OutputError, before the first if it is closed."""
    if sys.stdout is None:
        raise OutputError("is closed")
    _reconfigure(sys.stdout, "backslashreplace")  # The terminal may lack some characters.
    for line in chain(lines, [None]):
        try:
            LINE.clear()
            if line is None:
                sys.stdout.flush()
            else:
                print(line)
        except OSError as error:
            raise OutputError(f"cannot be written: {error.strerror}") from error


def key_data(key: Any) -> str | int:
    """Return the JSON of a key: text and ints as such, any other as its repr."""
    if isinstance(key, str) or (isinstance(key, int) and has_digits(key)):
        return key
    return exact_repr(key)


def record_data(record: Any) -> dict[str, Any]:
    """Return the JSON of a named tuple of a connector: constants by name, bytes as hexadecimal."""
    return {name: value_data(value) for name, value in record._asdict().items()}


def value_data(value: Any) -> Any:
    """Return the JSON of what such a record holds; a value of another class is its repr."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): value_data(held) for key, held in value.items()}
    if hasattr(value, "_asdict"):
        return record_data(value)
    if isinstance(value, tuple | list):
        return [*map(value_data, value)]
    return value if value is None or isinstance(value, str | int | float) else exact_repr(value)


def json_line(value: Any) -> str:
    """Return a value as JSON."""
    import json  # Only --json needs the module.

    return json.dumps(value)


def complain(line: str) -> None:
    """Print a line to standard error, if it is there."""
    if sys.stderr is not None:  # For None print would take standard output.
        LINE.clear()
        try:
            print(printable(line), file=sys.stderr, flush=True)
        except OSError:
            discard(sys.stderr)


def discard(stream: Any) -> None:
    """Send the rest of a stream to the null device, as a flush at the end would raise again."""
    with suppress(OSError, AttributeError):
        number = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def lines_of(path: str) -> Iterator[str]:
    """Yield the lines of a file in UTF-8, "-" for standard input."""
    if path == "-":
        if sys.stdin is None:
            raise InvalidValueError("key - is read from standard input, which is closed")
        _reconfigure(sys.stdin, "surrogateescape")  # `check_text` refuses such surrogates.
        yield from _lines("standard input", sys.stdin)
        return
    with ExitStack() as opened:
        try:
            file = opened.enter_context(Path(path).open(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:  # ValueError is for a path with NUL.
            raise _unreadable(f"the file {show(path)}", error) from None
        yield from _lines(f"the file {show(path)}", file)


def _lines(name: str, stream: TextIO) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(_LONGEST_LINE + 1)
        except (OSError, ValueError) as error:  # ValueError is for bytes that are no text.
            raise _unreadable(name, error) from None
        if len(line) > _LONGEST_LINE:
            raise InvalidValueError(f"line {number}: it has more than {_LONGEST_LINE} characters")
        if not line:
            return
        yield line.removesuffix("\n")


def _unreadable(name: str, error: Exception) -> InvalidValueError:
    return InvalidValueError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}")


def of_each_line(lines: Iterable[str], function: Callable[[str], T]) -> Iterator[tuple[str, T]]:
    """Yield each line and the function's result for it; errors get the number of the line."""
    for number, line in enumerate(lines, 1):
        try:
            result = function(line)
        except KeyGroupsError as error:
            raise type(error)(f"line {number}: {error}") from None
        yield line, result


def _reconfigure(stream: object, errors: str) -> None:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=errors)


class Stopped(KeyboardInterrupt):
    """A signal that ends the command, after its unfinished output is removed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def catch_signals(handlers: dict[int, Any]) -> None:
    """Let the signals raise Stopped, and put their former handlers into `handlers`.

    Signals that are ignored, as under nohup, or that the caller handles stay as they are. So do
    all outside of the main thread, which alone may set handlers.
    """
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if handler in (signal.SIG_DFL, signal.default_int_handler):
            with suppress(ValueError):
                signal.signal(number, _stop)
                handlers[number] = handler


def _stop(number: int, frame: object) -> None:
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, Stopped):  # The first signal's cleanup is under way.
            return
        error = error.__context__
    raise Stopped(number)
