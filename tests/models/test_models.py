"""Models: shapes, gradients, and the ways to convolve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.models.convolution import by_blocks, by_library, by_patches, by_strips, convolve_and_halve, halve


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("way", [by_patches, by_strips])
def test_products_convolve_as_the_library_does(size, way):
    keys = jax.random.split(jax.random.key(0), 2)
    x, kernel = jax.random.normal(keys[0], (3, 9, 7, 2)), jax.random.normal(keys[1], (size, size, 2, 4))
    np.testing.assert_allclose(way(x, kernel), by_library(x, kernel), atol=1e-4)
    slopes = [jax.grad(lambda k, way=way: (way(x, k) ** 2).sum())(kernel) for way in (way, by_library)]
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    ("size", "shape", "channels"), [(3, (6, 10), 2), (5, (8, 8), 2), (7, (4, 12), 1), (5, (8, 8), 3)]
)
def test_blocks_convolve_and_pool_as_the_library_does(size, shape, channels):
    keys = jax.random.split(jax.random.key(0), 2)
    x, kernel = (
        jax.random.normal(keys[0], (3, *shape, channels)),
        jax.random.normal(keys[1], (size, size, channels, 4)),
    )

    def plain(x, kernel):
        return halve(by_library(x, kernel))

    np.testing.assert_allclose(by_blocks(x, kernel), plain(x, kernel), atol=1e-4)
    np.testing.assert_allclose(convolve_and_halve(x, kernel), plain(x, kernel), atol=1e-4)
    for place in (0, 1):
        slopes = [
            jax.grad(lambda *both, way=way: (way(*both) ** 2).sum(), argnums=place)(x, kernel)
            for way in (by_blocks, plain, convolve_and_halve)
        ]
        np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose(slopes[2], slopes[1], rtol=1e-3, atol=1e-2)


def test_halving_takes_the_largest_of_four():
    x = jnp.arange(20.0).reshape(1, 4, 5, 1)
    np.testing.assert_array_equal(halve(x)[0, :, :, 0], [[6, 8], [16, 18]])


def test_cnn_has_the_papers_layers():
    params = safari.CNN().init(jax.random.key(0), (32, 32, 3), 10)
    shapes = {name: jax.tree.map(jnp.shape, layer) for name, layer in params.items()}
    assert shapes == {
        "conv0": {"kernel": (5, 5, 3, 32), "bias": (32,)},
        "conv1": {"kernel": (5, 5, 32, 64), "bias": (64,)},
        "dense0": {"weight": (4096, 512), "bias": (512,)},
        "dense1": {"weight": (512, 10), "bias": (10,)},
    }


@pytest.mark.parametrize(
    "model", [safari.Logistic(), safari.MLP((30, 20)), safari.CNN((8,), kernel=3, hidden=16)]
)
def test_models_learn_digits(model):
    federation = safari.federate("digits", partition="iid", server_samples=0, samples_per_client=120)
    algorithm = safari.FedAvg(local_rate=0.3, batch_size=20)
    result = safari.train(federation, algorithm, model=model, rounds=30)
    assert result.accuracy > 0.85


def test_the_seed_decides_the_initialisation_of_networks():
    one, two, other = (
        jax.tree.leaves(safari.MLP().init(jax.random.key(seed), (8, 8, 1), 10))[1] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
