"""FedAvg with a proximal term on the clients."""

import jax

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.client import ClientAlgorithm, Memory
from safari.errors import check_not_negative
from safari.models import Params


class FedProx(ClientAlgorithm):
    r"""Li et al.: Federated Optimization in Heterogeneous Networks (MLSys 2020).

    A local step follows $\nabla F_i(x, \xi) + \mu (x - x_r)$: clients stay near the model
    they were sent.

    Args:
        proximal: $\mu$; 0 is FedAvg.
    """

    about = About(
        idea=Idea.DRIFT,
        paper=Paper("Li et al.", "Federated Optimization in Heterogeneous Networks", "MLSys", 2020),
    )

    proximal: float = 0.01

    def __check_init__(self) -> None:
        check_not_negative("proximal", self.proximal)

    def direction(
        self, gradient: Params, params: Params, start: Params, broadcast: Memory, own: Memory
    ) -> Params:
        return jax.tree.map(lambda g, p, s: g + self.proximal * (p - s), gradient, params, start)
