"""safari: federated learning that stays right when some clients never show up.

Names are imported when they are first asked for: a process that needs little starts fast.
"""

from typing import TYPE_CHECKING

from safari.lazy import lazily

if TYPE_CHECKING:
    from safari.algorithms import SCAFFOLD, AdaptiveQ, FedAdam, FedAvg, FedOpt, FedProx, Safari, ServerSGD
    from safari.data import (
        CIFAR10,
        IID,
        MNIST,
        ByColumn,
        Classes,
        Coverage,
        Dataset,
        Digits,
        Dirichlet,
        FashionMNIST,
        Federation,
        File,
        Partition,
        ServerSet,
        Source,
        federate,
    )
    from safari.devices import use_cores
    from safari.errors import InputError
    from safari.models import CNN, MLP, Logistic, Model
    from safari.participation import (
        Always,
        Bernoulli,
        Cyclic,
        Diurnal,
        LongTail,
        Markov,
        Participation,
        Trace,
    )
    from safari.result import Result
    from safari.training import Diverged
    from safari.verb import train
    from safari.version import __version__

__all__ = [
    "CIFAR10",
    "CNN",
    "IID",
    "MLP",
    "MNIST",
    "SCAFFOLD",
    "AdaptiveQ",
    "Always",
    "Bernoulli",
    "ByColumn",
    "Classes",
    "Coverage",
    "Cyclic",
    "Dataset",
    "Digits",
    "Dirichlet",
    "Diurnal",
    "Diverged",
    "FashionMNIST",
    "FedAdam",
    "FedAvg",
    "FedOpt",
    "FedProx",
    "Federation",
    "File",
    "InputError",
    "Logistic",
    "LongTail",
    "Markov",
    "Model",
    "Participation",
    "Partition",
    "Result",
    "Safari",
    "ServerSGD",
    "ServerSet",
    "Source",
    "Trace",
    "__version__",
    "federate",
    "train",
    "use_cores",
]

__getattr__ = lazily(
    __name__,
    {
        "algorithms": (
            "AdaptiveQ",
            "FedAdam",
            "FedAvg",
            "FedOpt",
            "FedProx",
            "SCAFFOLD",
            "Safari",
            "ServerSGD",
        ),
        "data": (
            "ByColumn",
            "CIFAR10",
            "Classes",
            "Coverage",
            "Dataset",
            "Digits",
            "Dirichlet",
            "FashionMNIST",
            "Federation",
            "File",
            "IID",
            "MNIST",
            "Partition",
            "ServerSet",
            "Source",
            "federate",
        ),
        "devices": ("use_cores",),
        "errors": ("InputError",),
        "models": (
            "CNN",
            "Logistic",
            "MLP",
            "Model",
        ),
        "participation": (
            "Always",
            "Bernoulli",
            "Cyclic",
            "Diurnal",
            "LongTail",
            "Markov",
            "Participation",
            "Trace",
        ),
        "result": ("Result",),
        "verb": ("train",),
        "training": ("Diverged",),
        "version": ("__version__",),
    },
)


def __dir__() -> list[str]:
    return __all__
