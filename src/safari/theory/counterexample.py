r"""The counterexample to theorem 4 as printed: two clients, one of which never takes part.

$F_1 = (x - 1)^2 / 2$ always takes part, $F_2 = (x + 1)^2 / 2$ never does; $F = (x^2 + 1) / 2$ is
least at 0. L = mu = K = m = 1, sigma_G^2 = 1, no noise, eta_s = 1 / sqrt(R), eta_c = 2 eta_s.
A fixed q goes to $2q / (1 + q)$, not to 0, although the printed condition holds.
"""

from dataclasses import dataclass

import numpy as np

from safari.theory.adaptive import rule_a, rule_b, rule_c
from safari.theory.nonconvex import (
    Constants,
    best_a_priori,
    certificate,
    floor,
    printed_q_limit,
    rate_terms,
)


def constants_of(rounds: int) -> Constants:
    return Constants(smoothness=1, steps=1, per_round=1, server_rate=rounds**-0.5, dissimilarity=1)


@dataclass(frozen=True)
class Moments:
    """Exact expectations along a run with fixed q."""

    gradient: float
    move: float
    last: float
    last_square: float


def fixed_q_moments(q: float, start: float, rounds: int, server_rate: float, client_rate: float) -> Moments:
    """Average E |grad F|^2, average E B, E x_R and E x_R^2: linear recursions, no chance."""
    mean, square, gradients, moves = start, start * start, 0.0, 0.0
    for _ in range(rounds):
        gradients += square
        moves += square - 2 * mean + 1
        kept, moved = 1 - client_rate, client_rate
        square = (1 - q) * (1 - server_rate) ** 2 * square + q * (
            kept**2 * square + 2 * moved * kept * mean + moved**2
        )
        mean = (1 - q) * (1 - server_rate) * mean + q * (kept * mean + moved)
    return Moments(gradients / rounds, moves / rounds, mean, square)


def limit(q: float) -> float:
    """Where a fixed q goes."""
    return 2 * q / (1 + q)


@dataclass(frozen=True)
class Examination:
    """The printed theorem and what replaces it, on one run of the counterexample with fixed q."""

    q: float
    rounds: int
    moments: Moments
    printed_limit: float
    printed_bound: float
    certificate: float
    before_the_run: float

    @property
    def floor(self) -> float:
        return floor(self.q, 1.0)


def examine(q: float, start: float, rounds: int) -> Examination:
    """A run from `start`, in expectation. The maxima of the printed condition are at its start."""
    constants = constants_of(rounds)
    moments = fixed_q_moments(q, start, rounds, constants.server_rate, constants.client_rate)
    client_rounds = round(q * rounds)
    found = certificate(
        constants,
        start**2 / 2,
        np.full(rounds - client_rounds, moments.gradient).tolist(),
        np.full(client_rounds, moments.move).tolist(),
    )
    return Examination(
        q=q,
        rounds=rounds,
        moments=moments,
        printed_limit=printed_q_limit(constants, start**2, max((start - 1) ** 2, 1e-12)),
        printed_bound=rate_terms(constants, start**2 / 2, rounds, q).total,
        certificate=found.total,
        before_the_run=best_a_priori(constants, start**2 / 2, rounds, q, 1.0).total,
    )


def q_of(rule: str, constants: Constants, x: float) -> float:
    """q_r at x by rule A, B or C: grad F = x, grad F_1 = x - 1, b = 1."""
    gradient = x * x
    if rule == "A":
        return rule_a(constants, gradient)
    if rule == "B":
        return rule_b(constants, gradient, 1.0)
    return rule_c(constants, gradient, x * (x - 1), (x - 1) ** 2)


@dataclass(frozen=True)
class Path:
    """Averages over simulated runs: |grad F|^2, and the share of client rounds."""

    gradient: float
    client_share: float


def simulate(rule: str, start: float, rounds: int, repetitions: int, seed: int) -> Path:
    """Runs under an adaptive rule."""
    constants, rng = constants_of(rounds), np.random.default_rng(seed)
    rate = constants.server_rate
    gradients, client_rounds = 0.0, 0
    for _ in range(repetitions):
        x = start
        for coin in rng.random(rounds).tolist():
            gradients += x * x
            if x * x > 1e-14 and coin < q_of(rule, constants, x):
                x -= 2 * rate * (x - 1)
                client_rounds += 1
            else:
                x -= rate * x
    total = repetitions * rounds
    return Path(gradients / total, client_rounds / total)
