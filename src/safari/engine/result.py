"""`Result`: what training leaves: the delivered parameters and the history of the rounds."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np
import polars as pl

from safari.algorithms import Kind
from safari.data import Coverage
from safari.data.shown import as_html
from safari.engine.metrics import Metrics, f1, mean_over_classes, precision, recall
from safari.engine.participants import participation
from safari.engine.privacy import Guarantee
from safari.engine.run import Record, Run
from safari.engine.trained_model import TrainedModel
from safari.models import Params

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HISTORY_SCHEMA: dict[str, Any] = {
    "round": pl.Int64,
    "kind": pl.String,
    "q": pl.Float64,
    "available": pl.Int64,
    "cohort": pl.List(pl.Int64),
    "reported": pl.List(pl.Int64),
    "accuracy": pl.Float64,
    "balanced_accuracy": pl.Float64,
    "macro_f1": pl.Float64,
    "loss": pl.Float64,
    "recall": pl.List(pl.Float64),
    "precision": pl.List(pl.Float64),
    "accuracy_round": pl.Float64,
    "loss_round": pl.Float64,
    "bytes_down": pl.Int64,
    "bytes_up": pl.Int64,
}
"""A row a round, then a column for each number that the algorithm's notes carry. `q` was the
probability of a client round (null where no coin is tossed); `cohort` was sent the model, `reported`
sent it back. `accuracy`, `balanced_accuracy` (the mean recall over the classes), `macro_f1`, `loss`, and
`recall` and `precision` (lists by class) are of the model that would be delivered after the round (see
`deliver`).
`accuracy_round` and `loss_round` are of the model after the round. All are on the test set, null where it
was not evaluated. Recall is null for a class without test samples, precision for one that was never named."""

VALIDATION_SCHEMA: dict[str, Any] = {
    "validation_balanced_accuracy": pl.Float64,
    "validation_loss": pl.Float64,
}
"""Columns more, where the server holds samples out: of the model after the round, on those samples."""

MEASURED = (
    "balanced_accuracy", "macro_f1", "auc", "loss", "worst_class", "worst_recall",
    "classes", "recall", "precision", "confusion",
)  # fmt: skip
"""What a summary takes from the metrics of the delivered model, beside its accuracy."""

COVERED = ("covered_classes", "covered_mass", "accuracy_ceiling", "exposure", "absent", "coverage")
"""What a summary says of those that never take part; unknown to the server of a fleet."""


Measured: TypeAlias = tuple[Metrics, dict[str, float]]
"""The metrics of a model, and what the user's own functions say of it."""


def history_schema(columns: tuple[str, ...] = (), validated: bool = False) -> dict[str, Any]:
    """The columns of a history, those of an algorithm's own last, by name."""
    validation = VALIDATION_SCHEMA if validated else {}
    return {**HISTORY_SCHEMA, **validation, **dict.fromkeys(sorted(columns), pl.Float64)}


def empty_history(run: Run) -> pl.DataFrame:
    """The history of a run before its first round."""
    validated = run.task.federation.validation_most > 0
    return pl.DataFrame(schema=history_schema(run.algorithm.columns, validated))


def history_of(
    record: Record, first: int, count: int, test_counts: np.ndarray, model_bytes: int
) -> pl.DataFrame:
    """The first `count` rows of `record` as a table; round numbers start at `first` + 1."""
    rows: Any = jax.tree.map(lambda column: np.asarray(column)[:count], record)
    clients_asked = rows.down > 0
    asked = rows.cohort.picked & clients_asked[:, None]
    answered = rows.cohort.reported & clients_asked[:, None]
    total, seen = test_counts.sum(), rows.evaluated
    columns = {name: _where(~np.isnan(values), values) for name, values in rows.columns.items()}
    delivered = rows.delivered
    recalls = recall(delivered.correct, test_counts)
    f1s = f1(delivered.correct, delivered.predicted, test_counts)
    return pl.DataFrame(
        {
            "round": np.arange(first + 1, first + count + 1),
            "kind": _KIND_NAMES[rows.kind],
            "q": _where(~np.isnan(rows.q), rows.q),
            "available": rows.available,
            "cohort": _masked(rows.cohort.clients, asked),
            "reported": _masked(rows.cohort.clients, answered),
            "accuracy": _where(seen, delivered.correct.sum(axis=1) / total),
            "balanced_accuracy": _where(seen, mean_over_classes(recalls, test_counts)),
            "macro_f1": _where(seen, mean_over_classes(f1s, test_counts)),
            "loss": _where(seen, delivered.loss),
            "recall": _by_class(recalls, seen),
            "precision": _by_class(precision(delivered.correct, delivered.predicted), seen),
            "accuracy_round": _where(seen, rows.score.correct.sum(axis=1) / total),
            "loss_round": _where(seen, rows.score.loss),
            "bytes_down": _bytes(rows.down, model_bytes, asked),
            "bytes_up": _bytes(rows.up, model_bytes, answered),
            **_validated(rows.validation, seen),
            **columns,
        },
        schema=history_schema(tuple(columns), rows.validation is not None),
        strict=False,
    )


def _validated(validation: Any, seen: np.ndarray) -> dict[str, list[float | None]]:
    if validation is None:
        return {}
    found = (validation.balanced_accuracy, validation.loss)
    return {name: _where(seen, values) for name, values in zip(VALIDATION_SCHEMA, found, strict=True)}


def _bytes(models: np.ndarray, model_bytes: int, clients: np.ndarray) -> np.ndarray:
    each = np.rint(models.astype(np.float64) * model_bytes).astype(np.int64)
    return each * clients.sum(axis=1)


_KIND_NAMES = np.array([kind.name.lower() for kind in Kind])


def _where(known: np.ndarray, values: np.ndarray) -> list[float | None]:
    return [value if there else None for there, value in zip(known, values.tolist(), strict=True)]


def _masked(values: np.ndarray, mask: np.ndarray) -> list[list[int]]:
    return [row[chosen].tolist() for row, chosen in zip(values, mask, strict=True)]


def _by_class(shares: np.ndarray, known: np.ndarray) -> list[list[float | None] | None]:
    return [
        [None if math.isnan(value) else value for value in row] if evaluated else None
        for row, evaluated in zip(shares.tolist(), known, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class Log:
    """What a training run showed, without its parameters.

    `excluded` lists the clients that were excluded; `coverage` says who else could never take part,
    and what they hold; `diverged_at` is the round in which the run left the finite numbers, if it did;
    `stopped_at` is the round after which it stopped early, if it did; `diagnostics` is what an observer
    saw, where one looked on; `privacy` is what the epsilon of a private run means. `measure` scores the
    delivered model, where that can be done.
    """

    history: pl.DataFrame
    coverage: Coverage | None
    excluded: tuple[int, ...]
    compile_seconds: float
    train_seconds: float
    diverged_at: int | None = None
    stopped_at: int | None = None
    diagnostics: pl.DataFrame | None = None
    privacy: Guarantee | None = None
    measure: Callable[[], Measured] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def metrics(self) -> Metrics | None:
        """How good the delivered model is on the test set, class by class and on average.

        Computed when first asked for. None for a run that diverged, and for a fleet, which delivers
        a model that its server did not score by class.
        """
        return None if self._measures is None else self._measures[0]

    @cached_property
    def own_metrics(self) -> dict[str, float]:
        """What the functions say that `train.metrics` names, of the delivered model."""
        return {} if self._measures is None else self._measures[1]

    @cached_property
    def _measures(self) -> Measured | None:
        return None if self.measure is None or self.diverged_at is not None else self.measure()

    @property
    def accuracy(self) -> float:
        """Test accuracy of the delivered model; NaN if the run diverged before it was evaluated."""
        return _last(self.history["accuracy"])

    @property
    def accuracy_round(self) -> float:
        """Test accuracy of the model after the last round; NaN if it was never evaluated."""
        return _last(self.history["accuracy_round"])

    @property
    def accuracy_round_last10(self) -> float:
        """Mean test accuracy of the models after the last ten evaluated rounds."""
        known = self.history["accuracy_round"].drop_nulls().tail(10)
        return float(known.to_numpy().mean()) if len(known) else math.nan

    def summary(self) -> dict[str, Any]:
        """The numbers of the run, ready for JSON (None where there is none)."""
        kinds = self.history["kind"]
        return {
            "accuracy": _or_none(self.accuracy),
            "accuracy_round": _or_none(self.accuracy_round),
            "accuracy_round_last10": _or_none(self.accuracy_round_last10),
            **self._measured(),
            "rounds": len(self.history),
            **{f"{kind.name.lower()}_rounds": int((kinds == kind.name.lower()).sum()) for kind in Kind},
            "bytes_up": int(self.history["bytes_up"].sum()),
            "bytes_down": int(self.history["bytes_down"].sum()),
            "excluded": list(self.excluded),
            "participation": participation(self.history, self.coverage),
            **self._covered(),
            "diverged_at": self.diverged_at,
            "stopped_at": self.stopped_at,
            "compile_seconds": self.compile_seconds,
            "train_seconds": self.train_seconds,
            **self._observed(),
            **self._spent(),
        }

    def _measured(self) -> dict[str, Any]:
        """What is known of the delivered model beyond its accuracy; by class name where it is by class."""
        found: dict[str, Any] = {}
        if self.metrics is not None:
            found = self.metrics.to_dict()
        elif self.coverage is not None:
            found = {"classes": list(self.coverage.exposure)}
        own = {"metrics": self.own_metrics} if self.own_metrics else {}
        clients = (
            {} if self.metrics is None or self.metrics.clients is None else self.metrics.clients.to_dict()
        )
        return {name: found.get(name) for name in MEASURED} | clients | own

    def _spent(self) -> dict[str, Any]:
        """What a private run has spent, and what that means."""
        if self.privacy is None:
            return {}
        spent = float(self.history["epsilon"][-1]) if len(self.history) else 0.0
        return {"epsilon": spent, **asdict(self.privacy)}

    def _covered(self) -> dict[str, Any]:
        """What those that take part can teach, where it is known: no server sees the data of real clients."""
        if self.coverage is None:
            return dict.fromkeys(COVERED)
        return {
            "covered_classes": list(self.coverage.covered_classes),
            "covered_mass": self.coverage.covered_mass,
            "accuracy_ceiling": self.coverage.accuracy_ceiling,
            "exposure": self.coverage.exposure,
            "absent": list(self.coverage.absent),
            "coverage": str(self.coverage),
        }

    def _observed(self) -> dict[str, float]:
        """What the diagnostics cost; the bias of those that take part, over the last ten rounds, and
        the squared gradient q b^2 at which it may stop a fixed q."""
        if self.diagnostics is None:
            return {}
        found = {"diagnostics_seconds": float(self.diagnostics["seconds"].sum())}
        bias, q = self.diagnostics["bias_available"].tail(10).drop_nulls(), self.history["q"].drop_nulls()
        if len(bias):
            found["bias_squared"] = float(bias.to_numpy().mean())
            if len(q) and q.n_unique() == 1:
                found["gradient_floor"] = float(q[0]) * max(found["bias_squared"], 0.0)
        return found


@dataclass(frozen=True, kw_only=True)
class Result(Log):
    """The outcome of a training run: its log, and the parameters.

    `model` is the delivered model, ready to predict; `params` are its parameters, `params_last` those
    after the last round.

    Examples:
        >>> import safari
        >>> result = safari.train(safari.federate("digits"), rounds=2)
        >>> result.summary()["rounds"], sorted(result.params)
        (2, ['bias', 'weight'])
    """

    model: TrainedModel
    params_last: Params

    @property
    def params(self) -> Params:
        """The parameters of the delivered model."""
        return self.model.params

    def plot(self) -> "Figure":
        """The delivered model over the rounds, whole and class by class, as a figure of matplotlib's.

        A notebook shows it; `result.plot().savefig("curves.png")` writes it.
        """
        from safari.engine.plot import figure_of

        ceiling = None if self.coverage is None else self.coverage.accuracy_ceiling
        return figure_of(self.history, ceiling, self.model.labels)

    def _repr_html_(self) -> str:
        if self.metrics is None:
            return as_html(repr(self))
        return as_html(f"{self!r}. {self.coverage or ''}", *self.metrics.tables())

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{count} {kind}" for kind, count in sorted(self.history["kind"].value_counts().iter_rows())
        )
        ceiling = "" if self.coverage is None else f", accuracy_ceiling={self.coverage.accuracy_ceiling:.4f}"
        return (
            f"Result(accuracy={self.accuracy:.4f}, accuracy_round={self.accuracy_round:.4f}, "
            f"rounds={len(self.history)} ({kinds}){ceiling})"
        )


def _last(values: pl.Series) -> float:
    known = values.drop_nulls()
    return known[-1] if len(known) else math.nan


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
