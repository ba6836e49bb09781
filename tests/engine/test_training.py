"""Runs that train together: company changes nothing but rounding; cohorts and servers of different sizes."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import safari
from safari.engine import Training, prepare

ROUNDS = 8


def prepared(seed, server_samples, per_round, rate=0.1, q=0.6):
    partition, server = (
        safari.Classes(samples_per_client=100),
        safari.ServerSet(server_samples, disjoint=False),
    )
    federation = safari.federate("digits", partition, server, seed=seed)
    algorithm = safari.Safari(
        safari.FedAvg(local_rate=rate, batch_size=20), safari.ServerSGD(steps=4, batch_size=32), q=q
    )
    participation = safari.Participation(excluded=3, per_round=per_round)
    return prepare(federation, algorithm, safari.Logistic(), participation, ROUNDS, seed, 1, "float32")


def padded(run, held, server_most, slots):
    federation = run.task.federation.padded(held, server_most, 0)
    roster = replace(run.roster, slots=slots)
    return eqx.tree_at(lambda run: (run.task.federation, run.roster), run, (federation, roster))


def finish(training):
    while not training.finished:
        training.advance()
    return training.results()


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
    logs = finish(Training([padded(run, 1060, 60, 5) for run in runs], width=4))
    for log, training in zip(logs, alone, strict=True):
        for column in ("kind", "cohort", "reported", "bytes_up", "bytes_down", "available"):
            assert log.history[column].to_list() == training.history[column].to_list()
        np.testing.assert_allclose(log.history["loss"], training.history["loss"], atol=1e-5)
        assert log.coverage == training.result().coverage


def test_a_list_of_one_run_is_the_run_bit_for_bit(runs, alone):
    together = Training([runs[0]])
    assert finish(together)[0].history.equals(alone[0].history)
    for a, b in zip(jax.tree.leaves(together.carry), jax.tree.leaves(alone[0].carry), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_runs_go_on_in_other_company_than_they_began_in(runs, alone):
    begun = Training([padded(run, 1060, 60, 5) for run in runs])
    begun.advance(most=1)
    begun.advance(most=2)
    done, carries, histories = begun.done, begun.carries(), begun.histories()
    assert 0 < done < ROUNDS
    for place, run in enumerate(runs):
        single = Training([run])
        single.restore([carries[place]], [histories[place]], done)
        log = finish(single)[0]
        assert log.history["kind"].to_list() == alone[place].history["kind"].to_list()
        np.testing.assert_allclose(log.history["loss"], alone[place].history["loss"], atol=1e-5)


def test_a_diverging_run_does_not_disturb_its_neighbours(alone):
    wild, tame = prepared(0, 20, 3, rate=1e7), prepared(0, 20, 3)
    logs = finish(Training([wild, tame]))
    assert logs[0].diverged_at == len(logs[0].history) < ROUNDS
    assert logs[1].diverged_at is None
    np.testing.assert_allclose(logs[1].history["loss"], alone[0].history["loss"], atol=1e-5)


TWO_DEVICES = """
import jax, numpy as np
from test_training import finish, prepared
from safari.engine import Training
runs = [prepared(seed, 20, 3) for seed in range(3)]
together = Training(runs)
assert len(jax.tree.leaves(together.carry)[0].sharding.device_set) == 2
logs = finish(together)
alone = Training(runs[2])
while not alone.finished:
    alone.advance()
assert logs[2].history["cohort"].to_list() == alone.history["cohort"].to_list()
np.testing.assert_allclose(logs[2].history["loss"], alone.history["loss"], atol=1e-5)
"""


def test_two_devices_share_the_runs_and_change_nothing():
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
