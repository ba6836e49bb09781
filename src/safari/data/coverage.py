"""What the participating clients cover, and the ceiling that follows for them alone."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Coverage:
    """Classes that some participating client holds, and their share of the population.

    `accuracy_ceiling` is the share of the test set in covered classes: a model trained on
    these clients alone has never seen the other classes and cannot name them.

    Examples:
        >>> import safari
        >>> safari.federate("digits").coverage(excluded=[0, 1]).covered_classes
        (0, 1, 3, 4, 6, 7, 8, 9)
    """

    covered_classes: tuple[int, ...]
    covered_mass: float
    accuracy_ceiling: float

    def __str__(self) -> str:
        return (
            f"{len(self.covered_classes)} classes covered, {self.covered_mass:.1%} of the samples; "
            f"client-only training cannot exceed {self.accuracy_ceiling:.1%}"
        )


def measure_coverage(y: np.ndarray, y_test: np.ndarray, seen: np.ndarray, classes: int) -> Coverage:
    """Coverage by the sample numbers in `seen`."""
    covered = np.flatnonzero(np.bincount(y[seen], minlength=classes))
    return Coverage(
        tuple(int(label) for label in covered),
        float(np.isin(y, covered).mean()),
        float(np.isin(y_test, covered).mean()),
    )
