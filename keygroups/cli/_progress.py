"""The line of standard error that shows the progress of a command."""

from __future__ import annotations

import argparse

from keygroups._show.progress import ProgressLine
from keygroups.progress import ProgressCallback

LINE = ProgressLine()
"""The one line of this process; it is cleared before any other output."""


def progress_of(options: argparse.Namespace) -> ProgressCallback | None:
    """Return the progress callback of a command, None with --quiet."""
    return None if options.quiet else LINE
