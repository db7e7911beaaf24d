"""Tables: as text, as HTML for notebooks, and as DataFrames of pandas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from keygroups.errors import KeyGroupsError, printable

if TYPE_CHECKING:
    from pandas import DataFrame

# A notebook would typeset TeX in a name or a key, but not within elements of these classes: the
# ignoreClass of MathJax 2's tex2jax, and the ignoreHtmlClass of MathJax 3 and 4.
NO_TEX = 'class="tex2jax_ignore mathjax_ignore"'
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TINTED = ' style="background:rgba(214,90,49,.2)"'


def text_table(
    rows: Sequence[Sequence[str]], left_columns: Collection[int] = (), widths: Sequence[int] = ()
) -> list[str]:
    """Return a line for each row; `left_columns` are aligned to the left, others to the right.

    A column is as wide as its widest cell; `widths` are the least of the first columns.
    """
    widest = (max(map(len, column)) for column in zip(*rows))
    sizes = [max(both) for both in zip_longest(widest, widths, fillvalue=0)]
    pads = [str.ljust if column in left_columns else str.rjust for column in range(len(sizes))]
    return [
        "  ".join([pad(cell, size) for pad, cell, size in zip(pads, row, sizes)]).rstrip()
        for row in rows
    ]


class Section(NamedTuple):
    """A section of a report: lines, and a table of cells if there is a header.

    `left_columns` are the columns of text; in HTML `named_by`, the one that names the row, always
    is one. `marks` has a word for each row that stands out, by its index. The last three are for
    HTML alone; the caption of lines without a table stands above them.
    """

    texts: Sequence[str]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    left_columns: Collection[int] = ()
    caption: str = ""
    named_by: int = 0
    marks: Mapping[int, str] = {}


def html_sections(sections: Iterable[Section]) -> str:
    """Return sections one below the other, as HTML."""
    return "".join(html_table(*section) for section in sections)


def html_table(
    texts: Sequence[str],
    header: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
    left_columns: Collection[int] = (),
    caption: str = "",
    named_by: int = 0,
    marks: Mapping[int, str] = {},
) -> str:
    """Return the HTML of paragraphs, and a table if there is a header; see Section.

    It sets no colour but a translucent tint, so it reads on a light page and on a dark one.
    """
    shown = "".join(f"<p>{html_text(text)}</p>" for text in texts)
    if not header:
        above = f"<p><strong>{html_text(caption)}</strong></p>" if caption else ""
        return f"<div {NO_TEX}>{above}{shown}</div>" if shown else ""
    styles = [
        f' style="text-align:{"left" if column in (*left_columns, named_by) else "right"}"'
        for column in range(len(header))
    ]
    head = "".join(
        f'<th scope="col"{style}>{html_text(cell)}</th>' for style, cell in zip(styles, header)
    )
    body = "".join(
        _html_row(row, styles, named_by, marks.get(index, "")) for index, row in enumerate(rows)
    )
    above = f"<caption>{html_text(caption)}</caption>" if caption else ""
    table = f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div {NO_TEX}>{shown}{table}</div>"


def _html_row(row: Sequence[object], styles: Sequence[str], named_by: int, mark: str) -> str:
    word = f" <strong>{html_text(mark)}</strong>" if mark else ""
    cells = [
        f'<th scope="row"{style}>{html_text(cell)}{word}</th>'
        if column == named_by
        else f"<td{style}>{html_text(cell)}</td>"
        for column, (style, cell) in enumerate(zip(styles, row, strict=True))
    ]
    return f"<tr{_TINTED if mark else ''}>{''.join(cells)}</tr>"


def html_text(value: object) -> str:
    """Return a value as text that is safe in HTML, in attributes too."""
    return escape(printable(str(value)))


def show_weight(value: float) -> str:
    """Return a weight as text of at most 19 characters."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return text if len(text) <= 19 else f"{value:.6g}"


def date_text(millis: int) -> str:
    """Return epoch milliseconds as a date and time of UTC; beyond the year 9999 the number."""
    try:
        time = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return f"{millis:,}"
    parts = "milliseconds" if millis % 1000 else "seconds"
    return time.isoformat(" ", parts).replace("+00:00", "Z")


def data_frame(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> DataFrame:
    """Return a pandas DataFrame, or raise KeyGroupsError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise KeyGroupsError("to_pandas needs pandas: pip install pandas") from None
    return pd.DataFrame.from_records([tuple(row) for row in rows], columns=list(columns))
