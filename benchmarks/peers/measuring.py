"""Running a contestant in a process of its own, its memory watched from outside."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from safari.experiment.versions import provenance

HERE = Path(__file__).parent
LOOK_SECONDS = 0.3
OTHERS_SETTINGS = ("XLA_", "JAX_", "OMP_", "MKL_", "PYTHONPATH", "TORCH", "RAY_", "FLWR_")
"""Variables that would set a contestant up behind its script's back."""


def run(name: str, python: Path, folder: Path, limit: float) -> dict:
    """What the contestant's last line says, and its peak memory; or why it failed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(OTHERS_SETTINGS)}
    command = [str(python), str(HERE / "contestants" / f"in_{name}.py"), str(folder)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=out, stderr=errors, env=environment) as process:
            root = psutil.Process(process.pid)
            try:
                peak = watch(root, process, limit)
            except BaseException:  # whoever stops this stops what it started
                kill_all(family(root))
                raise
        took = time.perf_counter() - began
        out.seek(0)
        errors.seek(0)
        said, complaints = out.read().splitlines(), errors.read().splitlines()
    if peak is None:
        return {"failed": f"stopped after {limit:.0f} s"}
    try:
        if process.returncode == 0:
            return {**json.loads(said[-1]), "peak_megabytes": peak / 2**20, "process_seconds": took}
    except (IndexError, ValueError):
        complaints = said or complaints
    lines = (line.strip() for line in reversed(complaints))
    last = next((line for line in lines if any(map(str.isalpha, line))), "no message")
    return {"failed": f"{last} (exit {process.returncode})"}


def watch(root: psutil.Process, process: subprocess.Popen, limit: float) -> float | None:
    """The most bytes that the process and its descendants had at one look; None past the limit."""
    peak, end = 0.0, time.monotonic() + limit
    while process.poll() is None:
        if time.monotonic() > end:
            kill_all(family(root))
            return None
        peak = max(peak, sum(proportional_bytes(one) for one in family(root)))
        try:
            process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    return peak


def family(root: psutil.Process) -> list[psutil.Process]:
    try:
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def kill_all(processes: list[psutil.Process]) -> None:
    for one in processes:
        with suppress(psutil.Error):
            one.kill()


def proportional_bytes(process: psutil.Process) -> int:
    """Its resident memory, shared pages counted by their share."""
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


def facts() -> dict:
    """By which command, on which commit and machine, and when."""
    machine = {
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gigabytes": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    command = " ".join(["python", "benchmarks/peers", *sys.argv[1:]])
    return {**provenance(), "command": command, "machine": machine}


def cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown")


def read(path: Path) -> dict:
    """The jobs' entries in a file; none where there is no file."""
    return json.loads(path.read_text()) if path.is_file() else {}


def save(path: Path, letter: str, entry: dict) -> None:
    """Put a job's entry into the file; the other jobs' stay."""
    report = read(path)
    report[letter] = {**facts(), **entry}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(dict(sorted(report.items())), indent=2) + "\n")
