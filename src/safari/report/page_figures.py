"""The numbers of a figure, twice: for the script that draws them and for the table beneath it."""

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from safari.report.page_blocks import Curves, Heat, Line, Points

Figure: TypeAlias = Curves | Heat | Points
MISSING = "missing"
MOST_DECIMALS = 6
TOO_LONG = 1e9
STOPS = 9


def drawing(block: Figure) -> dict[str, Any]:
    """What `page.js` needs in order to draw the block, as JSON can hold it."""
    labels = {"xLabel": block.x_label, "yLabel": block.y_label}
    if isinstance(block, Points):
        return labels | _points(block)
    return labels | (_curves(block) if isinstance(block, Curves) else _heat(block))


def data_rows(block: Figure) -> list[tuple[str, list[str]]]:
    """The rows of the table: the name of the row and its numbers, as they are written."""
    if isinstance(block, Points):
        return _point_rows(block)
    return _curve_rows(block) if isinstance(block, Curves) else _heat_rows(block)


def _curve_rows(block: Curves) -> list[tuple[str, list[str]]]:
    """A row for each x: the mean of every line, and its band; lines may have been measured at different x."""
    decimals = _decimals(_numbers(block))
    columns = [
        dict(zip(line.x, values, strict=True))
        for line in block.lines
        for values in ((line.mean, line.low, line.high) if line.has_band else (line.mean,))
    ]
    return [
        (f"{x:.10g}", [_written(column.get(x), decimals) for column in columns])
        for x in sorted(set().union(*columns))
    ]


def _heat_rows(block: Heat) -> list[tuple[str, list[str]]]:
    decimals = _decimals(_numbers(block))
    return [
        (name, [_written(value, decimals) for value in row])
        for name, row in zip(block.y, block.values, strict=True)
    ]


def _point_rows(block: Points) -> list[tuple[str, list[str]]]:
    decimals = _decimals(_numbers(block))
    return [
        (
            one.label,
            [one.group, f"{one.x:.10g}", *(_written(at, decimals) for at in (one.mean, one.low, one.high))],
        )
        for one in block.points
    ]


def _points(block: Points) -> dict[str, Any]:
    decimals = _decimals(_numbers(block))
    return {
        "groups": [
            [
                {
                    "label": one.label,
                    "named": one.named,
                    "x": _finite(one.x),
                    "mean": _finite(one.mean),
                    "low": _finite(one.low),
                    "high": _finite(one.high),
                    "text": f"{one.label}: {_point(one.mean, one.low, one.high, decimals)}",
                }
                for one in block.points
                if one.group == group
            ]
            for group in block.groups
        ]
    }


def _curves(block: Curves) -> dict[str, Any]:
    decimals = _decimals(_numbers(block))
    return {"lines": [_line(line, decimals) for line in block.lines]}


def _line(line: Line, decimals: int) -> dict[str, Any]:
    texts = [_point(*point, decimals) for point in zip(line.mean, line.low, line.high, strict=True)]
    band = {name: [_finite(value) for value in getattr(line, name)] for name in ("x", "mean", "low", "high")}
    return {"label": line.label, "texts": texts} | band


def _point(mean: float, low: float, high: float, decimals: int) -> str:
    at, lowest, highest = (_typeset(_written(value, decimals)) for value in (mean, low, high))
    return at if low == mean == high else f"{at} ({lowest} to {highest})"


def _heat(block: Heat) -> dict[str, Any]:
    return {
        "x": block.x,
        "y": block.y,
        "shades": _shades(_numbers(block)),
        "values": [[_finite(value) for value in row] for row in block.values],
        "texts": [[_typeset(text) for text in row] for _, row in _heat_rows(block)],
    }


def _shades(values: list[float]) -> list[tuple[float, float]]:
    """How strong a colour is along the scale of a heat map, from 0 to 1 at places from 0 to 1.

    Half by the number, half by its place in the order: were it by the number alone, one cell far from
    all others would leave these in one colour.
    """
    if not values or min(values) == max(values):
        return [(0.0, 0.0), (1.0, 1.0)]
    low, high = min(values), max(values)
    ranks = np.linspace(0, 1, STOPS)
    places = (np.quantile(values, ranks) - low) / (high - low)
    apart = np.append(True, np.diff(places) > 0)
    apart[-1], places[-1] = True, 1.0
    return [
        (place, (place + rank) / 2)
        for place, rank, kept in zip(places.tolist(), ranks.tolist(), apart, strict=True)
        if kept
    ]


def _numbers(block: Figure) -> list[float]:
    if isinstance(block, Points):
        return [value for one in block.points if (value := _finite(one.mean)) is not None]
    values: Iterable[float | None] = (
        (value for line in block.lines for value in (*line.mean, *line.low, *line.high))
        if isinstance(block, Curves)
        else (value for row in block.values for value in row)
    )
    return [value for value in map(_finite, values) if value is not None]


def _finite(value: float | None) -> float | None:
    """JSON has no word for infinity or not-a-number: they are missing."""
    return value if value is not None and math.isfinite(value) else None


def _decimals(values: list[float]) -> int:
    """As many for all numbers of a figure as write their spread with three digits."""
    if all(value == round(value) for value in values):
        return 0
    spread = max(values) - min(values) or abs(values[0])
    return min(max(2 - math.floor(math.log10(spread)), 1), MOST_DECIMALS)


def _written(value: float | None, decimals: int) -> str:
    finite = _finite(value)
    if finite is None:
        return MISSING
    return f"{finite:z.{decimals}f}" if abs(finite) < TOO_LONG else f"{finite:.3g}"


def _typeset(number: str) -> str:
    """With a true minus; the table keeps the hyphen that spreadsheets understand."""
    return number.replace("-", "\N{MINUS SIGN}")
