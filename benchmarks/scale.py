"""Time per round and memory against the number of clients: make bench-scale

From a thousand to a million clients of ten samples each, a hundred of them a round for five local
epochs; every size in a process of its own. Writes benchmarks/results/scale.json and docs/scale.png.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
RESULT, PICTURE = ROOT / "benchmarks" / "results" / "scale.json", ROOT / "docs" / "scale.png"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SAMPLES, FEATURES, CLASSES, PER_ROUND, ROUNDS, REPEATS = 10, 32, 10, 100, 320, 3


def write_samples(folder: Path, clients: int) -> Path:
    """Synthetic samples of ten classes, in files that are mapped into memory; client after client."""
    chance, many = np.random.default_rng(0), clients * SAMPLES
    centres = chance.integers(0, 256, (CLASSES, FEATURES))
    x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.uint8, shape=(many, FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.int32, shape=(many,))
    for start in range(0, many, 100_000):
        part = slice(start, min(start + 100_000, many))
        y[part] = chance.integers(0, CLASSES, part.stop - part.start)
        noise = chance.normal(0, 60, (part.stop - part.start, FEATURES))
        x[part] = np.clip(centres[y[part]] + noise, 0, 255)
    x.flush()
    y.flush()
    return folder


def measure(folder: Path, clients: int) -> dict[str, float]:
    import safari
    from safari.engine import prepare
    from safari.engine.training import Training

    x, y = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("x", "y"))
    began = time.perf_counter()
    owner = np.arange(clients * SAMPLES, dtype=np.int32) // SAMPLES
    dataset = safari.Dataset(x, y, x[:5000], y[:5000], client=owner)
    federation = safari.federate(dataset, safari.ByColumn(), safari.ServerSet(0))
    participation = safari.Participation(per_round=PER_ROUND)
    algorithm = safari.FedAvg(batch_size=SAMPLES, local_epochs=5)
    run = prepare(federation, algorithm, safari.Logistic(), participation, ROUNDS, 0, ROUNDS, "float32")
    ready = time.perf_counter() - began
    seconds = []
    for _ in range(REPEATS):
        training = Training(run)
        while not training.finished:
            training.advance()
        seconds.append(training.train_seconds / ROUNDS)
    return {
        "clients": clients,
        "seconds_a_round": statistics.median(seconds),
        "seconds_to_prepare": ready,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "accuracy": training.result().accuracy,
    }


def draw(rows: list[dict[str, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    clients = [row["clients"] for row in rows]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    left.plot(clients, [1e3 * row["seconds_a_round"] for row in rows], marker="o", color="#0b5fa5")
    left.set(xscale="log", xlabel="clients", ylabel="ms a round", title="100 clients a round")
    right.plot(clients, [row["peak_megabytes"] for row in rows], marker="o", color="#b3541e")
    right.set(xscale="log", xlabel="clients", ylabel="MB", title="Peak memory of the process")
    for axes in (left, right):
        axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    from safari.experiment.versions import provenance

    rows = []
    for clients in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            write_samples(Path(folder), clients)
            command = [sys.executable, __file__, folder, str(clients)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        row = rows[-1]
        print(
            f"{clients:9,} clients {1e3 * row['seconds_a_round']:6.2f} ms a round, "
            f"{row['peak_megabytes']:6.0f} MB, prepared in {row['seconds_to_prepare']:5.1f} s, "
            f"accuracy {row['accuracy']:.3f}",
            flush=True,
        )
    ratio = rows[-1]["seconds_a_round"] / rows[0]["seconds_a_round"]
    print(f"a million against a thousand: {ratio:.2f} times the time of a round")
    made = {**provenance(), "command": "make bench-scale"}
    RESULT.write_text(json.dumps({"rows": rows, "ratio": ratio, "made": made}, indent=1) + "\n")
    draw(rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))
    else:
        main()
