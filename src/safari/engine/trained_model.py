"""`TrainedModel`: what training hands over, ready to be applied to new samples."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from safari.data import Dataset
from safari.data.reading import clients_in, labels_in, open_for_model, samples_in
from safari.engine.metrics import Metrics, softmax
from safari.errors import check
from safari.models import Model, Params

BATCH = 256
"""Samples go through the model so many at a time, padded: one prediction never depends on the others."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainedModel:
    """A classifier with its parameters, and all that is needed to apply it to raw samples.

    It comes from `Result.model` or from `safari.load`.

    Attributes:
        model: the classifier.
        params: its parameters.
        shape: the shape of one sample.
        labels: the names of the classes, by class number.
        scale: the model sees a sample times this,
        shift: minus this, if there is one.
        features: the names of the columns that a table of samples must have, in their order.
        label: the column that held the labels, where a table did.
        fill: what stands for a missing value of each feature; None: no value may be missing.
        precision: that of the model's products.

    Examples:
        >>> import safari
        >>> federation = safari.federate("digits")
        >>> model = safari.train(federation, rounds=5).model
        >>> model.predict_proba(federation.dataset.x_test[:2]).shape
        (2, 10)
    """

    model: Model
    params: Params
    shape: tuple[int, ...]
    labels: tuple[str, ...]
    scale: np.ndarray
    shift: np.ndarray | None
    features: tuple[str, ...] | None = None
    label: str | None = None
    fill: np.ndarray | None = None
    precision: str = "float32"

    @classmethod
    def of(cls, model: Model, params: Params, dataset: Dataset, precision: str = "float32") -> "TrainedModel":
        """The model for samples as `dataset` holds them."""
        return cls(
            model=model,
            params=params,
            shape=dataset.shape,
            labels=dataset.labels,
            scale=np.asarray(dataset.scale),
            shift=None if dataset.shift is None else np.asarray(dataset.shift),
            features=dataset.features,
            label=dataset.label,
            fill=None if dataset.fill is None else np.asarray(dataset.fill).reshape(dataset.shape),
            precision=precision,
        )

    def __repr__(self) -> str:
        numbers = sum(leaf.size for leaf in jax.tree.leaves(self.params))
        names = ", ".join(self.labels[:4]) + (", ..." if len(self.labels) > 4 else "")
        return f"TrainedModel({type(self.model).__name__}, {numbers:,} parameters, classes {names})"

    def predict_proba(self, data: Any) -> np.ndarray:
        """The probability of every class for each sample.

        Args:
            data: samples as they were trained on, before any scaling: an array, samples first; a table
                (pandas or polars) that has the columns `features`, where other columns are not looked at; or
                the path of a file that holds the one or the other.

        Returns:
            An array (samples, classes); rows add up to one.

        Raises:
            InputError: if the samples are not of the shape that the model was trained on, or a column
                is missing.
        """
        data, origin = _opened(data)
        return self.probabilities(self.samples(data, origin))

    def predict(self, data: Any) -> np.ndarray:
        """The most probable class of each sample: its name, or its number where classes have no names.

        Args:
            data: as in `predict_proba`.
        """
        return self.named(np.argmax(self.predict_proba(data), axis=1))

    def evaluate(self, data: Any, label: Any = None, client: Any = None) -> Metrics:
        """How good the model is on labelled samples.

        Args:
            data: as in `predict_proba`.
            label: the column that holds the labels (default: the one that did in training), or the labels
                themselves, as an array of samples needs.
            client: the column that says which client a sample is of; for an array of samples, their clients.
                Without it nothing is told client by client.

        Returns:
            The metrics, class by class and on average, and with `client` client by client.

        Raises:
            InputError: as `predict_proba`; or if a label is missing, or not one of the model's classes.
        """
        label = self.label if label is None else label
        data, origin = _opened(data, label, client)
        y = labels_in(data, label, self.labels, "data", origin)
        holder = None if client is None else clients_in(data, client, "data", origin)
        return Metrics.of(y, self.probabilities(self.samples(data, origin)), self.labels, holder)

    def named(self, number: np.ndarray) -> np.ndarray:
        """Classes by their names, or by their numbers where they have no names."""
        return number if self.numbered else np.array(self.labels)[number]

    @property
    def numbered(self) -> bool:
        """Whether the classes have no names but their numbers."""
        return self.labels == tuple(map(str, range(len(self.labels))))

    def save(self, path: str | Path) -> None:
        """Write the model to one .safetensors file, from which `safari.load` makes it again."""
        from safari.engine.model_file import write_model

        write_model(self, Path(path))

    def export(self, path: str | Path) -> None:
        """Write the model to one .onnx file, for other programs; needs the extra `onnx`."""
        from safari.engine.onnx_file import write_onnx

        write_onnx(self, Path(path))

    def normalised(self, x: Any) -> Any:
        """Raw samples as the model sees them."""
        return x * self.scale if self.shift is None else x * self.scale - self.shift

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """The same for an array of samples that is known to be sound."""
        return np.concatenate([np.zeros((0, len(self.labels))), *self._batches(x.reshape(-1, *self.shape))])

    def samples(self, data: Any, origin: str) -> np.ndarray:
        """The samples in a table or an array, as the model takes them; `origin` names them in messages."""
        x = samples_in(data, self.features, self.fill is not None, "data", origin)
        flat = (int(np.prod(self.shape)),)
        check(
            x.ndim >= 2 and x.shape[1:] in (self.shape, flat),
            "data",
            origin,
            f"holds samples of shape {x.shape[1:]}; the model was trained on {self.shape}",
        )
        return x

    def _batches(self, x: np.ndarray) -> Iterator[np.ndarray]:
        for start in range(0, len(x), BATCH):
            batch = x[start : start + BATCH]
            padded = np.zeros((BATCH, *self.shape), np.float32)
            padded[: len(batch)] = batch if self.fill is None else np.where(np.isnan(batch), self.fill, batch)
            logits = _logits(self.model, self.params, padded, self.scale, self.shift, self.precision)
            yield softmax(np.asarray(logits)[: len(batch)])


def _opened(data: Any, label: Any = None, client: Any = None) -> tuple[Any, str]:
    """What holds the samples, read if it is a file; and where they come from, for messages."""
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        names = (name if isinstance(name, str) else None for name in (label, client))
        label, client = names
        return open_for_model(path, label, "data", client), path.name
    return data, "the samples"


@eqx.filter_jit
def _logits(
    model: Model, params: Params, x: np.ndarray, scale: np.ndarray, shift: np.ndarray | None, precision: str
) -> jax.Array:
    x = x * scale if shift is None else x * scale - shift
    if precision == "bfloat16":
        params, x = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, x))
    with jax.default_matmul_precision("tensorfloat32" if precision == "tf32" else "highest"):
        return model.apply(params, jnp.asarray(x)).astype(jnp.float32)
