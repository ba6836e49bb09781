"""What was tried: the step of two models done in other ways: python benchmarks/alternatives.py

Softmax regression on MNIST's shape (an epoch of 93 batches of 64) and the convolutional network on
CIFAR-10's (7 batches of 64), on one device. Each way beside the one that safari takes, interleaved;
the figure is the median, over repetitions, of a way's time in units of safari's in the same
repetition. Samples are random, which does not matter for time. Writes benchmarks/results/alternatives.json.
"""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from turns import Work, seconds_in_turn

import safari
from safari.algorithms import Task
from safari.experiment.versions import provenance
from safari.models import cnn, convolution
from safari.models.convolution import by_blocks, by_library, by_patches, by_tiles, halve, on_cpu

RESULT = Path(__file__).parent / "results" / "alternatives.json"
RATE, BATCH, TAKEN = 0.1, 64, "as safari does it"


def samples(count: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    return chance.integers(0, 256, (count, *shape), dtype=np.uint8), chance.integers(0, 10, count)


def softmax_ways(steps: int = 93) -> dict[str, Work]:
    """All by hand, so that they differ in one thing each."""
    x, y = samples(60000, (784,))
    order = np.random.default_rng(1).permutation(len(x))[: steps * BATCH].reshape(steps, BATCH)
    rows, words, labels, order = (jnp.asarray(a) for a in (x, x.view(np.uint32), y, order))
    wide, key, held = rows.astype(jnp.float32), jax.random.key(0), 6000

    def step(now, inputs, labels, barrier=True, classes=10):
        weight, bias = now
        logits = weight @ inputs.T + bias[:, None]
        logits = jax.lax.optimization_barrier(logits) if barrier else logits
        likely = jnp.exp(logits - logits.max(0))
        off = (likely / likely.sum(0) - (labels == jnp.arange(classes)[:, None])) / BATCH
        return weight - RATE * off @ inputs, bias - RATE * off.sum(1)

    def turned_step(now, inputs, labels):
        weight, bias = now
        logits = inputs @ weight + bias
        likely = jnp.exp(logits - logits.max(1, keepdims=True))
        off = (likely / likely.sum(1, keepdims=True) - (labels[:, None] == jnp.arange(10))) / BATCH
        return weight - RATE * inputs.T @ off, bias - RATE * off.sum(0)

    def floats(x):
        return x.astype(jnp.float32) / 255

    def gathered(source, labels, order):
        return tuple(a.at[order].get(mode="promise_in_bounds") for a in (source, labels))

    def epoch(source, order, step=step, first=(10, 784), unpack=floats, **keys):
        def one(now, batch):
            return step(now, unpack(batch[0]), batch[1], **keys), None

        now = jnp.zeros(first), jnp.zeros(min(first))
        return jax.lax.scan(one, now, gathered(source, labels, order))[0]

    def gathers_in_the_step(order):
        def one(now, batch):
            inputs, targets = gathered(rows, labels, batch)
            return step(now, floats(inputs), targets), None

        return jax.lax.scan(one, (jnp.zeros((10, 784)), jnp.zeros(10)), order)[0]

    def bytes_of(packed):
        return floats(jax.lax.bitcast_convert_type(packed, jnp.uint8).reshape(BATCH, 784))

    def sorted_draw(key):
        return jax.random.permutation(key, held)[: steps * BATCH].reshape(steps, BATCH)

    dataset = safari.Dataset(x, y, x[:10], y[:10], client=np.arange(len(x)) % 10)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    shard = federation.client(jnp.int32(0))
    ways = {
        TAKEN: jax.jit(lambda: epoch(rows, order)),
        "each batch gathered in its step": jax.jit(lambda: gathers_in_the_step(order)),
        "samples as words of four bytes": jax.jit(lambda: epoch(words, order, unpack=bytes_of)),
        "samples as floats": jax.jit(lambda: epoch(wide, order, unpack=lambda x: x / 255)),
        "weights (features, classes)": jax.jit(lambda: epoch(rows, order, turned_step, (784, 10))),
        "no barrier after the first product": jax.jit(lambda: epoch(rows, order, barrier=False)),
        "classes padded to 16": jax.jit(lambda: epoch(rows, order, first=(16, 784), classes=16)),
    }
    draws = {
        "draw: " + TAKEN: jax.jit(lambda: federation.schedule(shard, key, steps, BATCH).samples),
        "draw: by sorting": jax.jit(lambda: sorted_draw(key)),
    }
    return {**ways, **draws}


def network_ways(steps: int = 7) -> dict[str, Work]:
    """safari's own step, its convolutions lowered in other ways."""
    x, y = samples(5000, (32, 32, 3))
    dataset = safari.Dataset(x, y, x[:10], y[:10], client=np.arange(len(x)) % 10, augment=False)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    model, key, shard = safari.CNN(), jax.random.key(0), federation.client(jnp.int32(0))
    params, task = model.init(key, dataset.shape, 10), Task(model, federation)

    def compiled(way: Callable[..., Any]) -> Work:
        usual, cnn.convolve_and_halve = cnn.convolve_and_halve, way
        try:
            epoch = jax.jit(lambda p, key: task.sgd(p, task.minibatches(shard, key, steps, BATCH), rate=RATE))
            program = epoch.lower(params, key).compile()
        finally:
            cnn.convolve_and_halve = usual
        return lambda: program(params, key)

    def second_by(way):
        return lambda x, kernel: (on_cpu if x.shape[3] == 3 else way)(x, kernel)

    def all_at_once(x, kernel):
        usual, convolution.in_strips = convolution.in_strips, lambda way, x, size: way(x)
        try:
            return on_cpu(x, kernel)
        finally:
            convolution.in_strips = usual

    return {
        TAKEN: compiled(on_cpu),
        "the whole batch at once": compiled(all_at_once),
        "XLA's own convolution": compiled(lambda *both: halve(by_library(*both))),
        "patches in both layers": compiled(lambda *both: halve(by_patches(*both))),
        "patches in the second layer": compiled(second_by(lambda *both: halve(by_patches(*both)))),
        "blocks in both layers": compiled(lambda *both: by_blocks(*both, by_patches)),
        "Winograd's products in both layers": compiled(by_tiles),
    }


def compared(ways: dict[str, Work], steps: int, repeats: int) -> dict[str, dict[str, float]]:
    """Microseconds a step, and how many times safari's that is."""
    found, rows = seconds_in_turn(ways, repeats), {}
    for name, taken in found.items():
        usual = found[f"draw: {TAKEN}" if name.startswith("draw: ") else TAKEN]
        times = statistics.median(one / other for one, other in zip(taken, usual, strict=True))
        rows[name] = {"microseconds_a_step": statistics.median(taken) / steps * 1e6, "times": times}
        print(f"{name:36s} {rows[name]['microseconds_a_step']:9.1f} microseconds a step, {times:.2f} times")
    return rows


def main() -> None:
    found = {
        "softmax regression": compared(softmax_ways(), 93, 40),
        "convolutional network": compared(network_ways(), 7, 7),
    }
    made = {**provenance(), "command": "python benchmarks/alternatives.py"}
    RESULT.write_text(json.dumps({"ways": found, "made": made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
