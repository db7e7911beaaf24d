r"""The command `keygroups`, also `python -m keygroups`: key groups from a shell.

    keygroups trace KEY -m 128 -p 24 [--type LONG]   every step from a key to its subtask
    keygroups plan 128 24 36 [--load FILE]           the key groups and load that a rescale moves
    keygroups range 128 24 17                        the key groups of subtask 17 of 24
    keygroups range 720 --key-groups 144 179         the subtasks that have exactly these
    keygroups where 193 720 20                       the subtask that has key group 193 of 720
    keygroups explain TEXT                           the meaning of an exception of Flink, remedies
    keygroups default 24                             the max parallelism of a job that sets none
    keygroups keys 128 24 [--type STRING]            a key for each subtask
    keygroups evenness 720                           the parallelisms with equal subtasks
    keygroups counts 128 FILE                        why subtasks with these counts are uneven
    keygroups suggest 6 8 10-24 [--growth 10]        the max parallelisms that suit these
    keygroups doctor PATH|URL [--against OLD]        all on one page, with the next commands
    keygroups savepoint PATH                         the contents of a savepoint or checkpoint
    keygroups savepoint PATH --key KEY [--operator UID]             the keyed state of a key
    keygroups savepoint PATH --export FILE.parquet --state NAME     a state as a table
    keygroups savepoint PATH --export - --state NAME                as JSON Lines, for jq
    keygroups savepoint PATH --html FILE             the contents as a page for a browser
    keygroups savepoint PATH --set-max-parallelism 4096 --output NEW    the same state, moved
    keygroups savepoint PATH --delete-keys FILE --operator UID --output NEW    without these keys
    keygroups verify PATH                            missing files and damage of a savepoint
    keygroups diff OLD NEW                           the differences of two savepoints
    keygroups restore OLD NEW                        whether OLD restores in the job that wrote NEW
    keygroups files PATH                             the files of a savepoint, or of a job's folder
    keygroups job URL [JOB_ID]                       the load of the subtasks of a running job
    keygroups job URL --savepoints                   the paths of its checkpoints and savepoints
    keygroups completion bash                        a script that completes this in a shell
    keygroups --version

`trace -` reads keys from standard input, one a line, and answers each with a line of subtask, key
group and key, between tabs. Unprintable characters of a key, a name or a path are escaped as in
Python, a tab as \t. With `--json` an answer is one JSON value on one line, for each key of
`trace -` too, with all text as it is; `--help` of a command has its members, and beside this
module output-1.schema.json is the JSON Schema of keys, values and errors. Work of more than two
seconds shows its progress on standard error, if that is a terminal and `--quiet` is not given.

The status is 0, 2 for a wrong argument and 1 where a file, an answer of Flink or standard output
is at fault; then standard error has one line, except where `verify`, `doctor` or `restore` print
what they find wrong. With `--json` that line is JSON too: command, error and status.
After SIGINT, SIGTERM or SIGHUP, which leave nothing of a savepoint that is being written, it is
128 and their number.
"""

from __future__ import annotations

import signal
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from keygroups._checks import check_str, show
from keygroups.cli import (
    _completion,
    _diff,
    _doctor,
    _files,
    _job,
    _key_groups,
    _restore,
    _savepoint,
    _verify,
)
from keygroups.cli._parser import FAULT, WRONG_ARGUMENT, UsageError, build_parser
from keygroups.cli._progress import LINE
from keygroups.cli._refusals import in_shell
from keygroups.cli._streams import (
    OutputError,
    catch_signals,
    complain,
    discard,
    json_line,
    print_lines,
)
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError

__all__ = ["main"]
__dir__ = __all__.copy

# A command is a function and its arguments in the file of its subject, and a line in the text
# above. Its function imports the modules that it alone needs, so that the others start faster.
_SUBJECTS = (_key_groups, _doctor, _savepoint, _verify, _diff, _restore, _files, _job, _completion)
_ADD_COMMANDS = [subject.add_commands for subject in _SUBJECTS]

_BROKEN_PIPE = 141  # the status that shells give after SIGPIPE, 128 + 13


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
        arguments = [check_str("argument", text) for text in arguments]
    handlers: dict[int, Any] = {}
    try:
        catch_signals(handlers)
        return _run(arguments)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Until 3.12 Python wraps an exception during the creation of a class in a RuntimeError.
        stop = error.__cause__ if isinstance(error, RuntimeError) else error
        if not isinstance(stop, KeyboardInterrupt):
            raise
        LINE.clear()
        for number in handlers:  # Another signal must not raise from here on.
            signal.signal(number, signal.SIG_IGN)
        if arguments is None:
            # The process ends: signals stay ignored, and a full pipe must not block it.
            handlers = {}
            discard(sys.stdout)
        return 128 + getattr(stop, "number", signal.SIGINT)
    finally:
        LINE.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _run(arguments: Sequence[str] | None) -> int:
    command, options = "keygroups", Namespace(fault=FAULT, own=None)
    words = sys.argv[1:] if arguments is None else arguments
    refuse = _refuse_in_json if "--json" in words else _refuse
    try:
        options = build_parser(*_ADD_COMMANDS).parse_args(arguments, Namespace(own=None))
        command = f"keygroups {options.command}"
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: complain(f"{command}: {message}")
            print_lines(options.run(options))
    except SystemExit as end:  # argparse exits after --help.
        return int(end.code or 0)
    except UsageError as error:
        command, text = error.args
        return refuse(command, text, WRONG_ARGUMENT)
    except KeyGroupsError as error:
        wrong = isinstance(error, (InvalidValueError, InvalidTypeError))
        status = WRONG_ARGUMENT if wrong else int(options.fault)
        return refuse(command, in_shell(str(error), options.own), status)
    except ModuleNotFoundError as error:
        if "pip install" not in str(error):  # What names no extra is a fault of keygroups.
            raise
        return refuse(command, str(error), int(options.fault))
    except OutputError as error:
        if isinstance(error.__cause__, BrokenPipeError):
            return _BROKEN_PIPE
        return refuse(command, f"standard output {error}", int(options.fault))
    return int(options.status)


def _refuse(command: str, text: str, status: int) -> int:
    complain(f"{command}: {text}")
    return status


def _refuse_in_json(command: str, text: str, status: int) -> int:
    complain(json_line({"command": command, "error": text, "status": status}))
    return status
