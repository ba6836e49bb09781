"""What a server saves after every round, so that a restarted one goes on with the next.

The folder is a run directory, as a simulated run leaves it (spec.toml, metrics.parquet,
model.safetensors, summary.json) with events.parquet and participation.parquet beside them. The tables
and the summary follow the checkpoint after every round.
Its owner alone may read what is in it.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from logging import WARNING
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from flwr.common import log
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from safari.engine.model_file import pack_model
from safari.errors import InputError
from safari.experiment.checksums import Damaged
from safari.experiment.directory import CHECKPOINT, MODEL, SPEC, SUMMARY, Directory, write_file
from safari.experiment.versions import versions
from safari.flower.arrays import Arrays
from safari.flower.fleet import Fleet
from safari.flower.generations import Generations, private
from safari.flower.journal import Journal
from safari.flower.last_saved import ABOUT, JOURNAL, STATE, last_saved
from safari.flower.lines import Lines
from safari.flower.tables import Tables

if TYPE_CHECKING:
    from safari.flower.spec_job import Job

NOT_OURS = ("lost+found",)
"""What an empty file system may hold."""


@dataclass
class Saved:
    """A round that was saved: arrays by part, and the rest as JSON holds it."""

    round: int
    parts: dict[str, Arrays]
    about: dict[str, Any]


class Folder:
    """The folder of one federation: opened if it is there, made if not; locked while in use."""

    def __init__(self, path: Path, tables: dict[str, Any]):
        self.path = path
        with self._named():
            self.directory = self._open(_spec(tables, ()))
            place = path / CHECKPOINT
            place.mkdir(exist_ok=True)
        self._generations = Generations(place)
        self._lines = Lines(place / JOURNAL)
        self._written = (0, 0)
        self._tables = Tables(self.directory)
        self._told: list[dict[str, Any]] = []

    def _open(self, spec: bytes) -> Directory:
        """An empty folder is not made anew: it may be a mount point, in a folder that nobody may write to."""
        if not self.path.exists():
            return Directory.create(self.path, spec.decode())
        empty = self.path.is_dir() and all(one.name in NOT_OURS for one in self.path.iterdir())
        if empty:
            write_file(self.path / SPEC, spec)
        directory = Directory.open(self.path, partial(log, WARNING))
        if empty:
            directory.write(SPEC, spec)
        else:
            directory.read_spec()
            directory.sweep()
        return directory

    def close(self) -> None:
        self.directory.close()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Files are private; errors name the setting of the strategy, and no option of another command."""
        try:
            with private():
                yield
        except Damaged as error:
            raise InputError("checkpoint", str(error.value), error.allowed) from None
        except InputError as error:
            hint = error.allowed.split("; choose another")[0]
            raise InputError("checkpoint", str(self.path), f"{hint}; choose another folder") from None
        except OSError as error:
            at = f"{error.filename}: " if error.filename else ""
            raise InputError("checkpoint", str(self.path), f"cannot be used ({at}{error.strerror})") from None

    def save(self, saved: Saved, journal: Journal, fleet: Fleet, more: dict[str, Any]) -> None:
        """Everything at once: it is there whole, or the round before it is. Then the tables."""
        began, (rounds, events) = time.monotonic(), self._written
        with self._named():
            mark = self._lines.append([*self._told, *journal.events[events:], *journal.rounds[rounds:]])
            self._written = len(journal.rounds), len(journal.events)
            about = {
                **saved.about,
                "round": saved.round,
                "journal": {
                    **mark,
                    "counts": {
                        name: getattr(journal, name) for name in ("seconds", "due", "averaged", "silent")
                    },
                },
                "fleet": {
                    "clients": fleet.declared,
                    "names": fleet.names,
                    "seen": sorted(fleet.seen),
                    "nodes": [[node, client] for node, client in fleet.nodes.items() if client >= 0],
                    "keys": fleet.keys.bound,
                },
            }
            tensors = {
                f"{part}:{name}": array for part, held in saved.parts.items() for name, array in held.items()
            }
            files = {ABOUT: json.dumps(about).encode(), STATE: save_tensors(tensors)}
            self._generations.save(saved.round, files)
            self._tables.write(journal, fleet, more)
        took = {"round": saved.round, "checkpoint_seconds": time.monotonic() - began}
        journal.rounds[-1] |= took
        self._told = [took]

    def load(self, seed: int, arrays: Arrays, fleet: Fleet, journal: Journal) -> Saved | None:
        """The last round that was saved whole, with `fleet` and `journal` put where they were.

        Raises:
            InputError: for the state of another federation (seed, fleet or `arrays` differ), or if no
                generation is whole.
        """
        rounds = list((self.path / CHECKPOINT).glob("round-*"))
        if (rounds or (self.path / SUMMARY).exists()) and not self._lines.path.exists():
            hint = f"is a simulated run's or older: it has no {CHECKPOINT}/{JOURNAL}; choose another folder"
            raise InputError("checkpoint", str(self.path), hint)
        with self._named():
            found, faults = last_saved(self._generations, self._lines)
        for fault in faults:
            log(WARNING, "safari: %s; the generation before it is taken", fault)
        if found is None:
            if faults:
                hint = f"no generation is whole: {'; '.join(faults)}; restore the folder from a backup"
                raise InputError("checkpoint", str(self.path), hint)
            return None
        parts: dict[str, Arrays] = {}
        for name, array in load_tensors(found.state).items():
            part, _, inner = name.partition(":")
            parts.setdefault(part, {})[inner] = array
        saved = Saved(found.about["round"], parts, found.about)
        self._refuse_another(saved, seed, arrays, fleet)
        for part in {"model", "synced"} & set(saved.parts):  # a file of tensors keeps no order
            saved.parts[part] = {name: saved.parts[part][name] for name in arrays}
        if not fleet.fixed:
            fleet.names = saved.about["fleet"]["names"]
        fleet.nodes = dict(saved.about["fleet"]["nodes"])
        fleet.seen = set(saved.about["fleet"]["seen"])
        fleet.keys.bound = saved.about["fleet"]["keys"]
        journal.restore(found.rounds, found.events, saved.about["journal"]["counts"])
        self._written = len(journal.rounds), len(journal.events)
        return saved

    def _refuse_another(self, saved: Saved, seed: int, arrays: Arrays, fleet: Fleet) -> None:
        about = saved.about
        other = "choose another checkpoint"
        if about["seed"] != seed:
            raise InputError("seed", seed, f"{self.path} was begun with {about['seed']}; {other}")
        if about["fleet"]["clients"] != fleet.declared:
            begun = about["fleet"]["clients"]
            raise InputError("fleet", fleet.declared, f"{self.path} was begun with {begun}; {other}")
        if _layout(saved.parts["model"]) != _layout(arrays):
            raise InputError("initial_arrays", "shapes", f"{self.path} holds another model; {other}")

    def respecify(self, tables: dict[str, Any], changed: list[str]) -> None:
        """Write spec.toml anew, with a comment for each setting that was changed."""
        before = (self.path / SPEC).read_text(encoding="utf-8").splitlines()
        notes = [line for line in before if line.startswith("# ")]
        with self._named():
            self.directory.write(SPEC, _spec(tables, [*notes, *(f"# {change}" for change in changed)]))

    def finish(
        self, delivered: Arrays, journal: Journal, fleet: Fleet, job: "Job | None", more: dict[str, Any]
    ) -> None:
        """What a finished federation leaves: the delivered model, and the last tables.

        Of a federation that began from a spec, `job` knows what the arrays are: the model can be loaded as
        that of a simulated run, and is scored class by class.
        """
        model = None if job is None else job.trained(delivered)
        measure = None if job is None or model is None else partial(job.measured, model)
        with self._named():
            self.directory.write(MODEL, save_tensors(delivered) if model is None else pack_model(model))
            self._tables.write(journal, fleet, more, measure)

    def stop(self, journal: Journal, fleet: Fleet, more: dict[str, Any]) -> None:
        """The tables of a federation that ended before its last round, as far as they can be written."""
        with contextlib.suppress(InputError), self._named():
            self._tables.write(journal, fleet, more)


def _spec(tables: dict[str, Any], notes: Any) -> bytes:
    text = tomli_w.dumps({**tables, "versions": versions()})
    return "".join([*(f"{note}\n" for note in notes), text]).encode()


def _layout(arrays: Arrays) -> dict[str, tuple[Any, ...]]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}
