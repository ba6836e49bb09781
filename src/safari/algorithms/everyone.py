"""What methods share that average over everyone, whoever reports in a round."""

from dataclasses import replace
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from safari.algorithms.client import ClientAlgorithm, ClientState, Memory, Reports
from safari.algorithms.task import Task
from safari.errors import check_choice
from safari.models import Params
from safari.participation import Cohort


class OverEveryone(ClientAlgorithm):
    """A method whose mean is over everyone, not over those that report in a round.

    Args:
        over: the mean is over `all` clients, or over those `seen` so far. Clients that never come make
            every step shorter by their share under `all`.
    """

    over: Literal["all", "seen"] = "all"

    def __check_init__(self) -> None:
        check_choice("over", self.over, ("all", "seen"))

    def counts(self, task: Task) -> Float[Array, " clients"]:
        """What every client counts for: one, or its samples."""
        held = task.federation.clients.count.astype(jnp.float32)
        return held if self.weights == "size" else jnp.ones_like(held)

    def total(self, seen: Bool[Array, " clients"], task: Task) -> Float[Array, ""]:
        """What all that the mean is over count for together."""
        counts = self.counts(task)
        return jnp.maximum(jnp.sum(counts if self.over == "all" else jnp.where(seen, counts, 0.0)), 1e-9)


def seen_now(seen: Bool[Array, " clients"], cohort: Cohort) -> Bool[Array, " clients"]:
    """Who was seen, this round's reports among them."""
    return put(seen, cohort, jnp.ones_like(cohort.reported))


def put(memory: PyTree[Array], cohort: Cohort, values: PyTree[Array]) -> PyTree[Array]:
    """A memory (clients first) with the rows of those that reported renewed (slots first)."""

    def rows(old: Array, new: Array) -> Array:
        beyond = len(old)  # an empty slot bears the number of a client that may be in another one
        return old.at[jnp.where(cohort.reported, cohort.clients, beyond)].set(new, mode="drop")

    return jax.tree.map(rows, memory, values)


def rows_of(memory: PyTree[Array], cohort: Cohort) -> PyTree[Array]:
    """The rows of a memory for the slots of a cohort."""
    return jax.tree.map(lambda leaf: leaf[cohort.clients], memory)


def nothing_yet(params: Params, clients: int) -> Params:
    """A row of zeros for every client."""
    return jax.tree.map(lambda leaf: jnp.zeros((clients, *leaf.shape), leaf.dtype), params)


class Latest(eqx.Module):
    """The latest change of every client (zero before its first), their sum by counts, who was seen."""

    change: Params
    sum: Params
    seen: Bool[Array, " clients"]


class RemembersChanges(OverEveryone):
    """A method whose server remembers the latest change of every client: a model for each."""

    def memory(self, params: Params, task: Task) -> tuple[Memory, Memory]:
        clients = task.federation.size
        nobody = jnp.zeros(clients, bool)
        return Latest(nothing_yet(params, clients), jax.tree.map(jnp.zeros_like, params), nobody), None

    def differences(self, latest: Latest, reports: Reports) -> Params:
        """Every report less what the server remembered of its client."""
        return jax.tree.map(jnp.subtract, reports.change, rows_of(latest.change, reports.cohort))

    def renewed(self, latest: Latest, reports: Reports, task: Task) -> Latest:
        """The memory with this round's reports in it. Only their rows are touched, so that many are cheap."""
        cohort = reports.cohort
        counts = jnp.where(cohort.reported, self.counts(task)[cohort.clients], 0.0)
        new = replace(reports, weight=counts).sum(self.differences(latest, reports))
        together = jax.tree.map(jnp.add, latest.sum, new)
        return Latest(put(latest.change, cohort, reports.change), together, seen_now(latest.seen, cohort))

    def moved(self, state: ClientState, by: Params, latest: Latest) -> ClientState:
        """The state with the model moved by the global rate times `by`."""
        params = jax.tree.map(lambda p, change: p + self.global_rate * change, state.params, by)
        return ClientState(params, latest, None)
