"""Who holds what: ways to deal the samples out to the clients. Host code, NumPy only.

Every function takes the labels, the sample numbers to deal (already shuffled) and returns
one array of sample numbers per client. No sample is dealt twice.
"""

import numpy as np

from safari.errors import InputError, check, check_count, check_positive

REPAIR_TRIES = 10_000


def by_classes(
    labels: np.ndarray,
    pool: np.ndarray,
    classes: int,
    clients: int,
    classes_per_client: int,
    size_skew: float,
    samples_per_client: int | None,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Balanced classes: each client holds p distinct classes, each class as many clients.

    A client takes the same number of samples of each of its classes, as many as the
    scarcest class allows: all clients are of one size or, with `size_skew`, of log-normal
    sizes. What the scarcest class does not allow is dealt to nobody.
    """
    check_count("classes_per_client", classes_per_client)
    check(
        classes_per_client <= classes,
        "classes_per_client",
        classes_per_client,
        f"the data has only {classes} classes",
    )
    holds = deal_classes(clients, classes, classes_per_client, rng)
    own = [pool[labels[pool] == label] for label in range(classes)]
    gone = [label for label in range(classes) if not len(own[label])]
    check(
        not gone, "source", f"class {gone[:1]}", "has no training sample to deal; number classes without gaps"
    )
    weight = _size_weights(clients, size_skew, samples_per_client, rng)
    unit = min(len(own[c]) / max(holds[:, c] @ weight, 1e-9) for c in range(classes) if holds[:, c].any())
    if samples_per_client is not None:
        unit = _wanted_size(samples_per_client, int(unit) * classes_per_client, classes_per_client)
        unit /= classes_per_client
    share = np.floor(weight * unit + 1e-6).astype(int)
    check(share.min() > 0, "clients", clients, "too many: one would hold no sample of a class of its own")
    parts: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for label in range(classes):
        holders = rng.permutation(np.flatnonzero(holds[:, label]))
        ends = np.cumsum(share[holders])
        for client, end in zip(holders, ends, strict=True):
            parts[client].append(own[label][end - share[client] : end])
    return [np.concatenate(part) for part in parts]


def deal_classes(clients: int, classes: int, per_client: int, rng: np.random.Generator) -> np.ndarray:
    """A random (clients, classes) table of booleans with balanced rows and columns.

    Rows have exactly `per_client` classes; columns differ by one client at the most. Class
    cards are shuffled and dealt; doubles within a hand are swapped away at random. Hands
    of more than half the classes are dealt by what they lack: far fewer doubles.
    """
    if per_client > classes // 2:
        return (
            ~deal_classes(clients, classes, classes - per_client, rng)
            if per_client < classes
            else np.ones((clients, classes), bool)
        )
    cards = np.arange(clients * per_client) % classes
    cards = rng.permutation(classes)[cards]
    hands = rng.permutation(cards).reshape(clients, per_client)
    for _ in range(REPAIR_TRIES):
        ordered = np.sort(hands, axis=1)
        doubled = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(doubled):
            table = np.zeros((clients, classes), bool)
            table[np.arange(clients)[:, None], hands] = True
            return table
        for client in doubled.tolist():
            _swap_a_double(hands, client, rng)
    raise InputError("classes_per_client", per_client, f"no balanced deal over {clients} clients was found")


def _swap_a_double(hands: np.ndarray, client: int, rng: np.random.Generator) -> None:
    """Exchange one doubled card of `client` with a random card of a random other client."""
    hand = hands[client]
    values, counts = np.unique(hand, return_counts=True)
    if counts.max() < 2:
        return
    mine = rng.choice(np.flatnonzero(hand == values[counts.argmax()]))
    other, theirs = rng.integers(len(hands)), rng.integers(hands.shape[1])
    if hands[other, theirs] not in hand and hand[mine] not in hands[other]:
        hands[client, mine], hands[other, theirs] = hands[other, theirs], hands[client, mine]


def by_dirichlet(
    labels: np.ndarray,
    pool: np.ndarray,
    classes: int,
    clients: int,
    alpha: float,
    size_skew: float,
    samples_per_client: int | None,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Each client draws its class mixture from Dirichlet(alpha * class shares).

    Following Hsu, Qi, Brown (2019): sizes are set first, mixtures second; where a class has
    run out, the client goes on with what its mixture has left.
    """
    check_positive("alpha", alpha)
    sizes = _sizes(len(pool), clients, size_skew, samples_per_client, rng)
    stock = [pool[labels[pool] == label].tolist() for label in range(classes)]
    prior = np.array([len(own) for own in stock]) / len(pool)
    parts: list[np.ndarray] = [np.empty(0, int)] * clients
    for client in rng.permutation(clients):
        mixture = np.zeros(classes)
        mixture[prior > 0] = rng.dirichlet(np.maximum(alpha * prior[prior > 0], 1e-6))
        parts[client] = np.array(_take(stock, mixture, int(sizes[client]), rng), int)
    return _none_empty(parts)


def _take(stock: list[list[int]], mixture: np.ndarray, size: int, rng: np.random.Generator) -> list[int]:
    taken: list[int] = []
    while len(taken) < size:
        left = np.array([len(own) for own in stock])
        open_mixture = np.where(left > 0, mixture, 0.0)
        if open_mixture.sum() < 1e-9:
            open_mixture = left.astype(float)
        wanted = rng.multinomial(size - len(taken), open_mixture / open_mixture.sum())
        for label, count in enumerate(np.minimum(wanted, left)):
            taken += stock[label][:count]
            del stock[label][:count]
    return taken


def by_chance(
    pool: np.ndarray,
    clients: int,
    size_skew: float,
    samples_per_client: int | None,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Independent and identically distributed clients: a shuffled deck, cut."""
    sizes = _sizes(len(pool), clients, size_skew, samples_per_client, rng)
    return _none_empty(np.split(pool[: sizes.sum()], np.cumsum(sizes)[:-1]))


def by_column(client: np.ndarray, pool: np.ndarray) -> list[np.ndarray]:
    """As the file says; samples that the server took are gone from their client."""
    order = pool[np.argsort(client[pool], kind="stable")]
    counts = np.bincount(client[pool], minlength=client.max() + 1)
    return _none_empty(np.split(order, np.cumsum(counts)[:-1]))


def _sizes(
    samples: int, clients: int, size_skew: float, samples_per_client: int | None, rng: np.random.Generator
) -> np.ndarray:
    """How many samples each client gets: all of one size, or log-normal."""
    weight = _size_weights(clients, size_skew, samples_per_client, rng)
    if samples_per_client is not None:
        return np.full(clients, _wanted_size(samples_per_client, samples // clients, 1))
    return np.floor(weight / weight.sum() * samples + 1e-6).astype(int)


def _size_weights(
    clients: int, size_skew: float, samples_per_client: int | None, rng: np.random.Generator
) -> np.ndarray:
    if samples_per_client is not None:
        check(size_skew == 0, "samples_per_client", samples_per_client, "needs size_skew = 0")
    return np.exp(size_skew * rng.standard_normal(clients))


def _wanted_size(wanted: int, possible: int, multiple_of: int) -> float:
    check(
        multiple_of <= wanted <= possible and wanted % multiple_of == 0,
        "samples_per_client",
        wanted,
        f"must be a multiple of {multiple_of}, {possible} at the most",
    )
    return wanted


def _none_empty(parts: list[np.ndarray]) -> list[np.ndarray]:
    for client, part in enumerate(parts):
        check(len(part) > 0, "clients", len(parts), f"client {client} would hold no sample")
    return parts
