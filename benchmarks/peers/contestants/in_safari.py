"""The job in safari: one `safari.train`, or a sweep where the job asks for several runs.

The clocked runs score one test sample, the report scores them all; only the sweep, which
keeps no models, scores its whole test set inside the clock.
"""

import tempfile
from importlib.metadata import version
from pathlib import Path

import jax
import numpy as np
from task import Task, clocked, given_task, report

import safari
from safari.experiment.sweep import SweepSpec, new_sweep

safari.use_cores()
task = given_task()
model = safari.CNN() if task.model == "cnn" else safari.Logistic()
start = model.init(safari.randomness.streams_of(0).initialisation, task.x.shape[1:], 10)
apply = jax.jit(model.apply)


def single_run(task: Task) -> tuple[float, float, float]:
    """Seconds warm, seconds cold, accuracy."""
    shift = None if task.shift is None else np.array(task.shift)
    dataset = safari.Dataset(
        task.x,
        task.y,
        task.x_test[:1],
        task.y_test[:1],
        scale=np.array(task.scale),
        shift=shift,
        client=task.client,
    )
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))

    def train(seed: int) -> safari.Result:
        return safari.train(
            federation,
            safari.FedAvg(local_rate=task.rate, batch_size=task.batch),
            model=model,
            participation=safari.Participation(per_round=task.per_round),
            rounds=task.rounds,
            seed=seed,
            evaluate_every=task.rounds,
        )

    _, cold = clocked(train, [0])
    (result,), warm = clocked(train, [0])
    return warm, cold, task.score(lambda x: apply(result.params, x))


def sweep(task: Task) -> tuple[float, float, float]:
    """The same for all runs of a sweep, its directory written as always."""
    base = {
        "data": {
            "source": str(task.folder / "data.npz"),
            "partition": "column",
            "server": {"samples": 0},
            "seed": 0,
        },
        "participation": {"per_round": task.per_round},
        "algorithm": {"name": "fedavg", "clients": {"local_rate": task.rate, "batch_size": task.batch}},
        "train": {"rounds": task.rounds, "evaluate_every": task.rounds},
    }
    spec = SweepSpec(base, tuple({"train.seed": seed} for seed in range(task.runs)))

    def carry_out(_: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            return new_sweep(spec, Path(folder) / "out", lambda progress: None, {})["accuracy"].mean()

    _, cold = clocked(carry_out, [0])
    (accuracy,), warm = clocked(carry_out, [0])
    return warm, cold, accuracy


start_facts = task.start_facts(lambda x: apply(start, x))
seconds, seconds_with_compilation, accuracy = (sweep if task.runs > 1 else single_run)(task)
report(
    version=version("safari-fl"),
    setting=f"JAX {jax.__version__}",
    seconds=seconds,
    seconds_with_compilation=seconds_with_compilation,
    runs=task.runs,
    accuracy=accuracy,
    **start_facts,
)
