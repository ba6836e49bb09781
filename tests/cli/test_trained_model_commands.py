"""From three CSV files to predictions, all from another folder; and what users get wrong on the way."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from commands import run_all
from refusals import assert_command_refused
from safari.cli import app

SPEC = """
[data]
source = "patients.csv"
label = "diagnosis"
client = "hospital"
server = "centre.csv"
test = "test.csv"
missing = "mean"
[model]
name = "mlp"
hidden = [4]
[algorithm]
name = "safari"
[train]
rounds = 3
"""
NAMES = ("flu", "pneumonia", "sepsis")


def table(rows, seed, hospital=True):
    rng = np.random.default_rng(seed)
    diagnosis = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    columns = {
        "age": (40 + 10 * diagnosis + rng.normal(size=rows) * 9).round().astype(int).tolist(),
        "fever": (37 + diagnosis + rng.normal(size=rows)).round(1).tolist(),
        "diagnosis": [NAMES[number] for number in diagnosis],
    }
    columns["fever"][3] = None
    if hospital:
        columns["hospital"] = [f"h{number % 4}" for number in range(rows)]
    return pl.DataFrame(columns)


def flipped(path, name):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.with_name(name).write_bytes(content)


SWEEP = """
[sweep.grid]
algorithm.q = [0.2, 0.8]
"""
SCRIPT = """
import polars as pl, safari
model = safari.load("run")
frame = pl.read_csv("new.csv")
found = pl.read_parquet("found.parquet")
print(model.predict(frame).tolist() == found["predicted"].to_list())
print(model.predict_proba(frame)[:, 2].tolist() == found["probability_sepsis"].to_list())
print(model.evaluate("test.csv", label="diagnosis", client="hospital").to_dict() == evaluated)
tested = pl.read_csv("test.csv")
alone = model.evaluate(tested).to_dict()
print(alone == model.evaluate(tested, tested["diagnosis"]).to_dict(), alone["recall"] == evaluated["recall"])
"""


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """A run, and the commands on it, from a folder that is not that of the spec."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("elsewhere")
    for name, rows, hospital in (("patients", 200, True), ("centre", 40, False), ("test", 60, True)):
        table(rows, rows, hospital).write_csv(home / f"{name}.csv")
    (home / "hospitals.toml").write_text(SPEC)
    (home / "sweep.toml").write_text(SPEC + SWEEP)
    new = table(30, 7, hospital=False).drop("diagnosis").with_columns(nurse=pl.lit("Ann"))
    new.write_csv(folder / "new.csv")
    table(60, 60).write_csv(folder / "test.csv")
    rare = ["--metric", "accuracy,recall:sepsis,worst_client_accuracy", "--quiet"]
    commands = [
        ["run", str(home / "hospitals.toml"), "--out", "run"],
        ["evaluate", "run", "--json"],
        ["evaluate", "run", "test.csv", "--json"],
        ["evaluate", "run/model.safetensors", "test.csv"],
        ["predict", "run", "new.csv", "--out", "found.parquet"],
        ["predict", "run/model.safetensors", "new.csv"],
        ["compare", str(home / "hospitals.toml"), "--seeds", "2", "--out", "compare", *rare],
        ["sweep", str(home / "sweep.toml"), "--out", "sweep", *rare],
        *(["report", name] for name in ("run", "compare", "sweep")),
        ["advise", str(home / "hospitals.toml"), "--seconds", "1", "--out", "advice", "--quiet"],
    ]
    done = run_all(folder, commands)
    assert [one.exit_code for one in done] == [0] * len(done), [one.stderr for one in done]
    return folder, done


def test_evaluating_the_test_file_gives_the_summary_to_the_last_digit(story):
    folder, done = story
    summary = json.loads((folder / "run" / "summary.json").read_text())
    own, given = json.loads(done[1].stdout), json.loads(done[2].stdout)
    assert own == given
    for name in ("accuracy", "balanced_accuracy", "macro_f1", "auc", "loss", "recall", "confusion"):
        assert summary[name] == own[name], name
    assert set(own["recall"]) == set(NAMES)
    assert "sepsis" in done[3].stdout


def test_every_table_shows_the_rare_class_and_the_hospitals(story):
    folder, done = story
    run, compare, sweep = (done[place].stdout for place in (0, 6, 7))
    assert {line.split()[1] for line in run.splitlines() if line.startswith("│")} >= {*NAMES, "h0", "h3"}
    for shown in (compare, sweep):
        assert "sepsis" in shown
        assert "worst client" in " ".join(shown.replace("│", " ").replace("┃", " ").split())
    assert [line.split()[1] for line in sweep.splitlines() if line.startswith("│")] == ["0.2", "0.8"]
    results = pl.read_parquet(folder / "sweep" / "results.parquet")
    summary = json.loads((folder / "run" / "summary.json").read_text())
    as_run = results.filter(pl.col("algorithm.q") == 0.8).row(0, named=True)
    assert as_run["accuracy"] == summary["accuracy"]
    assert as_run["recall"] == list(summary["recall"].values())
    assert as_run["clients"] == list(summary["clients"])


def test_every_page_is_written_where_its_run_is(story):
    folder, _ = story
    for name in ("run", "compare", "sweep"):
        assert "sepsis" in (folder / name / "report.html").read_text()


def test_advice_says_what_to_run_from_there(story):
    folder, done = story
    advice = json.loads((folder / "advice" / "advice.json").read_text())
    assert advice["verdict"] in done[11].stdout
    [command] = [line for line in done[11].stdout.splitlines() if line.startswith("safari run")]
    assert command.endswith("hospitals.toml" + "".join(f" {one}" for one in advice["recommended"]))


def test_predictions_stand_beside_the_columns_of_the_file(story):
    folder, done = story
    found = pl.read_parquet(folder / "found.parquet")
    assert found.columns == ["age", "fever", "nurse", "predicted", *(f"probability_{name}" for name in NAMES)]
    assert set(found["predicted"]) <= set(NAMES)
    np.testing.assert_allclose(found.select(r"^probability_.*$").sum_horizontal(), 1)
    rows = list(csv.DictReader(done[5].stdout.splitlines()))
    assert [row["predicted"] for row in rows] == found["predicted"].to_list()


def test_predictions_never_take_the_place_of_the_samples(story, monkeypatch):
    folder, _ = story
    monkeypatch.chdir(folder)
    before = Path("new.csv").read_bytes()
    arguments = ["predict", "run", "new.csv", "--out", str(folder / "new.csv")]
    assert_command_refused(arguments, "--out = ", "is the file of the samples; name another")
    assert Path("new.csv").read_bytes() == before


def test_a_fresh_process_predicts_and_scores_the_same(story):
    folder, done = story
    evaluated = f"evaluated = {json.loads(done[2].stdout)!r}\n"
    found = subprocess.run(
        [sys.executable, "-c", evaluated + SCRIPT], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert found.stdout.split() == ["True"] * 5, found.stderr


WRONG = {
    "no model": (["predict", "nowhere", "new.csv"], "nowhere"),
    "a folder without a model": (["evaluate", "empty"], "no run that has finished"),
    "a damaged model": (["predict", "damaged.safetensors", "new.csv"], "is damaged"),
    "a model file that is none": (
        ["evaluate", "new.csv", "new.csv"],
        "is a file of samples; the model comes first",
    ),
    "no test set": (["evaluate", "run/model.safetensors"], "needs labelled samples"),
    "no file": (["predict", "run", "nowhere.csv"], "no such file"),
    "a file of another kind": (["predict", "run", "run/spec.toml"], "must be a file"),
    "a needed column missing": (["predict", "run", "short.csv"], "lacks column fever"),
    "a text among the numbers": (["predict", "run", "text.csv"], "column age, row 2"),
    "labels missing": (["evaluate", "run", "new.csv"], "--label = diagnosis: unknown column of new.csv"),
    "a label the model does not know": (["evaluate", "run", "other.csv"], 'holds "cholera"'),
    "an ending no table has": (["predict", "run", "new.csv", "--out", "found.xlsx"], "must end in"),
    "a folder that is not there": (["predict", "run", "new.csv", "--out", "a/b.csv"], "does not exist"),
    "predictions already there": (["predict", "run", "found.parquet"], "has a column predicted already"),
    "an ending no model has": (["export", "run", "model.pt"], "must end in .onnx"),
}


def test_a_column_without_any_value_is_named(story, monkeypatch):
    folder, _ = story
    monkeypatch.chdir(folder)
    Path("blank.csv").write_text("age,fever\nn/a,38\n,39\n")
    result = CliRunner().invoke(app, ["predict", "run", "blank.csv"])
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 3)
    said = "column age has no value in any of its 2 rows; the mean of the server's samples stands for it"
    assert result.stderr == f"safari: blank.csv: {said}\n"


def test_an_export_without_its_library_says_what_to_install(story, monkeypatch):
    folder, _ = story
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "jax2onnx", None)
    said = "needs jax2onnx: pip install 'safari-fl[onnx]', or pip install '.[onnx]' in safari's own folder"
    assert_command_refused(["export", "run", "model.onnx"], "export = onnx: ", said)


@pytest.fixture(scope="module")
def refusals(story):
    folder, _ = story
    (folder / "empty").mkdir()
    flipped(folder / "run" / "model.safetensors", "damaged.safetensors")
    (folder / "run" / "damaged.safetensors").rename(folder / "damaged.safetensors")
    (folder / "short.csv").write_text("age\n50\n")
    (folder / "text.csv").write_text("age,fever\n50,38\nold,39\n")
    (folder / "other.csv").write_text("age,fever,diagnosis\n50,38,cholera\n")
    done = run_all(folder, [command for command, _ in WRONG.values()])
    return dict(zip(WRONG, done, strict=True))


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_ends_in_one_line(refusals, case):
    done, said = refusals[case], WRONG[case][1]
    assert done.exit_code == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not done.written
