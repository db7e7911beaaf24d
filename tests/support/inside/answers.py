"""The inner parts of reports, of the command, and of what asks a running job."""

from keygroups._show.progress import ProgressLine, default_progress
from keygroups._show.tables import date_text, html_table, show_weight
from keygroups.cli import _key_text
from keygroups.cli._key_text import CHOICES, TYPE_NAMES, check_text, parse_key, parse_key_type
from keygroups.job import _rest
from keygroups.reports._diagnosis import diagnose, subtask_detail, subtask_rows
from keygroups.reports._skew import SkewQuestion

__all__ = [
    "CHOICES",
    "TYPE_NAMES",
    "ProgressLine",
    "SkewQuestion",
    "_key_text",
    "_rest",
    "check_text",
    "date_text",
    "default_progress",
    "diagnose",
    "html_table",
    "parse_key",
    "parse_key_type",
    "show_weight",
    "subtask_detail",
    "subtask_rows",
]
