"""Gauges: safari's rounds against the same rounds by hand, as ratios."""

import functools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import references
from counts import Counts, counted

import safari
from safari.engine import initial_params, prepare, program_for, start
from safari.engine.run import one_round

CLIENTS, PER_ROUND, RATE = 8, 4, 0.1


Work = Callable[[], Any]


@dataclass(frozen=True)
class Gauge:
    """What a round of safari's asks for; how long a stretch of them takes beside the same work by hand."""

    counts: Counts
    compiled: Callable[[], tuple[Work, Work]]

    def ratio(self, samples: int) -> float:
        """Seconds of ours in units of those by hand: the median over pairs, taken in turn.

        What disturbs a busy machine for longer than a pair takes disturbs both of it.
        """
        works, seconds = self.compiled(), ([], [])
        for _ in range(samples):
            for kept, work in zip(seconds, works, strict=True):
                began = time.perf_counter()
                jax.block_until_ready(work())
                kept.append(time.perf_counter() - began)
        return statistics.median(ours / other for ours, other in zip(*seconds, strict=True))


def _gauge(
    shape: tuple[int, ...],
    held: int,
    batch: int,
    rounds: int,
    model: safari.Model,
    reference: Callable[..., Any],
    waste: float = 1.0,
) -> Gauge:
    """`rounds` rounds of FedAvg; `waste` makes clients take that many times the steps."""
    chance = np.random.default_rng(0)
    samples = CLIENTS * held
    x = chance.integers(0, 256, (samples, *shape), dtype=np.uint8)
    y, client = np.arange(samples) % 10, np.arange(samples) % CLIENTS
    dataset = safari.Dataset(x, y, x[:100], y[:100], client=client)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    steps = held // batch
    algorithm = safari.FedAvg(local_rate=RATE, local_steps=round(steps * waste), batch_size=batch)
    participation = safari.Participation(per_round=PER_ROUND)
    run = prepare(federation, algorithm, model, participation, 1000, 0, 1000, "float32")
    carry = start(run)
    rows, labels = jnp.asarray(federation.dataset.shaped(federation.dataset.x)), jnp.asarray(y)
    order = chance.permuted(np.tile(np.arange(held), (PER_ROUND, 1)), axis=1)[:, : steps * batch]
    order = jnp.asarray(order.reshape(PER_ROUND, steps, batch) * CLIENTS)
    params = initial_params(run)

    def rounds_by_hand(params: Any, order: Any) -> Any:
        flat = rows.reshape(samples, -1) if len(shape) == 1 else rows
        return jax.lax.fori_loop(0, rounds, lambda _, now: reference(flat, labels, order, now, RATE), params)

    @functools.cache
    def compiled() -> tuple[Work, Work]:
        program, by_hand = program_for(run, carry)[0], jax.jit(rounds_by_hand)
        works = lambda: program(run, carry, 0, rounds), lambda: by_hand(params, order)
        for work in works:
            work()
        return works

    return Gauge(counted(lambda carry: one_round(run, carry, jnp.int32(0)), carry), compiled)


def softmax(waste: float = 1.0) -> Gauge:
    """Softmax regression of MNIST's size: clients in turn."""
    return _gauge((784,), 1280, 64, 2, safari.Logistic(), references.softmax_epochs, waste)


def batched(waste: float = 1.0) -> Gauge:
    """Softmax regression of the digits' size: clients side by side, many short rounds."""
    return _gauge((64,), 120, 20, 20, safari.Logistic(), references.batched_epochs, waste)


def network(waste: float = 1.0) -> Gauge:
    """A small convolutional network."""
    model = safari.CNN(channels=(16,), kernel=5, hidden=64)
    return _gauge((16, 16, 3), 128, 32, 1, model, references.network_epochs, waste)


GAUGES = {"softmax": softmax, "batched": batched, "network": network}
