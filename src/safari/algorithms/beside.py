"""`Beside`: clients and server train from one start, and their changes are merged."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Note, Turn
from safari.algorithms.client import ClientAlgorithm
from safari.algorithms.combinator import ClientsAndServer, TwoSided, both
from safari.algorithms.task import Task
from safari.errors import check_choice
from safari.models import Params

AUGENSTEIN = Paper(
    "Augenstein et al.",
    "Mixed Federated Learning: Joint Decentralized and Centralized Learning",
    "arXiv 2205.13655",
    2022,
)


class Beside(ClientsAndServer):
    """Both sides train from the same parameters; the model moves by what they make of it together.

    With `average` the server is one more client (`HybridFL`): it counts as one of the clients that
    reported, or by its samples where the clients do. With `sum` both changes are added
    (`MixedParallel`; Augenstein et al., arXiv 2205.13655).

    Args:
        clients: how the clients train.
        server: how the server trains.
        merge: `average` or `sum`.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits")
        >>> safari.train(federation, safari.Beside(merge="sum"), rounds=2).history["kind"].to_list()
        ['both', 'both']
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=AUGENSTEIN,
        passes_ceiling=True,
        server_set=True,
        extra="server steps",
    )

    merge: Literal["average", "sum"] = "average"

    def __check_init__(self) -> None:
        check_choice("merge", self.merge, ("average", "sum"))

    def round(self, state: Any, task: Task, turn: Turn) -> tuple[Any, Note]:
        by_clients, noted = self.client_round(state, task, turn)
        by_server, server_noted = self.server_round(state, task, turn)
        merged = self.merged(state.params, by_clients.params, by_server.params, task, turn)
        clients = self.clients.with_params(by_clients.clients, merged)
        return TwoSided(clients, by_server.server), both(noted, server_noted)

    def merged(self, start: Params, by_clients: Params, by_server: Params, task: Task, turn: Turn) -> Params:
        """What both sides made of `start` together."""
        theirs, ours = (1.0, 1.0) if self.merge == "sum" else self._shares(task, turn)
        return jax.tree.map(
            lambda x, c, s: x + theirs * (c - x) + ours * (s - x), start, by_clients, by_server
        )

    def _shares(self, task: Task, turn: Turn) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """What clients and server count for in the average."""
        federation, cohort = task.federation, turn.cohort
        by_size = isinstance(self.clients, ClientAlgorithm) and self.clients.weights == "size"
        each = federation.clients.count[cohort.clients] if by_size else jnp.ones_like(cohort.clients)
        theirs = jnp.where(cohort.reported, each, 0).sum().astype(jnp.float32)
        ours = federation.server.count.astype(jnp.float32) if by_size else jnp.float32(1)
        return theirs / (theirs + ours), ours / (theirs + ours)
