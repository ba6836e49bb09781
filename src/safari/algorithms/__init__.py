"""Algorithms: the base, the client round in moves, the combinators, then one file a method."""

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.adaptive_q import AdaptiveQ, Knowledge
from safari.algorithms.base import Algorithm, Kind, Note, Turn, note
from safari.algorithms.client import Client, ClientAlgorithm, ClientState, Reports
from safari.algorithms.fedavg import FedAvg
from safari.algorithms.safari import Safari
from safari.algorithms.schedule import Schedule
from safari.algorithms.server_sgd import ServerSGD
from safari.algorithms.task import Halves, Precision, Task, inner

__all__ = [
    "About",
    "AdaptiveQ",
    "Algorithm",
    "Client",
    "ClientAlgorithm",
    "ClientState",
    "FedAvg",
    "Halves",
    "Idea",
    "Kind",
    "Knowledge",
    "Note",
    "Paper",
    "Precision",
    "Reports",
    "Safari",
    "Schedule",
    "ServerSGD",
    "Task",
    "Turn",
    "inner",
    "note",
]
