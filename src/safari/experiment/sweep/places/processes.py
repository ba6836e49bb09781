"""Several processes of this machine: each trains one unit at a time, the next as soon as it is done."""

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait

from safari.devices import on_gpu
from safari.experiment.sweep.places.mps import share_gpu
from safari.experiment.sweep.places.place import Place
from safari.experiment.sweep.places.shipping import Packer, settings_for_workers
from safari.experiment.sweep.places.worker import STOP
from safari.experiment.sweep.planner import Plan, Unit
from safari.experiment.sweep.task import ENDS, Lost, Message, Task

WORKER = "from safari.experiment.sweep.places.worker import main; main()"
PREALLOCATE, FRACTION = "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION"
MEMORY = 0.9
"""The part of a GPU's memory that all workers may have together."""
LEAVE_SECONDS = 1.0


@dataclass
class Worker:
    """One process, the socket to it, which of them it is, the task that it is at, the data sets it has."""

    process: subprocess.Popen[bytes]
    link: Connection
    slot: int
    number: int | None = None
    has: set[str] = field(default_factory=set)


class Processes(Place):
    """Trains units in `count` processes, which share the cores of the machine or a GPU.

    Args:
        count: how many.
        say: is told what the user should know.
    """

    def __init__(self, count: int, say: Callable[[str], None]):
        self.parts, self._say = count, say
        self._workers: list[Worker] = []
        self._lost: list[tuple[int, Message]] = []
        self._packer = Packer()
        self._environment: dict[str, str] | None = None
        # Only workers compute: of a GPU this process asks no more than how large it is.
        self._fresh = PREALLOCATE not in os.environ
        os.environ.setdefault(PREALLOCATE, "false")

    def has_room(self, unit: Unit, flying: Sequence[Unit], plan: Plan) -> bool:
        return len(flying) < self.parts

    def begin(self, number: int, task: Task) -> None:
        worker = next((one for one in self._workers if one.number is None), None) or self._start()
        worker.number = number
        parcel = self._packer.pack(task)
        news = {name: self._packer.known[name] for name in parcel.datasets if name not in worker.has}
        worker.has = set(parcel.datasets)
        try:
            worker.link.send_bytes(pickle.dumps((parcel, news)))
        except OSError:
            self._lost.append((number, self._gone(worker)))

    def look(self, seconds: float) -> list[tuple[int, Message]]:
        told, self._lost = self._lost, []
        links = {worker.link: worker for worker in self._workers}
        for link in wait(list(links), 0.0 if told else seconds):
            told += self._told_by(links[link])  # type: ignore[index]
        return told

    def _told_by(self, worker: Worker) -> list[tuple[int, Message]]:
        told: list[tuple[int, Message]] = []
        try:
            while worker.link.poll():
                message = pickle.loads(worker.link.recv_bytes())
                assert worker.number is not None, "an idle worker says nothing"
                told.append((worker.number, message))
                if isinstance(message, ENDS):
                    worker.number = None
        except (EOFError, OSError):
            number, lost = worker.number, self._gone(worker)
            told += [] if number is None else [(number, lost)]
        return told

    def _gone(self, worker: Worker) -> Lost:
        """A worker that is no more: the next task starts another."""
        self._workers.remove(worker)
        worker.link.close()
        worker.process.kill()
        code = worker.process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return Lost(f"the last worker process ended {how}")

    def _start(self) -> Worker:
        if self._environment is None:
            self._environment = self._surroundings()
        slot = min(set(range(self.parts)) - {worker.slot for worker in self._workers})
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", WORKER, str(theirs.fileno()), self._cores(slot)],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=self._environment,
                process_group=0,
            )  # fmt: skip
        self._workers.append(Worker(process, Connection(ours.detach()), slot))
        return self._workers[-1]

    def _surroundings(self) -> dict[str, str]:
        """The environment of the workers."""
        path = os.pathsep.join(entry for entry in sys.path if entry)
        found = {**os.environ, **settings_for_workers(), "PYTHONPATH": path}
        if self._fresh:
            del found[PREALLOCATE]
        if on_gpu():
            found.setdefault(FRACTION, f"{MEMORY / self.parts:.3f}")
            service = share_gpu()
            found |= service
            if service:
                self._say("started CUDA's MPS for the workers; it stops with them")
        return found

    def _cores(self, slot: int) -> str:
        """The share of a worker in the cores; all of them where there are more workers than cores."""
        known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        return ",".join(map(str, known[slot :: self.parts])) if self.parts <= len(known) else ""

    def stop(self) -> None:
        for worker in self._workers:
            with suppress(OSError):
                worker.link.send_bytes(STOP)

    def close(self) -> None:
        for worker in self._workers:
            worker.link.close()
        for worker in self._workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(LEAVE_SECONDS)
            worker.process.kill()
            worker.process.wait()
        self._workers.clear()
