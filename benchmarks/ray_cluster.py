"""A sweep on a Ray cluster of three nodes on this machine: python benchmarks/ray_cluster.py [RUNS]

RUNS runs (default: 64) of examples/digits.toml over seeds, four times: by `safari sweep` alone; on the
cluster; on the cluster, the command itself killed (SIGKILL) after some runs and resumed; on the cluster, one
node of which is killed after some runs. All four directories must hold the same results, value for value.
The overhead of a run is the time that a lane (a core of this machine, a node of the cluster) takes per run,
from the first finished run to the last, less the median seconds of training; beside it stands what a task of
Ray's costs that does nothing.
Writes benchmarks/results/ray_cluster.json.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import psutil
import ray
from ray.cluster_utils import Cluster

from safari.devices import cores
from safari.experiment.versions import provenance

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "ray_cluster.json"
SPEC = ROOT / "examples" / "digits.toml"
RUNS, NODES, EMPTY_TASKS = 64, 3, 200
COMMAND = [str(Path(sys.executable).with_name("safari")), "sweep"]


def start(folder: Path, runs: int, *more: str) -> psutil.Popen:
    """Begin the sweep of `folder`, or go on with it."""
    new = [str(SPEC), f"sweep.seeds={runs}", "--out", str(folder)]
    words = ["--resume", str(folder)] if folder.exists() else new
    return psutil.Popen([*COMMAND, *words, "--quiet", *more], stdout=subprocess.DEVNULL)


def finished(folder: Path) -> int:
    return len(list((folder / "finished").glob("[!.]*")))


def wait_for(folder: Path, count: int, process: psutil.Popen) -> None:
    while finished(folder) < count:
        if process.poll() is not None:
            sys.exit(f"{folder.name}: ended by itself after {finished(folder)} runs")
        time.sleep(0.01)


def ended(process: psutil.Popen, folder: Path) -> None:
    if process.wait():
        sys.exit(f"{folder.name}: exit code {process.returncode}")
    print(f"{folder.name}: {finished(folder)} runs", flush=True)


def overhead(folder: Path, lanes: int) -> float:
    """Seconds of a run beside its training: from the first finished run to the last, a lane each."""
    times = sorted(file.stat().st_mtime for file in (folder / "finished").glob("[!.]*"))
    every = (times[-1] - times[0]) / (len(times) - 1)
    return every * lanes - training(folder)


def training(folder: Path) -> float:
    """Median seconds of training of a run."""
    return pl.read_parquet(folder / "results.parquet")["train_seconds"].median()


def numbers(folder: Path) -> pl.DataFrame:
    results = pl.read_parquet(folder / "results.parquet")
    return results.drop(name for name in results.columns if "seconds" in name)


def empty_task_seconds(address: str) -> float:
    """What Ray itself takes for a task, one at a time, on workers that are up."""
    ray.init(address, logging_level="ERROR", log_to_driver=False)
    nothing = ray.remote(lambda: None)
    ray.get([nothing.remote() for _ in range(EMPTY_TASKS)])
    began = time.perf_counter()
    for _ in range(EMPTY_TASKS):
        ray.get(nothing.remote())
    seconds = (time.perf_counter() - began) / EMPTY_TASKS
    ray.shutdown()
    return seconds


def cluster_of_three() -> Cluster:
    """Three nodes with room for one run each, also on a busy machine.

    There, Ray's agents start slowly, and its workers, which it gives a niceness of 15, would starve.
    """
    os.environ.setdefault("RAY_agent_register_timeout_ms", "300000")
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(NODES - 1):
        cluster.add_node(num_cpus=1)
    return cluster


def kill_node(cluster: Cluster) -> None:
    """SIGKILL to a node's processes: its raylet and all its workers."""
    node = cluster.list_all_nodes()[-1]
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    for process in [*raylet.children(recursive=True), raylet]:
        process.kill()


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory(prefix="ray-") as short:
        os.environ["RAY_TMPDIR"] = short  # else whoever starts Ray on this machine would join the cluster
        local, whole, lost, resumed = (Path(top) / name for name in ("local", "cluster", "node", "driver"))
        ended(start(local, runs), local)
        cluster = cluster_of_three()
        os.environ["RAY_ADDRESS"] = cluster.address
        empty = empty_task_seconds(cluster.address)
        began = time.perf_counter()
        ended(start(whole, runs, "--on", "ray"), whole)
        seconds = time.perf_counter() - began

        process = start(resumed, runs, "--on", "ray")
        wait_for(resumed, runs // 3, process)
        process.kill()
        process.wait()
        kept = finished(resumed)
        ended(start(resumed, runs, "--on", "ray"), resumed)

        process = start(lost, runs, "--on", "ray")
        wait_for(lost, runs // 3, process)
        kill_node(cluster)
        at = finished(lost)
        ended(process, lost)
        cluster.shutdown()

        found = {
            "runs": runs,
            "nodes": NODES,
            "equal_to_local": numbers(whole).equals(numbers(local)),
            "node_killed_after": at,
            "equal_after_node_killed": numbers(lost).equals(numbers(local)),
            "driver_killed_after": kept,
            "equal_after_driver_resumed": numbers(resumed).equals(numbers(local)),
            "training_milliseconds_per_run": round(1000 * training(whole), 1),
            "overhead_milliseconds_per_run_local": round(1000 * overhead(local, cores()), 1),
            "overhead_milliseconds_per_run_cluster": round(1000 * overhead(whole, NODES), 1),
            "empty_ray_task_milliseconds": round(1000 * empty, 1),
            "seconds_on_cluster_with_start": round(seconds, 1),
            "load": os.getloadavg(),
        }  # fmt: skip
    made = {**provenance(), "command": "python benchmarks/ray_cluster.py"}
    RESULT.write_text(json.dumps({**found, "made": made}, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    sys.exit(not all(found[key] for key in found if key.startswith("equal")))


if __name__ == "__main__":
    main()
