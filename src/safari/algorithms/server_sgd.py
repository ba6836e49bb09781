"""Server-only training: SGD on the server's own samples."""

from dataclasses import replace
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from safari.algorithms.base import Algorithm, Kind, Turn
from safari.algorithms.client import ClientAlgorithm
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.task import Task
from safari.data import Federation
from safari.devices import once
from safari.errors import check, check_count, check_positive
from safari.models import Params


class ServerState(eqx.Module):
    """The parameters are all that server-only training remembers."""

    params: Params


class ServerSGD(Algorithm):
    r"""$x \leftarrow x - \eta_s \nabla F_T(x, \xi)$, several times a round, on the server's set T.

    `rate` is $\eta_s$. `steps` a round: a number (1 is the paper's Algorithm 1 to the
    letter), `epoch` for one pass over T, or `match` for as many as a client takes.
    Batches are drawn without replacement; a smaller T is used whole. A minibatch gradient
    longer than `clip` is scaled down to it.
    """

    rate: float = 0.1
    steps: int | Literal["epoch", "match"] = eqx.field(static=True, default="match")
    batch_size: int = eqx.field(static=True, default=64)
    clip: float | None = None

    def __check_init__(self) -> None:
        check_positive("rate", self.rate)
        if isinstance(self.steps, int):
            check_count("steps", self.steps)
        else:
            check(self.steps in ("epoch", "match"), "steps", self.steps, "must be a number, epoch or match")
        check_count("batch_size", self.batch_size)
        if self.clip is not None:
            check_positive("clip", self.clip)

    def bind(self, federation: Federation, clients: ClientAlgorithm | None = None) -> "ServerSGD":
        """Put a number on `steps`; `clients` is the algorithm to match (default: one epoch)."""
        check(
            federation.server_samples > 0,
            "data.server_samples",
            federation.server_samples,
            "the server has nothing to train on; give it at least 1 sample",
        )
        steps = self.steps
        if steps == "match":
            steps = int((clients or FedAvg(batch_size=self.batch_size)).steps(federation.median_size))
        elif steps == "epoch":
            steps = max(federation.server_samples // self.batch_size, 1)
        return replace(self, steps=steps)

    def init(self, params: Params, task: Task) -> ServerState:
        return ServerState(params)

    def kind(self, state: ServerState, turn: Turn) -> Int[Array, ""]:
        return jnp.array(Kind.SERVER)

    def round(self, state: ServerState, task: Task, turn: Turn) -> ServerState:
        federation, steps = task.federation, self.steps
        assert isinstance(steps, int), "bind the algorithm to its federation first"
        size = min(self.batch_size, federation.server_most)

        def descend() -> Params:
            lesson = task.lesson(federation.server, turn.server_batches, steps, size)
            return task.descend(state.params, lesson, rate=self.rate, clip=self.clip)

        return ServerState(once(descend))

    def synced(self, state: ServerState) -> tuple[Params, Array]:
        return state.params, jnp.array(True)
