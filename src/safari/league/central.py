"""The reference that no federation reaches: all samples in one place, every class as often as any other."""

from dataclasses import replace
from typing import Self

import numpy as np

from safari.algorithms.server_only import ServerOnly
from safari.data import Federation
from safari.errors import check_count


class Central(ServerOnly):
    """SGD on the samples of the server and of all clients but some, in one place.

    Samples of a class that has fewer than the most frequent one are repeated until it has as many.

    Args:
        without: the clients whose samples nobody sees, by number.
        cohort: the steps of a round are as many as so many clients take.

    Examples:
        >>> import safari
        >>> from safari.league.central import Central
        >>> central, together = Central(without=(0,)).bind(safari.federate("digits"), seed=0)
        >>> counts = together.label_counts()[1]
        >>> bool((counts[counts > 0] == counts.max()).all())
        True
    """

    about = ServerOnly.about

    without: tuple[int, ...] = ()
    cohort: int = 1

    def __check_init__(self) -> None:
        check_count("cohort", self.cohort)

    def bind(self, federation: Federation, seed: int) -> tuple[Self, Federation]:
        bound, federation = super().bind(federation, seed)
        steps = bound.server.steps
        assert isinstance(steps, int)
        server = replace(bound.server, steps=steps * self.cohort)
        # What was left out is no static part of the program: runs without other clients share it.
        return replace(bound, server=server, without=()), _together(federation, self.without)


def _together(federation: Federation, without: tuple[int, ...]) -> Federation:
    """The federation whose server holds what it and all clients but `without` do, classes balanced."""
    parts = [federation.held_by(client) for client in range(federation.size)]
    seen = [part for client, part in enumerate(parts) if client not in without]
    union = np.unique(np.concatenate([*seen, federation.held_by(None)]))
    labels = np.asarray(federation.dataset.y)[union]
    by_class = [union[labels == label] for label in np.unique(labels)]
    most = max(len(one) for one in by_class)
    balanced = np.concatenate([np.resize(one, most) for one in by_class])
    held_out = federation.numbers_of(federation.validation)
    return Federation.of(federation.dataset, parts, balanced, federation.augment, held_out)
