"""Hybrid-FL: the server trains as one more client."""

from typing import Literal

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.beside import Beside


class HybridFL(Beside):
    r"""Yoshida et al.: Hybrid-FL for Wireless Networks (ICC 2020), with a server that has its samples.

    Clients and server train from the same model x. With $D_i$ the changes of the clients S that report,
    $D_0$ the server's and weights that are equal, or by the number of samples where the clients' are,
    $$x \leftarrow x + \sum_{i \in S \cup \{0\}} w_i D_i, \qquad \sum_i w_i = 1.$$
    The paper collects the server's samples from clients that agree; here the server has them. The rule is
    that of other people's code.
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=Paper(
            "Yoshida et al.",
            "Hybrid-FL for Wireless Networks: Cooperative Learning Mechanism Using Non-IID Data",
            "ICC",
            2020,
        ),
        rests_on="other people's code; in the paper some clients hand their samples over first",
        passes_ceiling=True,
        server_set=True,
        extra="server steps",
    )

    merge: Literal["average"] = "average"
