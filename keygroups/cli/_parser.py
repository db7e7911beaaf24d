"""The parser of arguments; the modules of the commands add these to it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any, NoReturn

from keygroups._checks import show
from keygroups.cli._examples import examples_of
from keygroups.cli._streams import print_lines

FAULT, WRONG_ARGUMENT = 1, 2  # statuses of the process

HELP = {
    "max_parallelism": "the job's max parallelism, 1 to 32768",
    "parallelism": "the operator's parallelism",
    "old_parallelism": "the operator's parallelism before",
    "new_parallelism": "the operator's parallelism after",
    "subtask": "its index, from 0",
}
"""The help of arguments that several commands have."""


class Arguments:
    """Adds the arguments of a command, to the group of its help that was begun last."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser
        self._add = parser.add_argument

    def __call__(self, *names: str, **settings: Any) -> Any:
        """Add an argument, as `ArgumentParser.add_argument` does."""
        return self._add(*names, **settings)

    def begin(self, title: str) -> None:
        """Begin a group of options."""
        self._add = self._parser.add_argument_group(title).add_argument


AddCommand = Callable[..., Arguments]


class UsageError(Exception):
    """Arguments that no command takes: the program and its command, and what is wrong."""


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(self.prog, message)

    def print_help(self, file: object = None) -> None:
        print_lines([self.format_help().removesuffix("\n")])


class _Version(argparse.Action):
    """The action of --version; unlike argparse's own, it reports a full disk."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from keygroups import __version__

        print_lines([f"keygroups {__version__}"])
        parser.exit()


def build_parser(*add_commands: Callable[[AddCommand], None]) -> argparse.ArgumentParser:
    """Return the parser of all commands, which sets `run` to the function of the chosen one.

    That function may change `status` and `fault`, the statuses after it and after an error.

    Each of `add_commands` adds some commands, by the function that is its argument.
    """
    description = "Where Apache Flink sends a key: key groups and subtasks, without a JVM."
    parser = _Parser("keygroups", description=description, allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    parser.set_defaults(run=lambda options: [parser.format_help()[:-1]], status=0, fault=FAULT)

    def command(run: Callable[..., Iterator[str]], *numbers: str) -> Arguments:
        """Add the command of a function, with `numbers` as arguments that are ints."""
        first, _, rest = (run.__doc__ or "").partition("\n")
        name = run.__name__.strip("_")
        added = commands.add_parser(
            name,
            help=first,
            description=f"{first}\n{dedent(rest)}",
            epilog=examples_of(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        added.set_defaults(run=run, parser=parser, own=added, status=0, fault=FAULT)
        for number in numbers:
            added.add_argument(number, type=to_int, metavar=number.upper(), help=HELP[number])
        added.add_argument("--json", action="store_true", help="print JSON")
        quiet = "show no progress on a terminal"
        added.add_argument("--quiet", action="store_true", help=quiet)
        return Arguments(added)

    for add in add_commands:
        add(command)
    return parser


def to_int(text: str) -> int:
    """Return an argument as an int."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an int, got {show(text)}") from None


def to_number(text: str) -> float:
    """Return an argument as a float."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {show(text)}") from None
