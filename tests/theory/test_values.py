"""Exact values of the theory, derived by hand or by enumeration apart from the software."""

import itertools
import math

import numpy as np
import pytest

from safari.theory import (
    adaptive,
    counterexample,
    exponents,
    generalization,
    nonconvex,
    relations,
)
from safari.theory import strongly_convex as convex
from safari.theory.impossibility import UNSEEN_AT_LEAST, Participation


@pytest.mark.parametrize(
    ("sizes", "unseen", "strict", "client_floor"),
    [
        ((2, 1, 1), 0.9375, 0.5625, 0.5),
        ((10, 6, 1), 0.967207, 0.879126, 0.4),
        ((10, 9, 1), 0.913862, 0.598737, 0.1),
    ],
)
def test_the_rare_point_is_most_likely_not_seen(sizes, unseen, strict, client_floor):
    found = Participation(*sizes)
    assert found.unseen_probability() == pytest.approx(unseen, abs=5e-7)
    assert found.unseen_probability(strict=True) == pytest.approx(strict, abs=5e-7)
    assert found.client_floor == pytest.approx(client_floor)
    assert found.paper_floor == pytest.approx(client_floor / 8)


def test_the_least_probability_that_the_rare_point_is_not_seen():
    from scipy import stats

    low = min(stats.binom.cdf(k, n, k / (2 * n)) for n in range(1, 401) for k in range(1, min(n, 12) + 1))
    assert low == pytest.approx(0.909891, abs=5e-7)
    assert UNSEEN_AT_LEAST < 1.5 * math.exp(-0.5) == pytest.approx(0.909796, abs=5e-7)


def test_noise_exponents_of_the_exact_family():
    found = relations.polynomial_noise(1)
    assert found.beta == 0.5
    assert found.alpha == pytest.approx(1.41421, abs=5e-6)
    assert relations.polynomial_excess(1, 0.3) == pytest.approx(0.045)
    assert found.alpha * 0.045**found.beta == pytest.approx(0.3)


@pytest.mark.parametrize(("threshold", "alpha"), [(0.5, 0.5), (0.7, 2.0), (0.75, math.inf)])
def test_the_relation_of_two_uniform_distributions(threshold, alpha):
    assert relations.uniform_alpha((0, 1), (0.25, 0.75), threshold) == pytest.approx(alpha)


def mixture_errors(threshold, l1=0.9):
    t = np.linspace(0, 1, 20001)
    p = abs(t - threshold)
    q = l1 * 2 * abs(np.minimum(t, 0.5) - min(threshold, 0.5)) + (1 - l1) * p
    return p, q


def test_the_relation_of_a_mixture():
    p, q = mixture_errors(0.75)
    assert relations.mixture_alpha(10, 90) == 9.0 == pytest.approx(exponents.alpha_at(1, p, q).alpha)
    p, q = mixture_errors(0.25)
    assert exponents.alpha_at(1, p, q).alpha == pytest.approx(0.428571, abs=5e-7)
    down = relations.mixture_alpha_down(10, 90, 0.5)
    known = q > 0
    assert (
        down
        == pytest.approx(0.473684, abs=5e-7)
        == pytest.approx(np.max((q - p)[known] / q[known]), abs=1e-6)
    )


def test_exact_excess_errors_of_thresholds():
    assert generalization.threshold_excess(0.75, 10, 0) == pytest.approx(0.0870695, abs=5e-8)
    assert generalization.threshold_excess(0.75, 10, 90) == pytest.approx(0.0870695, abs=5e-8)
    assert generalization.threshold_excess(0.25, 10, 0) == pytest.approx(0.0909091, abs=5e-8)
    assert generalization.threshold_excess(0.25, 10, 90) == pytest.approx(0.00520975, abs=5e-9)
    assert generalization.root_excess(100) == pytest.approx(0.0882921, abs=5e-8)


@pytest.mark.parametrize(("threshold", "clients"), [(0.75, 90), (0.25, 90), (0.25, 0)])
def test_thresholds_learnt_from_samples_have_the_exact_excess(threshold, clients):
    found = generalization.simulate_threshold(threshold, 10, clients, 20_000, seed=1)
    error = found.std() / math.sqrt(len(found))
    assert abs(found.mean() - generalization.threshold_excess(threshold, 10, clients)) < 4 * error


def test_where_clients_help_in_the_rate():
    half = generalization.Problem(1)
    assert generalization.beta_threshold(half, 10, 90) == pytest.approx(0.5)
    assert generalization.beta_threshold(generalization.Problem(10), 1000, 59_000) == pytest.approx(
        0.529359, abs=5e-7
    )


def test_complexity_and_the_rates_that_follow():
    problem = generalization.Problem(10, beta_p=0.5)
    found = problem.complexity(1000)
    assert found == pytest.approx(0.0490474, abs=5e-8)
    assert problem.server_bound(1000) == pytest.approx(0.133992, abs=5e-7)
    clients = generalization.Problem(10, beta_p=0.5, alpha=0.0)
    assert clients.client_bound(400, 600) == pytest.approx(found), "with the clients' own exponent"
    assert found**0.75 == pytest.approx(0.104223, abs=5e-7)
    misplaced = 0.01 * math.log(100 + math.log(20) / 1000)
    assert misplaced == pytest.approx(0.046052, abs=5e-7)


def test_a_mixture_with_alpha_from_its_sizes_shows_no_gain():
    for clients in (90, 900, 9000):
        problem = generalization.Problem(1, alpha=relations.mixture_alpha(100, clients))
        assert not problem.gains(100, clients)
    assert generalization.Problem(1, alpha=0.1).gains(100, 9000)


def test_noise_corrected_estimates_cost_what_the_bound_says():
    constants = nonconvex.Constants(1, 1, 1, 1e-12, dissimilarity=1)
    assert adaptive.noisy_excess(constants, 0.0, (0.4, -0.4)) == pytest.approx(0.181818, abs=5e-7)
    assert adaptive.noisy_excess(constants, 0.0, (0.4,)) == pytest.approx(0.363636, abs=5e-7)


def test_rounds_before_a_linear_speedup_shows():
    constants = nonconvex.Constants(1, 10, 5, 1e-12, dissimilarity=1)
    assert nonconvex.speedup_rounds(constants) == (24_000, 125_000)
    assert nonconvex.speedup_gradient(constants) == pytest.approx(196)
    assert adaptive.rule_a(constants, 196) == pytest.approx(1 - 1 / 50)


def test_the_server_line_is_exact_on_the_extreme_eigenvectors():
    constants = convex.Constants(4, 1, 0.1)
    assert constants.contraction == pytest.approx(0.16)
    assert convex.server_step_square(constants, 1) == pytest.approx(0.81)
    assert convex.server_step_square(constants, 4) == pytest.approx(0.36)


def test_corrected_and_printed_limits_on_q_with_strong_convexity():
    constants = convex.Constants(4, 1, server_rate=5 * 0.01 / 8)
    assert constants.contraction == pytest.approx(0.01)
    found = convex.q_limit(constants, 1.0, -0.05)
    assert (found.need, found.have, found.q) == pytest.approx((0.56736, 0.246094, 0.302529), abs=5e-7)
    assert convex.printed_q_limit(constants, 1.0, -0.05) == pytest.approx(0.401886, abs=5e-7)
    found = convex.q_limit(constants, 1.0, 0.2)
    assert (found.need, found.q) == pytest.approx((-0.43264, 1.0), abs=5e-7)
    assert convex.printed_q_limit(constants, 1.0, 0.2) == pytest.approx(-0.382946, abs=5e-7)


def test_server_rounds_alone_settle_at_the_noise_of_the_server():
    constants = convex.Constants(4, 1, server_rate=0.01, server_noise=3.0)
    assert convex.noise_floor(constants, 0.0) == pytest.approx((4 + 1) * 0.01 * 3.0 / (2 * 4 * 1))
    assert convex.noise_floor(constants, 0.6) == pytest.approx(0.4 * convex.noise_floor(constants, 0.0))


@pytest.mark.parametrize(("condition", "limit"), [(1, 0.048289), (2, 0.015645), (4, 0.00486356)])
def test_the_largest_step_of_the_computable_rule(condition, limit):
    assert convex.step_limit(condition) == pytest.approx(limit, abs=5e-7)


def test_a_fixed_q_stays_under_its_bound_with_strong_convexity():
    moments = counterexample.fixed_q_moments(0.1, 3.0, 2000, 0.01, 0.02)
    constants = convex.Constants(1, 1, 0.01, dissimilarity=1)
    assert constants.client_rate == pytest.approx(0.02)
    bound = convex.fixed_q_bound(constants, 9.0, 2000, 0.1, 1.0)
    assert moments.last_square == pytest.approx(0.0344183, abs=5e-8)
    assert bound == pytest.approx(0.20219, abs=5e-6)


def test_the_bias_of_participants_by_enumeration():
    pairs = [(sum(pair) / 2 - 1) ** 2 for pair in itertools.combinations((0, 1, 2, 3), 2)]
    assert adaptive.sampled_bias(0.25, 5 / 3, 2, 4) == pytest.approx(np.mean(pairs)) == pytest.approx(2 / 3)


def test_the_terms_of_the_bounds_by_hand():
    """L = 2, K = 3, m = 4, eta_s = 0.01, sigma^2 = 5, sigma_s^2 = 7, sigma_G^2 = 1.5; q = 0.4, 50 rounds."""
    constants = nonconvex.Constants(2.0, 3, 4, 0.01, 5.0, 7.0, 1.5)
    drift = 5 + 6 * 3 * 1.5
    after = nonconvex.rate_terms(constants, 6.0, 50, 0.4)
    assert after.start == pytest.approx(2 * 6 / (50 * 0.01))
    assert after.server_noise == pytest.approx(2 * 0.01 * 0.6 * 7)
    assert after.drift == pytest.approx(80 * 0.4 * 4 * 1e-4 / 3 * drift)
    assert after.client_noise == pytest.approx(8 * 2 * 0.4 * 0.01 / 12 * 5)
    before = nonconvex.a_priori(constants, 6.0, 50, 0.4, 0.3, split=0.5)
    assert before.start == pytest.approx(6 / (50 * 0.01))
    assert before.server_noise == pytest.approx(2 * 0.01 / 2 * 0.6 * 7)
    assert before.drift == pytest.approx(3 * 20 * 0.4 * 4 * 1e-4 / 3 * drift)
    assert before.client_noise == pytest.approx(4 * 0.4 * 2 * 0.01 / 12 * 5)
    assert before.bias == pytest.approx(1.5 * 0.4 * 0.3)
    assert before.scale == pytest.approx(0.6 * (1 - 0.01) + 0.4 * (1 - 120 * 3 * 4 * 1e-4))
    assert before.total == pytest.approx(
        (before.start + before.server_noise + before.drift + before.client_noise + before.bias) / before.scale
    )
