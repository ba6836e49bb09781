"""The report page: `render` turns a `Page` into one HTML file that asks no server for anything.

Styles, script and the plotting library are inside, so the file opens from a disk, a mail or an archive.
"""

import math
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from safari.report.curves import COLOURS, GRID, INK
from safari.report.page_blocks import Curves, Entry, Heat, Line, Page, Table, Text
from safari.report.page_figures import data_rows, drawing

__all__ = ["Curves", "Entry", "Heat", "Line", "Page", "Table", "Text", "render"]

FOLDER = Path(__file__).parent
FULL_SHADE = 5.0


def render(page: Page) -> str:
    """The page as HTML; every text in it is shown as written, never as markup."""
    has_figures = any(isinstance(block, Curves | Heat) for block in page.blocks)
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
    environment.globals |= {"colours": COLOURS, "ink": INK, "grid": GRID, "full_shade": FULL_SHADE}
    environment.filters |= {
        "data_rows": data_rows,
        "drawing": drawing,
        "numeric_columns": _numeric_columns,
        "sort_value": _sort_value,
        "strength": _strength,
    }
    return environment


def _part(name: str) -> Markup:
    return Markup((FOLDER / name).read_text(encoding="utf-8"))


def _plotly() -> Markup:
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


def _numeric_columns(table: Table) -> list[bool]:
    return [any(row[column].value is not None for row in table.rows) for column in range(len(table.columns))]


def _sort_value(entry: Entry) -> float | None:
    return entry.value if entry.value is not None and math.isfinite(entry.value) else None


def _strength(entry: Entry) -> float:
    """How strongly the difference colours its cell: from -1 to 1, full at `FULL_SHADE` points."""
    if entry.shade is None or math.isnan(entry.shade):
        return 0.0
    return max(-1.0, min(1.0, entry.shade / FULL_SHADE))
