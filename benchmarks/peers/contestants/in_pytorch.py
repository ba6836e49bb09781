"""The job as a plain PyTorch loop: what a careful person writes by hand.

All samples as tensors in memory, no data loader, one module reused; the best number of
threads, tried before the clock starts.
"""

import torch
from task import THREADS, clocked, fastest, given_task, report
from torch_model import client_tensors, logits_of, network
from torch_training import local_epoch

task = given_task()
held = client_tensors(task)
net = network(task)
start = {name: value.clone() for name, value in net.state_dict().items()}


def fedavg(seed: int, rounds: int = task.rounds) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    model = start
    for _ in range(rounds):
        average = {name: torch.zeros_like(value) for name, value in model.items()}
        for client in torch.randperm(task.clients)[: task.per_round].tolist():
            net.load_state_dict(model)
            local_epoch(net, *held[client], task)
            for name, value in net.state_dict().items():
                average[name] += value / task.per_round
        model = average
    return model


def trial(threads: int) -> None:
    torch.set_num_threads(threads)
    fedavg(0, rounds=2)


def score(model: dict[str, torch.Tensor]) -> float:
    net.load_state_dict(model)
    return task.score(logits_of(task, net))


start_facts = task.start_facts(logits_of(task, net))
threads = fastest(trial, THREADS)
torch.set_num_threads(threads)
models, seconds = clocked(fedavg, task.seeds)
report(
    version=torch.__version__,
    setting=f"threads: {threads}",
    seconds=seconds,
    seconds_with_compilation=seconds,
    runs=len(models),
    accuracy=sum(map(score, models)) / len(models),
    **start_facts,
)
