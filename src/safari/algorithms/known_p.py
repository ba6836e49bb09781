"""FedAvg by an oracle that knows how often every client comes."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientState, Reports
from safari.algorithms.everyone import OverEveryone
from safari.algorithms.task import Task


class KnownP(OverEveryone):
    r"""FedAvg with known rates: the oracle that Wang and Ji (FedAU, ICLR 2024) compare with.

    With $p_i$ the probability that client i reports in this round,
    $$x_{r+1} = x_r + \eta \sum_{i \in S} \frac{D_i}{N p_i},$$
    whose mean over S is the step of everyone. Nobody knows $p_i$ outside a simulation. It is the probability
    that the client can be reached, times the share of those reachable that is picked, times that of no
    drop-out. Under `over = "seen"` N counts those whose rate is not 0. The rule rests on the code of the
    authors of FedAU and FedAWE.
    """

    about = About(
        idea=Idea.RATES,
        paper=Paper(
            "Wang and Ji",
            "A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging",
            "ICLR",
            2024,
        ),
        rests_on="the code of the authors of FedAU and FedAWE, which compare with it",
        rates=True,
    )

    needs_rates: ClassVar[bool] = True

    def weigh(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> Float[Array, " slots"]:
        return by_rate(self, reports, task, turn)


def by_rate(method: OverEveryone, reports: Reports, task: Task, turn: Turn) -> Float[Array, " slots"]:
    """The share of each client that reported in everyone, over its rate."""
    assert turn.rates is not None
    cohort = reports.cohort
    share = method.counts(task)[cohort.clients] / method.total(turn.rates > 0, task)
    return jnp.where(cohort.reported, share / jnp.maximum(turn.rates[cohort.clients], 1e-9), 0.0)
