"""What the log says at the end: which model is delivered, and who never took part and why."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from logging import INFO, WARNING
from typing import Any

TROUBLE = ("failed", "rejected", "late", "left")


def delivery(rounds: Sequence[Mapping[str, Any]], delivered: int) -> tuple[int, str]:
    """Which round's model is delivered, and at what level that is logged.

    It is a warning if the last model, which is left out, has the better accuracy.
    """
    later, said = len(rounds) - delivered, f"the delivered model is that after round {delivered}"
    if not later:
        return INFO, said
    out = f"{later} later {'round is' if later == 1 else 'rounds are'} left out"
    scores = [rows[-1]["accuracy_round"] for rows in (rounds[:delivered], rounds)]
    if None in scores:
        return INFO, f'{said}; {out} (deliver="last" takes {"it" if later == 1 else "them"})'
    before, after = scores
    said += f" (accuracy {before:.4f}); {out}: after round {len(rounds)} the accuracy is {after:.4f}"
    if after > before:
        return WARNING, f'{said}, which is better; deliver="last" takes that model'
    return INFO, f'{said} (deliver="last" takes that model)'


def absence(clients: Iterable[Mapping[str, Any]], excluded: Collection[int]) -> str:
    """Who never took part, put together by the reason; `clients` are the rows of participation."""
    found: dict[str, list[str]] = {}
    for row in clients:
        if not row["answered"]:
            found.setdefault(_why(row, excluded), []).append(row["name"])
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in found.items()) or "none"


def _why(row: Mapping[str, Any], excluded: Collection[int]) -> str:
    if row["client"] in excluded:
        return "excluded"
    if not row["seen"]:
        return "never connected"
    if not row["asked"]:
        return "connected, never asked"
    befell = [f"{event} {row[event]} of {row['asked']} times" for event in TROUBLE if row[event]]
    return ", ".join(befell) or f"asked {row['asked']} times, in rounds that came to nothing"
