r"""Theorem 4 and its corollary: convergence without convexity, corrected.

The printed condition on q, with maxima over the run, does not imply the printed bound
(`counterexample`). What holds, per round, for $\eta_c \le 1 / (2 \sqrt{30} L K)$ and
$\eta_c = 2 \eta_s / K$, gives three usable statements: a certificate for a finished run
(`certificate`), a bound for any fixed q before a run (`a_priori`), and conditions on q that
look at the past alone (`adaptive`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from safari.algorithms.q_rules import share
from safari.errors import check_count, check_fraction, check_not_negative, check_positive


@dataclass(frozen=True)
class Constants:
    """What the bounds are made of.

    `smoothness` is L over all clients, `steps` K, `per_round` m, `server_rate` eta_s;
    `client_noise` and `server_noise` are variances of minibatch gradients (sigma^2,
    sigma_s^2), `dissimilarity` is sigma_G^2, never-seen clients included.
    """

    smoothness: float
    steps: int
    per_round: int
    server_rate: float
    client_noise: float = 0.0
    server_noise: float = 0.0
    dissimilarity: float = 0.0

    def __post_init__(self) -> None:
        check_positive("smoothness", self.smoothness)
        check_positive("server_rate", self.server_rate)
        check_count("steps", self.steps)
        check_count("per_round", self.per_round)
        for name in ("client_noise", "server_noise", "dissimilarity"):
            check_not_negative(name, getattr(self, name))

    @property
    def client_rate(self) -> float:
        """eta_c, as theorem 4 couples it."""
        return 2 * self.server_rate / self.steps

    @property
    def slack(self) -> float:
        """a = 1 - L eta_s."""
        return 1 - self.smoothness * self.server_rate

    @property
    def drift_noise(self) -> float:
        """sigma^2 + 6 K sigma_G^2, what clients drift by within a round."""
        return self.client_noise + 6 * self.steps * self.dissimilarity


def broken_conditions(constants: Constants, client_rate: float) -> list[str]:
    """In plain sentences, which step-size conditions the given rates break; empty if none."""
    L, K, rate = constants.smoothness, constants.steps, constants.server_rate
    limit = 1 / (2 * math.sqrt(30) * L * K)
    found = []
    if client_rate > limit:
        found.append(
            f"the client rate {client_rate:g} is above 1 / (2 sqrt(30) L K) = {limit:.3g}: "
            "a client may drift too far within a round"
        )
    if not math.isclose(client_rate * K, 2 * rate, rel_tol=1e-6):
        found.append(
            f"the client rate times the local steps is {client_rate * K:g}, theorem 4 couples it to "
            f"2 eta_s = {2 * rate:g}: client rounds weigh {client_rate * K / (2 * rate):.3g} times too much"
        )
    if 4 * L * rate > 1:
        found.append(f"4 L eta_s = {4 * L * rate:.3g} is above 1: the server rate is too large")
    return found


@dataclass(frozen=True)
class Terms:
    """A bound on the average squared gradient, term by term."""

    start: float
    server_noise: float
    drift: float
    client_noise: float
    bias: float = 0.0
    scale: float = 1.0

    @property
    def total(self) -> float:
        parts = (getattr(self, field.name) for field in fields(self) if field.name != "scale")
        return sum(parts) / self.scale


def rate_terms(constants: Constants, gap: float, rounds: int, q: float) -> Terms:
    """2 (F_0 - inf F) / (R eta_s) + delta, as printed; `gap` is F_0 - inf F."""
    check_count("rounds", rounds)
    check_fraction("q", q)
    L, K, rate = constants.smoothness, constants.steps, constants.server_rate
    return Terms(
        start=2 * gap / (rounds * rate),
        server_noise=L * rate * (1 - q) * constants.server_noise,
        drift=80 * q * L**2 * rate**2 / K * constants.drift_noise,
        client_noise=8 * L * q * rate / (constants.per_round * K) * constants.client_noise,
    )


def certificate(
    constants: Constants,
    gap: float,
    server_gradients: Sequence[float],
    client_moves: Sequence[float],
    biases: Sequence[float] | None = None,
) -> Terms:
    """What a finished run proves of its own average squared gradient; needs no condition on q.

    `server_gradients` are |grad F|^2 at the server rounds, `client_moves` are
    B_r = |mean over clients of the sum of their local gradients|^2 at the client rounds.
    `biases` are b_r^2 at the client rounds where they are known; the dissimilarity bounds them.
    Holds in expectation, and for every path where there is no noise.
    """
    server, client = np.asarray(server_gradients, float), np.asarray(client_moves, float)
    rounds = len(server) + len(client)
    terms = rate_terms(constants, gap, rounds, len(client) / rounds)
    K, rate, L = constants.steps, constants.server_rate, constants.smoothness
    bias = constants.dissimilarity if biases is None else np.asarray(biases, float)
    paid = np.sum(4 * bias - 2 / K**2 * (1 - 4 * L * rate) * client)
    earned = constants.slack * np.sum(server)
    return Terms(
        terms.start, terms.server_noise, terms.drift, terms.client_noise, float(paid - earned) / rounds
    )


def q_after_the_run(
    constants: Constants, server_gradients: Sequence[float], client_moves: Sequence[float]
) -> float:
    """The q up to which the printed bound would have followed, by the means over the run.

    The printed condition takes maxima instead: necessary, not sufficient.
    """
    K, rate, L = constants.steps, constants.server_rate, constants.smoothness
    need = 4 * constants.dissimilarity - 2 / K**2 * (1 - 4 * L * rate) * float(np.mean(client_moves))
    return share(constants.slack * float(np.mean(server_gradients)), need)


def printed_q_limit(constants: Constants, largest_gradient: float, largest_move: float) -> float:
    """The limit on q as printed in theorem 4; can be negative or above 1."""
    K, rate, L = constants.steps, constants.server_rate, constants.smoothness
    need = 4 * constants.dissimilarity - 4 * largest_move * (1 / (2 * K**2) - 2 * L * rate**2 / K**2)
    return 1 / (1 + need / (constants.slack * largest_gradient))


def a_priori(constants: Constants, gap: float, rounds: int, q: float, bias: float, split: float) -> Terms:
    """A bound for any fixed q, before the run; `bias` bounds b^2, `split` is the free s > 0.

    The floor q b^2 stays however long the run is. `scale` is kappa_s; the bound is void
    where it is not positive.
    """
    check_positive("split", split)
    L, K, rate = constants.smoothness, constants.steps, constants.server_rate
    stretch = 1 + 1 / split
    kappa = (1 - q) * (1 - L * rate / 2) + q * (1 - 120 * stretch * L**2 * rate**2)
    if kappa <= 0:
        return Terms(math.inf, math.inf, math.inf, math.inf)
    return Terms(
        start=gap / (rounds * rate),
        server_noise=L * rate / 2 * (1 - q) * constants.server_noise,
        drift=stretch * 20 * q * L**2 * rate**2 / K * constants.drift_noise,
        client_noise=4 * q * L * rate / (constants.per_round * K) * constants.client_noise,
        bias=(1 + split) * q * bias,
        scale=kappa,
    )


def best_a_priori(constants: Constants, gap: float, rounds: int, q: float, bias: float) -> Terms:
    """`a_priori` with the split that makes it smallest."""
    found = (a_priori(constants, gap, rounds, q, bias, split) for split in np.logspace(-3, 1, 2001))
    return min(found, key=lambda terms: terms.total)


def floor(q: float, bias: float) -> float:
    """What |grad F|^2 a fixed q may stop at: q b^2."""
    return q * bias


def speedup_rounds(constants: Constants) -> tuple[float, float]:
    """How many rounds the step size sqrt(mK / R) needs before the bound shows a linear speedup.

    The step-size limit, then the part of the drift.
    """
    both = constants.per_round * constants.steps
    return 480 * constants.smoothness**2 * both, float(both**3)


def speedup_gradient(constants: Constants) -> float:
    """The |grad F|^2 down to which q = 1 - 1 / (mK) passes rule A: far from stationarity."""
    both = constants.per_round * constants.steps
    return 4 * (both - 1) * constants.dissimilarity / constants.slack
