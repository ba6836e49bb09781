"""Partitions: which client holds which samples, and the names they go by in a spec."""

from safari.data.partitions.base import Partition
from safari.data.partitions.by_column import ByColumn
from safari.data.partitions.classes import Classes
from safari.data.partitions.dirichlet import Dirichlet
from safari.data.partitions.iid import IID

PARTITIONS: dict[str, type[Partition]] = {
    "classes": Classes,
    "dirichlet": Dirichlet,
    "iid": IID,
    "client": ByColumn,
}

__all__ = ["IID", "PARTITIONS", "ByColumn", "Classes", "Dirichlet", "Partition"]
