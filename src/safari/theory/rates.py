r"""How fast SAFARI converges, measured, against what corollaries 5 and 7, corrected, say.

Strongly convex: $E |x_R - x^*|^2$ falls like $\bar\eta = \Theta(\log R / R)$ where the clients that
take part have no bias at the minimum or q adapts to it, and stops at a floor otherwise. Client
noise falls like 1/m and 1/K. Without convexity and with $\eta_s = c / \sqrt R$ the average
$|\nabla F|^2$ falls like $1 / \sqrt R$ under rules A and B, or for a fixed q without bias; else it
stops at a floor. Every point keeps the step-size conditions of its theorem.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from safari.errors import check, check_seed
from safari.theory import nonconvex
from safari.theory import strongly_convex as convex
from safari.theory.objectives import (
    Objective,
    Record,
    Settings,
    biased_quadratics,
    largest_curvature,
    logistic,
    network,
    quadratic,
    simulate,
)

Kind = Literal["rate", "exact", "floor"]
Against = Literal["R", "m", "K"]

CLIENTS, TAKING_PART, STEPS, CONDITION, SPREAD = 6, 3, 2, 1.5, 0.2
"""Of the quadratics: all clients, those that take part, local steps, L/mu, how far clients lie apart."""
CONVEX_Q, DISTANCE = 0.2, 0.5
SPEEDUP_Q, SPEEDUP_CONTRACTION, SPEEDUP_ROUNDS = 0.9, 1e-3, 2048
NONCONVEX_Q, MARGIN = 0.5, 0.99
"""`MARGIN`: the largest rate of a study, as a share of what theorem 4 allows."""
NETWORK_SMOOTHNESS = 2.0
"""Taken on trust before the runs; the largest curvature seen along them must not exceed it."""


@dataclass(frozen=True)
class Effort:
    """Independent replications, paths that a replication averages over, and doublings of the points.

    On digits there is no noise, and a replication is one path.
    """

    replications: int
    paths: int
    doublings: int
    speedup_doublings: int
    digit_replications: int
    logistic_doublings: int
    network_doublings: int


FULL = Effort(8, 32, 4, 4, 5, 4, 3)
QUICK = Effort(6, 20, 2, 2, 3, 2, 1)


@dataclass(frozen=True)
class Case:
    """A measured quantity at `points` of what it is held `against`; arrays are (points, replications).

    `corollary` is the slope of large R, `theory` the slope at these points of the quantity that the
    corollary names. A `rate` bounds: steeper is allowed. An `exact` slope does not. A `floor` is
    slope 0. `curvature` is the largest seen along the paths, where L is not known.
    """

    setting: str
    name: str
    kind: Kind
    against: Against
    corollary: float
    theory: float
    points: np.ndarray
    measured: np.ndarray
    bound: np.ndarray
    smoothness: float
    curvature: float | None = None

    def slopes(self) -> np.ndarray:
        """The log-log slope of every replication."""
        return log_slope(self.points, self.measured)

    def bound_slope(self) -> float:
        """Of the whole bound, terms of higher order included."""
        return float(log_slope(self.points, self.bound.mean(axis=1)))


def log_slope(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least squares of log `values`, (points,) or (points, n), on log `points`."""
    x = np.log(points) - np.log(points).mean()
    return np.asarray(x @ np.log(values) / (x @ x))


def measure(quick: bool = False, seed: int = 0) -> Iterator[Case]:
    """All cases, one after the other."""
    check_seed("seed", seed)
    effort = QUICK if quick else FULL
    yield from strongly_convex_cases(effort, seed)
    yield from speedup_cases(effort, seed)
    for study in studies(effort, seed):
        yield from nonconvex_cases(study, seed)


def doubled(first: int, times: int) -> np.ndarray:
    return first * 2 ** np.arange(times + 1)


def _grouped(values: np.ndarray, replications: int) -> np.ndarray:
    """Means over the paths of each replication."""
    return np.asarray(values, float).reshape(replications, -1).mean(axis=1)


def convex_constants(
    objective: Objective, contraction: float, steps: int, per_round: int, noise: tuple[float, float]
) -> convex.Constants:
    """Of theorem 6 at eta-bar = `contraction`, its conditions checked; `noise`: of clients, of the server."""
    L, mu = objective.smoothness, objective.convexity
    limit = min(convex.step_limit(L / mu), mu / (16 * L), 4 * L * mu / (L + mu) ** 2)
    check(contraction <= limit, "contraction", contraction, f"theorem 6 allows at most {limit:.3g}")
    return convex.Constants(L, mu, contraction * (L + mu) / (2 * L * mu), steps, per_round, *noise)


def strongly_convex_cases(effort: Effort, seed: int) -> Iterator[Case]:
    """Half of the clients take part: no bias at the minimum, an adaptive q, and a floor."""
    settings: tuple[tuple[str, Kind, float, str, int], ...] = (
        ("fixed q, b* = 0", "rate", 0.0, "fixed", 256),
        ("adaptive q, b* > 0", "rate", 0.5, "convex", 512),
        ("fixed q, b* > 0", "floor", 2.0, "fixed", 256),
    )
    noise = 0.2, 1.0
    for stream, (name, kind, bias, rule, first) in enumerate(settings):
        problem = biased_quadratics(CLIENTS, TAKING_PART, bias, CONDITION, SPREAD, seed)
        objective, points = quadratic(problem, DISTANCE), doubled(first, effort.doublings)
        start = objective.starts(effort.replications * effort.paths, seed)
        bars = (2 if rule == "convex" else 1) * np.log(points) / points
        measured, bound = [], []
        for rounds, bar in zip(points.tolist(), bars.tolist(), strict=True):
            constants = convex_constants(objective, bar, STEPS, TAKING_PART, noise)
            rates = constants.server_rate, constants.client_rate
            chosen = Settings(STEPS, TAKING_PART, *rates, rule, CONVEX_Q, bias, *noise)
            found = simulate(
                objective, chosen, rounds, start, np.random.default_rng((seed, 1, stream, rounds))
            )
            constants = replace(constants, dissimilarity=float(found.dissimilarity.max()))
            measured.append(_grouped(found.size[-1], effort.replications))
            bound.append(np.full(effort.replications, _distance_bound(constants, rule, rounds, bias)))
        corollary, theory = (0.0, 0.0) if kind == "floor" else (-1.0, float(log_slope(points, bars)))
        arrays = points, np.array(measured), np.array(bound)
        yield Case("strongly convex", name, kind, "R", corollary, theory, *arrays, objective.smoothness)


def _distance_bound(constants: convex.Constants, rule: str, rounds: int, bias: float) -> float:
    """Of E |x_R - x*|^2. Without bias the condition of theorem 6 holds for every q."""
    start = DISTANCE**2
    if rule == "convex":
        largest = max(convex.noise_floor(constants, q) for q in (0.0, 1.0))
        return convex.adaptive_bound(constants, start, rounds, largest)
    if bias == 0:
        return (1 - constants.contraction) ** rounds * start + convex.noise_floor(constants, CONVEX_Q)
    return convex.fixed_q_bound(constants, start, rounds, CONVEX_Q, bias)


def speedup_cases(effort: Effort, seed: int) -> Iterator[Case]:
    """Clients alike, noise of clients alone, from the minimum: where |x - x*|^2 settles."""
    sizes = doubled(1, effort.speedup_doublings)
    most = int(sizes.max())
    problem = biased_quadratics(most, most, 0.0, CONDITION, 0.0, seed)
    objective = quadratic(problem, distance=0.0)
    start = objective.starts(effort.replications * effort.paths, seed)
    axes: tuple[Against, ...] = ("m", "K")
    for stream, against in enumerate(axes):
        measured, bound = [], []
        for size in sizes.tolist():
            per_round, steps = (size, STEPS) if against == "m" else (STEPS, size)
            constants = convex_constants(objective, SPEEDUP_CONTRACTION, steps, per_round, (1.0, 0.0))
            rates = constants.server_rate, constants.client_rate
            chosen = Settings(steps, per_round, *rates, q=SPEEDUP_Q, client_noise=1.0)
            rng = np.random.default_rng((seed, 2, stream, size))
            found = simulate(objective, chosen, SPEEDUP_ROUNDS, start, rng)
            settled = found.size[SPEEDUP_ROUNDS // 2 :].mean(axis=0)
            measured.append(_grouped(settled, effort.replications))
            bound.append(np.full(effort.replications, convex.noise_floor(constants, SPEEDUP_Q)))
        arrays = sizes, np.array(measured), np.array(bound)
        name = f"client noise against {against}"
        yield Case("speedup", name, "exact", against, -1.0, -1.0, *arrays, objective.smoothness)


@dataclass(frozen=True)
class Study:
    """A federation on which theorem 4 is measured; `noise`: of clients, of the server."""

    name: str
    objective: Objective
    taking_part: int
    points: np.ndarray
    replications: int
    paths: int
    noise: tuple[float, float] = (0.0, 0.0)
    known_smoothness: bool = True

    def constants(self, per_round: int, rounds: int) -> nonconvex.Constants:
        """eta_s = c / sqrt(R), c as large as theorem 4 allows at the first point; conditions checked."""
        L = self.objective.smoothness
        rate = MARGIN / (4 * math.sqrt(30) * L) * math.sqrt(self.points[0] / rounds)
        found = nonconvex.Constants(L, STEPS, per_round, rate, *self.noise)
        broken = nonconvex.broken_conditions(found, found.client_rate)
        check(not broken, "server_rate", rate, "; ".join(broken))
        return found


def studies(effort: Effort, seed: int) -> Iterator[Study]:
    """Quadratics with noise; logistic regression and a small network on digits, without."""
    problem = biased_quadratics(CLIENTS, TAKING_PART, 1.0, CONDITION, SPREAD, seed)
    points, times = doubled(256, effort.doublings), (effort.replications, effort.paths)
    yield Study("quadratics", quadratic(problem, 1.0), TAKING_PART, points, *times, (0.3, 0.3))
    times = effort.digit_replications, 1
    points = doubled(256, effort.logistic_doublings)
    yield Study("logistic regression", logistic(0.1), 4, points, *times)
    objective = network(0.05, NETWORK_SMOOTHNESS)
    points = doubled(1024, effort.network_doublings)
    yield Study("small network", objective, 4, points, *times, known_smoothness=False)


def nonconvex_cases(study: Study, seed: int) -> Iterator[Case]:
    """Rules A and B, a fixed q with all clients (b = 0), and one with some (b > 0)."""
    some, everyone = study.taking_part, study.objective.clients
    settings: tuple[tuple[str, Kind, str, int], ...] = (
        ("rule A, b > 0", "rate", "A", some),
        ("rule B, b > 0", "rate", "B", some),
        ("fixed q, b = 0", "rate", "fixed", everyone),
        ("fixed q, b > 0", "floor", "fixed", some),
    )
    start = study.objective.starts(study.replications * study.paths, seed)
    for stream, (name, kind, rule, taking_part) in enumerate(settings):
        measured, bound, leading, curvatures = [], [], [], []
        for rounds in study.points.tolist():
            constants = study.constants(taking_part, rounds)
            rates = constants.server_rate, constants.client_rate
            chosen = Settings(STEPS, taking_part, *rates, rule, NONCONVEX_Q, 0.0, *study.noise)
            rng = np.random.default_rng((seed, 3, stream, rounds))
            found = simulate(study.objective, chosen, rounds, start, rng)
            constants = replace(constants, dissimilarity=float(found.dissimilarity.max()))
            measured.append(_grouped(found.gradient.mean(axis=0), study.replications))
            bound.append(_gradient_bound(study, constants, rule, found))
            fallen = study.objective.values(start) - study.objective.values(found.points[-1])
            leading.append(fallen.mean() / (rounds * constants.server_rate))
            if not study.known_smoothness:
                curvatures.append(
                    largest_curvature(study.objective, found.points.reshape(-1, start.shape[1]))
                )
        corollary, theory = (0.0, 0.0) if kind == "floor" else (-0.5, _slope_of(study, leading))
        arrays = study.points, np.array(measured), np.array(bound)
        L, seen = study.objective.smoothness, max(curvatures, default=None)
        check(seen is None or seen <= L, "smoothness", L, f"a curvature of {seen} was seen along a path")
        yield Case(study.name, name, kind, "R", corollary, theory, *arrays, L, seen)


def _slope_of(study: Study, values: list[float]) -> float:
    return float(log_slope(study.points, np.array(values)))


def _gradient_bound(study: Study, constants: nonconvex.Constants, rule: str, found: Record) -> np.ndarray:
    """The finished runs' certificates under a rule, the bound before the run for a fixed q."""
    gaps = study.objective.values(found.points[0]) - study.objective.lowest
    if rule == "fixed":
        rounds, bias = len(found.client), float(found.bias.max())
        terms = nonconvex.best_a_priori(constants, float(gaps.max()), rounds, NONCONVEX_Q, bias)
        return np.full(study.replications, terms.total)
    totals = [
        nonconvex.certificate(constants, gap, gradient[~client], move[client]).total
        for gap, gradient, move, client in zip(
            gaps, found.gradient.T, found.move.T, found.client.T, strict=True
        )
    ]
    return _grouped(np.array(totals), study.replications)
