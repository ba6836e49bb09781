"""The settings of a sweep as a page shows them: what each is called, its colour, its runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from safari.report.colours import Ink, algorithm_inks, inks_of, ordered_inks, plain_inks, spoken
from safari.report.metric_names import Metric
from safari.report.page_blocks import Entry
from safari.report.statistics import Estimate, estimate
from safari.report.sweeps import ALGORITHM, points, varied

Run = dict[str, Any]
ALGORITHM_NAME, RUN_NAME = "algorithm", "run"
"""What the key of the algorithm is called, and the name of a run that stands for itself."""


@dataclass(frozen=True)
class Setting:
    """One point of a grid.

    Attributes:
        values: what it sets, by what the keys are called.
        algorithm: the name of its algorithm.
        runs: all its runs.
    """

    values: dict[str, Any]
    algorithm: str
    runs: list[Run]

    @cached_property
    def label(self) -> str:
        """What it is called: SAFARI, q = 0.4."""
        return self.label_without()

    def label_without(self, *names: str) -> str:
        """What it is called where some of what it sets is said elsewhere."""
        parts = [
            spoken(str(value))
            if name == ALGORITHM_NAME
            else str(value)
            if name == RUN_NAME
            else f"{name} = {value}"
            for name, value in self.values.items()
            if name not in names
        ]
        return ", ".join(parts) or ("all runs" if names or len(self.runs) > 1 else spoken(self.algorithm))

    @property
    def entries(self) -> list[Entry]:
        """What it sets, as cells of a table."""
        return [entry_of(name, value) for name, value in self.values.items()]

    @cached_property
    def sound(self) -> list[Run]:
        """The runs that did not diverge."""
        return [run for run in self.runs if run["diverged_at"] is None]

    def scores(self, metric: Metric) -> dict[int, float]:
        """A metric by seed, as it is shown; runs that diverged have none."""
        found = {run["seed"]: metric.of(run) for run in self.sound}
        return {seed: metric.scale * value for seed, value in found.items() if value is not None}

    def estimate(self, metric: Metric) -> Estimate | None:
        """Statistics of a metric over the seeds; None where it is not known."""
        scores = self.scores(metric)
        return estimate(list(scores.values())) if scores else None


@dataclass(frozen=True)
class Settings:
    """All points of a grid, in its order; `names` are the keys in which they differ, as they are called."""

    names: tuple[str, ...]
    all: tuple[Setting, ...]

    @classmethod
    def of(cls, results: pl.DataFrame) -> "Settings":
        keys = varied(results)
        names = called(keys)
        return cls(
            tuple(names),
            tuple(
                Setting(dict(zip(names, key, strict=True)), _algorithm_of(runs[0]), runs)
                for key, runs in points(results).items()
            ),
        )

    @classmethod
    def of_runs(cls, runs: Mapping[str, Run]) -> "Settings":
        """Runs that stand for themselves, by name."""
        found = (Setting({RUN_NAME: name}, _algorithm_of(run), [run]) for name, run in runs.items())
        return cls((RUN_NAME,), tuple(found))

    @property
    def seeds(self) -> int:
        """So many runs the setting with the most of them has."""
        return max(len(setting.runs) for setting in self.all)

    @property
    def banded(self) -> str:
        """What lines and bands are, where there are seeds; a sentence for a caption."""
        return f" Mean over {self.seeds} seeds, band of one deviation." if self.seeds > 1 else ""

    def numbers(self) -> list[str]:
        """Of `names` those that are numbers, in the order of the most values."""
        values = {name: [setting.values[name] for setting in self.all] for name in self.names}
        found = [
            name
            for name, held in values.items()
            if all(isinstance(value, int | float) and not isinstance(value, bool) for value in held)
        ]
        return sorted(found, key=lambda name: -len(set(values[name])))

    @cached_property
    def vary_algorithms(self) -> bool:
        return len({setting.algorithm for setting in self.all}) > 1

    def inks(self, drawn: Sequence[Setting]) -> list[Ink]:
        """The inks of the lines of a figure: by algorithm if these differ, else in an order."""
        known = algorithm_inks([setting.algorithm for setting in self.all])
        if self.vary_algorithms:
            return list(inks_of({setting.label: setting.algorithm for setting in drawn}, known).values())
        if len(drawn) == 1:
            return [known[drawn[0].algorithm]]
        return ordered_inks(len(drawn)) if len(drawn) > 2 else plain_inks(len(drawn))


def called(keys: Sequence[str]) -> list[str]:
    """What keys of a spec are called on a page; the keys themselves where that does not tell them apart.

    Examples:
        >>> called(["algorithm.name", "algorithm.q", "data.server.samples"])
        ['algorithm', 'q', 'server samples']
    """
    names = [_called(key) for key in keys]
    return [key if names.count(name) > 1 else name for key, name in zip(keys, names, strict=True)]


def _called(key: str) -> str:
    *above, last = key.split(".")
    if last == "name" and above:
        return {"clients": "client algorithm", "server": "server algorithm"}.get(above[-1], above[-1])
    words = last.replace("_", " ")
    return f"server {words}" if above and above[-1] == "server" else words


def _algorithm_of(run: Run) -> str:
    """Where a sweep leaves the algorithm as its spec has it, it goes as SAFARI."""
    return str(json.loads(run["settings"]).get(ALGORITHM, "safari"))


def entry_of(name: str, value: Any) -> Entry:
    """The value of a setting as the cell of a table."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    said = spoken(str(value)) if name == ALGORITHM_NAME else "" if value is None else str(value)
    return Entry(said, float(value) if number else None)
