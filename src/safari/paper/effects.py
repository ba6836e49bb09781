"""The effects that the paper's text claims, looked for in our own runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from safari.paper.compare import Results
from safari.paper.protocol import DATASETS, Setting
from safari.paper.recipes import FIGURE_SIZES, figure_setting

SIZES = {"mnist": (50, 100, 500, 1000), "cifar10": (500, 5000, 10_000)}
Value = Callable[[Setting], float | None]


@dataclass(frozen=True)
class Effect:
    """A claim of the paper's text; `values` are ours, in the order that it speaks of.

    `present` is None where runs are missing.
    """

    dataset: str
    claim: str
    values: tuple[float | None, ...]
    present: bool | None


def effects_of(results: Results, datasets: set[str]) -> list[Effect]:
    """All claims about these data sets."""

    def value(setting: Setting) -> float | None:
        found = results.accuracy(setting)
        return None if found is None else found.mean

    found: list[Effect] = []
    for dataset in ("mnist", "cifar10"):
        if dataset in datasets:
            found += _main_effects(dataset, value)
    if "fashion-mnist" in datasets:
        found += _fashion_effects(value)
    return found


def _main_effects(dataset: str, value: Value) -> Iterator[Effect]:
    most = DATASETS[dataset].server_samples

    def fedavg(p: int, s: int, m: int = 5) -> float | None:
        return value(Setting(dataset, "fedavg", p, s, m, None, None))

    def safari(p: int, s: int, q: float = 0.8, size: int = most) -> float | None:
        return value(Setting(dataset, "safari", p, s, 5, q, size))

    yield _falling(
        dataset, "FedAvg loses accuracy as s grows (p = 1; s = 0, 2, 4)", *(fedavg(1, s) for s in (0, 2, 4))
    )
    losses = [_minus(fedavg(p, 0), fedavg(p, 4)) for p in (10, 5, 2, 1)]
    yield _rising(dataset, "the loss from s = 0 to s = 4 grows as p falls (p = 10, 5, 2, 1)", *losses)
    yield _judged(
        dataset, "at p = 10 that loss is negligible (under 2 points)", (losses[0],), lambda loss: loss < 2
    )
    gains = [_minus(safari(p, 4), fedavg(p, 4)) for p in (10, 5, 2, 1)]
    yield _rising(dataset, "SAFARI's gain at s = 4 grows as p falls (p = 10, 5, 2, 1)", *gains)
    yield _judged(dataset, "no gain beyond 2 points at p = 10", (gains[0],), lambda gain: abs(gain) < 2)
    sizes = SIZES[dataset]
    text = ", ".join(str(size) for size in sizes)
    yield _rising(
        dataset, f"more server samples, more accuracy (p = 1, s = 4; {text})",
        *(safari(1, 4, size=size) for size in sizes),
    )  # fmt: skip
    by_q = [safari(1, 4, q) for q in (0.8, 0.6, 0.4)]
    yield _judged(
        dataset, "every q below 1 beats FedAvg by far (p = 1, s = 4; q = 0.8, 0.6, 0.4, then FedAvg)",
        (*by_q, fedavg(1, 4)), lambda a, b, c, baseline: min(a, b, c) > baseline + 10,
    )  # fmt: skip
    counts = (1, 2, 4, 5) if dataset == "cifar10" else (1, 3, 5)
    clients = ", ".join(map(str, counts))
    yield _rising(
        dataset, f"FedAvg at p = 1, s = 4 rises with m (m = {clients}): the tables' order, not the text's",
        *(fedavg(1, 4, m) for m in counts),
    )  # fmt: skip
    if dataset == "cifar10":
        yield _rising(
            dataset, f"the figure: more server samples, more accuracy (q = 0.4; {text})",
            *(value(figure_setting(size)) for size in FIGURE_SIZES),
        )  # fmt: skip


def _fashion_effects(value: Value) -> Iterator[Effect]:
    entry = DATASETS["fashion-mnist"]

    def at(method: str, s: int, size: int | None = None) -> float | None:
        q = 0.8 if method == "safari" else None
        return value(Setting("fashion-mnist", method, entry.p, s, entry.m, q, size))  # type: ignore[arg-type]

    falls = [at("fedavg", s) for s in (0, 30, 60, 90, 120)]
    yield _falling("fashion-mnist", "FedAvg loses accuracy as s grows (s = 0, 30, 60, 90, 120)", *falls)
    rises = [falls[3], *(at("safari", 90, size) for size in (600, 6000, 12_000))]
    yield _rising("fashion-mnist", "server data raises it again (s = 90; none, 1 %, 10 %, 20 %)", *rises)


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _rising(dataset: str, claim: str, *values: float | None) -> Effect:
    return _judged(dataset, claim, values, lambda *v: all(a < b for a, b in pairwise(v)))


def _falling(dataset: str, claim: str, *values: float | None) -> Effect:
    return _judged(dataset, claim, values, lambda *v: all(a > b for a, b in pairwise(v)))


def _judged(dataset: str, claim: str, values: tuple[float | None, ...], holds: Callable[..., bool]) -> Effect:
    known = all(value is not None for value in values)
    return Effect(dataset, claim, values, holds(*values) if known else None)
