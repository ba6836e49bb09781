"""What a server saved last: its tables as they stand, whether it still runs or not. No Flower needed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safari.experiment.checksums import Damaged
from safari.experiment.directory import CHECKPOINT
from safari.flower.generations import Generations
from safari.flower.lines import Lines

ABOUT, STATE, JOURNAL = "about.json", "state.safetensors", "journal.jsonl"
EVENTS = "events.parquet"


@dataclass(frozen=True)
class LastSaved:
    """The newest state of a server that is whole.

    Attributes:
        about: what the state is of: the round, the settings, the fleet.
        rows: the journal up to then, rounds and events as they came.
        state: the arrays, as a file of tensors.
    """

    about: dict[str, Any]
    rows: list[dict[str, Any]]
    state: bytes

    @property
    def rounds(self) -> list[dict[str, Any]]:
        found = [row for row in self.rows if "kind" in row]
        for row in self.rows:
            if "checkpoint_seconds" in row and "kind" not in row:  # saved with the round after
                found[row["round"] - 1] |= row
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if "event" in row]


def is_fleet(path: Path) -> bool:
    """Whether a folder is that of a server's state, of which much may be lost."""
    place = path / CHECKPOINT
    files = (place / JOURNAL).is_file(), any(place.glob(f"round-*/{ABOUT}")), (path / EVENTS).is_dir()
    return any(files)


def last_saved(generations: Generations, lines: Lines) -> tuple[LastSaved | None, list[str]]:
    """The newest generation that is whole with its part of the journal; what is wrong with newer ones."""
    faults = []
    for files in generations.load():
        if isinstance(files, Damaged):
            faults.append(str(files))
            continue
        about = json.loads(files[ABOUT])
        try:
            rows = lines.read(about["journal"])
        except Damaged as error:
            faults.append(str(error))
            continue
        return LastSaved(about, rows, files[STATE]), faults
    return None, faults
