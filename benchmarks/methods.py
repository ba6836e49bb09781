"""Time per round of every method, as a ratio to FedAvg's in one run: python benchmarks/methods.py

Synthetic samples of 784 features and ten classes; 100 clients of 300 samples, of which 5 train for an epoch a
round; the server has 300 samples and takes as many steps as a client. All methods are compiled first and
then take turns, a stretch of rounds each, so that whatever else the machine does falls on all of them; the
ratio is that of the median processor seconds. Writes benchmarks/results/methods.json; names of methods as
arguments: those alone, and nothing is written.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import safari
from safari.engine import Training, prepare
from safari.experiment.versions import provenance
from safari.registry import ALGORITHMS

RESULT = Path(__file__).parent / "results" / "methods.json"
CLIENTS, SAMPLES, PER_ROUND, SERVER = 100, 300, 5, 300
STRETCH, REPEATS, LIMIT = 20, 5, 2.5
SETTINGS = {"batch_size": 30}


def federation() -> safari.Federation:
    chance, many = np.random.default_rng(0), CLIENTS * SAMPLES + SERVER
    y = chance.integers(0, 10, many).astype(np.int32)
    centres = chance.integers(0, 256, (10, 784))
    x = np.clip(centres[y] + chance.normal(0, 80, (many, 784)), 0, 255).astype(np.uint8)
    dataset = safari.Dataset(x, y, x[:1000], y[:1000])
    partition = safari.IID(clients=CLIENTS, samples_per_client=SAMPLES)
    return safari.federate(dataset, partition, safari.ServerSet(SERVER))


def algorithm(name: str) -> safari.Algorithm:
    """The method by its defaults, with batches of one size."""
    cls = ALGORITHMS[name]
    made = cls(**SETTINGS) if issubclass(cls, safari.ClientAlgorithm | safari.ServerSGD) else cls()
    parts = {
        field: type(value)(**SETTINGS)
        for field, value in vars(made).items()
        if isinstance(value, safari.ClientAlgorithm | safari.ServerSGD)
    }
    return type(made)(**{**vars(made), **parts}) if parts else made


def compiled(name: str, data: safari.Federation) -> Training:
    rounds = STRETCH * (REPEATS + 1)
    parts = (safari.MLP((32,)), safari.Participation(per_round=PER_ROUND), rounds, 0, rounds, "float32")
    training = Training(prepare(data, algorithm(name), *parts))
    advance(training, STRETCH)
    return training


def advance(training: Training, rounds: int) -> float:
    """Processor seconds of so many rounds."""
    training.pace.took(1e-9, 1)
    began = time.process_time()
    training.advance(rounds)
    return time.process_time() - began


def main(names: list[str]) -> None:
    made = {**provenance(), "command": "python benchmarks/methods.py"}
    names = names or list(ALGORITHMS)
    data = federation()
    trainings = {name: compiled(name, data) for name in dict.fromkeys(["fedavg", *names])}
    seconds: dict[str, list[float]] = {name: [] for name in trainings}
    for _ in range(REPEATS):
        for name, training in trainings.items():
            seconds[name].append(advance(training, STRETCH) / STRETCH)
    median = {name: statistics.median(found) for name, found in seconds.items()}
    rows = [
        {"method": name, "seconds_a_round": median[name], "ratio": median[name] / median["fedavg"]}
        for name in names
    ]
    for row in sorted(rows, key=lambda row: row["ratio"]):
        above = "  above the limit" if row["ratio"] > LIMIT else ""
        print(f"{row['method']:20} {1e3 * row['seconds_a_round']:7.2f} ms {row['ratio']:6.2f}{above}")
    if names == list(ALGORITHMS):
        RESULT.write_text(json.dumps({"rows": rows, "limit": LIMIT, "made": made}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
