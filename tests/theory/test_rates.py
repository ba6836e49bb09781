"""Measured rates: slopes as the corollaries say, floors where they say, bounds never broken."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from safari.cli import app
from safari.errors import InputError
from safari.report.rates import draw_rates, judge
from safari.report.rates import rates_words as words
from safari.theory import nonconvex, objectives, quadratics, rates
from safari.theory import strongly_convex as convex

EFFORT = rates.Effort(6, 24, 3, 3, 3, 2, 1)


def by_name(cases):
    return {case.name: case for case in cases}


@pytest.fixture(scope="module")
def strongly_convex():
    return by_name(rates.strongly_convex_cases(EFFORT, seed=0))


@pytest.fixture(scope="module")
def speedup():
    return by_name(rates.speedup_cases(EFFORT, seed=0))


@pytest.fixture(scope="module")
def studies():
    return list(rates.studies(EFFORT, seed=0))


@pytest.fixture(scope="module")
def nonconvex_cases(studies):
    return {study.name: by_name(rates.nonconvex_cases(study, seed=0)) for study in studies}


@pytest.fixture(scope="module")
def everything(strongly_convex, speedup, nonconvex_cases):
    groups = (strongly_convex, speedup, *nonconvex_cases.values())
    return [case for group in groups for case in group.values()]


def client_weight(q, client_path, server_rate):
    """The weight w of the clients in (1 - w) F + w F_S, which a fixed q with small steps minimises."""
    return q * client_path / (q * client_path + (1 - q) * server_rate)


def mixture_minimum(problem, taking_part, w):
    """Where (1 - w) F + w F_S is least, S the first clients."""
    weight = np.full(problem.clients, (1 - w) / problem.clients)
    weight[:taking_part] += w / taking_part
    hessian = np.einsum("i,iab->ab", weight, problem.hessians)
    return np.linalg.solve(hessian, np.einsum("i,iab,ib->a", weight, problem.hessians, problem.centres))


@pytest.mark.parametrize("name", ["fixed q, b* = 0", "adaptive q, b* > 0"])
def test_the_error_falls_like_log_r_over_r(strongly_convex, name):
    case = strongly_convex[name]
    found = judge(case)
    assert -0.9 < case.theory < -0.8
    assert found.agrees
    assert found.slope.mean == pytest.approx(case.theory, abs=0.12)


def test_fixed_q_with_bias_stops_where_the_mixture_is_least(strongly_convex):
    case = strongly_convex["fixed q, b* > 0"]
    problem = objectives.biased_quadratics(6, 3, 2.0, 1.5, rates.SPREAD, seed=0)
    constants = convex.Constants(1.5, 1.0, server_rate=1.0)
    w = client_weight(rates.CONVEX_Q, constants.client_rate * constants.steps, constants.server_rate)
    floor = np.sum(mixture_minimum(problem, 3, w) ** 2)
    assert judge(case).agrees
    assert abs(judge(case).slope.mean) < 0.05
    assert case.measured[-1].mean() == pytest.approx(floor, rel=0.05)


@pytest.mark.parametrize("against", ["m", "K"])
def test_client_noise_falls_linearly(speedup, against):
    case = speedup[f"client noise against {against}"]
    found = judge(case)
    assert found.agrees
    assert found.slope.mean == pytest.approx(-1, abs=0.07)


@pytest.mark.parametrize("name", ["rule A, b > 0", "rule B, b > 0", "fixed q, b = 0"])
def test_the_average_gradient_falls_like_one_over_root_r(nonconvex_cases, name):
    found = judge(nonconvex_cases["quadratics"][name])
    assert found.agrees
    assert found.slope.mean == pytest.approx(-0.5, abs=0.03)
    logistic = judge(nonconvex_cases["logistic regression"][name])
    assert logistic.agrees
    assert logistic.slope.mean == pytest.approx(-0.5, abs=0.05)


def test_fixed_q_with_bias_stops_at_a_gradient_without_convexity(nonconvex_cases):
    case = nonconvex_cases["quadratics"]["fixed q, b > 0"]
    problem = objectives.biased_quadratics(6, 3, 1.0, 1.5, rates.SPREAD, seed=0)
    point = mixture_minimum(problem, 3, client_weight(rates.NONCONVEX_Q, 2.0, 1.0))
    floor = np.sum(problem.gradients(point).mean(axis=0) ** 2)
    assert abs(judge(case).slope.mean) < 0.03
    assert case.measured[-1].mean() == pytest.approx(floor, rel=0.05)


@pytest.mark.parametrize("setting", ["logistic regression", "small network"])
def test_on_digits_a_fixed_q_with_bias_stops_and_rules_go_on(nonconvex_cases, setting):
    cases = nonconvex_cases[setting]
    assert judge(cases["fixed q, b > 0"]).slope.mean > -0.15
    for rule in ("rule A, b > 0", "rule B, b > 0", "fixed q, b = 0"):
        assert judge(cases[rule]).agrees
        assert judge(cases[rule]).slope.mean < -0.35
        assert cases[rule].measured[-1].mean() < cases["fixed q, b > 0"].measured[-1].mean() / 2


def test_no_bound_lies_below_what_is_measured(everything):
    for case in everything:
        assert np.all(case.measured <= case.bound), (case.setting, case.name)


def test_certificates_are_close_where_the_least_value_is_known(nonconvex_cases):
    """Hence the comparison above could fail."""
    assert judge(nonconvex_cases["logistic regression"]["rule A, b > 0"]).reached > 0.8
    assert judge(nonconvex_cases["quadratics"]["rule A, b > 0"]).reached > 0.4


def test_curvature_seen_along_the_networks_paths_stays_below_the_one_trusted(nonconvex_cases):
    cases = list(nonconvex_cases["small network"].values())
    for case in cases:
        assert 0.5 < case.curvature <= case.smoothness
    assert "taken on trust" in words(cases)


def test_every_point_keeps_the_conditions_of_theorem_4(studies):
    for study in studies:
        for rounds in study.points.tolist():
            constants = study.constants(study.taking_part, rounds)
            assert nonconvex.broken_conditions(constants, constants.client_rate) == []
        with pytest.raises(InputError, match="drift too far"):
            study.constants(study.taking_part, int(study.points[0]) // 2)


def test_rates_beyond_theorem_6_are_refused():
    objective = objectives.quadratic(objectives.biased_quadratics(2, 1, 0.5, 2.0, 0.2, seed=0))
    limit = convex.step_limit(2.0)
    found = rates.convex_constants(objective, 0.99 * limit, 4, 1, (0.0, 0.0))
    assert found.contraction == pytest.approx(0.99 * limit)
    assert found.client_rate <= 1 / (8 * 2.0 * 4)
    with pytest.raises(InputError, match="theorem 6 allows at most"):
        rates.convex_constants(objective, 1.01 * limit, 4, 1, (0.0, 0.0))


def test_biased_quadratics_have_the_bias_and_minimum_asked_for():
    problem = objectives.biased_quadratics(7, 3, 0.8, 3.0, 0.5, seed=4)
    gradients = problem.gradients(np.zeros(3))
    assert problem.best() == pytest.approx(np.zeros(3), abs=1e-12)
    assert np.linalg.norm(gradients[:3].mean(axis=0)) == pytest.approx(0.8)
    assert (problem.convexity, problem.smoothness) == (pytest.approx(1.0), pytest.approx(3.0))


@pytest.mark.parametrize("q", [0.0, 1.0])
def test_many_runs_at_once_are_the_single_run(q):
    problem = objectives.biased_quadratics(5, 2, 0.7, 2.0, 0.5, seed=1)
    objective = objectives.quadratic(problem)
    start, rng = objective.starts(3, seed=0), np.random.default_rng(0)
    settings = objectives.Settings(4, 2, 0.02, 0.01, q=q)
    many = objectives.simulate(objective, settings, 20, start, rng)
    for place, point in enumerate(start):
        one = quadratics.run(problem, np.arange(2), point, lambda x: q, 20, 4, 0.01, 0.02, seed=0)
        assert many.gradient[:, place] == pytest.approx(one.gradient)
        assert many.move[:, place] == pytest.approx(one.move)
        assert many.size[:, place] == pytest.approx(one.distance)
        assert many.dissimilarity[:, place].max() == pytest.approx(one.dissimilarity)
        assert objective.values(start)[place] - objective.lowest == pytest.approx(one.start_gap)


@pytest.mark.parametrize("objective", [objectives.logistic(0.1), objectives.network(0.05, 2.0)])
def test_gradients_on_digits_are_those_of_the_loss(objective):
    x = objective.starts(2, seed=0).astype(float)
    way = np.random.default_rng(1).normal(size=x.shape)
    slope = (objective.values(x + 1e-5 * way) - objective.values(x - 1e-5 * way)) / 2e-5
    assert np.sum(objective.everywhere(x).mean(axis=0) * way, axis=1) == pytest.approx(slope, rel=1e-6)
    assert objective.lowest < objective.values(x).min()


def test_curvature_is_found_exactly_on_quadratics_and_below_its_bound_on_logistic_regression():
    problem = objectives.biased_quadratics(4, 2, 0.5, 3.0, 0.5, seed=0)
    found = objectives.largest_curvature(objectives.quadratic(problem), np.ones((2, 3)), iterations=60)
    assert found == pytest.approx(3.0)
    logistic = objectives.logistic(0.1)
    assert 0.1 < objectives.largest_curvature(logistic, logistic.starts(2, seed=0)) < logistic.smoothness


def made(kind, slope, theory):
    points = np.array([100, 200, 400, 800])
    wobble = 1 + 0.01 * np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1], [1, 0, -1]])
    measured = wobble * (points[:, None] / 100.0) ** slope
    return rates.Case("made", "up", kind, "R", theory, theory, points, measured, 10 * measured, 1.0)


@pytest.mark.parametrize(
    ("kind", "slope", "theory", "agrees"),
    [
        ("rate", -0.5, -0.5, True),
        ("rate", -0.9, -0.5, True),
        ("rate", -0.4, -0.5, False),
        ("exact", -1.0, -1.0, True),
        ("exact", -1.2, -1.0, False),
        ("exact", -0.8, -1.0, False),
        ("floor", 0.0, 0.0, True),
        ("floor", -0.2, 0.0, False),
        ("floor", 0.2, 0.0, False),
    ],
)
def test_verdicts(kind, slope, theory, agrees):
    found = judge(made(kind, slope, theory))
    assert found.slope.mean == pytest.approx(slope, abs=0.01)
    assert found.slope.low < found.slope.mean < found.slope.high
    assert found.agrees is agrees
    assert found.reached == pytest.approx(0.1)


def test_the_command_prints_a_row_a_case_and_writes_its_files(everything, monkeypatch, tmp_path):
    asked = []

    def measure(quick, seed):
        asked.append((quick, seed))
        return iter([*everything, replace(everything[0], name="wrong", theory=-3.0)])

    monkeypatch.setattr(rates, "measure", measure)
    out = tmp_path / "new" / "folder"
    arguments = ["rates", "--quick", "--seed", "3", "--out", str(out)]
    done = CliRunner().invoke(app, ["theory", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert asked == [(True, 3)]
    rows = [line for line in done.stdout.splitlines() if line.startswith("│")]
    assert len(rows) == len(everything) + 1
    assert sum("NO" in row for row in rows) == sum("wrong" in row for row in rows) == 1
    points = pl.read_csv(out / "rates.csv")
    assert len(points) == everything[0].measured.size + sum(case.measured.size for case in everything)
    assert points["measured"][0] == pytest.approx(everything[0].measured[0, 0])
    assert (out / "rates.png").read_bytes().startswith(b"\x89PNG")


def test_the_figure_has_a_panel_a_case(everything, monkeypatch):
    from matplotlib.figure import Figure

    titles = []
    save = Figure.savefig

    def look(figure, *arguments, **named):
        titles.extend(axes.get_title(loc="left") for axes in figure.axes)
        return save(figure, *arguments, **named)

    monkeypatch.setattr(Figure, "savefig", look)
    draw_rates(everything)
    assert [title.splitlines()[0] for title in titles] == [
        f"{case.setting}: {case.name}" for case in everything
    ]


@pytest.mark.parametrize(("arguments", "says"), [(["--seed", "-1"], "seed"), (["--out", "{file}"], "--out")])
def test_wrong_input_ends_in_one_line(arguments, says, tmp_path):
    (tmp_path / "file").write_text("")
    given = [argument.format(file=tmp_path / "file") for argument in arguments]
    done = CliRunner().invoke(app, ["theory", "rates", "--quick", *given])
    assert done.exit_code == 2
    assert says in done.output
    assert "Traceback" not in done.output


def test_the_same_seed_measures_the_same():
    small = rates.Effort(2, 2, 1, 1, 2, 1, 1)
    first, again = (next(rates.strongly_convex_cases(small, seed=5)) for _ in range(2))
    other = next(rates.strongly_convex_cases(small, seed=6))
    assert np.array_equal(first.measured, again.measured)
    assert not np.array_equal(first.measured, other.measured)
