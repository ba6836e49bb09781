"""What the combinators share: a part for the clients, a part for the server, one set of parameters."""

from dataclasses import replace
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from safari.algorithms.base import Algorithm, Note, Turn
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.server_sgd import ServerSGD
from safari.algorithms.task import Task
from safari.data import Federation
from safari.errors import check
from safari.models import Params


class TwoSided(eqx.Module):
    """The state of the clients' part, which has the parameters, and of the server's part, without them."""

    clients: Any
    server: Any

    @property
    def params(self) -> Params:
        return self.clients.params


class ClientsAndServer(Algorithm):
    """An algorithm made of a part for the clients and a part for the server.

    Args:
        clients: how the clients train: any client algorithm, or another combinator.
        server: how the server trains on its own samples.
    """

    clients: Algorithm = FedAvg()
    server: ServerSGD = ServerSGD()
    own_columns: ClassVar[tuple[str, ...]] = ()

    def __check_init__(self) -> None:
        name = type(self.clients).__name__
        check(self.clients.asks_clients, "clients", name, "must be an algorithm in which clients train")

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys((*self.own_columns, *self.clients.columns, *self.server.columns)))

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        clients, federation = self.clients.bind(federation, seed)
        return replace(self, clients=clients, server=self.server.beside(clients, federation)), federation

    def init(self, params: Params, task: Task) -> Any:
        server = self.server.init(params, task)
        return TwoSided(self.clients.init(params, task), self.server.with_params(server, None))

    def client_round(self, state: TwoSided, task: Task, turn: Turn) -> tuple[TwoSided, Note]:
        """A round of the clients' part."""
        clients, note = self.clients.round(state.clients, task, turn)
        return TwoSided(clients, state.server), note.over(self.columns)

    def server_round(self, state: TwoSided, task: Task, turn: Turn) -> tuple[TwoSided, Note]:
        """A round of the server's part, from where the parameters are."""
        begun = self.server.with_params(state.server, state.params)
        server, note = self.server.round(begun, task, turn)
        clients = self.clients.with_params(state.clients, server.params)
        return TwoSided(clients, self.server.with_params(server, None)), note.over(self.columns)

    def prefer(self, state: Any, number: Int[Array, ""]) -> Float[Array, " clients"] | None:
        return self.clients.prefer(state.clients, number)

    def deliver(self, state: Any) -> Params:
        return self.clients.deliver(state.clients)


def both(first: Note, second: Note) -> Note:
    """The note of a round in which both parts acted."""
    columns = {
        name: jnp.where(jnp.isnan(one), second.columns[name], one) for name, one in first.columns.items()
    }
    return replace(
        first,
        clients=first.clients | second.clients,
        server=first.server | second.server,
        down=first.down + second.down,
        up=first.up + second.up,
        columns=columns,
    )
