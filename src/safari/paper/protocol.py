"""The protocol: what the paper says of its experiments, and what was chosen where it is silent.

Said: M = 10 clients and m = 5 a round (MNIST, CIFAR-10), local and server rate 0.1, global
rate 1, one local epoch, batches of 64 and 500, 150 and 5000 rounds.
Chosen, because it reproduces the numbers: every class goes to exactly p clients; a server
round takes as many steps as a client's epoch ("literal" is Algorithm 1 as printed, with one: too few
on MNIST at p = 1 and 2, about as good on CIFAR-10 where m is 4 or 5 and n_T 5000 or more);
the server's samples are drawn from the training set and left with the clients, so that
clients are the same whatever the server holds; FedAvg is scored by the mean of the last ten
evaluated rounds, SAFARI by the model that the last server round left. On CIFAR-10 gradients
are clipped at 10: without it runs at p = 10 blow up between rounds 800 and 1400.
Of Fashion-MNIST the paper says M = 150 and nothing more. Of 24 settings (p = 1, 2, 5, 10 and
Dirichlet, m = 5 to all, 1 to 20 local epochs, 40 to 400 samples a client), each scored at several
numbers of rounds, this one comes closest. None falls by the paper's 9 points from s = 0 to 120.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from safari.experiment.sweep import Cell, flat, make_cell

Method = Literal["fedavg", "safari", "server-only", "literal"]
SCORES = {
    "fedavg": "accuracy_round_last10",
    "safari": "accuracy",
    "server-only": "accuracy",
    "literal": "accuracy",
}
"""Which number of a run stands for it."""


def _rates(batch_size: int, **more: Any) -> dict[str, Any]:
    """Clients and server alike: rate 0.1, batches of one size."""
    return {
        "clients": {"local_rate": 0.1, "batch_size": batch_size, **more},
        "server": {"rate": 0.1, "batch_size": batch_size, **more},
    }


def _data(source: str, clients: int, samples: int) -> dict[str, Any]:
    """Clients of one size by classes; the server's samples stay with the clients, as the paper has it."""
    return {
        "source": source,
        "partition": {"clients": clients, "samples_per_client": samples},
        "server": {"disjoint": False},
    }


_MNIST: dict[str, Any] = {
    "data": _data("mnist", 10, 5400),
    "model": {"name": "logistic"},
    "algorithm": _rates(64),
    "train": {"rounds": 150},
}
_CIFAR10: dict[str, Any] = {
    "data": _data("cifar10", 10, 5000),
    "model": {"name": "cnn"},
    "algorithm": _rates(500, clip=10.0),
    "train": {"rounds": 5000, "evaluate_every": 25, "precision": "bfloat16"},
}
_FASHION: dict[str, Any] = {
    "data": _data("fashion-mnist", 150, 400),
    "model": {"name": "mlp"},
    "algorithm": {
        "clients": {"local_rate": 0.1, "batch_size": 64, "local_epochs": 10},
        "server": {"rate": 0.1, "batch_size": 64},
    },
    "train": {"rounds": 300, "evaluate_every": 10},
}


FIXED_PARTITION, FIXED_EXCLUSION = 0, 1


@dataclass(frozen=True)
class Dataset:
    """One of the paper's data sets: its base spec, and what it takes where a table is silent."""

    base: dict[str, Any]
    seeds: int
    p: int
    m: int
    server_samples: int


DATASETS = {
    "mnist": Dataset(_MNIST, seeds=5, p=1, m=5, server_samples=1000),
    "cifar10": Dataset(_CIFAR10, seeds=3, p=1, m=5, server_samples=10_000),
    "fashion-mnist": Dataset(_FASHION, seeds=3, p=2, m=20, server_samples=6000),
}


@dataclass(frozen=True, order=True)
class Setting:
    """One point of the paper's experiments. What a method does not look at is set to None."""

    dataset: str
    method: Method
    p: int | None
    s: int | None
    m: int | None
    q: float | None
    server_samples: int | None
    excluded: tuple[int, ...] | None = None

    def by(self, method: Method) -> "Setting":
        """The same point for another method."""
        return replace(self, method=method).plain()

    def plain(self) -> "Setting":
        """Without what makes no difference: one setting for one result."""
        if self.method == "fedavg":
            return replace(self, q=None, server_samples=None)
        if self.method == "server-only":
            return replace(self, p=None, s=None, m=None, q=None, excluded=None)
        return self


def cell_of(setting: Setting, seed: int, fixed_partition: bool = False) -> Cell:
    """The run of a setting under a seed.

    The paper fixed one partition and one set of excluded clients and repeated the rest;
    `fixed_partition` does so. Otherwise the seed draws them too.
    """
    dataset = DATASETS[setting.dataset]
    excluded = setting.s or 0 if setting.excluded is None else list(setting.excluded)
    settings: dict[str, Any] = {
        "data.partition.classes_per_client": setting.p or dataset.p,
        "data.server.samples": setting.server_samples or 0,
        "participation.excluded": excluded,
        "participation.per_round": setting.m or dataset.m,
        "algorithm.name": "safari" if setting.method == "literal" else setting.method,
        "train.seed": seed,
    }
    if setting.q is not None:
        settings["algorithm.q"] = setting.q
    if setting.method == "literal":
        settings["algorithm.server.steps"] = 1
    if fixed_partition:
        settings |= {"data.seed": FIXED_PARTITION, "participation.seed": FIXED_EXCLUSION}
    return make_cell({}, {**flat(dataset.base), **settings})
