"""What every registered algorithm must hold to, alone and inside every combinator that takes it.

The cases follow from the registry: whoever adds a name is tested, and fails without a twin in
`tests/oracle`. Compiling is most of what a case takes: inside the other combinators than SAFARI a client
method is compared with its twin alone, in one run that goes through all of them.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracle
import plan
import safari
from safari.engine import Training, prepare
from safari.errors import InputError
from safari.registry import ALGORITHMS

ROUNDS, SEED = 10, 7
SIZE, SERVER_STEPS = 24, 4
PARTICIPATION = safari.Participation(excluded=3, per_round=4, dropout=0.3, availability=safari.Bernoulli(0.6))
SERVER = safari.ServerSGD(rate=0.3, steps=SERVER_STEPS, batch_size=SIZE)
CLIENT_METHODS = [name for name in ALGORITHMS if issubclass(ALGORITHMS[name], safari.ClientAlgorithm)]
COMBINATORS = {
    "safari": lambda clients: safari.Safari(clients, SERVER, q=0.6),
    "elsewhere": lambda clients: safari.Stages(
        safari.Then(clients, SERVER, mix=0.7),
        safari.Stages(safari.Beside(clients, SERVER), safari.Stages(SERVER, clients, rounds=7), rounds=6),
        rounds=3,
    ),
}
ALONE = list(ALGORITHMS)
INSIDE = {combinator: [f"{combinator}({name})" for name in CLIENT_METHODS] for combinator in COMBINATORS}
PRIVATE = ["safari(private)", "elsewhere(private)"]
EVERYTHING = [*ALONE, *INSIDE["safari"], PRIVATE[0]]


def short(algorithm):
    """The algorithm with steps and batches that are quick to train, its own settings as they are."""
    if isinstance(algorithm, safari.ClientAlgorithm):
        return replace(algorithm, local_rate=0.2, batch_size=SIZE)
    if isinstance(algorithm, safari.ServerSGD):
        return replace(algorithm, rate=0.3, steps=SERVER_STEPS, batch_size=SIZE)
    parts = {
        name: short(value) for name, value in vars(algorithm).items() if isinstance(value, safari.Algorithm)
    }
    parts |= {"rounds": 4} if hasattr(algorithm, "rounds") else {}
    return replace(algorithm, **parts)


def algorithm_of(case):
    combinator, _, rest = case.partition("(")
    if not rest:
        return short(ALGORITHMS[case]())
    method = short(ALGORITHMS[rest.removesuffix(")")]())
    if isinstance(method, safari.ClientAlgorithm):
        method = replace(method, weights="size")
    return COMBINATORS[combinator](method)


@cache
def federation():
    """Clients of very different sizes, so that a method that forgets their steps or samples is found out."""
    unequal = safari.Dirichlet(clients=10, alpha=0.5, size_skew=0.9)
    found = safari.federate("digits", unequal, safari.ServerSet(40))
    counts = np.asarray(found.clients.count)
    assert counts.min() < SIZE < 8 * SIZE < counts.max()
    return found


def prepared(algorithm, seed=SEED):
    parts = (safari.Logistic(), PARTICIPATION, ROUNDS, seed, 1, "float32")
    return prepare(federation(), algorithm, *parts)


@dataclass
class Trained:
    run: object
    result: safari.Result
    carry: object


def trained(run, stretches=(ROUNDS,)):
    training = Training(run, devices=jax.devices()[:1])
    for stretch in stretches:
        training.pace.took(1e-9, 1)
        training.advance(most=stretch)
    return training


@cache
def whole(case):
    if "private" in case:
        pytest.importorskip("dp_accounting")
    training = trained(prepared(algorithm_of(case)))
    assert training.finished
    return Trained(training.run, training.result(), training.carry)


def assert_same_bits(left, right):
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", ALONE)
def test_it_has_a_twin(name):
    assert name in oracle.TWINS, f"{name} has no twin: write one in tests/oracle and list it in TWINS"


@pytest.mark.parametrize("name", ALONE)
def test_it_says_what_it_is_and_names_its_paper(name):
    cls = ALGORITHMS[name]
    assert isinstance(vars(cls).get("about"), safari.About), f"{name} has no `about = About(...)`"
    paper = cls.about.paper
    assert cls.about.rates == cls.needs_rates
    if paper is not None:
        assert paper.authors in cls.__doc__
        assert str(paper.year) in cls.__doc__ or paper.venue in cls.__doc__


@pytest.mark.parametrize("name", ALONE)
def test_it_is_refused_without_a_server_set_if_it_says_that_it_needs_one(name):
    if name == "private":
        pytest.importorskip("dp_accounting")
    bare = safari.federate("digits", safari.IID(clients=10), safari.ServerSet(0))
    algorithm, needs = short(ALGORITHMS[name]()), ALGORITHMS[name].about.server_set
    with pytest.raises(InputError, match="server") if needs else nullcontext():
        algorithm.bind(bare, SEED)


@pytest.mark.parametrize("name", ALONE)
def test_it_costs_what_it_says(name):
    """Models up and down as the history has them, memory as the state has it, counters left out."""
    found, about = whole(name), ALGORITHMS[name].about
    model = 4 * (10 * 64 + 10)
    for row in found.result.history.iter_rows(named=True):
        if row["kind"] in ("client", "both"):
            assert row["bytes_down"] == pytest.approx(about.down * len(row["cohort"]) * model)
            assert row["bytes_up"] == pytest.approx(about.up * len(row["reported"]) * model)
    numbers = sum(leaf.size for leaf in jax.tree.leaves(found.carry.state))
    memory = about.server_memory + federation().size * (about.for_each_client + about.client_memory)
    assert 4 * numbers / model == pytest.approx(1 + memory, abs=0.1)


def test_every_twin_has_an_algorithm():
    assert set(oracle.TWINS) <= set(ALGORITHMS)


def test_inside_the_other_combinators_clients_train_in_each_of_them():
    """Rounds 0 to 2 are of `Then`, 3 to 5 of `Beside`, 6 of the server, all later ones of the clients."""
    kinds = whole("elsewhere(fedavg)").result.history["kind"].to_list()
    assert "both" in kinds[:3]
    assert "both" in kinds[3:6]
    assert kinds[6] == "server"
    assert "client" in kinds[7:]


@pytest.mark.parametrize("case", [*EVERYTHING, *INSIDE["elsewhere"], PRIVATE[1]])
def test_it_equals_its_numpy_twin(case):
    found = whole(case)
    twin = oracle.twin_of(found.run.algorithm, plan.world_of(found.run))
    start = np.zeros((10, 65))
    last, delivered, kinds = oracle.train(twin, start, plan.turns_of(found.run, twin))
    assert found.result.history["kind"].to_list() == kinds
    assert np.abs(last).max() > 0.05
    np.testing.assert_allclose(plan.as_matrix(found.result.params_last), last, atol=2e-5)
    np.testing.assert_allclose(plan.as_matrix(found.result.params), delivered, atol=2e-5)


@pytest.mark.parametrize("case", EVERYTHING)
def test_cut_and_resumed_it_is_the_whole_bit_for_bit(case):
    found = whole(case)
    first = trained(found.run, (1, 4))
    second = Training(found.run, devices=jax.devices()[:1])
    second.restore(first.carries(), first.histories(), first.done)
    while not second.finished:
        second.advance()
    assert_same_bits(second.carry, found.carry)
    assert second.history.equals(found.result.history)


@pytest.mark.parametrize("case", EVERYTHING)
def test_its_bytes_follow_from_what_it_sends(case):
    """A model down and up for everyone asked and answering, and as many more as the method says."""
    found = whole(case)
    clients = [part for part in found.run.algorithm.parts() if isinstance(part, safari.ClientAlgorithm)]
    model = 4 * (10 * 64 + 10)
    down = [sent_beside_the_model(part, found) for part in clients]
    for row in found.result.history.iter_rows(named=True):
        asked, answered = len(row["cohort"]), len(row["reported"])
        assert asked or row["kind"] not in ("client", "both")
        if row["kind"] == "server" and not asked:
            assert (row["bytes_down"], row["bytes_up"]) == (0, 0)
        else:
            assert row["bytes_down"] == asked * model * (1 + down[0])
            assert row["bytes_up"] == answered * model * clients[0].models_up


def sent_beside_the_model(clients, found):
    params, task = found.result.params, found.run.task
    availability, number = found.carry.availability, jnp.int32(0)

    def sent():
        turn = safari.engine.draw_turn(found.run, availability, number)[2]
        return clients.broadcast(clients.init(params, task), task, turn)

    numbers = [sum(leaf.size for leaf in jax.tree.leaves(tree)) for tree in (jax.eval_shape(sent), params)]
    return numbers[0] / numbers[1]


@pytest.mark.parametrize("case", [*ALONE, "safari(fedavg)", "safari(scaffold)"])
def test_stacked_with_another_seed_it_is_what_it_is_alone(case):
    found = whole(case)
    other = prepared(algorithm_of(case), seed=SEED + 1)
    same_shape = jax.tree.structure(other) == jax.tree.structure(found.run)
    assert same_shape
    together = Training([found.run, other])
    while not together.finished:
        together.advance()
    result = together.results()[0]
    for column in ("kind", "cohort", "reported", "bytes_up", "bytes_down"):
        assert result.history[column].to_list() == found.result.history[column].to_list()
    for a, b in zip(*map(jax.tree.leaves, (result.params_last, found.result.params_last)), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


def runs_on_flower(run):
    """Client methods, alone or inside SAFARI, whose clients remember nothing and report a model."""
    clients = run.algorithm.clients if type(run.algorithm) is safari.Safari else run.algorithm
    if not isinstance(clients, safari.ClientAlgorithm) or clients.models_up != 1:
        return False
    params = {"weight": jnp.zeros(3)}
    server, own = clients.memory(params, run.task)
    chooses = clients.prefer(safari.ClientState(params, server, None), jnp.int32(0)) is not None
    return own is None and not clients.needs_rates and not chooses


@pytest.mark.parametrize("case", [*ALONE, "safari(fedavg)", "safari(scaffold)"])
def test_flower_runs_it_as_what_it_is_or_refuses_it_in_one_line(case):
    pytest.importorskip("flwr")
    from safari.flower.spec_job import Deployed, End

    found = whole(case)
    if not runs_on_flower(found.run):
        with pytest.raises(InputError, match="cannot run on Flower"):
            Deployed(found.run, case)
        return
    deployed = Deployed(found.run, case)
    number = found.result.history["kind"].to_list().index("client")
    before = trained(found.run, (1,) * number) if number else Training(found.run, devices=jax.devices()[:1])
    clients = before.carry.state if isinstance(found.run.algorithm, safari.ClientAlgorithm) else None
    state = clients if clients is not None else before.carry.state.parts.clients
    arrays = deployed.arrays(state.params)
    sent = deployed.broadcast(arrays, state.server_memory, number + 1)
    who = found.result.history["reported"][number].to_list()
    held = np.asarray(found.run.task.federation.clients.count)
    ends = [
        End(client, deployed.train(arrays, sent, client, number + 1), int(held[client])) for client in who
    ]
    after, _ = deployed.absorb(arrays, state.server_memory, ends, number + 1)
    one_more = trained(found.run, (1,) * (number + 1)).carry.state.params
    for a, b in zip(jax.tree.leaves(deployed.params(after)), jax.tree.leaves(one_more), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_data_sharing_hands_every_client_its_own_draw_of_the_servers_samples():
    plain, shared = federation(), whole("data-sharing").run.task.federation
    server, drawn = set(plain.held_by(None).tolist()), []
    for client in range(plain.size):
        own, now = plain.held_by(client), shared.held_by(client)
        np.testing.assert_array_equal(now[: len(own)], own)
        handed = now[len(own) :]
        assert len(set(handed.tolist())) == len(handed) == round(0.5 * len(server))
        assert set(handed.tolist()) <= server
        drawn.append(frozenset(handed.tolist()))
    assert len(set(drawn)) > 1
    np.testing.assert_array_equal(shared.held_by(None), plain.held_by(None))
