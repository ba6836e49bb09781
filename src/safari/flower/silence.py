"""The end of a run in which no client takes part: it is not what was asked for, and does not go unnoticed."""

from collections import Counter

from safari.errors import InputError
from safari.flower.fleet import Fleet
from safari.flower.journal import Journal

SHOWN = 4
"""So many of the reasons are told."""


def check_silence(journal: Journal, fleet: Fleet, most: int | None, finished: bool) -> None:
    """Raise `InputError` if the last `most` client rounds had no reply that counted, or none ever had.

    The second is known once the run has `finished`.
    """
    many = most is not None and journal.silent >= most
    never = finished and journal.due > 0 and journal.averaged == 0
    if not (many or never):
        return
    what = f"the last {journal.silent}" if journal.averaged else f"all {journal.due}"
    told = f"{what} client rounds were without clients ({reasons(journal, fleet)})"
    hint = f"; silent_rounds = {most} ends the run here" if many and not finished else ""
    raise InputError("clients", _who(fleet), f"{told}{hint}")


def reasons(journal: Journal, fleet: Fleet) -> str:
    """Why nobody took part, as far as the server knows."""
    rounds = {row["round"] for row in journal.rounds[-50:]}
    found: Counter[str] = Counter()
    for row in reversed(journal.events):
        if row["round"] not in rounds:
            break
        if row["event"] in ("failed", "rejected", "late", "left"):
            found[f"client {row['name']} {row['event']}: {row['detail']}"] += 1
        elif row["event"] == "replaced":
            found[row["detail"]] += 1
    told = [f"node {node} {why}" for node, why in fleet.silent.items()][:SHOWN]
    told += [text for text, _ in found.most_common(SHOWN - len(told))]
    return "; ".join(told) or "no node was ever connected"


def _who(fleet: Fleet) -> str:
    return f"{len(fleet.seen)} of {fleet.size}" if fleet.size else f"{len(fleet.seen)} seen"
