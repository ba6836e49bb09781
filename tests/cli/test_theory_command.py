"""`safari theory`: what it prints, and what it refuses."""

import pytest
from typer.testing import CliRunner

from safari.cli import app


def call(*arguments):
    return CliRunner().invoke(app, ["theory", *arguments], env={"COLUMNS": "140"})


def test_impossibility_prints_every_learner_and_the_statement():
    done = call("impossibility", "--clients", "10", "--participating", "6", "--samples", "100")
    assert done.exit_code == 0, done.output
    for learner in ("majority", "nearest", "logistic", "all but x2"):
        assert learner in done.output
    assert "an error below 0.4 in the worst case" in done.output


def test_generalization_says_where_clients_help():
    no = call("generalization", "--dimension", "10", "--server", "50,1000", "--clients-data", "32400")
    assert no.exit_code == 0, no.output
    assert "yes" not in no.output
    yes = call("generalization", "--server", "50,1000", "--clients-data", "32400", "--alpha", "0.5")
    assert yes.output.count("yes") == 2


def test_the_counterexample_shows_bound_and_truth():
    done = call("counterexample", "--rounds", "10000", "--q", "0.8")
    assert done.exit_code == 0, done.output
    assert "it holds" in done.output
    assert "0.8889" in done.output
    assert "10,000" in done.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["impossibility", "--participating", "10"], "no floor"),
        (["impossibility", "--samples", "0"], "samples"),
        (["generalization", "--server", "many"], "--server"),
        (["generalization", "--dimension", "0"], "dimension"),
        (["generalization", "--beta", "2"], "beta"),
        (["impossibility", "--spec", "missing.toml"], "no such file"),
        (["counterexample", "--q", "2"], "--q"),
        (["counterexample", "--start", "0"], "--start"),
        (["counterexample", "--start", "inf"], "--start"),
        (["generalization", "--delta", "0"], "delta"),
        (["generalization", "--server", "5"], "--server"),
        (["generalization", "--alpha", "-1"], "--alpha"),
        (["generalization", "--alpha", "nan"], "--alpha"),
        (["generalization", "--clients-data", "-5"], "--clients-data"),
        (["counterexample", "--rounds", "10"], "--rounds"),
    ],
)
def test_wrong_numbers_end_in_one_line(arguments, says):
    done = call(*arguments)
    assert done.exit_code == 2
    assert says in done.output
