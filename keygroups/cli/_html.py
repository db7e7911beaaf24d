"""The page that the command writes of a savepoint."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from keygroups._checks import show
from keygroups.cli._new_file import check_new, new_file
from keygroups.errors import InvalidValueError

if TYPE_CHECKING:
    from keygroups.savepoint import Savepoint


def check_html(options: argparse.Namespace) -> None:
    """Raise for a path that is no new file, and for options that do not go with a page."""
    if options.html is None:
        return
    for name in ("output", "relocate", "parallelism", "json"):
        if getattr(options, name) not in (None, False):
            raise InvalidValueError(f"--html goes without --{name}")
    if not options.html or "\0" in options.html or "://" in options.html:
        raise InvalidValueError(f"html must be the path of a file, got {show(options.html)}")
    check_new("html", Path(options.html))


def write_html(savepoint: Savepoint, options: argparse.Namespace) -> str:
    """Write the page, and return the line that tells its size."""
    from keygroups.savepoint import html_report
    from keygroups.savepoint._files.files import file_error

    page = html_report(savepoint, options.operator, options.top, full=options.full).encode()
    try:
        with new_file("html", Path(options.html)) as file:
            file.write(page)
    except OSError as error:
        raise file_error(options.html, "written", error) from None
    return f"{options.html}: {len(page):,} bytes"
