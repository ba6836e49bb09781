"""The commands of a page of documentation, run as they are written, on real processes.

What stands for a place of the reader's (SERVER, /var/lib) is replaced by one of the test's. Nodes share a
machine here, so each is given a port of its own, which is all that is added to a command.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from fleet_processes import BIN, PATIENCE, environment, ours, started, wait_for

BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PRIVATE = ("FLWR_HOME", "SAFARI_CACHE", "XDG_CACHE_HOME")
"""Folders of the person who runs the tests."""
TOO_BUSY = "Failed to start local SuperLink within"
LOCAL = "flower-superlink --insecure --simulation --host 127.0.0.1 --port"
"""Flower gives a SuperLink of its own 15 seconds to start. On a busy machine it is started for Flower."""

DAEMONS = ("flower-superlink", "flower-supernode")


def blocks(page: Path) -> list[list[str]]:
    """The commands of a page, block by block; a command that goes on in the next line is one."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [[line for line in block.replace("\\\n", " ").splitlines() if line.strip()] for block in found]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@dataclass(frozen=True)
class Person:
    """Who runs a command: an account (None: the one that runs the tests), and where it is at home."""

    home: Path
    uid: int | None = None

    @property
    def rights(self) -> dict:
        return {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}


@dataclass
class Shell:
    """Runs commands of a page; `swaps` replaces texts in them."""

    work: Path
    swaps: dict[str, str]
    binaries: Path = BIN
    exported: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    daemons: list[subprocess.Popen] = field(default_factory=list)

    def run(self, command: str, by: Person, folder: Path, **more: str) -> str:
        """Run one command to its end; a server or a node is left running once it is up. What it printed."""
        self.ran.append(command)
        for old, new in {**more, **self.swaps}.items():
            command = command.replace(old, new)
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.exported[name] = value
            return ""
        if command.split()[0] in DAEMONS:
            return self._daemon(command, by, folder)
        code, said = self._once(command, by, folder)
        if TOO_BUSY in said:
            self._daemon(f"{LOCAL} {self.exported['FLWR_LOCAL_SUPERLINK_HTTP_API_PORT']}", by, folder)
            code, said = self._once(command, by, folder)
        assert code == 0, f"{command}\n{said}"
        return said

    def _once(self, command: str, by: Person, folder: Path) -> tuple[int, str]:
        log = self.work / f"command-{len(self.ran)}.log"
        with log.open("w") as file:
            done = subprocess.run(
                ["timeout", str(3 * PATIENCE), "bash", "-euo", "pipefail", "-c", command],
                cwd=folder, env=self._environment(by), stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, **by.rights,
            )  # fmt: skip
        return done.returncode, log.read_text()

    def _daemon(self, command: str, by: Person, folder: Path) -> str:
        name, log = command.split()[0], self.work / f"daemon-{len(self.daemons)}.log"
        words = shlex.split(command)
        if name == "flower-supernode":
            words += ["--port", str(free_port())]
        with log.open("w") as file:
            daemon = subprocess.Popen(
                words, cwd=folder, env=self._environment(by), stdin=subprocess.DEVNULL,
                stdout=file, stderr=subprocess.STDOUT, start_new_session=True, **by.rights,
            )  # fmt: skip
        self.daemons.append(daemon)
        started(f"{name} (process {daemon.pid}) as user {os.getuid() if by.uid is None else by.uid}")

        def up() -> bool:
            assert daemon.poll() is None, f"{command}\n{log.read_text()}"
            if name == "flower-supernode":
                return "SuperNode ID:" in log.read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", int(words[words.index("--port") + 1]))) == 0

        wait_for(up, log.read_text)
        return log.read_text()

    def _environment(self, by: Person) -> dict[str, str]:
        own = {
            "PATH": f"{self.binaries}:{os.environ['PATH']}",
            "HOME": str(by.home),
            "DEPLOY_ID": str(self.work),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "RAY_ADDRESS": "local",  # no cluster of somebody else's on this machine
            "NO_COLOR": "1",
            "COLUMNS": "100",
            **self.exported,
        }
        if self.binaries != BIN:
            root = self.binaries.parents[1]
            own |= {"VENV": str(root / "venv"), "LD_LIBRARY_PATH": str(root / "python" / "lib")}
        return {name: value for name, value in environment(**own).items() if name not in PRIVATE}

    def stop(self) -> None:
        """End all that was left running, and all that it started."""
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
        for process in ours(self.work):
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 15
        while (left := ours(self.work)) and time.monotonic() < until:
            time.sleep(0.2)
        for process in left:
            process.kill()


def binaries_for_all(work: Path) -> Path:
    """The commands of this environment where every account may run them.

    Python may lie in a home that is closed to others: then its files are linked into `work`.
    """
    base = Path(sys.base_prefix).resolve()
    if all(folder.stat().st_mode & 0o001 for folder in (base, *base.parents)):
        return BIN
    copy, mine = work / "python", f"python{sys.version_info.major}.{sys.version_info.minor}"
    heavy = ("site-packages", "test", "idlelib", "ensurepip", "__pycache__")
    shutil.copytree(
        base / "lib" / mine, copy / "lib" / mine, copy_function=_linked, ignore=shutil.ignore_patterns(*heavy)
    )
    for library in (base / "lib").glob("libpython*"):
        _linked(library, copy / "lib" / library.name)
    (copy / "bin").mkdir()
    _linked(base / "bin" / mine, copy / "bin" / mine)
    venv = work / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "lib").symlink_to(BIN.parent / "lib")
    (venv / "pyvenv.cfg").write_text(f"home = {copy / 'bin'}\ninclude-system-site-packages = false\n")
    (venv / "bin" / "python").symlink_to(copy / "bin" / mine)
    for script in (*BIN.glob("flwr*"), *BIN.glob("flower-*"), BIN / "safari"):
        (venv / "bin" / script.name).write_text(script.read_text().replace(str(BIN), str(venv / "bin")))
        (venv / "bin" / script.name).chmod(0o755)
    return venv / "bin"


def _linked(source, target) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
