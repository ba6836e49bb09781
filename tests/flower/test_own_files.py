"""Every node with a file of its own: nobody else reads it, and the training is the simulator's."""

import itertools
import json
import re

import numpy as np
import polars as pl
import pytest
from local_grid import LocalGrid
from typer.testing import CliRunner

import safari
from safari.cli import app
from safari.engine.training import Training
from safari.errors import InputError
from safari.experiment.spec import load_spec
from safari.flower.arrays import array_record, numpy_arrays
from safari.flower.deploy import write_app
from safari.flower.spec_client import client_app
from safari.flower.spec_job import Job, job_of
from safari.flower.spec_server import scores, strategy_of
from safari.flower.tables import scored

NUMBERS = itertools.count()
CLINICS = {"ash": 90, "birch": 20, "cedar": 45, "dell": 70, "elm": 33, "firth": 60}
ABSENT = ("birch", "dell", "firth")
SPEC = """
[data]
source = "all"
label = "diagnosis"
server = "centre/own.csv"
test = "centre/test.csv"
{data}
[participation]
excluded = ["birch", "dell", "firth"]
per_round = 2

[algorithm]
name = "safari"
q = 0.7

[algorithm.clients]
name = "fedavg"
batch_size = 16

[algorithm.server]
batch_size = 16

[train]
rounds = 8
seed = 3
"""


def patients(rng, count, rare):
    y = rng.choice(3, count, p=[0.6 * (1 - rare), 0.4 * (1 - rare), rare])
    x = (
        rng.normal(size=(count, 4)) * [10, 1, 3, 5]
        + np.array([[50, 37, 9, 3], [60, 39, 2, 9], [70, 36, 5, 30]])[y]
    )
    names = np.array(["flu", "measles", "sepsis"])[y]
    return pl.DataFrame(x.round(2), schema=["age", "heat", "white", "lactate"]).with_columns(
        diagnosis=pl.Series(names)
    )


@pytest.fixture(scope="module")
def land(tmp_path_factory):
    """A folder a clinic, what lies at the centre, and for the simulator alone a folder of everything."""
    root, rng = tmp_path_factory.mktemp("land"), np.random.default_rng(5)
    (root / "centre").mkdir()
    (root / "all").mkdir()
    for name, count in CLINICS.items():
        (root / name).mkdir()
        table = patients(rng, count, 0.3 if name in ABSENT else 0.02)
        table.write_csv(root / name / "patients.csv")
        table.write_csv(root / "all" / f"{name}.csv")
    patients(rng, 40, 0.15).write_csv(root / "centre" / "own.csv")
    patients(rng, 300, 0.15).write_csv(root / "centre" / "test.csv")
    (root / "spec.toml").write_text(SPEC.format(data=""))
    return root


def deployed(land, *overrides):
    """The app of the spec, written where everything lies, then looked at by those who have only their own."""
    folder = land / f"app-{next(NUMBERS)}"
    write_app(load_spec(land / "spec.toml", overrides), folder)
    return next(folder.glob("*_app")) / "spec.toml"


def fleet(land, spec, nodes, state=None, overrides="", **config):
    """A run of the app over these nodes: what Flower makes of it, and the strategy."""

    def client(message, context):
        context.run_config = {"overrides": overrides}
        return client_app(spec)(message, context)

    job = job_of(spec, overrides)
    grid = LocalGrid(client, {900 - 31 * number: node for number, node in enumerate(nodes)})
    config = {"start-deadline": 0.0, "checkpoint": str(state or ""), "weight-bound": 0.0, **config}
    strategy = strategy_of(job, config)
    result = strategy.start(
        grid,
        array_record(job.arrays(job.start())),
        num_rounds=job.run.rounds,
        evaluate_fn=lambda round, arrays: scores(job, arrays),
    )
    return result, strategy


def nodes_of(land, names=tuple(CLINICS)):
    return [
        {"client-name": name, "data": str(land / name / "patients.csv")}
        for name in names
        if name not in ABSENT
    ]


def simulated(land, *overrides):
    training = Training(load_spec(land / "spec.toml", overrides).prepare())
    while not training.finished:
        training.advance()
    return training.result()


@pytest.fixture
def hidden(land):
    """What all hold together is gone while the fleet trains."""
    (land / "all").rename(land / "nowhere")
    yield lambda: (land / "nowhere").rename(land / "all")
    if (land / "nowhere").exists():
        (land / "nowhere").rename(land / "all")


CASES = [
    (),
    ("algorithm.clients.weights=size", "data.validation=0.2"),
    ("algorithm.clients.name=fedadam", "train.class_weights=balanced"),
    ("algorithm.clients.local_steps=7", "model.name=mlp", "data.missing=mean"),
    ("algorithm.clients.name=fednova", "algorithm.clients.local_epochs=2"),
    ("data.scale=none", "algorithm.clients.local_rate=0.0001", "algorithm.server.rate=0.0001"),
]


@pytest.mark.parametrize("overrides", CASES, ids=lambda overrides: " ".join(overrides) or "plain")
def test_a_fleet_with_own_files_is_the_simulation_of_them_all(land, tmp_path, hidden, overrides):
    (land / "nowhere").rename(land / "all")
    expected, spec = simulated(land, *overrides), deployed(land, *overrides)
    (land / "all").rename(land / "nowhere")
    result, strategy = fleet(land, spec, nodes_of(land), tmp_path / "state")
    history = strategy.journal.history()
    for column in ("kind", "cohort", "reported"):
        assert history[column].to_list() == expected.history[column].to_list()
    found = numpy_arrays(result.arrays)
    for name, array in job_of(spec).arrays(expected.params).items():
        np.testing.assert_allclose(found[name], array, atol=1e-5)
    for column in ("recall", "precision"):
        for ours, theirs in zip(history[column], expected.history[column], strict=True):
            np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), atol=0.02)
    summary = json.loads((tmp_path / "state" / "summary.json").read_text())
    assert set(summary["recall"]) == {"flu", "measles", "sepsis"}
    assert summary["balanced_accuracy"] == pytest.approx(expected.metrics.balanced_accuracy, abs=0.02)


def test_the_delivered_model_is_loaded_scored_and_asked_as_that_of_a_run(land, tmp_path):
    state = tmp_path / "state"
    _, strategy = fleet(land, deployed(land), nodes_of(land), state)
    summary = json.loads((state / "summary.json").read_text())
    running = scored(strategy.journal.log((), None).summary(), strategy.journal)
    for name in ("loss", "macro_f1", "recall", "worst_class", "classes"):
        assert running[name] == pytest.approx(summary[name]), "the summary of a run that goes on"
    model, patients = safari.load(state), pl.read_csv(land / "centre" / "test.csv")
    assert model.labels == ("flu", "measles", "sepsis")
    assert model.features == ("age", "heat", "white", "lactate")
    assert model.evaluate(patients, "diagnosis").accuracy == summary["accuracy"]
    for arguments in ([], [str(land / "centre" / "test.csv")]):
        found = CliRunner().invoke(app, ["evaluate", str(state), *arguments, "--json"])
        assert json.loads(found.stdout)["recall"] == summary["recall"]
    out = tmp_path / "predicted.csv"
    asked = CliRunner().invoke(
        app, ["predict", str(state), str(land / "centre" / "test.csv"), "--out", str(out)]
    )
    assert asked.exit_code == 0, asked.output
    named = pl.read_csv(out)
    assert (named["predicted"] == patients["diagnosis"]).mean() == pytest.approx(summary["accuracy"])


def test_the_order_in_which_clients_are_listed_is_of_no_account(land):
    spec = deployed(land)
    names = re.search(r"client_names = \[(.*?)\]", spec.read_text(), re.DOTALL)[1]
    spec.write_text(spec.read_text().replace(names, '"firth", "birch", "ash", "elm", "dell", "cedar"'))
    assert Job(load_spec(spec)).fleet == sorted(CLINICS)


def test_clients_that_nobody_listed_are_taken_as_they_come(land, tmp_path):
    spec = deployed(land)
    tables = re.sub(r"client_names = \[.*?\]\n", "", spec.read_text(), flags=re.DOTALL)
    assert tables != spec.read_text()
    spec.write_text(tables)
    _, strategy = fleet(land, spec, nodes_of(land, ("elm", "cedar")))
    assert set(strategy.fleet.names) == {"elm", "cedar"}
    assert "client" in strategy.journal.history()["kind"]
    with pytest.raises(InputError, match=r"simulate-absence = True: needs data\.client_names"):
        fleet(land, spec, nodes_of(land), **{"simulate-absence": True})


def broken(table, **columns):
    return table.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


FAULTS = {
    "no file named": (None, "data = (nothing): must be given: start the node with --node-config"),
    "no such file": ("nowhere.csv", "no such file"),
    "empty": (lambda t: t.clear(), "has no row"),
    "a column is missing": (lambda t: t.drop("heat"), "lacks column heat, which the server has"),
    "a column too many": (
        lambda t: t.with_columns(ward=pl.lit(3)),
        'has column ward, which the server lacks; leave it out with drop = ["ward"]',
    ),
    "a label that the server does not know": (
        lambda t: t.with_columns(diagnosis=pl.lit("covid")),
        'column diagnosis, row 1 holds "covid", which is none of labels: flu, measles, sepsis',
    ),
    "no column of labels": (lambda t: t.drop("diagnosis"), "label = diagnosis"),
    "a text for a number": (
        lambda t: t.with_columns(heat=pl.lit("high")),
        'column heat, row 1 holds the text "high"',
    ),
    "a missing value": (lambda t: t.with_columns(heat=pl.lit(None)), "column heat, row 1 has no value"),
    "no table at all": (b"\x00\x01\x02", "cannot be read as parquet"),
    "another kind of file": (b"hello", "must be a file"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_does_not_fit_is_that_node_s_error_and_the_others_go_on(land, tmp_path, caplog, fault):
    made, said = FAULTS[fault]
    node = {"client-name": "elm"}
    if made is not None:
        node["data"] = str(tmp_path / "nowhere.csv")
    if callable(made):
        made(pl.read_csv(land / "elm" / "patients.csv")).write_csv(tmp_path / "nowhere.csv")
    elif isinstance(made, bytes):
        node["data"] = str(tmp_path / ("own.parquet" if made[0] == 0 else "own.txt"))
        (tmp_path / node["data"].rpartition("/")[2]).write_bytes(made)
    caplog.set_level("INFO")
    _, strategy = fleet(land, deployed(land), [*nodes_of(land, ("ash", "cedar")), node])
    lines = [record.getMessage() for record in caplog.records]
    named = [line for line in lines if line.startswith("safari: round") and "client elm failed" in line]
    assert named
    assert said in named[0]
    assert "\n" not in named[0]
    assert [line for line in lines if line.startswith("safari: ") and said in line and "elm" not in line], (
        "at the node"
    )
    counts = {row["name"]: row for row in strategy.journal.participation(strategy.fleet)}
    assert counts["elm"]["answered"] == 0 < counts["elm"]["failed"]
    assert counts["ash"]["answered"] > 0 < counts["cedar"]["answered"]


def test_the_order_of_columns_is_the_server_s_and_what_is_dropped_may_be_there(land, tmp_path):
    spec = deployed(land)
    spec.write_text(spec.read_text().replace("drop = []", 'drop = ["ward"]'))
    shuffled = pl.read_csv(land / "ash" / "patients.csv").with_columns(ward=pl.lit("A3"))
    shuffled.select("ward", "lactate", "diagnosis", "age", "white", "heat").write_parquet(
        tmp_path / "own.parquet"
    )
    changed = [{"client-name": "ash", "data": str(tmp_path / "own.parquet")}, *nodes_of(land)[1:]]
    plain, _ = fleet(land, spec, nodes_of(land))
    other, _ = fleet(land, spec, changed)
    for name, array in numpy_arrays(plain.arrays).items():
        np.testing.assert_array_equal(numpy_arrays(other.arrays)[name], array)


def test_the_readme_promises_a_simulation_only_where_there_can_be_one(land, tmp_path):
    names = ", ".join(f'"{name}"' for name in CLINICS)
    spec = (land / "spec.toml").read_text().replace('"all"', f'"nodes"\nclient_names = [{names}]')
    (land / "nodes.toml").write_text(spec)
    for name, can in (("spec", True), ("nodes", False)):
        given = load_spec(land / f"{name}.toml", ["algorithm.server.steps=5"])
        text = (write_app(given, tmp_path / name) / "README.md").read_text()
        assert ("What `safari run` simulates runs here" in text) == can
        assert ("beside a simulated run" in text) == can
        assert ("`safari run` cannot simulate it" in text) != can
        assert "--port 9095" in text


def test_nobody_simulates_what_lies_on_nodes(land):
    spec = load_spec(deployed(land))
    with pytest.raises(InputError, match=r"data\.source = nodes: the samples lie on the nodes of a fleet"):
        spec.prepare()


REFUSED = {
    "a test set": ("data.test", 'test = "centre/test.csv"\n', "", r"data\.test = \(nothing\): must be given"),
    "a server": ("data.server", 'server = "centre/own.csv"\n', "", r"data\.server"),
    "server steps": (
        "steps",
        "[algorithm.server]",
        '[algorithm.server]\nsteps = "match"',
        "write a number of steps",
    ),
    "what clients hold": (
        "feddu",
        'name = "fedavg"',
        'name = "data-sharing"',
        r"algorithm\.(clients\.)?name",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_server_alone_cannot_know_must_be_given(land, tmp_path, case):
    _, old, new, said = REFUSED[case]
    text = SPEC.format(data="").replace(
        'source = "all"', 'source = "nodes"\nclient_names = ["ash", "birch", "dell", "firth"]'
    )
    text = (
        text.replace("[algorithm.server]", "[algorithm.server]\nsteps = 4")
        if case != "server steps"
        else text
    )
    assert old in text
    (land / "refused.toml").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=said):
        write_app(load_spec(land / "refused.toml"), tmp_path / "fleet")
    assert not (tmp_path / "fleet").exists()


def test_a_named_set_leaves_no_room_for_files(tmp_path, caplog):
    (tmp_path / "spec.toml").write_text(
        '[data]\nsource = "digits"\nserver = {samples = 30}\n[train]\nrounds = 2\n'
    )
    nodes = [{"partition-id": number, "data": "own.csv"} for number in range(10)]
    with pytest.raises(InputError, match="is for a fleet whose samples lie on the nodes"):
        fleet(tmp_path, tmp_path / "spec.toml", nodes, overrides="algorithm.q=1.0")
    assert Job(load_spec(tmp_path / "spec.toml")).fleet == 10
