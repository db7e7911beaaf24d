"""The progress of work, shown as a line of a terminal or as a bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, TextIO
from unicodedata import combining, east_asian_width

from keygroups._checks import show
from keygroups.errors import InvalidTypeError, printable
from keygroups.progress import Progress, ProgressCallback

_QUIET = 2.0  # seconds of work in which nothing is shown
_LEAST_NAME = 10  # columns of the work's name that stay even if the rest is cut
_CTRL_C = len("^C")  # columns; a terminal writes it after the line
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def checked_progress(progress: ProgressCallback | bool | None) -> ProgressCallback | None:
    """Return the callback of an argument `progress`: for True one that shows a bar or line.

    Raises InvalidTypeError for an argument that is neither a function nor a bool nor None.
    """
    if progress is True:
        return default_progress()
    if progress is False or progress is None:
        return None
    if not callable(progress):
        raise InvalidTypeError(
            f"progress must be a function of a Progress, True or None, got {show(progress)}"
        )
    return progress


def default_progress() -> ProgressCallback:
    """Return a callback that shows bars if tqdm is installed, else a line."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return ProgressLine()
    return _Bars(tqdm)


class _Since:
    """The first report of each piece of work, by name: its time and its `done`."""

    def __init__(self) -> None:
        self._begun: dict[str, tuple[float, int, int]] = {}
        self._busy = self._last = 0.0

    def forget(self) -> None:
        """Forget all pieces of work, of which no report will follow."""
        self._begun.clear()
        self._last = 0.0

    def of(self, progress: Progress) -> tuple[bool, float]:
        """Return whether work has gone on for a while, and the rate of this piece, units a second.

        Pieces of work that follow one another at once are one to the person who waits.
        """
        now = monotonic()
        known = self._begun.get(progress.work)
        if known is None and now - self._last >= _QUIET:
            self._busy = now
        begun, first, last = known or (now, progress.done, 0)
        if progress.done < last:  # Another piece of work has the same name.
            begun, first = now, progress.done
        self._begun[progress.work] = begun, first, progress.done
        if progress.done == progress.total:
            del self._begun[progress.work]
        self._last = now
        rate = (progress.done - first) / (now - begun) if now > begun else 0.0
        return now - self._busy >= _QUIET, rate


class ProgressLine:
    """A callback with a line of standard error, which is written over and removed in the end.

    It shows nothing in the first seconds of work, nor while the process is in the background, nor
    where standard error is no terminal, or one that cannot write over a line.
    """

    def __init__(self) -> None:
        self._since = _Since()
        self._stream: TextIO | None = None  # the stream that has a line now
        self._width = 0  # columns of the line

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a piece of work."""
        is_long, rate = self._since.of(progress)
        if progress.done == progress.total:
            self.clear()
        elif is_long and _is_watched(stream := sys.stderr):
            columns = _columns(stream) - 1 - _CTRL_C
            line = _fitting(progress, rate, columns, stream.encoding)
            width = _width(line)
            widest = max(width, min(self._width, columns))
            # These are set first, as a signal during the write has to find them.
            self._stream, self._width = stream, widest
            self._write(stream, f"\r{line}{' ' * (widest - width)}")
            self._width = width

    def clear(self) -> None:
        """Remove the line, so that other text can be written."""
        if self._stream is not None:
            columns = min(self._width + _CTRL_C, _columns(self._stream) - 1)
            self._write(self._stream, f"\r{' ' * columns}\r")
            self._stream, self._width = None, 0

    def close(self) -> None:
        """Remove the line, and forget unfinished work."""
        self.clear()
        self._since.forget()

    def _write(self, stream: TextIO, text: str) -> None:
        with suppress(OSError, ValueError):  # The terminal may be gone.
            stream.write(text)
            stream.flush()


class _Bars:
    """A callback with a bar of tqdm for each piece of work that takes a while."""

    def __init__(self, tqdm: Callable[..., Any]) -> None:
        self._tqdm = tqdm
        self._since = _Since()
        self._bars: dict[str, Any] = {}

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a piece of work."""
        is_long, _ = self._since.of(progress)
        bar = self._bars.get(progress.work)
        if bar is None:
            if progress.done == progress.total or not is_long:
                return
            bar = self._bars[progress.work] = self._tqdm(
                desc=printable(progress.work),
                total=progress.total,
                initial=progress.done,
                unit="B" if progress.unit == "bytes" else f" {progress.unit}",
                unit_scale=progress.unit == "bytes",
                leave=False,
                disable=None,  # None hides the bar if standard error is no terminal.
            )
        bar.update(progress.done - bar.n)
        if progress.done == progress.total:
            self._bars.pop(progress.work).close()


def _is_watched(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that this process may write over."""
    if stream is None or os.environ.get("TERM") == "dumb":
        return False
    try:
        if not stream.isatty():
            return False
        group = getattr(os, "tcgetpgrp", None)
        return group is None or group(stream.fileno()) == os.getpgrp()
    except (OSError, ValueError):  # A stream may be closed, or have no file.
        return False


def _columns(stream: TextIO) -> int:
    """Return the columns of a stream's terminal; that of standard output may be another."""
    from shutil import get_terminal_size  # shutil is slow to import, and rarely needed.

    with suppress(OSError, ValueError):
        if columns := os.get_terminal_size(stream.fileno()).columns:
            return columns
    return get_terminal_size().columns


def _fitting(progress: Progress, rate: float, columns: int, encoding: str) -> str:
    """Return the line for a piece of work, with its rate in units a second, cut to fit."""
    done, total = progress.done, progress.total
    line = f": {100 * done // total} %, {_amounts(done, total, progress.unit)}"
    if rate > 0:
        plain = f"{rate:,.0f} {progress.unit}"
        line += f", {_size(rate) if progress.unit == 'bytes' else plain}/s"
        line += f", {_time((total - done) / rate)} left"
    # A character that the terminal cannot encode is escaped.
    name = printable(progress.work).encode(encoding, "backslashreplace").decode(encoding)
    room = max(columns - len(line), min(_LEAST_NAME, columns))
    if _width(name) > room:
        name = f"{_cut(name, room - 3)}..."
    return _cut(name + line, columns)


def _width(text: str) -> int:
    return sum(map(_columns_of, text))


def _columns_of(char: str) -> int:
    return 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1


def _cut(text: str, columns: int) -> str:
    for number, char in enumerate(text):
        columns -= _columns_of(char)
        if columns < 0:
            return text[:number]
    return text


def _amounts(done: int, total: int, unit: str) -> str:
    if unit == "bytes":
        return f"{_size(done)} of {_size(total)}"
    return f"{done:,} of {total:,} {unit}"


def _size(count: float) -> str:
    """Return a number of bytes as text, such as "12.3 MB"."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} {_UNITS[0]}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
