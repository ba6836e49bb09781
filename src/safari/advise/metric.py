"""What advice goes by: a metric of the delivered model, read from the row of a run in a sweep."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from safari.errors import InputError, unknown_name

SHARES = ("accuracy", "balanced_accuracy", "macro_f1")
LAST = 10
"""Single evaluations swing: shares are averaged over the last so many evaluated rounds."""
RECALL = "recall:"
NAMES = (*SHARES, "worst_recall", "auc", "loss", f"{RECALL}CLASS")
IN_PERCENT = 100.0


@dataclass(frozen=True)
class Metric:
    """One number of a run, in percent; the loss as it is.

    Args:
        name: one of `NAMES`, with a class in place of CLASS.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in NAMES[:-1] and not self.name.removeprefix(RECALL) != self.name:
            raise InputError("--metric", self.name, unknown_name(self.name, NAMES, "metric"))

    @property
    def words(self) -> str:
        """The metric in a sentence."""
        if self.name.startswith(RECALL):
            return f"recall of {self.name.removeprefix(RECALL)}"
        return {"macro_f1": "macro F1", "auc": "area under the curve"}.get(
            self.name, self.name.replace("_", " ")
        )

    @property
    def unit(self) -> str:
        return "" if self.name == "loss" else " points"

    @property
    def sign(self) -> int:
        """What a difference is multiplied with, so that more is better."""
        return -1 if self.name == "loss" else 1

    def check_class(self, labels: tuple[str, ...]) -> None:
        """Refuse a class that the federation does not have."""
        name = self.name.removeprefix(RECALL)
        if name != self.name and name not in labels:
            raise InputError("--metric", self.name, unknown_name(name, labels, "class"))

    def of(self, row: dict[str, Any]) -> float:
        """The number of a run that is through; the worst there is for one that diverged."""
        if row["diverged_at"] is not None:
            return math.inf if self.name == "loss" else 0.0
        if self.name == "loss":
            return row["loss"]
        if self.name == "auc":
            return IN_PERCENT * (0.5 if row["auc"] is None else row["auc"])
        if self.name in SHARES:
            return IN_PERCENT * float(np.mean(row[f"curve_{self.name}"][-LAST:]))
        recall = np.array(row["curve_recall"][-LAST:], float).mean(axis=0)
        if self.name == "worst_recall":
            return IN_PERCENT * float(np.nanmin(recall))
        return IN_PERCENT * float(recall[row["classes"].index(self.name.removeprefix(RECALL))])
