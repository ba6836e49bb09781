"""`Dataset`: samples and labels as published, and how a batch of them reaches the model."""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from safari.devices import placed
from safari.errors import InputError, check

MOST_CLASSES = 10_000


class Batch(eqx.Module):
    """A minibatch: inputs, labels, and weights that add up to one (zero marks padding)."""

    x: Float[Array, "size *shape"]
    y: Int[Array, " size"]
    weight: Float[Array, " size"]


class Dataset(eqx.Module):
    """Training and test samples. Integers (pixels) stay uint8 on the device.

    Samples lie flat, one in a row, so that gathering a batch is copying rows; `shape` is the
    shape of one. The model sees `x * scale - shift`, computed in the training step. `client`, if given,
    says who holds a sample; `augment` is whether training should crop and flip by default. `labels` are
    the names of the classes, `client_names` those of the clients, `features` those of a table's columns;
    `label` is that of the column which held the labels. The last `own_server` training samples are the
    server's own. `test_client` says which client a test sample is of, where that is known: a number that
    `test_clients` gives a name to.

    With `standardise` or `missing = "mean"`, NaN marks what is missing, and `federate` sets `scale`, `shift`
    and `fill` by the server's own samples: `fill` holds, for each feature, what stands for a missing value.

    Examples:
        >>> import numpy as np, safari
        >>> x, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
        >>> safari.Dataset(x[:45], y[:45], x[45:], y[45:]).classes
        3
    """

    x: Shaped[Array, "train features"]
    y: Int[Array, " train"]
    x_test: Shaped[Array, "test features"]
    y_test: Int[Array, " test"]
    scale: Float[Array, "..."]
    shift: Float[Array, "..."] | None
    client: Int[Array, " train"] | None
    test_client: Int[Array, " test"] | None
    shape: tuple[int, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    classes: int = eqx.field(static=True)
    augment: bool = eqx.field(static=True)
    labels: tuple[str, ...] = eqx.field(static=True)
    client_names: tuple[str, ...] | None = eqx.field(static=True)
    test_clients: tuple[str, ...] = eqx.field(static=True)
    features: tuple[str, ...] | None = eqx.field(static=True)
    label: str | None = eqx.field(static=True)
    own_server: int = eqx.field(static=True)
    fill: Float[Array, " features"] | None
    standardise: bool = eqx.field(static=True)
    missing: str | None = eqx.field(static=True)

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        x_test: np.ndarray,
        y_test: np.ndarray,
        *,
        name: str = "own",
        scale: float | np.ndarray | None = None,
        shift: np.ndarray | None = None,
        client: np.ndarray | None = None,
        augment: bool = False,
        labels: Sequence[str] | None = None,
        client_names: Sequence[str] | None = None,
        test_client: np.ndarray | None = None,
        test_clients: Sequence[str] = (),
        features: Sequence[str] | None = None,
        label: str | None = None,
        own_server: int = 0,
        standardise: bool = False,
        missing: Literal["mean"] | None = None,
    ):
        gaps = missing is not None
        x, y = checked_samples("x", x, "y", y, gaps)
        x_test, y_test = checked_samples("x_test", x_test, "y_test", y_test, gaps)
        check(
            x.shape[1:] == x_test.shape[1:],
            "x_test",
            f"array of shape {x_test.shape}",
            f"must hold samples of shape {x.shape[1:]}, as x does",
        )
        if scale is None:
            scale = 1 / 255 if x.dtype == np.uint8 else 1.0
        self.x, self.y = placed(x.reshape(len(x), -1)), placed(y)
        self.x_test, self.y_test = placed(x_test.reshape(len(x_test), -1)), placed(y_test)
        self.shape = x.shape[1:]
        self.scale = placed(scale, np.float32)
        self.shift = None if shift is None else placed(shift, np.float32)
        check(0 <= own_server < len(y), "own_server", own_server, "must leave samples for the clients")
        self.client = None if client is None else placed(checked_clients(client, len(x), own_server))
        self.test_client = None if test_client is None else placed(test_client, np.int32)
        self.test_clients = tuple(test_clients)
        self.name, self.augment = name, augment
        classes = int(max(y.max(), y_test.max())) + 1
        self.labels = tuple(map(str, range(classes) if labels is None else labels))
        check(
            classes <= len(self.labels),
            "labels",
            f"{len(self.labels)} names",
            f"the samples have {classes} classes",
        )
        self.classes = len(self.labels)
        self.client_names = None if client_names is None else tuple(client_names)
        self.features = None if features is None else tuple(features)
        self.label, self.own_server = label, own_server
        self.fill, self.standardise, self.missing = None, standardise, missing

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        samples = f"{len(self.y)} training and {len(self.y_test)} test samples of shape {shape}"
        return f"Dataset({self.name}: {samples}, {self.classes} classes)"

    def shaped(self, x: Shaped[Array, "batch features"]) -> Shaped[Array, "batch *shape"]:
        """Flat samples in the shape of one sample."""
        return x.reshape(len(x), *self.shape)

    def scored_on(self, samples: np.ndarray) -> "Dataset":
        """The same with these training samples in the place of the test set, which is gone."""
        whole = self.without_test_clients()
        return eqx.tree_at(lambda one: (one.x_test, one.y_test), whole, (self.x[samples], self.y[samples]))

    def without_test_clients(self) -> "Dataset":
        """The same, where nobody knows which client a test sample is of."""
        if self.test_client is None:
            return self
        return eqx.tree_at(lambda one: one.test_client, self, None)

    def normalise(self, x: Shaped[Array, "batch *shape"]) -> Float[Array, "batch *shape"]:
        x = x.astype(jnp.float32) * self.scale
        return x if self.shift is None else x - self.shift


def checked_samples(
    x_key: str, x: np.ndarray, y_key: str, y: np.ndarray, missing: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Samples as uint8 or float32 and labels as int32, or an error that says what is wrong.

    With `missing`, NaN marks a missing value.
    """
    x, y = np.asarray(x), np.asarray(y)
    found = f"array of shape {x.shape} and type {x.dtype}"
    check(x.ndim >= 2 and x.size > 0, x_key, found, "must be samples first, then their features")
    check(
        y.shape == (len(x),),
        y_key,
        f"array of shape {y.shape}",
        f"must hold one label for each of the {len(x)} samples",
    )
    whole = np.issubdtype(y.dtype, np.integer) or (
        np.issubdtype(y.dtype, np.floating) and bool(np.all(y == np.floor(y)))
    )
    check(whole, y_key, f"array of type {y.dtype}", "must hold whole numbers: 0, 1, 2, ...")
    check(y.min() >= 0, y_key, int(y.min()), "labels start at 0; none may be negative")
    check(
        y.max() < MOST_CLASSES, y_key, int(y.max()), f"number the classes 0, 1, 2, ... below {MOST_CLASSES}"
    )
    if x.dtype != np.uint8:
        if not np.issubdtype(x.dtype, np.number) or np.issubdtype(x.dtype, np.complexfloating):
            raise InputError(x_key, found, "must hold numbers")
        x = x.astype(np.float32, copy=False)
        wrong = np.isinf(x) if missing else ~np.isfinite(x)
        if wrong.any():
            row, *rest = np.argwhere(wrong)[0].tolist()
            where = f"sample {row}, feature {rest[0] if len(rest) == 1 else rest}"
            mend = "" if np.isinf(x).any() else '; NaN is a missing value with missing = "mean"'
            raise InputError(x_key, f"{x[row, *rest]} in {where}", f"every feature must be finite{mend}")
    return x, y.astype(np.int32, copy=False)


def checked_clients(client: np.ndarray, samples: int, own_server: int = 0) -> np.ndarray:
    """The column that says who holds a sample: clients 0..M-1, none of them empty.

    The last `own_server` samples are held by no client, whatever the column says.
    """
    client = np.asarray(client)
    check(
        client.shape == (samples,) and np.issubdtype(client.dtype, np.integer),
        "client",
        f"array of shape {client.shape} and type {client.dtype}",
        f"must hold one whole number for each of the {samples} samples",
    )
    held = client[: samples - own_server]
    check(held.min() >= 0, "client", int(held.min()), "clients are numbered from 0")
    empty = np.setdiff1d(np.arange(held.max() + 1), held)
    check(not len(empty), "client", f"no sample of client {empty[:1]}", "every client needs a sample")
    client = client.astype(np.int32)
    client[samples - own_server :] = -1
    return client
