"""The GPU kernel, carried out on the host, against the model it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from safari import IID, Dataset, federate
from safari.algorithms import Task
from safari.models import Logistic, softmax_kernel

pytestmark = pytest.mark.skipif(not softmax_kernel.available(), reason="this JAX has no Triton backend")


def _task(features: int, classes: int) -> Task:
    chance = np.random.default_rng(0)
    x = chance.integers(0, 256, (120, features), dtype=np.uint8)
    y = np.arange(120) % classes
    return Task(Logistic(), federate(Dataset(x, y, x, y), IID(clients=4)))


@pytest.mark.parametrize(("features", "classes", "size"), [(49, 3, 7), (784, 10, 16), (200, 17, 30)])
@pytest.mark.parametrize("used", [3, 2])
def test_the_kernel_takes_the_steps_of_the_model(features, classes, size, used):
    task = _task(features, classes)
    dataset = task.federation.dataset
    start = {
        "weight": jax.random.normal(jax.random.key(1), (classes, features)) / 10,
        "bias": jnp.arange(classes) / classes,
    }
    key, shard = jax.random.key(2), task.federation.client(jnp.int32(1))
    minibatches = task.minibatches(shard, key, 3, size)
    plain, schedule = task.sgd(start, minibatches, rate=0.3, used=jnp.int32(used)), minibatches.schedule
    weight, bias = softmax_kernel.sgd(
        dataset.x, dataset.y, schedule.samples, schedule.weight, (start["weight"], start["bias"]),
        scale=dataset.scale, rate=jnp.float32(0.3), used=jnp.int32(used), interpret=True,
    )  # fmt: skip
    assert not np.allclose(weight, start["weight"], atol=1e-3)
    np.testing.assert_allclose(weight, plain["weight"], atol=1e-6)
    np.testing.assert_allclose(bias, plain["bias"], atol=1e-6)


def test_tiles_cover_the_features_with_little_waste():
    assert softmax_kernel.tile_widths(784) == [*[128] * 6, 16]
    for features in (1, 15, 16, 17, 100, 784, 1000):
        widths = softmax_kernel.tile_widths(features)
        assert features <= sum(widths) < features + softmax_kernel.LEAST_TILE


@pytest.mark.parametrize(
    ("x", "classes", "size", "fits"),
    [
        (np.zeros((5, 784), np.uint8), 10, 64, True),
        (np.zeros((5, 784), np.float32), 10, 64, False),
        (np.zeros((5, 3072), np.uint8), 10, 64, False),
        (np.zeros((5, 784), np.uint8), 10, 500, False),
        (np.zeros((5, 784), np.uint8), 100, 64, False),
    ],
)
def test_what_the_kernel_serves(x, classes, size, fits):
    assert softmax_kernel.serves(jnp.asarray(x), classes, size) is fits
