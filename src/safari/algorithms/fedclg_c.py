"""FedCLG-C: the server's gradient corrects every local step of the clients."""

from dataclasses import replace

import jax

from safari.algorithms.about import About, Idea
from safari.algorithms.base import Turn
from safari.algorithms.client import Client, ClientAlgorithm, ClientState, Memory
from safari.algorithms.server_sgd import check_server_set
from safari.algorithms.task import Task
from safari.algorithms.then import BIAN, Then
from safari.data import Federation
from safari.models import Params


class Corrected(ClientAlgorithm):
    r"""The clients' part of FedCLG-C (Bian et al., arXiv 2304.05397); usable inside any combinator.

    With $g_s$ and $g_i$ the gradients over all of the server's and of client i's samples where the
    round begins, a local step follows $\nabla F_i(y, \xi) - g_i + g_s$. $g_s$ travels with the model.
    """

    about = About(
        idea=Idea.SERVER_GRADIENT,
        paper=BIAN,
        rests_on="the paper; other people's code corrects once an epoch, the paper in every step",
        passes_ceiling=True,
        server_set=True,
        down=2,
        client_passes=1,
        extra="gradients over all samples of server and clients",
    )

    def bind(self, federation: Federation, seed: int) -> tuple["Corrected", Federation]:
        check_server_set(federation)
        return self, federation

    def broadcast(self, state: ClientState, task: Task, turn: Turn) -> Memory:
        return task.gradient(state.params, task.federation.server, task.federation.server_most)

    def begin(self, client: Client, params: Params, broadcast: Memory, own: Memory) -> Memory:
        return client.gradient(params)

    def direction(
        self, gradient: Params, params: Params, start: Params, broadcast: Memory, own: Memory
    ) -> Params:
        return jax.tree.map(lambda g, g_i, g_s: g - g_i + g_s, gradient, own, broadcast)


class FedCLGC(Then):
    """Bian et al.: Accelerating Hybrid Federated Learning (arXiv 2304.05397), correction at the clients.

    Corrected local steps, then server steps from their average, every round. The rule is the paper's;
    the correction is made in every step.
    """

    about = replace(Corrected.about, extra=f"{Corrected.about.extra}; server steps")

    clients: Corrected = Corrected()
