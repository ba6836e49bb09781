"""What tuning chooses: the best point of every method's grid, by samples that the server held out."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from safari.errors import check
from safari.league.costs import Costs, costs_of
from safari.league.entries import Entry
from safari.league.plan import HELD_OUT, NEAR, Chosen, Planned, cell_of
from safari.league.settings import METRIC, Asked, Setting
from safari.report.metric_names import Metric

WORST = (-math.inf, -math.inf)


def choose(asked: Asked, planned: Sequence[Planned], results: pl.DataFrame) -> dict[tuple[str, str], Chosen]:
    """The best point of every method in every setting.

    A point at which a run diverged is not chosen. Equal scores are told apart by the loss, then by the order
    of the grid. If runs diverged at every point, the method keeps its default.

    Raises:
        InputError: if a run was scored on anything but samples that were held out.
    """
    rows = {row["cell"]: row for row in results.iter_rows(named=True)}
    points: dict[tuple[str, str], dict[str, list[Planned]]] = {}
    for one in planned:
        points.setdefault((one.setting, one.method), {}).setdefault(one.variant, []).append(one)
    return {
        (setting.key, entry.label): _best(
            setting, entry, list(points[setting.key, entry.label].values()), rows
        )
        if setting.constants is None
        else _printed(setting, entry)
        for setting in asked.settings
        for entry in asked.entries
    }


def _best(
    setting: Setting, entry: Entry, points: list[list[Planned]], rows: Mapping[str, Mapping[str, Any]]
) -> Chosen:
    scored = [(_score([rows[one.cell] for one in runs], setting.scored), runs) for runs in points]
    score, runs = max(scored, key=lambda pair: pair[0])
    found = {} if score == WORST else runs[0].point
    costs = costs_of(cell_of(setting, entry, found, setting.seed).spec)
    if score == WORST:
        return Chosen({}, None, None, costs)
    rounds = _rounds_of_equal_gradients(rows[runs[0].cell], setting.rounds, costs)
    return Chosen(found, score[0], rounds, costs)


def _printed(setting: Setting, entry: Entry) -> Chosen:
    """What a paper had, which is not tuned."""
    point = dict((setting.constants or {}).get(entry.label, {}))
    return Chosen(point, None, None, costs_of(cell_of(setting, entry, point, setting.seed).spec))


def _score(runs: Sequence[Mapping[str, Any]], metric: Metric) -> tuple[float, float]:
    """What the best point has the highest of: the mean metric, then less loss."""
    for run in runs:
        scored_on = json.loads(run["settings"]).get("data.score")
        hint = "is what a run was scored on; nothing is tuned on the test set"
        check(scored_on == HELD_OUT["data.score"], "data.score", scored_on or "test", hint)
    if any(run["diverged_at"] is not None for run in runs):
        return WORST
    # A class of which a part has no sample has no recall there, whichever the point.
    scores = [score for run in runs if (score := metric.of(dict(run))) is not None]
    check(bool(scores), METRIC, metric.name, "cannot be told: no sample that the server held out is of it")
    return _mean(scores), -_mean(run["loss"] for run in runs)


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def _rounds_of_equal_gradients(run: Mapping[str, Any], rounds: int, costs: Costs) -> int | None:
    """After how many rounds the clients have computed the gradients of as many rounds of FedAvg."""
    asked = run["client_rounds"] + run["both_rounds"]
    if not asked or not costs.client_gradients:
        return None
    budget = (rounds - run["idle_rounds"]) * costs.plain_gradients
    wanted = round(rounds * budget / (asked * costs.client_gradients))
    return None if abs(wanted - rounds) <= NEAR * rounds else wanted
