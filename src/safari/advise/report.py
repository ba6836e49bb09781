"""The report page of an advice, from what `safari advise` left in its folder."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from safari.advise.advice import named
from safari.advise.goal import Goal
from safari.advise.pilot import Arm
from safari.errors import InputError
from safari.experiment.checksums import (
    SPEC,
    SUMS,
    Damaged,
    digest,
    pack_sums,
    read_checked,
    reading,
)
from safari.experiment.directory import write_file
from safari.report.advice_page import Advised, Tried, advice_page
from safari.report.page import Page
from safari.report.page_blocks import Number
from safari.report.statistics import Estimate

ADVICE = "advice.json"
PILOT = "pilot-1"
"""The folder of the first sweep, whose spec is the user's."""


def write_advice(directory: Path, found: dict[str, Any]) -> None:
    """Write the advice, its checksum first."""
    content = (json.dumps(found, indent=2) + "\n").encode()
    write_file(directory / SUMS, pack_sums({ADVICE: [digest(content)]}))
    write_file(directory / ADVICE, content)


def is_advice(directory: Path) -> bool:
    """Whether a folder was made by `safari advise`."""
    return (directory / ADVICE).is_file()


def page_of(directory: Path) -> Page:
    """The page of the advice in `directory`."""
    file = directory / ADVICE
    content = read_checked(file)
    with reading(file, "is damaged; run `safari advise` again"):
        found = json.loads(content)
        advised = _advised(directory, found)
    spec = directory / PILOT / SPEC
    if not spec.is_file():
        raise Damaged(spec, "is missing; run `safari advise` again")
    facts = {"directory": str(directory), "seconds": f"{found['seconds']:.0f}"}
    rounds = f"{found['pilot_rounds']} of {found['rounds']}"
    return advice_page(
        advised,
        read_checked(spec).decode(),
        {**facts, "rounds of a run": rounds},
    )


def _advised(directory: Path, found: dict[str, Any]) -> Advised:
    if "command" not in found:
        raise InputError("directory", str(directory), "is of an older version; run `safari advise` again")
    goal, measured = Goal.named(found["metric"]), found["measured"]
    ground = measured["ground"]
    numbers = (
        Number(f"{len(measured['scores']) - 1}", "settings tried beside yours"),
        Number(f"{ground['excluded']} of {ground['clients']}", "clients excluded"),
        Number(f"{ground['server_samples']:,}", "samples of the server's"),
        Number(f"{found['seconds']:.0f} s", "the pilot took", f"{found['pilot_rounds']} rounds a run"),
    )
    return Advised(
        title=f"Advice on {Path(found['spec']).name}",
        verdict=found["verdict"],
        reasons=found["reasons"],
        metric=goal.words,
        share=goal.metric.share,
        tried=[_tried(row) for row in measured["scores"]],
        sizes=[
            (int(size), _estimate(row), _estimate(row["over_own_size"]))
            for size, row in measured["server_samples"].items()
        ],
        command=found["command"],
        numbers=numbers,
    )


def _tried(row: dict[str, Any]) -> Tried:
    arm = Arm(**{one.name: row.get(one.name) for one in fields(Arm)})
    gain = row["over_own"]
    return Tried(named(arm), arm.name, _estimate(row), None if gain is None else _estimate(gain))


def _estimate(row: dict[str, Any]) -> Estimate:
    """As it was written; what was not a number there is none here."""
    numbers = (
        float("nan") if row[name] is None else row[name] for name in ("mean", "deviation", "low", "high")
    )
    return Estimate(row["count"], *numbers)
