"""Bundles: company changes nothing but rounding; cohorts and servers of different sizes."""

import equinox as eqx
import jax
import numpy as np
import pytest

import safari
from safari.bundle import Bundle
from safari.engine import prepare
from safari.training import Training

ROUNDS = 8


def prepared(seed, server_samples, per_round, rate=0.1, q=0.6):
    federation = safari.federate(
        "digits", samples_per_client=100, server_samples=server_samples, server_disjoint=False, seed=seed
    )
    algorithm = safari.Safari(
        safari.FedAvg(local_rate=rate, batch_size=20), safari.ServerSGD(steps=4, batch_size=32), q=q
    )
    participation = safari.Participation(excluded=3, per_round=per_round)
    return prepare(federation, algorithm, safari.Logistic(), participation, ROUNDS, seed, 1, "float32")


def padded(run, held, server_most, slots):
    from dataclasses import replace

    federation = run.task.federation.padded(held, server_most)
    roster = replace(run.roster, slots=slots)
    return eqx.tree_at(lambda run: (run.task.federation, run.roster), run, (federation, roster))


def finish(bundle):
    while not bundle.finished:
        bundle.advance()
    return bundle.logs()


@pytest.fixture(scope="module")
def runs():
    return [prepared(0, 20, 3), prepared(1, 60, 5), prepared(2, 40, 4)]


@pytest.fixture(scope="module")
def alone(runs):
    trainings = []
    for run in runs:
        training = Training(run)
        while not training.finished:
            training.advance()
        trainings.append(training)
    return trainings


def test_runs_padded_to_one_shape_draw_and_learn_as_alone(runs, alone):
    logs = finish(Bundle([padded(run, 1060, 60, 5) for run in runs], width=4))
    for log, training in zip(logs, alone, strict=True):
        for column in ("kind", "cohort", "reported", "bytes_up", "bytes_down", "available"):
            assert log.history[column].to_list() == training.history[column].to_list()
        np.testing.assert_allclose(log.history["loss"], training.history["loss"], atol=1e-5)
        assert log.coverage == training.result().coverage


def test_a_bundle_of_one_is_the_run_bit_for_bit(runs, alone):
    bundle = Bundle([runs[0]])
    assert finish(bundle)[0].history.equals(alone[0].history)
    for a, b in zip(jax.tree.leaves(bundle.carry), jax.tree.leaves(alone[0].carry), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_runs_go_on_in_other_company_than_they_began_in(runs, alone):
    begun = Bundle([padded(run, 1060, 60, 5) for run in runs])
    begun.advance(most=1)
    begun.advance(most=2)
    done, carries, histories = begun.done, begun.carries(), begun.histories()
    assert 0 < done < ROUNDS
    for place, run in enumerate(runs):
        single = Bundle([run])
        single.restore([carries[place]], [histories[place]], done)
        log = finish(single)[0]
        assert log.history["kind"].to_list() == alone[place].history["kind"].to_list()
        np.testing.assert_allclose(log.history["loss"], alone[place].history["loss"], atol=1e-5)


def test_a_diverging_run_does_not_disturb_its_neighbours(alone):
    wild, tame = prepared(0, 20, 3, rate=1e7), prepared(0, 20, 3)
    logs = finish(Bundle([wild, tame]))
    assert logs[0].diverged_at == len(logs[0].history) < ROUNDS
    assert logs[1].diverged_at is None
    np.testing.assert_allclose(logs[1].history["loss"], alone[0].history["loss"], atol=1e-5)
