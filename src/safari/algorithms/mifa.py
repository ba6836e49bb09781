"""MIFA: those that are away take part by what they sent last."""

import jax

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientState, Reports
from safari.algorithms.everyone import RemembersChanges
from safari.algorithms.task import Task


class MIFA(RemembersChanges):
    r"""Gu et al.: Fast Federated Learning in the Presence of Arbitrary Device Unavailability (NeurIPS 2021).

    With $G_i$ the latest change of client i,
    $$G_i = D_i \ (i \in S), \qquad x_{r+1} = x_r + \eta \frac{1}{N} \sum_{i=1}^{N} G_i.$$
    The paper waits until everyone was seen once. Where somebody never comes that would be for ever, so
    $G_i = 0$ before the first report, as in the code of the authors of FedAU. The rule rests on that code;
    the model stays where it is in a round in which nobody reports.
    """

    about = About(
        idea=Idea.ABSENT,
        paper=Paper(
            "Gu et al.",
            "Fast Federated Learning in the Presence of Arbitrary Device Unavailability",
            "NeurIPS",
            2021,
        ),
        rests_on="the code of the authors of FedAU, in which nobody is waited for",
        server_memory=1,
        for_each_client=1,
    )

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        latest = self.renewed(state.server_memory, reports, task)
        total = self.total(latest.seen, task)
        return self.moved(state, jax.tree.map(lambda sum: sum / total, latest.sum), latest)
