"""Who took part: the clients with the number of rounds in which each did, or how many did how often."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from safari.report.page_blocks import Bar, Bars, Group
from safari.report.run_blocks import KINDS
from safari.report.settings import Settings

TITLE = "Who took part"
INK = KINDS["client"]
MOST_NAMED = 40
"""With more clients, they are counted by how often they took part."""
STEPS = 8


@dataclass(frozen=True)
class Took:
    """A client: what it is called, how often it was asked and answered, and whether it can ever come.

    `accuracy` is that of the model on the client's own samples, in per cent, where it is known.
    """

    name: str
    asked: float
    answered: float
    can_come: bool = True
    accuracy: float | None = None


def who_took_part(settings: Settings) -> list[Bars]:
    """The clients in SAFARI's runs, or in those of the first setting that asks any, where that is known."""
    known = [
        setting
        for setting in settings.all
        if setting.sound and all(run.get("participants") for run in setting.sound)
    ]
    asking = [setting for setting in known if any(sum(run["asked"]) for run in setting.sound)]
    if not asking:
        return []
    shown = next((setting for setting in asking if setting.algorithm == "safari"), asking[0])
    runs = shown.sound
    if len({tuple(run["participants"]) for run in runs}) > 1:
        return []
    rounds = {run["rounds"] for run in runs}
    of = f" of {next(iter(rounds))}" if len(rounds) == 1 else ""
    whose = f" with {shown.label}" if len(settings.all) > 1 else ""
    mean = f"; mean over {len(runs)} seeds" if len(runs) > 1 else ""
    caption = f"In how many{of} rounds each client trained{whose}{mean}."
    if len({tuple(run["absent"]) for run in runs}) > 1:
        caption += " Which clients never come differs from seed to seed."
    return [took_part(_clients(runs), caption)]


def _clients(runs: Sequence[dict[str, Any]]) -> list[Took]:
    """The clients of runs of one setting, their numbers averaged."""
    asked, answered = (
        np.mean([run[name] for run in runs], axis=0).tolist() for name in ("asked", "answered")
    )
    gone = set.intersection(*(set(run["absent"]) for run in runs))
    scores: dict[str, list[float]] = {}
    for run in runs:
        for name, share in zip(run.get("clients") or (), run.get("client_accuracy") or (), strict=True):
            scores.setdefault(name, []).append(100 * share)
    return [
        Took(name, asked[number], answered[number], number not in gone, _mean(scores.get(name)))
        for number, name in enumerate(runs[0]["participants"])
    ]


def _mean(values: list[float] | None) -> float | None:
    return sum(values) / len(values) if values else None


def took_part(clients: Sequence[Took], caption: str) -> Bars:
    """The section on these clients, those that took part most often first."""
    if len(clients) > MOST_NAMED:
        return _counted(clients, caption)
    columns = {
        "asked": _rounds([client.asked for client in clients]),
        "answered": _rounds([client.answered for client in clients]),
    }
    if columns["asked"] == columns["answered"]:
        columns = {"rounds": columns["asked"]}
    if any(client.accuracy is not None for client in clients):
        columns["accuracy, %"] = ["" if one.accuracy is None else f"{one.accuracy:.1f}" for one in clients]
        caption += " Accuracy: the delivered model on the client's own samples."
    bars = [
        Bar(client.name, client.answered, texts, ink=INK)
        for client, texts in zip(clients, zip(*columns.values(), strict=True), strict=True)
    ]
    order = sorted(range(len(clients)), key=lambda place: -clients[place].answered)
    come, gone = (
        tuple(bars[place] for place in order if clients[place].can_come == can) for can in (True, False)
    )
    groups = (
        (Group("can take part", "", come), Group("never take part", "", gone))
        if gone
        else (Group("", "", come),)
    )
    most = max(client.asked for client in clients)
    return Bars("clients", TITLE, caption, "client", tuple(columns), groups, most)


def _counted(clients: Sequence[Took], caption: str) -> Bars:
    """How many clients took part how often."""
    most = round(max(client.answered for client in clients))
    width = max(1, -(-most // STEPS))
    bars = []
    for low, high in [(0, 0), *((low, low + width - 1) for low in range(1, most + 1, width))]:
        found = sum(low <= round(client.answered) <= high for client in clients)
        label = "never" if high == 0 else f"{low}" if low == high else f"{low} to {high}"
        bars.append(Bar(label, found, (f"{found:,}", f"{100 * found / len(clients):.1f} %"), ink=INK))
    highest = max(bar.value or 0 for bar in bars)
    groups, columns = (Group("", "", tuple(bars)),), ("clients", "share")
    return Bars("clients", TITLE, caption, "in how many rounds", columns, groups, highest)


def _rounds(numbers: list[float]) -> list[str]:
    decimals = 0 if all(number == round(number) for number in numbers) else 1
    return [f"{number:.{decimals}f}" for number in numbers]
