"""How much a class counts in the loss: as given, or balanced by the server's label counts."""

import math

import numpy as np
from jaxtyping import Array, Float

from safari.data import Federation
from safari.devices import placed
from safari.errors import MOST_KNOWN, InputError, check, unknown_name

KEY, BALANCED = "train.class_weights", "balanced"


ClassWeights = str | tuple[float, ...] | dict[str, float]
"""`balanced`; a number for each class, in their order; or numbers by the names of classes, else 1."""


def class_weights_of(given: ClassWeights | None, federation: Federation) -> Float[Array, " classes"] | None:
    """The factor on the loss of each class; None where all count the same.

    `balanced` weighs a class by one over its number of samples in the server's set, counted once more each so
    that a class which the server lacks has a weight too, scaled so that the mean over the server's samples is
    1. The server's counts are the ones that everybody may know: no client has to show how many samples of a
    class it holds.

    Raises:
        InputError: if the weights do not fit the classes, or the server has no samples to go by.
    """
    if given is None:
        return None
    if isinstance(given, str):
        wanted = f"must be {BALANCED!r}, a list of numbers, one a class, or a table of them by class"
        check(given == BALANCED, KEY, given, wanted)
        return placed(_balanced(federation), np.float32)
    labels = federation.dataset.labels
    if isinstance(given, dict):
        for name, weight in given.items():
            check(name in labels, f"{KEY}.{name}", weight, unknown_name(name, labels, "class"))
        given = tuple(given.get(name, 1.0) for name in labels)
    order = ", ".join(labels[:MOST_KNOWN]) + (", ..." if len(labels) > MOST_KNOWN else "")
    hint = f"needs one number for each of {len(labels)} classes, in this order: {order}"
    check(len(given) == len(labels), KEY, list(given), hint)
    fine = all(math.isfinite(one) and one >= 0 for one in given) and any(one > 0 for one in given)
    check(fine, KEY, list(given), "must be 0 or more each, and not all 0")
    return placed(np.array(given), np.float32)


def _balanced(federation: Federation) -> np.ndarray:
    held = federation.held_by(None)
    if not len(held):
        raise InputError(KEY, BALANCED, "goes by the server's samples, and it has none; give a list")
    counts = np.bincount(np.asarray(federation.dataset.y)[held], minlength=federation.dataset.classes)
    weights = 1 / (counts + 1)
    return weights * counts.sum() / (weights * counts).sum()
