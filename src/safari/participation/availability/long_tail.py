"""Long-tailed rates: a few clients are nearly always there, most of them rarely."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from safari.errors import check_not_negative, check_positive
from safari.participation.availability.base import Availability, State


class LongTail(Availability):
    """Client i can be reached with probability (1 + rank)^-exponent; ranks are drawn at random.

    Args:
        exponent: how fast the probabilities fall with the rank.
        least: no probability is below this.

    Examples:
        >>> import jax, safari
        >>> rates = safari.LongTail(least=0.3).init(jax.random.key(0), 4)
        >>> sorted(round(rate, 2) for rate in rates.tolist())
        [0.3, 0.33, 0.5, 1.0]
    """

    independent: ClassVar[bool] = True
    exponent: float = 1.0
    least: float = 0.01

    def __check_init__(self) -> None:
        check_positive("exponent", self.exponent)
        check_not_negative("least", self.least)

    def init(self, key: Key[Array, ""], clients: int) -> State:
        rank = jax.random.permutation(key, clients)
        return jnp.maximum((1.0 + rank) ** -jnp.asarray(self.exponent), self.least)

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, jax.random.uniform(key, (clients,)) < state

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        return state
