"""Images, weights and sums as the kernels want and give them; `convolution.cu` says why.

The first layer sees blocks of 2 x 2 pixels, of four channels each (the last is empty), as pixels of
sixteen channels under 3 x 3 taps. All four outputs of a block come out together, in an order that
leaves the four values of a maximum in one thread.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, BFloat16, Float, Float32

CHANNELS, OUTPUTS, SIZE = 3, 32, 5
"""Of the first layer."""

Blocks = BFloat16[Array, "images 16 16 16"]


def blocks(x: BFloat16[Array, "images 32 32 3"]) -> Blocks:
    padded = jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))
    return padded.reshape(-1, 16, 2, 16, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 16, 16, 16)


def first_weights(kernel: BFloat16[Array, "5 5 3 32"]) -> BFloat16[Array, "9 2 128 8"]:
    flat = jnp.pad(kernel.reshape(-1), (0, 1))
    return flat[_places()]


def first_gradient(sums: Float32[Array, "blocks 9 16 128"]) -> Float32[Array, "5 5 3 32"]:
    """Every tap stands at four places: once for each output of a block."""
    return sums.sum(0).reshape(-1)[_standing()].sum(0).reshape(SIZE, SIZE, CHANNELS, OUTPUTS)


def second_weights(kernel: BFloat16[Array, "5 5 32 64"]) -> BFloat16[Array, "25 4 64 8"]:
    return kernel.reshape(25, 4, 8, 64).transpose(0, 1, 3, 2)


def turned_weights(kernel: BFloat16[Array, "5 5 32 64"]) -> BFloat16[Array, "3 5 8 4 2 8 8"]:
    """For the way back: two rows of taps (the sixth is empty) side by side."""
    turned = jnp.pad(kernel[::-1, ::-1], ((0, 1), (0, 0), (0, 0), (0, 0)))
    return turned.reshape(3, 2, 5, 4, 8, 8, 8).transpose(0, 2, 5, 3, 1, 4, 6)


def second_gradient(sums: Float32[Array, "blocks 25 32 64"]) -> Float[Array, "5 5 32 64"]:
    return sums.sum(0).reshape(5, 5, 32, 64)


def bias_gradient(sums: Float32[Array, "blocks threads 8"], outputs: int) -> Float32[Array, " outputs"]:
    """Threads take the channels in turn, eight each."""
    return sums.reshape(-1, outputs).sum(0)


@functools.cache
def _places() -> np.ndarray:
    """Which number of the flat kernel (the last, beyond it, is zero) stands where: (9, 2, 128, 8)."""
    numbers = np.full((9, 16, 2, 2, OUTPUTS), SIZE * SIZE * CHANNELS * OUTPUTS, np.int32)
    kernel = np.arange(SIZE * SIZE * CHANNELS * OUTPUTS).reshape(SIZE, SIZE, CHANNELS, OUTPUTS)
    for down, across, c, d, a, b in np.ndindex(3, 3, 2, 2, 2, 2):
        row, column = 2 * (down - 1) + c - a + 2, 2 * (across - 1) + d - b + 2
        if 0 <= row < SIZE and 0 <= column < SIZE:
            inputs = (2 * c + d) * 4 + np.arange(CHANNELS)
            numbers[3 * down + across, inputs, a, b] = kernel[row, column]
    ordered = numbers.reshape(9, 2, 8, 2, 2, 4, 8).transpose(0, 1, 3, 5, 4, 6, 2)
    return ordered.reshape(9, 2, 128, 8)


@functools.cache
def _standing() -> np.ndarray:
    """Where each number of the flat kernel stands in (9, 16, 128): (4, numbers)."""
    flat = _places().transpose(0, 1, 3, 2).reshape(-1)
    order = np.argsort(flat, kind="stable")[: 4 * SIZE * SIZE * CHANNELS * OUTPUTS]
    return order.reshape(-1, 4).T.astype(np.int32)
