"""The tables of a federation and its summary, current after every round."""

import shutil
from collections.abc import Callable
from typing import Any

import polars as pl

from safari.engine.result import Measured
from safari.experiment.checkpoint import pack_table
from safari.experiment.directory import METRICS, SUMMARY, Directory, pack_json
from safari.flower.fleet import Fleet
from safari.flower.journal import Journal
from safari.flower.last_saved import EVENTS

PARTICIPATION = "participation.parquet"
PART = 10_000
"""So many events are in a file of the folder of events; a full file is never written again."""


class Tables:
    """Writes metrics.parquet, participation.parquet, events.parquet (a folder) and summary.json.

    What a round writes does not grow with the rounds before it, but for the row a round of metrics.parquet.
    """

    def __init__(self, directory: Directory):
        self._directory = directory
        self._full: int | None = None

    def write(
        self,
        journal: Journal,
        fleet: Fleet,
        more: dict[str, Any],
        measure: Callable[[], Measured] | None = None,
    ) -> None:
        """The tables as of now; `more` of the summary, and what scores the model, come from outside."""
        participation = journal.participation(fleet)
        never = [row["client"] for row in participation if not row["answered"]]
        summary = {**more, **journal.log(never, measure).summary(), "participation": participation}
        files = {
            METRICS: pack_table(journal.history()),
            PARTICIPATION: pack_table(pl.DataFrame(participation)),
            **self._events(journal),
            SUMMARY: pack_json(summary),
        }
        self._directory.write_all(files)
        self._full = len(journal.events) // PART

    def _events(self, journal: Journal) -> dict[str, bytes]:
        """The files of events that are not full; at the first time all, in place of what is there."""
        if self._full is None:
            self._begin()
        parts = range(self._full or 0, len(journal.events) // PART + 1)
        return {
            f"{EVENTS}/part-{part:06d}.parquet": pack_table(
                journal.happenings(part * PART, (part + 1) * PART)
            )
            for part in parts
        }

    def _begin(self) -> None:
        """Remove what a server left that was killed: it may be of rounds that will be carried out again."""
        before = self._directory.path / EVENTS
        if before.is_dir():
            names = [f"{EVENTS}/{part.name}" for part in before.iterdir()]
            shutil.rmtree(before)
            self._directory.remove(*names)
        elif before.exists():
            self._directory.remove(EVENTS)
