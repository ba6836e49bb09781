"""A fleet of real processes on loopback: examples/flower/deploy.sh, and what to do with it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
NAUGHTY = Path(__file__).parent / "naughty"
ABSENT = (3, 4, 6, 9)
PRESENT = [client for client in range(10) if client not in ABSENT]
DEPLOY = ROOT / "examples" / "flower" / "deploy.sh"
BIN = Path(sys.executable).parent
HOLD = 'touch "$DEPLOY_WORK/ready"; while [ ! -e "$DEPLOY_WORK/stop" ]; do sleep 0.2; done'


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "VENV": str(BIN.parent), "JAX_PLATFORMS": "cpu", **more}


class Fleet:
    """A SuperLink and its SuperNodes, which run until the test is over."""

    def __init__(self, work: Path):
        self.work = work

    def start(self, app: Path, **config: object) -> subprocess.Popen:
        """`flwr run` of an app; its output goes to a file of the run's own."""
        text = " ".join(f"{key}={value!r}".replace("'", '"') for key, value in config.items())
        text = re.sub(r"\b(\w+)_(\w+)=", r"\1-\2=", text)
        self.log = self.work / f"run-{time.monotonic_ns()}.log"
        command = [BIN / "flwr", "run", app, "deploy", "--stream", "--run-config", text]
        home = {"FLWR_HOME": str(self.work / "flwr"), "FLWR_TELEMETRY_ENABLED": "0"}
        with self.log.open("w") as file:
            return subprocess.Popen(
                [str(part) for part in command],
                env=environment(**home),
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def finish(self, run: subprocess.Popen, state: Path, seconds: float) -> str:
        """Wait until the run has left its summary; what it logged."""
        wait_for(lambda: (state / "summary.json").exists() or run.poll() is not None, seconds, self.said)
        run.wait(timeout=30)
        assert (state / "summary.json").exists(), self.said()
        return self.said()

    def said(self) -> str:
        return self.log.read_text()

    def wait_until(self, pattern: str, seconds: float) -> None:
        """Until the log of the last run holds `pattern`."""
        wait_for(lambda: re.search(pattern, self.said()), seconds, self.said)

    def processes(self, *words: str) -> list[psutil.Process]:
        """Processes of this fleet whose command line holds all words."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("DEPLOY_ID", "").startswith(str(self.work)):
                    line = " ".join(process.cmdline())
                    if all(word in line for word in words):
                        found.append(process)
        return found

    def kill(self, *words: str) -> None:
        found = self.processes(*words)
        assert found, f"no process with {words}"
        for process in found:
            for each in [process, *process.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    each.send_signal(signal.SIGKILL)


def wait_for(ready, seconds: float, said) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, said()
        time.sleep(0.2)


@contextlib.contextmanager
def deployed(app: Path, work: Path, *options: str) -> Iterator[Fleet]:
    """A fleet that is up; afterwards none of its processes is left."""
    command = ["bash", str(DEPLOY), str(app), "--work", str(work), "--exec", HOLD, *options]
    work.mkdir(parents=True)
    log = work / "deploy.log"
    with log.open("w") as file:
        script = subprocess.Popen(command, env=environment(), stdout=file, stderr=subprocess.STDOUT)
    fleet = Fleet(work)
    try:
        wait_for(lambda: (work / "ready").exists() or script.poll() is not None, 240, log.read_text)
        assert script.poll() is None, log.read_text()
        yield fleet
    finally:
        (work / "stop").touch()
        script.wait(timeout=60)
    assert not fleet.processes(), "processes were left behind"
