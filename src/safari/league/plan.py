"""Which runs a league needs: those that tune, on samples that the server holds out; then those that count.

Tuning never sees the test set: every one of its runs has `data.score = "validation"`, so that its
federation does not hold it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from safari.errors import check
from safari.experiment.spec import Spec, complete
from safari.experiment.sweep import Cell, SweepSpec, flat, make_cell
from safari.league.costs import Costs
from safari.league.entries import CENTRAL, Entry, Times
from safari.league.fedawe import rates_of
from safari.league.settings import FOLDS, Asked, Setting

HELD_OUT = {"data.validation": 1 / FOLDS, "data.score": "validation"}
"""What keeps the test set away from the runs that tune."""

NEAR = 0.01
"""Numbers of client gradients that differ by a smaller share count as equal."""

TUNED, DEFAULT, GRADIENTS = "tuned", "default", "gradients"
"""The variants of a method: with the setting that was best on the samples held out; as its authors would have
it; and tuned, trained until its clients have computed as many gradients as those of FedAvg."""


@dataclass(frozen=True)
class Planned:
    """A run of a league.

    Attributes:
        cell: the name of the run in its sweep.
        setting: the federation's.
        method: the entry's label.
        variant: `tuned`, `default` or `gradients`; in tuning the number of the point of the grid.
        point: the keys that it sets beyond the method itself.
    """

    cell: str
    setting: str
    method: str
    variant: str
    point: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """Runs, and the sweep that carries them out."""

    planned: tuple[Planned, ...]
    sweep: SweepSpec

    def to_json(self) -> bytes:
        return json.dumps([asdict(one) for one in self.planned], indent=0).encode()


def read_planned(found: Iterable[Mapping[str, Any]]) -> tuple[Planned, ...]:
    """What `to_json` wrote."""
    return tuple(Planned(**one) for one in found)


@dataclass(frozen=True)
class Chosen:
    """What tuning chose for a method in a setting.

    Attributes:
        point: the keys; none where no point was better than the others' divergence.
        score: its mean metric on the samples held out; None if every point diverged.
        rounds: after so many rounds its clients have computed as many gradients as FedAvg's; None where
            that is after as many rounds as all train, or never.
        costs: what a round costs.
    """

    point: dict[str, Any]
    score: float | None
    rounds: int | None
    costs: Costs


def tuning_plan(asked: Asked) -> Plan:
    """Every point of every grid, under every seed; each seed holds out another fold of the samples."""
    return _plan(
        (setting, entry, str(number), point, {**HELD_OUT, "data.fold": seed % FOLDS}, seed)
        for setting in asked.settings
        if setting.constants is None
        for entry in asked.entries
        for number, point in enumerate(resolved_points(setting, entry))
        for seed in _seeds(setting, asked.seeds)
    )


def final_plan(asked: Asked, chosen: Mapping[tuple[str, str], Chosen]) -> Plan:
    """Every method as tuned and by default, and tuned for equal client gradients, under every seed."""

    def variants(setting: Setting, entry: Entry) -> Iterator[tuple[str, dict[str, Any]]]:
        found = chosen[setting.key, entry.label]
        yield TUNED, found.point
        if setting.constants is not None:
            return
        yield DEFAULT, {}
        if found.rounds is not None:
            yield GRADIENTS, {**found.point, "train.rounds": found.rounds}

    return _plan(
        (setting, entry, variant, point, {}, seed)
        for setting in asked.settings
        for entry in asked.entries
        for variant, point in variants(setting, entry)
        for seed in _seeds(setting, asked.seeds)
    )


def _plan(
    wanted: Iterable[tuple[Setting, Entry, str, dict[str, Any], dict[str, Any], int]],
) -> Plan:
    planned, cells = [], {}
    for setting, entry, variant, point, more, seed in wanted:
        cell = cell_of(setting, entry, {**point, **more}, seed)
        planned.append(Planned(cell.key, setting.key, entry.label, variant, point))
        cells[cell.key] = cell
    return Plan(tuple(planned), SweepSpec({}, tuple(cell.settings for cell in cells.values())))


def cell_of(setting: Setting, entry: Entry, more: Mapping[str, Any], seed: int) -> Cell:
    """The run of a method in a setting, with further keys."""
    settings = {**_seeded(setting, seed), **entry.fixed, **more}
    if entry.label == CENTRAL:
        settings |= _taking_part(setting, seed)
    cell = make_cell({}, settings)
    for path, value in more.items():
        # A spec serves all methods: a key that this one does not have would be left out without a word.
        check(_value(cell.spec, path) is not None, path, value, f"is no key of {entry.label}")
    return cell


def _seeded(setting: Setting, seed: int) -> dict[str, Any]:
    """The spec of a setting under a seed, as one table."""
    found = {**flat(dict(setting.base)), **dict.fromkeys(setting.seeded, seed), "train.seed": seed}
    if setting.by_classes:
        data = json.dumps({"data": setting.base["data"], "train": {"seed": seed}})
        found["participation.availability.rate"] = _rates(data, seed)
    return found


@lru_cache(maxsize=16)
def _rates(data: str, seed: int) -> list[float]:
    return rates_of(complete(json.loads(data)).federation(), seed)


def _taking_part(setting: Setting, seed: int) -> dict[str, Any]:
    """For central training: who never takes part under this seed, and the size of a cohort."""
    spec = make_cell({}, _seeded(setting, seed)).spec
    roster = spec.prepare().roster
    return {"algorithm.without": list(roster.excluded_clients), "algorithm.cohort": roster.slots}


def _seeds(setting: Setting, seeds: int) -> range:
    return range(setting.seed, setting.seed + seeds)


def resolved_points(setting: Setting, entry: Entry) -> list[dict[str, Any]]:
    """The points of an entry's grid in a setting; an entry without a grid has the default alone."""
    spec = make_cell({}, {**flat(dict(setting.base)), **entry.fixed}).spec
    return [{path: _resolved(spec, value) for path, value in point.items()} for point in entry.points()]


def _resolved(spec: Spec, value: Any) -> Any:
    if not isinstance(value, Times):
        return value
    found = _value(spec, value.path)
    check(found is not None, value.path, "(nothing)", "is tuned, so that the spec must have it")
    return value.of(found)


def _value(spec: Spec, path: str) -> Any:
    """What a complete spec has under a path; None where it has nothing."""
    found: Any = spec.tables
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
