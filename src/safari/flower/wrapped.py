"""Any Flower strategy as the clients' part: which are refused, whom it asks, how many it needs."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from flwr.app import ArrayRecord
from flwr.serverapp import strategy as shipped
from flwr.serverapp.strategy import Strategy

from safari.errors import InputError

FedAvgKind = TypeVar("FedAvgKind", bound=shipped.FedAvg)
REFUSED = {
    shipped.FedXgbBagging: "its trees grow from round to round; no server step could train them",
    shipped.FedXgbCyclic: "its trees go from client to client; no server step could train them",
}
"""Strategies of Flower's that SAFARI cannot run as what they are."""
FRACTIONS = ("fraction_train", "fraction_evaluate")
SIZES = (*FRACTIONS, "min_train_nodes", "min_evaluate_nodes", "min_available_nodes")
"""Settings that say whom a strategy asks; `show_everyone` writes over them."""


@dataclass(frozen=True)
class Needs:
    """What a strategy needs for a client round; `said` tells which of its settings asks for a number.

    `replies`: fewer are never averaged. `answers`: as many must answer at all; an attacker who is turned away
    before Krum sees it is one of those that Krum counts on. `connected`: with fewer the round does not begin.
    `asked`: exactly so many are asked, where a privacy accountant counts on it. `evaluating`: so many
    clients evaluate at the least.
    """

    replies: int = 1
    answers: int = 1
    connected: int = 1
    asked: int | None = None
    evaluating: int = 1
    said: dict[int, str] = field(default_factory=dict)

    def why(self, count: int) -> str:
        """Who asks for `count`, in brackets; nothing if nobody does."""
        return f" ({self.said[count]})" if count in self.said else ""


def refuse(strategy: Strategy) -> None:
    """Raise `InputError` for a strategy that would run as something else."""
    for one in inner_strategies(strategy):
        for kind, why in REFUSED.items():
            if isinstance(one, kind):
                raise InputError("clients", type(one).__name__, f"cannot run under SAFARI: {why}")


def needs_of(strategy: Strategy) -> Needs:
    """What a strategy, with those it wraps, asks of the number of clients."""
    replies, answers, connected, asked = 1, 1, 1, None
    said: dict[int, str] = {}
    for one in inner_strategies(strategy):
        found = {}
        if getattr(one, "fraction_train", 1.0):
            found["min_train_nodes"] = getattr(one, "min_train_nodes", 1)
            connected = max(connected, getattr(one, "min_available_nodes", 1))
        found["num_sampled_clients"] = getattr(one, "num_sampled_clients", 1)
        bad = getattr(one, "num_malicious_nodes", 0)
        if isinstance(one, shipped.Bulyan):
            found["num_malicious_nodes"] = 4 * bad + 3
        elif isinstance(one, shipped.Krum | shipped.MultiKrum):
            answers = 2 * bad + 3
            said[answers] = f"{type(one).__name__} needs {answers} (num_malicious_nodes)"
        if getattr(one, "accountant", None) is not None:
            asked = found["num_sampled_clients"]
        for setting, count in found.items():
            if count > replies:
                replies, said[count] = count, f"{type(one).__name__} needs {count} ({setting})"
    evaluating = max(1, attribute_of(strategy, "min_evaluate_nodes", 1))
    return Needs(replies, max(answers, replies), connected, asked, evaluating, said)


def show_everyone(strategy: Strategy) -> None:
    """Let a strategy ask all nodes that it is shown: how many there must be is checked before."""
    for one in inner_strategies(strategy):
        for name, value in vars(one).items():
            if name in SIZES and value:
                setattr(one, name, 1.0 if name in FRACTIONS else 1)


def without_evaluation(strategy: FedAvgKind) -> FedAvgKind:
    """Let no client evaluate. Built that way, a strategy of Flower's warns of what is meant here."""
    strategy.fraction_evaluate, strategy.min_evaluate_nodes = 0.0, 0
    return strategy


def begin_at(strategy: Strategy, arrays: ArrayRecord) -> None:
    """Let a client round begin where the last round ended, whoever acted in it.

    FedAvgM remembers the arrays that it made last: what the server did since would count as an update
    of the clients, and enter the momentum.
    """
    for one in inner_strategies(strategy):
        if isinstance(one, shipped.FedAvgM):
            one.current_arrays = arrays


def attribute_of(strategy: Strategy, name: str, default: Any) -> Any:
    """An attribute of a strategy or of what it wraps."""
    return next((getattr(one, name) for one in inner_strategies(strategy) if hasattr(one, name)), default)


def inner_strategies(strategy: Strategy) -> list[Any]:
    """A strategy and what it wraps, as Flower's privacy wrappers do."""
    chain: list[Any] = [strategy]
    while (inner := getattr(chain[-1], "strategy", None)) is not None:
        chain.append(inner)
    return chain
