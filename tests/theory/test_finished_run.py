"""The certificate of a finished run."""

import numpy as np
import polars as pl
import pytest

import safari
from safari.engine.diagnostics import DIAGNOSTICS_SCHEMA
from safari.errors import InputError
from safari.theory.finished_run import Measured, Rates, findings
from safari.theory.smoothness import softmax_smoothness

STEPS, PER_ROUND = 4, 5


@pytest.fixture(scope="module")
def federation():
    return safari.federate(
        "digits", safari.Classes(samples_per_client=80), safari.ServerSet(200, disjoint=False)
    )


@pytest.mark.parametrize("q", [0.3, 0.8])
def test_it_is_not_below_what_was_measured(federation, q):
    smoothness = softmax_smoothness(federation)
    rate = 1 / (4 * 30**0.5 * smoothness)
    clients = safari.FedAvg(local_rate=2 * rate / STEPS, local_steps=STEPS, batch_size=20)
    algorithm = safari.Safari(clients, safari.ServerSGD(rate=rate, steps=1, batch_size=50), q=q)
    participation = safari.Participation(excluded=4, per_round=PER_ROUND)
    result = safari.train(
        federation, algorithm, participation=participation, rounds=300, diagnostics=True, evaluate_every=100
    )
    rates = Rates(2 * rate / STEPS, STEPS, PER_ROUND, rate, 1, smoothness, convex=True)
    found = findings(result.history["kind"].to_list(), result.diagnostics, rates)
    assert found.not_covered == ()
    assert found.terms.total > found.gradient.value > 0
    assert found.before_the_run().total > found.gradient.value
    assert found.floor == pytest.approx(found.q * found.bias.value)
    assert found.q == pytest.approx(q, abs=0.1)


def test_usual_rates_are_not_covered_and_it_says_why(federation):
    result = safari.train(federation, safari.Safari(q=0.5), rounds=20, diagnostics=True)
    found = findings(
        result.history["kind"].to_list(), result.diagnostics, Rates(0.1, 1, 10, 0.1, 3, 2.0, convex=True)
    )
    words = " ".join(found.not_covered)
    assert "drift" in words
    assert "3 steps" in words
    assert "couples" in words
    server, client = found.covered_rates
    assert 0.9 / (4 * 30**0.5 * 2.0) < server <= 1 / (4 * 30**0.5 * 2.0)
    assert client == pytest.approx(2 * server)


def test_the_closed_form_bounds_every_hessian(federation):
    bound = softmax_smoothness(federation)
    result = safari.train(federation, rounds=10, diagnostics=True)
    seen = result.diagnostics["smoothness"].drop_nulls().to_numpy()
    assert len(seen) >= 5
    assert np.all(seen <= bound)
    assert seen.max() > bound / 20


def test_the_command_wants_a_finished_run_with_diagnostics(tmp_path):
    from typer.testing import CliRunner

    from safari.cli import app
    from safari.experiment import load_spec, new_run

    spec = tmp_path / "spec.toml"
    spec.write_text("[train]\nrounds = 6\n[data.partition]\nsamples_per_client = 100\n")
    new_run(load_spec(spec), tmp_path / "plain", lambda _: None)
    new_run(load_spec(spec, ["train.diagnostics=true"]), tmp_path / "seen", lambda _: None)
    runner = CliRunner()
    assert (
        "train.diagnostics=true" in runner.invoke(app, ["theory", "convergence", f"{tmp_path}/plain"]).output
    )
    assert "no summary.json" in runner.invoke(app, ["theory", "convergence", f"{tmp_path}"]).output
    shown = runner.invoke(app, ["theory", "convergence", f"{tmp_path}/seen"])
    assert shown.exit_code == 0
    assert "drift of the clients" in shown.output
    assert "does not cover" in shown.output
    assert len(pl.read_parquet(tmp_path / "seen" / "diagnostics.parquet")) == 6


def test_a_sweep_refuses_diagnostics(tmp_path):
    from safari.experiment.sweep import load_sweep

    spec = tmp_path / "sweep.toml"
    spec.write_text("[train]\ndiagnostics = true\n[sweep]\nseeds = 2\n")
    with pytest.raises(InputError, match="diagnostics"):
        load_sweep(spec).cells()


def test_the_closed_form_has_a_margin_over_power_iteration(federation):
    """Which comes from below: the bound is a little above the exact eigenvalue."""
    dataset, largest = federation.dataset, 0.0
    for client in range(federation.size):
        rows = np.asarray(dataset.normalise(dataset.x[federation.held_by(client)]))
        rows = np.hstack([rows, np.ones((len(rows), 1))])
        largest = max(largest, float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1]))
    assert 1.005 < softmax_smoothness(federation) / (largest / 2) < 1.02


def test_a_mean_comes_with_its_standard_error():
    found = Measured.mean([1.0, 2.0, 3.0, 6.0])
    assert (found.value, found.error) == (3.0, pytest.approx((14 / 3) ** 0.5 / 2))
    assert Measured.mean([1.0]).error is None


def test_the_noise_of_the_clients_is_taken_off_their_moves():
    """By hand: K sigma^2 / m of each squared move is noise; where F is not convex half of it counts."""
    numbers = {name: [1.0, 1.0] for name in DIAGNOSTICS_SCHEMA}
    seen = pl.DataFrame({**numbers, "move": [5.0, 7.0], "client_noise": [0.3, 0.6]})
    for convex, mean in ((True, 6.0), (False, 3.0)):
        rates = Rates(0.1, STEPS, PER_ROUND, 0.1, 1, 2.0, convex=convex)
        assert findings(["client", "client"], seen, rates).move.value == pytest.approx(mean - 4 * 0.6 / 5)
