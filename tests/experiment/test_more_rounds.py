"""A run that goes on to more rounds is the run that had them from the start."""

import json

import pytest
from typer.testing import CliRunner

from refusals import assert_refused
from safari.cli import app
from safari.experiment import load_spec, new_run, resume_run

OVERRIDES = [
    "data.server.samples=50", "data.partition.samples_per_client=120", "participation.excluded=3",
    "data.validation=0.2", "train.deliver=best",
]  # fmt: skip
COMPARED = ("metrics.parquet", "model.safetensors", "spec.toml")


def silent(_):
    pass


def ran(folder, name, rounds, *more):
    (folder / "spec.toml").write_text("")
    spec = load_spec(folder / "spec.toml", [*OVERRIDES, f"train.rounds={rounds}", *more])
    new_run(spec, folder / name, silent)
    return folder / name


def longer(path, *overrides):
    said = []
    resume_run(path, silent, said.append, overrides)
    return said


def test_a_finished_run_goes_on_bit_for_bit(tmp_path):
    whole, part = ran(tmp_path, "whole", 9), ran(tmp_path, "part", 4)
    assert longer(part, "train.rounds=9") == []
    for name in COMPARED:
        assert (part / name).read_bytes() == (whole / name).read_bytes(), name
    one, two = (json.loads((path / "summary.json").read_text()) for path in (whole, part))
    times = ("compile_seconds", "train_seconds")
    assert {k: v for k, v in one.items() if k not in times} == {
        k: v for k, v in two.items() if k not in times
    }
    assert resume_run(part, silent, silent, ["train.rounds=9"]) is None


def test_a_round_that_was_evaluated_only_because_it_was_the_last_is_named(tmp_path):
    part = ran(tmp_path, "part", 4, "train.evaluate_every=3")
    said = longer(part, "train.rounds=6")
    assert said == ["round 4 was evaluated because the run ended there; one of 6 would not do so"]


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("algorithm.q=0.5", "only train.rounds can"),
        ("train.rounds=3", "not to fewer"),
        ("train.rounds=many", "must be a whole number"),
        ("train.rounds=0", "must be a whole number"),
    ],
)
def test_nothing_else_of_a_run_can_be_changed(tmp_path_factory, override, says):
    folder = tmp_path_factory.getbasetemp()
    part = folder / "kept" if (folder / "kept").exists() else ran(folder, "kept", 4)
    before = {path.name: path.read_bytes() for path in part.iterdir() if path.is_file()}
    key, _, value = override.partition("=")
    assert_refused(lambda: longer(part, override), f"{key} = {value}", says)
    assert {path.name: path.read_bytes() for path in part.iterdir() if path.is_file()} == before


def test_a_schedule_is_laid_out_over_the_rounds_it_began_with(tmp_path):
    part = ran(tmp_path, "part", 4, "train.schedule=cosine")
    assert_refused(lambda: longer(part, "train.rounds=6"), "train.rounds = 6", "schedule over 4 rounds")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that stopped early and computed a metric of the user's own; what the command printed."""
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "own.py").write_text(
        "def errors(y, probabilities):\n    return (probabilities.argmax(1) != y).sum()\n"
    )
    (folder / "spec.toml").write_text("")
    metric = f'train.metrics=["{folder}/own.py:errors"]'
    words = ["run", str(folder / "spec.toml"), *OVERRIDES, "train.rounds=200", "train.patience=2", metric]
    command = [*words, "--out", str(folder / "run")]
    return folder / "run", CliRunner().invoke(app, command, env={"COLUMNS": "300"})


def test_early_stopping_is_said(stopped):
    path, done = stopped
    at = json.loads((path / "summary.json").read_text())["stopped_at"]
    assert f"; stopped early after round {at}, " in done.stdout
    assert f"stopped early after round {at}/200, " in done.stderr
    said = f"the run stopped early after round {at} (train.patience = 2)"
    assert_refused(
        lambda: longer(path, "train.rounds=300"), "train.rounds", f"{said}, and would do so in more"
    )
    again = CliRunner().invoke(app, ["run", "--resume", str(path)])
    assert (again.exit_code, again.stderr) == (0, f"{path} is finished already: {said}\n")


def test_metrics_of_ones_own_are_printed(stopped):
    path, done = stopped
    ((name, value),) = json.loads((path / "summary.json").read_text())["metrics"].items()
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(name)]
    assert float(line.removeprefix(name)) == value > 0
