"""Data: sources, partitions, the server's samples, and the federation that they make."""

from safari.data.coverage import Coverage
from safari.data.dataset import Batch, Dataset
from safari.data.federation import Federation, Rows, Schedule, Shard, federate
from safari.data.partitions import IID, PARTITIONS, ByColumn, Classes, Dirichlet, Partition
from safari.data.server_set import ServerSet
from safari.data.sources import CIFAR10, MNIST, Digits, FashionMNIST, File, Source

__all__ = [
    "CIFAR10",
    "IID",
    "MNIST",
    "PARTITIONS",
    "Batch",
    "ByColumn",
    "Classes",
    "Coverage",
    "Dataset",
    "Digits",
    "Dirichlet",
    "FashionMNIST",
    "Federation",
    "File",
    "Partition",
    "Rows",
    "Schedule",
    "ServerSet",
    "Shard",
    "Source",
    "federate",
]
