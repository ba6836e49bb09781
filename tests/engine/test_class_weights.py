"""Class weights and the loss of a model: what training makes small."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.engine.class_weights import class_weights_of
from safari.errors import InputError

CENTRES = np.array([[2.0, 0, 0], [0, 2, 0], [0.8, 0.8, 0.6]])


def rare(samples=300, seed=0):
    """Two common classes and a rare one between them."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(samples) % 15 == 0, 2, np.arange(samples) % 2)
    return CENTRES[y] + 0.7 * rng.normal(size=(samples, 3)), y


@pytest.fixture(scope="module")
def federation():
    dataset = safari.Dataset(*rare(), *rare(seed=1), client=np.arange(300) % 3)
    return safari.federate(dataset, safari.ByColumn(), safari.ServerSet(60, disjoint=False))


def trained(federation, model=safari.Logistic(), rate=0.1, rounds=1, **keys):
    clients = safari.FedAvg(local_rate=rate, batch_size=100, local_steps=1)
    return safari.train(federation, clients, model=model, rounds=rounds, **keys)


def assert_near(one, two):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), one, two)


def test_a_step_follows_the_weighted_gradient(federation):
    weights = (0.5, 1.0, 3.0)
    result = trained(federation, class_weights=weights)
    x, y = np.asarray(federation.dataset.x), np.asarray(federation.dataset.y)
    error = (np.full((300, 3), 1 / 3) - np.eye(3)[y]) * np.array(weights)[y][:, None] / 300
    np.testing.assert_allclose(result.params["weight"], -0.1 * error.T @ x, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(result.params["bias"], -0.1 * error.sum(axis=0), rtol=1e-4, atol=1e-6)


def test_balanced_weights_are_one_over_the_counts_and_help_the_rare_class(federation):
    found = class_weights_of("balanced", federation)
    y = np.asarray(federation.dataset.y)[federation.held_by(None)]
    counts = np.bincount(y, minlength=3)
    assert np.asarray(found)[y].mean() == pytest.approx(1)
    assert float(found[2] / found[0]) == pytest.approx((counts[0] + 1) / (counts[2] + 1))
    plain, balanced = (
        trained(federation, rounds=60, rate=1.0, class_weights=one) for one in (None, "balanced")
    )
    assert balanced.metrics.recall[2] > plain.metrics.recall[2]
    assert balanced.metrics.balanced_accuracy > plain.metrics.balanced_accuracy


def test_weights_by_name_are_those_of_a_list(federation):
    np.testing.assert_array_equal(class_weights_of({"2": 3.0}, federation), np.float32([1, 1, 3]))
    with pytest.raises(
        InputError, match=r"^train.class_weights.rare = 3.0: unknown class; known are 0, 1, 2"
    ):
        class_weights_of({"rare": 3.0}, federation)
    with pytest.raises(InputError, match=r"needs one number for each of 3 classes, in this order: 0, 1, 2"):
        class_weights_of((1.0, 2.0), federation)


class Kernel(safari.Logistic):
    """With a kernel: plain SGD on the cross entropy, which knows nothing of class weights."""

    def plain_sgd(self, params, data, batches, *, scale, classes, rate, steps, precision):
        (x, y), (samples, weights) = data, batches

        def step(params, batch):
            sample, weight = batch
            x_, target = x[sample] * scale, jax.nn.one_hot(y[sample], classes)
            error = (jax.nn.softmax(self.apply(params, x_)) - target) * weight[:, None]
            gradient = {"weight": error.T @ x_, "bias": error.sum(axis=0)}
            return jax.tree.map(lambda p, g: p - rate * g, params, gradient), None

        return jax.lax.scan(step, params, (samples, weights))[0]


def test_a_kernel_is_given_the_weights_of_the_classes(federation):
    weights = (1.0, 2.0, 8.0)
    with_kernel = trained(federation, Kernel(), 0.3, 3, class_weights=weights)
    without = trained(federation, safari.Logistic(), 0.3, 3, class_weights=weights)
    assert_near(with_kernel.params, without.params)


class Twice(Kernel):
    """Twice the cross entropy."""

    cross_entropy = False

    def loss(self, logits, target):
        return 2 * super().loss(logits, target)


class Forgot(safari.Logistic):
    """A loss of its own, and no word of it."""

    def loss(self, logits, target):
        return jnp.sum((jax.nn.softmax(logits) - target) ** 2, axis=1)


def test_a_loss_of_ones_own_is_what_training_follows_without_the_kernel(federation):
    twice, once = trained(federation, Twice(), 0.1, 3), trained(federation, Kernel(), 0.2, 3)
    assert_near(twice.params, once.params)
    assert twice.history["loss"][-1] == pytest.approx(twice.metrics.loss, rel=1e-4)  # scores: cross entropy


def test_a_loss_that_its_kernel_would_not_compute_is_refused(federation):
    with pytest.raises(InputError, match="set cross_entropy = False"):
        trained(federation, Forgot())


@pytest.mark.parametrize(
    "given", ["heavy", (1.0, 2.0), (1.0, 2.0, -1.0), (0.0, 0.0, 0.0), (1.0, 2.0, float("nan"))]
)
def test_weights_that_cannot_be_are_refused(federation, given):
    with pytest.raises(InputError, match=r"train\.class_weights"):
        trained(federation, class_weights=given)


def test_balanced_needs_server_samples():
    nobody = safari.federate("digits", safari.IID(clients=2), safari.ServerSet(0))
    with pytest.raises(InputError, match="give a list"):
        trained(nobody, class_weights="balanced")
