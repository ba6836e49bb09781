"""Server-only training under the settings of a spec that also describes clients."""

from typing import ClassVar

from safari.algorithms.about import About, Idea
from safari.algorithms.base import Note, Turn
from safari.algorithms.combinator import ClientsAndServer, TwoSided
from safari.algorithms.task import Task


class ServerOnly(ClientsAndServer):
    """The server trains in every round; clients are never asked.

    `clients` only says how many steps `server.steps = "match"` means. Bit for bit SAFARI with q = 0.

    Examples:
        >>> import safari
        >>> safari.ServerOnly(safari.FedAvg(local_epochs=3)).asks_clients
        False
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        rests_on="plain SGD",
        passes_ceiling=True,
        server_set=True,
        down=0,
        up=0,
    )

    asks_clients: ClassVar[bool] = False

    def round(self, state: TwoSided, task: Task, turn: Turn) -> tuple[TwoSided, Note]:
        return self.server_round(state, task, turn)
