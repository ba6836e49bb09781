"""How many samples each client gets: what `Classes`, `Dirichlet` and `IID` have in common."""

import numpy as np

from safari.errors import check, check_count, check_not_negative


def check_sizes(clients: int, samples_per_client: int | None, size_skew: float) -> None:
    """Raise `InputError` unless the three fields make sense together."""
    check_count("clients", clients)
    check_not_negative("size_skew", size_skew)
    if samples_per_client is not None:
        check_count("samples_per_client", samples_per_client)
        check(size_skew == 0, "samples_per_client", samples_per_client, "needs size_skew = 0")


def check_enough(clients: int, pool: np.ndarray) -> None:
    """Raise `InputError` if there are more clients than samples."""
    check(clients <= len(pool), "clients", clients, f"there are only {len(pool)} samples to share out")


def check_size(wanted: int, possible: int, multiple_of: int = 1) -> None:
    """Raise `InputError` unless all clients can hold `wanted` samples each."""
    check(
        multiple_of <= wanted <= possible and wanted % multiple_of == 0,
        "samples_per_client",
        wanted,
        f"must be a multiple of {multiple_of}, {possible} at the most",
    )


def draw_weights(clients: int, size_skew: float, rng: np.random.Generator) -> np.ndarray:
    """Sizes in proportion: log-normal with sigma `size_skew`, so all of them 1 where it is 0.

    The draw happens at any `size_skew`: what a partition draws after it then does not depend on it.
    """
    return np.exp(size_skew * rng.standard_normal(clients))


def draw_sizes(
    clients: int,
    samples_per_client: int | None,
    size_skew: float,
    pool: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The number of samples of each client; together they are no more than the pool has."""
    check_enough(clients, pool)
    weight = draw_weights(clients, size_skew, rng)
    if samples_per_client is not None:
        check_size(samples_per_client, len(pool) // clients)
        return np.full(clients, samples_per_client)
    # The small constant keeps rounding errors from costing a client its last sample.
    sizes = np.floor(weight / weight.sum() * len(pool) + 1e-6).astype(int)
    check(sizes.min() > 0, "clients", clients, f"client {sizes.argmin()} would hold no sample")
    return sizes
