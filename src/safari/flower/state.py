"""What a server saves after every round, so that a restarted one goes on with the next.

The folder is a run directory, as a simulated run leaves it (spec.toml, metrics.parquet,
model.safetensors, summary.json) with events.parquet and participation.parquet beside them.
"""

import json
from dataclasses import dataclass
from functools import partial
from logging import WARNING
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w
from flwr.common import log
from flwr.serverapp.strategy import Strategy
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from safari.algorithms.adaptive_q import Knowledge
from safari.errors import InputError
from safari.experiment.checkpoint import pack_table
from safari.experiment.directory import METRICS, MODEL, SUMMARY, Directory
from safari.experiment.versions import versions
from safari.flower.arrays import Arrays
from safari.flower.fleet import Fleet
from safari.flower.journal import Journal
from safari.flower.wrapped import restore_strategy, strategy_state
from safari.models import from_named, named_arrays

EVENTS, PARTICIPATION = "events.parquet", "participation.parquet"
ABOUT, STATE = "about.json", "state.safetensors"


class Folder:
    """The folder of one federation: opened if it is there, made if not; locked while in use."""

    def __init__(self, path: Path, spec: dict[str, Any]):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        if path.exists():
            self.directory = Directory.open(path, partial(log, WARNING))
            self.directory.read_spec()
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
            "journal": {"rounds": journal.rounds, "events": journal.events, "seconds": journal.seconds},
            "fleet": {
                "clients": fleet.declared,
                "names": fleet.names,
                "seen": sorted(fleet.seen),
                "nodes": list(fleet.nodes.items()),
            },
        }
        parts = {"model": arrays, "clients": strategy_state(clients)}
        if left is not None:
            parts["left"] = left
        if known is not None:
            parts["known"] = named_arrays(known)
        tensors = {f"{part}:{name}": array for part, held in parts.items() for name, array in held.items()}
        self.directory.save_checkpoint(
            round, {ABOUT: json.dumps(about).encode(), STATE: save_tensors(tensors)}
        )

    def load(self, seed: int, arrays: Arrays, fleet: Fleet, clients: Strategy) -> "Saved | None":
        """The last round that was saved, with `fleet` and `clients` put where they were.

        Refuses what was saved of another federation: seed, fleet or `arrays` that differ.
        """
        files, place = self.directory.load_checkpoint(), self.directory.path
        if files is None:
            return None
        if ABOUT not in files:
            raise InputError("checkpoint", str(place), "is a simulated run; choose another folder")
        about = json.loads(files[ABOUT])
        if about["seed"] != seed:
            raise InputError(
                "seed", seed, f"{place} was begun with {about['seed']}; choose another checkpoint"
            )
        if about["fleet"]["clients"] != fleet.declared:
            begun = about["fleet"]["clients"]
            hint = f"{place} was begun with {begun}; choose another checkpoint"
            raise InputError("fleet", fleet.declared, hint)
        if not fleet.fixed:
            fleet.names = about["fleet"]["names"]
        fleet.nodes = dict(about["fleet"]["nodes"])
        fleet.seen = set(about["fleet"]["seen"])
        parts: dict[str, Arrays] = {}
        for name, array in load_tensors(files[STATE]).items():
            part, _, inner = name.partition(":")
            parts.setdefault(part, {})[inner] = array
        if _layout(parts["model"]) != _layout(arrays):
            raise InputError(
                "initial_arrays", "shapes", f"{place} holds another model; choose another checkpoint"
            )
        restore_strategy(clients, parts.get("clients", {}))
        journal = Journal(**about["journal"])
        return Saved(about["round"], parts["model"], parts.get("left"), journal, parts.get("known"))

    def finish(self, delivered: Arrays, journal: Journal, fleet: Fleet) -> None:
        """What a finished federation leaves; the summary last."""
        participation = journal.participation(fleet)
        self.directory.write(METRICS, pack_table(journal.history()))
        self.directory.write(EVENTS, pack_table(journal.happenings()))
        self.directory.write(PARTICIPATION, pack_table(pl.DataFrame(participation)))
        self.directory.write(MODEL, save_tensors(delivered))
        summary = journal.log(journal.never_took_part(fleet)).summary()
        self.directory.write_json(SUMMARY, {**summary, "participation": participation})


def _layout(arrays: Arrays) -> dict[str, tuple[Any, ...]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


@dataclass(frozen=True)
class Saved:
    """A round that was saved."""

    round: int
    arrays: Arrays
    left: Arrays | None
    journal: Journal
    _known: Arrays | None

    def known(self, like: Knowledge | None) -> Knowledge | None:
        """What an adaptive q knew, in the structure of `like`."""
        return None if like is None or self._known is None else from_named(self._known, like)
