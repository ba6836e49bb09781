"""The table of a league: a row a method, what it gives beside what it costs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from safari.algorithms import About
from safari.league.directory import League
from safari.league.entries import CENTRAL, EVERYONE, FORMS, SAFARI
from safari.league.plan import DEFAULT, GRADIENTS, TUNED, Chosen
from safari.report.statistics import Estimate, estimate, paired

Runs = dict[int, dict[str, Any]]
"""Finished runs by seed."""


@dataclass(frozen=True)
class Row:
    """What a method gives in a setting, and what it costs; shares in per cent, differences in points.

    Attributes:
        score: what is tuned for, of the delivered model.
        difference: `score` less SAFARI's, paired over the seeds; None for SAFARI itself.
        default: the score by the method's own default.
        gradients: the score where the clients have computed as many gradients as FedAvg's.
        gradients_difference: `gradients` less SAFARI's.
        accuracy: of the delivered model.
        last: accuracy of the model after the last round.
        missing: mean recall of the classes that nobody holds who takes part; None where there are none.
        worst: recall of the class that is recognised least.
        client_gradients: of how many samples all clients together computed gradients, in thousands.
        server_steps: of the server, in all rounds.
        down, up: models sent to clients and back, in all rounds.
        diverged: how many of the tuned runs did.
        about: what the method states about itself.
        chosen: what tuning chose.
    """

    setting: str
    method: str
    runs: int
    score: Estimate | None
    difference: Estimate | None
    default: Estimate | None
    gradients: Estimate | None
    gradients_difference: Estimate | None
    accuracy: Estimate | None
    last: Estimate | None
    missing: Estimate | None
    worst: Estimate | None
    client_gradients: float | None
    server_steps: float | None
    down: float | None
    up: float | None
    diverged: int
    about: About | None
    chosen: Chosen

    @property
    def reference(self) -> bool:
        """Whether it is no rival: it has what no method has."""
        return self.method in (EVERYONE, CENTRAL)

    @property
    def form(self) -> bool:
        """Whether it is a form of SAFARI."""
        return self.method in FORMS

    @property
    def passes_ceiling(self) -> bool | None:
        """Whether it can get classes right that nobody who takes part holds; None where nobody says."""
        return True if self.reference else None if self.about is None else self.about.passes_ceiling


def rows_of(league: League, setting: str) -> list[Row]:
    """The methods of a setting, the best first."""
    runs = _runs(league, setting)
    missing = _missing_classes(league, setting)
    safari = {variant: runs.get((SAFARI, variant), {}) for variant in (TUNED, GRADIENTS)}
    found = [
        _row(league, setting, method, runs, safari, missing)
        for method in league.methods
        if (setting, method) in league.chosen
    ]
    return sorted(found, key=lambda row: -1.0 if row.score is None else -row.score.mean)


def _runs(league: League, setting: str) -> dict[tuple[str, str], Runs]:
    """The finished runs of a setting by method and variant; equal gradients are those of equal rounds where
    these cost as much."""
    rows = {row["cell"]: row for row in league.results.iter_rows(named=True)}
    found: dict[tuple[str, str], Runs] = {}
    for one in league.planned:
        if one.setting == setting and one.cell in rows:
            row = rows[one.cell]
            found.setdefault((one.method, one.variant), {})[row["seed"]] = row
    for method in league.methods:
        if (method, TUNED) in found:
            found.setdefault((method, GRADIENTS), found[method, TUNED])
    return found


def _missing_classes(league: League, setting: str) -> dict[int, list[int]]:
    """By seed, the classes that nobody holds who takes part."""
    found: dict[int, list[int]] = {}
    rows = {row["cell"]: row for row in league.results.iter_rows(named=True)}
    for one in league.planned:
        if one.setting == setting and one.method != EVERYONE and one.cell in rows:
            row = rows[one.cell]
            if row["exposure"] is not None:
                found[row["seed"]] = [place for place, share in enumerate(row["exposure"]) if share == 0]
    return found


def _row(
    league: League,
    setting: str,
    method: str,
    runs: Mapping[tuple[str, str], Runs],
    safari: Mapping[str, Runs],
    missing: Mapping[int, Sequence[int]],
) -> Row:
    chosen = league.chosen[setting, method]
    scored = next(one.scored for one in league.settings if one.key == setting)

    def of(run: Mapping[str, Any]) -> float | None:
        return scored.of(dict(run))

    tuned, equal = runs.get((method, TUNED), {}), runs.get((method, GRADIENTS), {})

    def recall_of_missing(run: Mapping[str, Any]) -> float | None:
        shares = [run["recall"][place] for place in missing.get(run["seed"], ())] if run["recall"] else []
        known = [share for share in shares if share is not None]
        return sum(known) / len(known) if known else None

    return Row(
        setting=setting,
        method=method,
        runs=len(tuned),
        score=_estimate(tuned, of),
        difference=None if method == SAFARI else paired(_sound(tuned, of), _sound(safari[TUNED], of)),
        default=_estimate(runs.get((method, DEFAULT), {}), of),
        gradients=_estimate(equal, of),
        gradients_difference=None
        if method == SAFARI
        else paired(_sound(equal, of), _sound(safari[GRADIENTS], of)),
        accuracy=_estimate(tuned, _column("accuracy")),
        last=_estimate(tuned, _column("accuracy_round")),
        missing=_estimate(tuned, recall_of_missing),
        worst=_estimate(tuned, _column("worst_recall")),
        **_costs(tuned, chosen, league.about.get(method)),
        diverged=sum(run["diverged_at"] is not None for run in tuned.values()),
        about=league.about.get(method),
        chosen=chosen,
    )


def _column(name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda run: run[name]


def _sound(runs: Runs, of: Callable[[Mapping[str, Any]], float | None]) -> dict[int, float]:
    """By seed and in per cent; runs that diverged are left out."""
    found = {seed: of(run) for seed, run in runs.items() if run["diverged_at"] is None}
    return {seed: 100 * value for seed, value in found.items() if value is not None}


def _estimate(runs: Runs, of: Callable[[Mapping[str, Any]], float | None]) -> Estimate | None:
    values = list(_sound(runs, of).values())
    return estimate(values) if values else None


def _costs(runs: Runs, chosen: Chosen, about: About | None) -> dict[str, float | None]:
    """Means over the seeds of what the runs cost."""
    costs, rows = chosen.costs, list(runs.values())
    names = ("client_gradients", "server_steps", "down", "up")
    if not rows:
        return dict.fromkeys(names)
    up = _mean(rows, "bytes_up") / costs.model_bytes
    reports = up / (about.up or 1) if about is not None else up
    rounds_of_server = _mean(rows, "server_rounds") + _mean(rows, "both_rounds")
    return dict(
        zip(
            names,
            (
                reports * costs.client_gradients / 1000,
                rounds_of_server * costs.server_steps,
                _mean(rows, "bytes_down") / costs.model_bytes,
                up,
            ),
            strict=True,
        )
    )


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    return sum(row[name] for row in rows) / len(rows)


def rivals(rows: Sequence[Row]) -> list[Row]:
    """All but the references and the forms of SAFARI."""
    return [row for row in rows if not row.reference and not row.form]


def better_than_safari(rows: Sequence[Row]) -> list[Row]:
    """Rivals whose difference to SAFARI has an interval above zero."""
    return [row for row in rivals(rows) if row.difference is not None and row.difference.low > 0]


def flat_table(rows: Sequence[Row]) -> pl.DataFrame:
    """The rows as plain columns, for a file."""
    return pl.DataFrame([_flat(row) for row in rows], infer_schema_length=None)


def _flat(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(Row):
        value = getattr(row, field.name)
        if isinstance(value, Estimate) or field.name in ESTIMATES:
            for part in ("mean", "deviation", "low", "high"):
                found[f"{field.name}_{part}"] = None if value is None else getattr(value, part)
        elif field.name == "about":
            found |= {name: None if value is None else getattr(value, name) for name in FACTS}
        elif field.name == "chosen":
            found |= {"tuned": str(value.point), "validation": value.score, "rounds_equal": value.rounds}
        else:
            found[field.name] = value
    return found


ESTIMATES = (
    "score", "difference", "default", "gradients", "gradients_difference", "accuracy", "last", "missing",
    "worst",
)  # fmt: skip
FACTS = (
    "server_set", "label_counts", "rates", "raw_samples", "passes_ceiling", "server_memory",
    "for_each_client", "client_memory", "extra",
)  # fmt: skip
