"""F3AST: pick those of whom least was heard, and weigh them by it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientState, Memory, Reports
from safari.algorithms.everyone import OverEveryone, seen_now
from safari.algorithms.task import Task
from safari.errors import check_fraction
from safari.models import Params


class Heard(eqx.Module):
    """How often each client is heard of, what it counts for, who was seen, whether anyone was."""

    rate: Float[Array, " clients"]
    counts: Float[Array, " clients"]
    seen: Bool[Array, " clients"]


class F3AST(OverEveryone):
    r"""Ribero et al.: Federated Learning Under Intermittent Client Availability and
    Time-Varying Communication Constraints (IEEE J. Sel. Top. Signal Process., 2023).

    Of the clients that can be reached those with the largest $n_i / r_i$ are picked; then
    $$r_i = (1 - b) r_i + b \, [i \in S], \qquad x_{r+1} = x_r + \eta \frac{1}{N} \sum_{i \in S} D_i / r_i.$$
    $n_i$ is 1, or the samples of client i where clients count by size (1/N is then its share of all). Every
    $r_i$ begins at the number of reports to be expected, over N. It changes in rounds in which somebody
    reports, and a client that drops out counts as not picked. The rule rests on a
    summary of the paper, and is the least certain of all here.

    Args:
        b: how fast the rates follow what happens.
    """

    about = About(
        idea=Idea.RATES,
        paper=Paper(
            "Ribero et al.",
            "Federated Learning Under Intermittent Client Availability and "
            "Time-Varying Communication Constraints",
            "IEEE J. Sel. Top. Signal Process.",
            2023,
        ),
        rests_on="a summary of the paper; not checked against it",
    )

    b: float = 0.01

    def __check_init__(self) -> None:
        check_fraction("b", self.b)

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        nobody = jnp.zeros(task.federation.size, bool)
        return Heard(jnp.ones(nobody.shape), self.counts(task), nobody), None

    def prefer(self, state: ClientState, number: Int[Array, ""]) -> Float[Array, " clients"]:
        heard = state.server_memory
        return heard.counts / jnp.maximum(heard.rate, 1e-30)

    def weigh(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> Float[Array, " slots"]:
        cohort, heard = reports.cohort, state.server_memory
        share = heard.counts / self.total(seen_now(heard.seen, cohort), task)
        rate = self._renewed(heard, reports, turn)
        return jnp.where(cohort.reported, (share / jnp.maximum(rate, 1e-30))[cohort.clients], 0.0)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        cohort, heard = reports.cohort, state.server_memory
        after = Heard(self._renewed(heard, reports, turn), heard.counts, seen_now(heard.seen, cohort))
        return ClientState(super().absorb(state, reports, task, turn).params, after, None)

    def _renewed(self, heard: Heard, reports: Reports, turn: Turn) -> Float[Array, " clients"]:
        """The rates after this round's reports."""
        assert turn.expected is not None
        begun = jnp.where(heard.seen.any(), 1.0, turn.expected / len(heard.rate))
        there = seen_now(jnp.zeros_like(heard.seen), reports.cohort)
        return (1.0 - self.b) * begun * heard.rate + self.b * there
