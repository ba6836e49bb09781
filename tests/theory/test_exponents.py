"""What visited hypotheses show: exact constants on thresholds, and no more than they can."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safari.errors import InputError
from safari.theory import exponents
from safari.theory.generalization import Problem
from safari.theory.relations import mixture_alpha, polynomial_noise

DISTANCES = np.geomspace(1e-4, 0.5, 60)


def noise_family(power, distance):
    """Pr[h != h*] and the excess error of thresholds that are `distance` off."""
    return distance, distance ** (power + 1) / (power + 1)


def mixture_family(threshold, server, clients):
    """Excess errors under P = U[0, 1] and its mixture with U[0, 1/2], of thresholds all over."""
    t = np.linspace(0, 1, 2001)
    share = clients / (server + clients)
    p = abs(t - threshold)
    return p, share * 2 * abs(np.minimum(t, 0.5) - min(threshold, 0.5)) + (1 - share) * p


@pytest.mark.parametrize("power", [0, 0.5, 1, 2, 5])
def test_noise_exponents_of_the_exact_family_are_recovered(power):
    found = exponents.noise_exponent(*noise_family(power, DISTANCES))
    known = polynomial_noise(power)
    assert (found.alpha, found.beta) == pytest.approx((known.alpha, known.beta), rel=1e-6)
    assert found.hypotheses == len(DISTANCES)


def test_the_envelope_ignores_what_lies_below_it_and_not_what_lies_above():
    disagreement, excess = noise_family(1, DISTANCES)
    beneath = np.concatenate([disagreement, disagreement[:30] / 10])
    errors = np.concatenate([excess, excess[:30]])
    found = exponents.noise_exponent(beneath, errors)
    assert (found.alpha, found.beta) == pytest.approx((math.sqrt(2), 0.5), rel=1e-6)
    above = exponents.noise_exponent(np.append(disagreement, 0.9), np.append(excess, excess[30]))
    assert above.alpha * excess[30] ** above.beta >= 0.9 * (1 - 1e-9)


def test_noise_exponents_are_recovered_from_held_out_samples():
    rng = np.random.default_rng(0)
    x = rng.random(400_000) - 0.5
    y = rng.uniform(-1, 1, len(x)) < x
    risk = {t: np.mean((x > t) != y) for t in (0.0, *np.linspace(0.1, 0.45, 15))}
    excess = [value - risk[0.0] for t, value in risk.items() if t]
    disagreement = [np.mean((x > t) != (x > 0)) for t in risk if t]
    found = exponents.noise_exponent(disagreement, excess)
    assert found.beta == pytest.approx(0.5, abs=0.05)
    assert found.alpha == pytest.approx(math.sqrt(2), abs=0.15)


def test_a_hypothesis_that_differs_at_no_excess_error_leaves_nothing():
    found = exponents.noise_exponent([0.1, 0.2, 0.3], [0.0, 0.02, 0.05])
    assert (found.alpha, found.beta) == (0.3, 0.0)
    assert exponents.DISAGREES_FOR_FREE in found.caution


@pytest.mark.parametrize("clients", [10, 90, 900])
def test_alpha_of_a_mixture_is_the_ratio_of_its_sizes_where_clients_miss(clients):
    found = exponents.alpha_at(1.0, *mixture_family(0.75, 10, clients))
    assert found.alpha == pytest.approx(mixture_alpha(10, clients))
    assert found.hypotheses == 2001


def test_alpha_is_small_where_clients_sample_and_none_where_nothing_is_worse():
    assert exponents.alpha_at(1.0, *mixture_family(0.25, 10, 90)).alpha == pytest.approx(0.428571, abs=5e-7)
    assert exponents.alpha_at(0.5, [0.1, 0.0], [0.2, 0.0]).alpha == 0


def test_without_a_shared_minimiser_no_alpha_will_do():
    found = exponents.alpha_at(0.1, [0.0, 0.3], [0.2, 0.0])
    assert found.alpha == math.inf
    assert exponents.NO_SHARED_MINIMISER in found.caution
    assert exponents.alpha_at(0.0, [0.0, 0.3], [0.2, 0.0]).alpha == pytest.approx(0.3)
    assert exponents.largest_beta(1.0, [0.0, 0.3], [0.2, 0.0]).beta == 0
    assert exponents.NO_SHARED_MINIMISER in exponents.largest_beta(1.0, [0.0, 0.3], [0.2, 0.0]).caution


def test_the_largest_beta_of_the_root_family_is_one_half():
    found = exponents.largest_beta(1.0, DISTANCES, DISTANCES**2)
    assert found.beta == pytest.approx(0.5, abs=1e-4)
    assert found.alpha == pytest.approx(1.0)


def test_the_largest_beta_of_a_mixture_is_one_once_alpha_is_allowed():
    errors = mixture_family(0.75, 10, 90)
    assert exponents.largest_beta(9.0 + 1e-9, *errors).beta == 1
    assert exponents.largest_beta(5.0, *errors).beta < 0.95
    assert exponents.largest_beta(1.0, [0.1], [0.2]).beta == 1


ERRORS = st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1e-6, 1)), min_size=2, max_size=30)


@given(ERRORS, st.floats(0, 1), st.floats(1, 50))
def test_hypotheses_left_out_only_make_the_relation_look_better(pairs, beta, most):
    p, q = map(list, zip(*pairs, strict=True))
    half = len(p) // 2
    assert exponents.alpha_at(beta, p[:half], q[:half]).alpha <= exponents.alpha_at(beta, p, q).alpha
    largest = exponents.largest_beta(most, p, q)
    assert exponents.largest_beta(most, p[:half], q[:half]).beta >= largest.beta
    assert largest.alpha <= most * (1 + 1e-9)
    if largest.beta < 1 and max(b for a, b in pairs if a > b) < 0.99:
        assert exponents.alpha_at(min(largest.beta + 1e-3, 1), p, q).alpha > largest.alpha


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1e-6, 1)), min_size=2, max_size=30))
def test_the_envelope_lies_over_every_hypothesis(pairs):
    disagreement, excess = map(np.array, zip(*pairs, strict=True))
    if np.log(excess).max() == np.log(excess).min():
        return
    found = exponents.noise_exponent(disagreement, excess)
    assert 0 <= found.beta <= 1
    assert np.all(disagreement <= found.alpha * excess**found.beta * (1 + 1e-9))


def test_results_say_what_they_are_not():
    found = exponents.alpha_at(1.0, [0.2, 0.4], [0.1, 0.3])
    for words in ("From 2 visited", "at least", "at most", "not visited", "held-out data", "proxy"):
        assert words in found.caution


def test_tau_is_the_excess_on_the_server_set():
    assert exponents.tau(0.12, [0.2, 0.05]) == pytest.approx(0.07)
    assert exponents.tau(0.04, [0.2, 0.05]) == 0


def test_the_condition_of_theorem_3_and_its_sentence():
    problem = Problem(10, beta_p=0.5)
    good = exponents.server_fit(problem, 1000, 0.1, [0.02], alpha_p=math.sqrt(2))
    assert good.holds
    assert good.allowed == pytest.approx(0.133992, abs=5e-7)
    assert good.bound == pytest.approx((9 * math.sqrt(2) * 0.0490474) ** (1 / 1.5), rel=1e-5)
    assert "no worse than server-only training" in good.words
    bad = exponents.server_fit(problem, 1000, 0.3, [0.02, 0.1])
    assert bad.tau == pytest.approx(0.28)
    assert not bad.holds
    assert bad.bound == pytest.approx(3 * 0.28)
    assert "fits the server set worse than server-only training; T3 gives no guarantee" in bad.words


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: exponents.alpha_at(1.5, [0.1], [0.1]), "beta = 1.5"),
        (lambda: exponents.alpha_at(1.0, [0.1, 0.2], [0.1]), "eps_q = 1: must have as many"),
        (lambda: exponents.alpha_at(1.0, [0.1], [-0.1]), "eps_q"),
        (lambda: exponents.alpha_at(1.0, [], []), "eps_p"),
        (lambda: exponents.alpha_at(1.0, [math.nan], [0.1]), "eps_p"),
        (lambda: exponents.largest_beta(0.0, [0.2], [0.1]), "most_alpha = 0"),
        (lambda: exponents.largest_beta(0.05, [0.2], [0.1]), "most_alpha = 0.05: must be at least 0.1"),
        (lambda: exponents.noise_exponent([0.0], [0.0]), "disagreement"),
        (lambda: exponents.noise_exponent([0.1, 0.2], [0.1, 0.1]), "excess"),
        (lambda: exponents.noise_exponent([0.1, 0.2], [0.1, -0.1]), "excess"),
        (lambda: exponents.tau(0.1, []), "others"),
        (lambda: exponents.tau(1.1, [0.1]), "risk = 1.1"),
        (lambda: exponents.server_fit(Problem(10), 9, 0.1, [0.1]), "server = 9"),
        (lambda: exponents.server_fit(Problem(10), 90, 0.1, [0.1], -1.0), "alpha_p = -1.0"),
    ],
)
def test_wrong_values_are_named(call, says):
    with pytest.raises(InputError, match=says):
        call()
