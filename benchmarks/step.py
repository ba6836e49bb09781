"""Where the microseconds of a step go: python benchmarks/step.py (needs MNIST)

One client's epoch of softmax regression on MNIST (93 steps of 64), on one core, as safari compiles
it, and its parts compiled alone: the draw of the batches, the gather of their rows, the cast and
the two matrix products, all steps on rows that are there already. Medians over interleaved
repetitions. Writes benchmarks/results/step.json.
"""

import json
import statistics
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from turns import seconds_in_turn

import safari
from safari.algorithms import Task
from safari.data.sources import load
from safari.errors import InputError
from safari.experiment.versions import provenance

RESULT = Path(__file__).parent / "results" / "step.json"
STEPS, BATCH, RATE, REPEATS = 93, 64, 0.1, 60


def parts():
    try:
        data = load("mnist")
    except InputError as error:
        sys.exit(f"benchmarks/step.py: {error}")
    client = np.random.default_rng(0).permutation(np.arange(len(data.y)) % 10)
    dataset = safari.Dataset(data.x, data.y, data.x_test, data.y_test, client=client)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    task, key = Task(safari.Logistic(), federation), jax.random.key(0)
    shard = federation.client(jnp.int32(0))
    params = safari.Logistic().init(key, dataset.shape, dataset.classes)

    draw = jax.jit(lambda key: federation.schedule(shard, key, STEPS, BATCH))
    schedule = draw(key)
    gather = jax.jit(lambda samples: federation.gather(samples))
    rows = gather(schedule.samples)

    def steps(params, rows, weight):
        def step(params, now):
            slopes = jax.grad(task.loss)(params, federation.batch(*now, key))
            return jax.tree.map(lambda value, slope: value - RATE * slope, params, slopes), None

        return jax.lax.scan(step, params, (rows, weight))[0]

    def products(weight, rows):
        def step(weight, x):
            inputs = dataset.normalise(x)
            return weight - 1e-9 * ((weight @ inputs.T) @ inputs), None

        return jax.lax.scan(step, weight, rows)[0]

    epoch = jax.jit(lambda p, key: task.sgd(p, task.minibatches(shard, key, STEPS, BATCH), rate=RATE))
    steps, products = jax.jit(steps), jax.jit(products)
    return {
        "draw of the batches": lambda: draw(key),
        "gather of their rows": lambda: gather(schedule.samples),
        "cast and two products": lambda: products(params["weight"], rows.x),
        "steps on gathered rows": lambda: steps(params, rows, schedule.weight),
        "the whole epoch": lambda: epoch(params, key),
    }


def main():
    seconds = seconds_in_turn(parts(), REPEATS)
    micro = {name: statistics.median(values) / STEPS * 1e6 for name, values in seconds.items()}
    for name, value in micro.items():
        print(f"{name:24s} {value:6.1f} microseconds a step")
    made = {**provenance(), "command": "python benchmarks/step.py"}
    RESULT.write_text(json.dumps({"microseconds_a_step": micro, "made": made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
