"""A training as bytes, and back: safetensors and Parquet, never pickle."""

import io
import json
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
from jaxtyping import PyTree
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from safari.engine import Carry
from safari.engine.training import Training
from safari.errors import InputError
from safari.experiment.directory import DIAGNOSTICS
from safari.models import Params

T = TypeVar("T")
STATE, HISTORY, SECONDS = "state.safetensors", "history.parquet", "seconds.json"


def pack(training: Training) -> dict[str, bytes]:
    """All that is needed to go on, as files."""
    seconds = {"compile_seconds": training.compile_seconds, "train_seconds": training.train_seconds}
    seen = training.diagnostics
    return {
        STATE: pack_tensors(training.carry),
        HISTORY: pack_table(training.history),
        SECONDS: json.dumps(seconds).encode(),
        **({} if seen is None else {DIAGNOSTICS: pack_table(seen)}),
    }


def unpack(files: dict[str, bytes], training: Training) -> None:
    """Put `training`, freshly prepared, where the packed one was."""
    history = pl.read_parquet(io.BytesIO(files[HISTORY]))
    seconds = json.loads(files[SECONDS])
    carry = unpack_tensors(files[STATE], training.carry)
    seen = pl.read_parquet(io.BytesIO(files[DIAGNOSTICS])) if DIAGNOSTICS in files else None
    spent = (seconds["compile_seconds"], seconds["train_seconds"])
    training.restore([carry], [history], len(history), spent, seen)


def pack_tensors(tree: PyTree) -> bytes:
    """The leaves of a pytree as safetensors, named by their paths."""
    return save_tensors(named_arrays(tree))


def unpack_tensors(content: bytes, like: Carry) -> Carry:
    """A pytree of the structure of `like` with the packed leaves."""
    found = load_tensors(content)
    names = [name for name, _ in named_leaves(like)]
    if sorted(names) != sorted(found):
        raise InputError("checkpoint", "state.safetensors", "belongs to another run than spec.toml describes")
    return from_named(found, like)


def pack_model(params: Params) -> bytes:
    """Parameters as they go into model.safetensors: `weight`, `conv0.kernel`, ..."""
    return pack_tensors(params)


def pack_table(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def named_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """The leaves by their paths, as NumPy arrays."""
    return {name: np.asarray(leaf) for name, leaf in named_leaves(tree)}


def from_named(found: dict[str, np.ndarray], like: T) -> T:
    """A pytree of the structure of `like` with the leaves that `named_arrays` gave."""
    leaves = [jnp.asarray(found[name]) for name, _ in named_leaves(like)]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def named_leaves(tree: PyTree) -> list[tuple[str, jax.Array]]:
    """Leaves by their paths, such as `state.params.weight`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]
