"""Attackers against the defaults: what one or three of ten clients can do (see benchmarks/attackers.py)."""

import numpy as np
import polars as pl
import pytest
from digits_app import ATTACKS, CLIENTS, Digits
from flwr.serverapp.strategy import Krum
from local_grid import LocalGrid
from numpy_app import make_app, nodes, start

from safari.errors import InputError
from safari.flower import SafariStrategy
from safari.flower.bounds import Bounds, lower_median

ROUNDS = 20


def carry_out(attack="", attackers=0, **keys):
    digits = Digits()
    made = SafariStrategy(0.7, digits.server_step, fleet=CLIENTS, start_deadline=0.0, **keys)
    grid = LocalGrid(digits.app(attack, attackers), nodes(CLIENTS))
    result = made.start(grid, digits.start(), num_rounds=ROUNDS, evaluate_fn=digits.evaluate)
    return digits.evaluate(0, result.arrays)["accuracy"], made


@pytest.fixture(scope="module")
def honest():
    return carry_out()[0]


@pytest.mark.parametrize("attackers", [1, 3])
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_defaults_lose_no_two_points_to_attackers(honest, attack, attackers):
    found, made = carry_out(attack, attackers)
    assert found > honest - 0.02
    turned = made.journal.happenings().filter(pl.col("event") == "rejected")
    if attack in ("scaled", "nan", "shape"):
        assert set(turned["client"]) == set(range(attackers))
    if attack == "scaled":
        assert "times the median" in turned["detail"][0]
        assert turned["norm"].min() > 1e4


def test_without_bounds_one_reply_ruins_the_model(honest):
    assert carry_out("scaled", 1, norm_bound=None)[0] < honest - 0.2


def test_an_attacker_who_is_turned_away_is_one_of_those_that_krum_counts_on():
    krum = Krum(num_malicious_nodes=3, fraction_evaluate=0.0)
    _, made = carry_out("scaled", 3, clients=krum)
    kinds = made.journal.history()["kind"].to_list()
    assert "client" in kinds
    assert len(made.journal.history().filter(pl.col("kind") == "client")["reported"][0]) == 7
    with pytest.raises(InputError, match=r"per_round = 8: is too few \(Krum needs 9"):
        SafariStrategy(1.0, clients=Krum(num_malicious_nodes=3), fleet=10, per_round=8)


def test_every_reply_has_its_length_weight_and_share_in_the_log():
    _, made = carry_out("weight", 1)
    answered = made.journal.happenings().filter(pl.col("event") == "answered")
    first = answered.filter(pl.col("round") == answered["round"][0])
    assert first["share"].sum() == pytest.approx(1.0)
    assert first.filter(pl.col("client") == 0)["weight"][0] == 1e12
    honest = [len(x) for x, _ in Digits().clients[1:]]
    assert first.filter(pl.col("client") == 0)["share"][0] < 3 * np.median(honest) / sum(honest)
    assert answered["norm"].min() > 0


def test_the_bounds_follow_those_who_are_accepted():
    bounds = Bounds(norm=5.0, weight=3.0)
    assert bounds.longest([1.0, 1.2, 1e6]) == (6.0, 1.2)
    assert bounds.longest([1.0, 1e6]) == (5.0, 1.0)
    bounds.accept([1.0] * 10, [10.0] * 10, 0)
    assert bounds.longest([1e6] * 9) == (5.0, 1.0)
    assert bounds.heaviest([1e12] * 9) == 30.0
    for _ in range(3):
        assert bounds.longest([50.0, 60.0]) == (5.0, 1.0)
        bounds.accept([], [], 2)
    assert bounds.longest([50.0, 60.0]) == (250.0, 50.0)
    assert lower_median([3.0]) == 3.0
    assert Bounds(norm=None).longest([1.0]) is None


def test_what_was_accepted_is_remembered_over_a_restart(tmp_path):
    def run(rounds):
        made = SafariStrategy(1.0, fleet=6, start_deadline=0.0, checkpoint=tmp_path / "state")
        made.start(LocalGrid(make_app(), nodes(6)), start(), num_rounds=rounds)
        return made.clients.gate.bounds

    before = run(3).norms
    assert len(before) == 18
    after = run(4).norms
    assert after[:18] == before
    assert len(after) == 24


@pytest.mark.parametrize(("key", "value"), [("norm_bound", 0.5), ("weight_bound", 0.0), ("most_norm", -1.0)])
def test_bounds_that_make_no_sense_are_refused(key, value):
    with pytest.raises(InputError, match=key):
        SafariStrategy(1.0, **{key: value})
