"""FedAdagrad: the server's steps shrink where the updates were large so far."""

from jaxtyping import Array

from safari.algorithms.about import About, Idea
from safari.algorithms.adaptive_server import AdaptiveServer
from safari.algorithms.fedopt import REDDI


class FedAdagrad(AdaptiveServer):
    r"""Reddi et al.: Adaptive Federated Optimization (ICLR 2021), Adagrad on the server.

    With $\bar D = \sum_{i \in S} w_i D_i$, m = 0 and $v = \tau^2$ before the first round,
    $$m = \beta_1 m + (1 - \beta_1) \bar D, \qquad v = v + \bar D^2, \qquad
      x_{r+1} = x_r + \eta \, m / (\sqrt{v} + \tau).$$
    The paper runs it without momentum. The rule rests on a summary of
    the paper's Algorithm 2.

    Args:
        global_rate: $\eta$, the server's learning rate.
        b1: $\beta_1$, the decay rate of the first moment; 0 is no momentum.
    """

    about = About(
        idea=Idea.SERVER_OPTIMISER,
        paper=REDDI,
        rests_on="a summary of the paper's Algorithm 2; not checked against it",
        server_memory=2,
    )

    global_rate: float = 0.1
    b1: float = 0.0

    def second(self, v: Array, squares: Array) -> Array:
        return v + squares
