"""The job in Flower's simulation engine on Ray: stock FedAvg, message API.

The better of one client on each core and one client on all cores, tried before the clock
starts. `seconds` are those of `FedAvg.start` after two rounds of warming up;
`seconds_with_compilation` adds what starting Ray and the first rounds took beyond two rounds.
"""

import logging
import os
import random
import time

os.environ.update(FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1", RAY_USAGE_STATS_ENABLED="0")

from importlib.metadata import version

import torch
from flower_client import app as client_app
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from task import CORES, clocked, given_task, report
from torch_model import logits_of, network

logging.getLogger("flwr").setLevel(logging.ERROR)
WARM_UP, TRIAL_ROUNDS = 2, 3
task = given_task()
net = network(task)
start = ArrayRecord(net.state_dict())


def simulate(cpus: int, rounds: int, seeds: range) -> tuple[list[ArrayRecord], float, float]:
    """The models of all seeds, their seconds, and the seconds until all was warm."""
    server_app, found = ServerApp(), []
    began = time.perf_counter()

    def fedavg(grid: Grid, seed: int, rounds: int) -> ArrayRecord:
        random.seed(seed)
        strategy = FedAvg(
            fraction_train=task.per_round / task.clients,
            fraction_evaluate=0.0,
            min_available_nodes=task.clients,
        )
        config = ConfigRecord({"folder": str(task.folder), "threads": cpus})
        return strategy.start(grid, start, num_rounds=rounds, train_config=config).arrays

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        fedavg(grid, 0, WARM_UP)
        warm = time.perf_counter() - began
        models, seconds = clocked(lambda seed: fedavg(grid, seed, rounds), seeds)
        found.extend((models, seconds, warm))

    run_simulation(
        server_app,
        client_app,
        num_supernodes=task.clients,
        backend_config={
            "client_resources": {"num_cpus": cpus, "num_gpus": 0.0},
            "init_args": {"num_cpus": CORES, "log_to_driver": False, "logging_level": "error"},
        },
    )
    return tuple(found)


def score(model: ArrayRecord) -> float:
    net.load_state_dict(model.to_torch_state_dict())
    return task.score(logits_of(task, net))


start_facts = task.start_facts(logits_of(task, net))
cpus = min((1, CORES), key=lambda cpus: simulate(cpus, TRIAL_ROUNDS, range(2))[1])
models, seconds, warm = simulate(cpus, task.rounds, task.seeds)
two_rounds = WARM_UP * seconds / (task.rounds * len(models))
report(
    version=version("flwr"),
    setting=f"num_cpus for a client: {cpus} of {CORES}, PyTorch {torch.__version__}",
    seconds=seconds,
    seconds_with_compilation=seconds + warm - two_rounds,
    runs=len(models),
    accuracy=sum(map(score, models)) / len(models),
    **start_facts,
)
