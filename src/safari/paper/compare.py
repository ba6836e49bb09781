"""Ours beside the paper's: each printed number, redone from a sweep's results."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from safari.paper.numbers import PaperRow, PaperTable, paper_tables
from safari.paper.protocol import SCORES, Method, Setting, cell_of
from safari.paper.recipes import COVERED, coverage_cells, setting_of
from safari.report.statistics import Estimate, estimate, is_tie, paired


class Results:
    """Finished cells, looked up by setting and seed."""

    def __init__(self, finished: pl.DataFrame, seeds: int, fixed_partition: bool):
        self.seeds, self.fixed_partition = seeds, fixed_partition
        self._rows: dict[str, dict[str, Any]] = {row["cell"]: row for row in finished.iter_rows(named=True)}

    def __len__(self) -> int:
        return len(self._rows)

    def runs(self, setting: Setting) -> dict[int, dict[str, Any]]:
        """The finished runs of a setting, by seed."""
        setting = setting.plain()
        keys = {seed: cell_of(setting, seed, self.fixed_partition).key for seed in range(self.seeds)}
        return {seed: self._rows[key] for seed, key in keys.items() if key in self._rows}

    def scores(self, setting: Setting) -> dict[int, float]:
        """Accuracy in percent, by seed; runs that diverged before they were scored are left out."""
        column = SCORES[setting.method]
        found = {seed: row[column] for seed, row in self.runs(setting).items()}
        return {seed: 100 * value for seed, value in found.items() if value is not None}

    def accuracy(self, setting: Setting) -> Estimate | None:
        scores = self.scores(setting)
        return estimate(list(scores.values())) if scores else None

    def gain(self, setting: Setting) -> Estimate | None:
        """Points over FedAvg at the same point, seed by seed."""
        return paired(self.scores(setting), self.scores(setting.by("fedavg")))

    def coverage(self) -> list[tuple[str, int, Estimate]]:
        """Accuracy at p = 2, s = 4 by method and number of covered classes."""
        found: dict[tuple[str, int], list[float]] = {}
        for method, covered, cell in coverage_cells(self.seeds):
            row = self._rows.get(cell.key)
            if row is not None and row[SCORES[method]] is not None:
                found.setdefault((method, covered), []).append(100 * row[SCORES[method]])
        keys = [(method, covered) for method in ("fedavg", "safari") for covered in COVERED]
        return [(*key, estimate(found[key])) for key in keys if key in found]


@dataclass(frozen=True)
class Comparison:
    """One printed number, and ours. Estimates are None where no run is finished.

    `server_only` and `literal` (one server step a round) are at the same point; in a table of
    gains all three are gains over FedAvg.
    """

    paper: PaperRow
    setting: Setting
    metric: str
    ours: Estimate | None
    server_only: Estimate | None
    literal: Estimate | None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's; None where either is missing or the paper printed '-'."""
        if self.ours is None or self.paper.mean is None:
            return None
        return self.ours.mean - self.paper.mean

    @property
    def ties_agree(self) -> bool | None:
        """In tables of gains: whether '-' stands where it should by the paper's own rule."""
        if self.metric != "gain" or self.ours is None:
            return None
        return is_tie(self.ours.mean) == self.paper.tie


def compare_table(table: PaperTable, results: Results, datasets: set[str]) -> list[Comparison]:
    """Every printed number of a table for these data sets."""
    return [
        _compare(row, table.metric, results) for row in table.rows if row.dataset in datasets
    ]  # fmt: skip


def _compare(row: PaperRow, metric: str, results: Results) -> Comparison:
    setting = setting_of(row)

    def at(method: Method) -> Estimate | None:
        there = setting.by(method)
        return results.gain(there) if metric == "gain" else results.accuracy(there)

    assisted = row.method == "safari"
    return Comparison(
        row,
        setting,
        metric,
        results.gain(setting) if metric == "gain" else results.accuracy(setting),
        at("server-only") if assisted else None,
        at("literal") if assisted else None,
    )


def all_comparisons(
    results: Results, tables: tuple[str, ...], datasets: set[str]
) -> dict[str, list[Comparison]]:
    """Comparisons of all named tables that have printed numbers for `datasets`."""
    printed = paper_tables()
    found = {key: compare_table(printed[key], results, datasets) for key in tables if key in printed}
    return {key: rows for key, rows in found.items() if rows}
