"""What every contestant shares: the job as it was written, a clock, a score and a report."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

SCORED_AT_ONCE = 1000
CORES = len(os.sched_getaffinity(0))
THREADS = sorted({1, min(2, CORES), CORES})
"""What is tried where PyTorch asks how many."""
Logits = Callable[[np.ndarray], np.ndarray]
"""From normalised samples, shaped as the data are, to logits."""


class Task:
    """The job in the folder that the harness named: its settings as attributes, its arrays."""

    def __init__(self, folder: Path):
        self.folder = folder
        settings = json.loads((folder / "job.json").read_text())
        self.model: str = settings["model"]
        self.clients: int = settings["clients"]
        self.samples: int = settings["samples"]
        self.per_round: int = settings["per_round"]
        self.batch: int = settings["batch"]
        self.rate: float = settings["rate"]
        self.rounds: int = settings["rounds"]
        self.runs: int = settings["runs"]
        self.seeds = range(settings["peer_runs"])
        self.scale, self.shift = settings["scale"], settings["shift"]
        with np.load(folder / "data.npz") as archive:
            self.x, self.y, self.client = archive["x"], archive["y"], archive["client"]
            self.x_test, self.y_test = archive["x_test"], archive["y_test"]
        with np.load(folder / "start.npz") as archive:
            self.start = {name: archive[name] for name in archive.files}

    @property
    def batches(self) -> int:
        """Of an epoch; an incomplete last one is dropped, unless there is no other."""
        return max(1, self.samples // self.batch)

    def normalised(self, x: np.ndarray) -> np.ndarray:
        x = x.astype(np.float32) * np.float32(self.scale)
        return x if self.shift is None else x - np.float32(self.shift)

    def held_by(self, client: int) -> slice:
        """Where a client's samples lie."""
        return slice(client * self.samples, (client + 1) * self.samples)

    def score(self, logits: Logits) -> float:
        """The accuracy on the test set."""
        right = 0
        for first in range(0, len(self.y_test), SCORED_AT_ONCE):
            part = slice(first, first + SCORED_AT_ONCE)
            guess = np.asarray(logits(self.normalised(self.x_test[part]))).argmax(axis=1)
            right += int((guess == self.y_test[part]).sum())
        return right / len(self.y_test)

    def start_facts(self, logits: Logits) -> dict[str, Any]:
        """By which the harness sees that all contestants start from the same model."""
        found = np.asarray(logits(self.normalised(self.x_test[:SCORED_AT_ONCE])), np.float64)
        total = np.log(np.exp(found).sum(axis=1))
        loss = total - found[np.arange(len(found)), self.y_test[:SCORED_AT_ONCE]]
        return {"start_loss": float(loss.mean()), "start_logits": found[:2].ravel().tolist()}


def given_task() -> Task:
    return Task(Path(sys.argv[1]))


def clocked(run: Callable[[Any], Any], seeds: Iterable[Any]) -> tuple[list[Any], float]:
    """What the runs return, and the seconds that they take one after another."""
    began = time.perf_counter()
    found = [run(seed) for seed in seeds]
    return found, time.perf_counter() - began


def fastest(run: Callable[[Any], Any], settings: Iterable[Any]) -> Any:
    """The setting with which `run` takes the least time; its first call does not count."""

    def seconds(setting: Any) -> float:
        run(setting)
        return min(clocked(run, [setting])[1] for _ in range(2))

    return min(settings, key=seconds)


def report(**facts: Any) -> None:
    """The line that the harness reads."""
    print(json.dumps(facts), flush=True)
