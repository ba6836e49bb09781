"""A fleet of real processes on loopback: examples/flower/deploy.sh, and what to do with it."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from safari.experiment.finished import is_finished

ROOT = Path(__file__).parents[2]
NAUGHTY = Path(__file__).parent / "naughty"
ABSENT = (3, 4, 6, 9)
PRESENT = [client for client in range(10) if client not in ABSENT]
DEPLOY = ROOT / "examples" / "flower" / "deploy.sh"
BIN = Path(sys.executable).parent
HOLD = 'touch "$DEPLOY_WORK/ready"; while [ ! -e "$DEPLOY_WORK/stop" ]; do sleep 0.2; done'


PATIENCE = 600.0
"""Seconds that a test waits for what must come. Nothing depends on how soon: a busy machine takes minutes."""

STARTED = "FLEET_TESTS_STARTED"
"""A file that says what was started; every process of these tests carries its name in its environment."""


def environment(**more: str) -> dict[str, str]:
    """The environment of a fleet's processes; a simulation joins no Ray cluster that runs on this machine."""
    return {**os.environ, "VENV": str(BIN.parent), "JAX_PLATFORMS": "cpu", "RAY_ADDRESS": "local", **more}


def deploying(*words: object) -> list[str]:
    """The command line of `deploy.sh`. When it takes too long it is asked to end: then it ends its fleet."""
    return ["timeout", str(PATIENCE), "bash", str(DEPLOY), *map(str, words)]


def started(what: str) -> None:
    """Note what was started, for the end of a session of tests."""
    if STARTED in os.environ:
        with open(os.environ[STARTED], "a") as file:
            file.write(f"{what}\n")


def ours(work: Path, *words: str) -> list[psutil.Process]:
    """Running processes that were started for `work`, whose command line holds all words."""
    return marked("DEPLOY_ID", str(work), *words)


def marked(name: str, value: str, *words: str) -> list[psutil.Process]:
    """Running processes whose environment has a value that begins so, whose command line holds all words."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            dead = process.status() == psutil.STATUS_ZOMBIE
            if not dead and process.environ().get(name, "").startswith(value):
                line = " ".join(process.cmdline())
                if all(word in line for word in words):
                    found.append(process)
    return found


class Fleet:
    """A SuperLink and its SuperNodes, which run until the test is over."""

    def __init__(self, work: Path):
        self.work = work

    def address(self) -> str:
        """Of the SuperLink."""
        config = tomllib.loads((self.work / "flwr" / "config.toml").read_text())
        return config["superlink"]["deploy"]["address"]

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

    def finish(self, run: subprocess.Popen, state: Path) -> str:
        """Wait until the run is over, as its summary says; what it logged."""
        wait_for(lambda: is_finished(state) or run.poll() is not None, self.said)
        run.wait(timeout=PATIENCE)
        assert is_finished(state), self.said()
        return self.said()

    def said(self) -> str:
        return self.log.read_text()

    def wait_until(self, pattern: str) -> None:
        """Until the log of the last run holds `pattern`."""
        wait_for(lambda: re.search(pattern, self.said()), self.said)

    def processes(self, *words: str) -> list[psutil.Process]:
        """Processes of this fleet whose command line holds all words."""
        return ours(self.work, *words)

    def stop(self, *words: str) -> None:
        """Ask the processes whose command line holds all words to end; those that do not are killed."""
        found = self.processes(*words)
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        psutil.wait_procs(found, timeout=20)
        for process in self.processes(*words):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def kill(self, *words: str) -> "list[Started]":
        """Kill processes with -9, and what they started; how to start them again."""
        found = self.processes(*words)
        assert found, f"no process with {words}"
        how = [Started(one.cmdline(), one.cwd(), one.environ()) for one in found]
        for process in found:
            for each in [process, *process.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    each.send_signal(signal.SIGKILL)
        return how


@dataclass(frozen=True)
class Started:
    """How a process was started, as a service manager knows it."""

    command: list[str]
    folder: str
    environment: dict[str, str]

    def again(self, log: Path) -> None:
        """Start it once more; its output goes to the end of a file."""
        with log.open("a") as file:
            subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )


def wait_for(ready, said) -> None:
    """Wait for a condition; if it does not come, fail with what was said."""
    until = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < until, said()
        time.sleep(0.2)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return opened.getsockname()[1]


@contextlib.contextmanager
def deployed(app: Path, work: Path, *options: str, **variables: str) -> Iterator[Fleet]:
    """A fleet that is up, with these environment variables; afterwards none of its processes is left."""
    command = ["bash", str(DEPLOY), str(app), "--work", str(work), "--exec", HOLD, *options]
    work.mkdir(parents=True)
    log = work / "deploy.log"
    with log.open("w") as file:
        script = subprocess.Popen(
            command, env=environment(**variables), stdout=file, stderr=subprocess.STDOUT
        )
    started(f"{DEPLOY.name} {' '.join(options)} of {app.name} (process {script.pid})")
    fleet = Fleet(work)
    try:
        wait_for(lambda: (work / "ready").exists() or script.poll() is not None, log.read_text)
        assert script.poll() is None, log.read_text()
        yield fleet
    finally:
        (work / "stop").touch()
        script.wait(timeout=PATIENCE)
    assert not fleet.processes(), "processes were left behind"
