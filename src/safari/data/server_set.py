"""The server's own labelled samples: drawn from the whole population, or skewed."""

import numpy as np

from safari.errors import InputError, check, check_not_negative, check_positive


def draw_server_set(
    labels: np.ndarray,
    classes: int,
    size: int,
    missing_classes: tuple[int, ...],
    alpha: float | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """Sample numbers of the server's set T.

    Without skew T is i.i.d. from the population, and the set of a smaller `size` is a part
    of the set of a larger one: sizes can be compared under one seed. `missing_classes`
    leaves classes out; `alpha` draws the class mixture from Dirichlet(alpha * shares).
    Both make T's distribution P' differ from the population's P.
    """
    check_not_negative("server_samples", size)
    for label in missing_classes:
        check(
            0 <= label < classes, "server_missing_classes", label, f"must be classes from 0 to {classes - 1}"
        )
    order = rng.permutation(len(labels))
    order = order[~np.isin(labels[order], missing_classes)]
    check(size <= len(order), "server_samples", size, f"the data has only {len(order)} samples to draw from")
    if alpha is None:
        return order[:size]
    check_positive("server_alpha", alpha)
    available = np.bincount(labels[order], minlength=classes)
    share = available[available > 0] / len(order)
    mixture = np.zeros(classes)
    mixture[available > 0] = rng.dirichlet(np.maximum(alpha * share, 1e-6))
    counts = rng.multinomial(size, mixture)
    short = np.flatnonzero(counts > available)
    if len(short):
        raise InputError(
            "server_alpha",
            alpha,
            f"this draw asks for {counts[short[0]]} samples of class {short[0]}, which has "
            f"{available[short[0]]}; take a larger server_alpha, fewer server_samples or another seed",
        )
    chosen = np.concatenate([order[labels[order] == label][:count] for label, count in enumerate(counts)])
    return rng.permutation(chosen)
