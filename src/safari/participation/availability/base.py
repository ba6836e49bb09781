"""The family of availability patterns: who *can* take part in a round."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from safari.registry import Noun

State: TypeAlias = PyTree[Any]


class Availability(Noun):
    """Which of `clients` clients can be reached in a round.

    A pattern may keep a state (a Markov chain does); `None` is the state of one that does
    not. `key` belongs to the round alone. Subclass it to bring your own; its fields become keys.

    Examples:
        >>> import jax, jax.numpy as jnp, safari
        >>> class EveryOther(safari.Availability):
        ...     def step(self, state, key, round, clients):
        ...         return state, jnp.arange(clients) % 2 == round % 2
        >>> EveryOther().step(None, jax.random.key(0), 1, 4)[1].tolist()
        [False, True, False, True]
    """

    independent: ClassVar[bool] = False
    """Whether every client comes by a coin of its own in every round, whatever happened before."""

    def called(self, names: Sequence[str] | None) -> "Availability":
        """The pattern for clients of these names, by their numbers. Host code."""
        return self

    def check(self, clients: int) -> None:
        """Raise `InputError` if the pattern does not fit so many clients."""

    def init(self, key: Key[Array, ""], clients: int) -> State:
        """The state before the first round."""
        return None

    def can_come(self, key: Key[Array, ""], clients: int, rounds: int) -> np.ndarray:
        """Which clients have a chance to be there in one of the first `rounds` rounds. Host code.

        Everyone, unless the pattern knows better. What a report says of the clients that never take
        part goes by this.

        Args:
            key: that of `init`.
            clients: how many there are.
            rounds: how many the run has.
        """
        return np.ones(clients, bool)

    @abstractmethod
    def step(
        self, state: State, key: Key[Array, ""], round: Int[Array, ""], clients: int
    ) -> tuple[State, Bool[Array, " clients"]]:
        """The state after the round, and who can take part in it."""

    def rates(self, state: State, round: Int[Array, ""], clients: int) -> Float[Array, " clients"] | None:
        """The probability that each client can be reached in a round, before anything was seen of it.

        Where clients come and go on their own it is that of this round, otherwise the share of all rounds.
        None where the pattern cannot say: methods that need the rates then refuse it.

        Args:
            state: the state before or after the round.
            round: its number, from 0.
            clients: how many clients there are.
        """
        return None
