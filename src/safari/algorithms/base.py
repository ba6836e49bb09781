"""The family of algorithms: a state, what a round makes of it, what is delivered."""

from abc import abstractmethod
from enum import IntEnum
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from safari.algorithms.task import Task
from safari.data import Federation
from safari.models import Params
from safari.participation import Cohort


class Kind(IntEnum):
    """What a round was: the clients trained, the server trained, or nobody could."""

    CLIENT = 0
    SERVER = 1
    IDLE = 2


class Turn(eqx.Module):
    """One round, as chance dealt it: the same for every algorithm under one seed."""

    number: Int[Array, ""]
    cohort: Cohort
    coin: Float[Array, ""]
    client_batches: Key[Array, ""]
    server_batches: Key[Array, ""]


class Algorithm(eqx.Module):
    """How parameters change from round to round.

    The state is any pytree that has the current parameters as `params`.
    Floats are leaves, so that runs which differ in them can be stacked; whole numbers and
    names are static. A client of a client round receives `models_down` and sends
    `models_up` sets of parameters.
    """

    models_down: ClassVar[int] = 1
    models_up: ClassVar[int] = 1

    def bind(self, federation: Federation) -> "Algorithm":
        """The algorithm with all that depends on the federation's sizes filled in.

        Raises `InputError` if the federation does not fit.
        """
        return self

    @abstractmethod
    def init(self, params: Params, task: Task) -> Any:
        """The state before the first round."""

    @abstractmethod
    def kind(self, state: Any, turn: Turn) -> Int[Array, ""]:
        """What this round is going to be, a `Kind`. Idle rounds leave the state alone."""

    def probability(self, state: Any) -> Float[Array, ""]:
        """The probability that the coming round is the clients'; NaN for what tosses no coin."""
        return jnp.float32(jnp.nan)

    @abstractmethod
    def round(self, state: Any, task: Task, turn: Turn) -> Any:
        """The state after a round that is not idle."""

    def synced(self, state: Any) -> tuple[Params, Bool[Array, ""]]:
        """The parameters that the last server round left, and whether there was one."""
        return state.params, jnp.array(False)

    def deliver(self, state: Any) -> Params:
        """The parameters to hand over: what the last server round left, else the current."""
        left, exists = self.synced(state)
        return jax.tree.map(lambda left, now: jnp.where(exists, left, now), left, state.params)
