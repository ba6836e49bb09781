"""`Then`: the clients train, then the server goes on from there, in every round."""

from dataclasses import replace

import jax
from jaxtyping import Array, Float

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Note, Turn
from safari.algorithms.combinator import ClientsAndServer, TwoSided, both
from safari.algorithms.task import Task
from safari.errors import check_fraction
from safari.models import Params

BIAN = Paper(
    "Bian et al.",
    "Accelerating Hybrid Federated Learning Convergence under Partial Participation",
    "arXiv 2304.05397",
    2023,
)


class Then(ClientsAndServer):
    r"""A client round to $x_{1/2}$, server steps from there to w, and $x = x_{1/2} + a (w - x_{1/2})$.

    With `mix` = 1 this is CLG-SGD (Bian et al., arXiv 2304.05397) and FSL (Mai et al., arXiv 2210.02614).

    Args:
        clients: how the clients train.
        server: how the server goes on.
        mix: a, how far the model follows the server's steps.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits")
        >>> safari.train(federation, safari.Then(safari.FedAvg()), rounds=2).history["kind"].to_list()
        ['both', 'both']
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=BIAN,
        rests_on="the paper; other people's code agrees",
        passes_ceiling=True,
        server_set=True,
        extra="server steps",
    )

    mix: float = 1.0

    def __check_init__(self) -> None:
        check_fraction("mix", self.mix)

    def round(self, state: TwoSided, task: Task, turn: Turn) -> tuple[TwoSided, Note]:
        half, noted = self.client_round(state, task, turn)
        after, server_noted = self.server_round(half, task, turn)
        amount, columns = self.amount(half.params, task, turn)
        mixed = jax.tree.map(lambda x, w: x + amount * (w - x), half.params, after.params)
        clients = self.clients.with_params(after.clients, mixed)
        together = both(noted, replace(server_noted, server=server_noted.server & (amount > 0)))
        together = replace(together, columns={**together.columns, **columns})
        return TwoSided(clients, after.server), together

    def amount(
        self, half: Params, task: Task, turn: Turn
    ) -> tuple[Float[Array, ""] | float, dict[str, Float[Array, ""]]]:
        """How far the model follows the server's steps from `half`, and numbers for the history."""
        return self.mix, {}
