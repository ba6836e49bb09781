"""Mixed federated learning: server and clients each lower their own part of one loss."""

from dataclasses import replace
from typing import Literal, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from safari.algorithms.about import About, Idea
from safari.algorithms.base import Note, Turn, note
from safari.algorithms.beside import AUGENSTEIN, Beside
from safari.algorithms.client import ClientAlgorithm, ClientState, Memory
from safari.algorithms.combinator import TwoSided, both
from safari.algorithms.server_sgd import check_server_set
from safari.algorithms.task import Task
from safari.data import Federation
from safari.errors import check_not_negative
from safari.models import Params

REST = "a summary of the paper, and memory of it; not checked against its text"


class MixedParallel(Beside):
    r"""Augenstein et al.: Mixed Federated Learning (arXiv 2205.13655), parallel training.

    Clients and server train from the same model x, each on its own samples, and both changes are added:
    $x \leftarrow x + \eta \sum_i w_i D_i + D_0$. The rule rests on a summary of the paper.
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=AUGENSTEIN,
        rests_on=REST,
        passes_ceiling=True,
        server_set=True,
        extra="server steps",
    )

    merge: Literal["sum"] = "sum"


class MixedOneWay(ClientAlgorithm):
    r"""Augenstein et al.: Mixed Federated Learning (arXiv 2205.13655), one-way gradient transfer.

    The server sends $w g_c$ with the model, where $g_c$ is the gradient over all its samples at x; a local
    step follows $\nabla F_i(y, \xi) + w g_c$. The server takes no steps of its own. The rule rests on a
    summary of the paper.

    Args:
        weight: w, how much the server's part of the loss counts beside the clients'.
    """

    about = About(
        idea=Idea.SERVER_GRADIENT,
        paper=AUGENSTEIN,
        rests_on=REST,
        passes_ceiling=True,
        server_set=True,
        down=2,
        extra="a gradient over all samples of the server",
    )

    weight: float = 1.0

    def __check_init__(self) -> None:
        check_not_negative("weight", self.weight)

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        check_server_set(federation)
        return self, federation

    def broadcast(self, state: ClientState, task: Task, turn: Turn) -> Memory:
        gradient = task.gradient(state.params, task.federation.server, task.federation.server_most)
        return jax.tree.map(lambda g_c: self.weight * g_c, gradient)

    def direction(
        self, gradient: Params, params: Params, start: Params, broadcast: Memory, own: Memory
    ) -> Params:
        return jax.tree.map(jnp.add, gradient, broadcast)


class MixedState(eqx.Module):
    """The states of both parts, and the clients' gradient as their last reports showed it."""

    parts: TwoSided
    of_clients: Params

    @property
    def params(self) -> Params:
        return self.parts.params


class MixedTwoWay(Beside):
    r"""Augenstein et al.: Mixed Federated Learning (arXiv 2205.13655), two-way gradient transfer.

    Clients as in `MixedOneWay`. The server, from the same x, takes steps along $w \nabla F_T(y, \xi) + g_f$,
    where $g_f = -\sum_i w_i D_i / (\eta_c K_i) - w g_c$ is the clients' own gradient as the last reports
    showed it, and 0 before the first. Then both changes are merged as in `Beside`. The rule rests on a
    summary of the paper. We subtract $w g_c$, so that the server's gradient does not count twice, and
    average the two changes, because either side follows the whole loss; the paper was not checked for both.
    """

    about = replace(MixedOneWay.about, server_memory=1, extra=f"{MixedOneWay.about.extra}; server steps")

    clients: MixedOneWay = MixedOneWay()

    def init(self, params: Params, task: Task) -> MixedState:
        return MixedState(super().init(params, task), jax.tree.map(jnp.zeros_like, params))

    def prefer(self, state: MixedState, number: Int[Array, ""]) -> Float[Array, " clients"] | None:
        return super().prefer(state.parts, number)

    def deliver(self, state: MixedState) -> Params:
        return super().deliver(state.parts)

    def round(self, state: MixedState, task: Task, turn: Turn) -> tuple[MixedState, Note]:
        before = state.parts.clients
        noted = self.clients.noted(before, task, turn)

        def someone() -> tuple[ClientState, Params]:
            reports = self.clients.collect(before, task, turn)
            sent = self.clients.broadcast(before, task, turn)
            of_clients = jax.tree.map(jnp.subtract, self.clients.mean_gradient(reports), sent)
            return self.clients.absorb(before, reports, task, turn), of_clients

        def towards(gradient: Params, params: Params) -> Params:
            weight: Float[Array, ""] | float = self.clients.weight
            return jax.tree.map(lambda g, g_f: weight * g + g_f, gradient, state.of_clients)

        by_clients, of_clients = task.choose(noted.clients, someone, lambda: (before, state.of_clients))
        by_server = self.server.trained(before.params, task, turn, towards)
        merged = self.merged(before.params, by_clients.params, by_server, task, turn)
        parts = TwoSided(self.clients.with_params(by_clients, merged), state.parts.server)
        by_both = both(noted.over(self.columns), note(server=True).over(self.columns))
        return MixedState(parts, of_clients), by_both
