"""Scaling and gaps of tables, by the server's own samples: the one set that simulator and fleet both have."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from safari.data.dataset import Dataset
from safari.devices import placed
from safari.errors import InputError, check


def fitted(dataset: Dataset, server: np.ndarray) -> Dataset:
    """The data set as the server's samples (by their numbers) say: scaled, nothing missing.

    A feature that is constant there is shifted to 0 and divided by its size, if that is above 1: whatever
    else it may be elsewhere, the model sees numbers of a sane size.

    Raises:
        InputError: if the server has no sample to go by, or no value of a feature with gaps.
    """
    if dataset.missing is None and not dataset.standardise:
        return dataset
    if not len(server):
        hint = "goes by the server's own samples, of which there are none"
        if dataset.standardise:
            raise InputError("scale", "standard", f'{hint}; write scale = "none", or give the server samples')
        raise InputError("missing", dataset.missing, f"{hint}; give the server samples")
    own = np.asarray(dataset.x)[server].astype(np.float64)
    present = np.isfinite(own)
    count = present.sum(axis=0)
    mean = np.where(present, own, 0.0).sum(axis=0) / np.maximum(count, 1)
    if dataset.missing is not None:
        _check_known(dataset, count)
        dataset = _filled(dataset, mean.astype(np.float32))
    if not dataset.standardise:
        return dataset
    away = np.where(present, own - mean, 0.0)
    deviation = np.sqrt((away**2).sum(axis=0) / np.maximum(count, 1))
    # What differs by rounding only is constant.
    constant = deviation <= 1e-6 * np.maximum(np.abs(mean), 1e-30)
    scale = 1.0 / np.where(constant, np.maximum(np.abs(mean), 1.0), deviation)
    scale, shift = (placed(one.reshape(dataset.shape), np.float32) for one in (scale, mean * scale))
    return eqx.tree_at(
        lambda one: (one.scale, one.shift), dataset, (scale, shift), is_leaf=lambda leaf: leaf is None
    )


def _check_known(dataset: Dataset, count: np.ndarray) -> None:
    """Every feature with a gap somewhere has a value somewhere in the server's samples."""
    if count.all():
        return
    gaps = np.isnan(np.asarray(dataset.x)).any(axis=0) | np.isnan(np.asarray(dataset.x_test)).any(axis=0)
    unknown = np.flatnonzero(gaps & (count == 0))
    if len(unknown):
        name = dataset.features[unknown[0]] if dataset.features else f"number {unknown[0]}"
        hint = f"no sample of the server's has a value of feature {name}; leave it out with drop"
        check(False, "missing", dataset.missing, hint)


def _filled(dataset: Dataset, fill: np.ndarray) -> Dataset:
    x, x_test = (
        jnp.where(jnp.isnan(one), fill, one) if bool(jnp.isnan(one).any()) else one
        for one in (dataset.x, dataset.x_test)
    )
    return eqx.tree_at(
        lambda one: (one.x, one.x_test, one.fill), dataset, (x, x_test, placed(fill, np.float32)),
        is_leaf=lambda leaf: leaf is None,
    )  # fmt: skip
