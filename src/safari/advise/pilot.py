"""The pilot: a few runs around a spec, from which advice is given."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from safari.data import Coverage
from safari.devices import cores, on_cpu
from safari.engine.diagnostics import Observer
from safari.engine.size import check_fits
from safari.engine.training import Training
from safari.errors import InputError
from safari.experiment.spec import Spec, complete
from safari.experiment.sweep import SweepSpec, make_cell
from safari.experiment.sweep.cells import DATA_SEED, EXCLUSION_SEED, SEED
from safari.report.statistics import Estimate, estimate, paired

LOOKS = 10
WARM_ROUNDS = 25
"""So many rounds are trained before bias and noise are looked at."""
SPARE = 1.3
"""Runs beside each other are slower than one alone."""
LEAST_ROUNDS = 20
Sweep = Callable[[SweepSpec, Path], pl.DataFrame]
"""Carries a sweep out in a folder and returns its results."""


@dataclass(frozen=True)
class Arm:
    """One way to train: an algorithm, and for SAFARI its q, steps and server samples."""

    name: str
    q: float | None = None
    steps: int | None = None
    server_samples: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        keys = {
            "algorithm.name": self.name,
            "algorithm.q": self.q,
            "algorithm.server.steps": self.steps,
            "data.server.samples": self.server_samples,
        }
        return {key: value for key, value in keys.items() if value is not None}


@dataclass(frozen=True)
class Outcome:
    """A run of an arm: accuracy of what it delivers, and after its last rounds."""

    accuracy: float
    last: float


@dataclass(frozen=True)
class Ground:
    """What was measured before any arm: who is covered, how biased and noisy gradients are.

    `place` says in words where along a run the gradients were looked at.
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
    place: str = f"After {WARM_ROUNDS} rounds"


@dataclass
class Pilot:
    """Runs arms around `given` (the tables of a spec), into `folder`, within about `seconds`."""

    given: dict[str, Any]
    folder: Path
    sweep: Sweep
    seconds: float
    rounds: int = 0
    outcomes: dict[Arm, dict[int, Outcome]] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _sweeps: int = 0

    @cached_property
    def spec(self) -> Spec:
        return complete(self.given)

    @property
    def seconds_left(self) -> float:
        return self.seconds - (time.monotonic() - self._began)

    def ground(self, observed: pl.DataFrame | None = None) -> Ground:
        """Train a little, then look at gradients; says how long a round takes.

        `observed` are the diagnostics of a run of this spec: its last rounds are taken instead.
        """
        spec = complete({**self.given, "algorithm": {**self.given.get("algorithm", {}), "name": "safari"}})
        run = spec.prepare()
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
            server_samples=federation.server_samples,
            local_steps=int(algorithm.clients.steps(federation.median_size)),
            gradient=_of(seen, "gradient"),
            bias=_of(seen, "bias_available"),
            client_noise=_of(seen, "client_noise_mean"),
            server_noise=_of(seen, "server_noise"),
            round_seconds=training.train_seconds * training.devices / training.done,
            place=Ground.place if observed is None else f"In the last {len(seen)} rounds of the given run",
        )

    def set_rounds(self, ground: Ground, runs: int) -> None:
        """As many rounds as the spec says, or as many as `runs` runs have time for."""
        wanted = self.spec.tables["train"]["rounds"]
        beside = cores() if on_cpu() else 1
        affordable = self.seconds_left * beside / (runs * ground.round_seconds * SPARE)
        self.rounds = max(min(wanted, int(affordable)), min(wanted, LEAST_ROUNDS))

    def train(self, arms: Iterable[Arm], seeds: Sequence[int]) -> None:
        """Run every arm under every seed, but for those that have been."""
        wanted = [(arm, seed) for arm in arms for seed in seeds if seed not in self.outcomes.get(arm, {})]
        cells = {}
        for arm, seed in wanted:
            settings = {**arm.settings, **self._seeds(seed), "train.rounds": self.rounds}
            cells[make_cell(self.given, settings).key] = (arm, seed, settings)
        if not cells:
            return
        self._sweeps += 1
        spec = SweepSpec(self.given, tuple(settings for _, _, settings in cells.values()))
        for row in self.sweep(spec, self.folder / f"pilot-{self._sweeps}").to_dicts():
            arm, seed, _ = cells[row["cell"]]
            self.outcomes.setdefault(arm, {})[seed] = _outcome(row)

    def can_train(self, arm: Arm) -> bool:
        """Whether the data allow it (a larger server set may not be there)."""
        try:
            make_cell(self.given, {**arm.settings, "train.rounds": 1}).spec.federation()
        except InputError:
            return False
        return True

    def _seeds(self, seed: int) -> dict[str, int]:
        """The run's seed, and what the spec fixes stays fixed."""
        given_data, given_part = self.given.get("data", {}), self.given.get("participation", {})
        found = {SEED: self.spec.seed + seed}
        if "seed" in given_data:
            found[DATA_SEED] = given_data["seed"]
        if "seed" in given_part:
            found[EXCLUSION_SEED] = given_part["seed"]
        return found

    def accuracy(self, arm: Arm, seeds: Sequence[int] | None = None) -> Estimate:
        """In percent, over `seeds` (default: all that it was trained under)."""
        found = self.outcomes[arm]
        return estimate([100 * found[seed].accuracy for seed in (found if seeds is None else seeds)])

    def last(self, arm: Arm) -> float:
        """In percent: the mean of the last ten evaluated rounds, over the seeds."""
        return float(np.mean([100 * one.last for one in self.outcomes[arm].values()]))

    def gain(self, arm: Arm, over: Arm) -> Estimate | None:
        """In points, seed by seed."""
        mine, theirs = (
            {seed: 100 * one.accuracy for seed, one in self.outcomes[which].items()} for which in (arm, over)
        )
        return paired(mine, theirs)


def _outcome(row: dict[str, Any]) -> Outcome:
    """Delivered accuracy is averaged over the last ten evaluated rounds: single ones swing."""
    last = row["accuracy_round_last10"]
    broken = row["diverged_at"] is not None
    delivered = float(np.mean(row["curve_accuracy"][-10:])) if row["curve_accuracy"] else None
    return Outcome(
        0.0 if broken or delivered is None else delivered,
        0.0 if broken or last is None else last,
    )


def _of(seen: pl.DataFrame, column: str) -> Estimate:
    known = seen[column].drop_nulls().to_list()
    return estimate(known) if known else Estimate(0, math.nan, math.nan, math.nan, math.nan)
