"""What a server saves after every round, so that a restarted one goes on with the next.

The folder is a run directory, as a simulated run leaves it (spec.toml, metrics.parquet,
model.safetensors, summary.json) with events.parquet and participation.parquet beside them.
"""

import io
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import polars as pl
import tomli_w
from flwr.serverapp.strategy import Strategy
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from safari.algorithms.adaptive_q import Knowledge
from safari.errors import InputError
from safari.experiment.checkpoint import pack_table, pack_tensors
from safari.experiment.directory import METRICS, MODEL, SUMMARY, Directory
from safari.experiment.versions import versions
from safari.flower.arrays import Arrays
from safari.flower.fleet import Fleet
from safari.flower.journal import Journal
from safari.flower.wrapped import restore_strategy, strategy_state

EVENTS, PARTICIPATION = "events.parquet", "participation.parquet"


class Folder:
    """The folder of one federation: opened if it is there, made if not; locked while in use."""

    def __init__(self, path: Path, spec: dict[str, Any]):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        if path.exists():
            self.directory = Directory.open(path)
            self.directory.sweep()
        else:
            text = tomli_w.dumps({**spec, "versions": versions()})
            self.directory = Directory.create(path, text)

    def close(self) -> None:
        self.directory.close()

    def save(
        self, round: int, seed: int, arrays: Arrays, left: Arrays | None, journal: Journal, fleet: Fleet,
        known: Knowledge | None, clients: Strategy,
    ) -> None:  # fmt: skip
        """Everything at once: it is there whole, or the round before it is."""
        about = {
            "round": round,
            "seed": seed,
            "seconds": journal.seconds,
            "fleet": {"names": fleet.names, "seen": sorted(fleet.seen), "nodes": list(fleet.nodes.items())},
        }
        files = {
            "about.json": json.dumps(about).encode(),
            MODEL: save_tensors(arrays),
            METRICS: pack_table(journal.history()),
            EVENTS: pack_table(journal.happenings()),
            "clients.safetensors": save_tensors(strategy_state(clients)),
        }
        if left is not None:
            files["left.safetensors"] = save_tensors(left)
        if known is not None:
            files["known.safetensors"] = pack_tensors(known)
        self.directory.save_checkpoint(round, files)

    def load(self, seed: int, fleet: Fleet, clients: Strategy) -> "Saved | None":
        """The last round that was saved, with `fleet` and `clients` put where they were."""
        files = self.directory.load_checkpoint()
        if files is None:
            return None
        about = json.loads(files["about.json"])
        if about["seed"] != seed:
            place = self.directory.path
            raise InputError(
                "seed", seed, f"{place} was begun with {about['seed']}; choose another checkpoint"
            )
        if not fleet.fixed:
            fleet.names = about["fleet"]["names"]
        fleet.nodes = dict(about["fleet"]["nodes"])
        fleet.seen = set(about["fleet"]["seen"])
        restore_strategy(clients, load_tensors(files["clients.safetensors"]))
        journal = Journal(
            pl.read_parquet(io.BytesIO(files[METRICS])).to_dicts(),
            pl.read_parquet(io.BytesIO(files[EVENTS])).to_dicts(),
            about["seconds"],
        )
        left = load_tensors(files["left.safetensors"]) if "left.safetensors" in files else None
        return Saved(
            about["round"], load_tensors(files[MODEL]), left, journal, files.get("known.safetensors")
        )

    def finish(self, delivered: Arrays, journal: Journal, fleet: Fleet) -> None:
        """What a finished federation leaves; the summary last."""
        participation = journal.participation(fleet)
        self.directory.write(METRICS, pack_table(journal.history()))
        self.directory.write(EVENTS, pack_table(journal.happenings()))
        self.directory.write(PARTICIPATION, pack_table(pl.DataFrame(participation)))
        self.directory.write(MODEL, save_tensors(delivered))
        summary = journal.log(journal.never_took_part(fleet)).summary()
        self.directory.write_json(SUMMARY, {**summary, "participation": participation})


class Saved:
    """A round that was saved."""

    def __init__(
        self, round: int, arrays: Arrays, left: Arrays | None, journal: Journal, known: bytes | None
    ):
        self.round, self.arrays, self.left, self.journal, self._known = round, arrays, left, journal, known

    def known(self, like: Knowledge | None) -> Knowledge | None:
        """What an adaptive q knew, in the structure of `like`."""
        if like is None or self._known is None:
            return None
        found = load_tensors(self._known)
        paths = jax.tree_util.tree_flatten_with_path(like)[0]
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
        return jax.tree.unflatten(jax.tree.structure(like), [jnp.asarray(found[name]) for name in names])
