"""Advice on federations where the right answer is known."""

import json
import shlex

import pytest
from typer.testing import CliRunner

from safari.advise.goal import Goal
from safari.cli import app

COMMON = """
[train]
rounds = 40
evaluate_every = 2
[algorithm.clients]
batch_size = 10
[algorithm.server]
batch_size = 10
[algorithm]
"""
MISSING = """
[data.partition]
samples_per_client = 100
[data.server]
samples = 100
[participation]
excluded = 4
per_round = 5
"""
ALIKE = """
[data.partition]
name = "iid"
samples_per_client = 130
[data.server]
samples = 20
"""


def advise(tmp_path, text, *options):
    spec = tmp_path / "spec.toml"
    spec.write_text(text)
    return CliRunner().invoke(app, ["advise", str(spec), "--out", f"{tmp_path}/out", "--quiet", *options])


def advice_on(tmp_path, text, *options):
    shown = advise(tmp_path, text, *options)
    assert shown.exit_code == 0, shown.output
    text = (tmp_path / "out" / "advice.json").read_text()
    assert "NaN" not in text
    found = json.loads(text)
    assert all(reason in shown.output for reason in found["reasons"])
    assert found["verdict"] in shown.output
    return shown.output, found


def test_who_trains_without_the_missing_digits_is_told_to_use_the_server(tmp_path):
    shown, found = advice_on(tmp_path, MISSING + COMMON + 'name = "fedavg"\n')
    assert found["verdict"].startswith("Change your spec: ")
    helps = ("safari", "server-only", "clg-sgd")
    assert found["recommended"][0] in {f"algorithm.name={name}" for name in helps}
    assert shlex.join(["safari", "run", f"{tmp_path}/spec.toml", *found["recommended"]]) in shown
    assert "The server's samples help" in shown
    forms = [one for one in found["measured"]["scores"] if one["clients"] == "scaffold"]
    assert {one["deliver"] for one in forms} == {"average"}


def test_where_clients_are_alike_nothing_is_gained_and_it_says_so(tmp_path):
    shown, found = advice_on(tmp_path, ALIKE + COMMON)
    assert found["verdict"] == (
        "Keep your spec: none of 13 other settings is better by balanced accuracy beyond doubt."
    )
    assert found["recommended"] == []
    assert f"safari run {tmp_path}/spec.toml\n" in shown


def test_the_pilot_cannot_reach_the_test_set(tmp_path):
    advice_on(tmp_path, MISSING + COMMON, "--seconds", "1")
    plans = list((tmp_path / "out").glob("pilot-*/cells.json"))
    assert plans
    for plan in plans:
        for cell in json.loads(plan.read_text())["cells"]:
            assert cell["data.score"] == "validation"
            assert cell["data.validation"] > 0


def test_little_time_makes_a_short_pilot_and_it_says_so(tmp_path):
    shown, _ = advice_on(tmp_path, MISSING + COMMON.replace("40", "4000"), "--seconds", "1")
    assert "20 of 4000 rounds, for want of time" in shown


def test_a_pilot_run_wants_diagnostics(tmp_path):
    shown = advise(tmp_path, MISSING + COMMON, "--pilot", str(tmp_path))
    assert shown.exit_code == 2
    assert "train.diagnostics=true" in shown.output


def test_a_pilot_run_must_be_of_the_same_federation(tmp_path):
    from safari.experiment import load_spec, new_run

    spec = tmp_path / "spec.toml"
    spec.write_text(MISSING + COMMON)
    watched = load_spec(spec, ["train.diagnostics=true", "train.rounds=3", "participation.excluded=2"])
    new_run(watched, tmp_path / "run", lambda _: None)
    shown = advise(tmp_path, MISSING + COMMON, "--pilot", f"{tmp_path}/run")
    assert shown.exit_code == 2
    assert "its [participation] differs" in shown.output


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("[data.server]\nsamples = 5\n", (), "data.server.samples"),
        ("", ("--metric", "acuracy"), "did you mean accuracy"),
        ("", ("--metric", "recall:twelve"), "recall:twelve"),
        ("", ("--seconds", "0"), "--seconds"),
    ],
    ids=["too few server samples", "no such metric", "no such class", "no time"],
)
def test_what_cannot_be_advised_on_is_refused(tmp_path, text, options, said):
    shown = advise(tmp_path, text, *options)
    assert shown.exit_code == 2
    assert said in shown.output
    assert shown.output.count("\n") == 1
    assert not (tmp_path / "out").exists()


ROW = {
    "diverged_at": None,
    "loss": 0.4,
    "auc": 0.9,
    "classes": ["flu", "sepsis"],
    "curve_accuracy": [0.0] * 5 + [0.8, 0.9] * 5,
    "curve_recall": [[1.0, 0.0]] * 5 + [[0.9, 0.2], [0.7, 0.4]] * 5,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [("accuracy", 85.0), ("recall:sepsis", 30.0), ("worst_recall", 30.0), ("auc", 90.0), ("loss", 0.4)],
)
def test_shares_are_means_over_the_last_ten_evaluated_rounds(name, value):
    assert Goal.named(name).of(ROW) == pytest.approx(value)


def test_of_losses_the_smaller_is_better():
    assert Goal.named("loss").sign == -1
    assert Goal.named("loss").of({**ROW, "diverged_at": 3}) >= 1e9
    assert Goal.named("accuracy").of({**ROW, "diverged_at": 3}) == 0


def test_an_advice_has_a_page_that_says_what_the_advice_says(tmp_path):
    from safari.cli.report import page_of

    shown, found = advice_on(tmp_path, MISSING + COMMON, "--seconds", "1")
    page = page_of(tmp_path / "out")
    blocks = {block.key: block for block in page.blocks}
    assert blocks["findings"].lead == found["verdict"]
    assert blocks["command"].code == found["command"]
    assert found["command"] in shown
    (tried,) = blocks["scores"].groups
    assert [bar.value for bar in tried.bars] == [one["mean"] for one in found["measured"]["scores"]]
