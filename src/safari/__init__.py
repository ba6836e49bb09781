"""safari: federated learning that stays right when some clients never show up.

Names are imported when they are first asked for: a process that needs little starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from safari.algorithms import SCAFFOLD, AdaptiveQ, FedAdam, FedAvg, FedOpt, FedProx, Safari, ServerSGD
    from safari.data import Coverage, Dataset, Federation, federate
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
]

_PLACES = {
    "safari.algorithms": (
        "AdaptiveQ",
        "FedAdam",
        "FedAvg",
        "FedOpt",
        "FedProx",
        "SCAFFOLD",
        "Safari",
        "ServerSGD",
    ),
    "safari.data": (
        "Coverage",
        "Dataset",
        "Federation",
        "federate",
    ),
    "safari.errors": ("InputError",),
    "safari.models": (
        "CNN",
        "Logistic",
        "MLP",
        "Model",
    ),
    "safari.participation": (
        "Always",
        "Bernoulli",
        "Cyclic",
        "Diurnal",
        "LongTail",
        "Markov",
        "Participation",
        "Trace",
    ),
    "safari.result": ("Result",),
    "safari.verb": ("train",),
    "safari.training": ("Diverged",),
    "safari.version": ("__version__",),
}
_PLACE = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACE:
        raise AttributeError(f"module 'safari' has no attribute {name!r}")
    return getattr(import_module(_PLACE[name]), name)


def __dir__() -> list[str]:
    return __all__
