"""The layers of the CIFAR-10 network by kernels of our own, on NVIDIA's Hopper (H100, H200).

A layer is convolution, bias, 2 x 2 maxima and ReLU in bfloat16: one kernel forwards; backwards one
for the gradient of the images and one for that of the kernel. What lies between convolution and ReLU,
four times as large as what comes out, never leaves the chip. Other shapes, devices and precisions
go the ways of `safari.models.convolution`.
"""

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, BFloat16, UInt8

from safari.devices import compute_capability, on_one_gpu
from safari.models.convolution import block_kernel, by_library, on_gpu
from safari.models.hopper import layout
from safari.models.hopper.kernels import blocks_at_once, call

FIRST, SECOND = ((32, 32, 3), (5, 5, 3, 32)), ((16, 16, 32), (5, 5, 32, 64))
Images = BFloat16[Array, "images height width channels"]
Kernel = BFloat16[Array, "5 5 channels outputs"]
Bias = BFloat16[Array, " outputs"]
Pooled = BFloat16[Array, "images half_height half_width outputs"]
Place = UInt8[Array, "images half_height half_width outputs"]


def serves(x: Array, kernel: Array) -> bool:
    """Whether the kernels can do this layer here. Over several GPUs XLA could not share their work out."""
    fits = (x.shape[1:], kernel.shape) in (FIRST, SECOND) and x.dtype == kernel.dtype == jnp.bfloat16
    return fits and on_one_gpu() and _runs_here()


@functools.cache
def _runs_here() -> bool:
    """Whether this GPU, its driver and this XLA take the kernels: one is tried."""
    if compute_capability() != 9.0:
        return False
    x, kernel = (np.ones(shape, jnp.bfloat16) for shape in ((1, 32, 32, 3), (5, 5, 3, 32)))
    bias = np.ones(32, jnp.bfloat16)
    try:
        pooled = jax.jit(_convolved).lower(x, kernel, bias).compile()(x, kernel, bias)[0]
    except jax.errors.JaxRuntimeError as error:
        warnings.warn(f"safari's kernels for Hopper do not run here: {error}", stacklevel=2)
        return False
    return bool((np.asarray(pooled)[0, 2:-2, 2:-2] == 5 * 5 * 3 + 1).all())


def layer(x: Images, kernel: Kernel, bias: Bias) -> Pooled:
    """Convolution with zero padding, 2 x 2 maxima, bias, ReLU."""
    return _convolved(x, kernel, bias)[0]


@jax.custom_vjp
def _convolved(x: Images, kernel: Kernel, bias: Bias) -> tuple[Pooled, Place]:
    first = x.shape[1:] == FIRST[0]
    images = layout.blocks(x) if first else x
    weights = layout.first_weights(kernel) if first else layout.second_weights(kernel)
    shape = (len(x), 16, 16, 32) if first else (len(x), 8, 8, 64)
    results = jax.ShapeDtypeStruct(shape, jnp.bfloat16), jax.ShapeDtypeStruct(shape, jnp.uint8)
    name = "forward1" if first else "forward2"
    return call(name, blocks_at_once(), results, images, weights, bias.astype(jnp.float32))


def _forwards(*given: Array) -> tuple[tuple[Pooled, Place], tuple[Array, ...]]:
    pooled, place = _convolved(*given)
    return (pooled, place), (*given, place)


def _backwards(kept: tuple[Array, ...], cotangents: tuple[Pooled, Any]) -> tuple[Images, Kernel, Bias]:
    return _gradients(*kept, cotangents[0])


_convolved.defvjp(_forwards, _backwards)


@jax.custom_vjp
def _gradients(
    x: Images, kernel: Kernel, bias: Bias, place: Place, cotangent: Pooled
) -> tuple[Images, Kernel, Bias]:
    """Gradients of images, kernel and bias. XLA leaves out those that nobody asks for."""
    many, first = blocks_at_once(), x.shape[1:] == FIRST[0]
    shape = (many, 9, 16, 128) if first else (many // 2, 25, 32, 64)
    results = [jax.ShapeDtypeStruct(each, jnp.float32) for each in (shape, (shape[0], 128, 8))]
    images, name = (layout.blocks(x), "kernel1") if first else (x, "kernel2")
    of_kernel, of_bias = call(name, many, results, images, cotangent, place)
    of_bias = layout.bias_gradient(of_bias, len(bias)).astype(bias.dtype)
    if first:
        of_kernel = layout.first_gradient(of_kernel)
        of_images = _gradient_of_first_images(x, kernel, place, cotangent)
    else:
        of_kernel = layout.second_gradient(of_kernel)
        like_x = jax.ShapeDtypeStruct(x.shape, x.dtype)
        of_images = call("backward2", many, like_x, cotangent, place, layout.turned_weights(kernel))
    return of_images, of_kernel.astype(kernel.dtype), of_bias


def _gradient_of_first_images(x: Images, kernel: Kernel, place: Place, cotangent: Pooled) -> Images:
    """By the library: no training asks for it."""
    four = jnp.where(place[..., None, :] == jnp.arange(4)[:, None], cotangent[..., None, :], 0)
    taps = block_kernel(jnp.pad(kernel, ((0, 0), (0, 0), (0, 1), (0, 0))))
    _, back = jax.vjp(lambda x: by_library(layout.blocks(x), taps), x)
    return back(four.reshape(*cotangent.shape[:3], -1))[0]


def _gradients_forwards(*given: Array) -> tuple[Any, tuple[Array, ...]]:
    return _gradients(*given), given


def _gradients_backwards(given: tuple[Array, ...], wanted: Any) -> tuple[Any, ...]:
    """Gradients of gradients, for curvature: rare, so by the library."""
    x, kernel, bias, _, cotangent = given
    again = jax.vjp(lambda *given: jax.vjp(_by_library, *given[:3])[1](given[3]), x, kernel, bias, cotangent)[
        1
    ]
    of_x, of_kernel, of_bias, of_cotangent = again(wanted)
    return of_x, of_kernel, of_bias, None, of_cotangent


_gradients.defvjp(_gradients_forwards, _gradients_backwards)


def _by_library(x: Images, kernel: Kernel, bias: Bias) -> Pooled:
    return jax.nn.relu(on_gpu(x, kernel) + bias)
