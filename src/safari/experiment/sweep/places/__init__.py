"""Where runs go: threads of this process, other processes of this machine, a Ray cluster."""

from safari.experiment.sweep.places.place import Place
from safari.experiment.sweep.places.processes import Processes
from safari.experiment.sweep.places.threads import Threads

__all__ = ["Place", "Processes", "Threads"]
