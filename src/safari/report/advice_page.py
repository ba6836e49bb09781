"""The report page of an advice: what to do, what it rests on, what was tried."""

from collections.abc import Sequence
from dataclasses import dataclass

from safari.report.colours import CEILING, Ink, algorithm_inks
from safari.report.page_blocks import Bar, Bars, Block, Findings, Group, Number, Page, Text
from safari.report.statistics import Estimate
from safari.report.tables import mean_deviation

OWN = CEILING
"""The ink of the user's own spec."""


@dataclass(frozen=True)
class Tried:
    """A setting of the pilot.

    Attributes:
        label: what it is called in a sentence.
        algorithm: the name of its algorithm; None for the user's own spec.
        score: its metric over the folds.
        gain: by how much it is better than the user's spec, for those that were tried on all folds.
    """

    label: str
    algorithm: str | None
    score: Estimate
    gain: Estimate | None


@dataclass(frozen=True)
class Advised:
    """An advice as it was written.

    Attributes:
        title: what the page is called.
        verdict: the recommendation in a sentence.
        reasons: what it rests on, in sentences.
        metric: what was made better, in words.
        share: whether that is a share, shown in per cent.
        tried: the user's own setting, then the others.
        sizes: the score with other numbers of server samples, and what that changes.
        command: what to type.
        numbers: what everybody should see.
    """

    title: str
    verdict: str
    reasons: Sequence[str]
    metric: str
    share: bool
    tried: Sequence[Tried]
    sizes: Sequence[tuple[int, Estimate, Estimate]]
    command: str
    numbers: Sequence[Number]


def advice_page(advised: Advised, spec: str, facts: dict[str, str]) -> Page:
    """The page of an advice."""
    blocks: list[Block] = [
        Findings("findings", "Findings", advised.verdict, tuple(advised.reasons), tuple(advised.numbers)),
        Text("command", "What to type", (), advised.command),
        *_gains(advised),
        _scores(advised),
        *_sizes(advised),
    ]
    subtitle = f"Judged by {advised.metric} on samples that the server held out"
    return Page(advised.title, subtitle, tuple(blocks), spec, facts)


def _gains(advised: Advised) -> list[Bars]:
    """The finalists against the user's spec."""
    found = [(one, one.gain) for one in advised.tried if one.gain is not None]
    if not found:
        return []
    inks = algorithm_inks([one.algorithm or "" for one, _ in found])
    bars = tuple(
        Bar(one.label, gain.mean, _texts(gain, advised), gain.low, gain.high, inks[one.algorithm or ""])
        for one, gain in found
    )
    unit = " in points" if advised.share else ""
    caption = (
        f"Differences of {advised.metric}{unit}, fold by fold: dots are means, lines 95 % intervals; right "
        "of zero is better than your spec. A line across zero is no difference that can be told."
    )
    return [_dots("gains", "Against your spec", caption, "setting", bars)]


def _dots(key: str, title: str, caption: str, label: str, bars: tuple[Bar, ...]) -> Bars:
    return Bars(key, title, caption, label, ("difference", "95 % interval"), (Group("", "", bars),))


def _texts(gain: Estimate, advised: Advised) -> tuple[str, str]:
    digits = 1 if advised.share else 3
    return f"{gain.mean:+.{digits}f}", f"{gain.low:+.{digits}f} to {gain.high:+.{digits}f}"


def _scores(advised: Advised) -> Bars:
    """All settings, in the order in which they were tried."""
    inks = algorithm_inks([one.algorithm or "" for one in advised.tried])
    bars = tuple(_score(one, inks[one.algorithm] if one.algorithm else OWN) for one in advised.tried)
    caption = (
        f"By {advised.metric} on the held-out samples: mean and deviation over the folds. Settings that did "
        "worse on the first folds were not tried on the others."
    )
    most = 100.0 if advised.share else max(one.score.mean for one in advised.tried)
    columns = ("score", "folds")
    return Bars("scores", "What was tried", caption, "setting", columns, (Group("", "", bars),), most)


def _score(one: Tried, ink: Ink) -> Bar:
    found = one.score
    if found.count < 2:
        return Bar(one.label, found.mean, (f"{found.mean:.2f}", str(found.count)), ink=ink)
    low, high = found.mean - found.deviation, found.mean + found.deviation
    texts = (mean_deviation(found.mean, found.deviation), str(found.count))
    return Bar(one.label, found.mean, texts, low, high, ink)


def _sizes(advised: Advised) -> list[Bars]:
    """What other numbers of server samples would change."""
    if not advised.sizes:
        return []
    bars = tuple(
        Bar(f"{size:,} server samples", gain.mean, _texts(gain, advised), gain.low, gain.high)
        for size, _, gain in advised.sizes
    )
    caption = "The best of the tried settings with other numbers of server samples, against itself."
    return [_dots("sizes", "More server samples, or fewer", caption, "server's set", bars)]
