"""The figures of a sweep: accuracy over the rounds, over a number that was swept, and over two."""

import math
from collections import Counter
from typing import Any

import numpy as np

from safari.report.colours import Ink, spoken
from safari.report.metric_names import ACCURACY
from safari.report.page_blocks import Curves, Heat, Line
from safari.report.run_blocks import ceiling_line
from safari.report.settings import ALGORITHM_NAME, Setting, Settings
from safari.report.statistics import Estimate, band

MOST_LINES, MOST_FIGURES = 10, 8
ROUNDS, PERCENT = "round", "test accuracy in %"
SAME = 0.05
"""Ceilings so close (in points) are one."""


def line_of(label: str, runs: list[dict[str, Any]], ink: Ink | None = None) -> Line:
    """The delivered model over the rounds: mean over the runs, band of one deviation."""
    length = min(len(run["curve_round"]) for run in runs)
    mean, low, high = (
        tuple(part.tolist())
        for part in band([100 * np.array(run["curve_accuracy"][:length]) for run in runs])
    )
    return Line(label, tuple(runs[0]["curve_round"][:length]), mean, low, high, ink)


def ceiling_of(settings: list[Setting]) -> float | None:
    """What client-only training can reach: the mean over the runs, in %; None where settings differ."""
    means = []
    for setting in settings:
        known = [run["accuracy_ceiling"] for run in setting.sound if run["accuracy_ceiling"] is not None]
        if known:
            means.append(100 * sum(known) / len(known))
    return means[0] if means and max(means) - min(means) < SAME else None


def curves(settings: Settings) -> list[Curves]:
    """Accuracy over the rounds: one figure, or several where lines would be too many."""
    found = [
        setting
        for setting in settings.all
        if setting.sound and all(run["curve_round"] for run in setting.sound)
    ]
    split = _split([tuple(setting.values.values()) for setting in found], len(settings.names))
    figures: dict[Any, list[Setting]] = {}
    for setting in found:
        value = None if split is None else tuple(setting.values.values())[split]
        figures.setdefault(value, []).append(setting)
    apart = None if split is None else settings.names[split]
    return [_figure(settings, number, apart, lines) for number, lines in enumerate(figures.values())]


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


def _figure(settings: Settings, number: int, apart: str | None, lines: list[Setting]) -> Curves:
    """The lines that have the same value of `apart`, which the title says."""
    chosen = lines
    if len(lines) > MOST_LINES:
        chosen = [lines[round(place)] for place in np.linspace(0, len(lines) - 1, MOST_LINES)]
    said = () if apart is None else (apart,)
    inks = settings.inks(chosen)
    drawn = tuple(
        line_of(setting.label_without(*said), setting.sound, ink)
        for setting, ink in zip(chosen, inks, strict=True)
    )
    ends = "; ".join(f"{line.label}: {line.mean[-1]:.1f} %" for line in drawn)
    caption = f"The delivered model.{settings.banded}"
    if len(chosen) < len(lines):
        caption += f" {len(chosen)} of {len(lines)} lines are drawn; the tables have all."
    return Curves(
        f"curves{number}",
        "Accuracy over the rounds" + ("" if apart is None else f", {apart} = {lines[0].values[apart]}"),
        caption,
        f"Test accuracy over the rounds. At the end, {ends}.",
        ROUNDS,
        PERCENT,
        (*drawn, *ceiling_line(ceiling_of(lines), drawn[0].x)),
    )


def responses(settings: Settings) -> list[Curves]:
    """Final accuracy over the number that has the most values, a line for each of the others."""
    scored = [(setting, found) for setting in settings.all if (found := setting.estimate(ACCURACY))]
    numbers = settings.numbers()
    if not numbers or len({setting.values[numbers[0]] for setting, _ in scored}) < 3:
        return []
    across = numbers[0]
    lines: dict[str, list[tuple[Setting, Estimate]]] = {}
    for setting, found in sorted(scored, key=lambda one: one[0].values[across]):
        lines.setdefault(setting.label_without(across), []).append((setting, found))
    kept = list(lines.items())[:MOST_LINES]
    inks = settings.inks([points[0][0] for _, points in kept])
    drawn = tuple(
        _response(label, across, points, ink) for (label, points), ink in zip(kept, inks, strict=True)
    )
    caption = f"The delivered model at the end.{settings.banded}"
    if len(drawn) < len(lines):
        caption += f" {len(drawn)} of {len(lines)} lines are drawn; the tables have all."
    best, most = max(scored, key=lambda one: one[1].mean)
    alt = f"Final test accuracy over {across}. Best: {most.mean:.1f} % with {best.label}."
    return [Curves("response", f"Final accuracy by {across}", caption, alt, across, PERCENT, drawn)]


def _response(label: str, across: str, points: list[tuple[Setting, Estimate]], ink: Ink) -> Line:
    spread = [0.0 if math.isnan(found.deviation) else found.deviation for _, found in points]
    means = [found.mean for _, found in points]
    return Line(
        label,
        tuple(float(setting.values[across]) for setting, _ in points),
        tuple(means),
        tuple(max(mean - off, 0) for mean, off in zip(means, spread, strict=True)),
        tuple(min(mean + off, 100) for mean, off in zip(means, spread, strict=True)),
        ink,
    )


def heats(settings: Settings) -> list[Heat]:
    """A heat map where two numbers were swept, one for each algorithm."""
    numbers = settings.numbers()
    if len(numbers) != 2 or set(settings.names) - set(numbers) - {ALGORITHM_NAME}:
        return []
    by_algorithm: dict[str, list[Setting]] = {}
    for setting in settings.all:
        by_algorithm.setdefault(spoken(setting.algorithm), []).append(setting)
    return [
        _heat(number, numbers, f", {name}" if len(by_algorithm) > 1 else "", held)
        for number, (name, held) in enumerate(by_algorithm.items())
        if len(held) > 2
    ]


def _heat(number: int, numbers: list[str], whose: str, held: list[Setting]) -> Heat:
    across, down = numbers
    x, y = (sorted({setting.values[name] for setting in held}) for name in (across, down))
    found = {
        (setting.values[down], setting.values[across]): one.mean
        for setting in held
        if (one := setting.estimate(ACCURACY))
    }
    best = max(found, key=lambda key: found[key], default=None)
    where = "" if best is None else f" Best: {found[best]:.1f} % at {down} = {best[0]}, {across} = {best[1]}."
    return Heat(
        f"heat{number}",
        f"Accuracy by {down} and {across}{whose}",
        "Mean test accuracy of the delivered model, in %. Colours follow the number and its rank alike, so "
        "that one outlier does not hide the other differences.",
        f"Heat map of test accuracy.{where}",
        across,
        down,
        tuple(f"{value:g}" for value in x),
        tuple(f"{value:g}" for value in y),
        tuple(tuple(found.get((row, column)) for column in x) for row in y),
    )
