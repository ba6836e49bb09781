"""Models: shapes, starts, and that they learn."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.engine import Training, prepare
from safari.models import as_model


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
    federation = safari.federate("digits", safari.IID(samples_per_client=120), safari.ServerSet(0))
    algorithm = safari.FedAvg(local_rate=0.3, batch_size=20)
    result = safari.train(federation, algorithm, model=model, rounds=30)
    assert result.accuracy > 0.85


def test_the_seed_decides_the_initialisation_of_networks():
    one, two, other = (
        jax.tree.leaves(safari.MLP().init(jax.random.key(seed), (8, 8, 1), 10))[1] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


class Module(eqx.Module):
    """Holds all that modules hold: arrays to train, constants, numbers, a function."""

    layer: eqx.nn.Linear
    order: np.ndarray
    width: int
    gain: float
    activation: Callable

    def __init__(self, key, activation=jax.nn.relu):
        self.layer = eqx.nn.Linear(64, 10, key=key)
        self.order = np.arange(64)[::-1]
        self.width, self.gain, self.activation = 64, 2.0, activation

    def __call__(self, x):
        return self.layer(self.gain * self.activation(x.reshape(self.width))[self.order])


def test_a_module_keeps_all_that_is_not_an_array_of_floats(digits):
    module = Module(jax.random.key(0))
    result = safari.train(digits, safari.FedAvg(), model=module, rounds=2)
    names = sorted(jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(result.params))
    assert names == [".layer.bias", ".layer.weight"]
    x = digits.dataset.normalise(digits.dataset.shaped(digits.dataset.x_test[:3]))
    trained = eqx.tree_at(lambda module: module.layer, module, result.params.layer)
    ours = as_model(module).apply(result.params, x)
    np.testing.assert_allclose(ours, jax.vmap(trained)(x), rtol=1e-5)


def test_modules_with_other_arrays_are_stacked_and_start_from_their_own(digits):
    everyone = safari.Participation()
    runs = [
        prepare(digits, safari.FedAvg(), as_model(Module(jax.random.key(seed))), everyone, 2, 0, 1, "float32")
        for seed in (0, 1)
    ]
    together = Training(runs)
    while not together.finished:
        together.advance()
    for run, result in zip(runs, together.results(), strict=True):
        alone = Training(run, devices=jax.devices()[:1])
        while not alone.finished:
            alone.advance()
        expected = alone.result().params.layer.weight
        np.testing.assert_allclose(result.params.layer.weight, expected, atol=2e-5)
