"""FedStale: between FedAvg with known rates and FedVARP."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientState, Reports
from safari.algorithms.everyone import RemembersChanges
from safari.algorithms.known_p import by_rate
from safari.algorithms.task import Task
from safari.errors import check_fraction


class FedStale(RemembersChanges):
    r"""Rodio and Neglia: FedStale: Leveraging Stale Client Updates in Federated Learning (ECAI 2024).

    With $y_i$ the change that client i reported last (0 before) and $p_i$ the probability that it reports,
    $$x_{r+1} = x_r + \eta \Big[ \frac{\beta}{N} \sum_{i=1}^{N} y_i
      + \sum_{i \in S} \frac{D_i - \beta y_i}{N p_i} \Big], \qquad \text{then } y_i = D_i \ (i \in S).$$
    $\beta$ = 0 is `KnownP`; $\beta$ = 1 gives what is remembered full weight, as FedVARP does. It must know
    the rates of the clients. Under `over = "seen"` N counts those whose rate is not 0. The rule rests
    on a summary of the paper.

    Args:
        beta: $\beta$, the weight of what is remembered.
    """

    about = About(
        idea=Idea.ABSENT,
        paper=Paper(
            "Rodio and Neglia",
            "FedStale: Leveraging Stale Client Updates in Federated Learning",
            "ECAI",
            2024,
        ),
        rates=True,
        server_memory=1,
        for_each_client=1,
        rests_on="a summary of the paper; not checked against it",
    )

    beta: float = 0.5
    needs_rates: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_fraction("beta", self.beta)

    def weigh(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> Float[Array, " slots"]:
        return by_rate(self, reports, task, turn)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        before = state.server_memory
        assert turn.rates is not None
        total = self.total(turn.rates > 0, task)
        remembered = jax.tree.map(lambda leaf: self.beta * leaf[reports.cohort.clients], before.change)
        news = reports.sum(jax.tree.map(jnp.subtract, reports.change, remembered))
        by = jax.tree.map(lambda sum, new: self.beta * sum / total + new, before.sum, news)
        return self.moved(state, by, self.renewed(before, reports, task))
