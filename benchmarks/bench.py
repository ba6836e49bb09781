"""`make bench`: one job in safari and as a plain PyTorch loop, interleaved, medians and ratio.

Job (a): MNIST softmax regression, 10 clients of 6000 samples, 5 a round, one local epoch of
batches of 64, 150 rounds; evaluation once, at the end.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from safari.data.sources import load

HERE = Path(__file__).parent
CONTESTANTS = {"safari": "softmax_safari.py", "pytorch loop": "softmax_pytorch.py"}
REPETITIONS, ROUNDS = int(os.environ.get("REPETITIONS", "3")), int(os.environ.get("ROUNDS", "150"))


def write_job(path: Path) -> None:
    """MNIST with ten equal, shuffled clients."""
    data = load("mnist")
    client = np.random.default_rng(0).permutation(np.arange(len(data.y)) % 10)
    np.savez(path, x=data.x, y=data.y, x_test=data.x_test, y_test=data.y_test, client=client)


def run(script: str, job: Path) -> dict[str, float]:
    command = [sys.executable, str(HERE / script), str(job), str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> dict[str, str | int | None]:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "unknown",
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=HERE
    )
    return done.stdout.strip()


def main() -> None:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in CONTESTANTS}
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.npz"
        write_job(job)
        for repetition in range(REPETITIONS):
            for name, script in CONTESTANTS.items():
                runs[name].append(run(script, job))
                print(f"repetition {repetition + 1}: {name} {runs[name][-1]['seconds']:.2f} s", flush=True)
    medians = {
        name: {key: statistics.median(one[key] for one in found) for key in found[0]}
        for name, found in runs.items()
    }
    pairs = zip(runs["pytorch loop"], runs["safari"], strict=True)
    ratio = statistics.median(theirs["seconds"] / ours["seconds"] for theirs, ours in pairs)
    for name, median in medians.items():
        print(
            f"{name:13s} {median['seconds']:7.2f} s steady, {median['seconds_with_compilation']:7.2f} s with "
            f"compilation, {median['peak_megabytes']:6.0f} MB, accuracy {median['accuracy']:.4f}"
        )
    print(f"safari is {ratio:.1f} times as fast (median of {REPETITIONS} interleaved pairs, {ROUNDS} rounds)")
    report = {
        "command": "make bench",
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "rounds": ROUNDS,
        "ratio": ratio,
        "medians": medians,
        "runs": runs,
    }
    target = HERE / "results" / "softmax.json"
    target.write_text(json.dumps(report, indent=2) + "\n")
    print(target.relative_to(HERE.parent))


if __name__ == "__main__":
    main()
