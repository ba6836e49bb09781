r"""What the theory asks of a run, estimated while it goes: gradients, biases, noise, curvature.

An observer looks on from outside: it runs a program of its own between the rounds, on samples
drawn for it alone, and the run's numbers are the same with it and without it.

Every estimate is of the point where the round began. $F$ is the mean over all clients, those
that never take part included. Halves a, b of each client's batch are independent, so products
of one with the other are unbiased (and may be negative): $\langle G_a, G_b \rangle$ for
$|\nabla F|^2$, $\langle S_a - G_a, S_b - G_b \rangle$ for the squared bias of a cohort.
"""

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jaxtyping import Array, Float, Int

from safari.algorithms import Algorithm, ClientAlgorithm, FedAvg, Halves, Kind, ServerSGD, Task, inner
from safari.engine.run import Record, Run
from safari.errors import check
from safari.models import Params
from safari.participation import Cohort

MOST_BYTES = 4 * 2**30
CURVATURE_POINTS = 10
"""Along a run, curvature is looked at about so many times."""
POWER_STEPS, CURVATURE_SAMPLES = 20, 512
DEFAULT_BATCH = 64
DIAGNOSTICS_SCHEMA: dict[str, Any] = {
    "round": pl.Int64,
    "loss": pl.Float64,
    "gradient": pl.Float64,
    "bias": pl.Float64,
    "bias_available": pl.Float64,
    "dissimilarity": pl.Float64,
    "dissimilarity_mean": pl.Float64,
    "client_noise": pl.Float64,
    "client_noise_mean": pl.Float64,
    "server_gradient": pl.Float64,
    "server_noise": pl.Float64,
    "server_gap": pl.Float64,
    "move": pl.Float64,
    "smoothness": pl.Float64,
    "convexity": pl.Float64,
    "seconds": pl.Float64,
}
"""A row a round, of the point where it began; all but loss, curvatures and seconds are squared
norms. `gradient` is |grad F|^2; `bias` that of the cohort's mean gradient off grad F,
`bias_available` that of all clients that ever take part; `dissimilarity` the largest over the
clients of |grad F_i - grad F|^2 (the largest of noisy numbers: biased upwards); `client_noise`
the largest variance of a client's minibatch gradient, `server_noise` that of the server's;
`server_gap` is |grad F_T - grad F|^2; `move` is |D|^2, D the averaged change of a client round
over the local rate (FedAvg's client rounds only); `smoothness` and `convexity` are the largest and
smallest curvature of any client there (null between looks)."""


class Seen(eqx.Module):
    """One round's estimates."""

    loss: Float[Array, ""]
    gradient: Float[Array, ""]
    bias: Float[Array, ""]
    bias_available: Float[Array, ""]
    dissimilarity: Float[Array, ""]
    dissimilarity_mean: Float[Array, ""]
    client_noise: Float[Array, ""]
    client_noise_mean: Float[Array, ""]
    server_gradient: Float[Array, ""]
    server_noise: Float[Array, ""]
    server_gap: Float[Array, ""]


class Observer:
    """Looks at a run round by round."""

    def __init__(self, run: Run, params: Params):
        weights = sum(leaf.size for leaf in jax.tree.leaves(params))
        needed = 8 * weights * run.task.federation.size
        check(
            needed <= MOST_BYTES,
            "train.diagnostics",
            True,
            f"would hold two gradients of every client, {needed / 2**30:.1f} GiB; "
            f"{MOST_BYTES / 2**30:.0f} are allowed",
        )
        self.run = run
        self._static = eqx.partition(run, eqx.is_array)[1]
        self._look = jax.jit(self._looked)
        self._curve = jax.jit(self._curved)

    def row(self, before: Params, after: Params, record: Record, number: int) -> dict[str, Any]:
        """The estimates of round `number` (from 0), which went from `before` to `after`."""
        began = time.perf_counter()
        dynamic = eqx.filter(self.run, eqx.is_array)
        cohort = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], record.cohort)
        seen = self._look(dynamic, before, cohort, jnp.int32(number))
        move = None
        clients = _clients(self.run.algorithm_in(jnp.int32(number)))
        if int(np.asarray(record.kind)[0]) == Kind.CLIENT and type(clients) is FedAvg:
            rate = clients.local_rate * clients.global_rate
            step = jax.tree.map(lambda old, new: (old - new) / rate, before, after)
            move = float(inner(step, step))
        every = max(1, self.run.rounds // CURVATURE_POINTS)
        smoothness = convexity = None
        if number % every == 0 or number + 1 == self.run.rounds:
            smoothness, convexity = map(float, self._curve(dynamic, before))
        found = {name: _known(float(value)) for name, value in vars(seen).items()}
        return {
            "round": number + 1, **found, "move": move, "smoothness": smoothness,
            "convexity": convexity, "seconds": time.perf_counter() - began,
        }  # fmt: skip

    def at(self, params: Params, looks: int) -> pl.DataFrame:
        """`looks` independent looks at one point, each with a cohort and samples of its own."""
        dynamic, availability = eqx.filter(self.run, eqx.is_array), self.run.roster.init(self.run.streams)
        rows = []
        for number in range(looks):
            _, _, cohort = self.run.roster.draw(availability, self.run.streams, jnp.int32(number))
            seen = self._look(dynamic, params, cohort, jnp.int32(number))
            rows.append({name: _known(float(value)) for name, value in vars(seen).items()})
        return pl.DataFrame(rows, infer_schema_length=None)

    def _looked(self, dynamic: Run, params: Params, cohort: Cohort, number: Int[Array, ""]) -> Seen:
        run = eqx.combine(dynamic, self._static)
        federation, key = run.task.federation, jax.random.fold_in(run.streams.estimation, number)
        size = max(2, min(_batch_size(run.algorithm), federation.largest))

        def of_client(client: Int[Array, ""]) -> Halves:
            return run.task.halves(params, federation.client(client), jax.random.fold_in(key, client), size)

        own = jax.lax.map(of_client, jnp.arange(federation.size))
        whole = _mean(own, jnp.ones(federation.size))
        off = jax.vmap(lambda one: _off(one, whole))(own)
        noise = jax.vmap(_noise)(own)
        server = self._server(run, params, jax.random.fold_in(key, federation.size), whole)
        there = jnp.zeros(federation.size).at[cohort.clients].add(cohort.reported.astype(jnp.float32))
        return Seen(
            loss=own.loss.mean(),
            gradient=inner(whole.a, whole.b),
            bias=jnp.where(there.sum() > 0, _off(_mean(own, there), whole), jnp.nan),
            bias_available=_off(_mean(own, 1.0 - run.roster.excluded), whole),
            dissimilarity=off.max(),
            dissimilarity_mean=off.mean(),
            client_noise=noise.max(),
            client_noise_mean=noise.mean(),
            server_gradient=server[0],
            server_noise=server[1],
            server_gap=server[2],
        )

    def _server(self, run: Run, params: Params, key: Array, whole: Halves) -> tuple[Array, Array, Array]:
        """|grad F_T|^2 for the population, the noise of a batch, and |grad F_T - grad F|^2."""
        if run.task.federation.server_most < 2:
            return jnp.array(jnp.nan), jnp.array(jnp.nan), jnp.array(jnp.nan)
        size = max(2, min(_server_batch_size(run.algorithm), run.task.federation.server_most))
        halves = run.task.halves(params, run.task.federation.server, key, size)
        return inner(halves.a, halves.b), _noise(halves), _off(halves, whole)

    def _curved(self, dynamic: Run, params: Params) -> tuple[Array, Array]:
        run = eqx.combine(dynamic, self._static)
        clients = jnp.arange(run.task.federation.size)
        largest, smallest = jax.lax.map(lambda client: curvature(run.task, params, client), clients)
        return largest.max(), smallest.min()


def curvature(task: Task, params: Params, client: Int[Array, ""]) -> tuple[Array, Array]:
    """The largest and the smallest eigenvalue of a client's Hessian, on one batch of its samples.

    By power iteration on Hessian-vector products, the second on what the first left: each is an
    eigenvalue's estimate from inside the spectrum.
    """
    federation = task.federation
    shard, size = federation.client(client), min(CURVATURE_SAMPLES, federation.largest)
    key = jax.random.fold_in(jax.random.key(0), client)
    schedule = federation.schedule(shard, key, 1, size)
    batch = federation.batch(federation.gather(schedule.samples[0]), schedule.weight[0], key)

    _, hessian_product = jax.vjp(lambda p: jax.grad(task.loss)(p, batch), params)

    def times(vector: Params) -> Params:
        return hessian_product(vector)[0]  # a Hessian is its own transpose

    def power(shift: Array) -> Array:
        def step(_: Array, vector: Params) -> Params:
            moved = jax.tree.map(lambda h, v: h - shift * v, times(vector), vector)
            length = jnp.sqrt(inner(moved, moved)) + 1e-30
            return jax.tree.map(lambda leaf: leaf / length, moved)

        keys = jax.random.split(key, len(jax.tree.leaves(params)))
        drawn = [
            jax.random.normal(one, leaf.shape)
            for one, leaf in zip(keys, jax.tree.leaves(params), strict=True)
        ]
        start = jax.tree.unflatten(jax.tree.structure(params), drawn)
        vector = jax.lax.fori_loop(0, POWER_STEPS, step, start)
        return inner(vector, times(vector))

    first = power(jnp.float32(0))
    second = power(first)
    return jnp.maximum(first, second), jnp.minimum(first, second)


def _mean(own: Halves, weight: Array) -> Halves:
    """The weighted mean over clients."""
    share = weight / jnp.maximum(weight.sum(), 1e-9)
    return jax.tree.map(lambda leaf: jnp.tensordot(share, leaf, axes=1), own)


def _off(one: Halves, other: Halves) -> Array:
    """Unbiased for the squared distance of two gradients."""
    return inner(jax.tree.map(jnp.subtract, one.a, other.a), jax.tree.map(jnp.subtract, one.b, other.b))


def _noise(one: Halves) -> Array:
    """Unbiased for the variance of the whole batch's mean gradient."""
    apart = jax.tree.map(jnp.subtract, one.a, one.b)
    return inner(apart, apart) / 4


def _clients(algorithm: Algorithm) -> ClientAlgorithm | None:
    """The part that says how clients train."""
    return next((part for part in algorithm.parts() if isinstance(part, ClientAlgorithm)), None)


def _server(algorithm: Algorithm) -> ServerSGD | None:
    """The part that says how the server trains."""
    return next((part for part in algorithm.parts() if isinstance(part, ServerSGD)), None)


def _batch_size(algorithm: Algorithm) -> int:
    part = _clients(algorithm) or _server(algorithm)
    return DEFAULT_BATCH if part is None else part.batch_size


def _server_batch_size(algorithm: Algorithm) -> int:
    part = _server(algorithm)
    return _batch_size(algorithm) if part is None else part.batch_size


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
