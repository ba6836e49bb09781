"""CLG-SGD: the server goes on from the clients' average, every round."""

from safari.algorithms.about import About, Idea
from safari.algorithms.then import BIAN, Then


class CLGSGD(Then):
    r"""Bian et al.: Accelerating Hybrid Federated Learning (arXiv 2304.05397).

    Every round the clients' mean change leads to $x_{1/2} = x + \eta \sum_i w_i D_i$, and from there the
    server takes its steps $y \leftarrow y - \eta_s \nabla F_T(y, \xi)$. FSL (Mai et al., arXiv 2210.02614) is
    the same. The rule is the paper's; other people's code agrees.
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=BIAN,
        rests_on="the paper; other people's code agrees",
        passes_ceiling=True,
        server_set=True,
        extra="server steps",
    )
