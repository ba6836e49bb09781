"""FLTrust: the server trusts a client as far as it goes the server's own way."""

from typing import Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Reports
from safari.algorithms.server_sgd import check_server_set
from safari.algorithms.task import Task, inner
from safari.data import Federation


class FLTrust(ClientAlgorithm):
    r"""Cao et al.: FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping (NDSS 2021).

    $g_0$ is what as many local steps on the server's own samples would change. With
    $t_i = \mathrm{relu}(\cos(D_i, g_0))$ the model moves by
    $\sum_i t_i D_i |g_0| / |D_i| \,/\, \sum_i t_i$, and not at all if every trust is 0. $g_0$ itself is not
    added, so classes that no participating client holds stay unseen. The rule is the paper's.
    """

    about = About(
        idea=Idea.SERVER_JUDGES,
        paper=Paper(
            "Cao et al.", "FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping", "NDSS", 2021
        ),
        rests_on="the paper; other people's code agrees",
        server_set=True,
        extra="server steps",
    )

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        check_server_set(federation)
        return self, federation

    def weigh(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> Float[Array, " slots"]:
        federation = task.federation
        size = min(self.batch_size, federation.server_most)
        steps = int(self.steps(federation.server_most))
        minibatches = task.minibatches(federation.server, turn.server_batches, steps, size)
        end = task.once(lambda: task.sgd(state.params, minibatches, rate=self.local_rate, clip=self.clip))
        own = jax.tree.map(jnp.subtract, end, state.params)
        length = jnp.sqrt(inner(own, own))
        lengths = jnp.sqrt(jax.vmap(inner)(reports.change, reports.change))
        along = jax.vmap(lambda change: inner(change, own))(reports.change)
        trust = jnp.maximum(along / jnp.maximum(lengths * length, 1e-30), 0.0)
        trust = jnp.where(reports.cohort.reported, trust, 0.0)
        return trust * length / jnp.maximum(lengths, 1e-30) / jnp.maximum(trust.sum(), 1e-30)
