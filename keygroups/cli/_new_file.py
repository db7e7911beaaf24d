"""A file that a command writes: whole or not at all, and never over another."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from keygroups._checks import show
from keygroups.errors import InvalidValueError, LeftoverWarning, printable

_LEFTOVER = re.compile(r"\.(.*)\.[0-9a-f]{32}\.writing", re.DOTALL)


@contextmanager
def new_file(name: str, path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name at the end of the block, if nothing is raised in it.

    It is written under another name in the same folder. A LeftoverWarning names one that a killed
    command left. Raises InvalidValueError, with the name of the option, if the path exists;
    OSError, or ValueError for a path that no file can have.
    """
    check_new(name, path)
    for leftover in _leftovers(path):
        warnings.warn(
            f"{printable(str(leftover))} was left by a command that was killed, unless one is at "
            "work there: it may be removed",
            LeftoverWarning,
            stacklevel=3,
        )
    beside = path.with_name(f".{path.name}.{uuid4().hex}.writing")
    try:
        with beside.open("xb") as file:
            yield file
        try:
            os.link(beside, path)
        except FileExistsError:
            raise _is_there(name, path) from None
        except OSError:  # Without hard links a second writer in this instant goes unnoticed.
            check_new(name, path)
            beside.rename(path)
    finally:
        with suppress(OSError, ValueError):
            beside.unlink()


def check_new(name: str, path: Path) -> None:
    """Raise InvalidValueError for a path that exists; `name` is that of the option."""
    if os.path.lexists(path):
        raise _is_there(name, path)


def _leftovers(path: Path) -> list[Path]:
    with suppress(OSError), os.scandir(path.parent) as entries:
        return sorted(
            Path(entry.path)
            for entry in entries
            if (name := _LEFTOVER.fullmatch(entry.name))
            and name[1] == path.name
            and entry.is_file(follow_symlinks=False)
        )
    return []


def _is_there(name: str, path: Path) -> InvalidValueError:
    return InvalidValueError(f"{name} must be of a new file, got {show(str(path))}: it is there")
