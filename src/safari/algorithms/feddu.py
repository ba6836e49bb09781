"""FedDU: server steps after every client round, scaled by what they are worth."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.server_sgd import ServerSGD
from safari.algorithms.task import Task
from safari.algorithms.then import Then
from safari.data import jensen_shannon
from safari.errors import check_fraction
from safari.models import Params

LEAST = 0.001  # server steps that would count for less are left out


class FedDU(Then):
    r"""Zhang et al.: FedDUAP: Federated Learning with Dynamic Update and Adaptive Pruning (IJCAI 2022).

    Server steps lead from the clients' average $x_{1/2}$ to w, and $x = x_{1/2} + a (w - x_{1/2})$ with
    $$a = \mathrm{mix} (1 - \mathrm{acc}) \delta^t n_0 J(P_S) / (n_0 J(P_S) + n_S J(P_0)).$$
    acc is the accuracy of $x_{1/2}$ on the server's samples (never on the test set), n counts samples, J is
    the Jensen-Shannon divergence of the labels of cohort S, or of the server (0), from those of all
    clients, whose label counts must be known. The rule rests on other people's code, not on the authors'.

    Args:
        server: how the server goes on; by default one pass over its samples.
        decay: $\delta$, the decay of the server's part over the rounds.
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=Paper(
            "Zhang et al.",
            "FedDUAP: Federated Learning with Dynamic Update and Adaptive Pruning "
            "Using Shared Data on the Server",
            "IJCAI",
            2022,
        ),
        rests_on="the paper from memory, and other people's code",
        passes_ceiling=True,
        server_set=True,
        label_counts=True,
        extra="server steps; accuracy on the server's samples",
    )

    server: ServerSGD = ServerSGD(steps="epoch")
    decay: float = 0.99
    own_columns: ClassVar[tuple[str, ...]] = ("server_share",)

    def __check_init__(self) -> None:
        check_fraction("decay", self.decay)

    def amount(
        self, half: Params, task: Task, turn: Turn
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        federation, cohort = task.federation, turn.cohort
        counts, own = federation.label_counts()
        chosen = (counts[cohort.clients] * cohort.reported[:, None]).sum(axis=0)
        everyone = counts.sum(axis=0)
        theirs = own.sum() * jensen_shannon(chosen, everyone)
        ours = chosen.sum() * jensen_shannon(own, everyone)
        weight = jnp.where(theirs + ours > 0, theirs / jnp.maximum(theirs + ours, 1e-30), 1.0)
        wrong = 1.0 - task.accuracy(half, federation.server, federation.server_most)
        amount = self.mix * wrong * weight * self.decay ** turn.number.astype(jnp.float32)
        amount = jnp.where(amount > LEAST, amount, 0.0)
        return amount, {"server_share": amount}
