"""FedExP: the server's step is longer the more the clients disagree."""

import jax
import jax.numpy as jnp

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.task import Task, inner
from safari.errors import check_positive
from safari.models import Params


class FedExP(ClientAlgorithm):
    r"""Jhunjhunwala et al.: FedExP: Speeding Up Federated Averaging via Extrapolation (ICLR 2023).

    With $\bar D = \sum_{i \in S} w_i D_i$ the model moves by $\eta \eta_g \bar D$, where
    $$\eta_g = \max \Big( 1, \sum_{i \in S} w_i |D_i|^2 \,/\, 2 (|\bar D|^2 + \epsilon) \Big).$$
    What is delivered is the mean of the last two models. The rule is that of the authors' code, which
    takes $|S| \epsilon$ for $\epsilon$, and lets it fall over the rounds.

    Args:
        eps: $\epsilon$; the larger, the nearer to FedAvg.
    """

    about = About(
        idea=Idea.SERVER_OPTIMISER,
        paper=Paper(
            "Jhunjhunwala et al.", "FedExP: Speeding Up Federated Averaging via Extrapolation", "ICLR", 2023
        ),
        rests_on="the authors' code; epsilon is not scaled by the cohort's size",
        server_memory=1,
    )

    eps: float = 1e-3

    def __check_init__(self) -> None:
        check_positive("eps", self.eps)

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        return params, None

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        mean = reports.update()
        squares = jax.vmap(inner)(reports.change, reports.change)
        squares = jnp.sum(jnp.where(reports.weight > 0, reports.weight * squares, 0.0))
        rate = self.global_rate * jnp.maximum(1.0, squares / (2.0 * (inner(mean, mean) + self.eps)))
        params = jax.tree.map(lambda p, change: p + rate * change, state.params, mean)
        return ClientState(params, state.params, None)

    def deliver(self, state: ClientState) -> Params:
        return jax.tree.map(lambda p, before: (p + before) / 2, state.params, state.server_memory)

    def with_params(self, state: ClientState, params: Params | None) -> ClientState:
        """Where another algorithm has gone on from the model, its model is not averaged with an older one."""
        return ClientState(params, params, None)
