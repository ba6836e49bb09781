"""Accuracy over the rounds, as PNG: of one run, or of several algorithms."""

import io
from typing import Any

import numpy as np
import polars as pl

from safari.engine.result import Result
from safari.report.statistics import band

INK, GRID = "#1f2933", "#d9dee3"
COLOURS = ("#c8553d", "#7a869a", "#2a6f97", "#588157", "#b5838d", "#e09f3e", "#6d597a")


def draw_run(result: Result) -> bytes:
    """The model after each round, the model that server rounds left, and the ceiling."""
    figure, axes = _canvas()
    history = result.history
    rounds, now = _evaluated(history, "accuracy_round")
    _, delivered = _evaluated(history, "accuracy")
    apart = not np.array_equal(now, delivered)
    axes.plot(
        rounds,
        now,
        color=COLOURS[2],
        linewidth=0.8 if apart else 1.8,
        alpha=0.55 if apart else 1,
        label="after each round",
    )
    if apart:
        axes.step(
            rounds,
            delivered,
            where="post",
            color=COLOURS[2],
            linewidth=2.2,
            label="delivered model",
        )
    _ceiling(axes, None if result.coverage is None else result.coverage.accuracy_ceiling)
    good = f"Delivered model: {result.accuracy:.1%} of the test set right"
    _finish(axes, good if result.diverged_at is None else f"Diverged in round {result.diverged_at}")
    return _png(figure)


def draw_comparison(curves: dict[str, list[pl.DataFrame]], ceiling: float | None) -> bytes:
    """The delivered model of each algorithm: mean over the seeds, band of one deviation."""
    return _png(comparison_figure(curves, ceiling))


def comparison_figure(curves: dict[str, list[pl.DataFrame]], ceiling: float | None) -> Any:
    """The same as a figure of matplotlib's."""
    figure, axes = _canvas()
    for place, (name, histories) in enumerate(curves.items()):
        length = min(len(history) for history in histories)
        mean, low, high = band([_delivered(history)[:length] for history in histories])
        rounds, colour = histories[0]["round"].to_numpy()[:length], COLOURS[place % len(COLOURS)]
        axes.fill_between(rounds, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(rounds, mean, color=colour, linewidth=2, label=f"{name}: {mean[-1]:.1f} %")
    _ceiling(axes, ceiling)
    seeds = max(len(histories) for histories in curves.values())
    _finish(axes, f"Delivered model, mean and deviation over {seeds} seed{'s' if seeds > 1 else ''}")
    return figure


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
            color=INK,
            linestyle=(0, (4, 3)),
            linewidth=1,
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
