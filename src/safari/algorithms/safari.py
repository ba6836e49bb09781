"""SAFARI: client rounds and server rounds, by the toss of a coin."""

from dataclasses import replace
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.adaptive_q import AdaptiveQ, Knowledge
from safari.algorithms.base import Note, Turn
from safari.algorithms.client import ClientAlgorithm
from safari.algorithms.combinator import ClientsAndServer, TwoSided
from safari.algorithms.task import Task
from safari.data import Federation
from safari.errors import check, check_fraction
from safari.models import Params


class SafariState(eqx.Module):
    """The states of both parts, and what an adaptive q knows (None for a fixed one)."""

    parts: TwoSided
    known: Knowledge | None

    @property
    def params(self) -> Params:
        return self.parts.params


class Safari(ClientsAndServer):
    """Yang et al.: Understanding Server-Assisted Federated Learning (ICML 2024).

    Every round, with probability `q` the clients train by their algorithm, otherwise the
    server takes SGD steps on its own samples. q = 1 is the client algorithm and q = 0 is
    server-only training, bit for bit. What is delivered is the model that the last server round
    left: client rounds after it pull the model back towards the clients that take part.

    Args:
        clients: how the clients train: any client algorithm, or another combinator.
        server: how the server trains on its own samples.
        q: the probability of a client round, or an `AdaptiveQ`, which chooses it before every round.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits")
        >>> safari.train(federation, safari.Safari(safari.SCAFFOLD(), q=0.5), rounds=3).history["q"].to_list()
        [0.5, 0.5, 0.5]
    """

    about = About(
        idea=Idea.SERVER_STEPS,
        paper=Paper(
            "Yang et al.",
            "Understanding Server-Assisted Federated Learning "
            "in the Presence of Incomplete Client Participation",
            "ICML",
            2024,
        ),
        passes_ceiling=True,
        server_set=True,
        extra="server rounds replace client rounds",
    )

    q: float | AdaptiveQ = 0.8

    def __check_init__(self) -> None:
        if not isinstance(self.q, AdaptiveQ):
            check_fraction("q", self.q)
            return
        check(
            isinstance(self.clients, ClientAlgorithm),
            "q",
            "adaptive",
            "needs clients whose reports it can look at; give a number beside a combinator",
        )

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        bound, federation = super().bind(federation, seed)
        if isinstance(self.q, AdaptiveQ):
            self.q.check_fits(federation)
        return bound, federation

    def init(self, params: Params, task: Task) -> SafariState:
        known = self.q.start(params) if isinstance(self.q, AdaptiveQ) else None
        return SafariState(super().init(params, task), known)

    def prefer(self, state: SafariState, number: Int[Array, ""]) -> Float[Array, " clients"] | None:
        return super().prefer(state.parts, number)

    def deliver(self, state: SafariState) -> Params:
        return super().deliver(state.parts)

    def probability(self, state: SafariState) -> Float[Array, ""]:
        """The probability that the coming round is the clients'."""
        return jnp.asarray(self.q if state.known is None else state.known.q, jnp.float32)

    def round(self, state: SafariState, task: Task, turn: Turn) -> tuple[SafariState, Note]:
        q = self.probability(state)

        def clients() -> tuple[SafariState, Note]:
            if isinstance(self.q, AdaptiveQ):
                return self._observed_client_round(state, task, turn)
            parts, note = self.client_round(state.parts, task, turn)
            return SafariState(parts, None), replace(note, q=q)

        def server() -> tuple[SafariState, Note]:
            parts, note = self.server_round(state.parts, self.own(task), turn)
            return SafariState(parts, self._learn(state, task, turn, parts.params, None)), replace(note, q=q)

        return task.choose(turn.coin < q, clients, server)

    def own(self, task: Task) -> Task:
        """The task with the server's samples less those that an adaptive q holds out."""
        if not isinstance(self.q, AdaptiveQ):
            return task
        return eqx.tree_at(
            lambda task: task.federation.server, task, self.q.shards(task.federation.server)[0]
        )

    def _observed_client_round(self, state: SafariState, task: Task, turn: Turn) -> tuple[SafariState, Note]:
        """A client round whose reports also tell an adaptive q the clients' mean gradient.

        The reports are looked at before an optimiser on the server makes something else of them. A
        round in which nobody reports teaches nothing.
        """
        assert isinstance(self.clients, ClientAlgorithm)
        clients, before = self.clients, state.parts.clients
        note = clients.noted(before, task, turn)

        def someone() -> SafariState:
            reports = clients.collect(before, task, turn)
            parts = TwoSided(clients.absorb(before, reports, task, turn), state.parts.server)
            gradient = clients.mean_gradient(reports)
            return SafariState(parts, self._learn(state, task, turn, parts.params, gradient))

        after = task.choose(note.clients, someone, lambda: state)
        return after, replace(note.over(self.columns), q=self.probability(state))

    def _learn(
        self, state: SafariState, task: Task, turn: Turn, params: Params, client_gradient: Params | None
    ) -> Knowledge | None:
        """What an adaptive q knows before the next round, which starts at `params`."""
        if state.known is None or not isinstance(self.q, AdaptiveQ):
            return None
        rate = self.server.rate
        return self.q.observe(state.known, task, params, turn.server_batches, rate, client_gradient)
