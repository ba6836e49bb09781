"""Partitions: which client holds which samples."""

from safari.data.partitions.base import Partition
from safari.data.partitions.classes import Classes

__all__ = ["Classes", "Partition"]
