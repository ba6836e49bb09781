"""Algorithms, and the names that client algorithms go by in a spec."""

from safari.algorithms.adaptive_q import AdaptiveQ
from safari.algorithms.base import Algorithm, Kind, Turn
from safari.algorithms.client import ClientAlgorithm
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.fedopt import FedAdam, FedOpt
from safari.algorithms.fedprox import FedProx
from safari.algorithms.safari import Safari
from safari.algorithms.scaffold import SCAFFOLD
from safari.algorithms.server_sgd import ServerSGD
from safari.algorithms.task import Halves, Precision, Task, inner

CLIENT_ALGORITHMS: dict[str, type[ClientAlgorithm]] = {
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fedadam": FedAdam,
    "fedopt": FedOpt,
    "scaffold": SCAFFOLD,
}

__all__ = [
    "CLIENT_ALGORITHMS",
    "SCAFFOLD",
    "AdaptiveQ",
    "Algorithm",
    "ClientAlgorithm",
    "FedAdam",
    "FedAvg",
    "FedOpt",
    "FedProx",
    "Halves",
    "Kind",
    "Precision",
    "Safari",
    "ServerSGD",
    "Task",
    "Turn",
    "inner",
]
