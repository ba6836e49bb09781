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
from safari.flower.arrays import array_record
from safari.flower.bounds import WINDOW, Bounds, lower_median
from safari.flower.changes import cosine_of, length_of

ROUNDS = 20


def carry_out(attack="", attackers=0, q=0.7, **keys):
    digits = Digits()
    made = SafariStrategy(q, digits.server_step, fleet=CLIENTS, start_deadline=0.0, **keys)
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


@pytest.mark.parametrize("attack", ["flipped", "hidden"])
def test_with_clients_alone_trust_in_the_server_stops_updates_that_are_turned_round(attack):
    honest, _ = carry_out(q=1.0)
    assert carry_out(attack, 3, q=1.0)[0] < honest - 0.1
    found, made = carry_out(attack, 3, q=1.0, trust="server")
    assert found > honest - 0.02
    happened = made.journal.happenings()
    turned = happened.filter(pl.col("event") == "rejected")
    assert len(turned.filter(pl.col("client") < 3)) == 3 * ROUNDS
    assert len(turned.filter(pl.col("client") >= 3)) < 0.05 * 7 * ROUNDS
    assert turned["cosine"].max() <= 0 < happened.filter(pl.col("event") == "answered")["cosine"].min()
    assert "does not go the way of the server's, cosine -" in turned["detail"][0]


def test_trust_in_the_server_costs_honest_clients_no_two_points():
    for q in (0.7, 1.0):
        assert carry_out(q=q, trust="server")[0] > carry_out(q=q)[0] - 0.02


def test_the_cosine_of_a_change_leaves_counters_out():
    sent = array_record({"w": np.zeros(2, np.float32), "batches": np.array(3)})
    got = array_record({"w": np.array([3, 4], np.float32), "batches": np.array(9)})
    assert length_of(sent, got) == 5.0
    assert cosine_of(sent, got, {"w": np.array([0, 2], np.float32)}) == pytest.approx(0.8)
    assert cosine_of(sent, got, {"w": np.array([-3, -4], np.float32)}) == pytest.approx(-1.0)
    assert cosine_of(sent, sent, {"w": np.ones(2, np.float32)}) == 0.0


def test_trust_needs_a_server_that_takes_steps():
    with pytest.raises(InputError, match=r"trust = server: .* server_step"):
        SafariStrategy(1.0, trust="server")
    with pytest.raises(InputError, match="trust = clients"):
        SafariStrategy(0.5, Digits().server_step, trust="clients")


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
    assert bounds.longest([1e6] * 11) == (5.0, 1.0)
    assert bounds.heaviest([1e12] * 9) == 30.0
    for _ in range(3):
        assert bounds.longest([50.0, 60.0]) == (5.0, 1.0)
        bounds.accept([], [], 2)
    assert bounds.longest([50.0, 60.0]) == (250.0, 50.0)
    assert lower_median([3.0]) == 3.0
    assert Bounds(norm=None).longest([1.0]) is None


def test_only_rounds_in_a_row_put_a_bound_out_of_date():
    bounds = Bounds(norm=5.0)
    bounds.accept([1.0] * 10, [1.0] * 10, 0)
    for _ in range(4):
        bounds.accept([], [], 2)
        bounds.accept([1.0], [1.0], 2)
    assert bounds.longest([50.0]) == (5.0, 1.0)


def test_a_window_of_accepted_replies_is_remembered():
    bounds = Bounds()
    for size in (1.0, 2.0):
        bounds.accept([size] * WINDOW, [size] * WINDOW, 0)
    assert bounds.norms == bounds.weights == [2.0] * WINDOW


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
