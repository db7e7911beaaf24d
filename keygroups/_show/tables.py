"""What a notebook shows: HTML tables, and pandas' DataFrames for those who have pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from keygroups.errors import KeyGroupsError, printable

if TYPE_CHECKING:
    from pandas import DataFrame


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
