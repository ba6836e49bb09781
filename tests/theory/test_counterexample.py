"""Theorem 4 as printed fails on two clients; what replaces it does not."""

import pytest

from safari.theory import counterexample, nonconvex

ROUNDS, Q = 10**6, 0.8


@pytest.fixture(scope="module")
def far():
    return counterexample.fixed_q_moments(Q, 3.0, ROUNDS, 1e-3, 2e-3)


def printed_bound(start):
    return nonconvex.rate_terms(counterexample.constants_of(ROUNDS), start**2 / 2, ROUNDS, Q).total


def test_the_printed_bound_fails_by_far_though_its_condition_holds(far):
    constants = counterexample.constants_of(ROUNDS)
    assert far.gradient == pytest.approx(0.7935, abs=5e-5)
    assert far.last == pytest.approx(0.8889, abs=5e-5) == pytest.approx(counterexample.limit(Q), abs=1e-4)
    assert printed_bound(3.0) == pytest.approx(0.009384, abs=5e-7)
    assert nonconvex.printed_q_limit(constants, 9.0, 4.0) == pytest.approx(1.801, abs=5e-4)
    assert far.gradient > 80 * printed_bound(3.0)


def test_it_fails_as_well_where_the_printed_limit_is_below_one():
    near = counterexample.fixed_q_moments(Q, 2.3, ROUNDS, 1e-3, 2e-3)
    limit = nonconvex.printed_q_limit(counterexample.constants_of(ROUNDS), 2.3**2, 1.3**2)
    assert near.gradient == pytest.approx(0.7921, abs=5e-5)
    assert printed_bound(2.3) == pytest.approx(0.005674, abs=5e-7)
    assert Q < limit == pytest.approx(0.895, abs=5e-4)
    assert near.gradient > 80 * printed_bound(2.3)


def test_the_certificate_and_the_bound_before_the_run_hold(far):
    constants = counterexample.constants_of(ROUNDS)
    found = counterexample.examine(Q, 3.0, ROUNDS)
    assert found.moments == far
    assert found.certificate == pytest.approx(3.0295, abs=5e-5)
    assert nonconvex.a_priori(constants, 4.5, ROUNDS, Q, 1.0, 1.0).total == pytest.approx(1.605, abs=5e-4)
    assert found.before_the_run == pytest.approx(0.8285, abs=5e-5)
    assert far.gradient < found.before_the_run < found.certificate
    assert found.floor == 0.8


@pytest.mark.parametrize(
    ("rule", "gradients", "shares"),
    [
        ("A", (0.144, 0.0453, 0.0143, 0.00452), (0.0192, 0.00614, 0.00196, 0.00063)),
        ("B", (0.142, 0.0451, 0.0143, 0.00452), (0.0243, 0.00929, 0.003, 0.00096)),
        ("C", (0.148, 0.0491, 0.0157, 0.00497), (0.0295, 0.0148, 0.00499, 0.00159)),
    ],
)
@pytest.mark.parametrize(("place", "repetitions"), [(0, 200), (1, 40), (2, 6), (3, 2)])
def test_adaptive_rules_converge(rule, gradients, shares, place, repetitions):
    found = counterexample.simulate(rule, 3.0, 10 ** (3 + place), repetitions, seed=0)
    assert found.gradient == pytest.approx(gradients[place], rel=0.02)
    assert found.client_share == pytest.approx(shares[place], rel=0.05)


def test_the_papers_own_rates_break_the_conditions_in_plain_words():
    constants = nonconvex.Constants(smoothness=1.0, steps=84, per_round=5, server_rate=0.1)
    said = nonconvex.broken_conditions(constants, client_rate=0.1)
    assert len(said) == 2
    assert "42 times too much" in said[1]
    gentle = nonconvex.Constants(smoothness=1.0, steps=4, per_round=5, server_rate=0.01)
    assert nonconvex.broken_conditions(gentle, gentle.client_rate) == []
