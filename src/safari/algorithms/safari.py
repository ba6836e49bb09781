"""SAFARI: client rounds and server rounds, by the toss of a coin."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from safari.algorithms.adaptive_q import AdaptiveQ, Knowledge
from safari.algorithms.base import Algorithm, Kind, Turn
from safari.algorithms.client import ClientAlgorithm, ClientState
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.server_sgd import ServerSGD, ServerState
from safari.algorithms.task import Task
from safari.branching import choose
from safari.data import Federation
from safari.devices import placed
from safari.errors import check_fraction
from safari.models import Params


class SafariState(eqx.Module):
    """The client algorithm's state, the parameters that the last server round left, and what an
    adaptive q knows (None for a fixed one)."""

    clients: ClientState
    left_by_server: Params
    server_acted: Bool[Array, ""]
    known: Knowledge | None

    @property
    def params(self) -> Params:
        return self.clients.params


class Safari(Algorithm):
    """Yang et al.: Understanding Server-Assisted Federated Learning (ICML 2024).

    Every round, with probability `q` the clients train by their algorithm, otherwise the
    server takes SGD steps on its own samples. q = 1 is the client algorithm, q = 0 is
    server-only training; an `AdaptiveQ` chooses q before every round. What is delivered is the
    model that the last server round left: client rounds after it pull the model back towards
    the clients that take part.
    """

    clients: ClientAlgorithm = FedAvg()
    server: ServerSGD = ServerSGD()
    q: float | AdaptiveQ = 0.8

    def __check_init__(self) -> None:
        if not isinstance(self.q, AdaptiveQ):
            check_fraction("q", self.q)

    @property
    def models_down(self) -> int:  # type: ignore[override]
        return self.clients.models_down

    @property
    def models_up(self) -> int:  # type: ignore[override]
        return self.clients.models_up

    def bind(self, federation: Federation) -> "Safari":
        if isinstance(self.q, AdaptiveQ):
            self.q.check_fits(federation)
        return replace(
            self, clients=self.clients.bind(federation), server=self.server.bind(federation, self.clients)
        )

    def init(self, params: Params, task: Task) -> SafariState:
        known = self.q.start(params) if isinstance(self.q, AdaptiveQ) else None
        return SafariState(self.clients.init(params, task), params, placed(False), known)

    def probability(self, state: SafariState) -> Float[Array, ""]:
        return jnp.asarray(self.q if state.known is None else state.known.q, jnp.float32)

    def kind(self, state: SafariState, turn: Turn) -> Int[Array, ""]:
        clients = self.clients.kind(state.clients, turn)
        return jnp.where(turn.coin < self.probability(state), clients, Kind.SERVER)

    def round(self, state: SafariState, task: Task, turn: Turn) -> SafariState:
        def client_round() -> SafariState:
            clients = self.clients.round(state.clients, task, turn)
            gradient = self._client_gradient(state.params, clients.params, task)
            known = self._observed(state, task, turn, clients.params, gradient)
            return SafariState(clients, state.left_by_server, state.server_acted, known)

        def server_round() -> SafariState:
            params = self.server.round(ServerState(state.params), self.own(task), turn).params
            clients = eqx.tree_at(lambda state: state.params, state.clients, params)
            known = self._observed(state, task, turn, params, None)
            return SafariState(clients, params, jnp.array(True), known)

        return choose(self.kind(state, turn) == Kind.SERVER, server_round, client_round)

    def own(self, task: Task) -> Task:
        """The task with the server's samples less those that an adaptive q holds out."""
        if not isinstance(self.q, AdaptiveQ):
            return task
        return eqx.tree_at(
            lambda task: task.federation.server, task, self.q.shards(task.federation.server)[0]
        )

    def _client_gradient(self, before: Params, after: Params, task: Task) -> Params:
        """The clients' mean gradient, as their average change shows it."""
        steps = self.clients.steps(task.federation.median_size)
        path = self.clients.global_rate * self.clients.local_rate * steps
        return jax.tree.map(lambda old, new: (old - new) / path, before, after)

    def _observed(
        self, state: SafariState, task: Task, turn: Turn, params: Params, client_gradient: Params | None
    ) -> Knowledge | None:
        if state.known is None or not isinstance(self.q, AdaptiveQ):
            return None
        return self.q.observe(
            state.known, task, params, turn.server_batches, self.server.rate, client_gradient
        )

    def synced(self, state: SafariState) -> tuple[Params, Bool[Array, ""]]:
        return state.left_by_server, state.server_acted
