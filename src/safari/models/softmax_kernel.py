"""Softmax regression by SGD as one GPU kernel: a model's weights stay on the chip for all its steps.

A step of softmax regression is two small products. Launched one by one, hundreds of models
side by side, they leave a GPU waiting for memory. Here one block of threads trains one model:
it gathers a minibatch, multiplies, updates, and only the last weights are written back.

Samples are bytes, which float16 holds exactly. A float32 factor is split into two float16
terms, the second being what the first leaves; they lie side by side, so that one product
serves both. With sums in float32 the result is that of float32 products, at the speed of
tensor cores.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt8

MOST_FEATURES, MOST_BATCH, MOST_CLASSES = 1024, 128, 64
LEAST_TILE, MOST_TILE = 16, 128
WEIGHTS_UP, ERRORS_UP = 2.0**6, 2.0**10
"""Powers of two that keep both terms of a float16 pair in range: weights up to 1000 in size."""


@functools.cache
def available() -> bool:
    """Whether this JAX has what the kernel is written in; imported late, since most never need it."""
    try:
        from jax.experimental.pallas import triton
    except ImportError:
        return False
    return hasattr(triton, "load")


def serves(x: Array, classes: int, size: int) -> bool:
    """Whether the kernel can train on these samples in minibatches of `size`."""
    fits = x.shape[-1] <= MOST_FEATURES and size <= MOST_BATCH and classes <= MOST_CLASSES
    return fits and x.dtype == jnp.uint8 and available()


def sgd(
    x: UInt8[Array, "train features"],
    y: Int[Array, " train"],
    samples: Int[Array, "steps size"],
    weight: Float[Array, "steps size"],
    parameters: tuple[Float[Array, "classes features"], Float[Array, " classes"]],
    *,
    scale: Float[Array, ""],
    rate: Float[Array, ""],
    used: Int[Array, ""],
    terms: int = 2,
    warps: int = 4,
    tiles: Sequence[int] | None = None,
    interpret: bool = False,
) -> tuple[Float[Array, "classes features"], Float[Array, " classes"]]:
    """Weights and biases after the first `used` steps on minibatches of `x * scale`."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    widths = tuple(tiles or tile_widths(x.shape[-1]))
    call = pallas.pallas_call(
        functools.partial(_kernel, widths=widths, terms=terms),
        out_shape=tuple(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in parameters),
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        interpret=interpret,
    )
    return call(x.astype(jnp.float16), y, samples, weight, scale, rate, used, *parameters)


def tile_widths(features: int) -> list[int]:
    """Powers of two that add up to the features: few large products, little padding."""
    widths: list[int] = []
    while (left := features - sum(widths)) > 0:
        widths.append(max(LEAST_TILE, min(MOST_TILE, 1 << (left.bit_length() - 1))))
    return widths


def _kernel(
    x_ref: Any, y_ref: Any, samples_ref: Any, weight_ref: Any, scale_ref: Any, rate_ref: Any, used_ref: Any,
    matrix_ref: Any, bias_ref: Any, matrix_out: Any, bias_out: Any, *, widths: tuple[int, ...], terms: int,
) -> None:  # fmt: skip
    from jax.experimental.pallas import triton

    (steps, size), (classes, features) = samples_ref.shape, matrix_ref.shape
    lanes, names = jnp.arange(_power(size)), jnp.arange(_power(classes))
    here, real = lanes < size, names < classes
    columns = [sum(widths[:i]) + jnp.arange(width) for i, width in enumerate(widths)]
    scale, rate, used = scale_ref[...], rate_ref[...], used_ref[...]

    def at(ref: Any, column: Array) -> tuple[Any, Array]:
        return ref.at[names[None, :], column[:, None]], (column < features)[:, None] & real[None, :]

    def step(number: Array, now: tuple[tuple[Array, ...], Array]) -> tuple[tuple[Array, ...], Array]:
        matrix, bias = now
        sample = triton.load(samples_ref.at[number, lanes], mask=here, other=0)
        weight = triton.load(weight_ref.at[number, lanes], mask=here, other=0.0)
        label = triton.load(y_ref.at[sample])

        def rows(column: Array) -> Array:
            mask = jnp.broadcast_to((column < features)[None, :], (len(lanes), len(column)))
            return triton.load(x_ref.at[sample[:, None], column[None, :]], mask=mask, other=0.0)

        logits = sum(
            _product(rows(column), part * WEIGHTS_UP, 1, terms)
            for column, part in zip(columns, matrix, strict=True)
        )
        logits = jnp.where(real[None, :], logits * (scale / WEIGHTS_UP) + bias[None, :], -1e30)
        probability = jnp.exp(logits - jnp.max(logits, axis=1)[:, None])
        probability = probability / jnp.sum(probability, axis=1)[:, None]
        error = (probability - (names[None, :] == label[:, None]).astype(jnp.float32)) * weight[:, None]
        by = jnp.where(number < used, rate, 0.0)
        matrix = tuple(
            part - (by * scale / ERRORS_UP) * _product(rows(column), error * ERRORS_UP, 0, terms)
            for column, part in zip(columns, matrix, strict=True)
        )
        return matrix, bias - by * jnp.sum(error, axis=0)

    def read(column: Array) -> Array:
        place, mask = at(matrix_ref, column)
        return triton.load(place, mask=mask, other=0.0)

    start = tuple(read(column) for column in columns), triton.load(bias_ref.at[names], mask=real, other=0.0)
    matrix, bias = jax.lax.fori_loop(0, steps, step, start)
    for column, part in zip(columns, matrix, strict=True):
        place, mask = at(matrix_out, column)
        triton.store(place, part, mask=mask)
    triton.store(bias_out.at[names], bias, mask=real)


def _product(exact: Array, factor: Array, along: int, terms: int) -> Array:
    """`exact` (in float16) times a float32 factor, contracted over axis `along` of `exact`."""
    first = factor.astype(jnp.float16)
    if terms == 1:
        return _dot(exact, first, along)
    second = (factor - first.astype(jnp.float32)).astype(jnp.float16)
    pair = jnp.stack([first, second], axis=-1).reshape(factor.shape[0], -1)
    both = _dot(exact, pair, along)
    return jnp.sum(both.reshape(both.shape[0], -1, 2), axis=2)


def _dot(a: Array, b: Array, along: int) -> Array:
    return jax.lax.dot_general(a, b, (((along,), (0,)), ((), ())), preferred_element_type=jnp.float32)


def _power(number: int) -> int:
    """The power of two at or above, and at least the smallest side of a product."""
    return max(LEAST_TILE, 1 << (number - 1).bit_length())
