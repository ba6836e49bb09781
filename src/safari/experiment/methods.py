"""What the algorithms are: their papers, mathematics, needs, costs and parameters, as plain values."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from safari.algorithms import About, Algorithm, Idea
from safari.experiment.schema import NAME, describe, keys_of_class, shown_default
from safari.registry import ALGORITHMS

SECTION = re.compile(r"^(Args|Attributes|Examples|Returns|Raises):", re.MULTILINE)


def all_methods() -> Iterator[tuple[Idea, list[dict[str, Any]]]]:
    """Every idea, with the facts of its methods by name, each as `facts_of` gives them."""
    classes = {name: ALGORITHMS[name] for name in ALGORITHMS}
    for idea in Idea:
        found = [facts_of(name, cls) for name, cls in classes.items() if _about(cls).idea is idea]
        if found:
            yield idea, found


def facts_of(name: str, cls: type[Algorithm]) -> dict[str, Any]:
    """What a method states about itself, all of it None where it states nothing."""
    about: About | None = vars(cls).get("about")
    facts = asdict(about) if about is not None else dict.fromkeys(About.__dataclass_fields__)
    return {"name": name, "class": cls.__name__, **facts}


def method(name: str) -> dict[str, Any]:
    """The facts of one method, its `text` (paper and mathematics) and its `parameters`.

    Args:
        name: one of ours, or `module:Class` of the user's own.

    Raises:
        InputError: if there is no such algorithm.
    """
    cls = ALGORITHMS.find(name, NAME)
    keys = keys_of_class(cls, NAME, name)
    parameters = [
        {"name": key, "holds": describe(held), "default": shown_default(held), "meaning": held.meaning}
        for key, held in keys.items()
    ]
    return {**facts_of(name, cls), "text": text_of(cls), "parameters": parameters}


def text_of(cls: type) -> str:
    """The docstring of a class up to its first section."""
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    section = SECTION.search(text)
    return (text[: section.start()] if section else text).strip()


def _about(cls: type[Algorithm]) -> About:
    about = vars(cls).get("about")
    assert about is not None, f"{cls.__name__} states nothing about itself"
    return about
