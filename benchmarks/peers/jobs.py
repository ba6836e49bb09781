"""The jobs, and how one is handed to the contestants: a folder with data, start and settings."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

import safari
from safari.data.sources import load
from safari.randomness import streams_of

MODELS = {"softmax": safari.Logistic, "cnn": safari.CNN}


@dataclass(frozen=True)
class Job:
    """One job; `runs` of it differ in their seeds alone, and a peer does the first `peer_runs`."""

    letter: str
    title: str
    source: str
    model: str
    clients: int
    samples: int
    per_round: int
    batch: int
    rate: float
    rounds: int
    runs: int = 1
    peer_runs: int = 1
    accuracy_tolerance: float = 0.015
    has_floor: bool = False

    def scaled(self, rounds: float, peer_runs: int) -> "Job":
        return replace(
            self, rounds=max(1, round(self.rounds * rounds)), peer_runs=min(self.runs, max(1, peer_runs))
        )


MNIST = {"source": "mnist", "model": "softmax", "rate": 0.1}
FEW = {"clients": 10, "samples": 6000, "per_round": 5, "batch": 64}
MANY = {"clients": 1000, "samples": 60, "per_round": 50, "batch": 20}
CIFAR = {"source": "cifar10", "model": "cnn", "rate": 0.05, "accuracy_tolerance": 0.04}
JOBS = {
    job.letter: job
    for job in (
        Job("a", "MNIST softmax, 10 clients of 6000", rounds=150, has_floor=True, **MNIST, **FEW),
        Job("b", "CIFAR-10 network, 10 clients of 500", rounds=10, **CIFAR, **{**FEW, "samples": 500}),
        Job("c", "MNIST softmax, 1000 clients of 60", rounds=200, **MNIST, **MANY),
        Job("d", "a sweep of job a over 32 seeds", rounds=30, runs=32, **MNIST, **FEW),
    )
}


def write_job(job: Job, folder: Path) -> None:
    """data.npz (clients lie one after another), start.npz (safari's first parameters), job.json."""
    data = load(job.source)
    order = np.random.default_rng(0).permutation(len(data.y))[: job.clients * job.samples]
    np.savez(
        folder / "data.npz",
        x=np.asarray(data.x)[order].reshape(-1, *data.shape),
        y=np.asarray(data.y)[order],
        x_test=np.asarray(data.x_test).reshape(-1, *data.shape),
        y_test=np.asarray(data.y_test),
        client=np.repeat(np.arange(job.clients), job.samples),
    )
    params = MODELS[job.model]().init(streams_of(0).initialisation, data.shape, data.classes)
    np.savez(folder / "start.npz", **flat(params))
    shift = None if data.shift is None else np.asarray(data.shift).tolist()
    settings = {**asdict(job), "scale": np.asarray(data.scale).tolist(), "shift": shift}
    (folder / "job.json").write_text(json.dumps(settings))


def flat(params: dict, prefix: str = "") -> dict[str, np.ndarray]:
    """Nested parameters as one table, its keys dotted paths."""
    found: dict[str, np.ndarray] = {}
    for name, value in params.items():
        path = f"{prefix}{name}"
        found |= flat(value, f"{path}.") if isinstance(value, dict) else {path: np.asarray(value)}
    return found
