"""The leaves of a pytree by their paths: how parameters and states are named in files."""

from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

T = TypeVar("T")


def named_leaves(tree: PyTree) -> list[tuple[str, jax.Array]]:
    """Leaves by their paths, such as `state.params.weight`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]


def named_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """The leaves by their paths, as NumPy arrays."""
    return {name: np.asarray(leaf) for name, leaf in named_leaves(tree)}


def from_named(found: dict[str, np.ndarray], like: T) -> T:
    """A pytree of the structure of `like` with the leaves that `named_arrays` gave."""
    leaves = [jnp.asarray(found[name]) for name, _ in named_leaves(like)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)
