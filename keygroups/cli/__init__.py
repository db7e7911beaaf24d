r"""The command `keygroups`, also `python -m keygroups`: key groups from a shell.

    keygroups trace KEY -m 128 -p 24 [--type LONG]   every step from a key to its subtask
    keygroups plan 128 24 36 [--load FILE]           what a rescale moves, and how much of a load
    keygroups range 128 24 17                        the key groups of subtask 17 of 24
    keygroups default 24                             the max parallelism of a job that sets none
    keygroups keys 128 24 [--type STRING]            a key for each subtask
    keygroups evenness 720                           the parallelisms where all have as much
    keygroups savepoint PATH                         what a savepoint or checkpoint holds
    keygroups savepoint PATH --set-max-parallelism 4096 --output NEW    the same state, moved
    keygroups job URL [JOB_ID]                       what the subtasks of a running job have read

`trace -` reads keys from standard input, one a line, and answers each with a line of subtask, key
group and key, between tabs. What cannot be printed of a key, a name or a path is escaped as Python
does, a tab as \t. With `--json` an answer is one JSON value on one line, for each key of `trace -`
too, with all text as it is; `--help` of a command has its members.

The status is 0, 2 for a wrong argument and 1 where a file, an answer of Flink or standard output
is at fault; then standard error has one line. After SIGINT, SIGTERM or SIGHUP, which leave nothing
of a savepoint that is being written, it is 128 and their number.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn

from keygroups._checks import check_int, check_parallelisms, check_str, show
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError, printable

if TYPE_CHECKING:
    from keygroups.assignment import KeyTrace
    from keygroups.types import KeyType

# Imports that a command alone needs stand in its function: the others start without them.

__all__ = ["main"]
__dir__ = __all__.copy

_FAULT, _WRONG_ARGUMENT = 1, 2
_BROKEN_PIPE = 141  # as a shell has it, of SIGPIPE
_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
_LONGEST_LINE = 1 << 24  # characters of a key in standard input, which may have no end


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its status: 0, 1 or 2.

    `arguments` is a list or tuple of str, None those of the process. Raises InvalidTypeError for
    anything else.

    >>> main(["range", "128", "24", "17"])
    subtask 17 of 24 has 5 of 128 key groups, [91, 95]
    0
    """
    if arguments is not None:
        if not isinstance(arguments, (list, tuple)):
            raise InvalidTypeError(f"arguments must be a list of str, got {show(arguments)}")
        arguments = [check_str("argument", one) for one in arguments]
    handlers: dict[int, Any] = {}
    try:
        _catch_signals(handlers)
        return _run(arguments)
    except KeyboardInterrupt as stop:
        if arguments is None:
            # The process ends, and neither another signal nor a full pipe is to get in its way.
            handlers = dict.fromkeys(handlers, signal.SIG_IGN)
            _discard(sys.stdout)
        return 128 + getattr(stop, "number", signal.SIGINT)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _run(arguments: Sequence[str] | None) -> int:
    _reconfigure(sys.stdout, "backslashreplace")  # whatever the terminal cannot show
    command = "keygroups"
    try:
        options = _parser().parse_args(arguments)
        command = f"keygroups {options.command}"
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _complain(f"{command}: {message}")
            _print(options.run(options))
    except SystemExit as end:  # of --help and of a wrong argument
        return int(end.code or 0)
    except KeyGroupsError as error:
        _complain(f"{command}: {error}")
        wrong = isinstance(error, (InvalidValueError, InvalidTypeError))
        return _WRONG_ARGUMENT if wrong else _FAULT
    except _OutputError as error:
        _discard(sys.stdout)
        if isinstance(error.__cause__, BrokenPipeError):
            return _BROKEN_PIPE
        _complain(f"{command}: standard output {error}")
        return _FAULT
    return 0


def _json(value: Any) -> str:
    import json

    return json.dumps(value)


# --- streams and signals ----------------------------------------------------------------


class _OutputError(Exception):
    """Standard output takes no more."""


def _print(lines: Iterable[str]) -> None:
    """Print lines to standard output, or raise _OutputError, before the first if it is closed."""
    if sys.stdout is None:
        raise _OutputError("is closed")
    for line in chain(lines, [None]):
        try:
            if line is None:
                sys.stdout.flush()
            else:
                print(line)
        except OSError as error:
            raise _OutputError(f"cannot be written: {error.strerror}") from error


def _complain(line: str) -> None:
    """Print a line to standard error, if it is there."""
    if sys.stderr is not None:  # or print would take standard output
        try:
            print(printable(line), file=sys.stderr, flush=True)
        except OSError:
            _discard(sys.stderr)


def _discard(stream: Any) -> None:
    """Let what a stream still holds go nowhere when Python ends, where it would raise again."""
    with suppress(OSError, AttributeError):
        number = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def _lines() -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of standard input."""
    if sys.stdin is None:
        raise InvalidValueError("key - is read from standard input, which is closed")
    _reconfigure(sys.stdin, "surrogateescape")  # which is refused as a key
    for number, line in enumerate(iter(_line, ""), 1):
        if len(line) > _LONGEST_LINE:
            raise InvalidValueError(f"line {number}: it has more than {_LONGEST_LINE} characters")
        yield number, line.removesuffix("\n")


def _line() -> str:
    try:
        return sys.stdin.readline(_LONGEST_LINE + 1)
    except OSError as error:
        raise InvalidValueError(f"standard input cannot be read: {error.strerror}") from None


def _reconfigure(stream: object, errors: str) -> None:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=errors)


class _Stopped(KeyboardInterrupt):
    """A signal that ends the command, once what it has begun is removed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _catch_signals(handlers: dict[int, Any]) -> None:
    """Let the signals raise _Stopped, and say which handlers they had.

    Those that are ignored, as under nohup, or that the caller handles stay as they are. So do
    all where this is not the main thread, which alone may set them.
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
        if isinstance(error, _Stopped):  # on its way through what cleans up
            return
        error = error.__context__
    raise _Stopped(number)


# --- commands ---------------------------------------------------------------------------


def _trace(options: argparse.Namespace) -> Iterator[str]:
    r"""Print every step from a key to its subtask.

    KEY is text; with --type it is read as that type: 42, true, 2024-02-29, 23:59:59.5,
    2024-02-29T23:59:59Z, or as Python writes tuples, lists, sets and dicts: ('a', 1). Without,
    it is a STRING, and refused if it may be something else, too. After -- it may begin with a
    dash. - reads keys from standard input, one a line: subtask, key group and key, in which what
    cannot be printed is escaped, a tab as \t; --json has it as it is.

    JSON: key (as given), key_type, hash_code, murmur_hash, max_parallelism, key_group,
    parallelism, subtask, key_groups (the subtask's first and last).
    """
    from keygroups.assignment import trace_key
    from keygroups.cli._json_data import trace_data
    from keygroups.cli._key_text import parse_key

    check_parallelisms(options.max_parallelism, options.parallelism)
    key_type = _key_type(options.type)

    def trace(text: str) -> KeyTrace:
        key = parse_key(text, key_type)
        return trace_key(key, options.max_parallelism, options.parallelism, key_type)

    if options.key != "-":
        found = trace(options.key)
        yield _json(trace_data(options.key, found)) if options.json else str(found)
        return
    for number, text in _lines():
        try:
            found = trace(text)
        except KeyGroupsError as error:
            raise type(error)(f"line {number}: {error}") from None
        if options.json:
            yield _json(trace_data(text, found))
        else:
            yield f"{found.subtask}\t{found.key_group}\t{printable(text)}"


def _plan(options: argparse.Namespace) -> Iterator[str]:
    """Print what a rescale moves, and with --load what is better.

    FILE has the load: a key group and its weight a line, key groups left out weighing 0; or a
    JSON array of the weight of every key group. - is standard input.

    JSON: max_parallelism, old_parallelism, new_parallelism, moved_key_groups, moved_share, pieces
    (each with old_subtask, new_subtask, key_groups and moves); with --load also moved_weight,
    moved_weight_share, weight_before and weight_after (of each subtask), imbalance_before,
    imbalance_after, recommendations (the best first, each with parallelism, heaviest_weight,
    imbalance and reason).
    """
    from keygroups.cli._json_data import plan_data, rescale_data
    from keygroups.reports import RescaleReport
    from keygroups.rescale import RescalePlan

    plan = RescalePlan(options.max_parallelism, options.old_parallelism, options.new_parallelism)
    if options.load is None:
        yield _json(plan_data(plan)) if options.json else str(plan)
        return
    from keygroups.cli._load_file import read_load

    report = RescaleReport(plan, read_load(options.load, plan.max_parallelism))
    yield _json(rescale_data(report)) if options.json else str(report)


def _range(options: argparse.Namespace) -> Iterator[str]:
    """Print the key groups of a subtask.

    JSON: max_parallelism, parallelism, subtask, key_groups (the first and the last).
    """
    from keygroups.cli._json_data import range_data
    from keygroups.key_group_range import compute_key_group_range_for_operator_index

    names = ("max_parallelism", "parallelism", "subtask")
    groups, parallelism, subtask = numbers = [getattr(options, name) for name in names]
    check_parallelisms(groups, parallelism)
    check_int("subtask", subtask, 0, parallelism - 1)  # which the core names otherwise
    found = compute_key_group_range_for_operator_index(groups, parallelism, subtask)
    if options.json:
        yield _json(dict(zip(names, numbers)) | {"key_groups": range_data(found)})
    else:
        count = f"{len(found)} of {groups} key groups"
        yield f"subtask {subtask} of {parallelism} has {count}, {found}"


def _default(options: argparse.Namespace) -> Iterator[str]:
    """Print the max parallelism of a fresh job that sets none.

    JSON: parallelism, max_parallelism.
    """
    from keygroups.key_group_range import compute_default_max_parallelism

    groups = compute_default_max_parallelism(options.parallelism)
    data = {"parallelism": options.parallelism, "max_parallelism": groups}
    yield _json(data) if options.json else str(groups)


def _keys(options: argparse.Namespace) -> Iterator[str]:
    r"""Print the first keys that Flink sends to each subtask, a line of subtask, tab and key.

    What cannot be printed of a prefix is escaped, a tab as \t; --json has it as it is.

    JSON: an array with an object for each subtask, of subtask and keys.
    """
    from keygroups import types
    from keygroups.cli._key_text import check_text
    from keygroups.subtask_keys import keys_for_subtasks

    found = keys_for_subtasks(
        options.max_parallelism,
        options.parallelism,
        _key_type(options.type) or types.INT,
        options.n,
        prefix=check_text("prefix", options.prefix),
    )
    lists = found if options.n > 1 else [[key] for key in found]
    if options.json:
        yield _json([{"subtask": subtask, "keys": keys} for subtask, keys in enumerate(lists)])
        return
    for subtask, keys in enumerate(lists):
        yield from (f"{subtask}\t{printable(str(key))}" for key in keys)


def _evenness(options: argparse.Namespace) -> Iterator[str]:
    """Print the parallelisms at which every subtask has as many key groups.

    JSON: max_parallelism, parallelisms.
    """
    from keygroups.load import evenness

    found = evenness(options.max_parallelism)
    data = {"max_parallelism": options.max_parallelism, "parallelisms": found}
    yield _json(data) if options.json else " ".join(map(str, found))


def _savepoint(options: argparse.Namespace) -> Iterator[str]:
    """Print what a savepoint or checkpoint holds, where it is heavy, what a rescale would move.

    JSON: path, kind, version, checkpoint_id, operators (of all: operator_id, uid, name,
    parallelism, max_parallelism, bytes) and reports (of those with keyed state, or named:
    operator_id, states, key_group_bytes, heaviest_key_groups, heaviest_keys with key, key_group,
    subtask, entries and bytes, unknown_keys, which is why there are none of these, and rescale,
    whose members are those of plan --load).

    With --set-max-parallelism it is written anew to --output, beside which a folder
    .NAME.<32 hexadecimal digits>.writing is made, and renamed at the end. One that a killed
    command left there is named on standard error; --clean removes those of this NAME in which
    nothing was written for an hour. JSON: path, operators (of all: operator,
    old_max_parallelism, new_max_parallelism, parallelism, and states with state, subtask,
    entries and bytes).

    Files that it names are read in its own folder, for a checkpoint chk-N in shared, taskowned
    and the checkpoints beside it, and in what --allow names.
    """
    from keygroups.cli._json_data import report_data, rewrite_data, savepoint_data
    from keygroups.savepoint import change_max_parallelism, operator_reports, read_savepoint

    savepoint = read_savepoint(options.path, allow=options.allow)
    if (options.set_max_parallelism is None) != (options.output is None):
        raise InvalidValueError("--set-max-parallelism and --output go together")
    if options.clean and options.output is None:
        raise InvalidValueError("--clean goes with --output")
    if options.output is not None:
        _check_output(options.output, options.clean)
        to = (options.set_max_parallelism, options.output, options.parallelism, options.operator)
        written = change_max_parallelism(savepoint, *to)
        yield _json(rewrite_data(written)) if options.json else str(written)
        return
    # This finds the operators that were named, so that their names are in the list of all too.
    reports = operator_reports(savepoint, options.operator, options.parallelism, options.top)
    if options.json:
        data = savepoint_data(savepoint)
        yield _json(data | {"reports": [report_data(report) for report in reports]})
        return
    yield str(savepoint)
    for report in reports:
        yield f"\n{report}"


def _check_output(output: str, clean: bool) -> None:
    """Refuse a place that is gone with the process, and remove what others left beside it."""
    from keygroups.savepoint._files.output_folder import OutputFolder

    if output.startswith("memory://"):
        raise InvalidValueError(
            f"output must outlast the command, got {show(output)}, which is in its memory"
        )
    if clean:
        for folder in OutputFolder("output", output).remove_leftovers():
            _complain(f"keygroups savepoint: {folder} is removed")


def _job(options: argparse.Namespace) -> Iterator[str]:
    """Print what the subtasks of a running job have read, and which are hot.

    URL is that of Flink's REST API, such as http://localhost:8081, or of a page of its web UI.
    Without --vertex all vertices are looked at whose input is keyed.

    JSON: url, job_id, name, state, vertices (each with vertex_id, name, status, parallelism,
    max_parallelism, is_keyed, subtasks with subtask, status, read_records and read_bytes, and
    skew, null for those not looked at, else imbalance, hot_subtasks, idle_subtasks, diagnosis and
    remedy). What Flink does not know yet is null.
    """
    from keygroups.cli._json_data import vertex_data
    from keygroups.errors import JobError
    from keygroups.job import read_job

    job = read_job(options.url, options.job_id, options.timeout)
    named = options.vertex is not None
    wanted = (
        [job.vertex(options.vertex)] if named else [one for one in job.vertices if one.is_keyed]
    )
    skews, unknown = {}, []
    for vertex in wanted:
        try:
            skews[vertex.vertex_id] = job.skew(vertex)
        except JobError as error:
            if named:
                raise
            unknown.append(str(error))
    if options.json:
        vertices = [vertex_data(one, skews.get(one.vertex_id)) for one in job.vertices]
        names = ("url", "job_id", "name", "state")
        yield _json({name: getattr(job, name) for name in names} | {"vertices": vertices})
        return
    yield "\n\n".join([str(job), *map(str, skews.values()), *unknown])


def _key_type(text: str | None) -> KeyType | None:
    from keygroups.cli._key_text import parse_key_type

    return None if text is None else parse_key_type(text)


# --- arguments --------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{self.prog}: {message}")
        self.exit(_WRONG_ARGUMENT)

    def print_help(self, file: object = None) -> None:
        _print([self.format_help().removesuffix("\n")])


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an int, got {show(text)}") from None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {show(text)}") from None


_HELP = {
    "max_parallelism": "the job's max parallelism, 1 to 32768",
    "parallelism": "the operator's parallelism",
    "old_parallelism": "the operator's parallelism before",
    "new_parallelism": "the operator's parallelism after",
    "subtask": "its index, from 0",
}


def _parser() -> argparse.ArgumentParser:
    from keygroups.cli._key_text import CHOICES

    description = "Where Apache Flink sends a key: key groups and subtasks, without a JVM."
    parser = _Parser("keygroups", description=description, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(run: Callable[..., Iterator[str]], *numbers: str) -> Callable[..., Any]:
        """Add the command that a function runs, with arguments that are ints."""
        first, _, rest = (run.__doc__ or "").partition("\n")
        added = commands.add_parser(
            run.__name__.strip("_"),
            help=first,
            description=f"{first}\n{dedent(rest)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        added.set_defaults(run=run)
        for name in numbers:
            added.add_argument(name, type=_int, metavar=name.upper(), help=_HELP[name])
        added.add_argument("--json", action="store_true", help="print JSON")
        return added.add_argument

    types = f"the key type, one of {', '.join(CHOICES)}"
    add = command(_trace)
    add("key", metavar="KEY", help="the key, or - for standard input")
    for short, name in (("-m", "max_parallelism"), ("-p", "parallelism")):
        option = f"--{name.replace('_', '-')}"
        add(short, option, type=_int, metavar="N", required=True, help=_HELP[name])
    add("--type", help=types)
    add = command(_plan, "max_parallelism", "old_parallelism", "new_parallelism")
    add("--load", metavar="FILE", help="the load of the key groups, or - for standard input")
    command(_range, "max_parallelism", "parallelism", "subtask")
    command(_default, "parallelism")
    add = command(_keys, "max_parallelism", "parallelism")
    add("--type", help=f"{types} (default: INT)")
    add("--prefix", default="", metavar="TEXT", help="what a STRING begins with")
    add("-n", type=_int, default=1, metavar="N", help="how many keys a subtask (default: 1)")
    command(_evenness, "max_parallelism")
    add = command(_savepoint)
    add("path", metavar="PATH", help="a savepoint or checkpoint, or the URL of one")
    named = "only the operator of this uid, name or id; may be repeated"
    add("--operator", action="append", metavar="UID", help=named)
    more = "the parallelism to rescale to (default: one more than the operator's), or to write for"
    add("--parallelism", type=_int, metavar="N", help=more)
    top = "how many key groups and keys are named (default: 5)"
    add("--top", type=_int, default=5, metavar="N", help=top)
    new = "write the savepoint anew with this max parallelism"
    add("--set-max-parallelism", type=_int, metavar="N", help=new)
    add("--output", metavar="PATH", help="the new folder, or its URL, that this is written to")
    more = "also read files in this folder that the savepoint names; may be repeated"
    add("--allow", action="append", default=[], metavar="PREFIX", help=more)
    left = "remove what killed commands left beside --output, untouched for an hour"
    add("--clean", action="store_true", help=left)
    add = command(_job)
    add("url", metavar="URL", help="http or https")
    add("job_id", metavar="JOB_ID", nargs="?", help="without, the only job that runs")
    add("--vertex", metavar="NAME", help="only this vertex: its name, part of it, or id")
    seconds = "seconds for each request, and three times as many for all (default: 10)"
    add("--timeout", type=_seconds, default=10.0, metavar="N", help=seconds)
    return parser
