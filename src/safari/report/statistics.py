"""Statistics over seeds: mean, deviation, 95 % interval, paired differences, ties."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    def within(self, least: float, most: float) -> "Estimate":
        """The same for values that cannot lie beyond these bounds: so neither does the interval."""
        low, high = (min(max(end, least), most) for end in (self.low, self.high))
        return replace(self, low=low, high=high) if self.count > 1 else self


def deviation(values: Sequence[float] | np.ndarray) -> float | np.ndarray:
    """The sample's standard deviation (n - 1 below) over the first axis; NaN where there is one value.

    Tables, bands and intervals all take it from here, so that they agree.
    """
    sample = np.asarray(values, float)
    return sample.std(axis=0, ddof=1) if len(sample) > 1 else np.full(sample.shape[1:], math.nan)


def band(curves: Sequence[list[float]] | Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of the curves of a share in per cent, and one deviation below and above it, from 0 to 100.

    A single curve has no band.
    """
    mean, spread = np.mean(curves, axis=0), np.nan_to_num(deviation(np.asarray(curves)))
    return mean, np.maximum(mean - spread, 0), np.minimum(mean + spread, 100)


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


def paired_over_folds(
    first: dict[int, float], second: dict[int, float], held_out: float, tried: int = 1
) -> Estimate | None:
    """`first` minus `second` over folds of one set of samples, of which a share `held_out` scores each.

    Folds share most of what they train on, so their differences vary less than those of independent
    samples would: the variance is raised as Nadeau and Bengio (Inference for the Generalization Error,
    2003) propose. Where `first` is the best of several that were `tried`, the interval is as much wider
    as Bonferroni's rule asks for, so that the best of many equal ones does not look better by luck.
    """
    folds = sorted(set(first) & set(second))
    if len(folds) < 2:
        return paired(first, second)
    plain = estimate([first[fold] - second[fold] for fold in folds])
    level = 1 - (1 - CONFIDENCE) / (2 * tried)
    spread = plain.deviation * math.sqrt(1 / len(folds) + held_out / (1 - held_out))
    reach = float(stdtrit(len(folds) - 1, level)) * spread
    return Estimate(plain.count, plain.mean, plain.deviation, plain.mean - reach, plain.mean + reach)


def is_tie(points: float) -> bool:
    """The paper's rule: no difference within two points."""
    return abs(points) < TIE_POINTS
