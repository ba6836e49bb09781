"""Theorem 1 as an experiment: every learner fails at least as often as the floor says."""

import time

import numpy as np
import pytest

import safari
from safari.errors import InputError
from safari.theory.impossibility import LEARNERS, PAPER_PROBABILITY, Participation, coverage_floor, simulate


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("samples", [10, 1000, 100_000])
@pytest.mark.parametrize("participating", [2, 5, 8])
def test_failures_clear_the_floor_whatever_the_number_of_samples(learner, participating, samples):
    began = time.perf_counter()
    found = simulate(Participation(10, participating, samples), learner, 10_000, seed=0)
    assert time.perf_counter() - began < 20
    assert found.low > PAPER_PROBABILITY
    assert found.clears_floor
    assert found.high >= found.floor


def test_the_frequency_is_the_exact_probability_for_a_learner_that_needs_to_see():
    place = Participation(10, 9, 1)
    found = simulate(place, "nearest", 40_000, seed=3)
    assert found.low <= place.unseen_probability() <= found.high


def test_with_all_clients_there_is_no_floor():
    with pytest.raises(InputError, match="no floor"):
        Participation(10, 10, 5)


def test_the_floor_of_a_real_partition_is_its_missing_classes():
    federation = safari.federate("digits", safari.Classes(samples_per_client=100), safari.ServerSet(20))
    excluded = np.array([0, 1, 2, 3])
    floor = coverage_floor(federation, excluded)
    assert floor == pytest.approx(0.4, abs=0.02)
    result = safari.train(
        federation, safari.FedAvg(batch_size=20), participation=safari.Participation((0, 1, 2, 3)), rounds=20
    )
    assert 1 - result.accuracy >= floor
