r"""Theorem 6 and its corollary: convergence with strong convexity, corrected.

Coupling: $\bar\eta = \eta_c K \mu / 2 = 2 \eta_s L \mu / (L + \mu)$. Two constants of the printed
condition on q are wrong (16 for 4, $1 / (L \mu)$ for $1 / (L + \mu)$), and
$\eta_c \le 1 / (8 L K)$ is missing. The condition needs the minimum; `step_limit` and the rule in
`adaptive` are the computable version.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from safari.algorithms.q_rules import share
from safari.errors import check, check_count, check_positive


@dataclass(frozen=True)
class Constants:
    """L, mu, eta_s, K, m and the variances."""

    smoothness: float
    convexity: float
    server_rate: float
    steps: int = 1
    per_round: int = 1
    client_noise: float = 0.0
    server_noise: float = 0.0
    dissimilarity: float = 0.0

    def __post_init__(self) -> None:
        for name in ("smoothness", "convexity", "server_rate"):
            check_positive(name, getattr(self, name))
        check(
            self.convexity <= self.smoothness,
            "convexity",
            self.convexity,
            f"must be at most L = {self.smoothness}",
        )
        check_count("steps", self.steps)
        check_count("per_round", self.per_round)

    @property
    def contraction(self) -> float:
        """eta-bar: a round shrinks the squared distance by 1 - eta-bar."""
        L, mu = self.smoothness, self.convexity
        return 2 * self.server_rate * L * mu / (L + mu)

    @property
    def client_rate(self) -> float:
        return 2 * self.contraction / (self.convexity * self.steps)


def server_step_square(constants: Constants, eigenvalue: float) -> float:
    """(1 - eta_s l)^2 on an eigenvector, as the proof's server line has it; exact at mu and L."""
    L, mu, rate = constants.smoothness, constants.convexity, constants.server_rate
    return 1 - constants.contraction + rate * (rate - 2 / (L + mu)) * eigenvalue**2


@dataclass(frozen=True)
class QLimit:
    """The corrected condition: q <= have / (have + need)."""

    need: float
    have: float

    @property
    def q(self) -> float:
        return share(self.have, self.need)


def q_limit(constants: Constants, gradient: float, client_gap: float) -> QLimit:
    """From G_3 = |grad F|^2 and G_4 = mean over the participants of F_i(x) - F_i(x*)."""
    L, mu, bar = constants.smoothness, constants.convexity, constants.contraction
    drift = 1 + 30 * L * bar / mu * (1 + 2 * L * bar / mu)
    return QLimit(
        need=16 * bar / mu**2 * drift * gradient - 4 / mu * client_gap,
        have=(1 - (L + mu) * constants.server_rate / 2) / (L * mu) * gradient,
    )


def client_gap_at_least(bias_at_best: float, distance: float, convexity: float) -> float:
    """G_4 from below, before x* is known: -b* d + (mu / 2) d^2; `distance` is d = |x - x*|.

    With `bias_at_best` an upper bound and |grad F| / L <= d <= |grad F| / mu it is computable.
    """
    return -bias_at_best * distance + convexity / 2 * distance**2


def printed_q_limit(constants: Constants, gradient: float, client_gap: float) -> float:
    """The limit as printed; mixes units, and can be negative."""
    L, mu, bar = constants.smoothness, constants.convexity, constants.contraction
    drift = 1 + 30 * L * bar / mu * (1 + 2 * L * bar / mu)
    need = 4 * bar / mu**2 * drift * gradient - 4 / mu * client_gap
    have = (1 / (L + mu) - (L + mu) ** 2 * bar / (4 * L**2 * mu**2)) * gradient
    return 1 / (1 + need / have)


def noise_floor(constants: Constants, q: float) -> float:
    """delta-bar: what the squared distance settles at, bias apart."""
    L, mu, K, m = constants.smoothness, constants.convexity, constants.steps, constants.per_round
    rate = constants.client_rate
    drift = 5 * K * rate**2 * (constants.client_noise + 6 * K * constants.dissimilarity)
    return (
        8 * q * rate * K * constants.dissimilarity / mu
        + 2 * q * rate * constants.client_noise / (mu * m)
        + 4 * q * L * (1 + K * rate * L) / mu * drift
        + (1 - q) * (L + mu) * constants.server_rate * constants.server_noise / (2 * L * mu)
    )


def step_limit(condition: float) -> float:
    """The largest eta-bar for which the computable rule works; `condition` is L / mu."""
    check(condition >= 1, "condition", condition, "must be at least 1: it is L / mu")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = middle * (1 + 30 * condition * middle * (1 + 2 * condition * middle)) <= 1 / (
            8 * condition**2
        )
        low, high = (middle, high) if inside else (low, middle)
    return low


def fixed_q_bound(constants: Constants, start: float, rounds: int, q: float, bias_at_best: float) -> float:
    """E |x_R - x*|^2 for a fixed q: the floor 16 q^2 b*^2 / mu^2 stays. `start` is |x_0 - x*|^2."""
    mu = constants.convexity
    left = (1 - constants.contraction / 2) ** rounds * start
    return left + 2 * noise_floor(constants, q) + 16 * q**2 * bias_at_best**2 / mu**2


def adaptive_bound(constants: Constants, start: float, rounds: int, largest_floor: float) -> float:
    """E |x_R - x*|^2 under `adaptive.strongly_convex_rule`."""
    return (1 - constants.contraction / 2) ** rounds * start + 2 * largest_floor


def distance_certificate(
    constants: Constants,
    start: float,
    clients: Sequence[bool],
    gradients: Sequence[float],
    gaps: Sequence[float],
) -> np.ndarray:
    """What a finished run proves of |x_r - x*|^2, round by round, with no condition on q.

    `clients` says which rounds were client rounds; `gradients` are G_3, `gaps` are G_4 at the
    round's start. Needs the rates' conditions; holds in expectation, and for every path where
    there is no noise.
    """
    bar, bound = constants.contraction, [start]
    floors = {True: noise_floor(constants, 1.0), False: noise_floor(constants, 0.0)}
    for client, gradient, gap in zip(clients, gradients, gaps, strict=True):
        limit = q_limit(constants, gradient, gap)
        added = limit.need if client else -limit.have
        bound.append((1 - bar) * bound[-1] + bar * (added + floors[bool(client)]))
    return np.array(bound)
