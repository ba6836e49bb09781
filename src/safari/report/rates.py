"""Measured convergence rates: a table with verdicts, sentences, a figure, a CSV of all points."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from rich.table import Table

from safari.report.colours import COLOURS, GRID, INK
from safari.report.statistics import Estimate, estimate
from safari.theory.rates import Case

FLOOR_TOLERANCE = 0.05
"""A slope this close to 0 is a floor."""


@dataclass(frozen=True)
class Verdict:
    """The slope over the replications, whether theory agrees, and the largest share of the bound reached."""

    slope: Estimate
    agrees: bool
    reached: float


def judge(case: Case) -> Verdict:
    """A rate agrees unless shallower beyond the interval, an exact slope inside it, a floor near 0."""
    slope = estimate(case.slopes().tolist())
    agrees = {
        "rate": slope.low <= case.theory,
        "exact": slope.low <= case.theory <= slope.high,
        "floor": slope.low <= FLOOR_TOLERANCE and slope.high >= -FLOOR_TOLERANCE,
    }[case.kind]
    return Verdict(slope, agrees, float((case.measured / case.bound).max()))


def rates_table(cases: Sequence[Case]) -> Table:
    """One row a case."""
    table = Table(title="Log-log slopes, measured and by theory", title_justify="left")
    table.add_column("setting")
    table.add_column("case")
    numbers = ("slope", "95 % interval", "corollary", "theory here", "agrees", "bound", "measured/bound")
    for name in ("points", *numbers):
        table.add_column(name, justify="right")
    for case in cases:
        found = judge(case)
        table.add_row(
            case.setting,
            case.name,
            f"{case.against} = {case.points[0]:,} to {case.points[-1]:,}",
            f"{found.slope.mean:.3f}",
            f"{found.slope.low:.3f} to {found.slope.high:.3f}",
            f"{case.corollary:g}",
            f"{case.theory:.3f}",
            "yes" if found.agrees else "NO",
            f"{case.bound_slope():.3f}",
            f"{found.reached:.3f}",
        )
    return table


def rates_words(cases: Sequence[Case]) -> str:
    """What the table's columns mean."""
    said = [
        "Slope: least squares per independent replication; the interval is Student's t over these slopes.",
        "Theory here: the slope, at the same points, of what the corollary names: eta-bar = Theta(log R / R) "
        "(strongly convex), 1/m and 1/K, else (F_0 - E F_R) / (R eta_s), which is -1/2 once F_R has settled.",
        "A rate agrees unless it is shallower than that beyond the interval, 1/m and 1/K if inside the "
        f"interval, a floor if the interval comes within {FLOOR_TOLERANCE:g} of 0.",
        "Bound: the slope of the whole bound, whose terms of higher order still weigh at these points. "
        "Measured/bound: the largest over points and replications; above 1 the bound would be broken. "
        "Bounds: theorem 6 (strongly convex, speedup), the certificate of the run (rules A and B), "
        "the bound before the run (fixed q).",
    ]
    for setting in dict.fromkeys(case.setting for case in cases if case.curvature is not None):
        mine = [case for case in cases if case.setting == setting]
        seen = max(case.curvature or 0.0 for case in mine)
        said.append(
            f"{setting}: L = {mine[0].smoothness:g} is taken on trust; the largest curvature seen along the "
            f"paths, by power iteration on Hessian-vector products, is {seen:.3g}: a lower bound of L."
        )
    return "\n".join(said)


def points_table(cases: Sequence[Case]) -> pl.DataFrame:
    """Every measured point: a row for each case, point and replication."""
    rows = [
        {
            "setting": case.setting,
            "case": case.name,
            "against": case.against,
            "point": int(point),
            "replication": replication,
            "measured": float(case.measured[place, replication]),
            "bound": float(case.bound[place, replication]),
        }
        for case in cases
        for place, point in enumerate(case.points)
        for replication in range(case.measured.shape[1])
    ]
    return pl.DataFrame(rows)


def draw_rates(cases: Sequence[Case]) -> bytes:
    """A panel a case: measured points and their spread, the bound, and the slope by theory."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places = _places(cases)
    rows, columns = (1 + max(place) for place in zip(*places, strict=True))
    figure = Figure(figsize=(3.2 * columns, 3 * rows), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(rows, columns)
    for case, (row, column) in zip(cases, places, strict=True):
        _panel(figure.add_subplot(grid[row, column]), case)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=11)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _places(cases: Sequence[Case]) -> list[tuple[int, int]]:
    """Row and column: the convex ones share a row, other settings have one each."""
    rows: dict[str, int] = {}
    taken: dict[int, int] = {}
    found = []
    for case in cases:
        row = rows.setdefault("strongly convex" if case.setting == "speedup" else case.setting, len(rows))
        taken[row] = column = taken.get(row, -1) + 1
        found.append((row, column))
    return found


def _panel(axes: Any, case: Case) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    mean = case.measured.mean(axis=1)
    reach = np.stack((mean - case.measured.min(axis=1), case.measured.max(axis=1) - mean))
    guide = mean[0] * (case.points / case.points[0]) ** case.theory
    axes.loglog(
        case.points, guide, color=COLOURS[5], linewidth=1.5, label="slope by theory, from the first point"
    )
    axes.loglog(
        case.points,
        case.bound.mean(axis=1),
        "--",
        color=COLOURS[0],
        linewidth=1.5,
        label="bound or certificate",
    )
    axes.errorbar(
        case.points,
        mean,
        yerr=reach,
        fmt="o",
        color=COLOURS[2],
        markersize=4.5,
        capsize=3,
        label="measured: mean, least and most over replications",
    )
    slope = judge(case).slope
    axes.set_title(
        f"{case.setting}: {case.name}\n"
        f"slope {slope.mean:.2f} ({slope.low:.2f} to {slope.high:.2f}), theory {case.theory:.2f}",
        color=INK,
        loc="left",
        fontsize=8,
    )
    axes.set_xlabel(case.against, color=INK, fontsize=9)
    distance = case.setting in ("strongly convex", "speedup")
    axes.set_ylabel("E |x − x*|²" if distance else "average |∇F|²", color=INK, fontsize=9)
    axes.set_xticks(case.points, [f"{point:,}" for point in case.points], fontsize=8)
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=8, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
