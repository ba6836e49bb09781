"""Theorem 2 on threshold classifiers: drawn data sets agree with exact values and rates."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from typer.testing import CliRunner

from safari.cli import app
from safari.errors import InputError
from safari.report.learnability import PROBLEMS, SERVER, mixture_gain, verdict
from safari.theory import thresholds
from safari.theory.generalization import Problem, threshold_excess
from safari.theory.relations import mixture_alpha
from safari.theory.thresholds import CASES, crossing, measure

EXACT = [case for case in CASES if case.exact]
NOISY = [case for case in CASES if not case.exact]


@pytest.fixture(scope="module")
def found():
    return {case.name: measure(case, 400, seed=1) for case in CASES}


@pytest.mark.parametrize("case", EXACT, ids=lambda case: case.name)
def test_intervals_hold_the_exact_values(found, case):
    for line in found[case.name]:
        assert line.as_exact
        assert abs(line.slope.value - line.exact_slope) < 4 * line.slope.error
        assert line.exact_slope == pytest.approx(-line.rate, abs=0.015)
        wrong = replace(line, points=tuple(replace(p, exact=1.4 * p.exact) for p in line.points))
        assert not wrong.as_exact
        assert "exact values missed" in verdict(wrong)


def test_about_19_of_20_intervals_hold_the_exact_value(found):
    """Lines that share their server samples count once."""
    lines = [found["t* = 0.75"][0], *found["t* = 0.25"], *found["beta = 1/2"]]
    assert sum(line.inside for line in lines) >= 0.8 * sum(len(line.points) for line in lines)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_excess_errors_fall_at_the_rate_of_the_theorem_and_stay_under_its_bound(found, case):
    for line in found[case.name]:
        assert verdict(line) == "agrees"
        assert all(point.excess.high < point.bound for point in line.points)


@pytest.mark.parametrize(("power", "rate"), [(0.5, 3 / 4), (1, 2 / 3), (2, 3 / 5)])
def test_noise_slows_the_rate_down(found, power, rate):
    for line in found[f"noise k = {power:g}"]:
        assert line.rate == pytest.approx(rate)
        assert abs(line.slope.value + rate) < 4 * line.slope.error
        free = replace(line, case=replace(line.case, problem=lambda server, clients: Problem(1)))
        assert verdict(free) == "another rate"


def test_the_smoother_the_noise_the_slower_the_rate(found):
    steep, flat = (np.mean([line.slope.value for line in found[f"noise k = {power}"]]) for power in (0.5, 2))
    assert steep < flat - 0.02


def test_clients_help_where_they_sample_and_only_there(found):
    server, *unseen = found["t* = 0.75"]
    assert server.against_server == ""
    assert {line.against_server for line in unseen} == {"no gain: equal on every drawn set"}
    for name in ("t* = 0.25", *(case.name for case in NOISY)):
        assert {line.against_server for line in found[name][1:]} == {"better at every size"}
    _, few, many = found["beta = 1/2"]
    assert few.against_server == "worse at every size"
    assert many.against_server.startswith("better up to n_T = 80, worse from n_T =")


@pytest.mark.parametrize("case", NOISY, ids=lambda case: case.name)
def test_clients_in_the_middle_are_worth_twice_their_number(found, case):
    alone, assisted = found[case.name]
    pairs = zip(alone.points[1:], assisted.points[1:], strict=True)
    logs = [math.log(with_clients.excess.value / without.excess.value) for without, with_clients in pairs]
    assert np.mean(logs) == pytest.approx(-alone.rate * math.log(1 + 2 * 3), abs=0.15)


@pytest.mark.parametrize(("threshold", "ratio"), [(0.75, 9), (0.25, 1), (0.25, 9), (0.25, 0), (0.45, 2)])
@pytest.mark.parametrize("server", [3, 640])
def test_exact_values_agree_with_an_integral(threshold, ratio, server):
    def survives(u):
        seen = 2 * (min(threshold + u, 0.5) - min(threshold, 0.5))
        return (1 - u) ** server * (1 - seen) ** (ratio * server)

    edges = [1e-4, 1e-3, 1e-2, 0.1, max(0.5 - threshold, 0.2)]
    value = quad(survives, 0, 1 - threshold, points=edges, limit=500, epsabs=1e-14)[0]
    assert thresholds.half_seen_excess(threshold, server, ratio * server) == pytest.approx(value, rel=1e-9)


def test_the_sum_is_the_quadrature():
    assert thresholds.half_seen_excess(0.25, 10, 90) == pytest.approx(threshold_excess(0.25, 10, 90))


def test_the_learner_makes_the_fewest_errors():
    rng = np.random.default_rng(0)
    offset = np.sort(rng.uniform(-0.5, 0.5, (200, 9)), axis=1)
    says_one = rng.random(offset.shape) < 0.5 + 0.3 * np.sign(offset)
    chosen = thresholds.fewest_errors(offset, says_one)

    def errors(row, threshold):
        return int(np.sum((offset[row] > threshold) != says_one[row]))

    for row, threshold in enumerate(chosen):
        counts = {t: errors(row, t) for t in (-0.5, *offset[row])}
        least = min(counts.values())
        assert errors(row, threshold) == least
        assert threshold == min(t for t, count in counts.items() if count == least)


def test_labels_are_noisy_as_the_family_says():
    """One sample: the threshold stays at 0 if its label is 1, else moves to the sample."""
    found = thresholds.noisy(1).draw(1, 0, 200_000, 3)
    zero = np.isclose(found, 0.125)
    assert zero.mean() == pytest.approx(0.5, abs=0.005)
    assert found[~zero].mean() == pytest.approx(1 / 24, abs=5e-4)


def test_alphas_of_the_cases_are_the_least_that_hold_for_all_thresholds():
    assert thresholds.half_seen(0.75).problem(10, 90).alpha == pytest.approx(mixture_alpha(10, 90))
    assert thresholds.half_seen(0.25).problem(10, 90).alpha == pytest.approx(0.428571, abs=5e-7)
    distance = np.linspace(1e-3, 0.5, 1000)
    for power in (0.5, 1, 2):
        p = distance ** (power + 1)
        d = 2 * np.minimum(distance, 0.25) ** (power + 1)
        q = 0.75 * d + 0.25 * p
        assert thresholds.noisy(power).problem(10, 30).alpha == pytest.approx(np.max(p / q - 1))


def test_intervals_hold_the_mean_19_times_out_of_20():
    rng = np.random.default_rng(0)
    held = [thresholds.mean_interval(rng.exponential(size=400)).contains(1.0) for _ in range(2000)]
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_seeds_decide_the_draws_and_blocks_cover_them():
    case = replace(thresholds.half_seen(0.25), sizes=(5000,), ratios=(0, 9))
    once, again, other = (measure(case, 60, seed)[1].points[0] for seed in (0, 0, 1))
    assert once == again != other
    assert 5 * thresholds.BLOCK < 5000 * (1 + 9) * 60
    assert abs(once.excess.value - once.exact) < 4 * once.excess.error


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("beta", [0.4, 0.75, 1.0])
def test_bounds_cross_where_crossing_says(problem, beta):
    one = replace(problem, beta=beta)
    n = crossing(one, SERVER)
    assert one.gains(SERVER, n - SERVER)
    assert n == SERVER + 1 or not one.gains(SERVER, n - 1 - SERVER)


def test_some_bounds_never_cross():
    assert crossing(Problem(10, beta=0.0), SERVER) is None
    assert [mixture_gain(problem) for problem in PROBLEMS] == ["never"] * 4 + ["-", "never"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: measure(CASES[0], 29, 0), "repetitions = 29"),
        (lambda: measure(CASES[0], 100, -1), "seed = -1"),
        (lambda: crossing(Problem(10), 27), "server = 27"),
    ],
)
def test_wrong_numbers_are_named(call, says):
    with pytest.raises(InputError, match=says):
        call()


def call(*arguments):
    arguments = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, ["theory", "thresholds", *arguments], env={"COLUMNS": "160"})


def test_the_command_prints_every_case_and_leaves_figures_and_numbers(tmp_path):
    out = tmp_path / "new" / "folder"
    done = call("--repetitions", 30, "--seed", 2, "--out", out)
    assert done.exit_code == 0, done.output
    for case in CASES:
        assert f"{case.name}, {case.about}; 30 data sets" in done.output
    assert done.output.count("no gain: equal on every drawn set") == 2
    table = pl.read_csv(out / "thresholds.csv")
    assert len(table) == sum(len(case.sizes) * len(case.ratios) for case in CASES)
    assert table["exact"].null_count() == sum(len(case.sizes) * len(case.ratios) for case in NOISY)
    for name in ("thresholds.png", "bounds.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--repetitions", 0], "repetitions = 0"),
        (["--seed", -3], "seed = -3"),
        (["--out", "/dev/null/x"], "--out = "),
    ],
)
def test_the_command_refuses_in_one_line(arguments, says):
    done = call(*arguments)
    assert done.exit_code == 2
    assert says in done.output
    assert done.output.count("\n") == 1
