r"""Federations of quadratics, $F_i(x) = (x - c_i)^\top H_i (x - c_i) / 2$: everything is known.

The ground on which bounds are held against what happens.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Quadratics:
    """Hessians (clients, d, d), symmetric and positive definite, and centres (clients, d)."""

    hessians: np.ndarray
    centres: np.ndarray

    @property
    def clients(self) -> int:
        return len(self.centres)

    @property
    def smoothness(self) -> float:
        """L, the largest eigenvalue of any client."""
        return float(np.linalg.eigvalsh(self.hessians).max())

    @property
    def convexity(self) -> float:
        """mu, the smallest eigenvalue of any client."""
        return float(np.linalg.eigvalsh(self.hessians).min())

    def gradients(self, x: np.ndarray) -> np.ndarray:
        """The gradient of every client, (clients, d)."""
        return np.einsum("iab,ib->ia", self.hessians, x - self.centres)

    def values(self, x: np.ndarray) -> np.ndarray:
        """F_i(x) of every client."""
        return np.einsum("ia,iab,ib->i", x - self.centres, self.hessians, x - self.centres) / 2

    def best(self) -> np.ndarray:
        """The minimum of the mean over all clients."""
        pull = np.einsum("iab,ib->a", self.hessians, self.centres)
        return np.linalg.solve(self.hessians.sum(axis=0), pull)


@dataclass(frozen=True)
class History:
    """A run, round by round, at the round's start: what the certificates ask for."""

    clients: np.ndarray
    gradient: np.ndarray
    move: np.ndarray
    distance: np.ndarray
    gap: np.ndarray
    dissimilarity: float
    start_gap: float


def run(
    problem: Quadratics,
    participants: np.ndarray,
    start: np.ndarray,
    q: Callable[[np.ndarray], float],
    rounds: int,
    steps: int,
    client_rate: float,
    server_rate: float,
    seed: int,
    noise: float = 0.0,
) -> History:
    """SAFARI with exact gradients, or with normal noise of the given total variance on each.

    All `participants` take part in every client round; `q` looks at the current point.
    """
    rng, best, x = np.random.default_rng(seed), problem.best(), start.astype(float)
    scale = (noise / len(start)) ** 0.5
    rows = []
    largest = 0.0
    for _ in range(rounds):
        own = problem.gradients(x)
        mean = own.mean(axis=0)
        largest = max(largest, float(np.sum((own - mean) ** 2, axis=1).max()))
        client = bool(rng.random() < q(x))
        gap = float(np.mean((problem.values(x) - problem.values(best))[participants]))
        move, moved = np.zeros_like(x), x
        if client:
            move, moved = _client_round(problem, participants, x, steps, client_rate, scale, rng)
        else:
            moved = x - server_rate * (mean + scale * rng.normal(size=len(x)))
        rows.append((client, mean @ mean, move @ move, np.sum((x - best) ** 2), gap))
        x = moved
    clients, gradient, moves, distance, gaps = (np.array(column) for column in zip(*rows, strict=True))
    distance = np.append(distance, np.sum((x - best) ** 2))
    start_gap = float(problem.values(start).mean() - problem.values(best).mean())
    return History(clients, gradient, moves, distance, gaps, largest, start_gap)


def _client_round(
    problem: Quadratics,
    participants: np.ndarray,
    x: np.ndarray,
    steps: int,
    rate: float,
    scale: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """The mean over clients of their summed gradients, and the point that they average to."""
    local = np.repeat(x[None], len(participants), axis=0)
    total = np.zeros_like(local)
    for _ in range(steps):
        own = np.einsum("iab,ib->ia", problem.hessians[participants], local - problem.centres[participants])
        total += own
        local = local - rate * (own + scale * rng.normal(size=local.shape))
    return total.mean(axis=0), local.mean(axis=0)
