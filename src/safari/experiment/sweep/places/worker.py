"""A worker process, which `main` is.

It is told its tasks through a socket, and tells back how they get on. Once nobody holds the other end any
more, however that came about, the worker ends at once.
"""

import os
import queue
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from safari.experiment.sweep.places.mps import leave_gpu

STOP = b"stop"


class Link:
    """The worker's end: what came, whether it is to stop."""

    def __init__(self, descriptor: int):
        self._connection = Connection(descriptor)
        self._came: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.stopped = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                content = self._connection.recv_bytes()
                if content == STOP:
                    self.stopped.set()
                else:
                    self._came.put(content)
        except (EOFError, OSError):
            leave_gpu()
            os._exit(0)

    def next(self) -> bytes:
        return self._came.get()

    def send(self, content: bytes) -> None:
        self._connection.send_bytes(content)


def keep_to(cores: str) -> None:
    """Run on these cores alone, where the system can do that."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})


def serve(link: Link) -> None:
    """Train what comes, one task after another."""
    import pickle

    from safari.experiment.sweep.places.shipping import begin_as_worker, open_parcel, sendable
    from safari.experiment.sweep.task import Failed, train

    begin_as_worker()
    datasets: dict[str, Any] = {}
    while True:
        parcel, news = pickle.loads(link.next())
        datasets = {name: news[name] if name in news else datasets[name] for name in parcel.datasets}
        try:
            task = open_parcel(parcel, datasets.__getitem__)
        except Exception as error:
            link.send(sendable(Failed(error)))
            continue
        for message in train(task, link.stopped.is_set):
            link.send(sendable(message))


def main() -> None:
    """Serve the socket that is the first argument, on the cores that are the second."""
    link = Link(int(sys.argv[1]))
    keep_to(sys.argv[2])
    serve(link)
