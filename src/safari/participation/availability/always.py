"""Every client, every round."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from safari.participation.availability.base import Availability, State


class Always(Availability):
    """All clients can be reached in all rounds.

    Examples:
        >>> import safari
        >>> safari.Participation(per_round=5).availability == safari.Always()
        True
    """

    independent: ClassVar[bool] = True

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, jnp.ones(clients, bool)

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        return jnp.ones(clients)
