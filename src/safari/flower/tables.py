"""The tables of a federation and its summary, current after every round."""

import shutil
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from safari.engine.result import Measured
from safari.experiment.checkpoint import pack_table
from safari.experiment.directory import METRICS, SUMMARY, Directory, pack_json
from safari.flower.fleet import Fleet
from safari.flower.journal import SCORES, Journal
from safari.flower.last_saved import EVENTS

BY_CLASS = {"recall", "precision"}
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
        clients = journal.participation(fleet)
        summary = {
            **more,
            **scored(journal.log(more["excluded"], measure).summary(), journal),
            "never_connected": [row["name"] for row in clients if not row["seen"]],
            "never_took_part": [row["name"] for row in clients if not row["answered"]],
            "participation": clients,
        }
        files = {
            METRICS: pack_table(journal.history()),
            PARTICIPATION: pack_table(pl.DataFrame(clients)),
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


def scored(summary: dict[str, Any], journal: Journal) -> dict[str, Any]:
    """The summary with what the server's evaluation found, where the model itself was not scored by class.

    Classes whose names the server does not know are called by their numbers.
    """
    if not journal.rounds or summary["classes"] is not None:
        return summary
    found = {name: value for name in SCORES if (value := journal.rounds[-1][name]) is not None}
    count = max((len(value) for value in found.values() if isinstance(value, list)), default=0)
    if count:
        names = journal.called(count)
        for name in BY_CLASS & found.keys():
            found[name] = dict(zip(names, found[name], strict=False))
        found |= {"classes": names, **worst_of(found.get("recall", {}))}
    return summary | found


def worst_of(recall: Mapping[str, float | None]) -> dict[str, Any]:
    """The class that is recognised least, and its recall; None where no class has one."""
    known = {name: value for name, value in recall.items() if value is not None}
    worst = min(known, key=lambda name: known[name], default=None)
    return {"worst_class": worst, "worst_recall": None if worst is None else known[worst]}
