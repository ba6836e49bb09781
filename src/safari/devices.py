"""Several devices, or the cores of a CPU: the clients of a round are spread over them.

Every device goes through the same rounds. What is alike everywhere (chance, the average of
the clients) each computes for itself; the clients' training is shared out, and each device
then has all their results, in the order of their slots: the numbers of one device.
"""

import os
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, PyTree
from numpy.typing import ArrayLike, DTypeLike

T = TypeVar("T")
CLIENTS = "clients"
_DEVICES: ContextVar[int] = ContextVar("devices", default=1)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_cores(number: int | None = None) -> bool:
    """Let JAX see every core of the CPU as a device of its own; whether it was in time for that.

    Call it before anything else of JAX or safari. Clients then train side by side on CPUs too.
    Does nothing where XLA_FLAGS say how many devices a CPU is to be.
    """
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        return False
    try:
        jax.config.update("jax_num_cpu_devices", number or cores())
    except RuntimeError:
        return False
    return True


def placed(value: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """A copy of what the host has, for JAX. Unlike `jnp.asarray` it compiles nothing. Host code."""
    return jax.device_put(np.array(value, dtype))


def everywhere(devices: Sequence[jax.Device]) -> NamedSharding:
    """The same on each of these devices."""
    return NamedSharding(Mesh(np.array(devices), (CLIENTS,)), PartitionSpec())


def shared_out(function: Callable[..., T], sharding: jax.sharding.Sharding) -> Callable[..., T]:
    """`function`, run by each device of `sharding`; inside it they share clients out."""
    if not isinstance(sharding, NamedSharding) or sharding.mesh.axis_names != (CLIENTS,):
        return function
    mesh = sharding.mesh

    def on_each(*arguments: Any) -> T:
        before = _DEVICES.set(mesh.size)
        try:
            return function(*arguments)
        finally:
            _DEVICES.reset(before)

    here = PartitionSpec()
    return jax.shard_map(on_each, mesh=mesh, in_specs=here, out_specs=here, check_vma=False)


def over_slots(
    function: Callable[..., PyTree[Any]],
    slots: Int[Array, " slots"],
    batched: bool,
    prepare: Callable[..., PyTree[Any]] | None = None,
) -> PyTree[Any]:
    """`function` of every slot, batched or in turn; the slots are shared out over the devices.

    `prepare` is done for all slots of a device at once; `function` is given what it makes, else None.
    """
    devices, count = _DEVICES.get(), len(slots)
    share = -(-count // devices)
    places = jnp.arange(share) if devices == 1 else jax.lax.axis_index(CLIENTS) * share + jnp.arange(share)
    mine = slots if devices == 1 else slots[jnp.minimum(places, count - 1)]
    each = (mine, None if prepare is None else jax.vmap(prepare)(mine))
    if batched:
        found = jax.vmap(function)(*each)
    elif share * devices == count:
        found = jax.lax.map(lambda slot: function(*slot), each)
    else:
        nothing = _zeros(partial(function, *jax.tree.map(lambda leaf: leaf[0], each)))
        found = jax.lax.map(
            lambda slot: jax.lax.cond(slot[0] < count, function, lambda *_: nothing(), *slot[1]),
            (places, each),
        )
    if devices == 1:
        return found
    together = jax.lax.all_gather(found, CLIENTS, axis=0, tiled=True)
    return jax.tree.map(lambda leaf: leaf[:count], together)


def once(function: Callable[[], T]) -> T:
    """What `function` gives, computed by one device for all: the cores of a CPU help each other anyway."""
    if _DEVICES.get() == 1:
        return function()
    found = jax.lax.cond(jax.lax.axis_index(CLIENTS) == 0, function, _zeros(function))
    return jax.lax.psum(found, CLIENTS)


def _zeros(function: Callable[[], T]) -> Callable[[], T]:
    """What `function` gives, with zeros in it."""
    shape = jax.eval_shape(function)
    return lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape)
