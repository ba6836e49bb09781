"""Where a run lies: the data set once on every device, the rest as the caller says."""

from collections import OrderedDict
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jaxtyping import Array, PyTree

from safari.data import Dataset
from safari.devices import on_cpu
from safari.engine.run import Run
from safari.models import Params

T = TypeVar("T")
MOST_COPIED = 512 * 2**20
"""Bytes of a data set that the cores of a CPU may each have a copy of."""


def devices_for(run: Run, params: Params) -> list[jax.Device]:
    """The devices that divide the clients of one run among them: no more than clients take part.

    The cores of a CPU do so where one client keeps one core busy: smaller models gain less than
    it costs to meet every round, and larger ones have products that use all cores anyway.
    """
    devices = jax.devices()
    if jax.process_count() > 1:
        return devices
    if on_cpu():
        copied = sum(leaf.nbytes for leaf in jax.tree.leaves(run.task.federation.dataset))
        fits = run.task.model.side_by_side and not run.task.clients_batched(params)
        if not fits or copied > MOST_COPIED:
            return devices[:1]
    return devices[: run.roster.slots]


def place(run: Run, across: jax.sharding.NamedSharding) -> Run:
    """The run on the devices of `across`: the data set on each, everything else as it says."""
    everywhere = jax.sharding.NamedSharding(across.mesh, jax.sharding.PartitionSpec())
    arrays, rest = eqx.partition(run, eqx.is_array)
    dataset = _placed(run.task.federation.dataset, everywhere)
    others = eqx.tree_at(lambda run: run.task.federation.dataset, arrays, replace=None)
    combined = eqx.combine(put(others, across), rest)
    return eqx.tree_at(
        lambda run: run.task.federation.dataset, combined, dataset, is_leaf=lambda leaf: leaf is None
    )


def put(tree: T, where: jax.sharding.Sharding) -> T:
    """The arrays of `tree` on devices of this process, or of several that all hold the same arrays."""
    return (
        jax.device_put(tree, where)
        if where.is_fully_addressable
        else jax.tree.map(partial(_spread, where), tree)
    )


def _spread(where: jax.sharding.Sharding, leaf: Array) -> Array:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        words = _spread(where, jax.random.key_data(leaf))
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
    host = np.asarray(leaf)
    return jax.make_array_from_callback(host.shape, where, lambda part: host[part])


def on_host(tree: PyTree[Any]) -> PyTree[Any]:
    """The whole arrays of `tree` as NumPy's, also where other processes hold parts of them."""
    return jax.tree.map(_whole, tree)


def _whole(leaf: Array) -> np.ndarray:
    if leaf.is_fully_addressable or leaf.is_fully_replicated:
        return np.asarray(leaf)
    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))


_PLACED: OrderedDict[Any, tuple[Dataset, Dataset]] = OrderedDict()
MOST_PLACED = 4
"""How many data sets are remembered on the devices; those used longest ago go first."""


def _placed(dataset: Dataset, where: jax.sharding.Sharding) -> Dataset:
    """A data set on the devices, once for all runs that use it."""
    key = (id(dataset), where)
    if key not in _PLACED:
        # The original is kept too, so that no other data set can get its id.
        _PLACED[key] = (dataset, put(dataset, where))
    _PLACED.move_to_end(key)
    while len(_PLACED) > MOST_PLACED:
        _PLACED.popitem(last=False)
    return _PLACED[key][1]
