"""`Result`: what training leaves: the delivered parameters and the history of the rounds."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import polars as pl

from safari.algorithms import Kind
from safari.data import Coverage
from safari.engine import Record
from safari.models import Params

HISTORY_SCHEMA: dict[str, Any] = {
    "round": pl.Int64,
    "kind": pl.String,
    "available": pl.Int64,
    "cohort": pl.List(pl.Int64),
    "reported": pl.List(pl.Int64),
    "accuracy": pl.Float64,
    "loss": pl.Float64,
    "accuracy_synced": pl.Float64,
    "class_accuracy": pl.List(pl.Float64),
    "bytes_down": pl.Int64,
    "bytes_up": pl.Int64,
}
"""A row a round. `cohort` was sent the model, `reported` sent it back; `accuracy`, `loss`
and `class_accuracy` are of the model after the round, on the test set (null where it was
not evaluated, and for a class without test samples); `accuracy_synced` is of the model that
the last server round left (null before the first)."""


@dataclass(frozen=True)
class Traffic:
    """Bytes to and from one client in a client round."""

    down: int
    up: int


def history_of(
    record: Record, first: int, count: int, test_counts: np.ndarray, traffic: Traffic
) -> pl.DataFrame:
    """The first `count` rows of `record` as a table; round numbers start at `first` + 1."""
    rows = []
    record = jax.tree.map(np.asarray, record)
    for place in range(count):
        one = jax.tree.map(lambda column, place=place: column[place], record)
        kind = Kind(int(one.kind))
        asked = one.cohort.clients[one.cohort.picked] if kind != Kind.SERVER else []
        answered = one.cohort.clients[one.cohort.reported] if kind != Kind.SERVER else []
        share = one.score.correct / np.maximum(test_counts, 1)
        evaluated = bool(one.evaluated)
        rows.append(
            {
                "round": first + place + 1,
                "kind": kind.name.lower(),
                "available": int(one.available),
                "cohort": [int(client) for client in asked],
                "reported": [int(client) for client in answered],
                "accuracy": float(one.score.correct.sum() / test_counts.sum()) if evaluated else None,
                "loss": float(one.score.loss) if evaluated else None,
                "accuracy_synced": _synced_accuracy(one, test_counts),
                "class_accuracy": _class_accuracy(share, test_counts) if evaluated else None,
                "bytes_down": traffic.down * len(asked),
                "bytes_up": traffic.up * len(answered),
            }
        )
    return pl.DataFrame(rows, schema=HISTORY_SCHEMA)


def _synced_accuracy(one: Record, test_counts: np.ndarray) -> float | None:
    if np.isnan(one.synced.loss):
        return None
    return float(one.synced.correct.sum() / test_counts.sum())


def _class_accuracy(share: np.ndarray, test_counts: np.ndarray) -> list[float | None]:
    return [float(value) if held else None for value, held in zip(share, test_counts, strict=True)]


@dataclass(frozen=True)
class Result:
    """The outcome of a training run.

    `params` is the delivered model, `params_last` the one after the last round. `excluded`
    lists the clients that could never take part; `diverged_at` is the round in which the
    run left the finite numbers, if it did.
    """

    params: Params
    params_last: Params
    history: pl.DataFrame
    coverage: Coverage
    excluded: tuple[int, ...]
    compile_seconds: float
    train_seconds: float
    diverged_at: int | None = None

    @property
    def accuracy(self) -> float:
        """Test accuracy of the delivered model."""
        synced = self.accuracy_synced
        return self.accuracy_last if synced is None else synced

    @property
    def accuracy_last(self) -> float:
        """Test accuracy after the last round; NaN if the run diverged before it was evaluated."""
        known = self.history["accuracy"].drop_nulls()
        return known[-1] if len(known) else math.nan

    @property
    def accuracy_synced(self) -> float | None:
        """Test accuracy of the model that the last server round left; None without one."""
        return self.history["accuracy_synced"][-1]

    @property
    def accuracy_mean_last10(self) -> float:
        """Mean test accuracy over the last ten evaluated rounds."""
        known = self.history["accuracy"].drop_nulls().tail(10)
        return float(known.to_numpy().mean()) if len(known) else math.nan

    def summary(self) -> dict[str, Any]:
        """The numbers of the run, ready for JSON (None where there is none)."""
        kinds = self.history["kind"]
        return {
            "accuracy": _or_none(self.accuracy),
            "accuracy_last": _or_none(self.accuracy_last),
            "accuracy_synced": self.accuracy_synced,
            "accuracy_mean_last10": _or_none(self.accuracy_mean_last10),
            "rounds": len(self.history),
            **{f"{kind.name.lower()}_rounds": int((kinds == kind.name.lower()).sum()) for kind in Kind},
            "bytes_up": int(self.history["bytes_up"].sum()),
            "bytes_down": int(self.history["bytes_down"].sum()),
            "excluded": list(self.excluded),
            "covered_classes": list(self.coverage.covered_classes),
            "covered_mass": self.coverage.covered_mass,
            "accuracy_ceiling": self.coverage.accuracy_ceiling,
            "diverged_at": self.diverged_at,
            "compile_seconds": self.compile_seconds,
            "train_seconds": self.train_seconds,
        }

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{count} {kind}" for kind, count in sorted(self.history["kind"].value_counts().iter_rows())
        )
        return (
            f"Result(accuracy={self.accuracy:.4f}, accuracy_last={self.accuracy_last:.4f}, "
            f"rounds={len(self.history)} ({kinds}), accuracy_ceiling={self.coverage.accuracy_ceiling:.4f})"
        )


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
