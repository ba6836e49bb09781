"""Fine-tuning: clients train, and the server takes the last rounds."""

from safari.algorithms.about import About, Idea
from safari.algorithms.base import Note, Turn
from safari.algorithms.combinator import ClientsAndServer, TwoSided
from safari.algorithms.task import Task
from safari.errors import check_not_negative


class FineTune(ClientsAndServer):
    r"""Clients train in all rounds but the last a; in those the server does, on its own samples.

    $x_{r+1} = x_r - \eta_s \sum_k \nabla F_T(y_k, \xi)$ along the server's steps, for $r \ge R - a$ of R
    rounds. Common practice, without a paper of its own.

    Args:
        rounds: a, how many of the last rounds are the server's.

    Examples:
        >>> import safari
        >>> tuned = safari.FineTune(safari.FedAvg(), rounds=1)
        >>> safari.train(safari.federate("digits"), tuned, rounds=3).history["kind"].to_list()
        ['client', 'client', 'server']
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        rests_on="common practice",
        passes_ceiling=True,
        server_set=True,
        extra="the last rounds are the server's",
    )

    rounds: int = 10

    def __check_init__(self) -> None:
        check_not_negative("rounds", self.rounds)

    def round(self, state: TwoSided, task: Task, turn: Turn) -> tuple[TwoSided, Note]:
        return task.choose(
            turn.number < turn.rounds - self.rounds,
            lambda: self.client_round(state, task, turn),
            lambda: self.server_round(state, task, turn),
        )
