"""docs/extending.md: every file and every command of it, in a folder outside the repository."""

import json
import re
import runpy
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import oracle
import plan
import safari
from commands import run_all
from oracle import client_methods
from safari.engine import prepare
from safari.experiment.spec import read_toml
from safari.experiment.sweep import load_sweep, plan_sweep
from safari.registry import ALGORITHMS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r'^```(?P<kind>python|bash|toml)(?: title="(?P<file>[^"]+)")?\n(?P<code>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
TWIN = "tests/oracle/client_methods.py"
FILES = {found["file"]: found["code"] for found in BLOCK.finditer(PAGE) if found["file"]}
NOUNS = {"algorithm.", "participation.availability=", "data.partition=", "data.source=", "model."}


@dataclass
class Folder:
    """Where the page was followed, and what each of its commands left."""

    path: Path
    ran: dict

    def directory(self, command):
        """The directory that a command wrote."""
        spec = [name for name in self.ran[command].written if name.endswith("/spec.toml")]
        assert len(spec) == 1
        return self.path / Path(spec[0]).parent

    def history(self, command):
        return pl.read_parquet(self.directory(command) / "metrics.parquet")


def programs():
    """The commands of the page, a line each, and its Python, in order."""
    found = []
    for block in BLOCK.finditer(PAGE):
        if not block["file"]:
            found += [block["code"]] if block["kind"] == "python" else block["code"].splitlines()
    return found


COMMANDS = [program for program in programs() if program.startswith("safari ")]
PYTHON = [program for program in programs() if program not in COMMANDS]
DEPLOY = [
    f"safari flower deploy examples/digits.toml algorithm.clients.name={name} --out {out}"
    for name, out in (("my_method:Mine", "mine-fleet"), ("steady:Steady", "steady-fleet"))
]


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    path = tmp_path_factory.mktemp("extending")
    shutil.copytree(ROOT / "examples", path / "examples")
    for name, code in FILES.items():
        if name != TWIN:
            (path / name).write_text(code)
    everything = [*programs(), *DEPLOY]
    words = [one if one in PYTHON else shlex.split(one)[1:] for one in everything]
    return Folder(path, dict(zip(everything, run_all(path, words), strict=True)))


def test_there_is_an_example_of_every_noun():
    bases = re.findall(r"^class \w+\((?:safari|eqx)\.(\w+)\)", "".join(FILES.values()), re.MULTILINE)
    assert set(bases) >= {"ClientAlgorithm", "Algorithm", "Availability", "Partition", "Source", "Model"}
    assert set(bases) >= {"Then", "Module"}
    for noun in NOUNS:
        assert any(noun in command for command in COMMANDS if command.startswith("safari run"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(followed, command):
    ran = followed.ran[command]
    assert ran.exit_code == 0, ran.stderr
    directory = followed.directory(command)
    if command.startswith("safari run"):
        summary = json.loads((directory / "summary.json").read_text())
        assert 0.2 < summary["accuracy"] <= 1
        assert summary["diverged_at"] is None


@pytest.mark.parametrize("program", PYTHON, ids=lambda program: program.splitlines()[-1].strip()[:60])
def test_a_program_of_the_page_runs(followed, program):
    ran = followed.ran[program]
    assert ran.exit_code == 0, ran.stderr
    accuracies = [float(text) for text in re.findall(r"accuracy=([\d.]+)", ran.stdout)]
    assert accuracies
    assert all(0.1 < accuracy <= 1 for accuracy in accuracies)


def only(*words):
    (found,) = [command for command in COMMANDS if all(word in command for word in words)]
    return found


def test_a_comparison_has_a_row_for_the_method(followed):
    plain = pl.read_csv(followed.directory(only("compare", "fedavg,my_method:Mine")) / "comparison.csv")
    assert plain["algorithm"].to_list() == ["fedavg", "my_method:Mine", "safari"]
    assert plain["runs"].to_list() == [2, 2, 2]
    own = pl.read_csv(followed.directory(only("compare", "fedavg,safari")) / "comparison.csv")
    accuracy = [table.rows_by_key("algorithm", named=True, unique=True) for table in (plain, own)]
    for column in ("accuracy_mean", "accuracy_round_last10_mean"):
        assert accuracy[0]["fedavg"][column] == accuracy[1]["fedavg"][column]
    assert accuracy[0]["safari"] != accuracy[1]["safari"]


def test_a_sweep_varies_a_field_alone_and_inside_safari(followed):
    results = pl.read_parquet(followed.directory(only("sweep")) / "results.parquet")
    cells = results.select("algorithm.name", "algorithm.clients.strength").unique()
    assert sorted(cells.rows()) == [
        ("my_method:Mine", 0.0), ("my_method:Mine", 0.2), ("safari", 0.0), ("safari", 0.2),
    ]  # fmt: skip
    alone = results.filter(pl.col("algorithm.name") == "my_method:Mine")
    assert alone["server_rounds"].sum() == 0
    assert results.filter(pl.col("algorithm.name") == "safari")["server_rounds"].sum() > 0
    assert results.n_unique("accuracy_round") > 2


def test_columns_of_a_note_are_columns_of_the_history(followed):
    steady = followed.history(only("steady:Steady"))
    rounds = steady.filter(pl.col("kind") == "client")
    assert rounds["momentum"].null_count() == 0
    assert (rounds["momentum"][1:] > 0).all()
    assert steady.filter(pl.col("kind") == "server")["momentum"].is_null().all()
    share = followed.history(only("fading:Fading"))["server_share"]
    np.testing.assert_allclose(share[20], share[0] / 2, rtol=1e-5)


def test_what_is_sent_beside_the_model_is_counted(followed):
    asked = followed.history(only("steady:Steady")).filter(pl.col("kind") == "client")
    assert (asked["bytes_down"] == 2 * asked["bytes_up"]).all()


def test_an_availability_decides_who_comes(followed):
    available = followed.history(only("availability=working_week"))["available"].to_numpy()
    week = available[:98].reshape(-1, 7).mean(axis=0)
    assert week[:4].min() > 1.5 * week[4:].max()


def test_a_module_of_equinox_trains_its_arrays_and_nothing_else(followed):
    from safetensors.numpy import load_file

    shapes = {
        name: array.shape
        for name, array in load_file(followed.directory(only("net:Net")) / "model.safetensors").items()
    }
    assert shapes == {
        "first.weight": (16, 64), "first.bias": (16,), "second.weight": (10, 16), "second.bias": (10,),
    }  # fmt: skip


def test_a_spec_of_nothing_but_own_classes_is_kept_whole(followed):
    tables = read_toml(followed.directory(only("all.toml")) / "spec.toml")
    assert tables["data"]["source"] == "blobs:Blobs"
    assert tables["data"]["partition"] == {"name": "brightness:ByBrightness", "clients": 8, "mixed": 0.1}
    assert tables["participation"]["availability"]["rate"] == 0.8
    assert tables["model"] == {"name": "small_net:SmallNet", "width": 16, "gain": 1.0}
    assert tables["algorithm"]["clients"]["relative"] is False


@pytest.mark.parametrize("relative", [False, True])
def test_the_twin_on_the_page_equals_the_method(tmp_path, relative, digits):
    mine = runpy.run_path(str(written(tmp_path, "my_method.py")))["Mine"]
    names = dict(vars(client_methods))
    exec(FILES[TWIN], names)
    method = mine(strength=0.5, warmup=4, relative=relative, local_rate=0.2, local_steps=3, batch_size=16)
    run = prepare(digits, method, safari.Logistic(), safari.Participation(3, 4), 8, 7, 1, "float32")
    result = safari.train(digits, method, participation=safari.Participation(3, 4), rounds=8, seed=7)
    start = np.zeros((10, 65))
    twins = [make(method, plan.world_of(run)) for make in (names["Mine"], client_methods.FedAvg)]
    last, plain = (oracle.train(twin, start, plan.turns_of(run, twin))[0] for twin in twins)
    found = plan.as_matrix(result.params)
    np.testing.assert_allclose(found, last, atol=2e-5)
    assert np.abs(found - plain).max() > 1e-3


def test_flower_runs_what_the_page_says_it_runs(followed):
    pytest.importorskip("flwr")
    mine, steady = (followed.ran[command] for command in DEPLOY)
    assert mine.exit_code == 0, mine.stderr
    assert steady.exit_code == 2
    assert "algorithm.clients.name = Steady: cannot run on Flower" in steady.stderr


def test_a_source_with_other_settings_is_another_data_set(tmp_path, monkeypatch):
    """Runs that are stacked share one data set."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "blobs.py")
    (tmp_path / "sweep.toml").write_text(
        'data.source = "blobs.py:Blobs"\ndata.partition.samples_per_client = 100\n[train]\nrounds = 2\n'
    )
    for key, runs in (("spread=[0.5, 1.0]", [1, 1]), ("server.samples=[20, 40]", [2])):
        sweep = load_sweep(Path("sweep.toml"), [f"sweep.grid.data.{key}"])
        assert plan_sweep(sweep).table()["runs"].to_list() == runs


def test_a_class_of_a_file_is_named_by_its_path(tmp_path, monkeypatch):
    """A spec is read by other processes, where the module that the file became has another name."""
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, "my_method.py")
    found = ALGORITHMS.find("my_method.py:Mine", "algorithm.name")
    assert ALGORITHMS.name_of(found) == f"{path}:Mine"
    assert ALGORITHMS.find(f"{path}:Mine", "algorithm.name") is found


def written(folder, name):
    path = folder / name
    path.write_text(FILES[name])
    return path
