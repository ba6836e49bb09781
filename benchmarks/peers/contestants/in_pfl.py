"""The job in pfl: the best of one process with one or all threads and of one process for each core.

pfl spreads a cohort over processes that torchrun starts. The settings are tried in a few rounds
each; then the job runs with the fastest.
"""

import json
import subprocess
import sys
from pathlib import Path

from task import CORES, report

WORKER = Path(__file__).parent / "pfl_worker.py"
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={CORES}")
SETTINGS = {
    "1 process, 1 thread": ((), 1),
    f"1 process, {CORES} threads": ((), CORES),
    f"{CORES} processes": (TORCHRUN, 1),
}


def train(setting: str, kind: str) -> dict:
    launcher, threads = SETTINGS[setting]
    command = [sys.executable, *launcher, str(WORKER), sys.argv[1], str(threads), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


setting = min(SETTINGS, key=lambda setting: train(setting, "trial")["seconds"])
found = train(setting, "job")
report(**found, setting=f"{setting}, PyTorch {found['pytorch']}")
