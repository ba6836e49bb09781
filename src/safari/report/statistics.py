"""Statistics over seeds: mean, deviation, 95 % interval, paired differences, ties."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.95
TIE_POINTS = 2.0
"""The paper writes '-' for a difference within this many points."""


@dataclass(frozen=True)
class Estimate:
    """The mean of `count` values, their deviation, and a 95 % interval (Student's t).

    Deviation and interval are NaN where there is one value.
    """

    count: int
    mean: float
    deviation: float
    low: float
    high: float


def estimate(values: Sequence[float]) -> Estimate:
    """Raises `ValueError` for no values: nothing can be said then."""
    if not len(values):
        raise ValueError("no values to estimate from")
    sample = np.asarray(values, float)
    mean = float(sample.mean())
    if len(sample) == 1:
        return Estimate(1, mean, math.nan, math.nan, math.nan)
    deviation = float(sample.std(ddof=1))
    reach = float(stdtrit(len(sample) - 1, (1 + CONFIDENCE) / 2)) * deviation / math.sqrt(len(sample))
    return Estimate(len(sample), mean, deviation, mean - reach, mean + reach)


def paired(first: dict[int, float], second: dict[int, float]) -> Estimate | None:
    """`first` minus `second` over the seeds that both have; None if they share none."""
    seeds = sorted(set(first) & set(second))
    return estimate([first[seed] - second[seed] for seed in seeds]) if seeds else None


def is_tie(points: float) -> bool:
    """The paper's rule: no difference within two points."""
    return abs(points) < TIE_POINTS
