"""Specs: complete, round-trip, and one name for one thing."""

import tomllib
from pathlib import Path

import pytest

import safari
from safari.errors import InputError
from safari.experiment import load_spec
from safari.experiment.compare import comparison_spec
from safari.experiment.spec import complete

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_an_empty_spec_is_a_whole_experiment():
    spec = complete({})
    run = spec.prepare()
    assert isinstance(run.algorithm, safari.Safari)
    assert spec.tables["data"]["source"] == "digits"


def test_a_spec_written_out_reads_back_the_same():
    spec = load_spec(EXAMPLES / "digits.toml", ["algorithm.q=0.6", "participation.excluded=[1, 2]"])
    again = complete(tomllib.loads(spec.to_toml()))
    assert again == spec
    assert again.tables["algorithm"]["q"] == 0.6
    assert again.tables["participation"]["excluded"] == (1, 2)


def test_defaults_are_those_of_python():
    tables = complete({}).tables
    assert tables["algorithm"]["q"] == safari.Safari().q
    assert tables["algorithm"]["clients"]["local_rate"] == safari.FedAvg().local_rate
    assert tables["algorithm"]["server"]["steps"] == safari.ServerSGD().steps


def test_one_seed_serves_all_unless_they_have_their_own():
    tables = complete({"train": {"seed": 5}, "data": {"seed": 9}}).tables
    assert (tables["data"]["seed"], tables["participation"]["seed"]) == (9, 5)


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "fedadam", "fedopt", "scaffold"])
def test_an_algorithm_name_picks_the_clients_part(name):
    spec = load_spec(EXAMPLES / "digits.toml", [f"algorithm.name={name}"])
    algorithm = spec.prepare().algorithm
    assert type(algorithm).__name__.lower() == name
    assert algorithm.batch_size == 10


def test_server_only_matches_the_steps_of_the_clients_it_replaces():
    overrides = ["algorithm.clients.local_epochs=3", "algorithm.name=server-only"]
    alone = load_spec(EXAMPLES / "digits.toml", overrides).prepare().algorithm
    both = load_spec(EXAMPLES / "digits.toml", overrides[:1]).prepare().algorithm
    assert alone.server.steps == both.server.steps == 36


def test_comparing_leaves_out_keys_that_another_algorithm_lacks():
    given = {"algorithm": {"clients": {"name": "fedprox", "proximal": 0.5, "batch_size": 8}}}
    cells = comparison_spec(given, ["fedprox", "fedavg", "safari"], 1).cells()
    fedprox, fedavg, assisted = (cell.spec.tables["algorithm"]["clients"] for cell in cells)
    assert fedprox["proximal"] == assisted["proximal"] == 0.5
    assert fedavg["batch_size"] == 8
    assert "proximal" not in fedavg
    with pytest.raises(InputError, match=r"algorithm\.clients\.proximal"):
        complete({"algorithm": {"name": "fedavg", "clients": {"proximal": 0.5}}})


def test_comparing_with_fedavg_leaves_a_method_with_clients_of_its_own_as_it_is():
    """FedCLG-C with FedAvg's clients would be CLG-SGD under its name."""
    given = load_spec(EXAMPLES / "digits.toml").plain()
    cells = comparison_spec(given, ["fedclg-c", "fedclg-s", "mixed-two-way", "hybrid-fl"], 1).cells()
    built = [cell.spec.algorithm() for cell in cells]
    assert [type(one.clients) for one in built] == [
        safari.Corrected, safari.CorrectedAtServer, safari.MixedOneWay, safari.FedAvg,
    ]  # fmt: skip
    assert {one.clients.batch_size for one in built} == {10}


def test_a_model_of_the_users_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import jax.numpy as jnp\n"
        "import safari\n"
        "class Tiny(safari.Model):\n"
        "    gain: float = 1.0\n"
        "    def init(self, key, shape, classes):\n"
        "        return {'bias': jnp.zeros(classes)}\n"
        "    def apply(self, params, x):\n"
        "        return jnp.zeros((len(x), 1)) + self.gain * params['bias']\n"
    )
    monkeypatch.chdir(tmp_path)
    spec = complete({"model": {"name": "mine:Tiny", "gain": 2.0}, "train": {"rounds": 2}})
    model = spec.model(spec.federation())
    assert model.gain == 2.0
    result = safari.train(spec.federation(), model=model, rounds=2)
    assert result.params["bias"].shape == (10,)


def test_every_example_is_sound(real_data):
    for example in EXAMPLES.glob("*.toml"):
        if not example.name.startswith("sweep"):
            load_spec(example).prepare()


def test_a_sweep_is_refused_where_a_single_run_is_wanted():
    with pytest.raises(InputError, match="is for `safari sweep`"):
        load_spec(EXAMPLES / "sweep-q.toml")
