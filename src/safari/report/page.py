"""The report page: `render` turns a `Page` into one HTML file that asks no server for anything.

Styles, script and the plotting library are inside, so the file opens from a disk, a mail or an archive.
"""

import math
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from safari.report.colours import GRID, INK, Ink
from safari.report.page_blocks import (
    Bar,
    Bars,
    Block,
    Curves,
    Entry,
    Findings,
    Group,
    Heat,
    Line,
    Number,
    Page,
    Point,
    Points,
    Strip,
    Table,
    Text,
)
from safari.report.page_figures import data_rows, drawing

__all__ = [
    "Bar", "Bars", "Block", "Curves", "Entry", "Findings", "Group", "Heat", "Line", "Number", "Page", "Point",
    "Points", "Strip",
    "Table", "Text", "render",
]  # fmt: skip

FOLDER = Path(__file__).parent
FULL_SHADE = 5.0
PHONE, GAP, ARROW, TRACK = 46, 2, 2, 12
"""Letters: so many stand side by side on a phone; between columns; for the arrow that sorts; for a bar."""


def render(page: Page) -> str:
    """The page as HTML; every text in it is shown as written, never as markup."""
    has_figures = any(isinstance(block, Curves | Heat | Points) for block in page.blocks)
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            page=page,
            css=_part("page.css"),
            js=_part("page.js"),
            plotly=_plotly() if has_figures else None,
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"ink": INK, "grid": GRID, "full_shade": FULL_SHADE}
    environment.filters |= {
        "data_rows": data_rows,
        "drawing": drawing,
        "drawn_in": _drawn_in,
        "is_wide": _is_wide,
        "numeric_columns": _numeric_columns,
        "sort_value": _sort_value,
        "strength": _strength,
        "unbroken": _unbroken,
    }
    return environment


def _part(name: str) -> Markup:
    return Markup((FOLDER / name).read_text(encoding="utf-8"))


def _plotly() -> Markup:
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


def _drawn_in(ink: Ink) -> str:
    """The ink as a style; page.css takes the one colour or the other."""
    dash = ink.dash or "none"
    return (
        f"--light: {ink.light}; --dark: {ink.dark}; stroke-width: {ink.width:g}px; stroke-dasharray: {dash}"
    )


def _numeric_columns(table: Table) -> list[bool]:
    return [any(row[column].value is not None for row in table.rows) for column in range(len(table.columns))]


def _is_wide(block: Table | Bars) -> bool:
    """Whether a phone has no room for all columns side by side."""
    if isinstance(block, Table):
        rows = [[entry.text for entry in row] for row in block.rows]
        heads = [_longest_word(column) + ARROW for column in block.columns]
    else:
        rows = [[bar.label, "", *bar.texts] for group in block.groups for bar in group.bars]
        heads = [0, TRACK, *map(_longest_word, block.columns)]
    columns = zip(heads, *([len(text) for text in row] for row in rows), strict=True)
    return sum(max(lengths) + GAP for lengths in columns) > PHONE


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _sort_value(entry: Entry) -> float | None:
    return entry.value if entry.value is not None and math.isfinite(entry.value) else None


def _unbroken(text: str) -> str:
    """No line ends before a per cent sign, or within q = 0.8."""
    return re.sub(
        r"(?<=\d) %|(?<=\bin) %|(?<=,) %$|(?<=\w) = (?=\w)", lambda found: found[0].replace(" ", "\xa0"), text
    )


def _strength(entry: Entry) -> float:
    """How strongly the difference colours its cell: from -1 to 1, full at `FULL_SHADE` points."""
    if entry.shade is None or math.isnan(entry.shade):
        return 0.0
    return max(-1.0, min(1.0, entry.shade / FULL_SHADE))
