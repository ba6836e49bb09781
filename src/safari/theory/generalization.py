r"""Theorems 2 and 3: what samples of clients add to those of the server, and when nothing.

With $n = n_T + n_S$, $A(n, \delta) = (d/n) \log(n/d) + (1/n) \log(1/\delta)$ and
$e_Q = c A^{1/(2 - \beta_Q)}$, theorem 2 bounds the excess error by
$e_Q + \alpha e_Q^\beta$; server-only training has $c A(n_T, \delta)^{1/(2 - \beta_P)}$. The paper
hides $\alpha$ in its O; it is at least $n_S / n_T$ where clients never sample.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from safari.errors import check, check_fraction, check_positive


@dataclass(frozen=True)
class Problem:
    """VC dimension, noise exponents, the relation of the distributions, confidence, constant."""

    dimension: int
    beta_p: float = 1.0
    beta_q: float = 1.0
    alpha: float = 1.0
    beta: float = 1.0
    delta: float = 0.05
    constant: float = 1.0

    def __post_init__(self) -> None:
        check(self.dimension >= 1, "dimension", self.dimension, "must be at least 1")
        check_positive("delta", self.delta)
        for name in ("beta_p", "beta_q", "beta", "delta"):
            check_fraction(name, getattr(self, name))
        check_positive("constant", self.constant)

    def complexity(self, samples: int) -> float:
        """A(n, delta)."""
        share = self.dimension / samples
        return share * math.log(1 / share) + math.log(1 / self.delta) / samples

    def client_bound(self, server: int, clients: int) -> float:
        """Theorem 2 with its constant written out."""
        excess = self.constant * self.complexity(server + clients) ** (1 / (2 - self.beta_q))
        return excess + self.alpha * excess**self.beta

    def server_bound(self, server: int) -> float:
        """Training on the server's samples alone."""
        return self.constant * self.complexity(server) ** (1 / (2 - self.beta_p))

    def gains(self, server: int, clients: int) -> bool:
        """Whether the bound with clients is below the one without."""
        return self.client_bound(server, clients) < self.server_bound(server)

    def checkable_bound(self, excess_on_server: float, server: int, alpha_p: float) -> float:
        """Theorem 3 from what can be measured: tau, the excess of the empirical risk on T.

        Needs no assumption 2 and no unknown minimiser.
        """
        complexity, constant = self.complexity(server), self.constant
        slow = (9 * constant**2 * alpha_p * complexity) ** (1 / (2 - self.beta_p))
        return max(3 * excess_on_server, 3 * constant * complexity, slow)


def beta_threshold(problem: Problem, server: int, clients: int) -> float:
    """The beta above which clients help in the rate, alpha being bounded."""
    total = server + clients
    ratio = math.log(server / problem.dimension) / math.log(total / problem.dimension)
    return (2 - problem.beta_q) / (2 - problem.beta_p) * ratio


def threshold_excess(threshold: float, server: int, clients: int) -> float:
    """Exact: P = U[0, 1], clients from U[0, 1/2], no noise; the learner takes the smallest positive."""

    def survives(u: np.ndarray) -> np.ndarray:
        seen = 2 * (np.minimum(threshold + u, 0.5) - min(threshold, 0.5))
        return (1 - u) ** server * (1 - seen) ** clients

    kink = max(0.5 - threshold, 0.0)
    return integral(survives, 0.0, kink) + integral(survives, kink, 1 - threshold)


def root_excess(samples: int) -> float:
    """Exact, beta = 1/2: P = U[0, 1], samples of density 2x, threshold 0."""
    return math.sqrt(math.pi) / 2 * math.exp(math.lgamma(samples + 1) - math.lgamma(samples + 1.5))


def simulate_threshold(
    threshold: float, server: int, clients: int, repetitions: int, seed: int
) -> np.ndarray:
    """Excess errors of the learner of `threshold_excess` on drawn samples."""
    rng = np.random.default_rng(seed)
    samples = np.concatenate(
        [rng.random((repetitions, server)), rng.random((repetitions, clients)) / 2], axis=1
    )
    positive = np.where(samples > threshold, samples, 1.0)
    return positive.min(axis=1) - threshold


@cache
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(300)


def integral(function: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> float:
    """Gauss-Legendre with 300 points: exact for the polynomials here."""
    points, weights = _legendre()
    return (high - low) / 2 * float(np.sum(weights * function((high - low) / 2 * points + (low + high) / 2)))
