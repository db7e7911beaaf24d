"""The line that shows progress on a terminal, read as the terminal shows it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unicodedata import combining, east_asian_width

import pytest
from support.bytes.real_savepoints import point
from support.inside.answers import ProgressLine

from keygroups.cli import main
from keygroups.cli._progress import LINE
from keygroups.cli._streams import print_lines
from keygroups.errors import SavepointError
from keygroups.progress import Progress

pty = pytest.importorskip("pty")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

SAVEPOINT = point("2.3.0-heap-canonical").path


class Stream(io.TextIOWrapper):
    """Writes to a terminal, which is read at once, as one that nobody reads takes no more."""

    def __init__(self, number: int, read: Callable[[], object]) -> None:
        raw = io.FileIO(number, "w")
        super().__init__(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace")
        self._read = read

    def write(self, text: str) -> int:
        count = super().write(text)
        self.flush()
        self._read()
        return count


class Terminal:
    """A terminal of so many columns; `stream` writes to it."""

    def __init__(self, columns: int) -> None:
        self.master, slave = pty.openpty()
        self.resize(columns)
        os.set_blocking(self.master, False)
        self.written = ""
        self.stream = Stream(slave, self.read)

    def resize(self, columns: int) -> None:
        """Make it so many columns wide."""
        self.columns = columns
        size = (24).to_bytes(2, sys.byteorder) + columns.to_bytes(2, sys.byteorder) + bytes(4)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def close(self) -> None:
        self.stream.close()
        os.close(self.master)

    def read(self) -> str:
        """Return all that was written to it."""
        data = b""
        try:
            while chunk := os.read(self.master, 1 << 16):
                data += chunk
        except OSError:  # there is no more, or nobody is left who writes
            pass
        self.written += data.decode()
        return self.written

    def rows(self) -> list[str]:
        """Return the line that it shows in the end."""
        rows: list[list[str]] = [[]]
        column = 0
        for char in self.read():
            if char == "\r":
                column = 0
            elif char == "\n":
                rows.append([])
            else:
                assert char.isprintable()
                row = rows[-1]
                if combining(char):
                    row[column - 1] += char
                    continue
                row.extend(" " * (column + 1 - len(row)))
                row[column] = char
                column += 1
                if east_asian_width(char) in "WF":
                    row[column:] = ["", *row[column + 1 :]]
                    column += 1
                assert column < self.columns, "beyond it the line would become two"
        return ["".join(row).rstrip() for row in rows]


class Clock:
    """Seconds that go by when they are told to, or each time that it is looked at."""

    now = 1_000.0
    step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in ("keygroups.progress", "keygroups._show.progress"):
        monkeypatch.setattr(f"{module}.monotonic", found)
    return found


MakeTerminal = Callable[[int], Terminal]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeTerminal]:
    """Return a function that makes a terminal, where standard error goes, in the foreground."""
    made = []

    def make(columns: int) -> Terminal:
        made.append(Terminal(columns))
        monkeypatch.setattr(sys, "stderr", made[-1].stream)
        return made[-1]

    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
    monkeypatch.setenv("TERM", "xterm")
    yield make
    for one in made:
        one.close()


def told(
    line: ProgressLine, clock: Clock, work: str = "read by-user", unit: str = "bytes"
) -> None:
    """Tell of seven seconds of work: 1,500,000 of ten million a second."""
    for second in range(7):
        line(Progress(work, 1_500_000 * second, 10_000_000, unit))
        clock.now += 1


def test_what_it_says(terminal: MakeTerminal, clock: Clock) -> None:
    shown = terminal(80)
    told(ProgressLine(), clock)
    begin, *drawn = shown.read().split("\r")
    assert begin == ""
    assert drawn == [
        # Nothing in the first two seconds, in which most work ends.
        "read by-user: 30 %, 3.0 MB of 10.0 MB, 1.5 MB/s, 0:05 left",
        "read by-user: 45 %, 4.5 MB of 10.0 MB, 1.5 MB/s, 0:04 left",
        "read by-user: 60 %, 6.0 MB of 10.0 MB, 1.5 MB/s, 0:03 left",
        "read by-user: 75 %, 7.5 MB of 10.0 MB, 1.5 MB/s, 0:02 left",
        "read by-user: 90 %, 9.0 MB of 10.0 MB, 1.5 MB/s, 0:01 left",
    ]


def test_it_goes_in_the_end(terminal: MakeTerminal, clock: Clock) -> None:
    shown, line = terminal(80), ProgressLine()
    told(line, clock)
    assert shown.rows() != [""]
    line(Progress("read by-user", 10_000_000, 10_000_000, "bytes"))
    assert shown.rows() == [""]
    assert shown.written.endswith("\r")


@pytest.mark.parametrize(
    ("done", "total", "unit", "says"),
    [
        (500, 4_000, "key groups", "12 %, 500 of 4,000 key groups, 100 key groups/s, 0:35 left"),
        (25, 26, "bytes", "96 %, 25 bytes of 26 bytes, 5 bytes/s, 0:00 left"),
        (5 * 10**12, 10**16, "bytes", "0 %, 5.0 TB of 10.0 PB, 1.0 TB/s, 2:46:35 left"),
        (
            *(5 * 10**18, 10**19, "bytes"),
            "50 %, 5000.0 PB of 10000.0 PB, 1000.0 PB/s, 0:05 left",
        ),
        (0, 10, "keys", "0 %, 0 of 10 keys"),
    ],
)
def test_other_units(
    done: int, total: int, unit: str, says: str, terminal: MakeTerminal, clock: Clock
) -> None:
    shown, line = terminal(120), ProgressLine()
    line(Progress("a", 0, total, unit))
    clock.now += 5
    line(Progress("a", done, total, unit))
    assert shown.rows() == [f"a: {says}"]


def test_a_shorter_line_leaves_nothing_of_a_longer_one(
    terminal: MakeTerminal, clock: Clock
) -> None:
    shown, line = terminal(80), ProgressLine()
    told(line, clock, "write the operator")
    told(line, clock, "read a")
    assert shown.rows() == ["read a: 90 %, 9.0 MB of 10.0 MB, 1.5 MB/s, 0:01 left"]


def test_works_that_take_turns(terminal: MakeTerminal, clock: Clock) -> None:
    """As the operators do whose entries are written one here, one there."""
    shown, line = terminal(80), ProgressLine()
    for second in range(5):
        for work in "ab":
            line(Progress(work, 10 * second, 100, "key groups"))
        clock.now += 1
    assert shown.rows() == ["b: 40 %, 40 of 100 key groups, 10 key groups/s, 0:06 left"]
    line(Progress("b", 0, 100, "key groups"))  # the next one of that name
    clock.now += 4
    line(Progress("b", 4, 100, "key groups"))
    assert shown.rows() == ["b: 4 %, 4 of 100 key groups, 1 key groups/s, 1:36 left"]


def test_no_rate_is_told_before_there_is_one(terminal: MakeTerminal, clock: Clock) -> None:
    """And what is told again goes on."""
    shown, line = terminal(80), ProgressLine()
    line(Progress("a", 0, 100, "keys"))
    clock.now += 5
    line(Progress("a", 50, 100, "keys"))
    line(Progress("b", 20, 100, "keys"))
    assert shown.rows() == ["b: 20 %, 20 of 100 keys"]
    clock.now += 5
    line(Progress("a", 50, 100, "keys"))
    assert shown.rows() == ["a: 50 %, 50 of 100 keys, 5 keys/s, 0:10 left"]


@pytest.mark.parametrize("work", ["read a", "b"])
def test_what_follows_the_end_begins_anew(work: str, terminal: MakeTerminal, clock: Clock) -> None:
    shown, line = terminal(80), ProgressLine()
    told(line, clock, "read a")
    line.close()
    before = len(shown.read())
    line(Progress(work, 9_500_000, 10_000_000, "bytes"))
    clock.now += 1.5
    line(Progress(work, 9_600_000, 10_000_000, "bytes"))
    assert len(shown.read()) == before
    clock.now += 0.5
    line(Progress(work, 9_700_000, 10_000_000, "bytes"))
    says = f"{work}: 97 %, 9.7 MB of 10.0 MB, 100.0 kB/s, 0:03 left"
    assert shown.read()[before:] == f"\r{says}"


def test_a_line_is_shown_at_once(
    terminal: MakeTerminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where standard error holds what has no end of a line."""
    shown = terminal(80)
    raw = io.FileIO(os.dup(shown.stream.fileno()), "w")
    with io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8") as held:
        monkeypatch.setattr(sys, "stderr", held)
        told(ProgressLine(), clock)
        assert "90 %" in shown.read()


def test_many_short_works_are_a_long_one(terminal: MakeTerminal, clock: Clock) -> None:
    """As those on the operators of a savepoint, of which none takes two seconds."""
    shown, line = terminal(80), ProgressLine()
    for number in range(5):
        for done in (20, 80, 100):
            line(Progress(str(number), done, 100, "keys"))
            clock.now += 0.3
    assert "0: " not in shown.read()
    assert "3: 80 %, 80 of 100 keys, 200 keys/s, 0:00 left" in shown.written
    assert shown.rows() == [""]
    clock.now += 60  # in which there is none
    before = shown.written
    line(Progress("a", 20, 100, "keys"))
    clock.now += 1
    line(Progress("a", 80, 100, "keys"))
    assert shown.read() == before


@pytest.mark.parametrize(("pause", "is_shown"), [(1.75, True), (2.0, False)])
def test_a_pause_of_two_seconds_ends_what_seems_one_work(
    pause: float, is_shown: bool, terminal: MakeTerminal, clock: Clock
) -> None:
    shown, line = terminal(80), ProgressLine()
    line(Progress("a", 0, 100, "keys"))
    clock.now += 1
    line(Progress("a", 100, 100, "keys"))
    clock.now += pause
    line(Progress("b", 20, 100, "keys"))
    assert bool(shown.read()) == is_shown


def test_a_terminal_that_gets_narrower(terminal: MakeTerminal, clock: Clock) -> None:
    """Blanks beyond its end would make a line of their own; what was there it wraps by itself."""
    shown, line = terminal(80), ProgressLine()
    told(line, clock, "write what has a long name")
    before = len(shown.read())
    shown.resize(30)
    told(line, clock, "read")
    line.clear()
    for segment in shown.read()[before:].split("\r"):
        assert len(segment) < 30


def test_a_line_goes_from_a_terminal_that_got_narrower(
    terminal: MakeTerminal, clock: Clock
) -> None:
    shown, line = terminal(80), ProgressLine()
    told(line, clock, "write what has a long name")
    before = len(shown.read())
    shown.resize(30)
    line.clear()
    assert shown.read()[before:] == f"\r{' ' * 29}\r"


@pytest.mark.parametrize("columns", [*range(1, 12), 40, 41, 60, 300])
@pytest.mark.parametrize(
    "work", ["read \x1b[2J\r\nb", "\u65e5\u672c" * 99, "e\u0301" * 99, "a" * 999]
)
def test_it_fits_whatever_a_name_is(
    work: str, columns: int, terminal: MakeTerminal, clock: Clock
) -> None:
    shown = terminal(columns)
    told(ProgressLine(), clock, work)
    assert "\x1b" not in shown.read()
    assert len(shown.rows()) == 1
    assert ("%" in shown.rows()[0]) == (columns > 20)


@pytest.mark.parametrize(
    ("work", "name"),
    [
        ("a" * 10, "a" * 10),
        ("a" * 11, "a" * 7 + "..."),
        ("e\u0301" * 10, "e\u0301" * 10),
        ("\u65e5" * 5, "\u65e5" * 5),
        ("\u65e5" * 6, "\u65e5" * 3 + "..."),
        ("\uff21" * 6, "\uff21" * 3 + "..."),
    ],
)
def test_a_name_has_ten_columns(
    work: str, name: str, terminal: MakeTerminal, clock: Clock
) -> None:
    """Unicode: a combining character takes none, and one that is wide two."""
    shown = terminal(30)
    told(ProgressLine(), clock, work)
    assert shown.rows()[0].startswith(f"{name}: 90 %")


def test_width_is_that_of_standard_error(
    terminal: MakeTerminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that says none is as wide as others think."""
    shown = terminal(0)
    shown.columns = 30
    monkeypatch.setenv("COLUMNS", "30")
    told(ProgressLine(), clock, "a" * 99)
    assert shown.rows()[0].startswith("aaaaaaa...: 90 %")


def test_a_terminal_without_such_characters(terminal: MakeTerminal, clock: Clock) -> None:
    shown = terminal(80)
    shown.stream.reconfigure(encoding="ascii", errors="backslashreplace")
    told(ProgressLine(), clock, "\u65e5")
    assert shown.rows()[0].startswith("\\u65e5: 90 %")


# --- where nothing is shown -------------------------------------------------------------


def test_no_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = io.StringIO()
    closed = (tmp_path / "closed").open("w")
    closed.close()
    for stream in (text, None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        line = ProgressLine()
        told(line, clock)
        line.close()
    assert text.getvalue() == ""


@pytest.mark.parametrize("why", ["dumb", "background", "no job control"])
def test_terminals_that_get_nothing(
    why: str, terminal: MakeTerminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_ours(_: int) -> int:
        raise OSError(25, "Inappropriate ioctl for device")

    shown = terminal(80)
    if why == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    else:
        group = (lambda _: os.getpgrp() + 1) if why == "background" else not_ours
        monkeypatch.setattr(os, "tcgetpgrp", group)
    told(ProgressLine(), clock)
    assert shown.read() == ""


def test_a_terminal_that_is_gone(
    terminal: MakeTerminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: str) -> int:
        raise OSError(5, "Input/output error")

    shown, line = terminal(80), ProgressLine()
    line(Progress("a", 0, 10, "keys"))
    clock.now += 5
    line(Progress("a", 1, 10, "keys"))
    monkeypatch.setattr(shown.stream, "write", gone)
    line(Progress("a", 2, 10, "keys"))
    line.close()


# --- the command ------------------------------------------------------------------------

WRITES = [
    ("--set-max-parallelism", "64", "--output"),
    ("--delete-keys", "-", "--operator", "by-string", "--output"),
]
EXPORTS = ("--operator", "by-string", "--state", "count", "--export")


def test_the_command_shows_it(
    terminal: MakeTerminal, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the terminal that it prints its answer to, of which nothing is overwritten."""
    clock.step = 1
    arguments = ["savepoint", str(SAVEPOINT), "--set-max-parallelism", "64", "--output"]
    plain, shown = terminal(200), terminal(200)
    for screen, name, more in ((plain, "quiet", ["--quiet"]), (shown, "shown", [])):
        monkeypatch.setattr(sys, "stdout", screen.stream)
        monkeypatch.setattr(sys, "stderr", screen.stream)
        assert main([*arguments, str(tmp_path / name), *more]) == 0
    lines = plain.rows()
    assert len(lines) > 3
    assert "%" not in plain.written
    assert "write session: " in shown.written
    assert shown.rows() == [line.replace("quiet", "shown") for line in lines]


def test_an_answer_stands_alone(
    terminal: MakeTerminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that on an operator whose keys turn out to be unknown, which does not come to its end."""
    shown = terminal(80)
    monkeypatch.setattr(sys, "stdout", shown.stream)
    told(LINE, clock)
    print_lines(["answer"])
    LINE.close()
    assert shown.rows() == ["answer", ""]


def test_an_error_stands_alone(
    terminal: MakeTerminal, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise SavepointError("new/1: cannot be written: No space left on device")

    clock.step = 1
    monkeypatch.setattr(
        "keygroups.savepoint._state.writing.keyed_state_file.KeyedStateFile.finish", full
    )
    shown = terminal(200)
    new = ["--set-max-parallelism", "64", "--output", str(tmp_path / "new")]
    assert main(["savepoint", str(SAVEPOINT), *new]) == 1
    assert "write session: " in shown.read()
    says = "keygroups savepoint: new/1: cannot be written: No space left on device"
    assert shown.rows() == [says, ""]


def test_searching_keys(
    terminal: MakeTerminal, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    clock.step = 1
    shown = terminal(80)
    assert main(["keys", "128", "24"]) == 0
    assert "find keys: 50 %, 12 of 24 keys" in shown.read()
    assert shown.rows() == [""]
    assert capsys.readouterr().out.count("\n") == 24


@pytest.mark.long
def test_a_comparison_shows_it(
    terminal: MakeTerminal, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    clock.step = 1
    shown = terminal(80)
    assert main(["diff", str(SAVEPOINT), str(SAVEPOINT)]) == 0
    assert "compare by-string: " in shown.read()
    assert shown.rows() == [""]
    loud, before = capsys.readouterr().out, shown.written
    assert main(["diff", str(SAVEPOINT), str(SAVEPOINT), "--quiet"]) == 0
    assert capsys.readouterr().out == loud
    assert shown.read() == before


INTERRUPTED = """
import fcntl, signal, sys, termios
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
import keygroups.progress, keygroups._show.progress as shown
from itertools import count
from keygroups.cli import main

keygroups.progress.monotonic = shown.monotonic = count().__next__
write = shown.ProgressLine._write

def wait(line, stream, text):
    write(line, stream, text)
    if "%" in text:
        print("ready", flush=True)
        signal.pause()

shown.ProgressLine._write = wait
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("what", [*WRITES, EXPORTS])
def test_ctrl_c_on_a_terminal(what: tuple[str, ...], tmp_path: Path) -> None:
    """While the line is there and a savepoint, or a table, is half written."""
    shown = Terminal(200)
    arguments = ["savepoint", str(SAVEPOINT), *what, str(tmp_path / "new.csv")]
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=shown.stream,
        start_new_session=True,
        env=os.environ | {"TERM": "xterm"},
    ) as started:
        assert started.stdout is not None
        assert started.stdin is not None
        started.stdin.write(b"a key\n")
        started.stdin.close()
        assert started.stdout.readline() == b"ready\n"
        assert [path.suffix for path in tmp_path.iterdir()] == [".writing"]
        os.write(shown.master, b"\x03")
        assert started.stdout.read() == b""
        assert started.wait() == 130
    assert list(tmp_path.iterdir()) == []
    assert "%" in shown.read()
    assert "^C" in shown.written
    assert shown.rows() == [""]
    shown.close()
