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
STRIP = 16


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
    """The same for a network of one convolution of 5 x 5, pooled, and two dense layers.

    A few images at a time, over blocks of 2 x 2 pixels: all four outputs of a block come out of one
    product, and backwards the place of their maximum is enough.
    """

    def loss(params: Params, inputs: Array, labels: Array) -> Array:
        kernel, count = _block_kernel(params["conv0"]["kernel"]), len(inputs)
        strips = [_four_outputs(inputs[start : start + STRIP], kernel) for start in range(0, count, STRIP)]
        pooled = jnp.concatenate([_largest(strip) for strip in strips])
        flat = jax.nn.relu(pooled + params["conv0"]["bias"]).reshape(count, -1)
        hidden = jax.nn.relu(flat @ params["dense0"]["weight"] + params["dense0"]["bias"])
        logits = hidden @ params["dense1"]["weight"] + params["dense1"]["bias"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1).mean()

    ends = jax.lax.map(_client(loss, x, y, params, rate), order)
    return jax.tree.map(lambda leaf: leaf.mean(0), ends)


def _block_kernel(kernel: Array) -> Array:
    """5 x 5 taps over pixels as 3 x 3 taps over blocks: (9 * 4 * channels, 4 * outputs)."""
    _, _, channels, outputs = kernel.shape
    shifted = [jnp.pad(kernel, ((a, 1 - a), (b, 1 - b), (0, 0), (0, 0))) for a in range(2) for b in range(2)]
    taps = jnp.stack(shifted, axis=3).reshape(3, 2, 3, 2, channels, 4 * outputs)
    return taps.transpose(0, 2, 1, 3, 4, 5).reshape(9 * 4 * channels, 4 * outputs)


def _four_outputs(x: Array, kernel: Array) -> Array:
    """The four outputs of every block: (images, height / 2, width / 2, 4, outputs)."""
    count, height, width, channels = x.shape
    down, across = height // 2, width // 2
    blocks = x.reshape(count, down, 2, across, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    around = jnp.pad(blocks.reshape(count, down, across, -1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [around[:, i : i + down, j : j + across] for i in range(3) for j in range(3)]
    patches = jnp.concatenate(taps, axis=-1).reshape(count * down * across, -1)
    return (patches @ kernel).reshape(count, down, across, 4, -1)


@jax.custom_vjp
def _largest(x: Array) -> Array:
    return _largest_and_place(x)[0]


def _largest_and_place(x: Array) -> tuple[Array, Array]:
    a, b, c, d = (x[..., i, :] for i in range(4))
    left, right = jnp.maximum(a, b), jnp.maximum(c, d)
    place = jnp.where(right > left, 2 + (d > c), (b > a).astype(jnp.int32)).astype(jnp.int8)
    return jnp.maximum(left, right), place


_largest.defvjp(
    _largest_and_place,
    lambda place, slope: (jnp.stack([jnp.where(place == i, slope, 0) for i in range(4)], axis=-2),),
)


def _client(loss: Loss, x: Array, y: Array, params: Params, rate: float) -> Callable[[Array], Params]:
    def step(params: Params, rows: tuple[Array, Array]) -> tuple[Params, None]:
        slopes = jax.grad(loss)(params, rows[0].astype(jnp.float32) / 255, rows[1])
        return jax.tree.map(lambda value, slope: value - rate * slope, params, slopes), None

    return lambda mine: jax.lax.scan(step, params, (x[mine], y[mine]))[0]
