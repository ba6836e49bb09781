"""Amplified updates: what the clients did over a stretch of rounds, taken several times."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.task import Task
from safari.errors import check_count, check_positive
from safari.models import Params


class Stretch(eqx.Module):
    """What the clients changed since the last amplification, and the stretch that this belongs to."""

    change: Params
    number: Int[Array, ""]


class Amplify(ClientAlgorithm):
    r"""Wang and Ji: A Unified Analysis of Federated Learning with Arbitrary Client Participation
    (NeurIPS 2022).

    FedAvg, but every P rounds the sum u of the clients' updates since the last time counts $\alpha$ times:
    $$x_{r+1} = x_r + \eta \sum_{i \in S} w_i D_i, \qquad
      \text{every P rounds } x_{r+1} = x_{r+1} + (\alpha - 1) u, \ u = 0.$$
    Rounds in which nobody reports and those of the server count among the P; if the last of them
    is one, the next round of the clients amplifies. What a server adds is not amplified. The rule rests
    on a summary of the paper.

    Args:
        amplification: $\alpha$, how many times the updates count.
        every: P, the rounds from one amplification to the next.
    """

    about = About(
        idea=Idea.RATES,
        paper=Paper(
            "Wang and Ji",
            "A Unified Analysis of Federated Learning with Arbitrary Client Participation",
            "NeurIPS",
            2022,
        ),
        server_memory=1,
        rests_on="a summary of the paper; not checked against it",
    )

    amplification: float = 10.0
    every: int = 500
    sum_only: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_positive("amplification", self.amplification)
        check_count("every", self.every)

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        return Stretch(jax.tree.map(jnp.zeros_like, params), jnp.int32(0)), None

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        stretch = state.server_memory
        update = jax.tree.map(lambda change: self.global_rate * change, reports.update())
        together = jax.tree.map(jnp.add, stretch.change, update)
        number = (turn.number + 1) // self.every
        over = number > stretch.number
        more = jnp.where(over, self.amplification - 1.0, 0.0)
        params = jax.tree.map(lambda p, u, sum: p + u + more * sum, state.params, update, together)
        left = jax.tree.map(lambda sum: jnp.where(over, 0.0, sum), together)
        return ClientState(params, Stretch(left, number), None)
