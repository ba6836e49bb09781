"""The machine: every question about the backend, and how a round is spread over several devices.

Every device goes through the same rounds. What is the same everywhere (random draws, the average
of the clients) each device computes for itself. The clients' training is divided among the devices,
and each device then has all results in the order of their slots: the numbers of one device.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import psutil
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, PyTree
from numpy.typing import ArrayLike, DTypeLike

T = TypeVar("T")
CLIENTS = "clients"


def on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def on_gpu() -> bool:
    return jax.default_backend() == "gpu"


def on_one_gpu() -> bool:
    """Whether kernels of our own may run: they do not know how several GPUs divide runs."""
    return on_gpu() and jax.device_count() == 1


def compute_capability() -> float:
    """Of the first device, if it is a GPU of NVIDIA's; 0 otherwise."""
    device = jax.devices()[0]
    return float(getattr(device, "compute_capability", 0)) if device.platform == "gpu" else 0.0


def multiprocessors() -> int:
    """Of the first device, a GPU."""
    return jax.devices()[0].core_count


def platform() -> str:
    """The kind of backend: cpu, gpu, tpu."""
    return jax.devices()[0].platform


def kind() -> str:
    """What the first device calls itself."""
    return jax.devices()[0].device_kind


def memory() -> int:
    """Bytes of the device that trains; on a CPU, what the machine has available."""
    stats = None if on_cpu() else jax.devices()[0].memory_stats()
    return stats["bytes_limit"] if stats else psutil.virtual_memory().available


def host() -> jax.Device:
    """The CPU, also where an accelerator trains."""
    return jax.local_devices(backend="cpu")[0]


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_cores(number: int | None = None) -> bool:
    """Let JAX see every core of the CPU as a device of its own, so that clients train side by side.

    Call it before anything else of JAX or safari. It does nothing where XLA_FLAGS say how many
    devices a CPU is to be.

    Args:
        number: how many cores (default: all that this process may use).

    Returns:
        Whether it was in time for that.

    Examples:
        >>> import safari
        >>> safari.use_cores() in (True, False)
        True
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


def dividing_clients(sharding: jax.sharding.Sharding) -> int:
    """How many devices divide the clients of a round among them, for arrays that lie like this."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.axis_names == (CLIENTS,):
        return sharding.mesh.size
    return 1


def on_each_device(function: Callable[..., T], sharding: jax.sharding.Sharding) -> Callable[..., T]:
    """`function`, run by each device of `sharding` where they divide clients among them."""
    if dividing_clients(sharding) == 1:
        return function
    assert isinstance(sharding, NamedSharding)
    here = PartitionSpec()
    return jax.shard_map(function, mesh=sharding.mesh, in_specs=here, out_specs=here, check_vma=False)


def over_slots(
    function: Callable[..., PyTree[Any]],
    slots: Int[Array, " slots"],
    devices: int,
    batched: bool,
    prepare: Callable[..., PyTree[Any]] | None = None,
) -> PyTree[Any]:
    """`function` of every slot, batched or in turn, divided among `devices`.

    `prepare` is done for all slots of a device at once; `function` is given what it makes, else None.
    """
    count = len(slots)
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


def once(function: Callable[[], T], devices: int) -> T:
    """What `function` gives, computed by one device for all: the cores of a CPU help each other anyway."""
    if devices == 1:
        return function()
    found = jax.lax.cond(jax.lax.axis_index(CLIENTS) == 0, function, _zeros(function))
    return jax.lax.psum(found, CLIENTS)


def _zeros(function: Callable[[], T]) -> Callable[[], T]:
    """What `function` gives, with zeros in it."""
    shape = jax.eval_shape(function)
    return lambda: jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shape)
