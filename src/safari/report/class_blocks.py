"""What a page says of single classes: recall, precision, who holds them; the worst class over the rounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from safari.report.page_blocks import Bar, Bars, Curves, Entry, Group, Line, Table
from safari.report.run_blocks import KINDS
from safari.report.settings import Setting, Settings
from safari.report.statistics import band, estimate
from safari.report.tables import mean_deviation

MOST_CLASSES, MOST_BARS, MOST_LINES = 12, 6, 10
HELD = "clients that can come hold"


def class_blocks(settings: Settings) -> list[Bars | Table | Curves]:
    """The section of the classes, and the curves of the class that is recognised least."""
    runs = [
        run for setting in settings.all for run in setting.sound if run.get("recall") and run.get("classes")
    ]
    if not runs or len({tuple(run["classes"]) for run in runs}) > 1:
        return []
    classes = list(runs[0]["classes"])
    mean = _mean(runs, "recall")
    shown = sorted(np.argsort(mean)[:MOST_CLASSES].tolist())
    worst = int(np.nanargmin(mean))
    few = len(settings.all) <= MOST_BARS
    table = [_bars(settings, runs, classes, shown)] if few else [_table(settings, classes, shown)]
    held = [] if few else _holders(runs, classes, shown)
    return [*table, *held, *_curves(settings, worst, classes[worst])]


def _mean(runs: Sequence[dict[str, Any]], column: str) -> np.ndarray:
    """By class, over the runs that know it; NaN where none does."""
    values = np.array([run[column] for run in runs], float)
    known = np.isfinite(values).sum(axis=0)
    return np.where(known > 0, np.nansum(values, axis=0) / np.maximum(known, 1), np.nan)


def _caption(classes: int, shown: int, more: str) -> str:
    caption = f"Recall: the share of a class's test samples that the delivered model recognises.{more}"
    return caption if shown == classes else f"{caption} The {shown} of {classes} classes recognised least."


def _bars(settings: Settings, runs: list[dict[str, Any]], classes: list[str], shown: list[int]) -> Bars:
    held = [run for run in runs if run.get("exposure")]
    exposure = _mean(held, "exposure") if held else None
    inks = settings.inks(settings.all)
    groups = tuple(
        Group(
            classes[number],
            _who_holds(runs[0], None if exposure is None else exposure[number], number),
            tuple(_bar(setting, ink, number) for setting, ink in zip(settings.all, inks, strict=True)),
        )
        for number in shown
    )
    more = " Precision: how often it is right where it names the class."
    if settings.seeds > 1:
        more += f" Mean and deviation over {settings.seeds} seeds."
    caption = _caption(len(classes), len(shown), more)
    columns = ("recall in %", "precision in %")
    return Bars("classes", "Class by class", caption, "class", columns, groups, 100)


def _who_holds(run: dict[str, Any], exposure: float | None, number: int) -> str:
    said = []
    if run.get("confusion"):
        said.append(f"{sum(run['confusion'][number]):,} test samples")
    if exposure is not None:
        share = f"{100 * exposure:.0f} %" if exposure in (0, 1) or 0.01 <= exposure <= 0.99 else "a trace"
        said.append(f"{HELD} {'nothing of it' if exposure == 0 else f'{share} of its training samples'}")
    return "; ".join(said)


def _bar(setting: Setting, ink: Any, number: int) -> Bar:
    recall = _known(setting, "recall", number)
    precision = _known(setting, "class_precision", number)
    texts = (_written(recall, "no samples"), _written(precision, "never named"))
    if not recall:
        return Bar(setting.label, None, texts, ink=ink)
    found = estimate(recall)
    if found.count == 1:
        return Bar(setting.label, found.mean, texts, ink=ink)
    return Bar(
        setting.label, found.mean, texts, found.mean - found.deviation, found.mean + found.deviation, ink
    )


def _known(setting: Setting, column: str, number: int) -> list[float]:
    """In per cent, of the runs that know it."""
    values = [run[column][number] for run in setting.sound if run.get(column)]
    return [100 * value for value in values if value is not None]


def _written(values: list[float], otherwise: str) -> str:
    if not values:
        return otherwise
    found = estimate(values)
    return mean_deviation(found.mean, found.deviation if found.count > 1 else None)


def _table(settings: Settings, classes: list[str], shown: list[int]) -> Table:
    """A row a setting, a column a class."""
    rows = [
        (
            *setting.entries,
            *(_entry(_known(setting, "recall", number)) for number in shown),
        )
        for setting in settings.all
    ]
    caption = _caption(len(classes), len(shown), " In %.")
    columns = (*settings.names, *(classes[number] for number in shown))
    return Table("classes", "Recall by class", caption, columns, tuple(rows))


def _holders(runs: list[dict[str, Any]], classes: list[str], shown: list[int]) -> list[Bars]:
    """What those that can come hold of each class, as bars of their own."""
    held = [run for run in runs if run.get("exposure")]
    if not held:
        return []
    mean = 100 * _mean(held, "exposure")
    ink = KINDS["client"]
    bars = tuple(Bar(classes[number], mean[number], (f"{mean[number]:.0f} %",), ink=ink) for number in shown)
    caption = "The share of each class's training samples that clients who can come hold; mean over the runs."
    groups = (Group("", "", bars),)
    return [Bars("exposure", "Who holds the classes", caption, "class", ("held",), groups, 100)]


def _entry(values: list[float]) -> Entry:
    """The mean alone: a table of many classes has no room for deviations."""
    if not values:
        return Entry("no samples")
    mean = sum(values) / len(values)
    return Entry(f"{mean:.1f}", mean)


def _curves(settings: Settings, number: int, name: str) -> list[Curves]:
    drawn = [
        setting
        for setting in settings.all
        if setting.sound and all(run.get("curve_recall") for run in setting.sound)
    ]
    if not drawn or len(drawn) > MOST_LINES:
        return []
    inks = settings.inks(drawn)
    lines = tuple(_line(setting, ink, number) for setting, ink in zip(drawn, inks, strict=True))
    ends = "; ".join(f"{line.label}: {line.mean[-1]:.1f} %" for line in lines)
    title = f"Recall of {name} over the rounds"
    caption = f"The class that is recognised least.{settings.banded}"
    return [Curves("recall", title, caption, f"{title}. At the end, {ends}.", "round", "recall in %", lines)]


def _line(setting: Setting, ink: Any, number: int) -> Line:
    runs = setting.sound
    length = min(len(run["curve_round"]) for run in runs)
    curves = [
        100 * np.array([recall[number] for recall in run["curve_recall"][:length]], float) for run in runs
    ]
    mean, low, high = (tuple(part.tolist()) for part in band(curves))
    return Line(setting.label, tuple(runs[0]["curve_round"][:length]), mean, low, high, ink)
