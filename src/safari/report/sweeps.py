"""A sweep's results, grouped: a row a point of the grid, statistics over its seeds."""

import json
import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from safari.report.metric_names import ACCURACY, Metric
from safari.report.statistics import Estimate, estimate, paired

SEEDS = ("train.seed", "data.seed", "participation.seed")
ALGORITHM = "algorithm.name"
METHODS = (ALGORITHM, "algorithm.clients.name", "algorithm.server.name")
"""Settings that say which method is trained; differences are taken over the first of them that is varied."""


def varied(results: pl.DataFrame) -> list[str]:
    """The settings in which the cells differ, seeds apart; one that some cells lack is one."""
    values: dict[str, dict[str, int]] = {}
    for text in results["settings"]:
        for name, value in json.loads(text).items():
            values.setdefault(name, {}).setdefault(json.dumps(value), 0)
            values[name][json.dumps(value)] += 1
    return [
        name
        for name, found in values.items()
        if (len(found) > 1 or sum(found.values()) < len(results)) and name not in SEEDS
    ]


def short(names: list[str]) -> list[str]:
    """The last part of each path, where that tells them apart."""
    last = [name.rsplit(".", 1)[-1] for name in names]
    return [
        tail if last.count(tail) == 1 and tail != "name" else name
        for name, tail in zip(names, last, strict=True)
    ]


def points(results: pl.DataFrame) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Rows by their varied settings, in the order of the sweep."""
    names = varied(results)
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in results.iter_rows(named=True):
        settings = json.loads(row["settings"])
        key = tuple(_plain(settings.get(name)) for name in names)
        found.setdefault(key, []).append(row)
    return found


def grouped(results: pl.DataFrame, metrics: Sequence[Metric] = (ACCURACY,)) -> pl.DataFrame:
    """A row a point of the grid: the delivered model by each metric, shares in per cent.

    `mean`, `deviation`, `low` and `high` are of the first metric; of each other one there are two columns,
    its name and the name with `_deviation`.
    """
    names = varied(results)
    rows = []
    for key, runs in points(results).items():
        last = estimate_of(runs, "accuracy_round")
        others = {one.name: _estimated(runs, one) for one in metrics[1:]}
        rows.append(
            {
                **dict(zip(short(names), key, strict=True)),
                "runs": len(runs),
                **_columns(_estimated(runs, metrics[0])),
                **{name: found and found.mean for name, found in others.items()},
                **{
                    f"{name}_deviation": found and _or_none(found.deviation) for name, found in others.items()
                },
                "last": last and last.mean,
                "last_deviation": last and _or_none(last.deviation),
                "ceiling": _mean_ceiling(runs),
                "diverged": sum(run["diverged_at"] is not None for run in runs),
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def _mean_ceiling(runs: list[dict[str, Any]]) -> float | None:
    """In percent; None where no run knows it: real clients do not show their data."""
    known = [run["accuracy_ceiling"] for run in runs if run["accuracy_ceiling"] is not None]
    return 100 * sum(known) / len(known) if known else None


def differences(results: pl.DataFrame, metrics: Sequence[Metric] = (ACCURACY,)) -> pl.DataFrame | None:
    """Each method minus the first, seed by seed; None unless methods were swept.

    With several metrics the first column says which.
    """
    found = [(metric, _differences(results, metric)) for metric in metrics]
    known = [(metric, table) for metric, table in found if table is not None]
    if len(metrics) == 1 or not known:
        return known[0][1] if known else None
    return pl.concat(
        [table.select(pl.lit(metric.title).alias("metric"), pl.all()) for metric, table in known],
        how="vertical_relaxed",
    )


def _differences(results: pl.DataFrame, metric: Metric) -> pl.DataFrame | None:
    names = varied(results)
    method = next((name for name in METHODS if name in names), None)
    if method is None:
        return None
    place = names.index(method)
    scores = {key: _scores(runs, metric) for key, runs in points(results).items()}
    first = next(iter(scores))[place]
    rows = []
    for key, mine in scores.items():
        baseline = scores.get((*key[:place], first, *key[place + 1 :]))
        difference = paired(mine, baseline) if key[place] != first and baseline else None
        if difference is not None:
            label = (*key[:place], f"{key[place]} - {first}", *key[place + 1 :])
            rows.append(
                {
                    **dict(zip(short(names), label, strict=True)),
                    "runs": difference.count,
                    **_columns(difference.within(-100, 100) if metric.share else difference),
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def estimate_of(runs: list[dict[str, Any]], column: str) -> Estimate | None:
    """Statistics of a column in percent over the runs that did not diverge; None without any."""
    values = [100 * run[column] for run in runs if run["diverged_at"] is None and run[column] is not None]
    return estimate(values).within(0, 100) if values else None


def _estimated(runs: list[dict[str, Any]], metric: Metric) -> Estimate | None:
    """Statistics of a metric over the runs that did not diverge; None where it is not known."""
    values = [metric.of(run) for run in runs if run["diverged_at"] is None]
    known = [metric.scale * value for value in values if value is not None]
    if not known:
        return None
    return estimate(known).within(0, 100) if metric.share else estimate(known)


def _scores(runs: list[dict[str, Any]], metric: Metric) -> dict[int, float]:
    """A metric by seed, as it is shown."""
    found = {run["seed"]: metric.of(run) for run in runs if run["diverged_at"] is None}
    return {seed: metric.scale * value for seed, value in found.items() if value is not None}


def _columns(found: Estimate | None) -> dict[str, float | None]:
    if found is None:
        return {"mean": None, "deviation": None, "low": None, "high": None}
    names = ("mean", "deviation", "low", "high")
    return {name: _or_none(getattr(found, name)) for name in names}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
