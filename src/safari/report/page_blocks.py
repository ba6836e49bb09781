"""The nouns of a report page: a page is a row of blocks, each a table, curves, bars, a heat map or words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from safari.report.colours import Ink, plain_inks

ROOM, SHORT = 0.05, 24
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
    """A mean over x, with a band from low to high around it; without `ink` it gets one by its place."""

    label: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    ink: Ink | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "low", "high"):
            _same_length(f"line {self.label}: {name}", getattr(self, name), "x", self.x)

    @property
    def has_band(self) -> bool:
        return not self.low == self.mean == self.high


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

    @property
    def inks(self) -> list[Ink]:
        plain = plain_inks(len(self.lines))
        return [line.ink or ink for line, ink in zip(self.lines, plain, strict=True)]


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
class Bar:
    """A row of bars: its name, its value with what is around it, and what is written behind it."""

    label: str
    value: float | None
    texts: tuple[str, ...]
    low: float | None = None
    high: float | None = None
    ink: Ink | None = None


@dataclass(frozen=True)
class Group:
    """Bars under a heading of their own."""

    title: str
    note: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Bars:
    """Groups of bars from zero to `most`; without `most` they are dots with intervals around zero.

    `columns` say what is written behind the bars, `label` what their names are.
    """

    kind: ClassVar[str] = "bars"
    key: str
    title: str
    caption: str
    label: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    most: float | None = None

    def __post_init__(self) -> None:
        for group in self.groups:
            for bar in group.bars:
                _same_length(f"bar {bar.label}: texts", bar.texts, "columns", self.columns)

    @property
    def dots(self) -> bool:
        return self.most is None

    @property
    def long_labels(self) -> bool:
        """Whether names are so long that they have to be broken, or stand above their bars."""
        return any(len(bar.label) > SHORT for group in self.groups for bar in group.bars)

    @property
    def ends(self) -> tuple[float, float]:
        """Where the scale begins and ends; that of dots holds zero and all intervals, and a little room."""
        if self.most is not None:
            return 0.0, self.most or 1.0
        bars = [bar for group in self.groups for bar in group.bars]
        found = [value for bar in bars for value in (bar.value, bar.low, bar.high) if value is not None]
        low, high = min([0.0, *found]), max([0.0, *found])
        room = ROOM * (high - low) or 1.0
        return low - room, high + room

    def share(self, value: float) -> float:
        """Where on the scale a value is, in per cent of its width."""
        low, high = self.ends
        return 100 * max(0.0, min(1.0, (value - low) / (high - low)))


@dataclass(frozen=True)
class Strip:
    """What kind each round was: stretches of equal rounds as (kind, first, last), and inks by kind."""

    kind: ClassVar[str] = "strip"
    key: str
    title: str
    caption: str
    stretches: tuple[tuple[str, int, int], ...]
    inks: dict[str, Ink]

    @property
    def counts(self) -> dict[str, int]:
        """How many rounds there were of each kind."""
        found: dict[str, int] = {}
        for kind, first, last in self.stretches:
            found[kind] = found.get(kind, 0) + last - first + 1
        return found


@dataclass(frozen=True)
class Number:
    """A number that everybody should see: what it is, and a few words on it."""

    value: str
    name: str
    note: str = ""


@dataclass(frozen=True)
class Findings:
    """What the page shows, in words: the first sentence stands out; then the rest, then numbers."""

    kind: ClassVar[str] = "findings"
    key: str
    title: str
    lead: str
    points: tuple[str, ...]
    numbers: tuple[Number, ...] = ()


@dataclass(frozen=True)
class Point:
    """A mean with its interval at one x. Points of one group share a sign; `named` ones bear their label."""

    label: str
    group: str
    x: float
    mean: float
    low: float
    high: float
    named: bool = False


@dataclass(frozen=True)
class Points:
    """Points in one pair of axes; `inks` by group."""

    kind: ClassVar[str] = "points"
    key: str
    title: str
    caption: str
    alt: str
    x_label: str
    y_label: str
    points: tuple[Point, ...]
    inks: dict[str, Ink]

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(name for name in self.inks if any(point.group == name for point in self.points))


@dataclass(frozen=True)
class Text:
    """Paragraphs of plain text, then what is to be typed."""

    kind: ClassVar[str] = "text"
    key: str
    title: str
    paragraphs: tuple[str, ...]
    code: str = ""


Block: TypeAlias = Table | Curves | Heat | Points | Bars | Strip | Findings | Text


@dataclass(frozen=True)
class Page:
    """A whole report: its blocks, the TOML text that it came from, and facts about how it was made.

    A page of something that still goes on loads itself anew after `refresh` seconds.
    """

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
    spec: str
    facts: dict[str, str]
    refresh: int | None = None

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
