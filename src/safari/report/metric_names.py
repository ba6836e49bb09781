"""The metrics that commands take by name: what each reads from the summary of a run, and how it is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from safari.engine.metrics import own_metric
from safari.errors import InputError, unknown_name
from safari.registry import is_own

RECALL = "recall:"
SHARES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "auc": "AUC",
    "worst_recall": "recall of the worst class",
}
"""Shares by column, which tables show in per cent."""
KNOWN = {**SHARES, "loss": "loss"}
DEFAULT = ("accuracy", "balanced_accuracy", "worst_recall")


@dataclass(frozen=True)
class Metric:
    """A number of a finished run.

    Attributes:
        name: how commands call it.
        title: what a table writes over it.
        share: whether it is a share, which is shown in per cent.
    """

    name: str
    title: str
    share: bool

    @property
    def unit(self) -> str:
        return " in %" if self.share else ""

    @property
    def scale(self) -> float:
        """What its values are multiplied by where they are shown."""
        return 100.0 if self.share else 1.0

    def of(self, row: dict[str, Any]) -> float | None:
        """Its value in a summary, or in the row of a sweep; None where it is not known.

        Raises:
            InputError: if the run has no class of this name.
        """
        if self.name in KNOWN:
            return row.get(self.name)
        if not self.name.startswith(RECALL):
            return row.get("metrics", {}).get(self.name, row.get(own_column(self.name)))
        label, classes, recall = self.name.removeprefix(RECALL), row.get("classes"), row.get("recall")
        if classes is None or recall is None:
            return None
        if label not in classes:
            raise InputError("--metric", self.name, unknown_name(label, list(classes), "class"))
        return recall[label] if isinstance(recall, dict) else recall[list(classes).index(label)]


ACCURACY = Metric("accuracy", SHARES["accuracy"], True)


def own_column(name: str) -> str:
    """Where a row has a metric of the user's own."""
    return f"metric {name}"


def metric_named(name: str, key: str = "--metric") -> Metric:
    """The metric of this name.

    Args:
        name: accuracy, balanced_accuracy, macro_f1, auc, loss, worst_recall, recall:CLASS, or one of your
            own, `module:function` or `file.py:function`.
        key: what the user wrote it under, for messages.

    Raises:
        InputError: if there is none.
    """
    if name in KNOWN:
        return Metric(name, KNOWN[name], name in SHARES)
    if name.startswith(RECALL):
        label = name.removeprefix(RECALL)
        return Metric(name, f"recall of {label}", True)
    if is_own(name):
        own_metric(name, key)
        return Metric(name, name.rpartition(":")[2], False)
    hint = unknown_name(name, [*KNOWN, "recall:CLASS"], "metric")
    raise InputError(key, name, f"{hint}, or module:function")


def metrics_named(names: Sequence[str], key: str = "--metric") -> tuple[Metric, ...]:
    """Several, each given by itself or with others, separated by commas; without any, the usual three."""
    apart = [part.strip() for name in names for part in name.split(",") if part.strip()]
    return tuple(metric_named(name, key) for name in dict.fromkeys(apart or DEFAULT))


def check_labels(metrics: Sequence[Metric], labels: Callable[[], Sequence[str]]) -> None:
    """Refuse the recall of a class that there is not; `labels` is asked only if one is wanted."""
    wanted = [one.name for one in metrics if one.name.startswith(RECALL)]
    known = list(labels()) if wanted else []
    for name in wanted:
        label = name.removeprefix(RECALL)
        if label not in known:
            raise InputError("--metric", name, unknown_name(label, known, "class"))


def own_names(metrics: Sequence[Metric]) -> list[str]:
    """Those of the user's own, which have to be computed while the runs have their models."""
    return [one.name for one in metrics if is_own(one.name) and not one.name.startswith(RECALL)]


def with_own(given: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    """A spec, not yet complete, whose runs also compute these metrics of the user's own."""
    train = given.get("train", {})
    if not own_names(metrics) or not isinstance(train, dict):
        return given
    wanted = list(dict.fromkeys([*train.get("metrics", []), *own_names(metrics)]))
    return {**given, "train": {**train, "metrics": wanted}}
