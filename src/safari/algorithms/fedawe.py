"""FedAWE: clients go on from where they left off, and make up for the rounds that they missed."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.everyone import put
from safari.algorithms.task import Task
from safari.models import Params


class Left(eqx.Module):
    """The model that each client got last, and the round of that (-1 before the first)."""

    model: Params
    last: Int[Array, " clients"]


class FedAWE(ClientAlgorithm):
    r"""Xiang et al.: Efficient Federated Learning against Heterogeneous and Non-stationary Client
    Unavailability (NeurIPS 2024).

    Client i starts at $x_i$, the model that it got at the end of the round $\tau_i$ in which it reported
    last, and its K local steps lead to $x_i^K$. Then
    $$x_{r+1} = \sum_{i \in S} w_i \big[ x_i + \eta (r - \tau_i) (x_i^K - x_i) \big], \qquad
      x_i = x_{r+1}, \ \tau_i = r \ (i \in S),$$
    with $x_i = x_0$ and $\tau_i = -1$ before the first report. Rounds in which nobody reports and those of
    the server count as missed. Where a server trains too, what its rounds change is added to every $x_i$;
    without that it would be lost. The rule is the paper's, and the authors' code's.
    """

    about = About(
        idea=Idea.ABSENT,
        paper=Paper(
            "Xiang et al.",
            "Efficient Federated Learning against Heterogeneous and Non-stationary Client Unavailability",
            "NeurIPS",
            2024,
        ),
        rests_on="the paper and the authors' code",
        server_memory=1,
        for_each_client=1,
    )

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        clients = task.federation.size
        everywhere = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (clients, *leaf.shape)), params)
        return params, Left(everywhere, jnp.full(clients, -1, jnp.int32))

    def recall(self, state: ClientState, client: Int[Array, ""]) -> Memory:
        """How far the client's model is from what the clients' rounds have made, and its own last round."""
        own = super().recall(state, client)
        return Left(jax.tree.map(jnp.subtract, own.model, state.server_memory), own.last)

    def start(self, own: Memory, params: Params) -> Params:
        return jax.tree.map(jnp.add, params, own.model)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        missed = self.global_rate * (turn.number - reports.own.last)

        def echoed(away: Array, by_steps: Array) -> Array:
            return away + missed.reshape(-1, *[1] * (away.ndim - 1)) * by_steps

        moved = reports.sum(jax.tree.map(echoed, reports.own.model, self._by_steps(reports)))
        # Memories leave out what a server has changed, so that it never has to be added to every client's.
        params, made = (jax.tree.map(jnp.add, x, moved) for x in (state.params, state.server_memory))
        slots = len(missed)
        got = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (slots, *leaf.shape)), made)
        own = put(state.client_memory, reports.cohort, Left(got, jnp.full(slots, turn.number)))
        return ClientState(params, made, own)

    def mean_gradient(self, reports: Reports) -> Params:
        return super().mean_gradient(replace(reports, change=self._by_steps(reports)))

    def _by_steps(self, reports: Reports) -> Params:
        """What the local steps changed: `change` counts from the model, and they began away from it."""
        return jax.tree.map(jnp.subtract, reports.change, reports.own.model)
