"""Running the command `safari` as a user does, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
SLOW_SPEC = """
[data.server]
samples = 50
[data.partition]
samples_per_client = 120
[participation]
excluded = 4
per_round = 5
availability = {name = "markov"}
[model]
name = "mlp"
hidden = [64]
[algorithm.clients]
name = "scaffold"
batch_size = 4
local_epochs = 2
[train]
rounds = 250
"""


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "safari", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "100"}


def start(*arguments: str | Path, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments), cwd=cwd, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def run(*arguments: str | Path, cwd: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env=environment(),
        text=True,
        timeout=timeout,
        capture_output=True,
        check=False,
    )
