"""Client rounds that no client can be told from: clipped changes, and noise on their average."""

from collections.abc import Iterator
from dataclasses import fields, replace
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Algorithm, Note, Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Reports
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.task import Task, inner
from safari.data import Federation
from safari.errors import InputError, check, check_fraction, check_positive
from safari.models import Params
from safari.participation import Cohort


class Private(Algorithm):
    r"""McMahan et al.: Learning Differentially Private Recurrent Language Models (ICLR 2018).

    With $D_i$ the change of client i, C the `clip`, z the `noise` and $\bar m$ the number of reports to be
    expected, the method of the clients is handed one report instead of all:
    $$\bar D = \frac{1}{\bar m} \Big[ \sum_{i \in S} D_i \min(1, C / |D_i|) + \mathcal{N}(0, z^2 C^2) \Big].$$
    It never sees anything else, so whatever it makes of $\bar D$ is as private. $\bar m$ follows from the
    participation alone, and the noise is added even if nobody reports. The history has the $\varepsilon$ that
    was spent so far at `delta`; rounds of the server spend nothing. All that one client holds is protected.

    Only a method that needs no more than the average can be used, with equal weights. What tuning its rates
    on the clients would reveal is not counted. `safari-fl[privacy]` installs the accountant.

    Args:
        clients: how the clients train.
        clip: C, the longest change of a client that counts in full.
        noise: z, the standard deviation of the noise, in units of the clip, on the sum.
        delta: the probability that the guarantee fails; not set: $M^{-1.1}$ for M clients.

    Examples:
        >>> import safari
        >>> private = safari.Private(safari.FedAdam(local_rate=0.05), clip=0.5, noise=1.2)
        >>> safari.Safari(private, q=0.5).clients.clip
        0.5
    """

    about = About(
        idea=Idea.AVERAGE,
        paper=Paper(
            "McMahan et al.", "Learning Differentially Private Recurrent Language Models", "ICLR", 2018
        ),
        rests_on="the paper, with the accountant of dp-accounting",
    )

    clients: ClientAlgorithm = FedAvg()
    clip: float = 1.0
    noise: float = 1.0
    delta: float | None = None
    columns: ClassVar[tuple[str, ...]] = ("epsilon", "noise")

    def __check_init__(self) -> None:
        name = type(self.clients).__name__
        check(isinstance(self.clients, ClientAlgorithm), "clients", name, "must be a client method")
        check(
            self.clients.sum_only and self.clients.models_up == 1,
            "clients",
            name,
            "cannot be private: its server looks at more than the average of the reports",
        )
        check(
            self.clients.weights == "equal",
            "clients.weights",
            self.clients.weights,
            "must be equal: weights by size reveal the sizes",
        )
        check_positive("clip", self.clip)
        check_positive("noise", self.noise)
        if self.delta is not None:
            check_positive("delta", self.delta)
            check_fraction("delta", self.delta)

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        if find_spec("dp_accounting") is None:
            raise InputError("name", "private", "needs an accountant: pip install 'safari-fl[privacy]'")
        clients, federation = self.clients.bind(federation, seed)
        return replace(self, clients=clients), federation

    def init(self, params: Params, task: Task) -> ClientState:
        return self.clients.init(params, task)

    def round(self, state: ClientState, task: Task, turn: Turn) -> tuple[ClientState, Note]:
        average = self.average(self.clients.collect(state, task, turn), turn)
        one = jnp.ones(1, bool)
        cohort = Cohort(jnp.zeros(1, jnp.int32), one, one)
        everything = jax.tree.map(lambda leaf: leaf[None], average)
        report = Reports(
            cohort, everything, None, jnp.ones(1, jnp.int32), jnp.ones(1, jnp.int32), jnp.ones(1)
        )
        noted = self.clients.noted(state, task, turn)
        columns = {"noise": jnp.asarray(self.noise, jnp.float32)}
        noted = replace(noted, clients=jnp.array(True), columns=columns)
        return self.clients.absorb(state, report, task, turn), noted.over(self.columns)

    def average(self, reports: Reports, turn: Turn) -> Params:
        """The sum of the clipped changes and the noise, over the number of reports to be expected."""
        assert turn.expected is not None
        lengths = jnp.sqrt(jax.vmap(inner)(reports.change, reports.change))
        sound = reports.cohort.reported & jnp.isfinite(lengths)
        weight = jnp.where(sound, jnp.minimum(1.0, self.clip / jnp.maximum(lengths, 1e-30)), 0.0)
        together = replace(reports, weight=weight).sum(reports.change)
        noise = gaussian(turn.stream("privacy"), together)
        expected = jnp.maximum(turn.expected, 1.0)
        return jax.tree.map(
            lambda sum, drawn: (sum + self.noise * self.clip * drawn) / expected, together, noise
        )

    def deliver(self, state: ClientState) -> Params:
        return self.clients.deliver(state)

    def with_params(self, state: ClientState, params: Params | None) -> Any:
        return self.clients.with_params(state, params)


def check_private(algorithm: Algorithm) -> None:
    """Refuse an algorithm whose clients are private in one place and reveal something in another."""
    private = [part for part in algorithm.parts() if isinstance(part, Private)]
    if private:
        for part in _reading(algorithm):
            name = type(part).__name__
            raise InputError(
                "clients", name, "looks at what clients hold beside the private part; wrap it too"
            )
        deltas = {part.delta if part.delta is None else float(part.delta) for part in private}
        check(len(deltas) == 1, "delta", deltas, "must be the same in all private parts")


def _reading(algorithm: Algorithm) -> Iterator[Algorithm]:
    """The parts outside private ones in which clients train, or which need their label counts."""
    if isinstance(algorithm, Private) or not algorithm.asks_clients:
        return
    counts = algorithm.about is not None and algorithm.about.label_counts
    if counts or isinstance(algorithm, ClientAlgorithm):
        yield algorithm
    for field in fields(algorithm):
        part = getattr(algorithm, field.name)
        if isinstance(part, Algorithm):
            yield from _reading(part)


def gaussian(key: Key[Array, ""], like: Params) -> Params:
    """Independent standard normal numbers in the shape of parameters."""
    leaves, structure = jax.tree.flatten(like)
    keys = jax.random.split(key, len(leaves))
    drawn = [jax.random.normal(one, leaf.shape) for one, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(structure, drawn)
