"""A training as bytes, and back: safetensors and Parquet, never pickle."""

import io
import json
from pathlib import Path

import polars as pl
from jaxtyping import PyTree
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from safari.engine import Carry
from safari.engine.training import Training
from safari.errors import InputError
from safari.experiment.checksums import parse_table, reading
from safari.experiment.directory import DIAGNOSTICS
from safari.models import from_named, named_arrays, named_leaves

STATE, HISTORY, SECONDS = "state.safetensors", "history.parquet", "seconds.json"
BEGIN_ANEW = "is damaged; remove the folder to begin anew"


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


def unpack(files: dict[str, bytes], training: Training, place: Path) -> None:
    """Put `training`, freshly prepared, where the packed one was; `place` is the folder of the files."""
    with reading(place, BEGIN_ANEW):
        history = parse_table(files[HISTORY])
        seconds = json.loads(files[SECONDS])
        carry = unpack_tensors(files[STATE], training.carry)
        seen = parse_table(files[DIAGNOSTICS]) if DIAGNOSTICS in files else None
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


def pack_table(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()
