"""`Federation`: the samples, which client holds which, the server's own set, the test set."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Shaped

from safari.data.augment import crop_and_flip
from safari.data.coverage import Coverage, measure_coverage
from safari.data.dataset import Batch, Dataset
from safari.data.partitions import Classes, Partition
from safari.data.server_set import ServerSet, split_held_out
from safari.data.sources import Source, load
from safari.devices import placed
from safari.errors import InputError, check, check_choice, check_seed
from safari.randomness import host_stream, shuffled
from safari.registry import Noun


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
    """Sample numbers, holder after holder, then the server, over one `Dataset`.

    Behind the server's samples stand those of its `validation` set, which nobody trains on.

    The static sizes are what array shapes need; everything else is a leaf, so federations
    of equal shape can be stacked. `largest` and `median_size` are the sizes of the largest and
    of the median client; `ragged` says whether sizes differ. `server_most` bounds the server's
    samples and `validation_most` the validation samples, so that servers of different sizes can be made of
    one shape.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits", safari.Classes(clients=5, classes_per_client=2))
        >>> federation.size, federation.server_samples, len(federation.held_by(0)) == federation.largest
        (5, 100, True)
    """

    dataset: Dataset
    samples: Int[Array, " held"]
    clients: Shard
    server: Shard
    validation: Shard
    largest: int = eqx.field(static=True)
    median_size: int = eqx.field(static=True)
    ragged: bool = eqx.field(static=True)
    server_most: int = eqx.field(static=True)
    validation_most: int = eqx.field(static=True)
    augment: bool = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        parts: list[np.ndarray],
        server: np.ndarray,
        augment: bool = False,
        validation: np.ndarray | None = None,
    ) -> "Federation":
        """The federation in which client i holds the sample numbers `parts[i]`."""
        counts = np.array([len(part) for part in parts])
        held_out = np.zeros(0, np.int64) if validation is None else validation
        trained_on = counts.sum() + len(server)
        return cls(
            dataset,
            samples=placed(np.concatenate([*parts, server, held_out]), np.int32),
            clients=Shard(placed(np.cumsum(counts) - counts, np.int32), placed(counts, np.int32)),
            server=Shard(placed(counts.sum(), np.int32), placed(len(server), np.int32)),
            validation=Shard(placed(trained_on, np.int32), placed(len(held_out), np.int32)),
            largest=int(counts.max()),
            median_size=int(np.median(counts)),
            ragged=bool(counts.min() < counts.max()),
            server_most=len(server),
            validation_most=len(held_out),
            augment=augment,
        )

    def padded(self, held: int, server_most: int, validation_most: int) -> "Federation":
        """The same federation in arrays for `held` samples in all, so many of the server and held out."""
        samples = jnp.pad(self.samples, (0, held - len(self.samples)))
        return replace(self, samples=samples, server_most=server_most, validation_most=validation_most)

    @property
    def server_samples(self) -> int:
        """The number of the server's samples, n_T. Host code."""
        return int(self.server.count)

    @property
    def size(self) -> int:
        """The number of clients, M."""
        return self.clients.count.shape[-1]

    @property
    def client_names(self) -> tuple[str, ...] | None:
        """The names of the clients, where the data names them."""
        return self.dataset.client_names

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
    source: str | Dataset | Source = "digits",
    partition: Partition = Classes(),
    server: ServerSet = ServerSet(),
    *,
    augment: bool | None = None,
    folder: str | None = None,
    validation: float = 0.0,
    score: Literal["test", "validation"] = "test",
    seed: int = 0,
) -> Federation:
    """Split a data set among clients and draw the server's own samples.

    Args:
        source: `digits`, `mnist`, `fashion-mnist`, `cifar10`, the path of an .npz file, a
            `Dataset`, or a `Source`, which may be one of your own.
        partition: who holds what: `Classes`, `Dirichlet`, `IID`, `ByColumn`, or a `Partition` of your own.
        server: the server's samples, drawn from the whole population before the clients get theirs.
        augment: whether to crop and flip training batches (default: for CIFAR-10 alone).
        folder: where the published files of a data set lie (else `SAFARI_DATA`, else the
            fetched ones). Only for a `source` that is a name.
        validation: the share of the server's samples that is held out, class by class. Nobody trains on
            them; what chooses among models or settings looks at them, never at the test set.
        score: the samples that models are scored on. `validation` puts the held-out samples in the place
            of the test set, which the federation then does not hold.
        seed: draws the partition and the server's samples; the seed of training is another one.

    Returns:
        The federation. The same arguments give the same one, bit for bit.

    Raises:
        InputError: if a value is out of range, the parts do not fit the data set, or a `Source` or
            `Partition` of your own returns something else than it should.

    Examples:
        >>> import safari
        >>> clients = safari.Classes(samples_per_client=120)
        >>> federation = safari.federate("digits", clients, safari.ServerSet(50))
        >>> federation.size, federation.server_samples
        (10, 50)
        >>> print(federation.coverage(excluded=[0, 1, 2, 3]))
        6 classes covered, 59.8% of the samples; client-only training cannot exceed 59.7%
    """
    check(isinstance(partition, Partition), "partition", partition, "must be a Partition, such as Classes()")
    check(isinstance(server, ServerSet), "server", server, "must be a ServerSet, such as ServerSet(100)")
    check_seed("seed", seed)
    dataset = _dataset(source, folder)
    augment = dataset.augment if augment is None else augment
    check(not augment or len(dataset.shape) == 3, "augment", augment, "needs images")
    with _blaming("server", server):
        held = server.draw(dataset, host_stream(seed, "server set"))
    check(0.0 <= validation < 1.0, "validation", validation, "must be at least 0 and below 1")
    check_choice("score", score, ("test", "validation"))
    taken = held
    held, held_out = split_held_out(held, np.asarray(dataset.y)[held], validation)
    check(score == "test" or len(held_out) > 0, "score", score, "needs held-out samples: set validation")
    rng = host_stream(seed, "partition")
    pool = rng.permutation(len(dataset.y))
    if server.disjoint:
        pool = pool[~np.isin(pool, taken)]
    check(len(pool) > 0, "server.samples", server.samples, "leaves no sample for the clients")
    with _blaming("partition", partition):
        parts = partition.split(dataset, pool, rng)
    _check_parts(partition, parts, pool, len(dataset.y))
    if score == "validation":
        dataset = dataset.scored_on(held_out)
    return Federation.of(dataset, parts, held, augment, held_out)


def _dataset(source: str | Dataset | Source, folder: str | None) -> Dataset:
    if isinstance(source, str | os.PathLike):
        return load(str(source), folder)
    check(folder is None, "folder", folder, "is for a source that is a name, such as mnist")
    if isinstance(source, Dataset):
        return source
    check(isinstance(source, Source), "source", source, "must be a name, a path, a Dataset or a Source")
    with _blaming("source", source):
        dataset = source.load()
    kind = type(dataset).__name__
    check(isinstance(dataset, Dataset), "source", source, f"load must return a safari.Dataset, not {kind}")
    return dataset


@contextmanager
def _blaming(part: str, noun: Noun) -> Iterator[None]:
    """Name errors about the fields of `noun` under `part`; any other failure is bad input as well.

    A noun may be the user's own, so that whatever it raises is about what the user wrote.
    """
    try:
        yield
    except InputError as error:
        own = error.key in {field.name for field in fields(noun)}
        raise (error.under(part) if own else error) from None
    except Exception as error:
        reason = " ".join([f"{type(error).__name__}:", *str(error).splitlines()[:1]])
        raise InputError(part, noun, f"fails ({reason})") from error


def _check_parts(partition: Partition, parts: Any, pool: np.ndarray, samples: int) -> None:
    """Refuse what a partition of the user's own must not return."""

    def expect(condition: bool | np.bool_, what: str) -> None:
        check(condition, "partition", partition, what)

    arrays = isinstance(parts, list) and all(
        isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "iu" for part in parts
    )
    expect(arrays, "split must return a list of integer arrays: the sample numbers of each client")
    expect(len(parts) > 0, "split must return at least one client")
    counts = np.array([len(part) for part in parts])
    expect(counts.min() > 0, f"client {counts.argmin()} would hold no sample")
    given = np.concatenate(parts).astype(np.int64)
    in_pool = np.zeros(samples, bool)
    in_pool[pool] = True
    inside = (given >= 0) & (given < samples)
    inside[inside] = in_pool[given[inside]]
    expect(inside.all(), f"split gives sample {given[inside.argmin()]}, which is not in the pool")
    times = np.bincount(given, minlength=samples)
    expect(times.max() < 2, f"split gives sample {times.argmax()} twice")
