"""FedAvgM: momentum on the server."""

import optax

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.fedopt import ServerOptimised
from safari.errors import InputError


class FedAvgM(ServerOptimised):
    r"""Hsu et al.: Measuring the Effects of Non-Identical Data Distribution for Federated Visual
    Classification (arXiv 1909.06335, 2019).

    With $\bar D = \sum_{i \in S} w_i D_i$ and v = 0 before the first round,
    $$v = \beta v + \bar D, \qquad x_{r+1} = x_r + \eta v.$$
    The rule rests on a summary of the paper.
    A steady $\bar D$ comes to a step of $\eta / (1 - \beta)$ times it.

    Args:
        momentum: $\beta$; 0 is FedAvg.
    """

    about = About(
        idea=Idea.SERVER_OPTIMISER,
        paper=Paper(
            "Hsu et al.",
            "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
            "arXiv 1909.06335",
            2019,
        ),
        server_memory=1,
        rests_on="a summary of the paper; not checked against it",
    )

    momentum: float = 0.9

    def __check_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise InputError("momentum", self.momentum, "must be at least 0 and below 1")

    def optimiser(self) -> optax.GradientTransformation:
        return optax.sgd(self.global_rate, momentum=self.momentum)
