"""The report page of a fleet, finished or still going on."""

from safari.report.colours import algorithm_inks
from safari.report.fleet_blocks import (
    TROUBLE,
    Fleet,
    client_table,
    event_table,
    recall_curves,
    reply_curves,
    who_took_part,
)
from safari.report.page_blocks import Block, Findings, Number, Page
from safari.report.run_blocks import accuracy_curves, in_kinds, q_curve, round_strip

REFRESH = 5
"""Seconds after which the page of an unfinished fleet loads itself anew."""
MOST_NAMED = 6


def fleet_page(fleet: Fleet, spec: str, facts: dict[str, str]) -> Page:
    """Everything that the server's state tells; the page of an unfinished fleet loads itself anew."""
    state = "finished" if fleet.finished else f"unfinished; last saved {fleet.saved}"
    subtitle = f"{_many(len(fleet.clients), 'client')}, {_many(fleet.planned, 'round')}; {state}"
    rounds = [row["round"] for row in fleet.rounds]
    ink = algorithm_inks([])["fedavg" if fleet.options.get("algorithm.q") == 1 else "safari"]
    delivered, after = ([row[name] for row in fleet.rounds] for name in ("accuracy", "accuracy_round"))
    blocks: list[Block] = [
        Findings("findings", "Findings", _lead(fleet), tuple(_points(fleet)), _numbers(fleet)),
        *accuracy_curves(rounds, delivered, after, ink),
        *recall_curves(fleet),
        *round_strip(rounds, [row["kind"] for row in fleet.rounds]),
        *q_curve(rounds, [row["q"] for row in fleet.rounds]),
        *who_took_part(fleet),
        *client_table(fleet),
        *reply_curves(fleet),
        *event_table(fleet),
    ]
    refresh = None if fleet.finished else REFRESH
    return Page(f"Fleet {fleet.name}", subtitle, tuple(blocks), spec, facts, refresh)


def _accuracy(fleet: Fleet) -> float | None:
    """That of the delivered model, or of the one that would be delivered now."""
    known = (row["accuracy"] for row in reversed(fleet.rounds) if row["accuracy"] is not None)
    return next(known, None)


def _lead(fleet: Fleet) -> str:
    if not fleet.rounds:
        return "No round is done yet."
    done, accuracy = len(fleet.rounds), _accuracy(fleet)
    begun = f"All {done} rounds are done" if fleet.finished else f"{done} of {fleet.planned} rounds are done"
    if accuracy is None:
        return f"{begun}; the server has no evaluation, so nobody knows how good the model is."
    which = "delivered model" if fleet.finished else "model that would be delivered now"
    right = f"gets {100 * accuracy:.1f} % of the test set right"
    worst = next(iter(fleet.recall.items()), None)
    if worst is not None:
        right += f", and {100 * worst[1]:.1f} % of class {worst[0]}, which it recognises least"
    return f"{begun}; the {which}, from round {fleet.delivered}, {right}."


def _points(fleet: Fleet) -> list[str]:
    answered = fleet.count("answered")
    never = [client for client in range(len(fleet.clients)) if not answered[client]]
    found = [
        f"{damage}; what this page shows was saved before it, after round {len(fleet.rounds)}."
        for damage in fleet.damaged
    ]
    if never and fleet.rounds:
        named = ", ".join(_with_connection(fleet, client) for client in never[:MOST_NAMED])
        more = f" and {len(never) - MOST_NAMED} more" if len(never) > MOST_NAMED else ""
        what = f"{_many(len(fleet.clients), 'client')} {'has' if len(never) == 1 else 'have'} not taken part"
        learnt = "the model has learnt nothing from their data"
        found.append(f"{len(never)} of {what}: {named}{more}; {learnt}.")
    found += [sentence for event in TROUBLE for sentence in _trouble(fleet, event)]
    if replaced := fleet.of("replaced"):
        many, last = _many(len(replaced), "client round"), replaced[-1]
        found.append(f"{many} came to nothing, the last in round {last['round']}: {last['detail']}.")
    return [
        *found,
        *(f"Before round {row['round']} a setting changed: {row['detail']}." for row in fleet.of("changed")),
    ]


def _with_connection(fleet: Fleet, client: int) -> str:
    return fleet.called(client) + ("" if client in fleet.seen else " (never connected)")


def _trouble(fleet: Fleet, event: str) -> list[str]:
    """Who, how often, and why the last time."""
    counts = fleet.count(event)
    if not counts:
        return []
    named = [f"{fleet.called(client)} ({count})" for client, count in counts.most_common(MOST_NAMED)]
    more = f" and {_many(len(counts) - MOST_NAMED, 'other client')}" if len(counts) > MOST_NAMED else ""
    last = fleet.of(event)[-1]
    why = f"the last in round {last['round']}, {fleet.called(last['client'])}: {last['detail']}"
    many = _many(sum(counts.values()), "time")
    return [f"{TROUBLE[event].capitalize()} {many}: {', '.join(named)}{more}; {why}."]


def _numbers(fleet: Fleet) -> tuple[Number, ...]:
    if not fleet.rounds:
        return ()
    answered, accuracy, asked = fleet.count("answered"), _accuracy(fleet), len(fleet.of("asked"))
    found = [
        Number(
            f"{len(fleet.rounds)} of {fleet.planned}",
            "rounds done",
            in_kinds([row["kind"] for row in fleet.rounds]),
        )
    ]
    if accuracy is not None:
        found.append(
            Number(
                f"{100 * accuracy:.1f} %", "accuracy of the delivered model", f"from round {fleet.delivered}"
            )
        )
    if fleet.recall:
        name, recall = next(iter(fleet.recall.items()))
        found.append(Number(f"{100 * recall:.1f} %", f"recall of class {name}", "the class recognised least"))
    found.append(Number(f"{len(answered)} of {len(fleet.clients)}", "clients took part"))
    if (q := fleet.rounds[-1]["q"]) is not None:
        found.append(Number(f"{q:.3g}", "q", "probability of a client round"))
    if asked:
        share = f"{100 * sum(answered.values()) / asked:.0f} %"
        found.append(Number(share, "of requests led to a reply that counts", f"{asked:,} requests"))
    found.append(Number(f"{fleet.seconds / len(fleet.rounds):.1f} s", "a round on average"))
    return tuple(found)


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
