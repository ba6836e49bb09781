"""SAFARI on real clients, through Flower (the extra `safari-fl[flower]`).

`SafariStrategy` is a strategy for `flwr.serverapp`; nothing outside this package needs Flower.
Names are imported when they are first asked for: what runs on clients starts fast.
"""

from typing import TYPE_CHECKING

from safari.names import lazily

if TYPE_CHECKING:
    from safari.flower.identity import identify
    from safari.flower.replies import Gate
    from safari.flower.server_steps import ServerStep, torch_server_step
    from safari.flower.strategy import SafariStrategy

__all__ = ["Gate", "SafariStrategy", "ServerStep", "identify", "torch_server_step"]

__getattr__ = lazily(
    __name__,
    {
        "identity": ("identify",),
        "replies": ("Gate",),
        "server_steps": ("ServerStep", "torch_server_step"),
        "strategy": ("SafariStrategy",),
    },
)


def __dir__() -> list[str]:
    return __all__
