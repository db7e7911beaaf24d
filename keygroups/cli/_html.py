"""The page that the command writes of a savepoint: a whole file, and never over another."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from keygroups._checks import show
from keygroups.errors import InvalidValueError

if TYPE_CHECKING:
    from keygroups.savepoint import Savepoint


def check_html(options: argparse.Namespace) -> None:
    """Refuse a path that nothing can be written to, and options that a page knows nothing of."""
    if options.html is None:
        return
    for name in ("output", "relocate", "parallelism", "json"):
        if getattr(options, name) not in (None, False):
            raise InvalidValueError(f"--html goes without --{name}")
    if not options.html or "\0" in options.html or "://" in options.html:
        raise InvalidValueError(f"html must be the path of a file, got {show(options.html)}")
    if os.path.lexists(options.html):
        raise _is_there(options.html)


def write_html(savepoint: Savepoint, options: argparse.Namespace) -> str:
    """Write the page, and say how large it is."""
    from keygroups.savepoint import html_report

    page = html_report(savepoint, options.operator, options.top).encode()
    _write_new_file(Path(options.html), page)
    return f"{options.html}: {len(page):,} bytes"


def _write_new_file(path: Path, data: bytes) -> None:
    """Write a file that is whole, or not there, whenever this is killed."""
    from keygroups.savepoint._files.files import file_error

    written = path.with_name(f".{uuid4().hex}.writing")
    try:
        with written.open("xb") as file:
            file.write(data)
        try:
            os.link(written, path)
        except FileExistsError:
            raise
        except OSError:  # of a file system without links, on which nothing tells of another writer
            if os.path.lexists(path):
                raise FileExistsError from None
            written.rename(path)
    except FileExistsError:
        raise _is_there(str(path)) from None
    except OSError as error:
        raise file_error(str(path), "written", error) from None
    finally:
        written.unlink(missing_ok=True)


def _is_there(path: str) -> InvalidValueError:
    return InvalidValueError(f"html must be of a new file, got {show(path)}: it is there")
