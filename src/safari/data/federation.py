"""`Federation`: the samples, which client holds which, the server's own set, the test set."""

from dataclasses import replace
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Shaped

from safari.data.augment import crop_and_flip
from safari.data.coverage import Coverage, measure_coverage
from safari.data.dataset import Batch, Dataset
from safari.data.partition import by_chance, by_classes, by_column, by_dirichlet
from safari.data.server_set import draw_server_set
from safari.data.sources import load
from safari.devices import placed
from safari.errors import check, check_choice, check_count, check_not_negative, check_seed
from safari.randomness import host_stream, shuffled

DEFAULT_CLIENTS = 10


class Shard(eqx.Module):
    """A stretch of `Federation.samples`: a client's, or the server's; or all clients'."""

    start: Int[Array, "*holders"]
    count: Int[Array, "*holders"]


class Rows(eqx.Module):
    """Samples and labels as they are stored: bytes stay bytes."""

    x: Shaped[Array, "*many features"]
    y: Int[Array, "*many"]


class Schedule(eqx.Module):
    """The minibatches of a stretch of local training, step by step."""

    samples: Int[Array, "steps size"]
    weight: Float[Array, "steps size"]


class Federation(eqx.Module):
    """Sample numbers, holder after holder and the server last, over one `Dataset`.

    The static sizes are what array shapes need; everything else is a leaf, so federations
    of equal shape can be stacked. `server_most` bounds the server's samples, so that servers
    of different sizes can be made of one shape.
    """

    dataset: Dataset
    samples: Int[Array, " held"]
    clients: Shard
    server: Shard
    largest: int = eqx.field(static=True)
    typical: int = eqx.field(static=True)
    ragged: bool = eqx.field(static=True)
    server_most: int = eqx.field(static=True)
    augment: bool = eqx.field(static=True)

    @classmethod
    def of(
        cls, dataset: Dataset, parts: list[np.ndarray], server: np.ndarray, augment: bool = False
    ) -> "Federation":
        """The federation in which client i holds the sample numbers `parts[i]`."""
        counts = np.array([len(part) for part in parts])
        return cls(
            dataset,
            samples=placed(np.concatenate([*parts, server]), np.int32),
            clients=Shard(placed(np.cumsum(counts) - counts, np.int32), placed(counts, np.int32)),
            server=Shard(placed(counts.sum(), np.int32), placed(len(server), np.int32)),
            largest=int(counts.max()),
            typical=int(np.median(counts)),
            ragged=bool(counts.min() < counts.max()),
            server_most=len(server),
            augment=augment,
        )

    def padded(self, held: int, server_most: int) -> "Federation":
        """The same federation in arrays for `held` samples in all and `server_most` of the server."""
        samples = jnp.pad(self.samples, (0, held - len(self.samples)))
        return replace(self, samples=samples, server_most=server_most)

    @property
    def server_samples(self) -> int:
        """The number of the server's samples, n_T. Host code."""
        return int(self.server.count)

    @property
    def size(self) -> int:
        """The number of clients, M."""
        return self.clients.count.shape[-1]

    def client(self, number: Int[Array, ""]) -> Shard:
        return Shard(self.clients.start[number], self.clients.count[number])

    def held_by(self, client: int | None) -> np.ndarray:
        """The sample numbers of one client, or of the server (None). Host code."""
        shard = self.server if client is None else self.client(jnp.int32(client))
        start = int(shard.start)
        return np.asarray(self.samples)[start : start + int(shard.count)]

    def schedule(self, shard: Shard, key: Key[Array, ""], steps: int, size: int) -> Schedule:
        """Which samples each of `steps` minibatches of `size` holds.

        A pass goes through the shard in a fresh shuffle; its last, incomplete batch is
        dropped. A shard smaller than `size` gives batches of all its samples.
        """
        a_pass = jnp.maximum(shard.count // size, 1)

        def batch(step: Int[Array, ""]) -> tuple[Array, Array]:
            number, place = step // a_pass, step % a_pass
            position = place * size + jnp.arange(size)
            inside = position < shard.count
            order = shuffled(jax.random.fold_in(key, number), shard.count, jnp.where(inside, position, 0))
            weight = inside / jnp.minimum(size, shard.count)
            return self.samples[shard.start + order], weight.astype(jnp.float32)

        return Schedule(*jax.vmap(batch)(jnp.arange(steps)))

    def gather(self, samples: Int[Array, "*many"]) -> Rows:
        """Samples and labels as stored, by their numbers."""
        return Rows(
            *(rows.at[samples].get(mode="promise_in_bounds") for rows in (self.dataset.x, self.dataset.y))
        )

    def batch(self, rows: Rows, weight: Float[Array, " size"], key: Key[Array, ""]) -> Batch:
        """A training batch of gathered rows; `key` is for augmentation."""
        x = self.dataset.shaped(rows.x)
        if self.augment:
            x = crop_and_flip(x, key)
        return Batch(self.dataset.normalise(x), rows.y, weight)

    def plain_batch(self, rows: Rows, weight: Float[Array, " size"]) -> Batch:
        """The same without augmentation."""
        return Batch(self.dataset.normalise(self.dataset.shaped(rows.x)), rows.y, weight)

    def label_counts(self) -> tuple[Float[Array, "clients classes"], Float[Array, " classes"]]:
        """How many samples of each class every client holds, and the server."""
        labels = jax.nn.one_hot(self.dataset.y[self.samples], self.dataset.classes)
        place = jnp.arange(len(self.samples))
        holder = jnp.searchsorted(jnp.cumsum(self.clients.count), place, side="right")
        counts = jax.ops.segment_sum(labels, holder, self.size)
        inside = (place >= self.server.start) & (place < self.server.start + self.server.count)
        return counts, jnp.sum(labels * inside[:, None], axis=0)

    def coverage(self, excluded: np.ndarray | list[int] | tuple[int, ...] = ()) -> Coverage:
        """What the clients outside `excluded` can teach: classes, mass, accuracy ceiling."""
        counts = np.asarray(self.clients.count)
        holder = np.repeat(np.arange(self.size), counts)
        seen = np.asarray(self.samples)[: counts.sum()][~np.isin(holder, np.asarray(excluded, int))]
        return measure_coverage(
            np.asarray(self.dataset.y), np.asarray(self.dataset.y_test), seen, self.dataset.classes
        )


def federate(
    source: str | Dataset = "digits",
    *,
    clients: int | None = None,
    partition: Literal["classes", "dirichlet", "iid", "client"] = "classes",
    classes_per_client: int = 1,
    alpha: float = 0.5,
    size_skew: float = 0.0,
    samples_per_client: int | None = None,
    server_samples: int = 100,
    server_disjoint: bool = True,
    server_missing_classes: tuple[int, ...] = (),
    server_alpha: float | None = None,
    augment: bool | None = None,
    folder: str | None = None,
    seed: int = 0,
) -> Federation:
    """Deal a data set out to clients and set the server's samples aside.

    - `source`: `digits`, `mnist`, `fashion-mnist`, `cifar10`, an .npz path or a `Dataset`;
      `folder` is where published files lie (else `SAFARI_DATA`, else the fetched ones).
    - `partition`: `classes` (`classes_per_client` distinct classes each, balanced),
      `dirichlet` (mixtures with concentration `alpha`), `iid`, or `client` (as the file says).
    - `size_skew`: 0 for clients of one size, else the sigma of log-normal sizes;
      `samples_per_client` fixes the one size (default: the largest possible).
    - `server_samples`: n_T, drawn from the whole population. `server_disjoint` (the default)
      takes them away from the clients: a server's samples are not its clients' private ones,
      and counting a sample on both sides would flatter the server. They can be skewed:
      `server_missing_classes`, `server_alpha`.
    - `augment`: crop and flip training batches (default: CIFAR-10 alone).
    - `seed`: of the partition and the server set, apart from the seed of training.
    """
    check_choice("partition", partition, ("classes", "dirichlet", "iid", "client"))
    check_not_negative("size_skew", size_skew)
    check_seed("seed", seed)
    dataset = source if isinstance(source, Dataset) else load(str(source), folder)
    augment = dataset.augment if augment is None else augment
    check(not augment or len(dataset.shape) == 3, "augment", augment, "needs images")
    labels = np.asarray(dataset.y)
    server = draw_server_set(
        labels, dataset.classes, server_samples, tuple(server_missing_classes), server_alpha,
        host_stream(seed, "server set"),
    )  # fmt: skip
    rng = host_stream(seed, "partition")
    pool = rng.permutation(len(labels))
    if server_disjoint:
        pool = pool[~np.isin(pool, server)]
    check(len(pool) > 0, "server_samples", server_samples, "leaves no sample for the clients")
    count = _client_count(dataset, clients, partition)
    check(count <= len(pool), "clients", count, f"there are only {len(pool)} samples to deal")
    sizes = (size_skew, samples_per_client, rng)
    if partition == "classes":
        parts = by_classes(labels, pool, dataset.classes, count, classes_per_client, *sizes)
    elif partition == "dirichlet":
        parts = by_dirichlet(labels, pool, dataset.classes, count, alpha, *sizes)
    elif partition == "iid":
        parts = by_chance(pool, count, *sizes)
    else:
        parts = by_column(np.asarray(dataset.client), pool)
    return Federation.of(dataset, parts, server, augment)


def _client_count(dataset: Dataset, clients: int | None, partition: str) -> int:
    if partition != "client":
        count = DEFAULT_CLIENTS if clients is None else clients
        check_count("clients", count)
        return count
    check(dataset.client is not None, "partition", partition, f"{dataset.name} has no client column")
    held = int(np.asarray(dataset.client).max()) + 1
    check(clients in (None, held), "clients", clients, f"the file's client column has {held}")
    return held
