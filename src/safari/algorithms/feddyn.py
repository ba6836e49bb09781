"""FedDyn: every client's loss is bent so that all agree on where the minimum is."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientState, Memory, Reports
from safari.algorithms.everyone import OverEveryone, nothing_yet, put, rows_of, seen_now
from safari.algorithms.task import Task
from safari.errors import check_positive
from safari.models import Params


class Bent(eqx.Module):
    """The server's h, and who was seen."""

    h: Params
    seen: Bool[Array, " clients"]


class FedDyn(OverEveryone):
    r"""Acar et al.: Federated Learning Based on Dynamic Regularization (ICLR 2021).

    A local step follows $\nabla F_i(y, \xi) - h_i + \alpha (y - x_r)$. With $D_i$ the change of client i
    $$h_i = h_i - \alpha D_i \ (i \in S), \qquad h = h - \frac{\alpha}{N} \sum_{i \in S} D_i, \qquad
      x_{r+1} = x_r + \eta \Big[ \sum_{i \in S} w_i D_i - h / \alpha \Big].$$
    Client i keeps $h_i$ between rounds; all h begin at 0. The rule rests on a summary of
    the paper, where $\eta$ = 1.

    Args:
        alpha: $\alpha$, the strength of the regularisation.
    """

    about = About(
        idea=Idea.DRIFT,
        paper=Paper("Acar et al.", "Federated Learning Based on Dynamic Regularization", "ICLR", 2021),
        server_memory=1,
        client_memory=1,
        rests_on="a summary of the paper; not checked against it",
    )

    alpha: float = 0.01

    def __check_init__(self) -> None:
        check_positive("alpha", self.alpha)

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        clients = task.federation.size
        h = jax.tree.map(jnp.zeros_like, params)
        return Bent(h, jnp.zeros(clients, bool)), nothing_yet(params, clients)

    def direction(
        self, gradient: Params, params: Params, start: Params, broadcast: Memory, own: Memory
    ) -> Params:
        return jax.tree.map(lambda g, y, x, h_i: g - h_i + self.alpha * (y - x), gradient, params, start, own)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        cohort, bent = reports.cohort, state.server_memory
        seen = seen_now(bent.seen, cohort)
        share = self.counts(task)[cohort.clients] / self.total(seen, task)
        share = jnp.where(cohort.reported, share, 0.0)
        changes = eqx.tree_at(lambda reports: reports.weight, reports, share).update()
        h = jax.tree.map(lambda h, d: h - self.alpha * d, bent.h, changes)
        own = jax.tree.map(
            lambda h_i, d: h_i - self.alpha * d, rows_of(state.client_memory, cohort), reports.change
        )
        params = jax.tree.map(
            lambda x, d, h: x + self.global_rate * (d - h / self.alpha), state.params, reports.update(), h
        )
        return ClientState(params, Bent(h, seen), put(state.client_memory, cohort, own))
