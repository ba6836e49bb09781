"""Cyclic groups: the clients take turns, group after group (time zones, night charging)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from safari.errors import check, check_count
from safari.participation.availability.base import Availability, State


class Cyclic(Availability):
    """The clients are divided into groups at random; the groups are reachable in turn.

    Args:
        groups: how many groups.
        length: for how many rounds each is reachable.

    Examples:
        >>> import jax, safari
        >>> pattern = safari.Cyclic(groups=3, length=2)
        >>> groups = pattern.init(jax.random.key(0), 6)
        >>> [int(pattern.step(groups, None, round, 6)[1].sum()) for round in range(4)]
        [2, 2, 2, 2]
    """

    groups: int = 2
    length: int = 1

    def __check_init__(self) -> None:
        check_count("groups", self.groups)
        check_count("length", self.length)

    def check(self, clients: int) -> None:
        check(self.groups <= clients, "groups", self.groups, f"there are only {clients} clients")

    def init(self, key: Key[Array, ""], clients: int) -> State:
        return jax.random.permutation(key, jnp.arange(clients) % self.groups)

    def can_come(self, key: Key[Array, ""], clients: int, rounds: int) -> np.ndarray:
        turns = -(-rounds // self.length)
        return np.asarray(self.init(key, clients)) < turns

    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        return state, state == (round // self.length) % self.groups

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"]:
        return jnp.full(clients, 1 / self.groups)
