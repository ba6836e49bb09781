"""Any Flower strategy as the clients' part: told whom to ask, saved and restored."""

from typing import Any

import numpy as np
from flwr.serverapp.strategy import Strategy

from safari.flower.arrays import Arrays


def show_everyone(strategy: Strategy) -> None:
    """Let a strategy ask all nodes that it is shown, and be content with one."""
    for one in inner_strategies(strategy):
        for name, value in vars(one).items():
            if name in ("fraction_train", "fraction_evaluate") and value:
                setattr(one, name, 1.0)
            elif name in ("min_train_nodes", "min_evaluate_nodes", "min_available_nodes") and value:
                setattr(one, name, 1)


def attribute_of(strategy: Strategy, name: str, default: Any) -> Any:
    """An attribute of a strategy or of what it wraps."""
    return next((getattr(one, name) for one in inner_strategies(strategy) if hasattr(one, name)), default)


def strategy_state(strategy: Strategy) -> Arrays:
    """The numbers and arrays that a Flower strategy, and those it wraps, hold as attributes."""
    found: Arrays = {}
    for depth, one in enumerate(inner_strategies(strategy)):
        for name, value in vars(one).items():
            place = f"{depth}/{name}"
            if isinstance(value, np.ndarray):
                found[place] = value
            elif isinstance(value, int | float) and not isinstance(value, bool):
                found[place] = np.array(value)
            elif isinstance(value, dict) and value and all(isinstance(v, np.ndarray) for v in value.values()):
                found |= {f"{place}/{key}": array for key, array in value.items()}
    return {name: np.asarray(array, order="C") for name, array in found.items()}


def restore_strategy(strategy: Strategy, saved: Arrays) -> None:
    """Put a strategy, newly built, where the one was whose state was saved."""
    chain = inner_strategies(strategy)
    for place, array in saved.items():
        depth, name, *key = place.split("/", 2)
        one = chain[int(depth)]
        if key:
            held = getattr(one, name)
            setattr(one, name, {**(held or {}), key[0]: array})
        else:
            setattr(one, name, array.item() if array.ndim == 0 else array)


def inner_strategies(strategy: Strategy) -> list[Any]:
    """A strategy and what it wraps, as Flower's privacy wrappers do."""
    chain: list[Any] = [strategy]
    while (inner := getattr(chain[-1], "strategy", None)) is not None:
        chain.append(inner)
    return chain
