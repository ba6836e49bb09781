"""FedVARP: less variance through what the clients that are away sent last."""

import jax

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientState, Reports
from safari.algorithms.everyone import RemembersChanges
from safari.algorithms.task import Task


class FedVARP(RemembersChanges):
    r"""Jhunjhunwala et al.: FedVARP: Tackling the Variance Due to Partial Client Participation (UAI 2022).

    With $y_i$ the change that client i reported last (0 before its first report),
    $$x_{r+1} = x_r + \eta \Big[ \frac{1}{N} \sum_{i=1}^{N} y_i
      + \sum_{i \in S} w_i (D_i - y_i) \Big], \qquad \text{then } y_i = D_i \ (i \in S).$$
    The rule is that of the code of the authors of FedAU.
    """

    about = About(
        idea=Idea.ABSENT,
        paper=Paper(
            "Jhunjhunwala et al.",
            "FedVARP: Tackling the Variance Due to Partial Client Participation in Federated Learning",
            "UAI",
            2022,
        ),
        rests_on="the code of the authors of FedAU",
        server_memory=1,
        for_each_client=1,
    )

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        before = state.server_memory
        total = self.total(before.seen, task)
        news = reports.sum(self.differences(before, reports))
        by = jax.tree.map(lambda sum, new: sum / total + new, before.sum, news)
        return self.moved(state, by, self.renewed(before, reports, task))
