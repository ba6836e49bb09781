"""Names of a package that are imported when they are first asked for: what needs little starts fast."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazily(package: str, modules: dict[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose `modules` hold these names."""
    place = {name: module for module, names in modules.items() for name in names}

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in place:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{place[name]}"), name)

    return __getattr__
