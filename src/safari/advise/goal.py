"""What advice goes by: a metric of the delivered model, read from the row of a run in a sweep."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from safari.errors import check
from safari.report.metric_names import RECALL, Metric, metric_named

LAST = 10
"""Single evaluations swing: shares are averaged over the last so many evaluated rounds."""
CURVES = ("accuracy", "balanced_accuracy", "macro_f1")
WORST_LOSS = 1e9
"""That of a run that diverged."""


@dataclass(frozen=True)
class Goal:
    """A metric that advice makes better.

    Attributes:
        metric: the metric.
    """

    metric: Metric

    @classmethod
    def named(cls, name: str) -> "Goal":
        """The goal of this name.

        Raises:
            InputError: if there is no such metric.
        """
        metric = metric_named(name)
        hint = "belongs to clients; advice goes by the server's own samples, such as balanced_accuracy there"
        check(not metric.by_client, "--metric", name, hint)
        return cls(metric)

    @property
    def words(self) -> str:
        """The metric in a sentence."""
        return self.metric.title

    @property
    def unit(self) -> str:
        return " points" if self.metric.share else ""

    @property
    def sign(self) -> int:
        """What a difference is multiplied with, so that more is better."""
        return -1 if self.metric.name == "loss" else 1

    def of(self, row: dict[str, Any]) -> float:
        """The number of a run that is through, shares in per cent; the worst there is if it diverged."""
        name = self.metric.name
        if row["diverged_at"] is not None:
            return WORST_LOSS if name == "loss" else 0.0
        if name in CURVES:
            return self.metric.scale * float(np.mean(row[f"curve_{name}"][-LAST:]))
        if name == "worst_recall" or name.startswith(RECALL):
            recall = np.array(row["curve_recall"][-LAST:], float).mean(axis=0)
            label = name.removeprefix(RECALL)
            one = np.nanmin(recall) if label == name else recall[row["classes"].index(label)]
            return self.metric.scale * float(one)
        found = self.metric.of(row)
        return 0.0 if found is None else self.metric.scale * found
