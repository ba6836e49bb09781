"""`SafariStrategy` over clients in this process: coins, cohorts, deadlines, bad replies, restarts."""

import json
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideFixedClipping,
    FedAdam,
    FedAvg,
    FedProx,
    FedTrimmedAvg,
)
from local_grid import LocalGrid
from numpy_app import GOAL, make_app, nodes, server_step, start

from safari import AdaptiveQ
from safari.errors import InputError
from safari.flower import SafariStrategy
from safari.flower.arrays import array_record, numpy_arrays
from safari.flower.journal import BY_CLOCK

ROUNDS = 12


def strategy(**keys):
    keys = {"q": 0.7, "server_step": server_step, "fleet": 6, "per_round": 3, "round_deadline": 0.5, **keys}
    return SafariStrategy(**{"start_deadline": 0.0, **keys})


def carry_out(made, grid=None, rounds=ROUNDS, **keys):
    grid = grid or LocalGrid(make_app(), nodes(6))
    return made.start(grid, start(), num_rounds=rounds, **keys), grid


def test_rounds_are_the_clients_or_the_servers():
    made = strategy()
    result, grid = carry_out(made)
    history = made.journal.history()
    kinds = history["kind"].to_list()
    assert set(kinds) == {"client", "server"}
    assert len(grid.trained()) == 3 * kinds.count("client")
    server_rounds = history.filter(pl.col("kind") == "server")
    assert server_rounds["bytes_down"].sum() == server_rounds["bytes_up"].sum() == 0
    assert history.filter(pl.col("kind") == "client")["bytes_down"].min() > 0
    assert made.synced is not None
    np.testing.assert_array_equal(numpy_arrays(result.arrays)["w"], made.synced["w"])


def test_q_says_how_often():
    for q, kind in ((1.0, "client"), (0.0, "server")):
        made = strategy(q=q)
        carry_out(made)
        assert set(made.journal.history()["kind"]) == {kind}
    made = strategy(q=0.0)
    result, grid = carry_out(made)
    assert not grid.trained()
    np.testing.assert_allclose(numpy_arrays(result.arrays)["w"], GOAL - (GOAL + 1) * 0.5**ROUNDS, rtol=1e-6)


def test_the_same_clients_are_drawn_whatever_their_nodes_are_called():
    cohorts = []
    for shift in (0, 4000):
        made = strategy()
        carry_out(made, LocalGrid(make_app(), nodes(6, shift)))
        cohorts.append(made.journal.history()["cohort"].to_list())
    assert cohorts[0] == cohorts[1]
    made = strategy(seed=1)
    carry_out(made)
    assert made.journal.history()["cohort"].to_list() != cohorts[0]


def test_clients_by_name():
    app = make_app()
    there = {
        node: {**config, "client-name": f"ward-{config['partition-id']}"} for node, config in nodes(3).items()
    }
    made = strategy(fleet=["ward-2", "ward-0", "ward-9"], per_round=None, q=1.0)
    carry_out(made, LocalGrid(app, there), rounds=1)
    assert made.journal.history()["cohort"].to_list() == [[0, 1]]
    assert made.fleet.seen == {0, 1}
    simulated = strategy(fleet=["a", "b", "c"], per_round=None, q=1.0)
    carry_out(simulated, LocalGrid(app, nodes(3)), rounds=1)
    assert simulated.journal.history()["cohort"].to_list() == [[0, 1, 2]]
    names = {row["name"]: row["answered"] for row in made.journal.participation(made.fleet)}
    assert names == {"ward-2": 1, "ward-0": 1, "ward-9": 0}


def test_clients_that_say_nothing_are_numbered():
    made = strategy(fleet=None, per_round=None, q=1.0)
    carry_out(made, LocalGrid(make_app(told=False), nodes(4)), rounds=1)
    assert made.journal.history()["cohort"].to_list() == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    "clients",
    [
        FedAvg(fraction_evaluate=0.5),
        FedProx(proximal_mu=0.1, fraction_evaluate=0.0),
        FedAdam(eta=0.1, fraction_evaluate=0.0),
        FedTrimmedAvg(beta=0.34, fraction_evaluate=0.0),
        DifferentialPrivacyServerSideFixedClipping(
            FedAvg(fraction_evaluate=0.0), noise_multiplier=0.1, clipping_norm=1.0, num_sampled_clients=3
        ),
    ],
    ids=lambda clients: type(clients).__name__,
)
def test_any_flower_strategy_serves_as_the_clients(clients):
    made = strategy(clients=clients)
    result, _ = carry_out(made)
    history = made.journal.history()
    assert {"client", "server"} == set(history["kind"])
    assert all(len(row["reported"]) == 3 for row in history.to_dicts() if row["kind"] == "client")
    arrays = numpy_arrays(result.arrays)
    assert arrays["w"].dtype == np.float32
    assert np.isfinite(arrays["w"]).all()
    if getattr(clients, "fraction_evaluate", 0):
        assert set(result.evaluate_metrics_clientapp) == set(
            history.filter(pl.col("kind") == "client")["round"]
        )


def spoiler(client, number, arrays, metrics):
    if client == 0:
        arrays["w"] = np.full(3, np.nan, np.float32)
    if client == 1:
        arrays["w"] = np.zeros(4, np.float32)
    if client == 2:
        arrays["w"] = arrays["w"].astype(np.float64)
    if client == 3:
        raise RuntimeError("out of paper")
    if client == 4:
        arrays["w"] += np.float32(1e6)
    if client == 5:
        metrics = {"num-examples": 1, "mood": 3.0}
    if client == 6:
        metrics = {"num-examples": float("inf")}
    if client == 7:
        del arrays["b"]
    if client == 8:
        metrics = {"num-examples": 0}
    return arrays, metrics


FAULTS = {
    0: "not finite",
    1: "shape",
    2: "float64",
    4: "length",
    5: "other metrics",
    6: "num-examples",
    7: "missing",
    8: "num-examples",
}


def test_bad_replies_do_no_harm_and_are_named():
    made = strategy(q=1.0, fleet=12, per_round=None, most_norm=100.0)
    good = strategy(q=1.0, fleet=12, per_round=None)
    result, _ = carry_out(made, LocalGrid(make_app(spoiler), nodes(12)), rounds=3)
    expected, _ = carry_out(
        good, LocalGrid(make_app(), {n: c for n, c in nodes(12).items() if c["partition-id"] >= 9}), rounds=3
    )
    np.testing.assert_array_equal(numpy_arrays(result.arrays)["w"], numpy_arrays(expected.arrays)["w"])
    events = made.journal.happenings()
    for client, word in FAULTS.items():
        found = events.filter((pl.col("client") == client) & (pl.col("event") == "rejected"))
        assert len(found) == 3
        assert word in found["detail"][0]
    failed = events.filter(pl.col("event") == "failed")
    assert set(failed["client"]) == {3}
    assert "out of paper" in failed["detail"][0]
    took_part = [row["client"] for row in made.journal.participation(made.fleet) if row["answered"]]
    assert took_part == [9, 10, 11]


def test_no_change_is_longer_than_most_norm_whatever_the_others_change():
    made = strategy(q=1.0, fleet=4, per_round=None, most_norm=2.5)
    carry_out(made, LocalGrid(make_app(), nodes(4)), rounds=1)
    events = made.journal.happenings().filter(pl.col("event") == "rejected").sort("client")
    assert events["client"].to_list() == [2, 3]
    assert all(detail.endswith("above 2.5") for detail in events["detail"])


def test_an_adaptive_q_is_told_the_clients_gradient():
    """Client i moves the model half the way to i; a gradient is that over the rate times the steps."""

    class Step:
        rate = 0.5

        def __call__(self, arrays, round):
            return server_step(arrays, round)

        def halves(self, arrays, round):
            return arrays, arrays

    made = strategy(q=AdaptiveQ(), server_step=Step(), client_path=0.2, fleet=4, per_round=None)
    told = []
    made.coin.learn = lambda halves, gradient: told.append(gradient)
    made.coin.probability = lambda: 1.0
    carry_out(made, LocalGrid(make_app(), nodes(4)), rounds=1)
    np.testing.assert_allclose(told[0]["w"], (-1 - np.mean([0, 1, 2, 3])) / 2 / 0.2, rtol=1e-6)


def test_those_who_are_silent_are_not_waited_for():
    grid = LocalGrid(make_app(), nodes(6))
    grid.silent = {node for node, config in nodes(6).items() if config["partition-id"] in (0, 1)}
    made = strategy(q=1.0, per_round=None)
    made.fleet.online(LocalGrid(make_app(), nodes(6)))
    carry_out(made, grid, rounds=1)
    row = made.journal.history().to_dicts()[0]
    assert row["cohort"] == [0, 1, 2, 3, 4, 5]
    assert row["reported"] == [2, 3, 4, 5]
    assert set(made.journal.happenings().filter(pl.col("event") == "late")["client"]) == {0, 1}


def test_one_that_hangs_is_left_alone_for_longer_and_longer(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("safari.flower.fleet.time.monotonic", lambda: clock[0])
    grid, fleet = LocalGrid(make_app(), nodes(3)), strategy(fleet=3).fleet
    online, deadline = fleet.online(grid), fleet.deadline
    for rest in (1, 2, 4, 8, 16, 32, 32):
        fleet.late([online[1]])
        clock[0] += 0.99 * rest * deadline
        assert list(fleet.awake(online)) == [0, 2]
        clock[0] += 0.02 * rest * deadline
        assert list(fleet.awake(online)) == [0, 1, 2]
    fleet.answered([online[1]])
    fleet.late([online[1]])
    clock[0] += 1.01 * deadline
    assert list(fleet.awake(online)) == [0, 1, 2]
    fleet.late(online.values())
    assert list(fleet.awake(online)) == [0, 1, 2]


def test_a_round_leaves_alone_who_was_late():
    grid = LocalGrid(make_app(), nodes(6))
    made = strategy(q=1.0, per_round=None)
    made.fleet.online(grid)
    grid.silent = {node for node, config in nodes(6).items() if config["partition-id"] == 2}
    made.fleet.deadline = 1000.0
    carry_out(made, grid, rounds=2)
    assert made.journal.history()["cohort"].to_list() == [[0, 1, 2, 3, 4, 5], [0, 1, 3, 4, 5]]
    assert made.journal.history()["available"].to_list() == [6, 5]


def test_who_did_not_say_in_time_who_it_is_is_asked_again_at_once_if_nobody_else_is_there():
    grid, made = LocalGrid(make_app(), nodes(6)), strategy()
    made.fleet.deadline = 0.05
    grid.silent = set(nodes(6))
    assert made.fleet.online(grid) == {}
    asked = len(grid.pushed)
    grid.silent = {next(node for node, config in nodes(6).items() if config["partition-id"] == 3)}
    assert list(made.fleet.online(grid)) == [0, 1, 2, 4, 5]
    assert len(grid.pushed) == 2 * asked
    made.fleet.online(grid)
    assert len(grid.pushed) == 2 * asked


def test_too_few_replies_make_it_a_server_round():
    grid = LocalGrid(make_app(), nodes(6))
    grid.silent = set(nodes(6))
    made = strategy(q=1.0, min_replies=3)
    made.fleet.online(LocalGrid(make_app(), nodes(6)))
    with pytest.raises(InputError, match="without clients"):
        carry_out(made, grid, rounds=2)
    assert made.journal.history()["kind"].to_list() == ["server", "server"]
    replaced = made.journal.happenings().filter(pl.col("event") == "replaced")
    assert len(replaced) == 2
    assert "0 of 3 clients" in replaced["detail"][0]
    alone = strategy(q=1.0, server_step=None)
    with pytest.raises(InputError, match="without clients"):
        carry_out(alone, LocalGrid(make_app(), {}), rounds=2)
    assert alone.journal.history()["kind"].to_list() == ["idle", "idle"]


def test_a_restarted_server_goes_on_with_the_next_round(tmp_path):
    whole = strategy(clients=FedAdam(fraction_evaluate=0.0), checkpoint=tmp_path / "whole")
    expected, _ = carry_out(whole)

    def killed(number, arrays):
        if number == 7:
            raise KeyboardInterrupt

    first = strategy(clients=FedAdam(fraction_evaluate=0.0), checkpoint=tmp_path / "cut")
    with pytest.raises(KeyboardInterrupt):
        carry_out(first, evaluate_fn=killed)
    second = strategy(clients=FedAdam(fraction_evaluate=0.0), checkpoint=tmp_path / "cut")
    grid = LocalGrid(make_app(), nodes(6, 4000))
    result, _ = carry_out(second, grid)
    assert second.journal.history()["round"].to_list() == list(range(1, ROUNDS + 1))
    cut, uncut = (one.journal.history().drop("q", *BY_CLOCK) for one in (second, whole))
    assert cut.equals(uncut)
    np.testing.assert_array_equal(numpy_arrays(result.arrays)["w"], numpy_arrays(expected.arrays)["w"])
    assert len(grid.trained()) == 3 * (second.journal.history()["kind"][6:] == "client").sum()


def test_a_finished_federation_is_a_run_directory(tmp_path):
    made = strategy(checkpoint=tmp_path / "state")
    scores = iter(np.linspace(0.1, 0.9, ROUNDS + 1))
    from flwr.app import MetricRecord

    carry_out(made, evaluate_fn=lambda number, arrays: MetricRecord({"accuracy": next(scores), "loss": 1.0}))
    summary = json.loads((tmp_path / "state" / "summary.json").read_text())
    assert summary["rounds"] == ROUNDS
    assert summary["accuracy_round"] == pytest.approx(0.9)
    assert [row["client"] for row in summary["participation"]] == list(range(6))
    from safari.cli.report import page_of
    from safari.report.page import render

    assert "Fleet state" in render(page_of(tmp_path / "state"))


def test_two_servers_cannot_write_to_one_folder(tmp_path):
    made = strategy(checkpoint=tmp_path / "state")

    def another(number, arrays):
        if number == 2:
            with pytest.raises(InputError, match="is writing to it"):
                carry_out(strategy(checkpoint=tmp_path / "state"))

    carry_out(made, rounds=3, evaluate_fn=another)
    for keys, word in (({"seed": 5}, "begun with 0"), ({"fleet": 7}, "begun with 6")):
        with pytest.raises(InputError, match=word):
            carry_out(strategy(checkpoint=tmp_path / "state", **keys))
    grid = LocalGrid(make_app(), nodes(6))
    with pytest.raises(InputError, match="another model"):
        strategy(checkpoint=tmp_path / "state").start(grid, array_record({"w": np.zeros(2)}))


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"q": 1.5}, "q"),
        ({"server_step": None}, "server_step"),
        ({"per_round": 0}, "per_round"),
        ({"round_deadline": 0}, "round_deadline"),
        ({"min_replies": 0}, "min_replies"),
        ({"most_norm": -1.0}, "most_norm"),
        ({"seed": -1}, "seed"),
        ({"fleet": 0}, "fleet"),
        ({"fleet": ["a", "a"], "per_round": 1}, "fleet"),
        ({"fleet": 2}, "per_round"),
        ({"min_replies": 4}, "min_replies"),
        ({"q": "0.8"}, "q"),
        ({"server_step": 3}, "server_step"),
        ({"clients": FedProx}, "clients"),
    ],
)
def test_wrong_settings_are_refused(keys, word):
    with pytest.raises(InputError, match=word):
        strategy(**keys)


def test_a_server_step_that_breaks_is_named():
    with pytest.raises(InputError, match="must return the arrays"):
        carry_out(strategy(q=0.0, server_step=lambda arrays, round: None))
    made = strategy(q=0.0, server_step=lambda arrays, round: {"w": arrays["w"] * np.nan, "b": arrays["b"]})
    with pytest.raises(InputError, match=r"round 1.*not finite"):
        carry_out(made)


def test_a_strategy_that_stumbles_over_a_reply_does_not_end_the_training():
    """A client that changes nothing makes Flower's privacy wrapper divide by zero."""

    def idle(client, number, arrays, metrics):
        return ({name: 2 * array - client for name, array in arrays.items()}, metrics)

    private = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(fraction_evaluate=0.0), noise_multiplier=0.1, clipping_norm=1.0, num_sampled_clients=3
    )
    made = strategy(q=1.0, clients=private)
    with pytest.raises(ZeroDivisionError):
        carry_out(made, LocalGrid(make_app(idle), nodes(6)))
    assert made.journal.history()["kind"].to_list() == ["server", "server"]
    assert "ZeroDivisionError" in made.journal.happenings().filter(pl.col("event") == "replaced")["detail"][0]


def test_just_enough_replies_make_it_a_client_round():
    for silent, kind in ((0, "client"), (1, "server")):
        grid = LocalGrid(make_app(), nodes(3))
        made = strategy(q=1.0, fleet=3, min_replies=3)
        made.fleet.online(grid)
        grid.silent = set(list(nodes(3))[:silent])
        with pytest.raises(InputError, match="2 of 3 clients gave") if silent else nullcontext():
            carry_out(made, grid, rounds=1)
        assert made.journal.history()["kind"].to_list() == [kind]


def test_only_stumbles_in_a_row_end_the_training():
    """Two of three rounds fail for ever: only three failures in a row are the fault of the strategy."""

    class Stumbling(FedAvg):
        def aggregate_train(self, server_round, replies):
            if server_round % 3:
                raise ZeroDivisionError
            return super().aggregate_train(server_round, replies)

    made = strategy(q=1.0, clients=Stumbling(fraction_evaluate=0.0))
    carry_out(made, rounds=9)
    assert made.journal.history()["kind"].to_list() == ["server", "server", "client"] * 3


def test_who_evaluates_is_drawn_apart_from_who_trains():
    made = strategy(q=1.0, clients=FedAvg(fraction_evaluate=0.5))
    _, grid = carry_out(made)
    asked = {kind: [] for kind in ("train", "evaluate")}
    for message in grid.pushed:
        if message.metadata.message_type in asked:
            asked[message.metadata.message_type].append(message.metadata.dst_node_id)
    cohorts = [
        [set(nodes[3 * number : 3 * number + 3]) for number in range(ROUNDS)] for nodes in asked.values()
    ]
    assert all(len(cohort) == 3 for cohort in cohorts[0] + cohorts[1])
    assert sum(one == other for one, other in zip(*cohorts, strict=True)) < ROUNDS / 2
