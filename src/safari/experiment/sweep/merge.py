"""Putting together what several machines, or several sittings, did of one sweep."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from safari.errors import check
from safari.experiment.checksums import read_spec
from safari.experiment.directory import Directory, write_file
from safari.experiment.sweep.cells import SweepSpec
from safari.experiment.sweep.store import (
    CELLS,
    UNFINISHED,
    Store,
    finished_files,
    plan_bytes,
    read_finished,
    read_plan,
)
from safari.experiment.writing import writing

JOINT, SPAN = "; ", " to "


@writing()
def merge(parts: Sequence[Path], out: Path) -> tuple[int, int]:
    """A new directory with the cells of all parts; how many there are, and how many are finished.

    What is not finished goes on from the furthest saved state by `safari sweep --resume`.
    """
    plans = [read_plan(part) for part in parts]
    base = plans[0].base
    for part, plan in zip(parts, plans, strict=True):
        check(plan.base == base, "merge", str(part), f"has another base spec than {parts[0]}")
    spec = SweepSpec(base, tuple(cell.settings for plan in plans for cell in plan.cells()))
    cells = spec.cells()
    spec = SweepSpec(base, tuple(cell.settings for cell in cells))
    about = about_parts(parts)
    for part in parts:
        read_finished(part)
    with Directory.create(out, tomli_w.dumps(about), {CELLS: plan_bytes(spec)}) as directory:
        try:
            for part in parts:
                _copy(part, out)
            return len(cells), len(Store(directory).write_results(cells))
        except BaseException:
            shutil.rmtree(out, ignore_errors=True)
            raise


def about_parts(parts: Sequence[Path]) -> dict[str, Any]:
    """What the first part says of itself, and by which commands, machines and commits all were made."""
    tables = [read_spec(part) for part in parts]
    return {**tables[0], "made": made_together(table.get("made", {}) for table in tables)}


def made_together(tables: Iterable[dict[str, str]]) -> dict[str, str]:
    """By which commands, machines and commits a directory was made in several goes, and when."""
    facts: dict[str, dict[str, None]] = {}
    for table in tables:
        for name, value in table.items():
            facts.setdefault(name, {}).update(dict.fromkeys(value.split(JOINT)))
    made = {name: JOINT.join(values) for name, values in facts.items()}
    if "date" in facts:
        made["date"] = _span(facts["date"])
    return made


def _span(dates: Iterable[str]) -> str:
    """The first date and the last; a part that was merged before has a span already."""
    ends = sorted(end for date in dates for end in date.split(SPAN))
    return ends[0] if ends[0] == ends[-1] else f"{ends[0]}{SPAN}{ends[-1]}"


def _copy(part: Path, out: Path) -> None:
    """Copy what is finished, and the saved states of what is not; the same state is copied once."""
    for source in finished_files(part) + sorted((part / UNFINISHED).glob("[!.]*/round-*")):
        target = out / source.relative_to(part)
        if source.is_file():
            write_file(target, source.read_bytes())
        elif not target.exists():
            target.mkdir(parents=True)
            for file in source.iterdir():
                write_file(target / file.name, file.read_bytes())
