"""Tables for the terminal."""

from typing import Any

import polars as pl
from rich.table import Table


def summary_table(summary: dict[str, Any]) -> Table:
    """The numbers of one run."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows = {
        "accuracy, delivered model": _percent(summary["accuracy"]),
        "after the last round": _percent(summary["accuracy_last"]),
        "mean of the last ten": _percent(summary["accuracy_mean_last10"]),
        "classes the clients cover": _covered(summary),
        "ceiling of client-only training": _percent(summary["accuracy_ceiling"]),
        "rounds": ", ".join(f"{summary[f'{kind}_rounds']} {kind}" for kind in ("client", "server", "idle")),
        "sent to clients": _megabytes(summary["bytes_down"]),
        "sent back": _megabytes(summary["bytes_up"]),
        "time": f"{summary['train_seconds']:.1f} s training, {summary['compile_seconds']:.1f} s compiling",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def comparison_table(comparison: pl.DataFrame) -> Table:
    """Mean and deviation over the seeds, a row an algorithm."""
    seeds = int(comparison["runs"].to_numpy().max())
    table = Table(title=f"Test accuracy in %, mean ± deviation over {seeds} seeds", title_justify="left")
    table.add_column("algorithm")
    for name in ("delivered", "last round", "mean last 10", "ceiling", "up, MB"):
        table.add_column(name, justify="right")
    for row in comparison.iter_rows(named=True):
        table.add_row(
            row["algorithm"],
            _mean(row, "accuracy"),
            _mean(row, "accuracy_last"),
            _mean(row, "accuracy_mean_last10"),
            f"{100 * row['accuracy_ceiling_mean']:.1f}",
            f"{row['bytes_up_mean'] / 1e6:.1f}",
        )
    return table


def _mean(row: dict[str, Any], name: str) -> str:
    deviation = row[f"{name}_std"]
    return f"{100 * row[f'{name}_mean']:.1f}" + ("" if deviation is None else f" ± {100 * deviation:.1f}")


def _covered(summary: dict[str, Any]) -> str:
    classes = " ".join(map(str, summary["covered_classes"]))
    return f"{classes} ({100 * summary['covered_mass']:.1f} % of the samples)"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.2f} %"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
