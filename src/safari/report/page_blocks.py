"""The nouns of a report page: a page is a row of blocks, each a table, curves, a heat map or text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Entry:
    """A cell of a table: its text, what it is sorted by, and a signed difference that colours it.

    Colour never stands alone: whoever sets `shade` writes the number into `text` as well.
    """

    text: str
    value: float | None = None
    shade: float | None = None
    hint: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of entries; a column in which any entry has a value is a column of numbers."""

    kind: ClassVar[str] = "table"
    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            _same_length(f"table {self.key}: row {number}", row, "columns", self.columns)


@dataclass(frozen=True)
class Line:
    """A mean over x, with a band from low to high around it."""

    label: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("mean", "low", "high"):
            _same_length(f"line {self.label}: {name}", getattr(self, name), "x", self.x)


@dataclass(frozen=True)
class Curves:
    """Lines with their bands in one pair of axes; values that are not finite leave a gap."""

    kind: ClassVar[str] = "curves"
    key: str
    title: str
    caption: str
    alt: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Heat:
    """A grid of numbers, values[row][column], rows named by y and columns by x; None is missing."""

    kind: ClassVar[str] = "heat"
    key: str
    title: str
    caption: str
    alt: str
    x_label: str
    y_label: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]

    def __post_init__(self) -> None:
        _same_length(f"heat map {self.key}: values", self.values, "y", self.y)
        for number, row in enumerate(self.values):
            _same_length(f"heat map {self.key}: row {number} of values", row, "x", self.x)


@dataclass(frozen=True)
class Text:
    """Paragraphs of plain text."""

    kind: ClassVar[str] = "text"
    key: str
    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A whole report: its blocks, the TOML text that it came from, and facts about how it was made."""

    title: str
    subtitle: str
    blocks: tuple[Table | Curves | Heat | Text, ...]
    spec: str
    facts: dict[str, str]

    def __post_init__(self) -> None:
        keys = [block.key for block in self.blocks]
        for key in keys:
            if not KEY.fullmatch(key):
                raise ValueError(
                    f"key {key!r}: a letter, then letters, digits, '.', '_' or '-'; it is a link"
                )
            if keys.count(key) > 1:
                raise ValueError(f"key {key!r}: belongs to two blocks; each needs its own")


def _same_length(name: str, values: Sequence[object], other: str, others: Sequence[object]) -> None:
    if len(values) != len(others):
        raise ValueError(f"{name}: {len(values)} long, but {other} is {len(others)} long")
