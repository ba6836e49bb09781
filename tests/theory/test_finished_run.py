"""The certificate of a finished run."""

import numpy as np
import polars as pl
import pytest

import safari
from safari.errors import InputError
from safari.theory.finished_run import Rates, findings
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
