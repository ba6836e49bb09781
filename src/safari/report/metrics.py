"""How good a model is, class by class, for the terminal."""

from rich.table import Table

from safari.engine.metrics import Metrics
from safari.report.tables import client_spread, client_table, percent


def metrics_tables(metrics: Metrics) -> list[Table]:
    """The averages, then a row a class, then a row a client where clients are known."""
    averages = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows = {
        "accuracy": percent(metrics.accuracy),
        "balanced accuracy": percent(metrics.balanced_accuracy),
        "macro F1": percent(metrics.macro_f1),
        "area under the curve": "-" if metrics.auc is None else f"{metrics.auc:.3f}",
        "loss": f"{metrics.loss:.4f}",
        "samples": str(sum(metrics.support)),
    }
    found = metrics.to_dict()
    if metrics.clients is not None:
        rows["accuracy by client"] = client_spread(found)
    for name, value in rows.items():
        averages.add_row(name, value)
    classes = Table(title="By class", title_justify="left")
    classes.add_column("class")
    for name in ("samples", "named", "recall", "precision", "F1"):
        classes.add_column(name, justify="right")
    for row in metrics.table().iter_rows(named=True):
        shares = [percent(row[name], "-") for name in ("recall", "precision", "f1")]
        classes.add_row(row["class"], str(row["samples"]), str(row["named"]), *shares)
    clients = client_table(found)
    return [averages, classes, *([] if clients is None else [clients])]
