"""FedYogi: Adam on the server, with a second moment that changes slowly."""

import jax.numpy as jnp
from jaxtyping import Array

from safari.algorithms.about import About, Idea
from safari.algorithms.adaptive_server import AdaptiveServer
from safari.algorithms.fedopt import REDDI
from safari.errors import InputError


class FedYogi(AdaptiveServer):
    r"""Reddi et al.: Adaptive Federated Optimization (ICLR 2021), Yogi on the server.

    With $\bar D = \sum_{i \in S} w_i D_i$, m = 0 and $v = \tau^2$ before the first round,
    $$m = \beta_1 m + (1 - \beta_1) \bar D, \qquad
      v = v - (1 - \beta_2) \bar D^2 \, \mathrm{sign}(v - \bar D^2), \qquad
      x_{r+1} = x_r + \eta \, m / (\sqrt{v} + \tau).$$
    The rule rests on a summary of the paper's Algorithm 2.

    Args:
        global_rate: $\eta$, the server's learning rate.
        b2: $\beta_2$, the decay rate of the second moment.
    """

    about = About(
        idea=Idea.SERVER_OPTIMISER,
        paper=REDDI,
        rests_on="a summary of the paper's Algorithm 2; not checked against it",
        server_memory=2,
    )

    global_rate: float = 0.01
    b2: float = 0.99

    def __check_init__(self) -> None:
        if not 0 <= self.b2 < 1:
            raise InputError("b2", self.b2, "must be at least 0 and below 1")

    def second(self, v: Array, squares: Array) -> Array:
        return v - (1 - self.b2) * squares * jnp.sign(v - squares)
