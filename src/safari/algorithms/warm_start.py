"""Warm start: the server trains for some rounds, then clients go on from its model."""

from dataclasses import replace

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Note, Turn
from safari.algorithms.combinator import ClientsAndServer, TwoSided
from safari.algorithms.task import Task
from safari.errors import check_not_negative


class WarmStart(ClientsAndServer):
    r"""Nguyen et al.: Where to Begin? On the Impact of Pre-Training and Initialization (ICLR 2023).

    In rounds $r < a$ the server trains, $x_{r+1} = x_r - \eta_s \sum_k \nabla F_T(y_k, \xi)$ along its steps;
    from round a on the clients do, and the server is done. What is delivered is the model of the last
    round. Classes that only the server has seen are forgotten round by round. The rule is the paper's, in
    which the start is trained on other data, too.

    Args:
        rounds: a, how many rounds the server trains.

    Examples:
        >>> import safari
        >>> warm = safari.WarmStart(safari.FedProx(), rounds=1)
        >>> safari.train(safari.federate("digits"), warm, rounds=3).history["kind"].to_list()
        ['server', 'client', 'client']
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=Paper(
            "Nguyen et al.",
            "Where to Begin? On the Impact of Pre-Training and Initialization in Federated Learning",
            "ICLR",
            2023,
        ),
        passes_ceiling=True,
        server_set=True,
        extra="the first rounds are the server's",
    )

    rounds: int = 10

    def __check_init__(self) -> None:
        check_not_negative("rounds", self.rounds)

    def round(self, state: TwoSided, task: Task, turn: Turn) -> tuple[TwoSided, Note]:
        def clients() -> tuple[TwoSided, Note]:
            after, noted = self.client_round(state, task, turn)
            return after, replace(noted, delivers=True)

        return task.choose(turn.number < self.rounds, lambda: self.server_round(state, task, turn), clients)
