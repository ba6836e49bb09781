"""SAFARI on real clients, through Flower (the extra `safari-fl[flower]`).

`SafariStrategy` is a strategy for `flwr.serverapp`; nothing outside this package needs Flower.
"""

from safari.flower.fleet import identify
from safari.flower.replies import Gate
from safari.flower.server_steps import ServerStep, torch_server_step
from safari.flower.strategy import SafariStrategy

__all__ = ["Gate", "SafariStrategy", "ServerStep", "identify", "torch_server_step"]
