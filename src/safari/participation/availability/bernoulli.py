"""Independent coins: each client can be reached with its own probability."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from safari.errors import check, check_fraction
from safari.participation.availability.base import Availability, State


class Bernoulli(Availability):
    """Each client can be reached in a round with a probability of its own, independently of all else.

    Args:
        rate: the probability, one for all clients or a list with one for each.

    Examples:
        >>> import jax, safari
        >>> safari.Bernoulli(rate=(0.0, 1.0)).step(None, jax.random.key(0), 0, 2)[1].tolist()
        [False, True]
    """

    independent: ClassVar[bool] = True
    rate: float | tuple[float, ...] = 0.5

    def __check_init__(self) -> None:
        for rate in self.rate if isinstance(self.rate, tuple | list) else [self.rate]:
            check_fraction("rate", rate)

    def check(self, clients: int) -> None:
        if isinstance(self.rate, tuple | list):
            check(
                len(self.rate) == clients, "rate", self.rate, f"needs one rate for each of {clients} clients"
            )

    def can_come(self, key: Key[Array, ""], clients: int, rounds: int) -> np.ndarray:
        return np.broadcast_to(np.asarray(self.rate) > 0, (clients,))

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, jax.random.uniform(key, (clients,)) < jnp.asarray(self.rate)

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        return jnp.broadcast_to(jnp.asarray(self.rate, jnp.float32), (clients,))
