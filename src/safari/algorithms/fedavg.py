"""Federated averaging."""

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.client import ClientAlgorithm


class FedAvg(ClientAlgorithm):
    r"""McMahan et al.: Communication-Efficient Learning of Deep Networks (AISTATS 2017).

    Round r, cohort S, K local steps of rate $\eta_c$ from $x_r$ on every client i in S:

    $$x^i_{k+1} = x^i_k - \eta_c \nabla F_i(x^i_k, \xi), \qquad
      x_{r+1} = x_r + \eta \sum_{i \in S} w_i (x^i_K - x_r).$$

    Examples:
        >>> import safari
        >>> clients = safari.FedAvg(local_rate=0.1, local_epochs=2, batch_size=32)
        >>> clients.steps(100)
        6
    """

    about = About(
        idea=Idea.AVERAGE,
        paper=Paper(
            "McMahan et al.",
            "Communication-Efficient Learning of Deep Networks from Decentralized Data",
            "AISTATS",
            2017,
        ),
    )
