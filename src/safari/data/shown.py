"""Tables as HTML, which notebooks show."""

import html
from typing import Any

import polars as pl

MOST_ROWS = 30


def as_html(heading: str, *tables: pl.DataFrame) -> str:
    """A line of text, then the first rows of tables; numbers have four digits, what is not known a dash."""
    parts = [f"<p>{html.escape(heading)}</p>", *map(_table, tables)]
    return f"<div>{''.join(parts)}</div>"


def _table(frame: pl.DataFrame) -> str:
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in frame.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in frame.head(MOST_ROWS).iter_rows())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return "<td>-</td>"
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return f"<td>{html.escape(text)}</td>"
