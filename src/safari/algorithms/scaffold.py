"""SCAFFOLD: control variates against client drift."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.task import Task
from safari.models import Params


class SCAFFOLD(ClientAlgorithm):
    r"""Karimireddy et al.: SCAFFOLD (ICML 2020), option II.

    A local step follows $\nabla F_i(x, \xi) - c_i + c$. Afterwards
    $c_i^+ = c_i - c + (x_r - x^i_K) / (K \eta_c)$ and $c$ moves by the mean over all M
    clients of the changes. Client i keeps $c_i$ between rounds; $c$ travels with the model.
    """

    about = About(
        idea=Idea.DRIFT,
        paper=Paper(
            "Karimireddy et al.",
            "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
            "ICML",
            2020,
        ),
        down=2,
        up=2,
        server_memory=1,
        client_memory=1,
    )

    models_up: ClassVar[float] = 2.0

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        clients = task.federation.size
        own = jax.tree.map(lambda p: jnp.zeros((clients, *p.shape), p.dtype), params)
        return jax.tree.map(jnp.zeros_like, params), own

    def broadcast(self, state: ClientState, task: Task, turn: Turn) -> Memory:
        return state.server_memory

    def direction(
        self, gradient: Params, params: Params, start: Params, broadcast: Memory, own: Memory
    ) -> Params:
        return jax.tree.map(lambda g, c_i, c: g - c_i + c, gradient, own, broadcast)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        cohort = reports.cohort

        def renewal(change: Array, control: Array) -> Array:
            shape = (-1, *[1] * (change.ndim - 1))
            path = (reports.steps * self.local_rate).reshape(shape)
            renewed = -control - change / path
            return jnp.where(cohort.reported.reshape(shape), renewed, 0.0)

        moved = jax.tree.map(renewal, reports.change, state.server_memory)
        clients = jax.tree.map(lambda c, d: c.at[cohort.clients].add(d), state.client_memory, moved)
        server = jax.tree.map(
            lambda c, d, all_clients: c + d.sum(axis=0) / len(all_clients),
            state.server_memory, moved, state.client_memory,
        )  # fmt: skip
        return ClientState(super().absorb(state, reports, task, turn).params, server, clients)
