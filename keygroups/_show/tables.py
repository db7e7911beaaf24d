"""Tables: as text, as HTML for notebooks, and as DataFrames for those who have pandas."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING

from keygroups.errors import KeyGroupsError, printable

if TYPE_CHECKING:
    from pandas import DataFrame


def text_table(
    rows: Sequence[Sequence[str]], left: Container[int] = (), widths: Sequence[int] = ()
) -> list[str]:
    """Return a line for each row; the columns of `left` stand to the left, others to the right.

    A column is as wide as its widest cell, and at least as `widths` say of the first columns.
    """
    widest = (max(map(len, column)) for column in zip(*rows))
    sizes = [max(both) for both in zip_longest(widest, widths, fillvalue=0)]
    pads = [str.ljust if column in left else str.rjust for column in range(len(sizes))]
    return [
        "  ".join([pad(cell, size) for pad, cell, size in zip(pads, row, sizes)]).rstrip()
        for row in rows
    ]


def html_table(
    texts: Sequence[str], header: Sequence[str] = (), rows: Sequence[Sequence[object]] = ()
) -> str:
    """Return paragraphs, and a table if there is a header."""
    shown = "".join(f"<p>{_cell(text)}</p>" for text in texts)
    if not header:
        return shown
    head = "".join(f"<th>{_cell(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"{shown}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return escape(printable(str(value)))


def data_frame(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> DataFrame:
    """Return a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise KeyGroupsError("to_pandas needs pandas: pip install pandas") from None
    return pd.DataFrame.from_records([tuple(row) for row in rows], columns=list(columns))
