"""The metrics that commands take by name: what each reads from the summary of a run, and how it is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from safari.data import Federation
from safari.engine.client_metrics import SPREAD
from safari.engine.metrics import own_metric
from safari.errors import InputError, check, unknown_name
from safari.registry import is_own

RECALL, CLIENT = "recall:", "client:"
SHARES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "auc": "AUC",
    "worst_recall": "recall of the worst class",
    **{name: name.replace("_", " ").replace(" client accuracy", " client") for name in SPREAD},
}
"""Shares by column, which tables show in per cent."""
KNOWN = {**SHARES, "loss": "loss"}
NO_CLIENTS = (
    "needs samples to score each client on: set data.client_test, such as 0.2, "
    "or have the test file name the clients"
)
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
    def by_client(self) -> bool:
        """Whether it needs to be known whose samples are whose."""
        return self.name in SPREAD or self.name.startswith(CLIENT)

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
        if self.name.startswith(CLIENT):
            return _of_client(row, self.name.removeprefix(CLIENT))
        if not self.name.startswith(RECALL):
            return row.get("metrics", {}).get(self.name, row.get(own_column(self.name)))
        label, classes, recall = self.name.removeprefix(RECALL), row.get("classes"), row.get("recall")
        if classes is None or recall is None:
            return None
        if label not in classes:
            raise InputError("--metric", self.name, unknown_name(label, list(classes), "class"))
        return recall[label] if isinstance(recall, dict) else recall[list(classes).index(label)]


def _of_client(row: dict[str, Any], client: str) -> float | None:
    """The accuracy of one client, in a summary or in the row of a sweep."""
    clients = row.get("clients")
    if clients is None:
        return None
    if isinstance(clients, dict):
        return clients[client]["accuracy"] if client in clients else None
    return row["client_accuracy"][list(clients).index(client)] if client in clients else None


ACCURACY = Metric("accuracy", SHARES["accuracy"], True)


def own_column(name: str) -> str:
    """Where a row has a metric of the user's own."""
    return f"metric {name}"


def metric_named(name: str, key: str = "--metric") -> Metric:
    """The metric of this name.

    Args:
        name: accuracy, balanced_accuracy, macro_f1, auc, loss, worst_recall, recall:CLASS,
            worst_client_accuracy (or the median, a quartile, the best), client:NAME, or one of your own,
            `module:function` or `file.py:function`.
        key: what the user wrote it under, for messages.

    Raises:
        InputError: if there is none.
    """
    if name in KNOWN:
        return Metric(name, KNOWN[name], name in SHARES)
    if name.startswith(RECALL):
        label = name.removeprefix(RECALL)
        return Metric(name, f"recall of {label}", True)
    if name.startswith(CLIENT):
        client = name.removeprefix(CLIENT)
        return Metric(name, f"accuracy at {client}", True)
    if is_own(name):
        own_metric(name, key)
        return Metric(name, name.rpartition(":")[2], False)
    hint = unknown_name(name, [*KNOWN, "recall:CLASS", "client:NAME"], "metric")
    raise InputError(key, name, f"{hint}, or module:function")


def metrics_named(names: Sequence[str], key: str = "--metric") -> tuple[Metric, ...]:
    """Several, each given by itself or with others, separated by commas; without any, the usual three."""
    apart = [part.strip() for name in names for part in name.split(",") if part.strip()]
    return tuple(metric_named(name, key) for name in dict.fromkeys(apart or DEFAULT))


def check_known(metrics: Sequence[Metric], federation: Callable[[], Federation]) -> None:
    """Refuse metrics that the runs of a federation do not have; `federation` is asked only if need be."""
    wanted = [one.name for one in metrics if one.by_client or one.name.startswith(RECALL)]
    if not wanted:
        return
    found = federation()
    labels, clients = found.dataset.labels, found.tested_clients
    for name in wanted:
        kind, colon, part = name.partition(":")
        if f"{kind}{colon}" == RECALL:
            check(part in labels, "--metric", name, unknown_name(part, list(labels), "class"))
            continue
        check(clients is not None, "--metric", name, NO_CLIENTS)
        known = list(clients or ())
        check(not colon or part in known, "--metric", name, unknown_name(part, known, "client"))


def own_names(metrics: Sequence[Metric]) -> list[str]:
    """Those of the user's own, which have to be computed while the runs have their models."""
    return [one.name for one in metrics if is_own(one.name) and not one.name.startswith((RECALL, CLIENT))]


def with_own(given: dict[str, Any], metrics: Sequence[Metric]) -> dict[str, Any]:
    """A spec, not yet complete, whose runs also compute these metrics of the user's own."""
    train = given.get("train", {})
    if not own_names(metrics) or not isinstance(train, dict):
        return given
    wanted = list(dict.fromkeys([*train.get("metrics", []), *own_names(metrics)]))
    return {**given, "train": {**train, "metrics": wanted}}
