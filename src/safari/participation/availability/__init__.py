"""Availability patterns, and the names they go by in a spec."""

from safari.participation.availability.always import Always
from safari.participation.availability.base import Availability
from safari.participation.availability.bernoulli import Bernoulli
from safari.participation.availability.cyclic import Cyclic
from safari.participation.availability.diurnal import Diurnal
from safari.participation.availability.long_tail import LongTail
from safari.participation.availability.markov import Markov
from safari.participation.availability.trace import Trace

AVAILABILITIES: dict[str, type[Availability]] = {
    "always": Always,
    "bernoulli": Bernoulli,
    "cyclic": Cyclic,
    "diurnal": Diurnal,
    "long-tail": LongTail,
    "markov": Markov,
    "trace": Trace,
}

__all__ = [
    "AVAILABILITIES",
    "Always",
    "Availability",
    "Bernoulli",
    "Cyclic",
    "Diurnal",
    "LongTail",
    "Markov",
    "Trace",
]
