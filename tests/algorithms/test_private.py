"""Private clients: what they spend, checked by hand; what cannot be private is refused."""

import jax
import numpy as np
import pytest

from safari.errors import InputError

pytest.importorskip("dp_accounting")

from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

import safari
from test_oracle import assert_equals_the_oracle

NOISE, DELTA = 2.0, 1e-3
CLIENTS = safari.FedAvg(local_rate=0.1, local_steps=2, batch_size=16)
PRIVATE = safari.Private(CLIENTS, clip=0.3, noise=NOISE, delta=DELTA)


def train(digits, algorithm=PRIVATE, rounds=6, **participation):
    return safari.train(
        digits, algorithm, participation=safari.Participation(**participation), rounds=rounds, seed=3,
        evaluate_every=rounds,
    )  # fmt: skip


def library(relation, event, rounds):
    accountant = RdpAccountant(neighboring_relation=relation)
    accountant.compose(event, rounds)
    return accountant.get_epsilon(DELTA)


def test_a_drawn_cohort_spends_what_the_library_says_of_draws_without_replacement(digits):
    """Seven clients can come, four are drawn; neighbours differ in what a client holds: twice the clip."""
    half = safari.Safari(PRIVATE, q=0.5)
    result = train(digits, half, rounds=12, excluded=3, per_round=4, dropout=0.3)
    spent = result.history["epsilon"].to_list()
    rounds = (result.history["kind"] == "client").sum()
    event = dp_event.SampledWithoutReplacementDpEvent(7, 4, dp_event.GaussianDpEvent(NOISE / 2))
    assert 0 < rounds < 12
    by_hand = library(NeighboringRelation.REPLACE_ONE, event, rounds)
    assert result.summary()["epsilon"] == spent[-1] == pytest.approx(by_hand, rel=0.01)
    assert result.summary()["delta"] == pytest.approx(DELTA)
    assert result.summary()["neighbours"] == "replace"
    for before, kind, after in zip([0.0, *spent], result.history["kind"], spent, strict=False):
        assert (after > before) == (kind == "client")


def test_independent_coins_are_poisson_sampling_at_the_highest_rate_of_those_who_come(digits):
    rates = (0.9, *[0.2] * 8, 0.4)
    result = train(digits, excluded=[0], availability=safari.Bernoulli(rates))
    event = dp_event.PoissonSampledDpEvent(0.4, dp_event.GaussianDpEvent(NOISE))
    by_hand = library(NeighboringRelation.ADD_OR_REMOVE_ONE, event, 6)
    assert result.summary()["epsilon"] == pytest.approx(by_hand, rel=0.01)


@pytest.mark.parametrize("pattern", [safari.Always(), safari.Markov(0.5, 0.5)])
def test_without_such_draws_nothing_amplifies(digits, pattern):
    """The Gaussian mechanism six times over, by the formula and not by the library."""
    spent = train(digits, availability=pattern).summary()["epsilon"]
    order = np.arange(1.01, 100, 0.01)
    divergence = 6 * order / (2 * NOISE**2)
    bound = divergence + np.log1p(-1 / order) - (np.log(DELTA) + np.log(order)) / (order - 1)
    assert spent == pytest.approx(bound.min(), rel=0.01)


def test_who_is_available_counts_as_known(digits):
    """A draw of four of five that are there hides less than one of four of ten."""
    result = train(digits, rounds=8, per_round=4, availability=safari.Bernoulli(0.5))
    assert result.history["available"].min() < 4
    spent = np.diff([0.0, *result.history["epsilon"]])
    everyone = result.history["available"].to_numpy() <= 4
    assert spent[everyone].min() > spent[~everyone].max() / 2


def test_delta_follows_from_the_number_of_clients(digits):
    private = safari.Private(CLIENTS, noise=NOISE)
    assert train(digits, private, rounds=1).summary()["delta"] == pytest.approx(10**-1.1)


def test_private_optimisers_inside_safari_equal_the_oracle(digits):
    clients = safari.FedAdam(local_rate=0.2, local_steps=5, batch_size=16)
    server = safari.ServerSGD(rate=0.3, steps=7, batch_size=16)
    assert_equals_the_oracle(digits, safari.Safari(safari.Private(clients, 0.1, 0.2), server, q=0.7))


def test_noise_has_its_length_even_if_nobody_reports(digits):
    """Silence would tell who was not there."""
    result = train(digits, safari.Private(CLIENTS, clip=0.3, noise=NOISE), rounds=1, per_round=4, dropout=1.0)
    assert result.history["kind"].to_list() == ["client"]
    drawn = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(result.params)])
    assert drawn.std() == pytest.approx(NOISE * 0.3, rel=0.1)


def test_every_number_of_every_round_has_noise_of_its_own(digits):
    """Where nobody reports, a round adds its noise and nothing else."""
    private = safari.Private(CLIENTS, clip=0.3, noise=NOISE)
    one, both = (train(digits, private, rounds, per_round=4, dropout=1.0).params for rounds in (1, 2))
    first, sum_of_two = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(p)]) for p in (one, both))
    assert len(np.unique(first)) == len(first)
    assert abs(np.corrcoef(first, sum_of_two - first)[0, 1]) < 0.2


def test_no_client_moves_the_model_further_than_the_clip(digits):
    still = safari.Private(CLIENTS, clip=0.01, noise=1e-6)
    params = train(digits, still, rounds=1, per_round=1).params
    length = np.sqrt(sum(np.sum(np.square(leaf)) for leaf in jax.tree.leaves(params)))
    assert length == pytest.approx(0.01, rel=1e-3)


def test_a_change_shorter_than_the_clip_counts_as_it_is(digits):
    private = safari.Private(CLIENTS, clip=100.0, noise=1e-9)
    one, other = (train(digits, clients, rounds=1, per_round=4).params for clients in (private, CLIENTS))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), one, other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: safari.Private(safari.SCAFFOLD()), "clients = SCAFFOLD: cannot be private"),
        (lambda: safari.Private(safari.FedNova()), "clients = FedNova: cannot be private"),
        (lambda: safari.Private(safari.MIFA()), "clients = MIFA: cannot be private"),
        (lambda: safari.Private(safari.FLTrust()), "clients = FLTrust: cannot be private"),
        (lambda: safari.Private(safari.FedAvg(weights="size")), "reveal the sizes"),
        (lambda: safari.Private(noise=0.0), "noise = 0.0: must be above 0"),
        (lambda: safari.Stages(safari.FedAvg(), PRIVATE), "beside the private part"),
        (lambda: safari.Stages(CLIENTS, PRIVATE), "beside the private part"),
        (lambda: safari.FedDU(PRIVATE), "beside the private part"),
    ],
)
def test_what_reveals_more_is_refused(digits, make, message):
    with pytest.raises(InputError, match=message):
        train(digits, make(), rounds=1)


def test_a_method_that_weighs_reports_itself_has_to_say_that_it_needs_only_their_sum():
    class Weighing(safari.ClientAlgorithm):
        def weigh(self, state, reports, task, turn):
            return super().weigh(state, reports, task, turn)

    with pytest.raises(InputError, match="more than the average"):
        safari.Private(Weighing())


def test_without_the_accountant_it_says_what_to_install(digits, monkeypatch):
    monkeypatch.setattr("safari.algorithms.private.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'safari-fl\[privacy\]'"):
        train(digits, rounds=1)
