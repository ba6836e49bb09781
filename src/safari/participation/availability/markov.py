"""On/off Markov chain: a client that is away tends to stay away."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from safari.errors import check, check_fraction
from safari.participation.availability.base import Availability, State


class Markov(Availability):
    """Each client goes off with probability `leave` and comes back with probability `join`.

    The chain starts in its stationary state: reachable with probability
    join / (join + leave).

    Args:
        join: the probability that a client which is off comes back.
        leave: the probability that a client which is there goes off.

    Examples:
        >>> import jax, jax.numpy as jnp, safari
        >>> on = jnp.array([True, False])
        >>> safari.Markov(join=0.0, leave=1.0).step(on, jax.random.key(0), 0, 2)[1].tolist()
        [False, False]
    """

    join: float = 0.1
    leave: float = 0.1

    def __check_init__(self) -> None:
        check_fraction("join", self.join)
        check_fraction("leave", self.leave)
        check(self.join + self.leave > 0, "join", self.join, "join and leave cannot both be 0")

    def init(self, key: Key[Array, ""], clients: int) -> State:
        return jax.random.uniform(key, (clients,)) < self.join / (self.join + self.leave)

    def can_come(self, key: Key[Array, ""], clients: int, rounds: int) -> np.ndarray:
        return np.full(clients, float(self.join) > 0)

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        draw = jax.random.uniform(key, (clients,))
        now = (state & (draw >= self.leave)) | (~state & (draw < self.join))
        return now, now

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        return jnp.full(clients, self.join / (self.join + self.leave))
