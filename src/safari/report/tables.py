"""Tables for the terminal."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from rich.table import Table

from safari.report.metric_names import ACCURACY, Metric
from safari.report.statistics import is_tie

MOST_CLASSES_SHOWN = MOST_CLIENTS_SHOWN = 20
MOST_NAMED, HALF = 5, 0.5


def summary_table(summary: dict[str, Any]) -> Table:
    """The numbers of one run."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows = {
        "accuracy, delivered model": percent(summary["accuracy"]),
        "balanced accuracy": percent(summary.get("balanced_accuracy")),
        "worst class": _worst(summary),
        "macro F1, AUC": f"{_number(summary.get('macro_f1'))}, {_number(summary.get('auc'))}",
        "accuracy after the last round": percent(summary["accuracy_round"]),
        "mean of the last ten": percent(summary["accuracy_round_last10"]),
        "who takes part": summary.get("coverage") or "unknown",
        "rounds": ", ".join(
            f"{summary[f'{kind}_rounds']} {kind}"
            for kind in ("client", "server", "both", "idle")
            if summary[f"{kind}_rounds"]
        )
        + _stopped(summary),
        "sent to clients": f"{_megabytes(summary['bytes_down'])} MB",
        "sent back": f"{_megabytes(summary['bytes_up'])} MB",
        "time": f"{summary['train_seconds']:.1f} s training, {summary['compile_seconds']:.1f} s compiling",
    }
    if summary.get("worst_client") is not None:
        rows["accuracy by client"] = client_spread(summary)
    if "diagnostics_seconds" in summary:
        rows["time"] += f", {summary['diagnostics_seconds']:.1f} s diagnostics"
    if "gradient_floor" in summary:
        rows["a fixed q may stop at"] = (
            f"|grad F|^2 = q b^2 = {summary['gradient_floor']:.3g} "
            f"(b^2 = {summary['bias_squared']:.3g} over the last ten rounds)"
        )
    rows |= {name: f"{value:.4g}" for name, value in summary.get("metrics", {}).items()}
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _stopped(summary: dict[str, Any]) -> str:
    at = summary.get("stopped_at")
    return "" if at is None else f"; stopped early after round {at}, the validation score no longer rose"


def comparison_table(comparison: pl.DataFrame, metrics: Sequence[Metric]) -> Table:
    """The delivered model by each metric, mean and deviation over the seeds, a row an algorithm."""
    seeds = int(comparison["runs"].to_numpy().max())
    over = f"mean ± deviation over {seeds} seeds, " if seeds > 1 else ""
    table = Table(title=f"The delivered model on the test set ({over}shares in %)", title_justify="left")
    table.add_column("algorithm", no_wrap=True)
    titles = [one.title for one in metrics]
    # A ceiling of 100 % bounds nothing, and would hide that a rare class is hardly seen.
    bounded = any(ceiling is None or ceiling < 1 for ceiling in comparison["accuracy_ceiling_mean"])
    for name in (*titles, "accuracy, last round", *["client ceiling"] * bounded, "up, MB"):
        table.add_column(name, justify="right")
    for row in comparison.iter_rows(named=True):
        table.add_row(
            row["algorithm"],
            *(_mean(row, one.name, one.scale) for one in metrics),
            _mean(row, "accuracy_round"),
            *[_mean({**row, "accuracy_ceiling_std": None}, "accuracy_ceiling")] * bounded,
            _megabytes(row["bytes_up_mean"]),
        )
    return table


def exposure_line(runs: pl.DataFrame) -> str | None:
    """Which classes are mostly held by clients that never come, where that is the same in all runs."""
    if not {"classes", "exposure"} <= set(runs.columns):
        return None
    known = {
        (tuple(row["classes"] or ()), tuple(row["exposure"] or ())) for row in runs.iter_rows(named=True)
    }
    if len(known) != 1:
        return None
    ((classes, exposure),) = known
    small = sorted((share, name) for name, share in zip(classes, exposure, strict=True) if share < HALF)
    if not small:
        return None
    held = ", ".join(f"{name} {percent(share)}" for share, name in small[:MOST_NAMED])
    more = f" and {len(small) - MOST_NAMED} classes more" if len(small) > MOST_NAMED else ""
    return f"Share of the training samples that clients who can come hold: {held}{more}."


def _mean(row: dict[str, Any], name: str, scale: float = 100.0) -> str:
    mean, deviation = row[f"{name}_mean"], row[f"{name}_std"]
    if mean is None:
        return "unknown"
    digits = 1 if scale == 100 else 4
    return f"{scale * mean:.{digits}f}" + ("" if deviation is None else f" ± {scale * deviation:.{digits}f}")


def _worst(summary: dict[str, Any]) -> str:
    if summary.get("worst_class") is None:
        return "unknown"
    return f"{summary['worst_class']}, {percent(summary['worst_recall'])} recognised"


def class_table(summary: dict[str, Any]) -> Table | None:
    """The delivered model class by class, beside what the clients that come hold; None if unknown.

    Of many classes, those that are recognised least.
    """
    recall = summary.get("recall")
    if recall is None:
        return None
    held = [name for name in recall if recall[name] is not None]
    shown = list(recall)
    title = "By class: the delivered model on the test set"
    if len(recall) > MOST_CLASSES_SHOWN:
        shown = sorted(held, key=lambda name: recall[name])[:MOST_CLASSES_SHOWN]
        title = f"The {len(shown)} of {len(recall)} classes that the delivered model recognises least"
    table = Table(title=title, title_justify="left")
    table.add_column("class")
    for name in ("test samples", "recall", "precision", "held by clients that come"):
        table.add_column(name, justify="right")
    matrix, exposure = summary.get("confusion"), summary.get("exposure")
    for name in shown:
        samples = "" if matrix is None else str(sum(matrix[summary["classes"].index(name)]))
        come = "unknown" if exposure is None else percent(exposure[name])
        shares = (percent(summary[one][name], "-") for one in ("recall", "precision"))
        table.add_row(name, samples, *shares, come)
    return table


def client_spread(summary: dict[str, Any]) -> str:
    """How far the clients lie apart, in words."""
    worst, low, middle, high = (
        percent(summary[f"{name}_client_accuracy"])
        for name in ("worst", "lower_quartile", "median", "upper_quartile")
    )
    return f"worst {worst} ({summary['worst_client']}), quartiles {low} to {high}, median {middle}"


def client_table(summary: dict[str, Any]) -> Table | None:
    """The delivered model client by client; None if no client is known.

    `summary` may also be metrics as a dictionary. Of many clients, those that do worst, the worst first.
    """
    clients = summary.get("clients")
    if clients is None:
        return None
    shown, title = list(clients), "By client: the model on each client's own samples"
    if len(clients) > MOST_CLIENTS_SHOWN:
        shown = sorted(clients, key=lambda name: clients[name]["accuracy"])[:MOST_CLIENTS_SHOWN]
        title = f"The {len(shown)} of {len(clients)} clients for which the model does worst"
    told = "takes_part" in clients[shown[0]]
    table = Table(title=title, title_justify="left")
    table.add_column("client")
    for name in ("samples", "accuracy", "balanced accuracy", *(("takes part",) if told else ())):
        table.add_column(name, justify="right")
    for name in shown:
        one = clients[name]
        shares = (percent(one[key]) for key in ("accuracy", "balanced_accuracy"))
        come = (("yes" if one["takes_part"] else "never"),) if told else ()
        table.add_row(name, str(one["samples"]), *shares, *come)
    return table


def percent(share: float | None, otherwise: str = "unknown") -> str:
    return otherwise if share is None else f"{100 * share:.2f} %"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _megabytes(size: float) -> str:
    """With one digit that is not 0 at the least."""
    return f"{size / 1e6:.1f}" if size == 0 or size >= 1e5 else f"{size / 1e6:.1g}"


def plan_table(groups: pl.DataFrame) -> Table:
    """What a sweep would do: a row a compiled program."""
    runs = int(groups["runs"].sum())
    title = f"{_counted(runs, 'run')}, {_counted(len(groups), 'program')}"
    table = Table(title=title, title_justify="left")
    for name in ("data", "model", "algorithm"):
        table.add_column(name)
    for name in ("clients a round", "rounds", "runs", "side by side", "memory"):
        table.add_column(name, justify="right")
    for row in groups.iter_rows(named=True):
        numbers = (row["places"], row["rounds"], row["runs"], row["side_by_side"])
        memory = f"{max(row['bytes'] / 1e6, 1):,.0f} MB"
        table.add_row(row["data"], row["model"], row["algorithm"], *(f"{n:,}" for n in numbers), memory)
    return table


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def sweep_table(groups: pl.DataFrame, metrics: Sequence[Metric] = (ACCURACY,)) -> Table:
    """Mean, deviation and interval over the seeds, a row a point of the grid; of more metrics the mean.

    Runs that diverged are counted and left out of the numbers.
    """
    title = f"The delivered model on the test set: {metrics[0].title}{metrics[0].unit}"
    table = Table(title=title, title_justify="left")
    settings = groups.columns[: groups.columns.index("runs")]
    broken = bool(groups["diverged"].sum())
    last = ("accuracy after the last round", "diverged") if broken else ("accuracy after the last round",)
    others = [f"{one.title}{one.unit}" for one in metrics[1:]]
    for name in (*settings, "runs", "mean ± deviation", "95 % interval", *others, *last):
        table.add_column(name, justify="right")
    for row in groups.iter_rows(named=True):
        table.add_row(
            *(str(row[name]) for name in settings),
            str(row["runs"]),
            mean_deviation(row["mean"], row["deviation"]),
            "" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}",
            *(mean_deviation(row[one.name], row[f"{one.name}_deviation"]) for one in metrics[1:]),
            mean_deviation(row["last"], row["last_deviation"]),
            *([str(row["diverged"])] if broken else []),
        )
    return table


def difference_table(differences: pl.DataFrame, ties: bool) -> Table:
    """Paired differences between algorithms: same seeds, same clients in the same rounds.

    With `ties`, differences within two points are written '-', as the paper does.
    """
    table = Table(title="Paired differences (shares in points)", title_justify="left")
    settings = differences.columns[: differences.columns.index("runs")]
    for name in (*settings, "runs", "difference", "95 % interval"):
        table.add_column(name, justify="right")
    for row in differences.iter_rows(named=True):
        interval = "" if row["low"] is None else f"{row['low']:+.2f} to {row['high']:+.2f}"
        difference = "-" if ties and is_tie(row["mean"]) else f"{row['mean']:+.2f}"
        table.add_row(*(str(row[name]) for name in settings), str(row["runs"]), difference, interval)
    return table


def mean_deviation(mean: float | None, deviation: float | None) -> str:
    """`88.41 ± 0.52`, `88.41` for a single value, `missing` for none."""
    if mean is None:
        return "missing"
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"
