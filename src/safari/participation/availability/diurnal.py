"""Diurnal sine: reachability rises and falls with the time of day of each client."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from safari.errors import check, check_fraction, check_positive
from safari.participation.availability.base import Availability, State


class Diurnal(Availability):
    """Client i is reachable with probability `mean + swing * sin(2 pi (r / period + u_i))`.

    The phase u_i is `spread` times a uniform draw.

    Args:
        mean: the probability over the day.
        swing: how far it goes above and below that.
        period: rounds a day.
        spread: how far the clients' phases lie apart; 0 puts all clients in one time zone.

    Examples:
        >>> import safari
        >>> safari.Participation(availability=safari.Diurnal(mean=0.6, swing=0.3)).availability.period
        24.0
    """

    independent: ClassVar[bool] = True
    mean: float = 0.5
    swing: float = 0.4
    period: float = 24.0
    spread: float = 1.0

    def __check_init__(self) -> None:
        check_fraction("mean", self.mean)
        check(
            0 <= self.swing <= min(self.mean, 1 - self.mean) + 1e-9,
            "swing",
            self.swing,
            "must be 0 or more, and mean - swing and mean + swing must stay between 0 and 1",
        )
        check_positive("period", self.period)
        check_fraction("spread", self.spread)

    def init(self, key: Key[Array, ""], clients: int) -> State:
        return self.spread * jax.random.uniform(key, (clients,))

    def can_come(self, key: Key[Array, ""], clients: int, rounds: int) -> np.ndarray:
        return np.full(clients, float(self.mean) > 0)

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, jax.random.uniform(key, (clients,)) < self.rates(state, round, clients)

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        return self.mean + self.swing * jnp.sin(2 * jnp.pi * (round / self.period + state))
