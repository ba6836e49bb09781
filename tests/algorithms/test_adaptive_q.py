"""AdaptiveQ: what it knows before a round, and what it makes of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.algorithms.client import Reports
from safari.algorithms.q_rules import convex_rule, rule_a, rule_b, rule_c, rule_c_from_bias
from safari.data.federation import Shard
from safari.engine import prepare, start
from safari.engine.run import draw_turn, initial_params
from safari.engine.training import Training
from safari.errors import InputError
from safari.experiment.spec import complete
from safari.participation import Cohort

MISSING = safari.Participation(excluded=4, per_round=5)
CLIENTS, SERVER = safari.FedAvg(batch_size=20), safari.ServerSGD(rate=0.1, steps=6, batch_size=25)


def prepared(digits, q, rounds=30, participation=MISSING, seed=0):
    algorithm = safari.Safari(CLIENTS, SERVER, q)
    return prepare(digits, algorithm, safari.Logistic(), participation, rounds, seed, 1, "float32")


def finished(run):
    training = Training(run)
    while not training.finished:
        training.advance()
    return training


def trained(digits, q, **how):
    return finished(prepared(digits, q, **how))


def test_rules_by_hand():
    assert rule_a(1.0, 1.0, 0.0, 0.1) == pytest.approx(1 / 5)
    assert rule_b(1.0, 1.0, 0.0, 0.1) == pytest.approx(1 / 4)
    assert rule_b(8.0, 1.0, 0.0, 0.1) == 1.0
    assert rule_c(1.0, 1.0, 1.0, 0.0, 0.1) == 1.0
    assert rule_c(1.0, 0.0, 1.0, 0.0, 0.1) == pytest.approx(0.5 / (1 + 0.25))
    assert rule_c_from_bias(1.0, 1.0, 0.0, 0.1) == rule_c(1.0, 0.0, 4.0, 0.0, 0.1)
    assert convex_rule(4.0, 1.0, 2.0, 1.0) == pytest.approx(2 / 16)
    assert convex_rule(1e6, 1.0, 2.0, 1.0) == 1.0


def test_traced_rules_equal_plain_ones():
    for rule in (rule_a, rule_b, rule_c_from_bias, convex_rule):
        for gradient, bias in ((0.3, 1.0), (9.0, 1.0), (0.0, 1.0), (1.0, 0.0)):
            plain = rule(gradient, bias, 0.1, 0.05)
            assert float(jax.jit(rule)(gradient, bias, 0.1, 0.05)) == pytest.approx(plain, rel=1e-5)


def test_q_follows_the_bias_and_is_in_the_history(digits):
    history = trained(digits, safari.AdaptiveQ()).history
    q = history["q"].to_numpy()
    assert history["kind"].to_list()[:2] == ["server", "client"]
    assert q[0] == 0.0
    assert q[1] == 1.0
    assert np.all((q >= 0) & (q <= 1))
    assert q[-10:].mean() < 0.5


class Contradicting(safari.AdaptiveQ):
    """Its halves disagree: the estimate of the squared gradient is below 0."""

    def halves(self, task, params, key):
        ones = jax.tree.map(jnp.ones_like, params)
        return ones, jax.tree.map(jnp.negative, ones)


@pytest.mark.parametrize("rule", ["B", "C"])
def test_where_no_gradient_is_seen_the_server_goes_on(digits, rule):
    history = trained(digits, Contradicting(rule), rounds=8).history
    assert history["kind"].to_list() == ["server", "client", *["server"] * 6]
    assert history["q"].to_list()[2:] == [0.0] * 6


def test_without_missing_clients_q_is_larger():
    everyone = safari.Participation(per_round=10)
    by_class, iid = (
        safari.federate("digits", partition(samples_per_client=100), safari.ServerSet(300))
        for partition in (safari.Classes, safari.IID)
    )
    missing = trained(by_class, safari.AdaptiveQ(forget=0.9)).history["q"][5:].mean()
    complete_ = trained(iid, safari.AdaptiveQ(forget=0.9), participation=everyone).history["q"][5:].mean()
    assert complete_ > 1.5 * missing


def test_estimation_does_not_touch_what_a_fixed_q_would_draw(digits):
    """Kept at 0.5 from both sides, an adaptive q is the fixed one after its first round."""
    pinned = trained(digits, safari.AdaptiveQ(least=0.5, most=0.5)).history
    fixed = trained(digits, 0.5).history
    assert pinned["kind"].to_list()[1:] == fixed["kind"].to_list()[1:]
    assert pinned["cohort"].to_list()[1:] == fixed["cohort"].to_list()[1:]


def test_the_estimate_of_the_squared_gradient_is_unbiased(digits):
    run = prepared(digits, safari.AdaptiveQ(batch_size=20, holdout=0.0))
    carry = start(run)
    task, chooser = run.task, run.algorithm.q
    shard = task.federation.server
    rows = task.federation.gather(task.federation.samples[shard.start + jnp.arange(50)])

    def slope(weight):
        return jax.grad(task.loss)(carry.state.params, task.federation.batch(rows, weight, jax.random.key(0)))

    def flat(tree):
        return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])

    each = np.stack([flat(slope(jnp.zeros(50).at[i].set(1.0))) for i in range(50)])
    spread = each.var(axis=0, ddof=1).sum()
    expected = np.sum(each.mean(axis=0) ** 2) - spread / 50
    keys = jax.random.split(jax.random.key(1), 4000)

    def product(key):
        a, b = chooser.halves(task, carry.state.params, key)
        return sum(jnp.sum(x * y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))

    found = np.asarray(jax.lax.map(jax.jit(product), keys))
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(len(found))


def test_adaptive_runs_stack_and_are_cut_like_any_other(digits):
    runs = [prepared(digits, safari.AdaptiveQ(), seed=seed) for seed in (0, 1)]
    together = Training(runs)
    while not together.finished:
        together.advance()
    alone = trained(digits, safari.AdaptiveQ(), seed=1).history
    np.testing.assert_allclose(together.histories()[1]["q"], alone["q"], atol=1e-4)
    assert together.histories()[1]["kind"].to_list() == alone["kind"].to_list()


def test_it_has_its_keys_in_a_spec():
    plain = complete({"algorithm": {"q": "adaptive"}})
    assert plain.tables["algorithm"]["q"]["rule"] == "B"
    chosen = complete({"algorithm": {"q": {"rule": "C", "forget": 0.9}}})
    assert chosen.algorithm().q == safari.AdaptiveQ("C", forget=0.9)
    assert complete({"algorithm": {"q": 0.3}}).tables["algorithm"]["q"] == 0.3


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"rule": "D"}, "algorithm.q.rule"),
        ({"rule": "A"}, "algorithm.q.dissimilarity"),
        ({"rule": "convex"}, "algorithm.q.smoothness"),
        ({"least": 0.9, "most": 0.1}, "algorithm.q.least"),
        ({"forgets": 1.0}, "algorithm.q.forgets"),
        ({"batch_size": 1}, "algorithm.q.batch_size"),
    ],
)
def test_wrong_keys_are_named(wrong, key):
    def build():
        spec = complete({"algorithm": {"q": wrong}})
        return spec.algorithm()

    with pytest.raises(InputError) as caught:
        build()
    assert caught.value.key == key


def test_fixed_q_stands_in_the_history_and_fedavg_has_none(digits):
    assert set(trained(digits, 0.5, rounds=3).history["q"]) == {0.5}
    alone = safari.train(digits, CLIENTS, rounds=2)
    assert alone.history["q"].to_list() == [None, None]


def test_what_is_held_out_is_never_trained_on(digits):
    """Other samples in its place change nothing; other samples in place of the rest do."""
    chooser = safari.AdaptiveQ(least=0.5, most=0.5, holdout=0.4)
    kept, held = chooser.shards(digits.server)
    assert (int(kept.count), int(held.count)) == (30, 20)
    assert int(held.start) == int(kept.start) + 30
    run = prepared(digits, chooser)
    samples = run.task.federation.samples
    as_it_is, held_changed, kept_changed = (
        finished(eqx.tree_at(lambda run: run.task.federation.samples, run, rows)).carry.state.params["weight"]
        for rows in (samples, changed(samples, held), changed(samples, kept))
    )
    np.testing.assert_array_equal(held_changed, as_it_is)
    assert not np.allclose(kept_changed, as_it_is, atol=1e-3)


def changed(samples: jax.Array, shard: Shard) -> jax.Array:
    places = slice(int(shard.start), int(shard.start) + int(shard.count))
    return samples.at[places].set(samples[0])


def test_a_server_set_too_small_to_hold_out_is_refused():
    tiny = safari.federate("digits", safari.Classes(samples_per_client=100), safari.ServerSet(2))
    with pytest.raises(InputError, match="holdout"):
        prepared(tiny, safari.AdaptiveQ())


@pytest.mark.parametrize(
    "clients",
    [safari.FedAdam(batch_size=30), safari.FedOpt(batch_size=30, optimizer="adagrad", global_rate=0.5)],
)
def test_it_looks_at_the_clients_gradient_and_not_at_what_an_optimiser_makes_of_it(digits, clients):
    """After a server round and a client round it knows the same of the clients' bias."""

    def bias_after_two_rounds(clients):
        algorithm = safari.Safari(clients, safari.ServerSGD(steps=3), q=safari.AdaptiveQ(least=0.0))
        missing = safari.Participation(excluded=6)
        run = prepare(digits, algorithm, safari.Logistic(), missing, 2, 5, 1, "float32")
        training = Training(run)
        while not training.finished:
            training.advance(1)
        assert training.history["kind"].to_list() == ["server", "client"]
        return float(training.carry.state.known.bias)

    plain = bias_after_two_rounds(safari.FedAvg(batch_size=30))
    assert plain > 0
    assert bias_after_two_rounds(clients) == pytest.approx(plain, rel=1e-4)


def test_the_largest_bias_fades_as_it_is_told(digits):
    nothing = {"w": jnp.zeros(2)}
    begun = safari.AdaptiveQ().start(nothing)
    known = eqx.tree_at(lambda known: known.bias, begun, jnp.float32(2.0))
    for forget, bias in ((1.0, 2.0), (0.25, 0.5)):
        learnt = safari.AdaptiveQ(forget=forget).learn(known, (nothing, nothing), 0.1, None)
        assert float(learnt.bias) == pytest.approx(bias)


@pytest.mark.parametrize("global_rate", [1.0, 0.25])
def test_the_clients_gradient_is_theirs_whatever_the_server_does_with_it(digits, global_rate):
    """One step on all samples: the gradient is known. Clients that take more steps do not count for more."""
    clients = safari.FedAvg(local_rate=0.2, global_rate=global_rate, local_steps=1, batch_size=120)
    run = prepare(digits, clients, safari.Logistic(), safari.Participation(), 1, 0, 1, "float32")
    state = run.algorithm.init(initial_params(run), run.task)

    @jax.jit
    def both(turn):
        found = run.algorithm.mean_gradient(run.algorithm.collect(state, run.task, turn))
        of_client = lambda number: run.task.gradient(state.params, digits.client(number))  # noqa: E731
        return found, jax.lax.map(of_client, jnp.arange(10))

    found, each = both(draw_turn(run, None, jnp.int32(0))[2])
    np.testing.assert_allclose(found["weight"], each["weight"].mean(axis=0), atol=1e-5)


def test_clients_that_take_more_steps_do_not_count_for_more():
    gradients = jnp.array([[1.0, 0.0], [0.0, 2.0]])
    steps, clients = jnp.array([1, 4]), safari.FedAvg(local_rate=0.5)
    cohort = Cohort(jnp.arange(2), jnp.ones(2, bool), jnp.ones(2, bool))
    moved = {"w": -0.5 * steps[:, None] * gradients}
    reports = Reports(cohort, moved, None, steps, jnp.array([10, 40]), jnp.ones(2))
    np.testing.assert_allclose(clients.mean_gradient(reports)["w"], [0.5, 1.0])
