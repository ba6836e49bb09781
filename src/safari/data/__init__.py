"""Data: sources, partitions, the server's samples, and the federation that they make."""

from safari.data.apart import Terms, at_node, at_server
from safari.data.coverage import Coverage
from safari.data.dataset import Batch, Dataset
from safari.data.federating import federate
from safari.data.federation import Federation, Rows, Schedule, Shard
from safari.data.labels import jensen_shannon
from safari.data.partitions import Classes, Partition
from safari.data.reading import read
from safari.data.samples import Samples
from safari.data.server_set import ServerSet
from safari.data.sources import File, Nodes, Source

__all__ = [
    "Batch",
    "Classes",
    "Coverage",
    "Dataset",
    "Federation",
    "File",
    "Nodes",
    "Partition",
    "Rows",
    "Samples",
    "Schedule",
    "ServerSet",
    "Shard",
    "Source",
    "Terms",
    "at_node",
    "at_server",
    "federate",
    "jensen_shannon",
    "read",
]
