"""Availability patterns do what their names say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import safari
from safari.randomness import Streams


def available(pattern, clients=6, rounds=400, seed=0, **keys):
    """Who could take part, a row a round."""
    roster = safari.Participation(availability=pattern, **keys).resolve(clients, seed)
    streams = Streams(seed)

    def step(state, number):
        state, mask, cohort = roster.draw(state, streams, number)
        return state, (mask, cohort)

    return jax.tree.map(np.asarray, jax.lax.scan(step, roster.init(streams), jnp.arange(rounds))[1])


def test_always_is_always():
    assert available(safari.Always())[0].all()


def test_bernoulli_rates_per_client():
    rates = (0.0, 0.1, 0.5, 0.9, 1.0, 0.3)
    mask, _ = available(safari.Bernoulli(rates), rounds=2000)
    np.testing.assert_allclose(mask.mean(axis=0), rates, atol=0.05)


def test_cyclic_groups_take_turns():
    mask, _ = available(safari.Cyclic(groups=3, length=2), rounds=12)
    assert (mask.sum(axis=1) == 2).all()
    np.testing.assert_array_equal(mask[0], mask[1])
    assert (mask[0] ^ mask[2]).any()
    np.testing.assert_array_equal(mask[:6], mask[6:])
    assert mask[:6].any(axis=0).all()


def test_diurnal_clients_follow_the_day():
    mask, _ = available(safari.Diurnal(mean=0.5, swing=0.5, period=20, spread=0.0), clients=200, rounds=20)
    expected = 0.5 + 0.5 * np.sin(2 * np.pi * np.arange(20) / 20)
    np.testing.assert_allclose(mask.mean(axis=1), expected, atol=0.12)


def test_markov_chains_linger_and_keep_their_share():
    mask, _ = available(safari.Markov(join=0.05, leave=0.15), clients=100, rounds=2000)
    assert mask.mean() == pytest.approx(0.25, abs=0.03)
    left = mask[:-1] & ~mask[1:]
    assert left.sum() / mask[:-1].sum() == pytest.approx(0.15, abs=0.01)


def test_long_tails_have_few_frequent_clients():
    mask, _ = available(safari.LongTail(exponent=1.5, least=0.02), clients=50, rounds=3000)
    rates = np.sort(mask.mean(axis=0))[::-1]
    assert rates[0] == 1
    np.testing.assert_allclose(rates[1], 2**-1.5, atol=0.04)
    assert rates[-1] == pytest.approx(0.02, abs=0.015)


def test_a_trace_is_followed_and_repeated(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("round,client\n1,0\n1,2\n3,5\n")
    mask, _ = available(safari.Trace(str(file)), rounds=6)
    expected = [{0, 2}, set(), {5}] * 2
    assert [set(np.flatnonzero(row)) for row in mask] == expected


@pytest.mark.parametrize("rounds", [1, 3, 400])
@pytest.mark.parametrize(
    "pattern",
    [
        safari.Always(),
        safari.Bernoulli((0.0, 1.0, 0.5, 0.0, 1.0, 0.0)),
        safari.Cyclic(groups=3, length=2),
        safari.Diurnal(mean=0.0, swing=0.0),
        safari.Markov(join=0.0, leave=0.5),
        safari.LongTail(),
        "trace",
    ],
    ids=lambda pattern: getattr(type(pattern), "__name__", "pattern"),
)
def test_who_cannot_come_never_does(pattern, rounds, tmp_path):
    if pattern == "trace":
        path = tmp_path / "trace.csv"
        path.write_text("round,client\n1,4\n3,2\n5,0\n")
        pattern = safari.Trace(path)
    roster = safari.Participation(excluded=[1], availability=pattern).resolve(6, 0)
    seen = available(roster.availability, rounds=rounds)[0].any(axis=0) & (np.arange(6) != 1)
    absent = roster.absent(Streams(0), rounds)
    assert 1 in absent
    assert not seen[list(absent)].any()
    by_chance = isinstance(pattern, safari.LongTail) or (
        isinstance(pattern, safari.Bernoulli) and rounds < 40
    )
    if not by_chance:
        assert absent == tuple(np.flatnonzero(~seen))


@pytest.mark.parametrize(("dropout", "absent"), [(0.9, ()), (1.0, tuple(range(6)))])
def test_who_always_drops_out_never_comes(dropout, absent):
    assert safari.Participation(dropout=dropout).resolve(6, 0).absent(Streams(0), 10) == absent


def test_excluded_clients_are_never_there_whatever_the_pattern():
    for pattern in (safari.Always(), safari.Bernoulli(0.9), safari.Markov(), safari.Diurnal()):
        mask, cohorts = available(pattern, excluded=(1, 4), per_round=2)
        assert not mask[:, [1, 4]].any()
        assert not np.isin(cohorts.clients[cohorts.picked], [1, 4]).any()
        assert mask.any()


def test_the_excluded_set_has_its_own_seed():
    def excluded(seed, own):
        roster = safari.Participation(excluded=8, seed=own).resolve(20, seed)
        return set(np.flatnonzero(np.asarray(roster.excluded)))

    assert excluded(0, 5) == excluded(1, 5) != excluded(0, 6)
    assert excluded(0, None) != excluded(1, None)
    assert len(excluded(0, None)) == 8


@pytest.mark.parametrize(("join", "leave"), [(0.05, 0.15), (0.02, 0.002)])
def test_markov_chains_start_as_they_go_on(join, leave):
    """In their stationary state: the share of the first round is that of all."""
    mask, _ = available(safari.Markov(join=join, leave=leave), clients=4000, rounds=1)
    assert mask.mean() == pytest.approx(join / (join + leave), abs=0.03)


def test_every_round_has_another_cohort():
    _, cohorts = available(safari.Always(), clients=20, rounds=50, per_round=5)
    assert len({tuple(clients) for clients in cohorts.clients}) > 45


def test_every_client_has_a_coin_of_its_own():
    mask, _ = available(safari.Bernoulli(0.5), clients=20, rounds=50)
    assert not (mask.all(axis=1) | ~mask.any(axis=1)).any()


@pytest.mark.parametrize(
    "pattern",
    [
        safari.Always(),
        safari.Bernoulli((0.1, 0.9, 0.5, 0.2, 1.0, 0.6)),
        safari.Cyclic(groups=3, length=2),
        safari.Diurnal(mean=0.4, swing=0.3, period=10),
        safari.LongTail(least=0.1),
        safari.Markov(join=0.2, leave=0.4),
    ],
    ids=lambda pattern: type(pattern).__name__,
)
def test_rates_are_how_often_clients_report(pattern):
    """What is counted with one over its rate comes to one on average: only then is the oracle unbiased."""
    participation = safari.Participation(availability=pattern, excluded=[5], per_round=2, dropout=0.2)
    roster, streams = participation.resolve(6, 0), Streams(0)

    def step(state, number):
        state, there, cohort = roster.draw(state, streams, number)
        rates = roster.rates(state, number, there)
        counted = jnp.zeros(6).at[cohort.clients].add(cohort.reported / rates[cohort.clients])
        return state, (counted, cohort.reported.sum(), rates, roster.expected(state, number))

    rounds = jnp.arange(6000)
    counted, reports, rates, expected = jax.lax.scan(step, roster.init(streams), rounds)[1]
    np.testing.assert_allclose(np.asarray(counted).mean(axis=0), [1, 1, 1, 1, 1, 0], atol=0.15)
    assert rates[:, 5].max() == 0
    assert reports.mean() <= expected.mean() + 0.05


def test_a_trace_knows_its_rates(tmp_path):
    (tmp_path / "trace.csv").write_text("round,client\n1,0\n2,0\n2,1\n4,1\n")
    trace = safari.Trace(tmp_path / "trace.csv")
    assert trace.rates(trace.init(None, 3), 0, 3).tolist() == [0.5, 0.5, 0.0]


def test_a_pattern_that_does_not_know_its_rates_is_refused_by_methods_that_must(digits):
    class Mine(safari.Availability):
        def step(self, state, key, round, clients):
            return state, jnp.ones(clients, bool)

    participation = safari.Participation(availability=Mine())
    with pytest.raises(
        safari.InputError, match="does not say how often clients come, which KnownP must know"
    ):
        safari.train(digits, safari.Safari(safari.KnownP()), participation=participation, rounds=1)
