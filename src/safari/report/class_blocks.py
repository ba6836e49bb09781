"""What a sweep's page says in words and of single classes: findings, recall by class, the worst class."""

from typing import Any

import numpy as np
import polars as pl

from safari.report.metric_names import DEFAULT, metric_named
from safari.report.page import Curves, Entry, Line, Table, Text
from safari.report.statistics import band, estimate
from safari.report.sweeps import differences, points, short, varied
from safari.report.tables import mean_deviation

MOST_CLASSES, MOST_LINES = 12, 10
Runs = dict[tuple[Any, ...], list[dict[str, Any]]]


def findings(results: pl.DataFrame) -> list[Text]:
    """Who never takes part, and what the algorithms differ in; nothing where neither is known."""
    found = []
    if "coverage" in results.columns and results["coverage"].n_unique() == 1 and results["coverage"][0]:
        found.append(results["coverage"][0])
    apart = differences(results, [metric_named(name) for name in DEFAULT])
    if apart is not None and "metric" in apart.columns:
        found += [_difference(row) for row in apart.iter_rows(named=True) if row["low"] is not None]
        found.append("Differences are paired over the seeds; in brackets their 95 % intervals.")
    return [Text("findings", "Findings", tuple(found))] if found else []


def _difference(row: dict[str, Any]) -> str:
    settings = [str(row[name]) for name in list(row)[1 : list(row).index("runs")]]
    who = ", ".join(settings).replace(" - ", " against ")
    points = f"{row['mean']:+.1f} points ({row['low']:+.1f} to {row['high']:+.1f})"
    if row["low"] <= 0 <= row["high"]:
        return f"{who}: no difference in {row['metric']} that can be told, {points}."
    return f"{who}: {points} of {row['metric']}."


def class_blocks(results: pl.DataFrame) -> list[Table | Curves]:
    """A table of recall by class, and the curves of the class that is recognised least."""
    runs = _with_classes(results)
    if not runs:
        return []
    classes = next(iter(runs.values()))[0]["classes"]
    recalls = np.array([run["recall"] for group in runs.values() for run in group], float)
    known = np.isfinite(recalls).sum(axis=0)
    mean = np.where(known > 0, np.nansum(recalls, axis=0) / np.maximum(known, 1), np.nan)
    shown = sorted(np.argsort(mean)[:MOST_CLASSES].tolist())
    worst = int(np.nanargmin(mean))
    table = _table(results, runs, [(number, classes[number]) for number in shown], len(classes))
    return [table, *_curves(results, runs, worst, classes[worst])]


def _with_classes(results: pl.DataFrame) -> Runs:
    """The runs that did not diverge, if all of them tell the same classes apart."""
    if "recall" not in results.columns or "classes" not in results.columns:
        return {}
    found = {
        key: kept
        for key, runs in points(results).items()
        if (kept := [run for run in runs if run["diverged_at"] is None and run["recall"] and run["classes"]])
    }
    names = {tuple(run["classes"]) for runs in found.values() for run in runs}
    return found if len(names) == 1 else {}


def _table(results: pl.DataFrame, runs: Runs, shown: list[tuple[int, str]], classes: int) -> Table:
    names = short(varied(results)) or ["runs"]
    rows = [
        (*(Entry(str(value)) for value in key or ("all",)), *(_recall(group, number) for number, _ in shown))
        for key, group in runs.items()
    ]
    held = [run["exposure"] for group in runs.values() for run in group if run.get("exposure")]
    if held:
        mean = np.array(held, float).mean(axis=0)
        shares = (Entry(f"{100 * mean[number]:.0f}", 100 * mean[number]) for number, _ in shown)
        rows.append((Entry("held by clients that come"), *[Entry("")] * (len(names) - 1), *shares))
    caption = "Share of each class's test samples that the delivered model recognises, in %."
    if len(shown) < classes:
        caption += f" The {len(shown)} of {classes} classes that are recognised least."
    columns = (*names, *(name for _, name in shown))
    return Table("classes", "Recall by class", caption, columns, tuple(rows))


def _recall(runs: list[dict[str, Any]], number: int) -> Entry:
    values = [100 * run["recall"][number] for run in runs if run["recall"][number] is not None]
    if not values:
        return Entry("no samples")
    found = estimate(values)
    return Entry(mean_deviation(found.mean, found.deviation), found.mean)


def _curves(results: pl.DataFrame, runs: Runs, number: int, name: str) -> list[Curves]:
    names = short(varied(results))
    known = {key: group for key, group in runs.items() if all(run.get("curve_recall") for run in group)}
    if not known or len(known) > MOST_LINES:
        return []
    lines = tuple(_line(_label(names, key), group, number) for key, group in known.items())
    ends = "; ".join(f"{line.label}: {line.mean[-1]:.1f} %" for line in lines)
    title = f"Recall of {name} over the rounds"
    caption = "The class that is recognised least: mean over the seeds, band of one deviation."
    return [Curves("recall", title, caption, f"{title}. At the end, {ends}.", "round", "recall in %", lines)]


def _label(names: list[str], key: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in zip(names, key, strict=True)) or "all runs"


def _line(label: str, runs: list[dict[str, Any]], number: int) -> Line:
    length = min(len(run["curve_round"]) for run in runs)
    curves = [
        100 * np.array([recall[number] for recall in run["curve_recall"][:length]], float) for run in runs
    ]
    mean, low, high = band(curves)
    rounds = runs[0]["curve_round"][:length]
    return Line(label, tuple(rounds), tuple(mean.tolist()), tuple(low.tolist()), tuple(high.tolist()))
