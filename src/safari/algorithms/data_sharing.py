"""Data sharing: the server hands every client some of its own samples, once."""

from typing import Self

import numpy as np

from safari.algorithms.about import About, Idea, Paper
from safari.algorithms.client import ClientAlgorithm
from safari.algorithms.server_sgd import check_server_set
from safari.data import Federation
from safari.errors import check_fraction
from safari.randomness import host_stream


class DataSharing(ClientAlgorithm):
    r"""Zhao et al.: Federated Learning with Non-IID Data (2018, arXiv 1806.00582).

    Before the first round every client gets a random share $\alpha$ of the server's set T, drawn for it
    alone, and mixes it into its own samples; then FedAvg. Raw samples leave the server. The paper's
    warm start on T is `WarmStart(DataSharing())`. The rule is the paper's.

    Args:
        share: $\alpha$, the part of T that each client gets.
    """

    about = About(
        idea=Idea.SERVER_SAMPLES,
        paper=Paper("Zhao et al.", "Federated Learning with Non-IID Data", "arXiv 1806.00582", 2018),
        passes_ceiling=True,
        server_set=True,
        raw_samples=True,
        extra="client steps on the shared samples",
    )

    share: float = 0.5

    def __check_init__(self) -> None:
        check_fraction("share", self.share)

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        check_server_set(federation)
        held = federation.held_by(None)
        handed = round(float(self.share) * len(held))
        rng = host_stream(seed, "data sharing")
        parts = [
            np.concatenate([federation.held_by(client), rng.permutation(held)[:handed]])
            for client in range(federation.size)
        ]
        held_out = federation.numbers_of(federation.validation)
        tested = federation.held_out_by_clients()
        return self, Federation.of(federation.dataset, parts, held, federation.augment, held_out, tested)
