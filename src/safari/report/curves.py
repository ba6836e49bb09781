"""Accuracy over the rounds, as PNG: of one run, or of several algorithms."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from safari.engine.result import Result
from safari.report.colours import CEILING, GRID, INK, Ink, algorithm_inks, inks_of, spoken
from safari.report.statistics import band

STRETCH = 0.7
"""Points of a picture for a pixel of a page."""


def draw_run(result: Result, algorithm: str = "safari") -> bytes:
    """The model after each round, the delivered model in the colour of its algorithm, and the ceiling."""
    figure, axes = _canvas()
    history = result.history
    rounds, now = _evaluated(history, "accuracy_round")
    _, delivered = _evaluated(history, "accuracy")
    ink = algorithm_inks([algorithm])[algorithm]
    if not np.array_equal(now, delivered):
        axes.plot(rounds, now, color=ink.light, linewidth=0.8, alpha=0.6, label="model after each round")
    axes.step(rounds, delivered, where="post", label="delivered model", **_stroke(ink))
    _ceiling(axes, None if result.coverage is None else result.coverage.accuracy_ceiling)
    good = f"Delivered model: {result.accuracy:.1%} of the test set right"
    _finish(axes, good if result.diverged_at is None else f"Diverged in round {result.diverged_at}")
    return _png(figure)


def draw_comparison(
    curves: dict[str, list[pl.DataFrame]], ceiling: float | None, algorithms: Mapping[str, str] | None = None
) -> bytes:
    """The delivered model of each algorithm: mean over the seeds, band of one deviation.

    Args:
        curves: the histories of each line, by its label.
        ceiling: what training on clients alone can reach, where that is known.
        algorithms: whose the lines are, where their labels do not say so.
    """
    return _png(comparison_figure(curves, ceiling, algorithms))


def comparison_figure(
    curves: dict[str, list[pl.DataFrame]], ceiling: float | None, algorithms: Mapping[str, str] | None = None
) -> Any:
    """The same as a figure of matplotlib's."""
    figure, axes = _canvas()
    whose = algorithms or {name: name for name in curves}
    inks = inks_of(whose)
    for name, histories in curves.items():
        length = min(len(history) for history in histories)
        mean, low, high = band([_delivered(history)[:length] for history in histories])
        rounds, ink = histories[0]["round"].to_numpy()[:length], inks[name]
        axes.fill_between(rounds, low, high, color=ink.light, alpha=0.15, linewidth=0)
        said = spoken(name) if whose[name] == name else name
        axes.plot(rounds, mean, label=f"{said}: {mean[-1]:.1f} %", **_stroke(ink))
    _ceiling(axes, ceiling)
    seeds = max(len(histories) for histories in curves.values())
    over = f": mean and deviation over {seeds} seeds" if seeds > 1 else ""
    _finish(axes, f"How often the delivered model is right{over}")
    return figure


def _stroke(ink: Ink) -> dict[str, Any]:
    """The ink as keywords of matplotlib's, whose dashes are in units of the width of the line."""
    width = STRETCH * ink.width
    dashes = [float(length.removesuffix("px")) * STRETCH / width for length in ink.dash.split(",") if length]
    style = (0, dashes) if dashes else "solid"
    # The strongest line lies on top.
    return {"color": ink.light, "linewidth": width, "linestyle": style, "zorder": 2 + 0.1 * ink.width}


def _delivered(history: pl.DataFrame) -> np.ndarray:
    """In per cent, round by round; rounds that were not evaluated as the last one before them."""
    return 100 * history["accuracy"].forward_fill().backward_fill().to_numpy()


def _evaluated(history: pl.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    rows = history.drop_nulls(column)
    return rows["round"].to_numpy(), 100 * rows[column].to_numpy()


def _canvas() -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=120)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.085, 0.12, 0.895, 0.79))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _ceiling(axes: Any, ceiling: float | None) -> None:
    if ceiling is not None and ceiling < 1:
        axes.axhline(
            100 * ceiling,
            **_stroke(CEILING),
            label=f"ceiling of client-only training: {ceiling:.1%}",
        )


def _finish(axes: Any, title: str) -> None:
    axes.set_xlabel("round", color=INK)
    axes.set_ylabel("test accuracy (%)", color=INK)
    axes.set_title(title, color=INK, loc="left", fontsize=11)
    axes.set_ylim(0, 100)
    axes.set_xlim(left=0)
    axes.legend(
        loc="lower right", frameon=True, facecolor="white", edgecolor="none", framealpha=0.85, fontsize=9
    )


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
