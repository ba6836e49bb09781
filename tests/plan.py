"""What the engine draws, laid out round by round for the oracle."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from oracle import Turn, World
from safari.algorithms.private import gaussian
from safari.engine import Run, draw_turn, initial_params
from safari.models import Params


def inputs(run: Run) -> np.ndarray:
    """The training inputs in float64, flattened, with the constant feature last."""
    dataset = run.task.federation.dataset
    x = np.asarray(dataset.normalise(dataset.shaped(dataset.x)), np.float64).reshape(len(dataset.x), -1)
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def world_of(run: Run) -> World:
    """Who holds what in a run, as its algorithm left the federation."""
    federation = run.task.federation
    x, y = inputs(run), np.asarray(federation.dataset.y)
    held = [federation.held_by(client) for client in range(federation.size)]
    server = federation.held_by(None)
    return World([(x[mine], y[mine]) for mine in held], (x[server], y[server]), federation.dataset.classes)


@eqx.filter_jit
def drawn(run: Run, availability, number, prefer):
    """The turn of a round; what is drawn depends on neither the task nor the algorithm."""
    return draw_turn(run, availability, number, prefer)


@eqx.filter_jit
def normal(key, like):
    return gaussian(key, like)


@eqx.filter_jit
def scheduled(federation, shard, key, steps: int, size: int):
    return federation.schedule(shard, key, steps, size)


def turns_of(run: Run, twin):
    """Yields the turns of a run, as the oracle wants them; the twin may prefer some clients."""
    federation = run.task.federation
    x, y = inputs(run), np.asarray(federation.dataset.y)
    draws = eqx.tree_at(lambda run: (run.task, run.algorithm), run, (None, None))

    def batches(shard, key, steps, size):
        """Drawn in dozens, so that few programs are compiled: later batches leave the first as they are."""
        plan = scheduled(federation, shard, key, -(-int(steps) // 12) * 12, int(size))
        rows = zip(np.asarray(plan.samples)[:steps], np.asarray(plan.weight)[:steps], strict=True)
        return [(x[samples[weight > 0]], y[samples[weight > 0]]) for samples, weight in rows]

    def of_client(key, client, steps, size):
        own = jax.random.fold_in(key, client)
        return batches(federation.client(jnp.int32(client)), own, steps, min(size, federation.largest))

    like = initial_params(run)
    availability = run.roster.init(run.streams)
    for number in range(run.rounds):
        availability, _, turn = drawn(draws, availability, jnp.int32(number), twin.prefer(number))
        cohort = [int(client) for client in turn.cohort.clients[turn.cohort.reported]]
        of_server = partial(batches, federation.server, turn.server_batches)
        of_clients = partial(of_client, turn.client_batches)
        rates = None if turn.rates is None else np.asarray(turn.rates, np.float64)
        noise = as_matrix(normal(turn.stream("privacy"), like))
        coin, expected = float(turn.coin), float(turn.expected)
        known = (rates, expected, noise)
        yield Turn(number, coin, cohort, of_clients, of_server, run.rounds, *known)


def as_matrix(params: Params) -> np.ndarray:
    """The engine's softmax regression as the oracle's one matrix."""
    return np.concatenate([params["weight"], params["bias"][:, None]], axis=1)
