"""Random draws on the server: the coin, the cohort. The same as the simulator's under one seed."""

from collections.abc import Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from safari.algorithms import AdaptiveQ
from safari.algorithms.adaptive_q import Knowledge
from safari.flower.arrays import Arrays
from safari.participation.sampling import pick
from safari.randomness import streams_of

EVALUATION = 1
"""Folded into a round's sampling: who evaluates, which is no business of who trains."""


_pick = jax.jit(pick, static_argnums=(2, 3))


@dataclass
class Draws:
    """The draws of a seed; rounds are counted from 1."""

    seed: int

    def coin(self, round: int) -> float:
        """Between 0 and 1: a client round, if below q."""
        return float(jax.random.uniform(jax.random.fold_in(streams_of(self.seed).coin, round - 1)))

    def cohort(
        self, round: int, available: Iterable[int], fleet: int, wanted: int | None, evaluation: bool = False
    ) -> list[int]:
        """Up to `wanted` of the available clients, out of a fleet of so many."""
        there = np.zeros(fleet, bool)
        there[list(available)] = True
        key = jax.random.fold_in(streams_of(self.seed).sampling, round - 1)
        key = jax.random.fold_in(key, EVALUATION) if evaluation else key
        slots = fleet if wanted is None else min(wanted, fleet)
        drawn = _pick(key, jnp.asarray(there), slots, slots)
        return np.asarray(drawn.clients)[np.asarray(drawn.picked)].tolist()


@dataclass
class Coin:
    """How likely the next round is the clients': a number, or what an `AdaptiveQ` has learnt."""

    q: float | AdaptiveQ
    rate: float = 0.0
    path: float | None = None
    known: Knowledge | None = None

    @property
    def adaptive(self) -> bool:
        return isinstance(self.q, AdaptiveQ)

    def probability(self) -> float:
        if self.known is not None:
            return float(self.known.q)
        return 0.0 if isinstance(self.q, AdaptiveQ) else float(self.q)

    def start(self, arrays: Arrays) -> None:
        if isinstance(self.q, AdaptiveQ):
            self.known = self.q.start({name: jnp.asarray(array) for name, array in arrays.items()})

    def learn(self, halves: tuple[Arrays, Arrays], client_gradient: Arrays | None) -> None:
        """What a round has shown: `halves` are gradients where it ended.

        `client_gradient` is the clients' mean gradient, if it was a client round.
        """
        assert isinstance(self.q, AdaptiveQ)
        assert self.known is not None
        a, b = ({name: jnp.asarray(half[name]) for name in halves[0]} for half in halves)
        gradient = None if client_gradient is None else jax.tree.map(jnp.asarray, client_gradient)
        self.known = self.q.learn(self.known, (a, b), self.rate, gradient)
