"""The league: tuned without the test set, the same grid for all, shared out and put together, on one page."""

import json
from dataclasses import replace

import jax
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import safari
from safari.cli import app
from safari.errors import InputError
from safari.experiment.sweep import read_sweep
from safari.league import KNOWN, SETTINGS, asked_of, entries_named, read_league
from safari.league.central import Central
from safari.league.entries import POINTS
from safari.league.fedawe import PRINTED, ByClasses, ByRoot, Network, rates_of
from safari.league.hospitals import Hospitals
from safari.league.plan import DEFAULT, GRADIENTS, TUNED, cell_of, resolved_points, tuning_plan
from safari.league.settings import GROUPS
from safari.league.table import rows_of
from safari.league.tuning import choose
from safari.registry import ALGORITHMS

GENERIC = {"then", "beside", "stages", "sgd", "fedopt", "private", "corrected", "corrected-at-server"}
"""Names that build methods, or are parts of one; every other name takes part in the league."""

SPEC = """
[league]
methods = ["fedavg", "server-only", "safari", "mine.py:Momentum", "central"]
seeds = 2

[league.grid."mine.py:Momentum"]
clients.local_rate = [0.03, 0.1, 0.3, 1.0]
clients.beta = [0.0, 0.5, 0.9]

[league.grid.fedavg]
clients.local_rate = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.2, 0.3]

[data]
source = "own.py:Noisy"
[data.partition]
samples_per_client = 40
[data.server]
samples = 20
[participation]
excluded = 4
per_round = 3
[algorithm.clients]
name = "fedavg"
batch_size = 20
[algorithm.server]
steps = 2
[train]
rounds = 3
evaluate_every = 3
"""
MINE = """
import jax
import safari


class Momentum(safari.ClientAlgorithm):
    '''Local steps, and a server that remembers the last one.

    Args:
        beta: how much of it stays.
    '''

    beta: float = 0.5
    sum_only = True

    def memory(self, params, task):
        return jax.tree.map(lambda leaf: 0.0 * leaf, params), None

    def absorb(self, state, reports, task, turn):
        step = jax.tree.map(lambda v, d: self.beta * v + d, state.server_memory, reports.update())
        params = jax.tree.map(lambda p, v: p + self.global_rate * v, state.params, step)
        return safari.ClientState(params, step, None)
"""
OWN = """
import numpy as np
import safari

SHUFFLED = {shuffled}


class Noisy(safari.Source):
    def load(self):
        digits = safari.federate("digits").dataset
        x, y = (np.asarray(one) for one in (digits.x, digits.y))
        y_test = np.asarray(digits.y_test)
        if SHUFFLED:
            y_test = np.random.default_rng(0).permutation(y_test)
        return safari.Dataset(x, y, np.asarray(digits.x_test), y_test, scale=1 / 16)
"""


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text(SPEC)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "own.py").write_text(OWN.format(shuffled=False))
    return tmp_path


def test_every_method_takes_part_with_a_grid_of_the_same_size():
    assert set(ALGORITHMS) - GENERIC <= set(KNOWN)
    for entry in entries_named(KNOWN):
        points = [json.dumps(point) for point in resolved_points(SETTINGS["digits"], entry)]
        assert len(set(points)) == POINTS, entry.label


@pytest.mark.parametrize("setting", [key for key in SETTINGS if not key.startswith("fedawe")])
def test_every_setting_serves_every_method(setting):
    """Each default and the first and last point of each grid make a spec; a key that is none is refused."""
    for entry in entries_named(KNOWN):
        if entry.label != "central":
            points = resolved_points(SETTINGS[setting], entry)
            for point in ({}, points[0], points[-1]):
                cell_of(SETTINGS[setting], entry, point, 0)


def test_a_key_that_the_method_does_not_have_is_refused():
    with pytest.raises(InputError, match="is no key of fedprox"):
        cell_of(SETTINGS["digits"], entries_named(["fedprox"])[0], {"algorithm.clients.momentum": 0.5}, 0)


def test_no_federation_that_tunes_holds_the_test_set(digits):
    asked = replace(asked_of("digits"), methods=("fedavg", "safari"), seeds=5)
    test = {row.tobytes() for row in np.asarray(digits.dataset.x_test)}
    train = {row.tobytes() for row in np.asarray(digits.dataset.x)}
    for cell in tuning_plan(asked).sweep.cells()[:5]:
        federation = cell.spec.federation()
        scored_on = {row.tobytes() for row in np.asarray(federation.dataset.x_test)}
        assert scored_on <= train - test
        held = {row.tobytes() for row in np.asarray(federation.dataset.x)[federation.held_by(None)]}
        assert not scored_on & held


def test_nothing_is_chosen_by_scores_of_the_test_set():
    asked = replace(asked_of("digits"), methods=("fedavg",), seeds=1)
    plan = tuning_plan(asked)
    rows = [
        {
            "cell": one.cell,
            "settings": json.dumps({**cell.settings, "data.score": "test"}),
            "diverged_at": None,
            "balanced_accuracy": 0.5,
            "loss": 1.0,
        }
        for one, cell in zip(plan.planned, plan.sweep.cells(), strict=True)
    ]
    with pytest.raises(InputError, match="nothing is tuned on the test set"):
        choose(asked, plan.planned, pl.DataFrame(rows))


def test_tuning_for_a_class_chooses_by_its_recall():
    asked = replace(asked_of("digits"), methods=("fedavg",), seeds=1)
    asked = replace(asked, settings=(replace(asked.settings[0], metric="recall:1"),))
    plan = tuning_plan(asked)
    rows = [
        {
            "cell": one.cell,
            "settings": json.dumps(cell.settings),
            "diverged_at": None,
            "balanced_accuracy": 1.0 - number / 20,
            "classes": ["0", "1"],
            "recall": [0.5, number / 20],
            "loss": 1.0,
            "client_rounds": 1,
            "both_rounds": 0,
            "idle_rounds": 0,
        }
        for number, (one, cell) in enumerate(zip(plan.planned, plan.sweep.cells(), strict=True))
    ]
    (chosen,) = choose(asked, plan.planned, pl.DataFrame(rows)).values()
    assert chosen.point == plan.planned[-1].point
    assert chosen.score == (len(rows) - 1) / 20


def test_a_league_on_a_federation_of_ones_own_with_a_method_of_ones_own(place):
    done = call("league", "my.toml", "--out", "whole", "--quiet")
    assert done.exit_code == 0, done.output
    assert "mine.py:Momentum" in done.output
    found = read_league(place / "whole")
    rows = rows_of(found, "my")
    assert {row.method for row in rows} == {
        "fedavg", "server-only", "safari", "mine.py:Momentum", "central",
    }  # fmt: skip
    assert all(row.runs == 2 and row.chosen.point for row in rows)
    by_name = {row.method: row for row in rows}
    assert by_name["safari"].difference is None
    assert by_name["fedavg"].difference is not None
    assert by_name["server-only"].client_gradients == 0
    assert by_name["fedavg"].server_steps == 0
    assert by_name["fedavg"].up == 3 * 3
    assert by_name["fedavg"].client_gradients == 3 * 3 * 40 / 1000
    assert {one.variant for one in found.planned} <= {TUNED, DEFAULT, GRADIENTS}
    assert pl.read_csv("whole/league.csv").height == 5
    assert call("report", "whole").exit_code == 0
    page = (place / "whole" / "report.html").read_text()
    assert "can pass the ceiling" in page
    assert "mine.py:Momentum" in page
    again = call("league", "--resume", "whole", "--quiet")
    assert again.exit_code == 0
    assert pl.read_csv("whole/league.csv").equals(pl.read_csv("whole/league.csv"))

    # What the test set holds changes what is reported, and nothing that is chosen.
    (place / "own.py").write_text(OWN.format(shuffled=True))
    (place / "own.py").rename(place / "other.py")
    other = (place / "my.toml").read_text().replace("own.py", "other.py")
    (place / "my.toml").write_text(other)
    assert call("league", "my.toml", "--out", "shuffled", "--quiet").exit_code == 0
    shuffled = read_league(place / "shuffled")
    assert shuffled.chosen == found.chosen
    assert rows_of(shuffled, "my")[0].score != rows[0].score


def test_shares_of_a_league_make_the_whole(place):
    spec = SPEC.replace('"mine.py:Momentum", "central"', '"fedprox"').replace("seeds = 2", "seeds = 1")
    (place / "my.toml").write_text(spec.split("[league.grid")[0] + spec[spec.index("[data]") :])
    for arguments in (["--out", "whole"], ["--share", "1/2", "--out", "a"], ["--share", "2/2", "--out", "b"]):
        assert call("league", "my.toml", "--quiet", *arguments).exit_code == 0
    assert call("merge", "a", "b", "--out", "c").exit_code == 0
    assert call("league", "--resume", "c", "--quiet").exit_code == 0
    whole, together = (read_league(place / name) for name in ("whole", "c"))
    assert set(together.methods) == set(whole.methods)
    key = lambda row: row.method  # noqa: E731
    assert sorted(rows_of(together, "my"), key=key) == sorted(rows_of(whole, "my"), key=key)


def test_equal_gradients_are_equal(place):
    """SAFARI trains longer, as its server takes rounds for itself; FedCLG-C half as long: it looks twice."""
    spec = SPEC.replace('"server-only", "safari", "mine.py:Momentum", "central"', '"safari", "fedclg-c"')
    spec = spec.split("[league.grid")[0] + spec[spec.index("[data]") :]
    (place / "my.toml").write_text(
        spec.replace("rounds = 3", "rounds = 20").replace("seeds = 2", "seeds = 1")
    )
    assert call("league", "my.toml", "--out", "a", "--quiet").exit_code == 0
    found = read_league(place / "a")
    assert found.chosen["my", "fedclg-c"].rounds == 10
    rounds = found.chosen["my", "safari"].rounds
    assert rounds is not None
    assert rounds > 20
    _, results = read_sweep(place / "a" / "final")
    cells = {one.cell for one in found.planned if one.method == "safari" and one.variant == GRADIENTS}
    asked = results.filter(pl.col("cell").is_in(list(cells)))["client_rounds"][0]
    assert abs(asked - 20) <= 5


def test_central_training_sees_every_class_equally_often_and_no_absent_client(digits):
    central, together = Central(without=(0, 1), cohort=3).bind(digits, seed=0)
    counts = np.asarray(together.label_counts()[1])
    assert len(set(counts[counts > 0])) == 1
    absent = set(digits.held_by(0)) | set(digits.held_by(1))
    assert not absent & set(together.held_by(None))
    assert set(digits.held_by(2)) | set(digits.held_by(None)) <= set(together.held_by(None))
    alone, _ = safari.ServerOnly().bind(digits, seed=0)
    assert central.server.steps == 3 * alone.server.steps


def test_the_hospitals_are_drawn_by_their_seed():
    one, two, other = (np.asarray(Hospitals(draw=draw).load().x) for draw in (1, 1, 2))
    assert np.array_equal(one, two)
    assert one.shape == other.shape
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["moon"], "unknown setting"),
        (["digits", "--methods", "fedavgg"], "unknown method"),
        (["digits", "--methods", "fedavg,fedavg"], "each once"),
        (["digits", "--seeds", "0"], "--seeds"),
        (["digits", "--share", "3/2"], "--share"),
        (["digits", "train.rounds=x"], "train.rounds"),
        (["my.toml", 'league.metric="luck"'], "league.metric"),
        (["my.toml", 'league.metric="recall:ten"'], "unknown class; known are 0, 1, 2"),
        (["my.toml", 'league.metric="recall:3"', "data.server.samples=20"], "the server holds"),
        (["my.toml", "league.seeds=0"], "league.seeds"),
        (["my.toml", 'league.grid.fedavg={"clients.local_rate"=[0.1]}'], "must have 12 points"),
        (["my.toml", "league.grid.fedprox={}"], "takes no part"),
        (["--resume", "nowhere"], "was not made by"),
        (["digits", "--resume", "nowhere"], "digits"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(place, arguments, said):
    done = call("league", *arguments, "--quiet")
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert "Traceback" not in done.output
    assert not (place / "runs").exists()


def test_fedawe_network_schedule_and_rates_are_the_papers(digits):
    params = Network().init(jax.random.key(0), (32, 32, 3), 10)
    shapes = [leaf["kernel" if name.startswith("conv") else "weight"].shape for name, leaf in params.items()]
    assert shapes == [(3, 3, 3, 32), (3, 3, 32, 32), (2048, 256), (256, 64), (64, 10)]
    assert Network().apply(params, jax.numpy.zeros((2, 32, 32, 3))).shape == (2, 10)
    assert float(ByRoot().factor(150, 2000)) == 0.25
    rates = np.array(rates_of(digits, 0))
    held = [np.asarray(digits.dataset.y)[digits.held_by(client)][0] for client in range(10)]
    assert rates[[client for client in range(10) if held[client] >= 5]].max() <= 0.5
    assert rates.max() <= 1
    assert rates_of(digits, 0) == rates.tolist() != rates_of(digits, 1)
    wave = [float(ByClasses(rate=(0.5,), swing=0.3).rates(None, number, 1)[0]) for number in (0, 5, 15)]
    assert wave == pytest.approx([0.35, 0.5, 0.2])


def test_the_fedawe_table_is_not_tuned_and_has_the_papers_constants(real_data):
    asked = asked_of("fedawe")
    assert [setting.base["participation"]["availability"]["swing"] for setting in asked.settings] == [
        0.0,
        0.3,
    ]
    assert set(asked.methods) == set(PRINTED)
    assert not tuning_plan(asked).planned
    setting, entry = asked.settings[0], entries_named(["f3ast"])[0]
    spec = cell_of(setting, entry, setting.constants["f3ast"], 0).spec
    assert spec.tables["algorithm"]["clients"]["b"] == 0.001
    assert spec.tables["train"]["rounds"] == 2000
    assert len(spec.tables["participation"]["availability"]["rate"]) == 100


def test_groups_name_their_settings():
    assert len(asked_of("mnist").settings) == 8
    assert {key for keys in GROUPS.values() for key in keys} <= set(SETTINGS)
