"""What a page is called: which algorithms, by which settings, on which data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safari.report.colours import spoken
from safari.report.settings import called
from safari.report.sweeps import ALGORITHM, SEEDS

DATA = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}
MOST_NAMED = 5


def title_of(tables: dict[str, Any], settings: Sequence[dict[str, Any]] = ()) -> str:
    """The title of the page of some runs.

    Args:
        tables: those of their spec.
        settings: what each run sets beyond it, by key.

    Examples:
        >>> title_of({"data": {"source": "mnist"}}, [{"algorithm.q": 0.1}, {"algorithm.q": 0.2}])
        'SAFARI by q on MNIST'
    """
    values: dict[str, set[str]] = {}
    for one in settings:
        for key, value in one.items():
            values.setdefault(key, set()).add(str(value))
    own = tables.get("algorithm", {}).get("name", "safari")
    names = list(dict.fromkeys(str(one.get(ALGORITHM, own)) for one in settings)) or [own]
    apart = [
        key
        for key, found in values.items()
        if key not in (*SEEDS, ALGORITHM) and (len(found) > 1 or any(key not in one for one in settings))
    ]
    who = _listed([spoken(name) for name in names], "algorithms")
    return f"{who}{' by ' if apart else ''}{_listed(called(apart), 'settings')}{_on(tables)}"


def _listed(words: Sequence[str], what: str) -> str:
    if len(words) > MOST_NAMED:
        return f"{len(words)} {what}"
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def _on(tables: dict[str, Any]) -> str:
    source = tables.get("data", {}).get("source")
    name = source.get("name") if isinstance(source, dict) else source
    return f" on {DATA.get(name) or Path(name).name}" if isinstance(name, str) else ""
