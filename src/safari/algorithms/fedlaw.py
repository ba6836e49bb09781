"""FedLAW: the weights of the clients, and their length, are fitted on the server's samples."""

from typing import Self

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.base import Turn
from safari.algorithms.client import ClientAlgorithm, ClientState, Reports
from safari.algorithms.server_sgd import check_server_set
from safari.algorithms.task import Task
from safari.data import Federation
from safari.errors import check_count, check_positive
from safari.models import Params


class FedLAW(ClientAlgorithm):
    r"""Li et al.: Revisiting Weighted Aggregation in Federated Learning with Neural Networks (ICML 2023).

    With $x_i$ where the reporting clients ended, the model becomes
    $$x = e^g \sum_i \mathrm{softmax}(l)_i x_i,$$
    where l and g are fitted on the server's samples by Adam (decay rates 0.5 and 0.999) on the loss of x.
    They start at $l_i = \log w_i$ and g = 0 in every round, which is FedAvg. What is learnt are as many
    numbers as there are clients, and one more: classes that no participating client holds stay unseen. The
    rule is that of the authors' code, which uses the rate 0.005 on all data sets but CIFAR-10.

    Args:
        global_rate: factor on the change of the model.
        fit_rate: Adam's learning rate.
        fit_epochs: passes over the server's samples in a round.
        fit_batch_size: samples a step of Adam.
    """

    about = About(
        idea=Idea.SERVER_JUDGES,
        paper=Paper(
            "Li et al.",
            "Revisiting Weighted Aggregation in Federated Learning with Neural Networks",
            "ICML",
            2023,
        ),
        rests_on="the authors' code",
        server_set=True,
        extra="20 passes over the server's samples",
    )

    fit_rate: float = 0.01
    fit_epochs: int = 20
    fit_batch_size: int = 128

    def __check_init__(self) -> None:
        check_positive("fit_rate", self.fit_rate)
        check_count("fit_epochs", self.fit_epochs)
        check_count("fit_batch_size", self.fit_batch_size)

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        check_server_set(federation)
        return self, federation

    def absorb(self, state: ClientState, reports: Reports, task: Task, turn: Turn) -> ClientState:
        fitted = task.once(lambda: self.fitted(state.params, reports, task, turn))
        params = jax.tree.map(lambda p, x: p + self.global_rate * (x - p), state.params, fitted)
        return ClientState(params, state.server_memory, state.client_memory)

    def fitted(self, start: Params, reports: Reports, task: Task, turn: Turn) -> Params:
        """The average of where the clients ended whose weights and length fit the server's samples."""
        federation = task.federation
        size = min(self.fit_batch_size, federation.server_most)
        steps = self.fit_epochs * max(federation.server_most // size, 1)
        schedule = federation.schedule(federation.server, turn.server_batches, steps, size)
        adam = optax.adam(self.fit_rate, b1=0.5, b2=0.999)
        counts = reports.weight > 0

        def end(p: Array, change: Array) -> Array:
            return jnp.where(counts.reshape(-1, *[1] * p.ndim), p + change, 0.0)

        ends = jax.tree.map(end, start, reports.change)

        def average(fit: tuple[Array, Array]) -> Params:
            share = jax.nn.softmax(jnp.where(counts, fit[0], -jnp.inf))
            return jax.tree.map(lambda ends: jnp.tensordot(jnp.exp(fit[1]) * share, ends, 1), ends)

        def step(carry: tuple, now: tuple[Array, Array]) -> tuple[tuple, None]:
            fit, memory = carry
            samples, weight = now
            batch = federation.plain_batch(federation.gather(samples), weight)
            gradient = jax.grad(lambda fit: task.loss(average(fit), batch))(fit)
            moved, memory = adam.update(gradient, memory)
            return (optax.apply_updates(fit, moved), memory), None

        fit = (jnp.log(jnp.where(counts, reports.weight, 1.0)), jnp.float32(0))
        (fit, _), _ = jax.lax.scan(step, (fit, adam.init(fit)), (schedule.samples, schedule.weight))
        return average(fit)
