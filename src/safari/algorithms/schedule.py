"""How rates change over the rounds: a factor on the clients' and the server's rates."""

from abc import abstractmethod
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from safari.algorithms.base import Algorithm
from safari.algorithms.client import ClientAlgorithm
from safari.algorithms.server_sgd import ServerSGD
from safari.registry import Noun

A = TypeVar("A", bound=Algorithm)


class Schedule(Noun):
    """A factor on the clients' `local_rate` and the server's `rate`, round by round.

    Subclass it for one of your own.

    Examples:
        >>> import safari
        >>> class Halved(safari.Schedule):
        ...     after: int = 50
        ...     def factor(self, number, rounds):
        ...         return 0.5 ** (number >= self.after)
        >>> safari.train(safari.federate("digits"), rounds=2, schedule=Halved(after=1)).history.height
        2
    """

    @abstractmethod
    def factor(self, number: Int[Array, ""], rounds: int) -> Float[Array, ""]:
        """The factor in round `number` (from 0) of a run of `rounds`."""

    def apply(self, algorithm: A, number: Int[Array, ""], rounds: int) -> A:
        """The algorithm with the rates of a round."""

        def rates(whole: A) -> list[Array | float]:
            return [
                part.local_rate if isinstance(part, ClientAlgorithm) else part.rate
                for part in whole.parts()
                if isinstance(part, ClientAlgorithm | ServerSGD)
            ]

        factor = jnp.asarray(self.factor(number, rounds), jnp.float32)
        now = [rate * factor for rate in rates(algorithm)]
        return eqx.tree_at(rates, algorithm, now) if now else algorithm
