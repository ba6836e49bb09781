"""Server-only training: SGD on the server's own samples."""

from dataclasses import replace
from typing import ClassVar, Literal

import equinox as eqx

from safari.algorithms.about import About, Idea
from safari.algorithms.base import Algorithm, Note, Turn, note
from safari.algorithms.client import ClientAlgorithm
from safari.algorithms.task import Direction, Task
from safari.data import Federation
from safari.errors import check, check_count, check_positive
from safari.models import Params


class ServerState(eqx.Module):
    """The parameters are all that server-only training remembers."""

    params: Params


class ServerSGD(Algorithm):
    r"""$x \leftarrow x - \eta_s \nabla F_T(x, \xi)$, several times a round, on the server's set T.

    Batches are drawn without replacement; a smaller T is used whole.

    Args:
        rate: $\eta_s$.
        steps: how many a round: a number (1 is the paper's Algorithm 1 to the letter), `epoch` for one
            pass over T, or `match` for as many as a client of median size takes.
        batch_size: samples a step.
        clip: a minibatch gradient longer than this is scaled down to it; not set: never.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits", server=safari.ServerSet(50))
        >>> server, _ = safari.ServerSGD(steps="epoch", batch_size=10).bind(federation, seed=0)
        >>> server.steps
        5
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        rests_on="plain SGD",
        passes_ceiling=True,
        server_set=True,
        down=0,
        up=0,
    )

    rate: float = 0.1
    steps: int | Literal["epoch", "match"] = "match"
    batch_size: int = 64
    clip: float | None = None
    table: ClassVar[str | None] = "server"
    asks_clients: ClassVar[bool] = False

    def __check_init__(self) -> None:
        check_positive("rate", self.rate)
        if isinstance(self.steps, int):
            check_count("steps", self.steps)
        else:
            check(self.steps in ("epoch", "match"), "steps", self.steps, "must be a number, epoch or match")
        check_count("batch_size", self.batch_size)
        if self.clip is not None:
            check_positive("clip", self.clip)

    def bind(self, federation: Federation, seed: int) -> "tuple[ServerSGD, Federation]":
        """Alone, `match` is a pass over the samples of a client of median size."""
        a_pass = max(federation.median_size // self.batch_size, 1)
        return replace(self, steps=self.number_of_steps(federation, a_pass)), federation

    def beside(self, clients: Algorithm, federation: Federation) -> "ServerSGD":
        """The server of an algorithm in which `clients`, bound already, train too: `match` follows them."""
        alike = clients.steps(federation.median_size) if isinstance(clients, ClientAlgorithm) else None
        matching = max(federation.median_size // self.batch_size, 1) if alike is None else int(alike)
        return replace(self, steps=self.number_of_steps(federation, matching))

    def number_of_steps(self, federation: Federation, matching: int) -> int:
        """How many steps a round takes if a client takes `matching`."""
        check_server_set(federation)
        if self.steps == "match":
            return matching
        if self.steps == "epoch":
            return max(federation.server_samples // self.batch_size, 1)
        return self.steps

    def init(self, params: Params, task: Task) -> ServerState:
        return ServerState(params)

    def round(self, state: ServerState, task: Task, turn: Turn) -> tuple[ServerState, Note]:
        return ServerState(self.trained(state.params, task, turn)), note(server=True)

    def trained(self, params: Params, task: Task, turn: Turn, direction: Direction | None = None) -> Params:
        """The parameters after a round's steps from `params`, which may follow another direction."""
        federation, steps = task.federation, self.steps
        assert isinstance(steps, int), "bind the algorithm to its federation first"
        size = min(self.batch_size, federation.server_most)

        def train() -> Params:
            minibatches = task.minibatches(federation.server, turn.server_batches, steps, size)
            return task.sgd(params, minibatches, rate=self.rate, clip=self.clip, direction=direction)

        return task.once(train)


def check_server_set(federation: Federation) -> None:
    """Refuse a federation whose server has no samples of its own."""
    samples = federation.server_samples
    check(samples > 0, "data.server.samples", samples, "the server has no samples; it needs at least 1")
