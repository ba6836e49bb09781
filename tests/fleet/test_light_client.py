"""A node that installs `safari-fl-client` alone takes part in a real federation."""

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pytest
from fleet_processes import NAUGHTY, PATIENCE, ROOT, deployed, environment, free_port, wait_for

PIP = ("-m", "pip", "--disable-pip-version-check")
HEAVY = {"jax", "jaxlib", "equinox", "optax", "polars", "plotly", "scikit-learn", "matplotlib", "safari-fl"}


@pytest.fixture(scope="module")
def light(tmp_path_factory) -> Path:
    """The `bin` of an environment that holds what a node installs: the client's wheel, Flower, NumPy."""
    folder = tmp_path_factory.mktemp("light")
    wheels = folder / "wheels"
    call(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", wheels, ROOT / "clients")
    call(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    call(python, *PIP, "install", *wheels.glob("*.whl"), f"flwr=={version('flwr')}", "numpy")
    return python.parent


def call(*command) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=clean())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clean() -> dict[str, str]:
    """The environment without ours: no Python of ours is found."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}


def test_a_node_installs_flower_and_a_name(light):
    found = {row["name"].lower() for row in json.loads(call(light / "python", *PIP, "list", "--format=json"))}
    assert {"safari-fl-client", "flwr", "numpy"} <= found
    assert not found & HEAVY
    told = call(light / "python", "-c", "from safari.flower import identify; print(identify.__module__)")
    assert told.strip() == "safari.flower.identity"
    told = call(light / "python", "-c", "import safari; print(safari.__version__)")
    assert told.strip() == version("safari-fl")
    asks = "from safari.flower import SafariStrategy"
    done = subprocess.run([light / "python", "-c", asks], capture_output=True, text=True, env=clean())
    assert "SafariStrategy is not in safari-fl-client; the whole of safari has it" in done.stderr


def test_a_light_node_trains_in_a_real_federation(light, tmp_path):
    state = tmp_path / "state"
    with deployed(NAUGHTY, tmp_path / "work", "--nodes", "10", "--only", "7") as fleet:
        log = (fleet.work / "light.log").open("w")
        command = ["--insecure", "--superlink", fleet.address(), "--port", str(free_port())]
        node = subprocess.Popen(
            [light / "flower-supernode", *command, "--node-config", "partition-id=8"],
            env={**environment(), **mine(fleet, light)},
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
        )
        try:
            said = Path(log.name).read_text
            wait_for(lambda: "SuperNode ID:" in said() or node.poll() is not None, said)
            fleet.finish(fleet.start(NAUGHTY, rounds=3, deadline=PATIENCE, checkpoint=str(state)), state)
        finally:
            log.close()
            fleet.stop(str(light))
            node.wait(timeout=PATIENCE)
    events = pl.read_parquet(state / "events.parquet")
    answered = events.filter(event="answered").group_by("name").len()
    assert dict(answered.iter_rows()) == {"7": 3, "8": 3}
    assert "client 8 trains" in said()


def mine(fleet, light: Path) -> dict[str, str]:
    """What lets the node find its own programs, and the test find the node."""
    return {
        "PATH": f"{light}:{os.environ['PATH']}",
        "DEPLOY_ID": str(fleet.work),
        "FLWR_HOME": str(fleet.work / "light"),
        "PYTHONUNBUFFERED": "1",
    }


def test_the_versions_of_flower_that_are_tested_are_those_that_are_allowed():
    tested = re.search(r"^FLOWERS := (.*)$", (ROOT / "Makefile").read_text(), flags=re.M)[1].split()
    text = (ROOT / "pyproject.toml").read_text()
    oldest, beyond = re.search(r'"flwr\[simulation\]>=([\d.]+),<([\d.]+)"', text).groups()
    assert tested[0] == f"{oldest}.0"
    assert int(tested[-1].split(".")[1]) + 1 == int(beyond.split(".")[1])


def test_both_distributions_ask_for_the_same_flower():
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    client = tomllib.loads((ROOT / "clients" / "pyproject.toml").read_text())["project"]
    (flower,) = (one for one in whole["optional-dependencies"]["flower"] if one.startswith("flwr"))
    assert client["dependencies"] == [flower.replace("[simulation]", "")]
    assert client["requires-python"] == whole["requires-python"]
