"""Colours of lines: one for each algorithm, the same in every figure of a page and in every picture.

SAFARI, FedAvg and server-only training have theirs wherever they are drawn; other names take the next
ones in the order in which they come. SAFARI's line is the strongest of all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from safari.names import ALGORITHMS

INK, GRID = "#1f2933", "#d9dee3"
COLOURS = ("#c8553d", "#7a869a", "#2a6f97", "#588157", "#b5838d", "#e09f3e", "#6d597a")
"""Of figures in which nothing is an algorithm."""
DASHES = ("", "7px,3px", "2px,3px", "9px,3px,2px,3px")
THIN, STRONG = 1.8, 3.4


@dataclass(frozen=True)
class Ink:
    """How a line is drawn.

    Attributes:
        light: its colour on white.
        dark: its colour on a dark screen.
        width: in pixels.
        dash: lengths of dashes and gaps, as SVG has them; empty for a solid line.
    """

    light: str
    dark: str
    width: float = THIN
    dash: str = ""


SAFARI = Ink("#0b5394", "#5fb4ff", STRONG)
RESERVED = {
    "safari": SAFARI,
    "fedavg": Ink("#c2410c", "#f08a5d"),
    "server-only": Ink("#5d6b7a", "#a9b4c0", dash=DASHES[1]),
}
OTHERS = (
    Ink("#3f7d3a", "#8fc98a"),
    Ink("#8b3f8f", "#d59ad8"),
    Ink("#9a6b00", "#e3b44c"),
    Ink("#0f7f7f", "#5cc9c4"),
    Ink("#a3325f", "#ec8fb4"),
    Ink("#5b4bb5", "#a99df0"),
)
CEILING = Ink(INK, "#e4e7eb", 1.2, "5px,4px")
"""That of client-only training."""
RAMP = (("#d0800f", "#b5306a", "#2b1f78"), ("#ffd866", "#ee7f8e", "#8f8cff"))
"""For lines in an order, from the first to the last: on white, and on a dark screen."""
SPOKEN = {
    "safari": "SAFARI",
    "server-only": "server only",
    "sgd": "SGD",
    "hybrid-fl": "Hybrid-FL",
    "clg-sgd": "CLG-SGD",
    "fedclg-c": "FedCLG-C",
    "fedclg-s": "FedCLG-S",
}


def spoken(name: str) -> str:
    """What an algorithm is called in a sentence.

    Examples:
        >>> spoken("safari"), spoken("fedavg"), spoken("my_module:Mine")
        ('SAFARI', 'FedAvg', 'Mine')
    """
    return SPOKEN.get(name) or ALGORITHMS.get(name, name).rpartition(":")[2]


def algorithm_inks(names: Sequence[str]) -> dict[str, Ink]:
    """The ink of each algorithm; which others there are decides about those without one of their own.

    Examples:
        >>> inks = algorithm_inks(["fedavg", "scaffold", "safari"])
        >>> inks["safari"].width > inks["scaffold"].width
        True
    """
    others = [name for name in dict.fromkeys(names) if name not in RESERVED]
    return RESERVED | {name: _other(place) for place, name in enumerate(others)}


def plain_inks(count: int) -> list[Ink]:
    """Inks for lines that are neither algorithms nor in an order."""
    return [_other(place + len(DASHES) - 1) for place in range(count)]


def ordered_inks(count: int) -> list[Ink]:
    """Inks for lines that have an order, such as the values of a setting."""
    shares = [place / (count - 1) if count > 1 else 0.5 for place in range(count)]
    return [Ink(_between(RAMP[0], share), _between(RAMP[1], share)) for share in shares]


def inks_of(lines: Mapping[str, str], inks: Mapping[str, Ink] | None = None) -> dict[str, Ink]:
    """The ink of each line, by its algorithm; further lines of an algorithm are dashed in other ways.

    Args:
        lines: what each line is called, and whose it is.
        inks: those of the algorithms (default: as if these lines were all).
    """
    inks, drawn, found = inks or algorithm_inks(list(lines.values())), Counter[str](), {}
    for label, name in lines.items():
        dash = DASHES[drawn[name] % len(DASHES)]
        found[label] = replace(inks[name], dash=dash) if drawn[name] else inks[name]
        drawn[name] += 1
    return found


def _other(place: int) -> Ink:
    return replace(OTHERS[place % len(OTHERS)], dash=DASHES[(place + 1) % len(DASHES)])


def _between(stops: tuple[str, str, str], share: float) -> str:
    left, right = (stops[:2], stops[1:])[share > 0.5]
    inner = 2 * share - (share > 0.5)
    parts = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (left, right)]
    return "#" + "".join(f"{round(a + inner * (b - a)):02x}" for a, b in zip(*parts, strict=True))
