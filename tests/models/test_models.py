"""Models: shapes, starts, and that they learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari


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
