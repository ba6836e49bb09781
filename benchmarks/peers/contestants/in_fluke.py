"""The job in fluke: its FedAVG, clients, channel and FastDataLoader, evaluation switched off.

The best number of threads, tried before the clock starts.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


class Absent(ModuleType):
    """Stands for torchvision, which fluke imports for its own data sets and networks: unused here."""

    __path__: tuple = ()

    def __init__(self, name: str):
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return object


for name in ("", ".models", ".datasets", ".datasets.utils", ".transforms"):
    sys.modules[f"torchvision{name}"] = Absent(f"torchvision{name}")

from importlib.metadata import version  # noqa: E402

import torch  # noqa: E402
from fluke import DDict, FlukeENV  # noqa: E402
from fluke.algorithms.fedavg import FedAVG  # noqa: E402
from fluke.data import DataSplitter, DummyDataContainer, FastDataLoader  # noqa: E402
from task import THREADS, clocked, fastest, given_task, report  # noqa: E402
from torch_model import client_tensors, logits_of, network  # noqa: E402

task = given_task()


class WholeBatches(FastDataLoader):
    """Shuffles all samples before every pass and leaves the incomplete last batch out."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor):
        super().__init__(x, y, num_labels=10, batch_size=task.batch)
        self.size = min(task.samples, task.batches * task.batch)
        self.batch_size = task.batch

    def __iter__(self):
        order = torch.randperm(self.max_size)
        self.tensors = [tensor[order] for tensor in self.tensors]
        return super().__iter__()


FlukeENV().set_device("cpu")
FlukeENV().set_inmemory(True)
FlukeENV().set_eval_cfg(pre_fit=False, post_fit=False, locals=False, server=False)
loaders = [WholeBatches(x, y) for x, y in client_tensors(task)]
federation = DummyDataContainer(loaders, [None] * task.clients, None, num_classes=10)


def fedavg(seed: int, rounds: int = task.rounds) -> torch.nn.Module:
    FlukeENV().set_seed(seed)
    settings = DDict(
        client=DDict(
            batch_size=task.batch,
            local_epochs=1,
            loss="CrossEntropyLoss",
            optimizer=DDict(name="SGD", lr=task.rate),
            scheduler=DDict(name="StepLR", step_size=1, gamma=1),
        ),
        server=DDict(weighted=False),
        model=network(task),
    )
    algorithm = FedAVG(task.clients, DataSplitter(federation), settings)
    algorithm.run(rounds, eligible_perc=task.per_round / task.clients)
    return algorithm.server.model


def trial(threads: int) -> None:
    torch.set_num_threads(threads)
    fedavg(0, rounds=2)


start_facts = task.start_facts(logits_of(task, network(task)))
threads = fastest(trial, THREADS)
torch.set_num_threads(threads)
models, seconds = clocked(fedavg, task.seeds)
report(
    version=version("fluke-fl"),
    setting=f"threads: {threads}, PyTorch {torch.__version__}",
    seconds=seconds,
    seconds_with_compilation=seconds,
    runs=len(models),
    accuracy=sum(task.score(logits_of(task, model)) for model in models) / len(models),
    **start_facts,
)
