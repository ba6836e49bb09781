"""FedAU: clients that come rarely count more, by how long they stayed away."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientState, Memory, Reports
from safari.algorithms.everyone import OverEveryone, put, seen_now
from safari.algorithms.task import Task
from safari.errors import check_count
from safari.models import Params


class Absences(eqx.Module):
    """The last round in which each client reported (-1 before), and how many absences it had until then."""

    last: Int[Array, " clients"]
    absences: Int[Array, " clients"]

    @property
    def seen(self) -> Bool[Array, " clients"]:
        return self.last >= 0


class FedAU(OverEveryone):
    r"""Wang and Ji: A Lightweight Method for Tackling Unknown Participation Statistics (ICLR 2024).

    With $\omega_i$ the mean length in rounds of the absences of client i before this round (1 before the
    first is over), which estimates one over its rate,
    $$x_{r+1} = x_r + \eta \frac{1}{N} \sum_{i \in S} \omega_i D_i.$$
    An absence that reaches K rounds is over, and the next one begins. Rounds in which nobody reports and
    those of the server count as absences too. The rule is the authors' code's.

    Args:
        longest: K, the longest absence.
    """

    about = About(
        idea=Idea.RATES,
        paper=Paper(
            "Wang and Ji",
            "A Lightweight Method for Tackling Unknown Participation Statistics in Federated Averaging",
            "ICLR",
            2024,
        ),
        rests_on="the authors' code",
    )

    longest: int = 50

    def __check_init__(self) -> None:
        check_count("longest", self.longest)

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        never = jnp.full(task.federation.size, -1, jnp.int32)
        return Absences(never, jnp.zeros_like(never)), None

    def weigh(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> Float[Array, " slots"]:
        memory, cohort = state.server_memory, reports.cohort
        last, cut = memory.last[cohort.clients], self._cut(memory, cohort.clients, turn)
        absences = memory.absences[cohort.clients] + cut
        # Absences follow one another without a gap, so their lengths add up to the rounds gone by.
        rounds = last + 1 + cut * self.longest
        mean_length = jnp.where(absences > 0, rounds / jnp.maximum(absences, 1), 1.0)
        share = self.counts(task)[cohort.clients] / self.total(seen_now(memory.seen, cohort), task)
        return jnp.where(cohort.reported, mean_length * share, 0.0)

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        memory, cohort = state.server_memory, reports.cohort
        ended = memory.absences[cohort.clients] + self._cut(memory, cohort.clients, turn) + 1
        now = jnp.full_like(cohort.clients, turn.number)
        after = Absences(put(memory.last, cohort, now), put(memory.absences, cohort, ended))
        return ClientState(super().absorb(state, reports, task, turn).params, after, None)

    def _cut(self, memory: Absences, clients: Int[Array, " slots"], turn: Turn) -> Int[Array, " slots"]:
        """How many absences reached the longest since each of these clients reported last."""
        return (turn.number - memory.last[clients] - 1) // self.longest
