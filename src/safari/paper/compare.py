"""Ours beside the paper's: each printed number, redone from a sweep's results."""

import json
from dataclasses import dataclass
from typing import Any

import polars as pl

from safari.paper.numbers import PaperRow, PaperTable, paper_tables
from safari.paper.protocol import SCORES, Method, Setting, cell_of
from safari.paper.recipes import setting_of
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
        """Accuracy in percent, by seed; runs that diverged are left out."""
        column = SCORES[setting.method]
        return {
            seed: 100 * row[column]
            for seed, row in self.runs(setting).items()
            if row.get("diverged_at") is None and row[column] is not None
        }

    def accuracy(self, setting: Setting) -> Estimate | None:
        scores = self.scores(setting)
        return estimate(list(scores.values())) if scores else None

    def gain(self, setting: Setting, method: Method) -> Estimate | None:
        """Points of a method over FedAvg at the same point, seed by seed."""
        return paired(self.scores(setting.by(method)), self.scores(setting.by("fedavg")))

    def coverage(self) -> list[tuple[Method, int, Estimate]]:
        """Accuracy at p = 2, s = 4 by method and number of covered classes.

        These are the runs whose excluded clients are listed, not drawn.
        """
        found: dict[tuple[Method, int], list[float]] = {}
        for row in self._rows.values():
            settings = json.loads(row["settings"])
            method = settings["algorithm.name"]
            listed = isinstance(settings["participation.excluded"], list)
            if listed and settings["data.source"] == "mnist" and row[SCORES[method]] is not None:
                key = (method, len(row["covered_classes"]))
                found.setdefault(key, []).append(100 * row[SCORES[method]])
        return [(*key, estimate(found[key])) for key in sorted(found)]


@dataclass(frozen=True)
class Comparison:
    """One printed number, and ours. Estimates are None where no run is finished.

    `server_only` and `literal` (one server step a round) are at the same point; in a table of
    gains all three are gains over FedAvg, and `accuracy` is ours without the baseline, beside
    the paper's: its FedAvg plus its gain.
    """

    paper: PaperRow
    setting: Setting
    metric: str
    ours: Estimate | None
    server_only: Estimate | None
    literal: Estimate | None
    accuracy: Estimate | None
    paper_accuracy: float | None

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
        return results.gain(setting, method) if metric == "gain" else results.accuracy(setting.by(method))

    assisted = row.method == "safari"
    gain = metric == "gain"
    baseline = _printed_fedavg(row) if gain else None
    return Comparison(
        row,
        setting,
        metric,
        at(setting.method),
        at("server-only") if assisted else None,
        at("literal") if assisted else None,
        results.accuracy(setting) if gain else None,
        None if baseline is None or row.mean is None else baseline + row.mean,
    )


def _printed_fedavg(row: PaperRow) -> float | None:
    """The paper's FedAvg at the point of a gain."""
    return next(
        (
            other.mean
            for other in paper_tables()["fedavg"].rows
            if (other.dataset, other.p, other.s) == (row.dataset, row.p, row.s)
        ),
        None,
    )


def all_comparisons(
    results: Results, tables: tuple[str, ...], datasets: set[str]
) -> dict[str, list[Comparison]]:
    """Comparisons of all named tables that have printed numbers for `datasets`."""
    printed = paper_tables()
    found = {key: compare_table(printed[key], results, datasets) for key in tables if key in printed}
    return {key: rows for key, rows in found.items() if rows}
