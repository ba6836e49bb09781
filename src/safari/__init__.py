"""safari: federated learning that stays right when some clients never show up.

Names are imported when they are first asked for: a process that needs little starts fast.
"""

from typing import TYPE_CHECKING

from safari.lazy import lazily

if TYPE_CHECKING:
    from safari.algorithms import SCAFFOLD, AdaptiveQ, FedAdam, FedAvg, FedOpt, FedProx, Safari, ServerSGD
    from safari.data import Coverage, Dataset, Federation, federate
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
    "CNN",
    "MLP",
    "SCAFFOLD",
    "AdaptiveQ",
    "Always",
    "Bernoulli",
    "Coverage",
    "Cyclic",
    "Dataset",
    "Diurnal",
    "Diverged",
    "FedAdam",
    "FedAvg",
    "FedOpt",
    "FedProx",
    "Federation",
    "InputError",
    "Logistic",
    "LongTail",
    "Markov",
    "Model",
    "Participation",
    "Result",
    "Safari",
    "ServerSGD",
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
            "Coverage",
            "Dataset",
            "Federation",
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
