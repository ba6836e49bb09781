"""Availability patterns: who can take part in a round."""

from safari.participation.availability.always import Always
from safari.participation.availability.base import Availability

__all__ = ["Always", "Availability"]
