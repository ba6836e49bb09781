"""The report page of finished runs that were put side by side: numbers, settings, curves."""

import json
from typing import Any

import polars as pl

from safari.report.page import Curves, Entry, Page, Table
from safari.report.sweep_page import ACCURACY, MOST_LINES, ROUNDS, line_of

Row = dict[str, Any]
NUMBERS = {
    "seed": ("seed", 1, "d"),
    "delivered": ("accuracy", 100, ".2f"),
    "after the last round": ("accuracy_round", 100, ".2f"),
    "mean of the last ten": ("accuracy_round_last10", 100, ".2f"),
    "client ceiling": ("accuracy_ceiling", 100, ".2f"),
    "client rounds": ("client_rounds", 1, "d"),
    "server rounds": ("server_rounds", 1, "d"),
    "idle rounds": ("idle_rounds", 1, "d"),
    "MB up": ("bytes_up", 1e-6, ".1f"),
    "MB down": ("bytes_down", 1e-6, ".1f"),
}
"""Columns of the table: which number of a summary, times what, and how it is written."""


def finished_page(title: str, results: pl.DataFrame, spec: str, facts: dict[str, str]) -> Page:
    """`results` has a row a run, each under the name that it has in `run`."""
    runs = list(results.iter_rows(named=True))
    blocks: tuple[Table | Curves, ...] = (_numbers(runs), *_settings(runs), *_curves(runs))
    return Page(title, f"{len(runs)} finished runs side by side", blocks, spec, facts)


def _numbers(runs: list[Row]) -> Table:
    rows = tuple(
        (
            Entry(run["run"]),
            Entry(json.loads(run["settings"])["algorithm.name"]),
            *(_entry(run[column], scale, form) for column, scale, form in NUMBERS.values()),
            Entry("" if run["diverged_at"] is None else f"in round {run['diverged_at']}"),
        )
        for run in runs
    )
    columns = ("run", "algorithm", *NUMBERS, "diverged")
    return Table("runs", "Runs", "Test accuracy in %, a row a run.", columns, rows)


def _entry(value: float | None, scale: float, form: str) -> Entry:
    return Entry("unknown") if value is None else Entry(f"{scale * value:{form}}", scale * value)


def _settings(runs: list[Row]) -> list[Table]:
    """A row a key in which the specs differ; none where they are alike."""
    specs = [json.loads(run["spec"]) for run in runs]
    keys = dict.fromkeys(key for spec in specs for key in spec)
    written = {key: [_written(spec.get(key)) for spec in specs] for key in keys}
    rows = tuple((Entry(key), *map(Entry, values)) for key, values in written.items() if len(set(values)) > 1)
    if not rows:
        return []
    columns = ("key", *(run["run"] for run in runs))
    caption = "The keys in which the specs differ; what a run does not have is left empty."
    return [Table("settings", "Where the specs differ", caption, columns, rows)]


def _written(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _curves(runs: list[Row]) -> list[Curves]:
    drawn = [run for run in runs if run["curve_round"] and run["diverged_at"] is None]
    if not drawn:
        return []
    lines = tuple(line_of(run["run"], [run]) for run in drawn[:MOST_LINES])
    caption = "The delivered model of each run."
    if len(lines) < len(runs):
        caption += f" {len(lines)} of {len(runs)} runs are drawn; the table has all."
    ends = "; ".join(f"{line.label}: {line.mean[-1]:.1f} %" for line in lines)
    alt = f"Test accuracy over the rounds. At the end, {ends}."
    return [Curves("curves", "Accuracy over the rounds", caption, alt, ROUNDS, ACCURACY, lines)]
