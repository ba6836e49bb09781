"""The pilot: a few runs around a spec, scored on samples that the server holds out."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from safari.advise.goal import Goal
from safari.data import Coverage, Federation
from safari.devices import cores, on_cpu
from safari.engine.diagnostics import Observer
from safari.engine.size import check_fits
from safari.engine.training import Training
from safari.errors import InputError
from safari.experiment.spec import Spec, complete
from safari.experiment.sweep import SweepSpec, make_cell
from safari.experiment.sweep.cells import DATA_SEED, EXCLUSION_SEED, SEED
from safari.report.metric_names import check_known
from safari.report.statistics import Estimate, estimate, paired_over_folds

LOOKS = 10
WARM_ROUNDS = 25
"""So many rounds are trained before bias and noise are looked at."""
SPARE = 1.3
"""Runs beside each other are slower than one alone."""
LEAST_ROUNDS = 20
FOLDS = 6
HELD_OUT = 1 / FOLDS
"""The share of the server's samples that a run is scored on; the folds go through all of them."""
Sweep = Callable[[SweepSpec, Path], pl.DataFrame]
"""Carries a sweep out in a folder and returns its results."""


@dataclass(frozen=True)
class Arm:
    """One way to train: an algorithm, its q, server steps and server samples, its clients, what it delivers.

    Without a name it is the spec as the user wrote it.
    """

    name: str | None = None
    q: float | None = None
    steps: int | None = None
    server_samples: int | None = None
    clients: str | None = None
    deliver: str | None = None

    @property
    def settings(self) -> dict[str, Any]:
        keys = {
            "algorithm.name": self.name,
            "algorithm.q": self.q,
            "algorithm.server.steps": self.steps,
            "data.server.samples": self.server_samples,
            "algorithm.clients.name": self.clients,
            "train.deliver": self.deliver,
        }
        return {key: value for key, value in keys.items() if value is not None}


@dataclass(frozen=True)
class Ground:
    """What was measured before any arm: who is covered, how biased and noisy gradients are.

    `fewest` is the class of which the server has the fewest samples, and how many; `place` says in words
    where along a run the gradients were looked at.
    """

    coverage: Coverage
    excluded: int
    clients: int
    server_samples: int
    local_steps: int
    gradient: Estimate
    bias: Estimate
    client_noise: Estimate
    server_noise: Estimate
    round_seconds: float
    fewest: tuple[str, int]
    place: str = f"After {WARM_ROUNDS} rounds"


@dataclass
class Pilot:
    """Runs arms around `given` (the tables of a spec), into `folder`, within about `seconds`.

    The federations of its runs hold the server's held-out samples in the place of the test set, which no
    run of the pilot sees.
    """

    given: dict[str, Any]
    folder: Path
    sweep: Sweep
    seconds: float
    goal: Goal
    rounds: int = 0
    outcomes: dict[Arm, dict[int, float]] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _sweeps: int = 0

    @cached_property
    def spec(self) -> Spec:
        return complete(self.given)

    @property
    def server_is_given(self) -> bool:
        """Whether the server's samples come from a file, and not from a draw of any size."""
        return isinstance(self.spec.tables["data"]["server"], str)

    @property
    def seconds_left(self) -> float:
        return self.seconds - (time.monotonic() - self._began)

    def ground(self, observed: pl.DataFrame | None = None) -> Ground:
        """Train a little, then look at gradients; says how long a round takes.

        `observed` are the diagnostics of a run of this spec: its last rounds are taken instead.
        """
        settings = {"algorithm.name": "safari", **self._held_out(0)}
        spec = make_cell(self.given, settings).spec
        run = spec.prepare(self._federation(spec))
        check_known([self.goal.metric], lambda: run.task.federation)
        check_fits(run)
        training = Training(run)
        while training.done < min(WARM_ROUNDS, run.rounds) and not training.finished:
            training.advance(min(WARM_ROUNDS, run.rounds) - training.done)
        params = training.carry.state.params
        seen = Observer(run, params).at(params, LOOKS) if observed is None else observed.tail(LOOKS)
        federation, excluded = run.task.federation, run.roster.excluded_clients
        algorithm: Any = run.algorithm
        return Ground(
            coverage=federation.coverage(run.roster.absent(run.streams, run.rounds)),
            excluded=len(excluded),
            clients=federation.size,
            server_samples=federation.server_samples + federation.validation_most,
            local_steps=int(algorithm.clients.steps(federation.median_size)),
            gradient=_of(seen, "gradient"),
            bias=_of(seen, "bias_available"),
            client_noise=_of(seen, "client_noise_mean"),
            server_noise=_of(seen, "server_noise"),
            round_seconds=training.train_seconds * training.devices / training.done,
            fewest=_fewest(federation),
            place=Ground.place if observed is None else f"In the last {len(seen)} rounds of the given run",
        )

    def _federation(self, spec: Spec) -> Federation:
        try:
            return spec.federation()
        except InputError as error:
            if error.key != "data.score":
                raise
        hint = f"advice is judged on samples that the server holds out, in {FOLDS} parts: give it more"
        raise InputError("data.server.samples", self.spec.federation().server_samples, hint)

    def set_rounds(self, ground: Ground, runs: int) -> None:
        """As many rounds as the spec says, or as many as `runs` runs have time for."""
        wanted = self.spec.tables["train"]["rounds"]
        beside = cores() if on_cpu() else 1
        affordable = self.seconds_left * beside / (runs * ground.round_seconds * SPARE)
        self.rounds = max(min(wanted, int(affordable)), min(wanted, LEAST_ROUNDS))

    def train(self, arms: Iterable[Arm], folds: Sequence[int]) -> None:
        """Run every arm on every fold, but for those that have been."""
        wanted = [(arm, fold) for arm in arms for fold in folds if fold not in self.outcomes.get(arm, {})]
        cells: dict[str, list[tuple[Arm, int]]] = {}
        settings = {}
        for arm, fold in wanted:
            asked = self._settings(arm, fold)
            key = make_cell(self.given, asked).key
            cells.setdefault(key, []).append((arm, fold))
            settings[key] = asked
        if not cells:
            return
        self._sweeps += 1
        spec = SweepSpec(self.given, tuple(settings.values()))
        for row in self.sweep(spec, self.folder / f"pilot-{self._sweeps}").to_dicts():
            for arm, fold in cells[row["cell"]]:
                self.outcomes.setdefault(arm, {})[fold] = self.goal.of(row)

    def _settings(self, arm: Arm, fold: int) -> dict[str, Any]:
        rounds = {"train.rounds": self.rounds}
        return {**arm.settings, **self._seeds(fold), **self._held_out(fold), **rounds}

    def _held_out(self, fold: int) -> dict[str, Any]:
        return {"data.validation": HELD_OUT, "data.fold": fold, "data.score": "validation"}

    def can_train(self, arm: Arm) -> bool:
        """Whether the data allow it (a larger server set may not be there)."""
        try:
            make_cell(self.given, {**self._settings(arm, 0), "train.rounds": 1}).spec.federation()
        except InputError:
            return False
        return True

    def _seeds(self, fold: int) -> dict[str, int]:
        """Another seed of training for each fold; the federation and who is excluded stay the spec's."""
        tables = self.spec.tables
        return {
            SEED: self.spec.seed + fold,
            DATA_SEED: tables["data"]["seed"],
            EXCLUSION_SEED: tables["participation"]["seed"],
        }

    def score(self, arm: Arm) -> Estimate:
        """The metric, over the folds."""
        return estimate(list(self.outcomes[arm].values()))

    def gain(self, arm: Arm, over: Arm, tried: int) -> Estimate:
        """By how much the metric is better, fold by fold; one is the best of several that were `tried`."""
        sign = self.goal.sign
        mine, theirs = (
            {fold: sign * value for fold, value in self.outcomes[which].items()} for which in (arm, over)
        )
        found = paired_over_folds(mine, theirs, HELD_OUT, tried)
        assert found is not None, "all arms that are compared were trained on the same folds"
        return found.within(-100, 100) if self.goal.metric.share else found


def _fewest(federation: Federation) -> tuple[str, int]:
    """The class of which the server has the fewest samples, the held-out ones among them."""
    dataset = federation.dataset
    held = np.concatenate([federation.held_by(None), federation.numbers_of(federation.validation)])
    counts = np.bincount(np.asarray(dataset.y)[held], minlength=dataset.classes)
    return dataset.labels[counts.argmin()], int(counts.min())


def _of(seen: pl.DataFrame, column: str) -> Estimate:
    known = seen[column].drop_nulls().to_list()
    return estimate(known) if known else Estimate(0, math.nan, math.nan, math.nan, math.nan)
