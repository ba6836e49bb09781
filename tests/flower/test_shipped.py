"""Each strategy that Flower ships, under SAFARI: as stock Flower runs it, restarts and all, or refused."""

import gc
import json
import tomllib

import numpy as np
import polars as pl
import pytest
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as shipped
from local_grid import LocalGrid
from numpy_app import make_app, nodes, server_step, start

from safari.errors import InputError
from safari.flower import SafariStrategy
from safari.flower.arrays import numpy_arrays

ROUNDS = 8


@pytest.fixture(autouse=True)
def _little_garbage():
    """Bulyan and QFedAvg collect garbage after every reply; what was there before need not be looked at."""
    gc.freeze()
    yield
    gc.unfreeze()


def around(wrapper, **keys):
    keys = {"noise_multiplier": 0.1, "num_sampled_clients": 7, **keys}
    return wrapper(shipped.FedAvg(fraction_evaluate=0.0), **keys)


MADE = {
    "FedAvg": lambda: shipped.FedAvg(fraction_evaluate=0.0),
    "FedProx": lambda: shipped.FedProx(proximal_mu=0.1, fraction_evaluate=0.0),
    "FedAvgM": lambda: shipped.FedAvgM(server_learning_rate=0.5, server_momentum=0.9, fraction_evaluate=0.0),
    "FedAdagrad": lambda: shipped.FedAdagrad(eta=0.3, fraction_evaluate=0.0),
    "FedAdam": lambda: shipped.FedAdam(eta=0.3, fraction_evaluate=0.0),
    "FedYogi": lambda: shipped.FedYogi(eta=0.3, fraction_evaluate=0.0),
    "FedMedian": lambda: shipped.FedMedian(fraction_evaluate=0.0),
    "FedTrimmedAvg": lambda: shipped.FedTrimmedAvg(fraction_evaluate=0.0),
    "Krum": lambda: shipped.Krum(num_malicious_nodes=1, fraction_evaluate=0.0),
    "MultiKrum": lambda: shipped.MultiKrum(
        num_malicious_nodes=1, num_nodes_to_select=3, fraction_evaluate=0.0
    ),
    "Bulyan": lambda: shipped.Bulyan(num_malicious_nodes=1, fraction_evaluate=0.0),
    "QFedAvg": lambda: shipped.QFedAvg(client_learning_rate=0.5, q=0.2, fraction_evaluate=0.0),
    "DifferentialPrivacyServerSideFixedClipping": lambda: around(
        shipped.DifferentialPrivacyServerSideFixedClipping, clipping_norm=2.0
    ),
    "DifferentialPrivacyClientSideFixedClipping": lambda: around(
        shipped.DifferentialPrivacyClientSideFixedClipping, clipping_norm=2.0
    ),
    "DifferentialPrivacyServerSideAdaptiveClipping": lambda: around(
        shipped.DifferentialPrivacyServerSideAdaptiveClipping, initial_clipping_norm=1.0
    ),
    "DifferentialPrivacyClientSideAdaptiveClipping": lambda: around(
        shipped.DifferentialPrivacyClientSideAdaptiveClipping, initial_clipping_norm=1.0
    ),
}
REFUSED = {
    "FedXgbBagging": lambda: shipped.FedXgbBagging(),
    "FedXgbCyclic": lambda: shipped.FedXgbCyclic(),
}


def grid_for(name: str) -> LocalGrid:
    """Seven clients, with the mods and the metrics that a strategy asks for."""
    mods = []
    if "ClientSide" in name:
        mods = [adaptiveclipping_mod if "Adaptive" in name else fixedclipping_mod]
    extra = {"train_loss": 0.5} if name == "QFedAvg" else None
    return LocalGrid(make_app(unequal, mods=mods, extra=extra), nodes(7))


def unequal(client, number, arrays, metrics):
    """No two clients are equally far from the others: Krum's choice is not a matter of their order."""
    return {name: array + np.float32(0.01 * client**2) for name, array in arrays.items()}, metrics


def safari(name: str, **keys):
    keys = {"fleet": 7, "start_deadline": 0.0, "server_step": server_step, "q": 0.6, **keys}
    return SafariStrategy(clients=MADE[name](), **keys)


def test_all_that_flower_ships_are_looked_at():
    assert {*MADE, *REFUSED, "Result", "Strategy"} == set(shipped.__all__)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_is_refused_by_name(name):
    with pytest.raises(InputError, match=f"clients = {name}: cannot run under SAFARI"):
        SafariStrategy(1.0, clients=REFUSED[name]())


@pytest.mark.parametrize("name", MADE)
def test_with_q_one_it_is_what_flower_runs(name):
    np.random.seed(3)
    stock = MADE[name]().start(grid_for(name), start(), num_rounds=3)
    np.random.seed(3)
    ours = safari(name, q=1.0, norm_bound=None).start(grid_for(name), start(), num_rounds=3)
    for array, other in zip(stock.arrays.values(), ours.arrays.values(), strict=True):
        np.testing.assert_allclose(other.numpy(), array.numpy(), atol=2e-6)


@pytest.mark.parametrize("name", MADE)
def test_a_restart_is_not_noticed(name, tmp_path):
    def run(folder, rounds):
        """Every round has noise of its own, whoever draws it."""
        made = safari(name, checkpoint=folder)
        seeded = made.aggregate_train

        def aggregate(number, replies):
            np.random.seed(number)
            return seeded(number, replies)

        made.aggregate_train = aggregate
        return numpy_arrays(made.start(grid_for(name), start(), num_rounds=rounds).arrays), made

    whole, made = run(tmp_path / "whole", ROUNDS)
    assert {"client", "server"} == set(made.journal.history()["kind"])
    assert made.journal.history()["kind"].to_list()[:5].count("client") >= 2
    run(tmp_path / "cut", 5)
    again, _ = run(tmp_path / "cut", ROUNDS)
    for key, array in whole.items():
        np.testing.assert_array_equal(again[key], array)


def test_server_steps_do_not_enter_the_momentum_of_fedavgm():
    """The change that the server made in between is no update of the clients'."""
    clients = MADE["FedAvgM"]()
    made = SafariStrategy(0.5, server_step, clients=clients, fleet=7, start_deadline=0.0)
    made.start(LocalGrid(make_app(), nodes(7)), start(), num_rounds=ROUNDS)
    kinds = made.journal.history()["kind"].to_list()
    assert "client,server,server,client" in ",".join(kinds)
    arrays, momentum = {name: array.numpy() for name, array in start().items()}, None
    for number, kind in enumerate(kinds, 1):
        if kind == "server":
            arrays = server_step(arrays, number)
            continue
        update = {key: array - (array + (3.0 - array) / 2) for key, array in arrays.items()}
        momentum = update if momentum is None else {k: 0.9 * momentum[k] + update[k] for k in update}
        arrays = {key: array - 0.5 * momentum[key] for key, array in arrays.items()}
    for key, array in zip(arrays, clients.momentum_vector, strict=True):
        np.testing.assert_allclose(array, momentum[key], rtol=1e-4)


def restarted_with_other_settings(folder):
    """Three rounds with little noise and q = 0.8, then two more with much and q = 0.5."""

    def run(rounds, noise, q):
        private = around(
            shipped.DifferentialPrivacyServerSideFixedClipping, noise_multiplier=noise, clipping_norm=2.0
        )
        made = SafariStrategy(q, server_step, clients=private, fleet=7, start_deadline=0.0, checkpoint=folder)
        made.start(LocalGrid(make_app(), nodes(7)), start(), num_rounds=rounds)
        return private, made

    run(3, 0.01, 0.8)
    return run(5, 1.0, 0.5)


def test_the_noise_after_a_restart_is_what_the_operator_set(tmp_path):
    private, made = restarted_with_other_settings(tmp_path / "state")
    assert private.noise_multiplier == 1.0
    assert sum(made.clients.privacy.releases.values()) == made.journal.averaged


def test_a_setting_that_changed_is_named_in_the_spec_and_in_the_log(tmp_path):
    _, made = restarted_with_other_settings(tmp_path / "state")
    spec = (tmp_path / "state" / "spec.toml").read_text()
    assert tomllib.loads(spec)["algorithm"]["q"] == 0.5
    assert tomllib.loads(spec)["algorithm"]["clients"]["noise_multiplier"] == 1.0
    assert "# from round 4: algorithm.q was 0.8 and is 0.5" in spec
    events = made.journal.happenings().filter(pl.col("event") == "changed")
    assert "algorithm.clients.noise_multiplier was 0.01 and is 1.0" in events["detail"].to_list()


@pytest.mark.parametrize("name", ["FedProx", "FedAdam"])
def test_no_setting_of_a_strategy_is_restored(name, tmp_path):
    setting = {"FedProx": "proximal_mu", "FedAdam": "eta"}[name]
    safari(name, checkpoint=tmp_path / "state").start(grid_for(name), start(), num_rounds=3)
    clients = getattr(shipped, name)(fraction_evaluate=0.0, **{setting: 0.7})
    made = SafariStrategy(
        0.6, server_step, clients=clients, fleet=7, start_deadline=0.0, checkpoint=tmp_path / "state"
    )
    made.start(grid_for(name), start(), num_rounds=5)
    assert getattr(clients, setting) == 0.7
    if name == "FedAdam":
        assert clients.m_t is not None


def test_another_strategy_on_an_old_checkpoint_is_refused_in_one_line(tmp_path):
    state = tmp_path / "state"
    safari("FedAdam", checkpoint=state).start(grid_for("FedAdam"), start(), num_rounds=3)
    before = (state / "summary.json").read_bytes()
    for name in ("FedAvg", "DifferentialPrivacyServerSideFixedClipping"):
        with pytest.raises(InputError, match=r"clients = .*begun with FedAdam; choose another") as caught:
            safari(name, checkpoint=state).start(grid_for(name), start(), num_rounds=5)
        said = str(caught.value)
        assert "\n" not in said
        assert said.count("(") == said.count(")")
        assert (state / "summary.json").read_bytes() == before


class Counting(shipped.FedAvg):
    """A user's own strategy: it counts, halves a rate, and holds what cannot be saved."""

    def __init__(self, rate=1.0):
        super().__init__(fraction_evaluate=0.0)
        self.rate, self.rounds, self.double = rate, 0, 2 * rate
        self.seen, self.tool = [], object()

    def aggregate_train(self, server_round, replies):
        self.rounds += 1
        self.rate /= 2
        self.seen.append(server_round)
        return super().aggregate_train(server_round, replies)


def test_what_a_strategy_of_ones_own_learnt_is_kept_and_what_cannot_be_is_said(tmp_path, caplog):
    def run(rounds, rate=1.0):
        clients = Counting(rate)
        SafariStrategy(
            1.0, clients=clients, fleet=3, start_deadline=0.0, checkpoint=tmp_path / "state"
        ).start(LocalGrid(make_app(), nodes(3)), start(), num_rounds=rounds)
        return clients

    run(2)
    again = run(4)
    assert (again.rounds, again.rate, again.seen) == (4, 1 / 16, [1, 2, 3, 4])
    changed = run(5, rate=8.0)
    assert (changed.rounds, changed.rate, changed.double) == (5, 4.0, 16.0)
    assert "Counting.tool cannot be saved" in caplog.text
    about = sorted((tmp_path / "state" / "checkpoint").glob("round-*"))[-1] / "about.json"
    assert "double" not in json.loads(about.read_text())["clients"]["learnt"]["changed"]
