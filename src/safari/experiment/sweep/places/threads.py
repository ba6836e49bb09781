"""This process: a thread a unit, as many at once as lanes and memory allow."""

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from safari.experiment.sweep.places.place import Place
from safari.experiment.sweep.planner import MOST_LANES, Plan, Unit
from safari.experiment.sweep.task import Message, Task, train


class Threads(Place):
    """Trains units in threads of this process."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MOST_LANES)
        self._told: queue.SimpleQueue[tuple[int, Message]] = queue.SimpleQueue()
        self._stop = threading.Event()

    def has_room(self, unit: Unit, flying: Sequence[Unit], plan: Plan) -> bool:
        fits = sum(other.bytes for other in flying) + unit.bytes <= plan.memory
        blocked = unit.alone and any(other.alone for other in flying)
        return fits and not blocked and len(flying) < plan.lanes

    def begin(self, number: int, task: Task) -> None:
        self._stop.clear()
        self._pool.submit(self._train, number, task)

    def _train(self, number: int, task: Task) -> None:
        for message in train(task, self._stop.is_set):
            self._told.put((number, message))

    def look(self, seconds: float) -> list[tuple[int, Message]]:
        found = []
        try:
            found.append(self._told.get(timeout=seconds))
            while True:
                found.append(self._told.get_nowait())
        except queue.Empty:
            return found

    def stop(self) -> None:
        self._stop.set()

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown()
