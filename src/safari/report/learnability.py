"""Theorem 2 on numbers: what threshold classifiers did, and where its bound shows a gain."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from rich.table import Table

from safari.report.colours import COLOURS, GRID, INK
from safari.theory.generalization import Problem
from safari.theory.relations import mixture_alpha
from safari.theory.thresholds import MOST_TOGETHER, RATE_SLACK, Line, Point, crossing

SERVER = 1000
"""The server's samples in the comparison of bounds."""
BETAS = (1.0, 0.75, 0.5, 0.25)
PROBLEMS = (
    Problem(1),
    Problem(10),
    Problem(100),
    Problem(10, beta_p=0.5, beta_q=0.5),
    Problem(10, beta_p=0.5, beta_q=1.0),
    Problem(10, beta_p=1.0, beta_q=0.5),
)
LARGEST, LOWEST = 10**9, 1e-8
SERIES = ("#7a869a", COLOURS[2], COLOURS[0])
PANELS = (2, 3)


def case_table(lines: Sequence[Line]) -> Table:
    """One case: mean excess error with its 95 % interval at every size, and the exact value."""
    case = lines[0].case
    title = f"{case.name}, {case.about}; {lines[0].repetitions:,} data sets a size"
    table = Table(title=title, title_justify="left")
    table.add_column("n_T", justify="right")
    for line in lines:
        table.add_column(f"excess error, {_samples(line)}", justify="right")
        if case.exact:
            table.add_column("exact", justify="right")
    for place, size in enumerate(case.sizes):
        cells = [cell for line in lines for cell in _cells(line.points[place])]
        table.add_row(f"{size:,}", *cells)
    return table


def _cells(point: Point) -> list[str]:
    found = point.excess
    cells = [f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"]
    return cells if point.exact is None else [*cells, f"{point.exact:.3g}"]


def slope_table(found: Sequence[Sequence[Line]]) -> Table:
    """How the excess error falls with n, against the rate of the theorem, and whether clients helped."""
    title = f"log excess error on log n; a rate agrees if the interval ends within {RATE_SLACK:g} of it"
    table = Table(title=title, title_justify="left")
    for name in ("case", "trained on"):
        table.add_column(name)
    for name in ("slope (95 % interval)", "exact slope", "theorem", "exact inside"):
        table.add_column(name, justify="right")
    for name in ("verdict", "against the server alone"):
        table.add_column(name)
    for lines in found:
        for line in lines:
            table.add_row(*_slope_row(line), end_section=line is lines[-1])
    return table


def _slope_row(line: Line) -> list[str]:
    slope, exact = line.slope, line.exact_slope
    return [
        line.case.name if not line.ratio else "",
        _samples(line),
        f"{slope.value:.3f} ({slope.low:.3f} to {slope.high:.3f})",
        "" if exact is None else f"{exact:.3f}",
        f"{-line.rate:.3f}",
        "" if exact is None else f"{line.inside} of {len(line.points)}",
        verdict(line),
        line.against_server,
    ]


def verdict(line: Line) -> str:
    """Whether the measurement agrees with the exact values and with the rate."""
    off = ["exact values missed"] if line.as_exact is False else []
    off += [] if line.as_theorem else ["another rate"]
    return ", ".join(off) or "agrees"


def points_frame(found: Sequence[Sequence[Line]]) -> pl.DataFrame:
    """Every measured point, a row each, with the slope of its line."""
    return pl.DataFrame(
        [
            {
                "case": line.case.name,
                "about": line.case.about,
                "server_samples": point.server,
                "client_samples": point.clients,
                "repetitions": line.repetitions,
                "excess": point.excess.value,
                "low": point.excess.low,
                "high": point.excess.high,
                "exact": point.exact,
                "bound": point.bound,
                "change": point.change.value,
                "change_low": point.change.low,
                "change_high": point.change.high,
                "slope": line.slope.value,
                "slope_low": line.slope.low,
                "slope_high": line.slope.high,
                "slope_theorem": -line.rate,
                "verdict": verdict(line),
            }
            for lines in found
            for line in lines
            for point in line.points
        ],
        schema_overrides={"exact": pl.Float64},
        infer_schema_length=None,
    )


def files(found: Sequence[Sequence[Line]]) -> dict[str, bytes]:
    """What the command leaves in its directory, by name."""
    return {
        "thresholds.png": draw_thresholds(found),
        "thresholds.csv": points_frame(found).write_csv().encode(),
        "bounds.png": draw_bounds(),
    }


def crossing_table() -> Table:
    """From which n on the bound with clients is below that of the server's samples alone."""
    title = f"n = n_T + n_S from which theorem 2 is below server-only training, n_T = {SERVER:,}, alpha = 1"
    table = Table(title=title, title_justify="left")
    for name in ("d", "beta_Q", "beta_P", *(f"beta = {beta:g}" for beta in BETAS), "alpha = n_S / n_T"):
        table.add_column(name, justify="right")
    for problem in PROBLEMS:
        ends = [_size(crossing(replace(problem, beta=beta), SERVER)) for beta in BETAS]
        table.add_row(
            f"{problem.dimension}", f"{problem.beta_q:g}", f"{problem.beta_p:g}", *ends, mixture_gain(problem)
        )
    return table


def _mixture(problem: Problem, n: int) -> Problem:
    """With the alpha of clients that never sample where a hypothesis errs."""
    return replace(problem, alpha=mixture_alpha(SERVER, n - SERVER))


def mixture_gain(problem: Problem) -> str:
    """From which n on a mixture's bound shows a gain; nothing is said where there is no such mixture.

    In a region that clients miss, the mixture is as noisy as P: beta_Q is at most beta_P.
    """
    if problem.beta_q > problem.beta_p:
        return "-"
    sizes = [int(n) for n in np.geomspace(SERVER + 1, MOST_TOGETHER, 1000)]
    return _size(next((n for n in sizes if _mixture(problem, n).gains(SERVER, n - SERVER)), None))


def _size(n: int | None) -> str:
    if n is None:
        return "never"
    if n == SERVER + 1:
        return "at once"
    return f"{n:,}" if n < 10**6 else f"{n:.2g}".replace("e+0", "e").replace("e+", "e")


def _samples(line: Line) -> str:
    if not line.ratio:
        return "server only"
    return "n_S = n_T" if line.ratio == 1 else f"n_S = {line.ratio} n_T"


def _math(text: str) -> str:
    return text.replace("n_S", "$n_S$").replace("n_T", "$n_T$").replace("t*", "$t^*$")


def draw_thresholds(found: Sequence[Sequence[Line]]) -> bytes:
    """A panel a case: measured, exact and bounded excess errors over the server's samples."""
    figure, panels = _canvas()
    for axes, lines in zip(panels, found, strict=True):
        for line, colour in zip(lines, SERIES, strict=False):
            _draw_line(axes, line, colour)
        alone, most = (np.array([p.excess.value for p in line.points]) for line in (lines[0], lines[-1]))
        sizes = lines[0].case.sizes
        axes.fill_between(
            sizes, most, alone, where=most < alone, color=COLOURS[3], alpha=0.15, linewidth=0, zorder=0
        )
        case = lines[0].case
        axes.set_title(
            _math(f"{case.name}, {case.about}\n{_samples(lines[-1])}: {lines[-1].against_server}"),
            color=INK,
            loc="left",
            fontsize=10,
        )
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_xlabel("server samples $n_T$", color=INK)
        axes.legend(frameon=False, fontsize=8.5, loc="lower left")
    for axes in panels[:: PANELS[1]]:
        axes.set_ylabel("excess error", color=INK)
    _explain(
        figure,
        "Points: measured, with 95 % interval.  Solid: exact; with noise, the theorem's rate.  "
        "Dashed: bound of theorem 2, constants taken as 1.  Shaded: clients help.",
    )
    return _png(figure)


def _draw_line(axes: Any, line: Line, colour: str) -> None:
    sizes = np.array([point.server for point in line.points], float)
    value = np.array([point.excess.value for point in line.points])
    reach = value - np.array([point.excess.low for point in line.points])
    axes.errorbar(
        sizes,
        value,
        yerr=reach,
        fmt="o",
        markersize=4 if line.ratio else 7,
        markerfacecolor=colour if line.ratio else "none",
        color=colour,
        elinewidth=1.5,
        capsize=2.5,
        label=_math(_samples(line)),
    )
    exact = [point.exact for point in line.points if point.exact is not None]
    middle = np.exp(np.mean(np.log(value * sizes**line.rate)))
    axes.plot(sizes, exact or middle * sizes**-line.rate, color=colour, linewidth=1, zorder=1)
    axes.plot(
        sizes, [point.bound for point in line.points], color=colour, linestyle=(0, (5, 3)), linewidth=1.3
    )


def draw_bounds() -> bytes:
    """A panel a problem: bounds over n = n_T + n_S for several beta, and where they cross."""
    figure, panels = _canvas()
    sizes = [int(n) for n in np.geomspace(SERVER + 1, LARGEST, 200)]
    for axes, problem in zip(panels, PROBLEMS, strict=True):
        _draw_problem(axes, problem, sizes)
        axes.set_xlabel("$n = n_T + n_S$", color=INK)
        axes.legend(frameon=False, fontsize=8.5, loc="lower left")
    for axes in panels[:: PANELS[1]]:
        axes.set_ylabel("bound on the excess error", color=INK)
    _explain(
        figure,
        f"Theorem 2 with $n_T$ = {SERVER:,}, $\\alpha$ = 1, $\\delta$ = 0.05, constants taken as 1.  "
        "Shaded: below server-only training.  Points: where a bound gets there.",
    )
    return _png(figure)


def _draw_problem(axes: Any, problem: Problem, sizes: list[int]) -> None:
    alone = problem.server_bound(SERVER)
    axes.axhline(alone, color=INK, linewidth=1.6, label="server only")
    axes.axhspan(LOWEST, alone, color=COLOURS[3], alpha=0.1, linewidth=0, zorder=0)
    for beta, colour in zip(BETAS, COLOURS[2:], strict=False):
        one = replace(problem, beta=beta)
        start = crossing(one, SERVER)
        bound = [one.client_bound(SERVER, n - SERVER) for n in sizes]
        axes.plot(sizes, bound, color=colour, linewidth=1.8, label=_crossing_label(beta, start))
        if start is not None and SERVER + 1 < start <= LARGEST:
            axes.plot(start, alone, "o", color=colour, markersize=6, zorder=3)
    if problem.beta_q <= problem.beta_p:
        bound = [_mixture(problem, n).client_bound(SERVER, n - SERVER) for n in sizes]
        label = f"$\\alpha = n_S / n_T$, $\\beta$ = 1: {mixture_gain(problem)}"
        axes.plot(sizes, bound, color=COLOURS[0], linestyle=":", linewidth=1.6, label=label)
    axes.set_ylim(LOWEST, 2)
    title = f"d = {problem.dimension}, $\\beta_Q$ = {problem.beta_q:g}, $\\beta_P$ = {problem.beta_p:g}"
    axes.set_title(title, color=INK, loc="left", fontsize=10)


def _crossing_label(beta: float, start: int | None) -> str:
    size = _size(start)
    return f"$\\beta$ = {beta:g}: {size if size in ('never', 'at once') else f'from n = {size}'}"


def _canvas() -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(*PANELS).flat)
    for axes in panels:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
        axes.grid(color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, panels


def _explain(figure: Any, text: str) -> None:
    figure.supxlabel(text, color=INK, fontsize=10)


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
