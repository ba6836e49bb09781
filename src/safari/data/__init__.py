"""Data: sources, partitions, the server's samples, and the federation that they make."""

from safari.data.coverage import Coverage
from safari.data.dataset import Batch, Dataset
from safari.data.federation import Federation, Rows, Schedule, Shard, federate
from safari.data.labels import jensen_shannon
from safari.data.partitions import Classes, Partition
from safari.data.server_set import ServerSet
from safari.data.sources import File, Source

__all__ = [
    "Batch",
    "Classes",
    "Coverage",
    "Dataset",
    "Federation",
    "File",
    "Partition",
    "Rows",
    "Schedule",
    "ServerSet",
    "Shard",
    "Source",
    "federate",
    "jensen_shannon",
]
