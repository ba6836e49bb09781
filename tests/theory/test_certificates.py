"""Certificates on random federations of quadratics: never below what was measured."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from safari.theory import nonconvex, quadratics
from safari.theory import strongly_convex as convex
from safari.theory.adaptive import strongly_convex_rule

ROUNDS = 60


@st.composite
def federations(draw):
    """A problem, its participants, local steps, a start, q, and how far below its limit the rate is."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    clients, d = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    basis = np.linalg.qr(rng.normal(size=(clients, d, d)))[0]
    spread = rng.uniform(0.2, 1.0, (clients, d))
    hessians = np.einsum("iab,ib,icb->iac", basis, spread, basis)
    problem = quadratics.Quadratics(
        hessians, rng.normal(size=(clients, d)) * draw(st.sampled_from([0.1, 1, 5]))
    )
    participants = rng.permutation(clients)[: draw(st.integers(1, clients))]
    start = rng.normal(size=d) * draw(st.sampled_from([0.1, 1, 5]))
    return (
        problem,
        participants,
        draw(st.integers(1, 6)),
        start,
        draw(st.floats(0, 1)),
        draw(st.floats(0.05, 1)),
    )


@given(federations(), st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_the_certificate_of_theorem_4_holds_on_every_path(federation, seed):
    problem, participants, steps, start, q, below = federation
    limit = 1 / (2 * math.sqrt(30) * problem.smoothness * steps)
    client_rate = below * limit
    server_rate = client_rate * steps / 2
    found = quadratics.run(
        problem, participants, start, lambda x: q, ROUNDS, steps, client_rate, server_rate, seed
    )
    constants = nonconvex.Constants(
        problem.smoothness, steps, len(participants), server_rate, dissimilarity=found.dissimilarity
    )
    assert nonconvex.broken_conditions(constants, client_rate) == []
    server, client = found.gradient[~found.clients], found.move[found.clients]
    certified = nonconvex.certificate(constants, found.start_gap, server, client).total
    assert found.gradient.mean() <= certified * (1 + 1e-9) + 1e-12


@given(federations(), st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_the_certificate_of_theorem_6_holds_on_every_path(federation, seed):
    problem, participants, steps, start, q, below = federation
    L, mu = problem.smoothness, problem.convexity
    bar = below * min(mu / (16 * L), 4 * L * mu / (L + mu) ** 2)
    server_rate = bar * (L + mu) / (2 * L * mu)
    probe = convex.Constants(L, mu, server_rate, steps, len(participants))
    assert probe.client_rate <= 1 / (8 * L * steps) * (1 + 1e-9)
    found = quadratics.run(
        problem, participants, start, lambda x: q, ROUNDS, steps, probe.client_rate, server_rate, seed
    )
    constants = replace(probe, dissimilarity=found.dissimilarity)
    bound = convex.distance_certificate(
        constants, found.distance[0], found.clients, found.gradient, found.gap
    )
    assert np.all(found.distance <= bound * (1 + 1e-9) + 1e-12)


@given(federations())
@settings(max_examples=25, deadline=None)
def test_bounds_of_theorem_6_hold_on_average_for_fixed_and_adaptive_q(federation):
    problem, participants, steps, start, q, below = federation
    L, mu = problem.smoothness, problem.convexity
    bar = below * convex.step_limit(L / mu)
    server_rate = bar * (L + mu) / (2 * L * mu)
    probe = convex.Constants(L, mu, server_rate, steps, len(participants))
    best = problem.best()
    bias = float(np.linalg.norm(problem.gradients(best)[participants].mean(axis=0)))

    def adaptive(x):
        gradient = problem.gradients(x).mean(axis=0)
        return strongly_convex_rule(L, mu, float(gradient @ gradient), bias)

    for rule in (lambda x: q, adaptive):
        runs = [
            quadratics.run(
                problem, participants, start, rule, 40, steps, probe.client_rate, server_rate, seed
            )
            for seed in range(10)
        ]
        constants = replace(probe, dissimilarity=max(run.dissimilarity for run in runs))
        ends, first = np.array([run.distance[-1] for run in runs]), runs[0].distance[0]
        if rule is adaptive:
            bound = convex.adaptive_bound(constants, first, 40, convex.noise_floor(constants, 1.0))
        else:
            bound = convex.fixed_q_bound(constants, first, 40, q, bias)
        assert ends.mean() <= bound + 4 * ends.std() / math.sqrt(len(ends)) + 1e-12


@given(federations())
@settings(max_examples=100, deadline=None)
def test_the_gap_of_the_clients_is_bounded_from_below_before_the_minimum_is_known(federation):
    problem, participants, _, x, *_ = federation
    best = problem.best()
    gap = np.mean((problem.values(x) - problem.values(best))[participants])
    bias = np.linalg.norm(problem.gradients(best)[participants].mean(axis=0))
    distance = np.linalg.norm(x - best)
    assert gap >= convex.client_gap_at_least(bias, distance, problem.convexity) - 1e-9 * (1 + abs(gap))
    stronger = convex.client_gap_at_least(bias, distance, 1.01 * problem.smoothness)
    assert gap <= stronger + 2 * bias * distance + 1e-9 * (1 + abs(gap))
