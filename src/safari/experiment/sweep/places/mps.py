"""CUDA's Multi-Process Service: processes that share a GPU run their kernels side by side."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress

CONTROL = "nvidia-cuda-mps-control"
PIPE, LOG = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
OURS = "SAFARI_MPS"
"""Set for workers whose command started the service: the folder of the service."""


def share_gpu() -> dict[str, str]:
    """Start the service, if it is there and nobody has started it.

    Returns:
        The environment of the processes that are to use it; empty if it was not started.
    """
    if shutil.which(CONTROL) is None or _answers():
        return {}
    folder = tempfile.mkdtemp(prefix="safari-mps-")
    where = {PIPE: folder, LOG: folder, OURS: folder}
    started = _call(["-d"], where)
    if not started:
        shutil.rmtree(folder, ignore_errors=True)
    return where if started else {}


def leave_gpu() -> None:
    """Stop the service, if this worker's command started it: every worker does so once the command ended."""
    folder = os.environ.get(OURS)
    if folder:
        _call([], {}, "quit -t 1\n")
        shutil.rmtree(folder, ignore_errors=True)


def _answers() -> bool:
    return _call([], {}, "get_server_list\n")


def _call(arguments: list[str], where: dict[str, str], say: str = "") -> bool:
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [CONTROL, *arguments], env={**os.environ, **where}, input=say, text=True, timeout=10,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        return done.returncode == 0
    return False
