"""A run as a picture, for notebooks: the delivered model over the rounds, whole and class by class."""

import io

import numpy as np
import polars as pl
from matplotlib.figure import Figure

MOST_CLASSES = 12
"""With more classes, only those with the lowest recall in the end are drawn."""


class Picture(Figure):
    """A figure that a notebook shows, whether or not pyplot has been imported there."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def figure_of(history: pl.DataFrame, ceiling: float | None, labels: tuple[str, ...]) -> Figure:
    """Accuracy and balanced accuracy on the left, the recall of each class on the right."""
    seen = history.drop_nulls("accuracy")
    rounds = seen["round"].to_numpy()
    figure = Picture(figsize=(10, 4), layout="constrained")
    whole, classes = figure.subplots(1, 2, sharey=True)
    whole.plot(rounds, 100 * seen["accuracy_round"].to_numpy(), alpha=0.4, label="accuracy after each round")
    whole.plot(rounds, 100 * seen["accuracy"].to_numpy(), label="accuracy")
    whole.plot(rounds, 100 * seen["balanced_accuracy"].to_numpy(), label="balanced accuracy")
    if ceiling is not None and ceiling < 1:
        whole.axhline(100 * ceiling, color="black", linestyle="--", label="ceiling of client-only training")
    whole.set(title="delivered model", xlabel="round", ylabel="test set (%)", ylim=(0, 100))
    recall = np.array(seen["recall"].to_list(), float).reshape(len(seen), len(labels))
    lowest = np.argsort(recall[-1])[:MOST_CLASSES] if len(recall) else np.arange(0)
    for label in sorted(lowest):
        classes.plot(rounds, 100 * recall[:, label], label=labels[label])
    classes.set(title="recall by class", xlabel="round")
    for axes in (whole, classes):
        if axes.lines:
            axes.legend(fontsize=8)
    return figure
