"""Every client, every round."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key

from safari.participation.availability.base import Availability, State


class Always(Availability):
    """All clients can be reached in all rounds.

    Examples:
        >>> import safari
        >>> safari.Participation(per_round=5).availability == safari.Always()
        True
    """

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, jnp.ones(clients, bool)
