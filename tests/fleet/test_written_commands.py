"""Every command that the docs of Flower show is run as it is written, on real processes."""

import json
import os
import re
import subprocess
import sys

import polars as pl
import pytest
from fleet_processes import BIN, ROOT
from written_commands import Person, Shell, blocks, free_port

import safari

EXAMPLES, DOC = ROOT / "examples" / "flower", ROOT / "docs" / "flower.md"
PAGES = [DOC, *sorted(EXAMPLES.glob("*/README.md"))]
ELSEWHERE = {
    "pip install": "the environment of the tests is set up by `make`",
    "make ": "minutes long; its results are committed",
    "python benchmarks/": "minutes long; its results are committed",
    "examples/flower/deploy.sh examples/flower/pytorch --only": "test_secure.py runs it",
}
"""Commands of docs/flower.md that no test here runs, and why."""


NAMED_SET = "is for a fleet whose samples lie on the nodes; this one has a named set"


@pytest.fixture
def shell(tmp_path):
    """Runs commands; where a local SuperLink listens is the test's own."""
    made = Shell(tmp_path, {})
    ports = {"FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": free_port(), "FLWR_LOCAL_CONTROL_API_PORT": free_port()}
    made.exported |= {name: str(port) for name, port in ports.items()}
    yield made
    made.stop()


def written(page):
    return [command for block in blocks(page) for command in block]


def test_every_command_of_the_docs_is_run_by_a_test():
    """Those of docs/flower.md here, or it says why not; those of an example by the test of that example."""
    here = "test_written_commands.py"
    tested = {"hospitals": "test_hospitals.py", "pytorch": here, "jax": here}
    for page in PAGES[1:]:
        assert tested.get(page.parent.name), f"{page}: no test runs its commands"
    for command in written(DOC):
        known = any(command.startswith(words) for words in (*ELSEWHERE, *RUN_HERE))
        assert known, f"{command}: no test runs it"
    for page in PAGES:
        shown = re.findall(
            r"^ {4}((?:flwr|flower-\w+|safari|examples/\S+\.sh) .*)$", page.read_text(), re.MULTILINE
        )
        assert not shown, f"{page.name}: write commands in ```bash blocks, which tests run: {shown}"


def test_the_commands_of_a_written_app_s_readme(shell, tmp_path):
    home = Person(tmp_path / "home")
    home.home.mkdir()
    app, state = tmp_path / "digits-fleet", tmp_path / "lib" / "digits-fleet-app"
    spec = ROOT / "tests" / "fleet" / "digits.toml"
    subprocess.run(
        [
            BIN / "safari",
            "flower",
            "deploy",
            spec,
            "train.rounds=3",
            "participation.per_round=4",
            "--out",
            app,
        ],
        check=True,
    )
    shell.swaps |= {
        "SERVER": "127.0.0.1",
        "0.0.0.0": "127.0.0.1",
        "8000": str(free_port()),
        "/var/lib": str(tmp_path / "lib"),
    }
    (tmp_path / "lib").mkdir()
    settings = (app / "pyproject.toml").read_text()  # on a busy machine a simulated client starts in minutes
    (app / "pyproject.toml").write_text(settings.replace("round-deadline = 60.0", "round-deadline = 600.0"))
    for block in blocks(app / "README.md"):
        for command in block:
            if command.startswith("flower-supernode"):
                for config in ("partition-id=0", "partition-id=1", 'partition-id=2 data="own.csv"'):
                    shell.run(command, home, tmp_path, **{"partition-id=0": config})
            else:
                said = shell.run(command, home, app)
                if command == "flwr run . --stream":
                    assert "round 3 of 3" in said, said[-3000:]
    assert {
        row["name"]
        for row in json.loads((state / "summary.json").read_text())["participation"]
        if row["answered"]
    }
    failed = pl.read_parquet(state / "events.parquet").filter(event="failed")
    assert set(failed["name"]) == {"2"}
    assert set(failed["detail"]) == {f"data = own.csv: {NAMED_SET}"}
    assert safari.load(state).labels == tuple("0123456789")
    assert (state / "report.html").is_file()


def test_the_commands_of_the_pytorch_example(shell, tmp_path):
    home = Person(tmp_path / "home")
    home.home.mkdir()
    page = EXAMPLES / "pytorch" / "README.md"
    shell.swaps["/tmp/fleet"] = str(tmp_path / "fleet")
    for command in written(page):
        said = shell.run(command, home, ROOT)
        if command == "flwr run examples/flower/pytorch --stream":
            assert "round 30 of 30" in said, said[-3000:]
    assert pl.read_parquet(tmp_path / "fleet" / "metrics.parquet").height == 5
    program = re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[1]
    program = program.replace("/tmp/fleet", str(tmp_path / "fleet"))
    paths = {"PYTHONPATH": str(page.parent), **os.environ}
    subprocess.run([sys.executable, "-c", program], check=True, env=paths)


RUN_HERE = (
    "safari flower deploy examples/digits.toml",
    "safari report state/",
    "safari evaluate state/",
    "safari predict state/",
    "safari compare state/",
)


def test_the_commands_of_the_page(shell, tmp_path):
    """Those about a state, on the state of a short run in Flower's simulation."""
    home = Person(tmp_path)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "digits.toml").write_text((ROOT / "tests" / "fleet" / "digits.toml").read_text())
    for command in written(DOC):
        if command.startswith("safari flower deploy"):
            shell.run(command, home, tmp_path)
    settings = f"--run-config 'rounds=2 checkpoint=\"{tmp_path / 'state'}\"'"
    deploy = f"{EXAMPLES / 'deploy.sh'} my-fleet --simulate {settings}"
    shell.run(deploy, home, tmp_path)
    shell.run("safari run examples/digits.toml --out runs/simulated --quiet", home, tmp_path)
    x = pl.DataFrame(safari.federate("digits").dataset.x_test[:5].tolist(), orient="row")
    x.write_csv(tmp_path / "new.csv")
    for command in written(DOC):
        if command.startswith(RUN_HERE[1:]):
            shell.run(command, home, tmp_path)
