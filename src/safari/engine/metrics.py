"""`Metrics`: how good a model is, class by class and on average, from its probabilities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from safari.data.samples import numbered
from safari.data.shown import as_html
from safari.engine.client_metrics import ClientMetrics
from safari.errors import InputError, check
from safari.registry import own_class, reason

MOST_CONFUSED = 256
"""With more classes than this there is no confusion matrix: it would have too many entries to read."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""A probability of 0 counts as this in the loss, so that it stays finite."""


def recall(correct: np.ndarray, support: np.ndarray) -> np.ndarray:
    """The share of each class's samples that were recognised; NaN for a class without samples."""
    return np.where(support > 0, correct / np.maximum(support, 1), np.nan)


def precision(correct: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The share of right answers where a class was named; NaN for a class that was never named."""
    return np.where(predicted > 0, correct / np.maximum(predicted, 1), np.nan)


def f1(correct: np.ndarray, predicted: np.ndarray, support: np.ndarray) -> np.ndarray:
    """The harmonic mean of recall and precision, 0 if nothing was recognised; NaN without samples."""
    return np.where(support > 0, 2 * correct / np.maximum(support + predicted, 1), np.nan)


def mean_over_classes(values: np.ndarray, support: np.ndarray) -> np.ndarray:
    """The mean over the classes that have samples.

    Rows lie one after another: else NumPy adds a row up in another order where there are several.
    """
    return np.ascontiguousarray(values[..., support > 0]).mean(axis=-1)


def auc(y: np.ndarray, probabilities: np.ndarray) -> float | None:
    """The area under the ROC curve, one class against the rest, averaged over the classes present.

    By ranks: the probability that a sample of the class gets more probability of it than any other
    sample does; ties count half. None where only one class has samples.
    """
    areas = []
    for label in np.unique(y):
        mine = y == label
        others = np.sort(probabilities[~mine, label])
        if not len(others):
            return None
        own = probabilities[mine, label]
        below = np.searchsorted(others, own, "left") + np.searchsorted(others, own, "right")
        areas.append(below.mean() / (2 * len(others)))
    return float(np.mean(areas))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in float64: those close to 1 stay apart, and so do two that are nearly equal."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def losses(y: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """The cross entropy of each sample."""
    return -np.log(np.maximum(probabilities[np.arange(len(y)), y], SMALLEST))


def by_client(
    y: np.ndarray,
    probabilities: np.ndarray,
    holder: np.ndarray,
    names: Sequence[str],
    present: Sequence[bool] | None = None,
) -> ClientMetrics:
    """The metrics client by client; the arguments are as in `ClientMetrics.of`."""
    right = probabilities.argmax(axis=1) == y
    return ClientMetrics.of(holder, names, right, y, losses(y, probabilities), present)


@dataclass(frozen=True, eq=False, repr=False)
class Metrics:
    """How good a model is on a set of labelled samples.

    A class without samples has recall and F1 None and does not enter the means; a class that the
    model never names has precision None.

    Attributes:
        accuracy: the share of samples that the model gets right.
        balanced_accuracy: the mean recall over the classes.
        macro_f1: the mean F1 over the classes.
        auc: the area under the ROC curve, one class against the rest, averaged over the classes; None
            where only one class has samples.
        loss: the mean cross entropy.
        classes: the names of the classes.
        recall: by class, the share of its samples that the model recognises.
        precision: by class, the share of right answers where the model names it.
        f1: by class, the harmonic mean of the two.
        support: by class, how many samples there are.
        predicted: by class, how often the model names it.
        confusion: counts; rows are the true classes, columns the named ones. None above 256 classes.
        clients: the same client by client, where it is known whose samples are whose; None elsewhere.

    Examples:
        >>> import numpy as np, safari
        >>> certain = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
        >>> found = safari.Metrics.of(np.array([0, 0, 1, 1]), certain, labels=("well", "ill"))
        >>> found.accuracy, found.worst_class, found.worst_recall, found.auc
        (0.75, 'ill', 0.5, 1.0)
    """

    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    auc: float | None
    loss: float
    classes: tuple[str, ...]
    recall: tuple[float | None, ...]
    precision: tuple[float | None, ...]
    f1: tuple[float | None, ...]
    support: tuple[int, ...]
    predicted: tuple[int, ...]
    confusion: np.ndarray | None
    clients: ClientMetrics | None = None

    @classmethod
    def of(
        cls,
        y: np.ndarray,
        probabilities: np.ndarray,
        labels: Sequence[str] | None = None,
        client: np.ndarray | None = None,
    ) -> "Metrics":
        """The metrics of these probabilities.

        Args:
            y: the true class of each sample, by number.
            probabilities: of each class, a row a sample; the model names the likeliest.
            labels: the names of the classes (default: their numbers).
            client: the name of the client that each sample is of (default: nothing is told client by client).

        Raises:
            InputError: if the two do not fit together.
        """
        y, given = np.asarray(y), np.asarray(probabilities, np.float64)
        found = f"array of shape {given.shape}"
        check(given.ndim == 2 and given.size > 0, "probabilities", found, "needs a row a sample")
        count = given.shape[1]
        classes = tuple(map(str, range(count) if labels is None else labels))
        check(len(classes) == count, "labels", f"{len(classes)} names", f"must name {count} classes")
        check(bool(np.isfinite(given).all()), "probabilities", "NaN or infinity", "must be finite")
        check(y.shape == (len(given),), "y", f"array of shape {y.shape}", f"needs {len(given)} labels")
        check(y.dtype.kind in "iu", "y", f"array of type {y.dtype}", "must hold class numbers")
        inside = bool(y.min() >= 0) and bool(y.max() < count)
        check(inside, "y", f"{y.min()} to {y.max()}", f"must hold classes from 0 to {count - 1}")
        whole = cls._of(y, given, classes)
        if client is None:
            return whole
        client = np.asarray(client)
        check(client.shape == y.shape, "client", f"array of shape {client.shape}", f"needs {len(y)} clients")
        names, holder = np.unique(client.astype(str), return_inverse=True)
        # As everywhere: client 2 before client 10.
        order = numbered(names.tolist())
        place = {name: number for number, name in enumerate(order)}
        holder = np.array([place[name] for name in names.tolist()])[holder]
        return replace(whole, clients=by_client(y, given, holder, order))

    @classmethod
    def _of(cls, y: np.ndarray, probabilities: np.ndarray, classes: tuple[str, ...]) -> "Metrics":
        count = len(classes)
        named = probabilities.argmax(axis=1)
        support, predicted = np.bincount(y, minlength=count), np.bincount(named, minlength=count)
        correct = np.bincount(y[named == y], minlength=count)
        matrix = None
        if count <= MOST_CONFUSED:
            matrix = np.bincount(y * count + named, minlength=count**2).reshape(count, count)
        recalls, f1s = recall(correct, support), f1(correct, predicted, support)
        return cls(
            accuracy=float(correct.sum() / len(y)),
            balanced_accuracy=float(mean_over_classes(recalls, support)),
            macro_f1=float(mean_over_classes(f1s, support)),
            auc=auc(y, probabilities),
            loss=float(losses(y, probabilities).mean()),
            classes=classes,
            recall=_known(recalls),
            precision=_known(precision(correct, predicted)),
            f1=_known(f1s),
            support=tuple(support.tolist()),
            predicted=tuple(predicted.tolist()),
            confusion=matrix,
        )

    @property
    def worst_recall(self) -> float:
        """The recall of the class that the model recognises least."""
        return min(value for value in self.recall if value is not None)

    @property
    def worst_class(self) -> str:
        """The name of that class; of several the first."""
        return self.classes[self.recall.index(self.worst_recall)]

    def table(self) -> pl.DataFrame:
        """A row a class: its samples, how often it was named, recall, precision, F1."""
        columns = {
            "class": self.classes,
            "samples": self.support,
            "named": self.predicted,
            "recall": self.recall,
            "precision": self.precision,
            "f1": self.f1,
        }
        numbers = {"samples": pl.Int64, "named": pl.Int64}
        schema = {name: numbers.get(name, pl.Float64) for name in columns} | {"class": pl.String}
        return pl.DataFrame(columns, schema=schema)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; what belongs to a class stands under its name."""

        def by_class(values: Sequence[Any]) -> dict[str, Any]:
            return dict(zip(self.classes, values, strict=True))

        return {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "auc": self.auc,
            "loss": self.loss,
            "worst_class": self.worst_class,
            "worst_recall": self.worst_recall,
            "classes": list(self.classes),
            "recall": by_class(self.recall),
            "precision": by_class(self.precision),
            "f1": by_class(self.f1),
            "support": by_class(self.support),
            "confusion": None if self.confusion is None else self.confusion.tolist(),
            **({} if self.clients is None else self.clients.to_dict()),
        }

    def _repr_html_(self) -> str:
        return as_html(repr(self).partition("\n")[0], *self.tables())

    def tables(self) -> list[pl.DataFrame]:
        """Class by class, and client by client where that is known."""
        return [self.table(), *([] if self.clients is None else [self.clients.table()])]

    def __repr__(self) -> str:
        area = "unknown" if self.auc is None else f"{self.auc:.4f}"
        width = max(5, *map(len, self.classes))
        lines = [
            f"accuracy {self.accuracy:.4f}, balanced {self.balanced_accuracy:.4f}, "
            f"macro F1 {self.macro_f1:.4f}, AUC {area}, loss {self.loss:.4f}",
            f"{'class':<{width}}  samples  recall  precision     F1",
        ]
        for name, samples, *shares in zip(
            self.classes, self.support, self.recall, self.precision, self.f1, strict=True
        ):
            one, two, three = ("-" if share is None else f"{share:.4f}" for share in shares)
            lines.append(f"{name:<{width}}  {samples:7}  {one:>6}  {two:>9}  {three:>6}")
        if self.clients is not None:
            lines.append(str(self.clients))
        return "\n".join(lines)


def _known(values: np.ndarray) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else value for value in values.tolist())


def own_metric(name: str, key: str) -> Callable[[np.ndarray, np.ndarray], float]:
    """The user's function that `module:function` or `file.py:function` names, checked when it is called.

    It is given the true classes by number and the probabilities, a row a sample, and returns a number.

    Raises:
        InputError: if there is no such function; when called, if it fails or returns no number.
    """
    function = own_class(name, key)
    check(callable(function), key, name, "is no function of (y, probabilities)")

    def checked(y: np.ndarray, probabilities: np.ndarray) -> float:
        try:
            return float(function(y, probabilities))
        except Exception as error:  # a user's function may fail in any way: all of them are bad input
            raise InputError(key, name, f"fails on (y, probabilities): {reason(error)}") from None

    return checked


def try_own_metrics(names: Sequence[str], y: np.ndarray, classes: int, key: str) -> None:
    """Refuse functions that fail, before anything is trained: on probabilities that know nothing."""
    known_nothing = np.full((len(y), classes), 1 / classes)
    for name in names:
        own_metric(name, key)(y, known_nothing)
