"""SAFARI: client rounds and server rounds, by the toss of a coin."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from safari.algorithms.base import Algorithm, Kind, Turn
from safari.algorithms.client import ClientAlgorithm, ClientState
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.server_sgd import ServerSGD, ServerState
from safari.algorithms.task import Task
from safari.data import Federation
from safari.errors import check_fraction
from safari.models import Params


class SafariState(eqx.Module):
    """The client algorithm's state, and the parameters that the last server round left."""

    clients: ClientState
    left_by_server: Params
    server_acted: Bool[Array, ""]

    @property
    def params(self) -> Params:
        return self.clients.params


class Safari(Algorithm):
    """Yang et al.: Understanding Server-Assisted Federated Learning (ICML 2024).

    Every round, with probability `q` the clients train by their algorithm, otherwise the
    server takes SGD steps on its own samples. q = 1 is the client algorithm, q = 0 is
    server-only training. What is delivered is the model that the last server round left:
    client rounds after it pull the model back towards the clients that take part.
    """

    clients: ClientAlgorithm = FedAvg()
    server: ServerSGD = ServerSGD()
    q: float = 0.8

    def __check_init__(self) -> None:
        check_fraction("q", self.q)

    @property
    def models_down(self) -> int:  # type: ignore[override]
        return self.clients.models_down

    @property
    def models_up(self) -> int:  # type: ignore[override]
        return self.clients.models_up

    def bind(self, federation: Federation) -> "Safari":
        return replace(
            self, clients=self.clients.bind(federation), server=self.server.bind(federation, self.clients)
        )

    def init(self, params: Params, task: Task) -> SafariState:
        return SafariState(self.clients.init(params, task), params, jnp.array(False))

    def kind(self, state: SafariState, turn: Turn) -> Int[Array, ""]:
        return jnp.where(turn.coin < self.q, self.clients.kind(state.clients, turn), Kind.SERVER)

    def round(self, state: SafariState, task: Task, turn: Turn) -> SafariState:
        def client_round() -> SafariState:
            clients = self.clients.round(state.clients, task, turn)
            return SafariState(clients, state.left_by_server, state.server_acted)

        def server_round() -> SafariState:
            params = self.server.round(ServerState(state.params), task, turn).params
            clients = eqx.tree_at(lambda state: state.params, state.clients, params)
            return SafariState(clients, params, jnp.array(True))

        return jax.lax.cond(self.kind(state, turn) == Kind.SERVER, server_round, client_round)

    def synced(self, state: SafariState) -> tuple[Params, Bool[Array, ""]]:
        return state.left_by_server, state.server_acted
