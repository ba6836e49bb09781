"""Both sides of a federation whose samples lie apart: what the server holds, and what a node holds.

Neither has the samples of anybody else. Where a program needs those of others, to have its shapes, those
of its own side stand in their place; nothing is computed from them.
"""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from safari.data.dataset import Dataset
from safari.data.federation import Federation, Shard
from safari.data.own import warn_of_known_samples
from safari.data.reading import read_path
from safari.data.samples import Samples, numbered
from safari.data.scaling import fitted
from safari.data.server_set import server_stream, split_held_out
from safari.data.sources.nodes import Nodes
from safari.devices import placed
from safari.errors import InputError, check

NO_TEST = (
    "must be given: the server scores the model on a file of its own, or on samples that it holds out "
    '(validation = 0.2 and score = "validation")'
)


@dataclass(frozen=True)
class Terms:
    """What the server tells its nodes, so that each file becomes samples of one kind.

    Attributes:
        labels: the names of the classes, by number.
        features: the names of the columns, in order; None for arrays and images.
        shape: the shape of one sample.
        pixels: whether samples are bytes.
        scale: the model sees a sample times this,
        shift: minus this, if there is one.
        fill: what stands for a missing value of each feature; None: none may be missing.
    """

    labels: tuple[str, ...]
    features: tuple[str, ...] | None
    shape: tuple[int, ...]
    pixels: bool
    scale: Any
    shift: Any
    fill: Any

    @classmethod
    def of(cls, dataset: Dataset) -> "Terms":
        """The terms of the server's data set."""
        numbers = (dataset.scale, dataset.shift, dataset.fill)
        scale, shift, fill = (None if one is None else np.asarray(one).tolist() for one in numbers)
        pixels = dataset.x.dtype == np.uint8
        return cls(dataset.labels, dataset.features, dataset.shape, pixels, scale, shift, fill)

    def text(self) -> str:
        """The terms as they are sent."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def read(cls, text: str) -> "Terms":
        """The terms as they came."""
        given = json.loads(text)
        for name in ("labels", "features", "shape"):
            given[name] = None if given[name] is None else tuple(given[name])
        return cls(**given)

    def samples(self, path: Path, source: Nodes) -> Samples:
        """The samples in a node's own file.

        Raises:
            InputError: about `data`, if it cannot be read, or does not fit.
        """
        kind = np.uint8 if self.pixels else np.float32
        x, y = np.zeros((0, *self.shape), kind), np.zeros(0, np.int32)
        wanted = Samples(x, y, self.labels, features=self.features, origin="the server")
        try:
            samples = read_path(path, replace(source.options("data"), labels=self.labels))
        except OSError as error:
            raise InputError("data", str(path), f"cannot be read ({error.strerror})") from None
        return samples.like(wanted, "data")


def at_server(
    source: Nodes,
    server: Path,
    test: Path | None,
    *,
    augment: bool | None,
    validation: float,
    fold: int,
    score: str,
    seed: int,
) -> Federation:
    """What the server holds; the arguments are those of `federate`.

    Raises:
        InputError: if its files cannot be read or do not go together.
    """
    own = read_path(Path(server), source.options("server"))
    check(
        len(own.labels) > 1,
        "server",
        own.origin,
        f'has the label "{own.labels[0]}" alone; name all in labels',
    )
    if test is None:
        check(score == "validation", "test", "(nothing)", NO_TEST)
    tested = own if test is None else read_path(Path(test), source.options("test")).like(own, "test")
    if test is not None:
        warn_of_known_samples(tested, (own,))
    dataset = Dataset(
        own.x,
        own.y,
        tested.x,
        tested.y,
        name=own.name,
        labels=own.labels,
        client_names=None if source.client_names is None else numbered(source.client_names),
        test_client=tested.client,
        test_clients=tested.clients or (),
        features=own.features,
        label=own.label_column,
        standardise=own.scale == "standard",
        missing=own.missing,
    )
    taken = server_stream(seed).permutation(len(own))
    held, held_out = split_held_out(taken, own.y[taken], validation, fold)
    if score == "validation":
        check(len(held_out) > 0, "score", score, "needs held-out samples: set validation")
    dataset = fitted(dataset, held)
    if score == "validation":
        dataset = dataset.scored_on(held_out)
    return _everybody_holds(dataset, len(source.client_names or ("",)), held, held_out, bool(augment))


def at_node(samples: Samples, terms: Terms, clients: int, augment: bool) -> Federation:
    """What one node holds, whichever of so many clients it is."""
    x, shape = samples.x, terms.shape
    if terms.fill is not None:
        x = np.where(np.isnan(x), np.asarray(terms.fill, np.float32).reshape(shape), x)
    shift = None if terms.shift is None else np.asarray(terms.shift, np.float32)
    dataset = Dataset(
        x,
        samples.y,
        x[:1],  # nobody is scored here
        samples.y[:1],
        name=samples.name,
        scale=np.asarray(terms.scale, np.float32),
        shift=shift,
        labels=terms.labels,
        features=terms.features,
    )
    return _everybody_holds(dataset, clients, np.arange(len(samples)), np.zeros(0, np.int64), augment)


def _everybody_holds(
    dataset: Dataset, clients: int, held: np.ndarray, held_out: np.ndarray, augment: bool
) -> Federation:
    """The federation in which server and clients all hold the samples `held`."""
    count = len(held)
    if not count:
        raise InputError("server", dataset.name, "has no sample to train on")
    each = Shard(placed(np.zeros(clients), np.int32), placed(np.full(clients, count), np.int32))
    return Federation(
        dataset,
        samples=placed(np.concatenate([held, held_out]), np.int32),
        clients=each,
        server=Shard(placed(0, np.int32), placed(count, np.int32)),
        validation=Shard(placed(count, np.int32), placed(len(held_out), np.int32)),
        largest=count,
        median_size=count,
        ragged=False,
        server_most=count,
        validation_most=len(held_out),
        client_test=None,
        augment=augment,
    )
