"""Differential privacy under SAFARI: clients' mods, the counts that the noise is made for, what was spent."""

import json
import sys
from logging import WARNING

import numpy as np
import polars as pl
import pytest
from flwr.client.mod import secaggplus_mod
from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as shipped
from flwr.supercore.privacy_accounting import NeighboringRelation, PrivacyConfig, SamplingMethod
from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start

from safari.errors import InputError
from safari.flower import SafariStrategy

CLIPPING = {"noise_multiplier": 1.0, "num_sampled_clients": 6, "clipping_norm": 2.0}


def private(accountant=None, **keys):
    inner = shipped.FedAvg(fraction_evaluate=0.0, min_train_nodes=6, min_available_nodes=6)
    if accountant is not None:
        keys["accountant"] = accountant
    return shipped.DifferentialPrivacyServerSideFixedClipping(inner, **{**CLIPPING, **keys})


def accountant(**keys):
    pytest.importorskip("dp_accounting")
    config = {
        "target_delta": 1e-5,
        "population_size": 8,
        "neighboring_relation": NeighboringRelation.ADD_OR_REMOVE_ONE,
        "sampling_method": SamplingMethod.NO_AMPLIFICATION,
    }
    return RdpAccountant(PrivacyConfig(**{**config, **keys}))


def strategy(clients, **keys):
    return SafariStrategy(
        **{
            "q": 1.0,
            "server_step": server_step,
            "fleet": 8,
            "start_deadline": 0.0,
            "clients": clients,
            **keys,
        }
    )


def carry_out(made, there=8, rounds=3, app=None):
    return made.start(LocalGrid(app or make_app(), nodes(there)), start(), num_rounds=rounds)


MODS = {
    "fixedclipping": (
        [fixedclipping_mod],
        shipped.DifferentialPrivacyClientSideFixedClipping,
        {"clipping_norm": 2.0},
    ),
    "adaptiveclipping": ([adaptiveclipping_mod], shipped.DifferentialPrivacyClientSideAdaptiveClipping, {}),
    "local": ([LocalDpMod(2.0, 0.1, 1.0, 1e-5)], None, {}),
}


@pytest.mark.parametrize("name", MODS)
def test_clients_are_asked_under_the_mods_of_flowers_privacy_guide(name):
    mods, wrapper, keys = MODS[name]
    clients = shipped.FedAvg(fraction_evaluate=0.0)
    if wrapper is not None:
        clients = wrapper(clients, noise_multiplier=0.1, num_sampled_clients=6, **keys)
    made = strategy(clients)
    carry_out(made, app=make_app(mods=mods))
    assert made.journal.history()["kind"].to_list() == ["client"] * 3
    assert made.journal.history()["reported"].to_list() == [list(range(8))] * 3


def test_a_run_in_which_no_client_can_take_part_ends_with_the_reason():
    """Secure aggregation has a protocol of its own; the clients say so, and so does the error."""
    made = strategy(shipped.FedAvg(fraction_evaluate=0.0), silent_rounds=4)
    with pytest.raises(InputError, match=r"all 4 client rounds were without clients.*failed.*silent_rounds"):
        carry_out(made, rounds=50, app=make_app(mods=[secaggplus_mod]))
    assert len(made.journal.rounds) == 4
    assert len(made.fleet.seen) == 8


def test_a_fleet_that_falls_silent_ends_the_run_only_where_that_is_wanted():
    grid = LocalGrid(make_app(), nodes(8))
    app = grid.app

    def until_three(message, context):
        if message.metadata.message_type == "train" and message.content["config"]["server-round"] > 3:
            raise RuntimeError("closed for the summer")
        return app(message, context)

    grid.app = until_three
    made = strategy(None, silent_rounds=None)
    made.start(grid, start(), num_rounds=9)
    assert made.journal.silent == 6
    made = strategy(None, silent_rounds=5)
    with pytest.raises(InputError, match=r"the last 5 client rounds .*closed for the summer"):
        made.start(grid, start(), num_rounds=9)


def test_a_run_without_any_node_does_not_end_as_if_it_were_complete(tmp_path):
    made = strategy(None, checkpoint=tmp_path / "state")
    with pytest.raises(InputError, match="0 clients can be asked, 1 needed"):
        carry_out(made, there=0)
    assert json.loads((tmp_path / "state" / "summary.json").read_text())["status"] == "failed"
    made = strategy(None, q=0.0)
    carry_out(made, there=0)


def test_one_client_is_never_averaged_with_noise_for_six():
    made = strategy(private())
    with pytest.raises(InputError, match="6 needed"):
        carry_out(made, there=1)
    assert made.journal.history()["kind"].to_list() == ["server"] * 3
    assert made.clients.privacy.releases == {}

    def half(client, number, arrays, metrics):
        if client < 3:
            raise RuntimeError("away")
        return arrays, metrics

    made = strategy(private())
    with pytest.raises(InputError, match=r"5 of 8 clients gave a sound reply, 6 needed"):
        carry_out(made, app=make_app(half))


@pytest.mark.parametrize("kind", [shipped.FedAvg, shipped.FedMedian])
def test_the_least_numbers_of_nodes_are_the_strategys(kind):
    made = strategy(kind(fraction_evaluate=0.0, min_train_nodes=4, min_available_nodes=6))
    assert made.min_replies == 4
    with pytest.raises(InputError, match="5 clients connected, 6 needed"):
        carry_out(made, there=5)
    carry_out(strategy(kind(fraction_evaluate=0.0, min_train_nodes=4, min_available_nodes=6)), there=6)
    with pytest.raises(InputError, match=r"per_round = 3: is too few \(.* needs 4 \(min_train_nodes\)\)"):
        strategy(kind(min_train_nodes=4), per_round=3)
    with pytest.raises(InputError, match=r"fleet = 3"):
        strategy(kind(min_train_nodes=4), fleet=3)


def test_an_accountant_asks_for_just_as_many_as_it_counts_on_and_its_ledger_is_kept(tmp_path):
    def run(rounds, there=8, **keys):
        clients = private(accountant(**keys))
        made = strategy(clients, q=0.8, checkpoint=tmp_path / "state")
        carry_out(made, there, rounds)
        return made, clients.accountant

    made, _ = run(4)
    assert {len(row) for row in made.journal.history()["cohort"]} <= {0, 6}
    with pytest.raises(InputError, match="holds a state that does not fit"):
        run(6, target_delta=1e-6)
    made, ledger = run(6, there=5)
    assert made.journal.history()["kind"].to_list()[4:] == ["server"] * 2
    made, ledger = run(9)
    rounds = made.journal.history().filter(pl.col("kind") == "client").height
    assert ledger.num_releases == rounds > 4
    assert made.clients.privacy.releases == {1.0: rounds}
    spent = json.loads((tmp_path / "state" / "summary.json").read_text())["privacy"]
    assert spent["epsilon"] == pytest.approx(ledger.get_privacy_spent().epsilon)
    assert spent["client_rounds"] == rounds


def test_releases_before_a_restart_still_count(tmp_path):
    """As many are asked as the accountant counts on, so that no rule of safari's has to see to it."""

    def run(rounds):
        ledger = accountant()
        made = strategy(private(ledger), per_round=6, checkpoint=tmp_path / "state")
        carry_out(made, rounds=rounds)
        return ledger.num_releases

    assert run(5) == 5
    assert run(9) == 9


def test_when_the_budget_is_spent_the_server_goes_on_alone():
    two = accountant()
    from flwr.supercore.privacy_accounting import GaussianPrivacyEvent

    two.compose(GaussianPrivacyEvent(1.0, 6, 8), 2)
    made = strategy(private(accountant(max_epsilon=two.get_epsilon(1e-5) + 0.01)))
    carry_out(made, rounds=5)
    assert made.journal.history()["kind"].to_list() == ["client"] * 2 + ["server"] * 3
    assert "budget" in made.journal.happenings().filter(pl.col("event") == "replaced")["detail"][0]


def test_a_client_that_counts_for_more_has_spent_more():
    def heavy(client, number, arrays, metrics):
        return arrays, {"num-examples": 30 if client == 0 else 10}

    made = strategy(private(num_sampled_clients=8))
    carry_out(made, rounds=1, app=make_app(heavy))
    assert made.clients.privacy.releases == {round(1.0 * (100 / 30) / 8, 6): 1}
    pytest.importorskip("dp_accounting")
    equal = strategy(private(num_sampled_clients=8))
    carry_out(equal, rounds=1)
    assert equal.clients.privacy.spent() < made.clients.privacy.spent()
    assert np.isinf(_spent_without_noise())


def test_adaptive_clipping_costs_what_its_noise_says():
    """It releases a count of clipped updates too, and adds more noise to the average to make up for it."""
    inner = shipped.FedAvg(fraction_evaluate=0.0, min_train_nodes=6, min_available_nodes=6)
    keys = {"noise_multiplier": 1.0, "num_sampled_clients": 8, "clipped_count_stddev": 2.0}
    made = strategy(shipped.DifferentialPrivacyServerSideAdaptiveClipping(inner, **keys))
    carry_out(made, rounds=1)
    assert made.clients.privacy.releases == {1.0: 1}
    assert made.clients.privacy.wrapper.noise_multiplier > 1.03


def _spent_without_noise():
    made = strategy(private(noise_multiplier=0.0))
    carry_out(made, rounds=1)
    return made.clients.privacy.spent()


@pytest.mark.parametrize("asked", [6, 7])
def test_what_cannot_be_counted_or_does_not_match_is_warned_of_at_the_start(monkeypatch, caplog, asked):
    for name in ("dp_accounting", "dp_accounting.rdp"):
        monkeypatch.setitem(sys.modules, name, None)
    made = strategy(private(), per_round=asked)
    made.start(LocalGrid(make_app(), nodes(8)), start(), num_rounds=3)
    warned = [record.getMessage() for record in caplog.records if record.levelno >= WARNING]
    warned = [line for line in warned if line.startswith("safari: privacy:")]
    assert "epsilon stays unknown: pip install 'safari-fl[privacy]'" in warned[0]
    assert len(warned) == (1 if asked == 6 else 2)
    if asked == 7:
        assert "7 clients are asked, but the noise is made for num_sampled_clients = 6" in warned[1]
