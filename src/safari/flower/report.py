"""The report page of a fleet, from the state that its server saves after every round."""

import contextlib
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from safari.errors import InputError
from safari.experiment.checksums import SPEC, is_checked, read_checked, read_json
from safari.experiment.directory import CHECKPOINT, SUMMARY
from safari.experiment.finished import is_finished
from safari.flower.generations import Generations
from safari.flower.last_saved import JOURNAL, LastSaved, last_saved
from safari.flower.lines import Lines
from safari.report.fleet_blocks import Fleet
from safari.report.fleet_page import fleet_page
from safari.report.page import Page

ATTEMPTS, PAUSE = 5, 0.2
"""A state may be replaced while it is read."""


def page_of(directory: Path) -> Page:
    """The page of the fleet whose server saves its state in `directory`, whether it runs or not.

    Nothing there is locked or changed.
    """
    saved, damaged = _saved(directory)
    sums = "agree" if is_checked(directory) else "none were kept: files are unchecked"
    facts = {
        "directory": str(directory),
        "checksums": sums,
        "page made": f"{datetime.now():%Y-%m-%d %H:%M:%S}",
    }
    return fleet_page(fleet_of(directory, saved, damaged), read_checked(directory / SPEC).decode(), facts)


def fleet_of(directory: Path, saved: LastSaved, damaged: Sequence[str]) -> Fleet:
    """What is known of a fleet."""
    about, options = saved.about, saved.about["options"]
    finished = is_finished(directory)
    summary: dict[str, Any] = read_json(directory / SUMMARY) if finished else {}
    done = len(saved.rounds)
    synced = options["fleet.deliver"] == "synced" and about["synced_round"]
    newest = max((directory / CHECKPOINT).glob("round-*")).stat().st_mtime
    return Fleet(
        name=directory.resolve().name,
        rounds=saved.rounds,
        events=saved.events,
        clients=_names(about["fleet"]),
        seen=frozenset(about["fleet"]["seen"]),
        planned=options["train.rounds"],
        finished=finished and done >= options["train.rounds"],
        seconds=about["journal"]["counts"]["seconds"],
        saved=f"{datetime.fromtimestamp(newest).astimezone():%Y-%m-%d %H:%M:%S %Z}",
        delivered=summary.get("delivered_round", about["synced_round"] if synced else done),
        options=options,
        classes=tuple(about.get("classes") or ()),
        damaged=damaged,
    )


def _names(fleet: dict[str, Any]) -> list[str]:
    """The clients by number: those that were declared, and those that were seen."""
    declared, names = fleet["clients"], fleet["names"]
    count = max(declared if isinstance(declared, int) else len(names), max(fleet["seen"], default=-1) + 1)
    return [names[client] if client < len(names) else str(client) for client in range(count)]


def _saved(directory: Path) -> tuple[LastSaved, list[str]]:
    """The newest state that is whole, and what is wrong with newer ones."""
    place = directory / CHECKPOINT
    for _ in range(ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            found, faults = last_saved(Generations(place), Lines(place / JOURNAL))
            if found is not None:
                return found, faults
            if faults:
                raise InputError("directory", str(directory), f"no saved state is whole: {'; '.join(faults)}")
        time.sleep(PAUSE)
    if is_finished(directory):
        raise InputError("directory", str(directory), "has lost its saved states; put a copy back")
    raise InputError("directory", str(directory), "its server has not saved a round yet; try again later")
