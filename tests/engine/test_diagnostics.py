"""The observer: unbiased where it says so, and without influence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.engine import prepare, start
from safari.engine.diagnostics import Observer, curvature
from safari.engine.training import Training

PARTICIPATION = safari.Participation(excluded=4, per_round=3)
ALGORITHM = safari.Safari(safari.FedAvg(batch_size=20), safari.ServerSGD(batch_size=10, steps=2), q=0.7)
LOOKS = 400


def train(federation, **more):
    return safari.train(federation, ALGORITHM, participation=PARTICIPATION, rounds=12, seed=3, **more)


@pytest.mark.parametrize("model", [safari.Logistic(), safari.MLP(hidden=(16,))], ids=["logistic", "mlp"])
def test_observed_or_not_the_numbers_are_the_same_bit_for_bit(digits, model):
    plain, seen = train(digits, model=model), train(digits, model=model, diagnostics=True)
    for a, b in zip(jax.tree.leaves(plain.params_last), jax.tree.leaves(seen.params_last), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert plain.history.equals(seen.history)
    assert plain.diagnostics is None
    assert len(seen.diagnostics) == 12
    summary = seen.summary()
    assert summary["diagnostics_seconds"] > 0
    assert summary["gradient_floor"] == pytest.approx(0.7 * summary["bias_squared"])
    moves = seen.diagnostics["move"].is_null()
    assert moves.to_list() == [kind != "client" for kind in seen.history["kind"]]


@pytest.fixture(scope="module")
def trained_run(digits):
    """A run, a point that is not the start, and every client's exact per-sample gradients there."""
    run = prepare(digits, ALGORITHM, safari.Logistic(), PARTICIPATION, 5, 0, 1, "float32")
    training = Training(run)
    while not training.finished:
        training.advance()
    params = training.carry.state.params
    task, dataset = run.task, digits.dataset

    def of_sample(number):
        rows = task.federation.gather(number[None])
        batch = task.federation.batch(rows, jnp.ones(1), jax.random.key(0))
        grads = jax.grad(task.loss)(params, batch)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(grads)])

    each = np.asarray(jax.lax.map(of_sample, jnp.arange(len(dataset.y))))
    return run, params, [each[digits.held_by(client)] for client in range(digits.size)]


def test_estimates_are_unbiased(trained_run):
    run, params, samples = trained_run
    observer = Observer(run, params)
    _, _, cohort = run.roster.draw(start(run).availability, run.streams, jnp.int32(0))
    look = jax.jit(lambda number: observer._looked(run, params, cohort, number))
    found = jax.lax.map(look, jnp.arange(LOOKS))
    size = 20
    means = np.array([own.mean(axis=0) for own in samples])
    whole = means.mean(axis=0)
    spread = np.array([own.var(axis=0, ddof=1).sum() for own in samples])
    counts = np.array([len(own) for own in samples])
    there = np.asarray(cohort.clients)[np.asarray(cohort.reported)]
    stay = [i for i in range(len(samples)) if i not in run.roster.excluded_clients]
    covered = spread / counts

    def square(weights):
        """|sum w_i grad F_i|^2 less what drawing without replacement takes off a product of halves."""
        return np.sum((weights @ means) ** 2) - np.sum(weights**2 * covered)

    def share(clients):
        return np.isin(np.arange(len(samples)), clients) / len(clients)

    everyone = np.full(len(samples), 1 / len(samples))
    exact = {
        "gradient": square(everyone),
        "bias": square(share(there) - everyone),
        "bias_available": square(share(stay) - everyone),
        "dissimilarity_mean": np.mean([square(share([i]) - everyone) for i in range(len(samples))]),
        "client_noise_mean": np.mean(spread / size),
    }
    assert np.sum(whole**2) > 0.001
    for name, value in exact.items():
        values = np.asarray(getattr(found, name))
        assert abs(values.mean() - value) < 4 * values.std() / np.sqrt(LOOKS) + 1e-6, name


def eigenvalues(task, params):
    """Of the first client's exact Hessian, smallest first."""
    flat, unravel = jax.flatten_util.ravel_pytree(params)
    federation = task.federation
    rows = federation.gather(jnp.asarray(federation.held_by(0)))
    batch = federation.batch(rows, jnp.full(len(rows.y), 1 / len(rows.y)), jax.random.key(0))
    slope = jax.grad(lambda vector: task.loss(unravel(vector), batch))
    return np.linalg.eigvalsh(np.asarray(jax.jacrev(slope)(flat)))


def test_curvature_is_that_of_the_hessian(trained_run):
    run, params, _samples = trained_run
    values = eigenvalues(run.task, params)
    largest, smallest = curvature(run.task, params, jnp.int32(0))
    assert float(largest) == pytest.approx(values[-1], rel=0.02)
    assert abs(float(smallest) - values[0]) < 0.02 * values[-1]


def test_networks_that_convolve_have_a_curvature_too(digits):
    model = safari.CNN(channels=(2,), kernel=3, hidden=4)
    run = prepare(digits, ALGORITHM, model, PARTICIPATION, 5, 0, 1, "float32")
    params = model.init(jax.random.key(0), digits.dataset.shape, 10)
    values = eigenvalues(run.task, params)
    largest, smallest = curvature(run.task, params, jnp.int32(0))
    assert float(largest) == pytest.approx(values[-1], rel=0.1)
    assert values[0] - 0.02 * values[-1] <= float(smallest) < 0.1 * values[-1]


def test_an_interrupted_run_keeps_its_diagnostics(tmp_path):
    import polars as pl

    from safari.experiment import Interrupted, load_spec, new_run, resume_run
    from safari.experiment.directory import DIAGNOSTICS

    spec = tmp_path / "spec.toml"
    spec.write_text("[train]\nrounds = 6\ndiagnostics = true\n[data.partition]\nsamples_per_client = 100\n")

    def stop(training):
        if training.done == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        new_run(load_spec(spec), tmp_path / "cut", stop)
    resume_run(tmp_path / "cut", lambda _: None, warn=lambda _: None)
    new_run(load_spec(spec), tmp_path / "whole", lambda _: None)
    cut, whole = (pl.read_parquet(tmp_path / name / DIAGNOSTICS).drop("seconds") for name in ("cut", "whole"))
    assert cut.equals(whole)


def test_too_many_weights_are_refused(digits, monkeypatch):
    monkeypatch.setattr("safari.engine.diagnostics.MOST_BYTES", 1000)
    with pytest.raises(safari.InputError, match=r"train\.diagnostics"):
        train(digits, diagnostics=True)


def test_a_move_is_the_clients_gradient_whatever_the_global_rate(digits):
    """Softmax regression starts at zero: the parameters after a round are what the clients moved them by."""
    result = safari.train(digits, safari.FedAvg(global_rate=0.5), rounds=1, diagnostics=True)
    moved = sum(float((leaf**2).sum()) for leaf in result.params_last.values())
    assert result.diagnostics["move"][0] == pytest.approx(moved / (0.1 * 0.5) ** 2, rel=1e-4)
