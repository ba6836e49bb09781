"""The ways to convolve and pool: all give what the library gives, forwards and backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from safari.models.convolution import (
    by_blocks,
    by_library,
    by_patches,
    by_tiles,
    convolve_and_halve,
    halve,
    on_gpu,
)
from safari.models.winograd import TILE, transforms


def plain(x, kernel):
    return halve(by_library(x, kernel))


def images_and_kernel(shape, size, outputs=4):
    keys = jax.random.split(jax.random.key(0), 2)
    return jax.random.normal(keys[0], shape), jax.random.normal(keys[1], (size, size, shape[-1], outputs))


def assert_alike(way, plain, x, kernel):
    """The same values, and the same gradients for images and kernel."""

    def all_of(way):
        gradients = jax.grad(lambda *both: (way(*both) ** 2).sum(), argnums=(0, 1))
        return jax.jit(lambda *both: (way(*both), *gradients(*both)))(x, kernel)

    (value, *gradients), (expected, *expected_gradients) = all_of(way), all_of(plain)
    np.testing.assert_allclose(value, expected, atol=2e-4)
    for one, other in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_patches_convolve_as_the_library_does(size):
    assert_alike(by_patches, by_library, *images_and_kernel((3, 9, 7, 2), size))


@pytest.mark.parametrize(
    ("size", "shape", "convolve"),
    [(3, (6, 10, 2), by_library), (5, (8, 8, 2), by_patches), (7, (4, 12, 1), by_library)],
)
def test_blocks_convolve_and_pool_as_the_library_does(size, shape, convolve):
    blocks = lambda *both: by_blocks(*both, convolve)  # noqa: E731
    assert_alike(blocks, plain, *images_and_kernel((3, *shape), size))


@pytest.mark.parametrize(
    ("size", "shape"), [(2, (9, 7, 2)), (3, (8, 12, 5)), (4, (8, 7, 3)), (5, (14, 14, 16))]
)
def test_tiles_convolve_and_pool_as_the_library_does(size, shape):
    assert_alike(by_tiles, plain, *images_and_kernel((2, *shape), size))


@pytest.mark.parametrize(
    ("size", "shape"), [(1, (8, 8, 16)), (3, (7, 9, 16)), (5, (8, 8, 3)), (5, (8, 6, 16)), (6, (8, 8, 16))]
)
@pytest.mark.parametrize("way", [convolve_and_halve, on_gpu])
def test_whatever_way_is_taken_the_values_are_the_librarys(size, shape, way):
    assert_alike(way, plain, *images_and_kernel((2, *shape), size))


@pytest.mark.parametrize("channels", [2, 16])
def test_images_go_through_in_strips_that_need_not_divide_them(channels):
    x, kernel = images_and_kernel((41, 6, 6, channels), 5)
    assert_alike(convolve_and_halve, plain, x, kernel / 5)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_transforms_of_tiles_correlate(size):
    chance = np.random.default_rng(0)
    taps, values = chance.normal(size=size), chance.normal(size=TILE + size - 1)
    back, kernel_in, tile_in = transforms(size)
    found = back @ ((kernel_in @ taps) * (tile_in @ values))
    np.testing.assert_allclose(found, np.correlate(values, taps), rtol=1e-12, atol=1e-12)


def test_tiles_lose_about_a_digit_and_no_more():
    x, kernel = images_and_kernel((4, 16, 16, 32), 5, outputs=64)
    x, kernel = jax.nn.relu(x), kernel / np.sqrt(25 * 32)
    around = np.pad(np.asarray(x, np.float64), ((0, 0), (2, 2), (2, 2), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(around, (5, 5), (1, 2))
    exact = np.asarray(np.einsum("bhwcij,ijco->bhwo", seen, np.asarray(kernel, np.float64), optimize=True))
    exact = exact.reshape(4, 8, 2, 8, 2, 64).max((2, 4))
    off = np.abs(jax.jit(by_tiles)(x, kernel) - exact)
    assert off.max() < 1e-4 * np.abs(exact).max()
    assert off.mean() < 1e-5 * np.abs(exact).mean()


def test_halving_takes_the_largest_of_four():
    x = jnp.arange(20.0).reshape(1, 4, 5, 1)
    np.testing.assert_array_equal(halve(x)[0, :, :, 0], [[6, 8], [16, 18]])


def test_the_gradient_of_equals_goes_to_the_first():
    gradient = jax.grad(lambda x: (halve(x) * jnp.array([3.0, 5.0])).sum())(jnp.zeros((1, 4, 2, 2)))
    np.testing.assert_array_equal(gradient[0, :, :, 0], [[3, 0], [0, 0]] * 2)
    np.testing.assert_array_equal(gradient[0, :, :, 1], [[5, 0], [0, 0]] * 2)
