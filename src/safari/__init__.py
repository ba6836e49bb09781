"""safari: federated learning that stays right when some clients never show up.

Names are imported when they are first asked for: a process that needs little starts fast. The
classes that `safari.names` lists are public by being listed there.
"""

from safari.names import lazily, public_classes

TYPE_CHECKING = (
    False  # for type checkers it is True; `typing` would double the time until signals are looked after
)

if TYPE_CHECKING:
    from safari.algorithms import (
        About,
        AdaptiveQ,
        Client,
        ClientAlgorithm,
        ClientState,
        Idea,
        Note,
        Paper,
        Reports,
        Task,
        Turn,
        note,
    )
    from safari.data import Coverage, Dataset, Federation, Samples, ServerSet, federate, read
    from safari.devices import use_cores
    from safari.engine import ClientMetrics, Diverged, Metrics, Result, TrainedModel, Training, load
    from safari.engine.train import train
    from safari.errors import InputError
    from safari.participation import Participation
    from safari.version import __version__

_NAMES = {
    "algorithms": (
        "About",
        "Client",
        "ClientAlgorithm",
        "ClientState",
        "Idea",
        "Note",
        "Paper",
        "Reports",
        "Task",
        "Turn",
        "note",
    ),
    "data": ("Coverage", "Dataset", "Federation", "Samples", "ServerSet", "federate", "read"),
    "devices": ("use_cores",),
    "engine": ("ClientMetrics", "Diverged", "Metrics", "Result", "TrainedModel", "Training", "load", "train"),
    "errors": ("InputError",),
    "participation": ("Participation",),
    "version": ("__version__",),
    **public_classes(),
}
__all__ = sorted(name for names in _NAMES.values() for name in names)
__getattr__ = lazily(__name__, _NAMES)


def __dir__() -> list[str]:
    return __all__
