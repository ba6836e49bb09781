"""Data: sources, partition, federation."""

from safari.data.coverage import Coverage
from safari.data.dataset import Batch, Dataset
from safari.data.federation import Federation, Rows, Schedule, Shard, federate
from safari.data.labels import jensen_shannon

__all__ = [
    "Batch",
    "Coverage",
    "Dataset",
    "Federation",
    "Rows",
    "Schedule",
    "Shard",
    "federate",
    "jensen_shannon",
]
