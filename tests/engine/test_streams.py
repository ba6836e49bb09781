"""Every random draw has a stream of its own: two purposes never share one."""

import ast
from collections import Counter
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.algorithms.adaptive_q import ESTIMATION
from safari.engine import prepare
from safari.engine.diagnostics import Observer
from safari.engine.run import draw_turn, initial_params
from safari.randomness import Streams

SOURCE = Path(safari.__file__).parent
ROUNDS = 40
DRAWN_FROM = {
    "initialisation": {"params"},
    "availability": {"at the start", "available", "cohort", "reported"},
    "sampling": {"cohort", "reported"},
    "dropout": {"reported"},
    "coin": {"coin"},
    "client_batches": {"client batches"},
    "server_batches": {"server batches"},
    "estimation": {"estimates"},
    "methods": {"methods"},
}
"""What comes out otherwise, and nothing else does, if a stream is another one. A cohort is picked among those
who are there, and those who report are among the cohort."""


@pytest.fixture(scope="module")
def run(digits):
    clients = safari.FedAvg(batch_size=10, local_steps=2)
    algorithm = safari.Safari(clients, safari.ServerSGD(steps=2, batch_size=10), q=0.5)
    pattern = safari.Markov(join=0.4, leave=0.4)
    who = safari.Participation(excluded=2, per_round=3, availability=pattern, dropout=0.4)
    return prepare(digits, algorithm, safari.MLP((4,)), who, ROUNDS, 3, 1, "float32")


@pytest.fixture(scope="module")
def draws(run):
    """All that is drawn for a run, by the streams that it has."""

    def turns(run):
        def step(state, number):
            state, available, turn = draw_turn(run, state, number)
            keys = [jax.random.key_data(key) for key in (turn.client_batches, turn.server_batches)]
            chosen = jnp.where(turn.cohort.picked, turn.cohort.clients, -1)
            reported = jnp.where(turn.cohort.reported, turn.cohort.clients, -1)
            methods = jax.random.key_data(turn.stream("anything"))
            return state, (available, chosen, reported, turn.coin, *keys, methods)

        return jax.lax.scan(step, run.roster.init(run.streams), jnp.arange(ROUNDS))[1]

    names = ("available", "cohort", "reported", "coin", "client batches", "server batches", "methods")
    static = eqx.partition(run, eqx.is_array)[1]
    drawn = jax.jit(lambda dynamic: turns(eqx.combine(dynamic, static)))
    params = initial_params(run)
    look = Observer(run, params)._look
    nobody = jax.tree.map(
        jnp.zeros_like, draw_turn(run, run.roster.init(run.streams), jnp.int32(0))[2].cohort
    )

    def of(run):
        now = eqx.filter(run, eqx.is_array)
        found = dict(zip(names, drawn(now), strict=True))
        found["params"] = initial_params(run)
        found["at the start"] = run.roster.init(run.streams)
        seen = look(now, params, nobody, jnp.int32(0))
        found["estimates"] = (seen.loss, seen.gradient)
        return {name: np.concatenate([np.ravel(x) for x in jax.tree.leaves(v)]) for name, v in found.items()}

    return of


@pytest.mark.parametrize("stream", DRAWN_FROM)
def test_each_draw_depends_on_its_stream_and_on_no_other(run, draws, stream):
    assert set(DRAWN_FROM) == set(vars(run.streams))
    another = getattr(Streams(4), stream)
    before, after = draws(run), draws(eqx.tree_at(lambda run: getattr(run.streams, stream), run, another))
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == DRAWN_FROM[stream]


def test_the_coin_is_uniform_and_tossed_anew_in_every_round(run, draws):
    coins = draws(run)["coin"]
    assert len(set(coins.tolist())) == ROUNDS
    assert 0.3 < coins.mean() < 0.7
    assert ((coins >= 0) & (coins < 1)).all()


def test_clients_train_on_their_batches_and_the_server_on_its_own(digits):
    """A round of one side does not look at the keys of the other's batches."""
    parts = {
        "client_batches": safari.FedAvg(batch_size=10, local_steps=2),
        "server_batches": safari.ServerSGD(steps=2, batch_size=10),
    }
    for mine, part in parts.items():
        run = prepare(digits, part, safari.Logistic(), safari.Participation(), 1, 0, 1, "float32")
        turn = draw_turn(run, None, jnp.int32(0))[2]
        state = run.algorithm.init(initial_params(run), run.task)
        trained = jax.jit(
            lambda turn, run=run, state=state: run.algorithm.round(state, run.task, turn)[0].params
        )
        plain = trained(turn)
        for key in ("client_batches", "server_batches", "methods"):
            other = trained(replace(turn, **{key: jax.random.key(99)}))
            same = np.array_equal(plain["weight"], other["weight"])
            assert same == (key != mine), (mine, key)


def test_an_adaptive_q_estimates_from_samples_that_no_update_draws(digits):
    """From those that are held out; and where none are, in batches of its own."""
    run = prepare(digits, safari.ServerSGD(), safari.Logistic(), safari.Participation(), 1, 0, 1, "float32")
    params, key = initial_params(run), jax.random.key(5)
    kept, held = safari.AdaptiveQ(holdout=0.4, batch_size=10).shards(digits.server)
    chooser = safari.AdaptiveQ(holdout=0.4, batch_size=10)
    apart = jax.random.fold_in(key, ESTIMATION)

    @jax.jit
    def halves(shard, key):
        found = run.task.halves(params, shard, key, 10)
        return jnp.stack([found.a["weight"], found.b["weight"]])

    mine = jax.jit(lambda key: jnp.stack([half["weight"] for half in chooser.halves(run.task, params, key)]))(
        key
    )
    np.testing.assert_allclose(mine, halves(held, apart), atol=1e-7)
    for shard, other in ((kept, apart), (digits.server, apart), (held, key)):
        assert not np.allclose(mine, halves(shard, other), atol=1e-4)
    batches = run.task.federation.schedule(digits.server, key, 5, 10).samples
    own = run.task.federation.schedule(digits.server, apart, 1, 10).samples
    assert not any(np.array_equal(np.sort(own[0]), np.sort(batch)) for batch in batches)


def named_streams() -> Counter:
    """The names that the source asks for streams by, and in how many files each."""
    found: Counter = Counter()
    for path in SOURCE.rglob("*.py"):
        names = {
            call.args[-1].value
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(call, ast.Call)
            and call.args
            and isinstance(call.args[-1], ast.Constant)
            and isinstance(call.args[-1].value, str)
            and getattr(call.func, "attr", getattr(call.func, "id", "")) in ("host_stream", "stream", "named")
        }
        found.update(names - {"client"} if path.name == "trial.py" else names)
    return found


def test_no_name_of_a_stream_is_used_for_two_purposes():
    """`trial.py` goes through a client's round itself; every other name stands in one file."""
    names = named_streams()
    assert {"partition", "server set", "exclusion", "client"} <= set(names)
    assert [name for name, files in names.items() if files > 1] == []
    assert not set(names) & set(vars(Streams(0)))
