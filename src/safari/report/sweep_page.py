"""The report page of a sweep: statistics, paired differences, curves, heat maps."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from safari.report.class_blocks import class_blocks, findings
from safari.report.page import Curves, Entry, Heat, Line, Page, Table, Text
from safari.report.statistics import band
from safari.report.sweeps import ALGORITHM, differences, grouped, points, short, varied
from safari.report.tables import mean_deviation

MOST_LINES, MOST_FIGURES, MOST_NAMED = 10, 8, 12
ROUNDS, ACCURACY = "round", "test accuracy in %"


def sweep_page(
    title: str, results: pl.DataFrame, missing: list[str], spec: str, facts: dict[str, str]
) -> Page:
    """Everything that the finished runs show; which are missing is said first."""
    planned = len(results) + len(missing)
    blocks: list[Table | Curves | Heat | Text] = [_state(results, missing)]
    if len(results):
        blocks += [*findings(results), _statistics(results), *class_blocks(results)]
        blocks += [*_differences(results), *_responses(results), *_heats(results), *_curves(results)]
    subtitle = f"{len(results)} of {planned} runs finished"
    return Page(title, subtitle, tuple(blocks), spec, facts)


def line_of(label: str, runs: list[dict[str, Any]]) -> Line:
    """The delivered model over the rounds: mean over the runs, band of one deviation."""
    length = min(len(run["curve_round"]) for run in runs)
    mean, low, high = band([100 * np.array(run["curve_accuracy"][:length]) for run in runs])
    rounds = runs[0]["curve_round"][:length]
    return Line(label, tuple(rounds), tuple(mean.tolist()), tuple(low.tolist()), tuple(high.tolist()))


def _state(results: pl.DataFrame, missing: list[str]) -> Text:
    said = [
        f"{len(missing)} runs are missing; nothing stands for them." if missing else "All runs are finished."
    ]
    if missing:
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        said.append(f"Missing: {'; '.join(missing[:MOST_NAMED])}{more}.")
    diverged = int(results["diverged_at"].is_not_null().sum()) if len(results) else 0
    if diverged:
        said.append(f"{diverged} runs diverged; they are counted, and left out of all numbers.")
    return Text("state", "State", tuple(said))


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
            Entry("unknown" if row["ceiling"] is None else f"{row['ceiling']:.1f}", row["ceiling"]),
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
    """Accuracy over the rounds: one figure, or several where lines would be too many."""
    names = short(varied(results))
    found = {
        key: kept
        for key, runs in points(results).items()
        if (kept := [run for run in runs if run["diverged_at"] is None and run["curve_round"]])
    }
    split = _split(list(found), len(names))
    figures: dict[Any, dict[str, list[dict[str, Any]]]] = {}
    for key, runs in found.items():
        shown = [
            f"{name} = {value}"
            for place, (name, value) in enumerate(zip(names, key, strict=True))
            if place != split
        ]
        label = ", ".join(shown) or "all runs"
        figures.setdefault(None if split is None else key[split], {})[label] = runs
    return [
        _figure(number, "" if split is None else f", {names[split]} = {value}", lines)
        for number, (value, lines) in enumerate(figures.items())
    ]


def _split(keys: list[tuple[Any, ...]], settings: int) -> int | None:
    """By which setting to split figures: the fewest, none with too many lines if that can be."""
    if len(keys) <= MOST_LINES or settings < 2:
        return None
    sizes = [Counter(key[place] for key in keys) for place in range(settings)]
    fits = [
        place
        for place, found in enumerate(sizes)
        if max(found.values()) <= MOST_LINES and len(found) <= MOST_FIGURES
    ]
    return min(fits or range(settings), key=lambda place: len(sizes[place]))


def _figure(number: int, where: str, lines: dict[str, list[dict[str, Any]]]) -> Curves:
    chosen = list(lines)
    if len(chosen) > MOST_LINES:
        chosen = [chosen[round(place)] for place in np.linspace(0, len(chosen) - 1, MOST_LINES)]
    drawn = tuple(line_of(label, lines[label]) for label in chosen)
    ends = "; ".join(f"{line.label}: {line.mean[-1]:.1f} %" for line in drawn)
    caption = "The delivered model: mean over the seeds, band of one deviation."
    if len(chosen) < len(lines):
        caption += f" {len(chosen)} of {len(lines)} lines are drawn; the tables have all."
    return Curves(
        f"curves{number}",
        "Accuracy over the rounds" + where,
        caption,
        f"Test accuracy over the rounds. At the end, {ends}.",
        ROUNDS,
        ACCURACY,
        drawn,
    )


def _responses(results: pl.DataFrame) -> list[Curves]:
    """Final accuracy over the number that has the most values, a line for each of the others."""
    groups = grouped(results).filter(pl.col("mean").is_not_null())
    settings = groups.columns[: groups.columns.index("runs")]
    numbers = [name for name in settings if groups[name].dtype.is_numeric() and groups[name].n_unique() > 2]
    if not numbers:
        return []
    across = max(numbers, key=lambda name: groups[name].n_unique())
    others = [name for name in settings if name != across]
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in groups.sort(across).iter_rows(named=True):
        label = ", ".join(f"{name} = {row[name]}" for name in others) or "all runs"
        lines.setdefault(label, []).append(row)
    drawn = tuple(_response(label, rows, across) for label, rows in list(lines.items())[:MOST_LINES])
    caption = "The delivered model at the end: mean over the seeds, band of one deviation."
    if len(drawn) < len(lines):
        caption += f" {len(drawn)} of {len(lines)} lines are drawn; the tables have all."
    best = max(groups.iter_rows(named=True), key=lambda row: row["mean"])
    alt = f"Final test accuracy over {across}. Best: {best['mean']:.1f} % at {across} = {best[across]}."
    title = f"Final accuracy over {across}"
    return [Curves("response", title, caption, alt, across, ACCURACY, drawn)]


def _response(label: str, rows: list[dict[str, Any]], across: str) -> Line:
    spread = [row["deviation"] or 0.0 for row in rows]
    means = [row["mean"] for row in rows]
    return Line(
        label,
        tuple(float(row[across]) for row in rows),
        tuple(means),
        tuple(mean - off for mean, off in zip(means, spread, strict=True)),
        tuple(mean + off for mean, off in zip(means, spread, strict=True)),
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
