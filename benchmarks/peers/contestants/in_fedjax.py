"""The job in FedJAX: its federated averaging, client sampler and in-memory federated data.

The better of its `jit` and `pmap` backends (the latter with a host device for each core),
tried before the clock starts; what was compiled in the trial is thrown away.
"""

import os

os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={len(os.sched_getaffinity(0))}"

from importlib.metadata import version

import fedjax
import jax
import jax.numpy as jnp
import numpy as np
from task import clocked, fastest, given_task, report

task = given_task()
x, y = task.normalised(task.x), task.y.astype(np.int32)
clients = fedjax.InMemoryFederatedData(
    {
        f"{client:04d}": {"x": x[task.held_by(client)], "y": y[task.held_by(client)]}
        for client in range(task.clients)
    }
)
start = {name: jnp.asarray(value) for name, value in task.start.items()}


def softmax(params, x):
    return x.reshape(len(x), -1) @ params["weight"].T + params["bias"]


def cnn(params, x):
    for layer in ("conv0", "conv1"):
        x = jax.lax.conv_general_dilated(
            x, params[f"{layer}.kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu(x + params[f"{layer}.bias"])
    x = x.reshape(len(x), -1)
    x = jax.nn.relu(x @ params["dense0.weight"] + params["dense0.bias"])
    return x @ params["dense1.weight"] + params["dense1.bias"]


apply = jax.jit(cnn if task.model == "cnn" else softmax)


def loss(params, batch, rng):
    surprise = jax.nn.log_softmax(apply(params, batch["x"]))
    return -jnp.take_along_axis(surprise, batch["y"][:, None], axis=1).mean()


def averaging():
    """Federated averaging with nothing compiled yet."""
    batches = fedjax.ShuffleRepeatBatchHParams(batch_size=task.batch, num_epochs=1, drop_remainder=True)
    return fedjax.algorithms.fed_avg.federated_averaging(
        jax.grad(loss), fedjax.optimizers.sgd(task.rate), fedjax.optimizers.sgd(1.0), batches
    )


def train(algorithm, seed: int, rounds: int = task.rounds):
    sampler = fedjax.client_samplers.UniformGetClientSampler(clients, task.per_round, seed)
    state = algorithm.init(start)
    for number in range(rounds):
        sampler.set_round_num(number)
        state, _ = algorithm.apply(state, sampler.sample())
    return jax.block_until_ready(state.params)


def trial(backend: str) -> None:
    with fedjax.for_each_client_backend(backend):
        train(tried[backend], 0, rounds=2)


start_facts = task.start_facts(lambda x: apply(start, x))
tried = {}
for backend in ("jit", "pmap"):
    with fedjax.for_each_client_backend(backend):
        tried[backend] = averaging()
backend = fastest(trial, tried)
jax.clear_caches()
fedjax.set_for_each_client_backend(backend)
algorithm = averaging()
_, cold = clocked(lambda seed: train(algorithm, seed), [0])
models, warm = clocked(lambda seed: train(algorithm, seed), task.seeds)
report(
    version=version("fedjax"),
    setting=f"{backend} backend, JAX {jax.__version__}",
    seconds=warm,
    seconds_with_compilation=cold + warm * (len(models) - 1) / len(models),
    runs=len(models),
    accuracy=sum(task.score(lambda x, model=model: apply(model, x)) for model in models) / len(models),
    **start_facts,
)
