"""A Ray cluster: units are its tasks, wherever it has room; this process alone writes the results.

What a task tells on its way goes through a small actor beside this process, its end comes as its result. A
task whose worker or machine is gone is begun again from the last state that came. The data set is put into
the cluster's object store once, and a worker process keeps it from task to task.
"""

import logging
import os
import pickle
import signal
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from safari.errors import check
from safari.experiment.sweep.places.place import Place
from safari.experiment.sweep.places.shipping import (
    Packer,
    Parcel,
    begin_as_worker,
    check_software,
    copy_own_modules,
    open_parcel,
    sendable,
    settings_for_workers,
)
from safari.experiment.sweep.planner import Plan, Unit
from safari.experiment.sweep.task import Failed, Lost, Message, Task, train
from safari.registry import reason

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError:
    ray = None  # type: ignore[assignment]

AHEAD, FEWEST = 2, 8
"""So many tasks for each that the cluster has room for are handed to it: no machine waits for its next."""
STOP_SECONDS = 5.0
ANSWER_SECONDS = 10.0
FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
MEMORY = 0.9
"""The part of a GPU's memory that all runs on it may have together."""
NO_GPU = "says how many runs share a GPU, and this cluster has none: leave it out, a run has a core"


class Inbox:
    """What the tasks in flight tell, until it is fetched; and whether they are to stop."""

    def __init__(self) -> None:
        self._told: list[tuple[int, bytes]] = []
        self._stopped = False

    def tell(self, number: int, message: bytes) -> bool:
        """Leave a message; whether to stop."""
        self._told.append((number, message))
        return self._stopped

    def fetch(self) -> list[tuple[int, bytes]]:
        told, self._told = self._told, []
        return told

    def stop(self) -> None:
        self._stopped = True


@lru_cache(maxsize=4)
def _fetched(dataset: Any) -> Any:
    """A data set from the object store; a worker process keeps it from task to task."""
    return ray.get(dataset)


def train_remotely(number: int, parcel: Parcel, datasets: dict[str, Any], inbox: Any, where: str) -> bytes:
    """A task of Ray's: train a unit, tell `inbox` how it gets on, return how it ended."""
    begin_as_worker()
    stopped = threading.Event()
    try:
        check_software(parcel, where)
        task = open_parcel(parcel, lambda name: _fetched(datasets[name]))
    except Exception as error:
        return sendable(Failed(error))
    last = b""
    for message in train(task, stopped.is_set):
        if last and ray.get(inbox.tell.remote(number, last)):
            stopped.set()
        last = sendable(message)
    return last


class OnRay(Place):
    """Trains units as tasks of a Ray cluster: of a GPU each, or a part of one; without GPUs, of a core each.

    Args:
        address: `ray` for the cluster at RAY_ADDRESS, else one that runs on this machine, else one of its own
            for as long as the place is open; `ray://HOST:PORT` for Ray's client.
        per_gpu: how many runs share a GPU (default: 1).
    """

    def __init__(self, address: str, per_gpu: int | None = None):
        check(ray is not None, "--on", address, "needs a library: pip install 'safari-fl[ray]'")
        self._address, self._per_gpu = address, per_gpu
        self.parts = per_gpu or 1
        self._packer = Packer()
        self._put: dict[str, Any] = {}
        self._tasks: dict[Any, int] = {}
        self._room = 0
        self._joined = False
        self._asked_to_stop: float | None = None
        self._inbox: Any = None
        self._train: Any = None

    def has_room(self, unit: Unit, flying: Sequence[Unit], plan: Plan) -> bool:
        return len(flying) < self._room

    def begin(self, number: int, task: Task) -> None:
        parcel = self._packer.pack(task)
        for name in parcel.datasets:
            if name not in self._put:
                self._put[name] = ray.put(self._packer.known[name])
        datasets = {name: self._put[name] for name in parcel.datasets}
        sent = self._train.remote(number, parcel, datasets, self._inbox, self._address)
        self._tasks[sent] = number

    def look(self, seconds: float) -> list[tuple[int, Message]]:
        if not self._tasks:
            return []
        ray.wait(list(self._tasks), timeout=seconds)
        ended, _ = ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)
        told = [(number, pickle.loads(message)) for number, message in ray.get(self._inbox.fetch.remote())]
        told += [(self._tasks.pop(one), _end_of(one)) for one in ended]
        if self._asked_to_stop is not None and time.monotonic() - self._asked_to_stop > STOP_SECONDS:
            for one in self._tasks:
                ray.cancel(one, force=True)
            told += [(number, Lost("asked to stop, it did not")) for number in self._tasks.values()]
            self._tasks.clear()
        return told

    def stop(self) -> None:
        self._asked_to_stop = time.monotonic()
        ray.get(self._inbox.stop.remote())

    def close(self) -> None:
        if self._joined:
            ray.shutdown()
            self._joined = False

    def open(self) -> None:
        if self._train is not None:
            return
        if not ray.is_initialized():
            with _our_signals():
                self._connect()
            self._joined = True
        has = ray.cluster_resources()
        gpus, cores = has.get("GPU", 0.0), has.get("CPU", 0.0)
        check(gpus or self._per_gpu is None, "--processes", self._per_gpu, NO_GPU)
        share = {"num_gpus": 1 / self.parts, "num_cpus": 0} if gpus else {"num_cpus": 1}
        slots = gpus * self.parts if gpus else cores
        self._room = max(FEWEST, int(AHEAD * slots))
        here = ray.get_runtime_context().get_node_id()
        beside = NodeAffinitySchedulingStrategy(here, soft=False)
        remote: Any = ray.remote
        self._inbox = remote(num_cpus=0, scheduling_strategy=beside)(Inbox).remote()
        self._train = remote(max_retries=0, scheduling_strategy="SPREAD", **share)(train_remotely)

    def _connect(self) -> None:
        variables = settings_for_workers()
        if self.parts > 1:
            variables.setdefault(FRACTION, f"{MEMORY / self.parts:.3f}")
        for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
            os.environ.setdefault(name, "0")
        try:
            # JAX warns of the forks by which Ray starts a cluster of its own; each becomes another program.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            _check_answer(os.environ.get("RAY_ADDRESS", "") if self._address == "ray" else self._address)
            with tempfile.TemporaryDirectory() as folder:
                copy_own_modules(Path(folder))
                ray.init(
                    None if self._address == "ray" else self._address,
                    runtime_env={"env_vars": variables, "working_dir": folder},
                    logging_level=logging.ERROR, log_to_driver=False, include_dashboard=False,
                )  # fmt: skip
        except Exception as error:
            raise ConnectionError(f"--on {self._address}: no cluster to train on ({reason(error)})") from None


def _check_answer(address: str) -> None:
    """Raise an error where nobody listens: Ray itself goes on asking for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()


def _end_of(task: Any) -> Message:
    """How a task ended."""
    try:
        return pickle.loads(ray.get(task))
    except RayTaskError:
        raise
    except RayError as error:
        return Lost(f"of the last one Ray says: {reason(error)}")


@contextmanager
def _our_signals() -> Iterator[None]:
    """Inside, Ray may install handlers of signals; ours are put back."""
    ours = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in ours.items():
                signal.signal(number, handler)
