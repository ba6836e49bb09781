"""A spec's server and clients in one process: draws, algorithms and adaptive q are the simulator's."""

import re
from pathlib import Path

import numpy as np
import pytest
from local_grid import LocalGrid
from typer.testing import CliRunner

from safari.cli import app
from safari.engine.training import Training
from safari.errors import InputError
from safari.experiment.spec import complete, load_spec
from safari.flower.arrays import array_record, numpy_arrays
from safari.flower.deploy import write_app
from safari.flower.spec_client import client_app
from safari.flower.spec_job import Job, job_of
from safari.flower.spec_server import strategy_of

EXAMPLES = Path(__file__).parents[2] / "examples"
AGAIN = "safari flower deploy examples/digits.toml --out examples/flower/jax"

SPEC = """
[data]
source = "digits"

[data.partition]
name = "dirichlet"
clients = 6
alpha = 0.5
size_skew = 0.5

[data.server]
samples = 60

[participation]
excluded = 2
per_round = 3

[algorithm]
name = "safari"
q = 0.6

[algorithm.clients]
name = "fedavg"
batch_size = 16

[algorithm.server]
batch_size = 16

[train]
rounds = 7
"""


def simulated(spec):
    training = Training(spec.prepare())
    while not training.finished:
        training.advance()
    return training.result()


@pytest.mark.parametrize(
    "overrides",
    [
        "",
        "algorithm.clients.weights=size algorithm.clients.global_rate=0.7",
        "algorithm.clients.name=fedadam",
        "algorithm.q=adaptive",
        "model.name=mlp algorithm.clients.clip=0.5",
    ],
)
def test_what_flower_makes_of_a_spec_is_what_the_simulator_makes(tmp_path, overrides):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    job = job_of(path, overrides)

    def app(message, context):
        context.run_config = {"overrides": overrides}
        return client_app(path)(message, context)

    grid = LocalGrid(app, {500 - 31 * client: {"partition-id": client} for client in range(6)})
    config = {"simulate-absence": True, "checkpoint": str(tmp_path / "state"), "start-deadline": 0.0}
    strategy = strategy_of(job, config)
    result = strategy.start(grid, array_record(job.arrays(job.start())), num_rounds=job.run.rounds)
    expected = simulated(load_spec(path, overrides.split()))
    history = strategy.journal.history()
    assert history["kind"].to_list() == expected.history["kind"].to_list()
    assert history["cohort"].to_list() == expected.history["cohort"].to_list()
    if "q" in overrides:
        np.testing.assert_allclose(history["q"], expected.history["q"], atol=1e-4)
    found = numpy_arrays(result.arrays)
    for name, array in job.arrays(expected.params).items():
        np.testing.assert_allclose(found[name], array, atol=1e-5)


def test_what_cannot_be_deployed_is_refused(tmp_path):
    for algorithm in ({"name": "server-only"}, {"clients": {"name": "scaffold"}}):
        spec = complete({"data": {"source": "digits", "server": {"samples": 20}}, "algorithm": algorithm})
        with pytest.raises(InputError, match=r"algorithm\.(name|clients\.name)"):
            Job(spec)
        with pytest.raises(InputError, match="algorithm"):
            write_app(spec, tmp_path / "fleet")
    assert not list(tmp_path.iterdir())


def test_the_run_config_says_whose_judgement_of_replies_counts(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    job = job_of(path, "")
    assert strategy_of(job, {"trust": "server"}).trust == "server"
    assert strategy_of(job, {"trust": ""}).trust is None
    with pytest.raises(InputError, match="trust = nobody"):
        strategy_of(job, {"trust": "nobody"})


def test_an_app_is_not_written_over_anything(tmp_path):
    spec = complete({"data": {"source": "digits", "server": {"samples": 20}}})
    for name in ("exists", "123", "my_fleet", "my fleet"):
        (tmp_path / "exists").mkdir(exist_ok=True)
        with pytest.raises(InputError, match="--out"):
            write_app(spec, tmp_path / name)
    write_app(spec, tmp_path / "my-fleet-2")
    assert (tmp_path / "my-fleet-2" / "my_fleet_2_app" / "spec.toml").is_file()


def test_deploy_says_where_the_app_is_and_where_to_read_on(tmp_path):
    place = tmp_path / "my-fleet"
    done = CliRunner().invoke(app, ["flower", "deploy", str(EXAMPLES / "digits.toml"), "--out", str(place)])
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{place}: ")
    assert "README.md" in done.stdout


def test_the_spec_that_the_docs_show_can_be_deployed(tmp_path):
    page = (EXAMPLES.parent / "docs" / "flower.md").read_text()
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "fleet.toml").write_text(shown)
    for name, age in (("centre.csv", 30), ("test.csv", 40)):
        (tmp_path / name).write_text(f"age,diagnosis\n{age},well\n{2 * age},ill\n")
    written = write_app(load_spec(tmp_path / "fleet.toml"), tmp_path / "fleet")
    assert 'source = "nodes"' in (written / "fleet_app" / "spec.toml").read_text()


def test_the_example_app_is_what_the_command_writes(tmp_path):
    fresh = write_app(load_spec(EXAMPLES / "digits.toml"), tmp_path / "jax")
    shown = EXAMPLES / "flower" / "jax"
    for file in (path for path in fresh.rglob("*") if path.is_file()):
        kept = shown / file.relative_to(fresh)
        again = (
            "rm -r examples/flower/jax; safari flower deploy examples/digits.toml --out examples/flower/jax"
        )
        assert kept.read_text() == file.read_text(), f"run: {again}"
