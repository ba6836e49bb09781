"""How fast a GPU trains: python benchmarks/gpu.py (needs MNIST and CIFAR-10, and a GPU)

MNIST, softmax regression, the paper's setting (10 clients of 5400 samples, 5 a round, SAFARI with
q = 0.8, 150 rounds, evaluated every round): one run, and 240 runs side by side. The network of the
CIFAR-10 experiments on random images of that shape (10 clients of 5000, 5 a round, batches of 500,
bfloat16): floating-point operations a second, counting 106 million a sample and step; alone, and
several processes side by side as `safari sweep --share k/n` makes them (under CUDA's MPS where it
can be started). Then the same network on CIFAR-10 itself in float32 and in bfloat16: accuracies.
Compilation is timed apart. Writes benchmarks/results/gpu.json.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np

import safari
from safari.data.sources import load
from safari.engine import prepare, program_for, start
from safari.experiment.versions import provenance

RESULT = Path(__file__).parent / "results" / "gpu.json"
ROUNDS, STRETCH, RUNS, REPEATS = 150, 64, 240, 5
CIFAR_ROUNDS, OPERATIONS, WORKER_SECONDS = 20, 106e6, 8
ACCURACY_ROUNDS, SEEDS = 200, 5


def timed(program, run, carry, rounds):
    """Median seconds of `rounds` rounds, from the carry of the first round on."""
    seconds = []
    for _ in range(REPEATS):
        began, now = time.perf_counter(), carry
        for first in range(0, rounds, STRETCH):
            now, record = program(run, now, first, min(STRETCH, rounds - first))
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), record


def mnist_run(dataset, seed):
    server = safari.ServerSet(1000, disjoint=False)
    federation = safari.federate(dataset, safari.Classes(samples_per_client=5400), server, seed=seed)
    algorithm = safari.Safari(safari.FedAvg(), safari.ServerSGD(), q=0.8)
    missing = safari.Participation(excluded=4, per_round=5)
    return prepare(federation, algorithm, safari.Logistic(), missing, ROUNDS, seed, 1, "float32")


def mnist():
    dataset = load("mnist")
    runs = [mnist_run(dataset, seed) for seed in range(RUNS)]
    carry = start(runs[0])
    program, compiling = program_for(runs[0], carry)
    one, record = timed(program, runs[0], carry, ROUNDS)
    together = Training(runs, width=RUNS)
    stacked, compiling_stacked = program_for(together.run, together.carry, together.stacked)
    many, _ = timed(stacked, together.run, together.carry, ROUNDS)
    last = (ROUNDS - 1) % STRETCH
    return {
        "one_run_seconds": one,
        "one_run_compile_seconds": compiling,
        "accuracy": float(record.score.correct[last].sum()) / 10_000,
        f"{RUNS}_runs_seconds": many,
        f"{RUNS}_runs_compile_seconds": compiling_stacked,
    }


def random_images():
    chance = np.random.default_rng(0)
    x, y = chance.integers(0, 256, (50_000, 32, 32, 3), dtype=np.uint8), np.arange(50_000) % 10
    return safari.Dataset(x, y, x[:1000], y[:1000], augment=True)


def cifar_run(dataset, precision, rounds=5000, seed=0):
    federation = safari.federate(dataset, safari.Classes(classes_per_client=10), safari.ServerSet(0))
    algorithm = safari.FedAvg(batch_size=500, clip=10.0)
    chosen = safari.Participation(per_round=5)
    return prepare(federation, algorithm, safari.CNN(), chosen, rounds, seed, rounds, precision)


def rate(rounds, seconds):
    return rounds * 5 * 5000 * OPERATIONS / seconds / 1e12


def cifar(precision):
    run = cifar_run(random_images(), precision)
    carry = start(run)
    program, compiling = program_for(run, carry)
    seconds, _ = timed(program, run, carry, CIFAR_ROUNDS)
    return {
        "seconds_a_round": seconds / CIFAR_ROUNDS,
        "compile_seconds": compiling,
        "tera_operations_a_second": rate(CIFAR_ROUNDS, seconds),
    }


def worker():
    """One of several processes: says when it is ready, trains for a while when told to, says how fast."""
    run = cifar_run(random_images(), "bfloat16")
    carry = start(run)
    program, _ = program_for(run, carry)
    carry, _ = program(run, carry, 0, 2)
    print("ready", flush=True)
    sys.stdin.readline()
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < WORKER_SECONDS:
        carry, _ = program(run, carry, 2 + done, CIFAR_ROUNDS)
        done += CIFAR_ROUNDS
    print(rate(done, time.perf_counter() - began), flush=True)


def side_by_side(processes):
    """Operations a second of so many processes together."""
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    command = [sys.executable, __file__, "worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, env=environment, **pipes) for _ in range(processes)]
    for each in workers:
        assert each.stdout.readline() == "ready\n"
    for each in workers:
        each.stdin.write("go\n")
        each.stdin.flush()
    return sum(float(each.communicate()[0]) for each in workers)


def accuracies(precision):
    """On CIFAR-10, a seed each."""
    dataset = load("cifar10")
    found = []
    for seed in range(SEEDS):
        training = Training(cifar_run(dataset, precision, ACCURACY_ROUNDS, seed))
        while not training.finished:
            training.advance()
        found.append(training.history["accuracy"][-1])
    return found


def check_for_a_gpu():
    """Without asking JAX, which would take the card's memory."""
    if shutil.which("nvidia-smi") is None:
        sys.exit(f"{Path(sys.argv[0]).name}: there is no NVIDIA GPU here")


def main():
    check_for_a_gpu()
    has_mps = shutil.which("nvidia-cuda-mps-control") is not None
    mps = has_mps and subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False).returncode == 0
    result = {
        "side_by_side": {"mps": mps, "tera_operations_a_second": {n: side_by_side(n) for n in (1, 2, 3, 4)}},
        "mnist": mnist(),
        "cifar10": {kind: cifar(kind) for kind in ("bfloat16", "tf32")},
    }
    found = {kind: accuracies(kind) for kind in ("float32", "bfloat16")}
    result["cifar10_accuracy"] = {"rounds": ACCURACY_ROUNDS, **found}
    result["made"] = {**provenance(), "command": "python benchmarks/gpu.py", "jax": jax.__version__}
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    worker() if sys.argv[1:] == ["worker"] else main()
