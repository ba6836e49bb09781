"""safari: federated learning that stays right when some clients never show up."""

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
from safari.train import train
from safari.training import Diverged
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
