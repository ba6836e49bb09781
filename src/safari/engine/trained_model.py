"""`TrainedModel`: what training hands over, ready to be applied to new samples."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from safari.data import Dataset
from safari.engine.metrics import softmax
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
            precision=precision,
        )

    def __repr__(self) -> str:
        numbers = sum(leaf.size for leaf in jax.tree.leaves(self.params))
        names = ", ".join(self.labels[:4]) + (", ..." if len(self.labels) > 4 else "")
        return f"TrainedModel({type(self.model).__name__}, {numbers:,} parameters, classes {names})"

    def predict_proba(self, x: Any) -> np.ndarray:
        """The probability of every class for each sample.

        Args:
            x: samples as they were trained on, before any scaling: an array, samples first, or a table
                (pandas or polars) that has the columns `features`; other columns are not looked at.

        Returns:
            An array (samples, classes); rows add up to one.

        Raises:
            InputError: if the samples are not of the shape that the model was trained on, or a column
                is missing.
        """
        return np.concatenate([np.zeros((0, len(self.labels))), *self._batches(self._samples(x))])

    def predict(self, x: Any) -> np.ndarray:
        """The most probable class of each sample: its name, or its number where classes have no names.

        Args:
            x: as in `predict_proba`.
        """
        number = np.argmax(self.predict_proba(x), axis=1)
        return number if self.numbered else np.array(self.labels)[number]

    @property
    def numbered(self) -> bool:
        """Whether the classes have no names but their numbers."""
        return self.labels == tuple(map(str, range(len(self.labels))))

    def save(self, path: str | Path) -> None:
        """Write the model to one .safetensors file, from which `safari.load` makes it again."""
        from safari.engine.model_file import write_model

        write_model(self, Path(path))

    def _samples(self, x: Any) -> np.ndarray:
        """The samples as an array of rows, checked."""
        x = np.asarray(x)
        check(
            x.ndim >= 2 and x.shape[1:] in (self.shape, (int(np.prod(self.shape)),)),
            "x",
            f"array of shape {x.shape}",
            f"must hold samples of shape {self.shape}, samples first",
        )
        check(x.dtype.kind in "buif", "x", f"array of type {x.dtype}", "must hold numbers")
        check(x.dtype.kind != "f" or bool(np.isfinite(x).all()), "x", "NaN or infinity", "must be finite")
        return x.reshape(len(x), *self.shape)

    def _batches(self, x: np.ndarray) -> Iterator[np.ndarray]:
        for start in range(0, len(x), BATCH):
            batch = x[start : start + BATCH]
            padded = np.zeros((BATCH, *self.shape), np.float32)
            padded[: len(batch)] = batch
            logits = _logits(self.model, self.params, padded, self.scale, self.shift, self.precision)
            yield softmax(np.asarray(logits)[: len(batch)])


@eqx.filter_jit
def _logits(
    model: Model, params: Params, x: np.ndarray, scale: np.ndarray, shift: np.ndarray | None, precision: str
) -> jax.Array:
    x = x * scale if shift is None else x * scale - shift
    if precision == "bfloat16":
        params, x = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), (params, x))
    with jax.default_matmul_precision("tensorfloat32" if precision == "tf32" else "highest"):
        return model.apply(params, jnp.asarray(x)).astype(jnp.float32)
