"""Advice on federations where the right answer is known."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from safari.advise.advice import Advice, reasons
from safari.advise.pilot import Arm, Ground
from safari.cli import app
from safari.data import Coverage
from safari.report.statistics import estimate

COMMON = """
[train]
rounds = 40
evaluate_every = 2
[algorithm.clients]
batch_size = 10
[algorithm.server]
batch_size = 10
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


@pytest.mark.parametrize(
    ("tables", "verdict", "recommended"),
    [
        (MISSING, "Clients add nothing here", "algorithm.name=server-only"),
        (ALIKE, "You do not need server data", "algorithm.name=fedavg"),
    ],
    ids=["a hundred server samples teach the digits", "clients alike"],
)
def test_the_verdict_is_what_the_federation_asks_for(tmp_path, tables, verdict, recommended):
    shown = advise(tmp_path, tables + COMMON)
    assert shown.exit_code == 0, shown.output
    assert verdict in shown.output
    found = json.loads((tmp_path / "out" / "advice.json").read_text())
    assert found["recommended"][0] == recommended
    assert len(found["measured"]["accuracy"]) == 9
    assert all(reason in shown.output for reason in found["reasons"])
    assert "NaN" not in (tmp_path / "out" / "advice.json").read_text()


def test_little_time_makes_a_short_pilot_and_it_says_so(tmp_path):
    shown = advise(tmp_path, MISSING + COMMON.replace("40", "4000"), "--seconds", "1")
    assert shown.exit_code == 0, shown.output
    assert "20 of 4000 rounds, for want of time" in shown.output
    assert "s instead of 1: compiling" in shown.output


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


def test_without_server_samples_there_is_nothing_to_advise(tmp_path):
    shown = advise(tmp_path, "[data.server]\nsamples = 0\n")
    assert shown.exit_code == 2
    assert "data.server.samples" in shown.output
    assert not (tmp_path / "out").exists()


FEDAVG, ALONE = Arm("fedavg"), Arm("server-only", steps=10)
LOW, HIGH = Arm("safari", 0.2, 10), Arm("safari", 0.8, 10)
ADVICE = Advice(
    ground=Ground(
        Coverage((0, 1, 2), 0.6, 0.6), 4, 10, 100, 10, *[estimate([1.0, 1.1])] * 4, round_seconds=0.1
    ),
    rounds=40,
    asked_rounds=40,
    fedavg=FEDAVG,
    server_only=ALONE,
    best=LOW,
    arms={arm: estimate([value]) for arm, value in {FEDAVG: 56, ALONE: 80, LOW: 85, HIGH: 85.2}.items()},
    last={FEDAVG: 56, ALONE: 80, LOW: 81, HIGH: 70},
    over_fedavg=estimate([29.0, 29.5, 28.5]),
    over_server=estimate([5.0, 5.5, 4.5]),
    sizes={25: estimate([79]), 100: estimate([85]), 400: estimate([88])},
    seconds=10,
    allowed_seconds=75,
)


def test_both_together_are_recommended_with_a_reason_for_each_number():
    words = " ".join(reasons(ADVICE))
    assert ADVICE.verdict.startswith("Use SAFARI")
    assert ADVICE.overrides == ["algorithm.name=safari", "algorithm.q=0.2", "algorithm.server.steps=10"]
    assert "within 0.3 points of the best (q = 0.8 with 10 steps)" in words
    assert "4.0 points worse on average" in words
    assert "more is worth collecting, 400 at least" in words
    assert ADVICE.setting == {"algorithm": "safari", "q": 0.2, "steps": 10, "server_samples": 100}
    assert "cannot tell" not in words


def test_what_three_seeds_cannot_tell_is_said():
    unsure = replace(ADVICE, over_server=estimate([5.0, -4.0, 1.0]))
    assert "beats server-only training by 0.5 points, 3 seeds cannot tell" in " ".join(reasons(unsure))


def test_a_larger_server_set_that_was_not_tried_is_not_judged():
    known = {25: estimate([79]), 100: estimate([85])}
    assert "more could not be tried" in " ".join(reasons(replace(ADVICE, sizes=known)))
