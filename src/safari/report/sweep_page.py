"""The report page of a sweep or a comparison: findings, numbers, differences, classes, curves, clients."""

import math
from typing import Any

import polars as pl

from safari.report.class_blocks import class_blocks
from safari.report.client_blocks import who_took_part
from safari.report.colours import algorithm_inks, spoken
from safari.report.findings import findings, known_metrics
from safari.report.metric_names import Metric
from safari.report.page_blocks import Bar, Bars, Block, Entry, Group, Page, Table, Text
from safari.report.settings import Settings, entry_of
from safari.report.sweep_figures import ceiling_of, curves, heats, responses
from safari.report.sweeps import METHODS, differences, short, varied
from safari.report.tables import mean_deviation

MOST_BARS, MOST_FIRST = 24, 12
"""More differences are a table; the table of more settings comes last."""


def sweep_page(
    title: str, results: pl.DataFrame, missing: list[str], spec: str, facts: dict[str, str]
) -> Page:
    """Everything that the finished runs show; which are missing is said at the top."""
    planned = len(results) + len(missing)
    subtitle = f"{len(results)} of {planned} runs finished" if missing else f"{planned} runs"
    if not len(results):
        said = (f"{len(missing)} runs are missing: {'; '.join(missing[:6])}.",)
        return Page(title, subtitle, (Text("findings", "Findings", said),), spec, facts)
    settings = Settings.of(results)
    table = [_side_by_side(settings)] if settings.names else []
    many = len(settings.all) > MOST_FIRST
    blocks: list[Block] = [
        findings(settings, missing),
        *([] if many else table),
        *_differences(settings, results),
        *heats(settings),
        *responses(settings),
        *class_blocks(settings),
        *curves(settings),
        *who_took_part(settings),
        *(table if many else []),
    ]
    return Page(title, subtitle + _runs(settings), tuple(blocks), spec, facts)


def _runs(settings: Settings) -> str:
    """What the runs are, in words."""
    rounds = {run.get("rounds") for setting in settings.all for run in setting.runs}
    apart = f"; {len(settings.all)} settings" if len(settings.all) > 1 else ""
    seeds = f", {settings.seeds} seeds" if settings.seeds > 1 else ""
    long = f", {next(iter(rounds))} rounds each" if len(rounds) == 1 and None not in rounds else ""
    return f"{apart}{seeds}{long}"


def _side_by_side(settings: Settings) -> Table:
    """A row a setting, a column a metric; what is the same for all stands in the caption."""
    metrics = known_metrics(settings)
    diverged = any(len(setting.sound) < len(setting.runs) for setting in settings.all)
    counts = {len(setting.runs) for setting in settings.all}
    ceilings = [_mean_ceiling(setting.runs) for setting in settings.all]
    one = ceiling_of(list(settings.all))
    bounded = one is None and any(ceiling is not None and ceiling < 100 for ceiling in ceilings)
    rows = tuple(
        (
            *setting.entries,
            *(_score(setting.estimate(metric)) for metric in metrics),
            *([Entry("unknown" if ceiling is None else f"{ceiling:.1f}", ceiling)] * bounded),
            *([Entry(str(len(setting.runs)), len(setting.runs))] * (len(counts) > 1)),
            *([Entry(str(len(setting.runs) - len(setting.sound)))] * diverged),
        )
        for setting, ceiling in zip(settings.all, ceilings, strict=True)
    )
    last = ["client ceiling"] * bounded + ["runs"] * (len(counts) > 1) + ["diverged"] * diverged
    over = f": mean and deviation over {settings.seeds} seeds" if settings.seeds > 1 else ""
    caption = f"The delivered model on the test set, in %{over}."
    if one is not None and one < 100:
        caption += f" Training on clients alone can reach {one:.1f} %."
    columns = (*settings.names, *(metric.title for metric in metrics), *last)
    return Table("statistics", "Side by side", caption, columns, rows)


def _mean_ceiling(runs: list[dict[str, Any]]) -> float | None:
    known = [run["accuracy_ceiling"] for run in runs if run["accuracy_ceiling"] is not None]
    return 100 * sum(known) / len(known) if known else None


def _score(found: Any) -> Entry:
    if found is None:
        return Entry("missing")
    if math.isnan(found.deviation):
        return Entry(f"{found.mean:.2f}", found.mean)
    hint = f"95 % interval {found.low:.2f} to {found.high:.2f}, {found.count} runs"
    return Entry(mean_deviation(found.mean, found.deviation), found.mean, hint=hint)


def _differences(settings: Settings, results: pl.DataFrame) -> list[Bars | Table]:
    """Each algorithm against the first, by each metric; bars where they are few."""
    metrics = known_metrics(settings)
    found = [(metric, differences(results, (metric,))) for metric in metrics]
    known = [(metric, table) for metric, table in found if table is not None]
    if not known:
        return []
    place = _method(results)
    first = spoken(str(known[0][1][place][0]).rpartition(" - ")[2])
    title = f"Against {first}"
    caption = f"Differences to {first} in points"
    if settings.seeds > 1:
        caption += ", seed by seed: both sides saw the same clients in the same rounds. Dots are means over "
        caption += f"{settings.seeds} seeds, lines 95 % intervals; a line across zero is no difference."
    else:
        caption += " for one seed; how much of that is chance is not known."
    if sum(map(len, (table for _, table in known))) > MOST_BARS:
        return [_difference_table(title, caption, known)]
    return [_difference_bars(title, caption, results, known, settings)]


def _method(results: pl.DataFrame) -> str:
    """The column of `differences` that says which method is compared with which."""
    keys = varied(results)
    return short(keys)[keys.index(next(key for key in METHODS if key in keys))]


def _difference_bars(
    title: str,
    caption: str,
    results: pl.DataFrame,
    known: list[tuple[Metric, pl.DataFrame]],
    settings: Settings,
) -> Bars:
    place = _method(results)
    methods = [str(row[place]).split(" - ")[0] for _, table in known for row in table.iter_rows(named=True)]
    inks = algorithm_inks([*(setting.algorithm for setting in settings.all), *methods])
    groups = []
    for metric, table in known:
        rows = list(table.iter_rows(named=True))
        groups.append(Group(metric.title, "", tuple(_difference_bar(row, place, inks) for row in rows)))
    columns = ("difference", "95 % interval")
    return Bars("differences", title, caption, "metric", columns, tuple(groups))


def _difference_bar(row: dict[str, Any], place: str, inks: Any) -> Bar:
    names = list(row)[: list(row).index("runs")]
    algorithm = row[place].rpartition(" - ")[0]
    words = [spoken(algorithm) if name == place else f"{name} = {row[name]}" for name in names]
    between = "one seed" if row["low"] is None else f"{row['low']:+.1f} to {row['high']:+.1f}"
    texts = (f"{row['mean']:+.2f}", between)
    return Bar(", ".join(words), row["mean"], texts, row["low"], row["high"], inks[algorithm])


def _difference_table(title: str, caption: str, known: list[tuple[Metric, pl.DataFrame]]) -> Table:
    rows = tuple(
        (
            Entry(metric.title),
            *(entry_of(name, row[name]) for name in list(row)[: list(row).index("runs")]),
            Entry(f"{row['mean']:+.2f}", row["mean"], shade=row["mean"]),
            Entry("" if row["low"] is None else f"{row['low']:+.2f} to {row['high']:+.2f}", row["low"]),
        )
        for metric, table in known
        for row in table.iter_rows(named=True)
    )
    names = known[0][1].columns[: known[0][1].columns.index("runs")]
    columns = ("metric", *names, "difference", "95 % interval")
    return Table("differences", title, caption, columns, rows)
