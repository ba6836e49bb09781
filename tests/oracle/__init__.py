"""Every algorithm in plain NumPy: slow, and readable in a few minutes.

The engine must equal this, given the same batches, cohorts and coins. The model is softmax regression
with one matrix `w` (classes x features; a constant feature carries the bias). A batch is a pair
(inputs, labels). A twin is made from the settings of an algorithm of safari's and the `World`, has
`round(w, turn)`, and keeps its own state; `delivers` says that the model of the last round is to be handed
over although the server did not act in it. `TWINS` has one for every name of the registry.
"""

from oracle import client_methods, server_methods
from oracle.world import Turn, World
from safari.registry import ALGORITHMS

__all__ = ["TWINS", "Turn", "World", "train", "twin_of"]
TWINS = client_methods.TWINS | server_methods.TWINS


def twin_of(algorithm, world):
    """The twin of an algorithm, settings and all."""
    return TWINS[ALGORITHMS.name_of(type(algorithm))](algorithm, world)


def train(twin, w, turns):
    """The last model, the delivered one, and the kinds of the rounds."""
    delivered, kinds = None, []
    for turn in turns:
        w, kind = twin.round(w, turn)
        kinds.append(kind)
        if kind in ("server", "both") or getattr(twin, "delivers", False):
            delivered = twin.deliver(w)
    return w, twin.deliver(w) if delivered is None else delivered, kinds
