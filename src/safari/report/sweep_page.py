"""The report page of a sweep: statistics, paired differences, curves, heat maps."""

from typing import Any

import numpy as np
import polars as pl

from safari.report.page import Curves, Entry, Heat, Line, Page, Table, Text
from safari.report.sweeps import ALGORITHM, differences, grouped, points, short, varied
from safari.report.tables import mean_deviation

MOST_LINES = 10
ROUNDS, ACCURACY = "round", "test accuracy in %"


def sweep_page(title: str, results: pl.DataFrame, planned: int, spec: str, facts: dict[str, str]) -> Page:
    """Everything that the finished runs show; how many are missing is said first."""
    blocks: list[Table | Curves | Heat | Text] = [_state(len(results), planned)]
    if len(results):
        blocks += [_statistics(results), *_differences(results), *_curves(results), *_heats(results)]
    subtitle = f"{len(results)} of {planned} runs finished"
    return Page(title, subtitle, tuple(blocks), spec, facts)


def line_of(label: str, runs: list[dict[str, Any]]) -> Line:
    """The delivered model over the rounds: mean over the runs, band of one deviation."""
    length = min(len(run["curve_round"]) for run in runs)
    curves = np.array([_delivered(run)[:length] for run in runs])
    mean = curves.mean(axis=0)
    spread = curves.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros_like(mean)
    rounds = runs[0]["curve_round"][:length]
    return Line(
        label,
        tuple(rounds),
        tuple(mean.tolist()),
        tuple((mean - spread).tolist()),
        tuple((mean + spread).tolist()),
    )


def _delivered(run: dict[str, Any]) -> list[float]:
    """Accuracy of the model that would be handed over: a server round's, else the current."""
    pairs = zip(run["curve_accuracy_synced"], run["curve_accuracy"], strict=True)
    return [100 * (now if synced is None else synced) for synced, now in pairs]


def _state(finished: int, planned: int) -> Text:
    missing = planned - finished
    said = (
        "All runs are finished." if not missing else f"{missing} runs are missing; nothing stands for them."
    )
    return Text("state", "State", (said,))


def _statistics(results: pl.DataFrame) -> Table:
    groups = grouped(results)
    settings = groups.columns[: groups.columns.index("runs")]
    rows = tuple(
        (
            *(_setting(row[name]) for name in settings),
            Entry(str(row["runs"]), row["runs"]),
            Entry(mean_deviation(row["mean"], row["deviation"]), row["mean"]),
            Entry("" if row["low"] is None else f"{row['low']:.2f} to {row['high']:.2f}", row["low"]),
            Entry(mean_deviation(row["last"], row["last_deviation"]), row["last"]),
            Entry(f"{row['ceiling']:.1f}", row["ceiling"]),
            Entry(str(row["diverged"]), row["diverged"]),
        )
        for row in groups.iter_rows(named=True)
    )
    columns = ("runs", "accuracy", "95 % interval", "after the last round", "client ceiling", "diverged")
    caption = "Test accuracy in % of the delivered model: mean and deviation over the seeds."
    return Table("statistics", "Statistics", caption, (*settings, *columns), rows)


def _differences(results: pl.DataFrame) -> list[Table]:
    apart = differences(results)
    if apart is None:
        return []
    settings = apart.columns[: apart.columns.index("runs")]
    rows = tuple(
        (
            *(_setting(row[name]) for name in settings),
            Entry(str(row["runs"]), row["runs"]),
            Entry(f"{row['mean']:+.2f}", row["mean"], shade=row["mean"]),
            Entry("" if row["low"] is None else f"{row['low']:+.2f} to {row['high']:+.2f}", row["low"]),
        )
        for row in apart.iter_rows(named=True)
    )
    caption = "In points, seed by seed: both sides saw the same clients in the same rounds."
    columns = (*settings, "runs", "difference", "95 % interval")
    return [Table("differences", "Paired differences", caption, columns, rows)]


def _curves(results: pl.DataFrame) -> list[Curves]:
    """One figure, or one for each value of the first setting where lines would be too many."""
    names = short(varied(results))
    found = {key: runs for key, runs in points(results).items() if all(run["curve_round"] for run in runs)}
    figures: dict[Any, list[Line]] = {}
    split = len(found) > MOST_LINES
    for key, runs in found.items():
        shown = list(zip(names, key, strict=True))[1 if split else 0 :]
        label = ", ".join(f"{name} = {value}" for name, value in shown) or "all runs"
        figures.setdefault(key[0] if split else None, []).append(line_of(label, runs))
    return [
        _figure(number, names[0], value, lines[:MOST_LINES])
        for number, (value, lines) in enumerate(figures.items())
    ]


def _figure(number: int, name: str, value: Any, lines: list[Line]) -> Curves:
    title = "Accuracy over the rounds" + ("" if value is None else f", {name} = {value}")
    ends = "; ".join(f"{line.label}: {line.mean[-1]:.1f} %" for line in lines)
    return Curves(
        f"curves{number}",
        title,
        "The delivered model: mean over the seeds, band of one deviation.",
        f"Test accuracy over the rounds. At the end, {ends}.",
        ROUNDS,
        ACCURACY,
        tuple(lines),
    )


def _heats(results: pl.DataFrame) -> list[Heat]:
    """A heat map where two numbers were swept, one for each algorithm."""
    groups = grouped(results)
    settings = groups.columns[: groups.columns.index("runs")]
    numbers = [name for name in settings if groups[name].dtype.is_numeric()]
    if len(numbers) != 2 or set(settings) - set(numbers) - {ALGORITHM}:
        return []
    several = groups.partition_by(ALGORITHM, as_dict=True) if ALGORITHM in settings else {("",): groups}
    return [
        _heat(number, numbers, str(name[0]), part)
        for number, (name, part) in enumerate(several.items())
        if len(part) > 2
    ]


def _heat(number: int, numbers: list[str], algorithm: str, part: pl.DataFrame) -> Heat:
    across, down = numbers[1], numbers[0]
    x, y = sorted(part[across].unique()), sorted(part[down].unique())
    means = {(row[down], row[across]): row["mean"] for row in part.iter_rows(named=True)}
    title = f"Accuracy by {down} and {across}" + (f", {algorithm}" if algorithm else "")
    best = max(means, key=lambda key: means[key] or 0)
    alt = f"Heat map of test accuracy. Best: {means[best]:.1f} % at {down} = {best[0]}, {across} = {best[1]}."
    return Heat(
        f"heat{number}", title, "Mean test accuracy in % of the delivered model.", alt, across, down,
        tuple(f"{value:g}" for value in x), tuple(f"{value:g}" for value in y),
        tuple(tuple(means.get((row, column)) for column in x) for row in y),
    )  # fmt: skip


def _setting(value: Any) -> Entry:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return Entry("" if value is None else str(value), float(value) if number else None)
