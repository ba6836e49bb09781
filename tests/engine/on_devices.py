"""Run by test_devices.py in processes of their own: python on_devices.py DEVICES [PORT PROCESS]

Trains a few runs on so many CPU devices, or on those of two processes, and prints what came out.
"""

import json
import sys

import jax
import numpy as np

import safari

count = int(sys.argv[1])
assert safari.use_cores(count)
if len(sys.argv) > 2:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", num_processes=2, process_id=int(sys.argv[3]))

from safari.engine import prepare  # noqa: E402
from safari.engine.training import Training  # noqa: E402

SAFARI = safari.Safari(safari.FedAvg(batch_size=20), safari.ServerSGD(steps=4, batch_size=32), q=0.6)
BATCHED = (SAFARI, safari.Logistic())
IN_TURN = (safari.SCAFFOLD(batch_size=20), safari.MLP((80,)))


def prepared(algorithm, model, seed=0):
    server = safari.ServerSet(40, disjoint=False)
    federation = safari.federate("digits", safari.Classes(samples_per_client=100), server)
    participation = safari.Participation(excluded=3, per_round=5)
    return prepare(federation, algorithm, model, participation, 8, seed, 1, "float32")


def finished(training):
    while not training.finished:
        training.advance()
    return training


def figures(history, params):
    return {
        "kinds": history["kind"].to_list(),
        "cohorts": history["cohort"].to_list(),
        "loss": history["loss"].to_list(),
        "params": [float(np.abs(np.asarray(leaf)).sum()) for leaf in jax.tree.leaves(params)],
    }


found = {"devices": jax.device_count()}
for label, parts in (("batched", BATCHED), ("in turn", IN_TURN)):
    training = finished(Training(prepared(*parts), devices=jax.devices()))
    assert len(jax.tree.leaves(training.carry)[0].sharding.device_set) == jax.device_count()
    found[label] = figures(training.history, training.result().params_last)
together = finished(Training([prepared(*BATCHED, seed) for seed in range(3)]))
for place, (log, carry) in enumerate(zip(together.results(), together.carries(), strict=True)):
    found[f"stacked {place}"] = figures(log.history, carry.state.params)
print(json.dumps(found))
