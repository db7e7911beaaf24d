"""The line of standard error that shows how far a command has come."""

from __future__ import annotations

import argparse

from keygroups._show.progress import ProgressLine
from keygroups.progress import ProgressCallback

LINE = ProgressLine()
"""The one of this process, as it has one standard error; removed before all else is printed."""


def progress_of(options: argparse.Namespace) -> ProgressCallback | None:
    """Return what shows the progress of a command, None where --quiet is given."""
    return None if options.quiet else LINE
