"""pfl's FederatedAveraging on its SimulatedBackend: python pfl_worker.py FOLDER THREADS job|trial."""

import sys
from importlib.metadata import version

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.internal.ops.selector import get_default_framework_module
from pfl.model.pytorch import PyTorchModel
from task import clocked, given_task, report
from torch_model import client_tensors, logits_of, network

TRIAL_ROUNDS = 3
task = given_task()
held = client_tensors(task)
threads, kind = int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(threads)
cross_entropy = torch.nn.CrossEntropyLoss()


class Learner(torch.nn.Module):
    """The network with the two methods that pfl asks for; no metrics, so that nothing is evaluated."""

    def __init__(self):
        super().__init__()
        self.net = network(task)

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cross_entropy(self.net(x), y)

    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict:
        return {}


def user_dataset(user: int) -> PyTorchTensorDataset:
    """A client's samples in a fresh shuffle."""
    x, y = held[user]
    order = torch.randperm(len(y))
    return PyTorchTensorDataset((x[order], y[order]), user_id=str(user))


def fedavg(seed: int, rounds: int = task.rounds) -> torch.nn.Module:
    np.random.seed(seed)
    torch.manual_seed(seed)
    users = get_user_sampler("minimize_reuse", np.random.permutation(task.clients).tolist())
    data = FederatedDataset(user_dataset, users)
    learner = Learner()
    model = PyTorchModel(learner, torch.optim.SGD, torch.optim.SGD(learner.parameters(), lr=1.0))
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=rounds,
            train_cohort_size=task.per_round,
            val_cohort_size=None,
        ),
        backend=SimulatedBackend(training_data=data, val_data=data),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=None,
            local_num_steps=task.batches,
            local_learning_rate=task.rate,
            local_batch_size=task.batch,
        ),
        send_metrics_to_platform=False,
    )
    return learner.net


def trial(_: int) -> None:
    fedavg(0, TRIAL_ROUNDS)


def job() -> dict:
    models, seconds = clocked(fedavg, task.seeds)
    return {
        "version": version("pfl"),
        "pytorch": torch.__version__,
        "seconds": seconds,
        "seconds_with_compilation": seconds,
        "runs": len(models),
        "accuracy": sum(task.score(logits_of(task, net)) for net in models) / len(models),
        **task.start_facts(logits_of(task, network(task))),
    }


trial(0)
found = job() if kind == "job" else {"seconds": min(clocked(trial, [0])[1] for _ in range(2))}
if get_default_framework_module().distributed.global_rank == 0:
    report(**found)
