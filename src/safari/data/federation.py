"""`Federation`: the samples, which client holds which, the server's own set, the test set."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jaxtyping import Array, Float, Int, Key, Shaped

from safari.data.augment import crop_and_flip
from safari.data.coverage import Coverage, measure_coverage
from safari.data.dataset import Batch, Dataset
from safari.data.shown import as_html
from safari.devices import placed
from safari.randomness import shuffled


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

    Behind the server's samples stand those of its `validation` set, then those that clients hold out
    (`client_test`), client after client. Nobody trains on either.

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
    client_test: Shard | None
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
        client_test: list[np.ndarray] | None = None,
    ) -> "Federation":
        """The federation in which client i trains on samples `parts[i]` and holds out `client_test[i]`."""
        counts = np.array([len(part) for part in parts])
        held_out = np.zeros(0, np.int64) if validation is None else validation
        trained_on = counts.sum() + len(server)
        tested = np.array([len(part) for part in client_test or ()], np.int64)
        before = trained_on + len(held_out) + np.cumsum(tested) - tested
        return cls(
            dataset,
            samples=placed(np.concatenate([*parts, server, held_out, *(client_test or ())]), np.int32),
            clients=Shard(placed(np.cumsum(counts) - counts, np.int32), placed(counts, np.int32)),
            server=Shard(placed(counts.sum(), np.int32), placed(len(server), np.int32)),
            validation=Shard(placed(trained_on, np.int32), placed(len(held_out), np.int32)),
            client_test=None
            if client_test is None
            else Shard(placed(before, np.int32), placed(tested, np.int32)),
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
        names = self.dataset.client_names
        return names if names is not None and len(names) == self.size else None

    def client(self, number: Int[Array, ""]) -> Shard:
        return Shard(self.clients.start[number], self.clients.count[number])

    def held_by(self, client: int | None) -> np.ndarray:
        """The sample numbers of one client, or of the server (None). Host code."""
        return self.numbers_of(self.server if client is None else self.client(jnp.int32(client)))

    def numbers_of(self, shard: Shard) -> np.ndarray:
        """The sample numbers of a shard. Host code."""
        start = int(shard.start)
        return np.asarray(self.samples)[start : start + int(shard.count)]

    @property
    def names(self) -> tuple[str, ...]:
        """What the clients are called: by their names, or by their numbers."""
        return self.client_names or tuple(map(str, range(self.size)))

    @property
    def tested_clients(self) -> tuple[str, ...] | None:
        """The names of the clients on whose own samples a model is scored; None where it is on none's."""
        if self.client_test is None:
            return None if self.dataset.test_client is None else self.dataset.test_clients
        return self.names

    def held_out_by_clients(self) -> list[np.ndarray] | None:
        """The sample numbers that each client holds out; None where none does. Host code."""
        if self.client_test is None:
            return None
        samples, start = np.asarray(self.samples), np.asarray(self.client_test.start)
        return [
            samples[at : at + count]
            for at, count in zip(start, np.asarray(self.client_test.count), strict=True)
        ]

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

    def __repr__(self) -> str:
        each = (
            f"up to {self.largest} samples (median {self.median_size})"
            if self.ragged
            else (f"{self.largest} samples each")
        )
        held_out = f" and {self.validation_most} held out" if self.validation_most else ""
        test = f"{len(self.dataset.y_test)} test samples, {self.dataset.classes} classes"
        server = f"the server {self.server_most}{held_out}"
        return f"Federation({self.dataset.name}: {self.size} clients with {each}, {server}, {test})"

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.table())

    def table(self) -> pl.DataFrame:
        """Who holds how many samples of each class: the server, the test set, then a row a client."""
        clients, server = (np.asarray(counts).astype(int) for counts in self.label_counts())
        test = np.bincount(np.asarray(self.dataset.y_test), minlength=self.dataset.classes)
        counts = np.concatenate([server[None], test[None], clients])
        names = ["the server", "test set", *self.names]
        whole = {"held by": names, "samples": counts.sum(axis=1)}
        labels = [f"class {name}" if name in whole else name for name in self.dataset.labels]
        return pl.DataFrame(whole | {name: counts[:, place] for place, name in enumerate(labels)})

    def coverage(self, excluded: np.ndarray | list[int] | tuple[int, ...] = ()) -> Coverage:
        """What the clients outside `excluded` hold of every class, and the ceiling of that. Host code."""
        counts, dataset = np.asarray(self.clients.count), self.dataset
        held = np.split(np.asarray(self.samples)[: counts.sum()], np.cumsum(counts)[:-1])
        y, y_test = np.asarray(dataset.y), np.asarray(dataset.y_test)
        return measure_coverage(y, y_test, held, list(excluded), dataset.labels, self.client_names)
