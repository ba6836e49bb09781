"""The report page of finished runs that were put side by side: numbers, settings, curves."""

import json
from typing import Any

import polars as pl

from safari.report.class_blocks import class_blocks
from safari.report.colours import spoken
from safari.report.findings import findings
from safari.report.page_blocks import Block, Entry, Page, Table
from safari.report.settings import Settings
from safari.report.sweep_figures import curves

Row = dict[str, Any]
NUMBERS = {
    "seed": ("seed", 1, "d"),
    "accuracy": ("accuracy", 100, ".2f"),
    "last round": ("accuracy_round", 100, ".2f"),
    "ceiling": ("accuracy_ceiling", 100, ".1f"),
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
    settings = Settings.of_runs({run["run"]: run for run in runs})
    blocks: tuple[Block, ...] = (
        findings(settings, []),
        _numbers(runs),
        *_settings(runs),
        *class_blocks(settings),
        *curves(settings),
    )
    return Page(title, f"{len(runs)} finished runs, simulated or deployed", blocks, spec, facts)


def _numbers(runs: list[Row]) -> Table:
    diverged = any(run["diverged_at"] is not None for run in runs)
    rows = tuple(
        (
            Entry(run["run"]),
            Entry(spoken(json.loads(run["settings"])["algorithm.name"])),
            *(_entry(run[column], scale, form) for column, scale, form in NUMBERS.values()),
            *([Entry("" if run["diverged_at"] is None else f"in round {run['diverged_at']}")] * diverged),
        )
        for run in runs
    )
    columns = ("run", "algorithm", *NUMBERS, *["diverged"] * diverged)
    caption = "Accuracy of the delivered model and of that after the last round, on the test set, in %."
    return Table("runs", "Run by run", caption, columns, rows)


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
