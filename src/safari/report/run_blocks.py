"""Blocks of a single run, simulated or of a fleet: its accuracy, whose rounds they were, q."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from safari.report.colours import CEILING, OTHERS, Ink
from safari.report.page_blocks import Curves, Line, Strip

ROUND, ACCURACY = "round", "test accuracy in %"
KINDS = {
    "client": Ink("#2f8f86", "#58b8ae"),
    "server": Ink("#b7791f", "#e3b44c"),
    "both": Ink("#7a5195", "#b99ad3"),
    "idle": Ink("#9aa5b1", "#5d6b7a"),
}
WORDS = {"client": "client", "server": "server", "both": "client and server", "idle": "idle"}
"""What a round is called, by its kind."""
FAINT = 1.1
"""The width of the line of every round's model, beneath that of the delivered one."""


def plain_line(label: str, x: Sequence[float], values: Sequence[float | None], ink: Ink | None) -> Line:
    """A line without a band; values that are not known are left out."""
    known = [(one, value) for one, value in zip(x, values, strict=True) if value is not None]
    at, mean = tuple(one for one, _ in known), tuple(value for _, value in known)
    return Line(label, at, mean, mean, mean, ink)


def ceiling_line(ceiling: float | None, x: Sequence[float]) -> list[Line]:
    """What training on clients alone can reach (in %), where that is known and below all."""
    if ceiling is None or ceiling >= 100 or not x:
        return []
    label = f"ceiling of client-only training: {ceiling:.1f} %"
    return [plain_line(label, x, [ceiling] * len(x), CEILING)]


def accuracy_curves(
    rounds: Sequence[int],
    delivered: Sequence[float | None],
    after: Sequence[float | None],
    ink: Ink,
    ceiling: float | None = None,
) -> list[Curves]:
    """The delivered model, and the model after each round where that is another one; shares, not per cent."""
    shown = plain_line("delivered model", rounds, [_percent(share) for share in delivered], ink)
    if not shown.x:
        return []
    now = plain_line(
        "model after each round", rounds, [_percent(share) for share in after], replace(ink, width=FAINT)
    )
    lines = [shown] if now.mean == shown.mean else [now, shown]
    alt = f"Test accuracy over the rounds; the delivered model ends at {shown.mean[-1]:.1f} %."
    caption = "" if len(lines) == 1 else "The delivered model is the one that a server round left last."
    return [
        Curves(
            "curves",
            "Accuracy over the rounds",
            caption,
            alt,
            ROUND,
            ACCURACY,
            (*lines, *ceiling_line(ceiling, shown.x)),
        )
    ]


def in_kinds(kinds: Sequence[str]) -> str:
    """How many rounds of which kind there were, in words."""
    counts = {kind: list(kinds).count(kind) for kind in KINDS}
    return ", ".join(f"{count} {WORDS[kind]}" for kind, count in counts.items() if count)


def round_strip(rounds: Sequence[int], kinds: Sequence[str]) -> list[Strip]:
    """Of which kind each round was; nothing where all were of one kind, or not every round is known."""
    if len(set(kinds)) < 2 or list(rounds) != list(range(1, len(rounds) + 1)):
        return []
    stretches: list[tuple[str, int, int]] = []
    for kind, places in groupby(range(len(kinds)), key=lambda place: kinds[place]):
        held = list(places)
        stretches.append((WORDS[kind], rounds[held[0]], rounds[held[-1]]))
    present = [kind for kind in KINDS if kind in kinds]
    caption = "In a server round nothing is sent to any client."
    return [
        Strip(
            "kinds",
            "Client and server rounds",
            caption,
            tuple(stretches),
            {WORDS[k]: KINDS[k] for k in present},
        )
    ]


def q_curve(rounds: Sequence[int], q: Sequence[float | None]) -> list[Curves]:
    """The probability of a client round, where it changed."""
    line = plain_line("q", rounds, q, OTHERS[0])
    if len(set(line.mean)) < 2:
        return []
    alt = f"q over the rounds, from {line.mean[0]:.2f} to {line.mean[-1]:.2f}."
    caption = "The probability that a round is a client round."
    return [Curves("q", "q over the rounds", caption, alt, ROUND, "q", (line,))]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
