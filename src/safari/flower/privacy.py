"""What client rounds under one of Flower's privacy wrappers have spent.

A client round is one release of the Gaussian mechanism. A server round touches no client's data and
spends nothing. Which clients are drawn is not taken as an amplification: who is connected is no
random draw.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import Any

from flwr.common import log
from flwr.serverapp import strategy as shipped
from flwr.serverapp.strategy import Strategy

from safari.flower.wrapped import inner_strategies

AT_SERVER = (
    shipped.DifferentialPrivacyServerSideFixedClipping,
    shipped.DifferentialPrivacyServerSideAdaptiveClipping,
)
"""Wrappers that clip what clients send."""
ADAPTIVE = (
    shipped.DifferentialPrivacyServerSideAdaptiveClipping,
    shipped.DifferentialPrivacyClientSideAdaptiveClipping,
)
FIXED = (
    shipped.DifferentialPrivacyServerSideFixedClipping,
    shipped.DifferentialPrivacyClientSideFixedClipping,
)


@dataclass
class Privacy:
    """The releases of the privacy wrapper around `strategy`; there are none without one.

    `releases` holds, for each noise multiplier, how many releases had it. The multiplier is that of the
    noise over the most that one client could move the average: its clipping norm times its share.
    """

    strategy: Strategy
    delta: float = 1e-5
    releases: dict[float, int] = field(default_factory=dict)
    _accountant: Any = None

    @property
    def wrapper(self) -> Any:
        kinds = FIXED + ADAPTIVE
        return next((one for one in inner_strategies(self.strategy) if isinstance(one, kinds)), None)

    @property
    def clips_here(self) -> bool:
        """Whether the server clips updates by itself."""
        return isinstance(self.wrapper, AT_SERVER)

    def release(self, shares: Sequence[float]) -> None:
        """A client round was averaged, in these shares of the clients."""
        if self.wrapper is None:
            return
        noise = float(self.wrapper.noise_multiplier)
        if noise and isinstance(self.wrapper, ADAPTIVE):  # a count of clipped updates was released beside it
            noise = (noise**-2 + (2 * self.wrapper.clipped_count_stddev) ** -2) ** -0.5
        noise = round(noise / (max(shares) * self.wrapper.num_sampled_clients), 6)
        self.releases[noise] = self.releases.get(noise, 0) + 1
        if self._accountant is not None and noise:
            self._accountant.compose(_event(noise))
        log(INFO, "safari: privacy: %s", self.said())

    def warn(self, asked: int | None) -> None:
        """Say at the start what should not be noticed at the end; so many are `asked` in a client round."""
        if self.wrapper is None:
            return
        if importlib.util.find_spec("dp_accounting") is None:
            how = "pip install 'safari-fl[privacy]' at the server"
            log(WARNING, "safari: privacy: nobody counts what is spent, epsilon stays unknown: %s", how)
        count = self.wrapper.num_sampled_clients
        if asked not in (None, count):
            fault = f"{asked} clients are asked, but the noise is made for num_sampled_clients = {count}"
            log(WARNING, "safari: privacy: %s: set per_round and num_sampled_clients equal", fault)

    def said(self) -> str:
        """What was spent so far, in a line."""
        count, spent = sum(self.releases.values()), self.spent()
        epsilon = "epsilon unknown (install safari-fl[privacy])" if spent is None else f"epsilon {spent:.4g}"
        return f"{epsilon} at delta {self.delta:g} after {count} client rounds; server rounds spend nothing"

    def spent(self) -> float | None:
        """Epsilon so far, at `delta`; None where dp-accounting is not installed."""
        if not self.releases:
            return 0.0
        if self.releases.get(0.0):
            return float("inf")
        if self._accountant is None:
            try:
                from dp_accounting.rdp import RdpAccountant
            except ImportError:
                return None
            self._accountant = RdpAccountant()
            for noise, count in self.releases.items():
                self._accountant.compose(_event(noise), count)
        return float(self._accountant.get_epsilon(self.delta))

    def summary(self) -> dict[str, Any]:
        """For summary.json; nothing without a privacy wrapper."""
        if self.wrapper is None:
            return {}
        epsilon = self.spent()
        found = {"epsilon": epsilon if epsilon != float("inf") else None, "delta": self.delta}
        return {"privacy": {**found, "client_rounds": sum(self.releases.values())}}


def _event(noise: float) -> Any:
    from dp_accounting import GaussianDpEvent

    return GaussianDpEvent(noise)
