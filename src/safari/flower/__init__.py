"""SAFARI on real clients, through Flower (the extra `safari-fl[flower]`).

`SafariStrategy` is a strategy for `flwr.serverapp`; nothing outside this package needs Flower.
Names are imported when they are first asked for: what runs on clients starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from safari.flower.identity import identify
    from safari.flower.replies import Gate
    from safari.flower.server_steps import ServerStep, torch_server_step
    from safari.flower.strategy import SafariStrategy

__all__ = ["Gate", "SafariStrategy", "ServerStep", "identify", "torch_server_step"]

_PLACE = {
    "Gate": "replies",
    "SafariStrategy": "strategy",
    "ServerStep": "server_steps",
    "identify": "identity",
    "torch_server_step": "server_steps",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACE:
        raise AttributeError(f"module 'safari.flower' has no attribute {name!r}")
    return getattr(import_module(f"safari.flower.{_PLACE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
