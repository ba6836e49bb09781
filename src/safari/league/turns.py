"""SAFARI without a coin: client rounds and server rounds in a fixed order."""

import jax.numpy as jnp

from safari.algorithms import Safari
from safari.algorithms.base import Note, Turn
from safari.algorithms.combinator import ClientsAndServer, TwoSided
from safari.algorithms.task import Task
from safari.errors import check_fraction

ROUNDING = 1e-3


class Turns(ClientsAndServer):
    r"""Round r is the clients' if $\lfloor (r + 1) q \rfloor > \lfloor r q \rfloor$, else the server's.

    Of any n rounds in a row the clients have q n, to within one.

    Args:
        q: the share of the client rounds.

    Examples:
        >>> import safari
        >>> from safari.league.turns import Turns
        >>> safari.train(safari.federate("digits"), Turns(q=0.5), rounds=4).history["kind"].to_list()
        ['server', 'client', 'server', 'client']
    """

    about = Safari.about

    q: float = 0.8

    def __check_init__(self) -> None:
        check_fraction("q", self.q)

    def round(self, state: TwoSided, task: Task, turn: Turn) -> tuple[TwoSided, Note]:
        before = jnp.floor(turn.number * self.q + ROUNDING)
        after = jnp.floor((turn.number + 1) * self.q + ROUNDING)
        return task.choose(
            after > before,
            lambda: self.client_round(state, task, turn),
            lambda: self.server_round(state, task, turn),
        )
