"""What FedAdagrad and FedYogi share: steps scaled by a second moment, as the paper writes them."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.task import Task
from safari.errors import InputError, check_positive
from safari.models import Params


class Moments(eqx.Module):
    """The first moment and the second."""

    m: Params
    v: Params


class AdaptiveServer(ClientAlgorithm):
    r"""Algorithm 2 of Reddi et al.: Adaptive Federated Optimization (ICLR 2021); without bias correction.

    With $\bar D = \sum_{i \in S} w_i D_i$, m = 0 and $v = \tau^2$ before the first round,
    $$m = \beta_1 m + (1 - \beta_1) \bar D, \qquad x_{r+1} = x_r + \eta \, m / (\sqrt{v} + \tau).$$

    Args:
        global_rate: $\eta$, the server's learning rate.
        b1: $\beta_1$, the decay rate of the first moment.
        tau: $\tau$, the adaptivity.
    """

    b1: float = 0.9
    tau: float = 1e-3
    sum_only: ClassVar[bool] = True

    def __check_init__(self) -> None:
        if not 0 <= self.b1 < 1:
            raise InputError("b1", self.b1, "must be at least 0 and below 1")
        check_positive("tau", self.tau)

    @abstractmethod
    def second(self, v: Array, squares: Array) -> Array:
        """The second moment after a round with these squared changes."""

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        m = jax.tree.map(jnp.zeros_like, params)
        return Moments(m, jax.tree.map(lambda leaf: jnp.full_like(leaf, self.tau**2), params)), None

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        before, mean = state.server_memory, reports.update()
        m = jax.tree.map(lambda m, d: self.b1 * m + (1 - self.b1) * d, before.m, mean)
        v = jax.tree.map(lambda v, d: self.second(v, d**2), before.v, mean)
        params = jax.tree.map(
            lambda p, m, v: p + self.global_rate * m / (jnp.sqrt(v) + self.tau), state.params, m, v
        )
        return ClientState(params, Moments(m, v), None)
