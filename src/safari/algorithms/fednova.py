"""FedAvg with every client's change counted per local step."""

from dataclasses import replace

import jax.numpy as jnp

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Reports
from safari.algorithms.task import Task


class FedNova(ClientAlgorithm):
    r"""Wang et al.: Tackling the Objective Inconsistency Problem (NeurIPS 2020).

    The server adds $(\sum_i p_i K_i) \sum_i p_i \Delta_i / K_i$, times the global rate: a client that takes
    more steps does not pull the model further. $p_i$ are the weights of the clients that report, $K_i$ their
    numbers of local steps, and $\Delta_i$ their changes. It is FedAvg where all $K_i$ are equal.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits", safari.Dirichlet(size_skew=1.0))
        >>> safari.train(federation, safari.FedNova(weights="size", batch_size=10), rounds=2).history.height
        2
    """

    about = About(
        idea=Idea.AVERAGE,
        paper=Paper(
            "Wang et al.",
            "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization",
            "NeurIPS",
            2020,
        ),
    )

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        steps = jnp.maximum(reports.steps, 1)
        effective = jnp.sum(reports.weight * steps)
        per_step = replace(reports, weight=effective * reports.weight / steps)
        return super().absorb(state, per_step, task, turn)
