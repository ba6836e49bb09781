"""Participation: availability (who can take part) and sampling (who is picked)."""

from safari.participation.availability import (
    AVAILABILITIES,
    Always,
    Availability,
    Bernoulli,
    Cyclic,
    Diurnal,
    LongTail,
    Markov,
    Trace,
)
from safari.participation.cohort import Cohort
from safari.participation.participation import Participation, Roster

__all__ = [
    "AVAILABILITIES",
    "Always",
    "Availability",
    "Bernoulli",
    "Cohort",
    "Cyclic",
    "Diurnal",
    "LongTail",
    "Markov",
    "Participation",
    "Roster",
    "Trace",
]
