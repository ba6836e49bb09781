"""Participation: availability (who can take part) and sampling (who is picked)."""

from safari.participation.availability import Always, Availability
from safari.participation.cohort import Cohort
from safari.participation.participation import Participation, Roster

__all__ = ["Always", "Availability", "Cohort", "Participation", "Roster"]
