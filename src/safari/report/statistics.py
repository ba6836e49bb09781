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


def deviation(values: Sequence[float] | np.ndarray) -> float | np.ndarray:
    """The sample's standard deviation (n - 1 below) over the first axis; NaN where there is one value.

    Tables, bands and intervals all take it from here, so that they agree.
    """
    sample = np.asarray(values, float)
    return sample.std(axis=0, ddof=1) if len(sample) > 1 else np.full(sample.shape[1:], math.nan)


def band(curves: Sequence[list[float]] | Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of the curves, and one deviation below and above it; a single curve has no band."""
    mean, spread = np.mean(curves, axis=0), np.nan_to_num(deviation(np.asarray(curves)))
    return mean, mean - spread, mean + spread


def estimate(values: Sequence[float]) -> Estimate:
    """Raises `ValueError` for no values: nothing can be said then."""
    if not len(values):
        raise ValueError("no values to estimate from")
    sample = np.asarray(values, float)
    mean = float(sample.mean())
    if len(sample) == 1:
        return Estimate(1, mean, math.nan, math.nan, math.nan)
    spread = float(deviation(sample))
    reach = float(stdtrit(len(sample) - 1, (1 + CONFIDENCE) / 2)) * spread / math.sqrt(len(sample))
    return Estimate(len(sample), mean, spread, mean - reach, mean + reach)


def paired(first: dict[int, float], second: dict[int, float]) -> Estimate | None:
    """`first` minus `second` over the seeds that both have; None if they share none."""
    seeds = sorted(set(first) & set(second))
    return estimate([first[seed] - second[seed] for seed in seeds]) if seeds else None


def is_tie(points: float) -> bool:
    """The paper's rule: no difference within two points."""
    return abs(points) < TIE_POINTS
