"""The hot paths once more, by hand and frozen: what safari's are held against.

Each takes the minibatches as they are and does nothing else: no draws, no records, no choice of
algorithm. Both sides go through the same compiler on the same machine, so their ratio says
something of safari's code and little of the machine.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

Params = dict[str, Array]
Loss = Callable[[Params, Array, Array], Array]


def softmax_epochs(x: Array, y: Array, order: Array, params: Params, rate: float) -> Params:
    """Local epochs of softmax regression, a client after the other; then their average.

    `order` is (clients, steps, batch); weights are (classes, features), samples bytes.
    """
    classes, batch = len(params["bias"]), order.shape[-1]

    def step(now: tuple[Array, Array], rows: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        weight, bias = now
        inputs = rows[0].astype(jnp.float32) / 255
        logits = weight @ inputs.T + bias[:, None]
        likely = jnp.exp(logits - logits.max(0))
        off = (likely / likely.sum(0) - (rows[1] == jnp.arange(classes)[:, None])) / batch
        return (weight - rate * off @ inputs, bias - rate * off.sum(1)), None

    def client(mine: Array) -> tuple[Array, Array]:
        return jax.lax.scan(step, (params["weight"], params["bias"]), (x[mine], y[mine]))[0]

    weight, bias = jax.lax.map(client, order)
    return {"weight": weight.mean(0), "bias": bias.mean(0)}


def batched_epochs(x: Array, y: Array, order: Array, params: Params, rate: float) -> Params:
    """The same for models so small that clients train side by side."""

    def loss(params: Params, inputs: Array, labels: Array) -> Array:
        logits = inputs @ params["weight"].T + params["bias"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()

    return jax.tree.map(lambda leaf: leaf.mean(0), jax.vmap(_client(loss, x, y, params, rate))(order))


def network_epochs(x: Array, y: Array, order: Array, params: Params, rate: float) -> Params:
    """The same for a network of one convolution, pooled, and two dense layers."""

    def loss(params: Params, inputs: Array, labels: Array) -> Array:
        kernel = params["conv0"]["kernel"]
        size, _, _, outputs = kernel.shape
        count, height, width, _ = inputs.shape
        reach = size // 2
        around = jnp.pad(inputs, ((0, 0), (reach, reach), (reach, reach), (0, 0)))
        patches = jnp.concatenate(
            [around[:, i : i + height, j : j + width] for i in range(size) for j in range(size)], axis=-1
        )
        maps = (patches.reshape(count * height * width, -1) @ kernel.reshape(-1, outputs)).reshape(
            count, height // 2, 2, width // 2, 2, outputs
        )
        pooled = jax.nn.relu(maps.max(axis=(2, 4)) + params["conv0"]["bias"]).reshape(count, -1)
        hidden = jax.nn.relu(pooled @ params["dense0"]["weight"] + params["dense0"]["bias"])
        logits = hidden @ params["dense1"]["weight"] + params["dense1"]["bias"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()

    ends = jax.lax.map(_client(loss, x, y, params, rate), order)
    return jax.tree.map(lambda leaf: leaf.mean(0), ends)


def _client(loss: Loss, x: Array, y: Array, params: Params, rate: float) -> Callable[[Array], Params]:
    def step(params: Params, rows: tuple[Array, Array]) -> tuple[Params, None]:
        slopes = jax.grad(loss)(params, rows[0].astype(jnp.float32) / 255, rows[1])
        return jax.tree.map(lambda value, slope: value - rate * slope, params, slopes), None

    return lambda mine: jax.lax.scan(step, params, (x[mine], y[mine]))[0]
