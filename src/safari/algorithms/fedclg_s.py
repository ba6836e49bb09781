"""FedCLG-S: the server's gradient corrects the clients' average, at the server."""

from dataclasses import replace
from typing import ClassVar, Self

import jax

from safari.algorithms.about import About, Idea
from safari.algorithms.base import Turn
from safari.algorithms.client import Client, ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.server_sgd import check_server_set
from safari.algorithms.task import Task
from safari.algorithms.then import BIAN, Then
from safari.data import Federation
from safari.models import Params


class CorrectedAtServer(ClientAlgorithm):
    r"""The clients' part of FedCLG-S (Bian et al., arXiv 2304.05397); usable inside any combinator.

    Clients take plain local steps and also send $g_i$, the gradient over all their samples where the round
    began. With $g_s$ that of the server the model moves by
    $\eta \sum_i w_i (D_i - \eta_c K_i (g_s - g_i))$: the paper's
    $\bar D - \eta_c K (g_s - \bar g)$ where all $K_i$ are equal. The correction is that of `Corrected`
    as if it were the same along all local steps, which it is.
    """

    about = About(
        idea=Idea.SERVER_GRADIENT,
        paper=BIAN,
        rests_on="the paper; other people's code agrees",
        passes_ceiling=True,
        server_set=True,
        up=2,
        client_passes=1,
        extra="gradients over all samples of server and clients",
    )
    models_up: ClassVar[float] = 2.0

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        check_server_set(federation)
        return self, federation

    def begin(self, client: Client, params: Params, broadcast: Memory, own: Memory) -> Memory:
        return client.gradient(params)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        of_server = task.gradient(state.params, task.federation.server, task.federation.server_most)
        path = self.local_rate * reports.steps

        def corrected(change: jax.Array, g_i: jax.Array, g_s: jax.Array) -> jax.Array:
            return change - path.reshape(-1, *[1] * g_s.ndim) * (g_s - g_i)

        change = jax.tree.map(corrected, reports.change, reports.own, of_server)
        return super().absorb(state, replace(reports, change=change), task, turn)


class FedCLGS(Then):
    r"""Bian et al.: Accelerating Hybrid Federated Learning (arXiv 2304.05397), correction at the server.

    Plain local steps, $x_{1/2} = x + \eta \sum_i w_i (D_i - \eta_c K_i (g_s - g_i))$, then server steps from
    there, every round. $g_s$ and $g_i$ are the gradients over all samples of the server and of client i at
    x. The rule is the paper's; other people's code agrees.
    """

    about = replace(CorrectedAtServer.about, extra=f"{CorrectedAtServer.about.extra}; server steps")

    clients: CorrectedAtServer = CorrectedAtServer()
