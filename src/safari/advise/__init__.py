"""Advice for a federation: measure first, then recommend."""

from safari.advise.advice import Advice, advise
from safari.advise.pilot import Pilot

__all__ = ["Advice", "Pilot", "advise"]
