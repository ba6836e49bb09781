"""A spec written out as a Flower app: server, clients, pyproject, README."""

import re
import shutil
from pathlib import Path
from string import Template
from typing import Any

import tomli_w
from jinja2 import Environment, PackageLoader, StrictUndefined

from safari.algorithms import Safari
from safari.data import File, Nodes, at_server
from safari.data.sources import source_class
from safari.errors import InputError, check
from safari.experiment.directory import refuse_existing
from safari.experiment.schema import keys_of
from safari.experiment.spec import Spec, complete
from safari.experiment.writing import writing
from safari.flower.spec_job import Job
from safari.version import __version__

SERVER = '''"""The server: SAFARI over the clients of spec.toml."""

from pathlib import Path

from safari.flower.spec_server import server_app

app = server_app(Path(__file__).with_name("spec.toml"))
'''
CLIENT = '''"""A client of spec.toml: the server says which one a node is."""

from pathlib import Path

from safari.flower.spec_client import client_app

app = client_app(Path(__file__).with_name("spec.toml"))
'''
PROJECT = Template("""[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$name"
version = "1.0.0"
description = "A safari spec as a Flower app"
license = "Apache-2.0"
# Flower installs what is listed here from a package index, before every run. What this app needs,
# safari-fl[flower]==$version, is installed beside Flower on every machine.
dependencies = []

[tool.hatch.build.targets.wheel]
packages = ["$package"]

[tool.flwr.app]
publisher = "safari"

[tool.flwr.app.components]
serverapp = "$package.server_app:app"
clientapp = "$package.client_app:app"

[tool.flwr.app.config]
rounds = 0                # in all; 0: as the spec says. A restarted server goes on where it was
round-deadline = 60.0     # seconds; a round goes on with those who answered by then
start-deadline = 10.0     # seconds to wait for all clients before the first round
min-replies = 1           # with fewer, the server takes the round
silent-rounds = 20        # after so many client rounds in a row without clients the run ends; 0: never
norm-bound = 5.0          # updates so many times longer than the median are rejected; 0: none
weight-bound = 3.0        # a reply counts no more than so many times the median weight; 0: no bound
trust = ""                # "server": updates that go against the server's own step are rejected
simulate-absence = false  # true: do not ask the clients that the spec excludes, though connected
checkpoint = ""           # a folder on the server; its state is saved there after every round
metrics-port = ""         # "9464": Prometheus reads metrics there; "0.0.0.0:9464": also from elsewhere
overrides = ""            # keys of the spec, such as "algorithm.q=0.6 train.seed=1"
""")


def write_app(spec: Spec, out: Path) -> Path:
    """Write the Flower app of a spec into the new folder `out`. Nothing is written unless it is sound.

    Where the spec reads a file of all samples, the app reads none of it: every node names its own.
    """
    refuse_existing(out)
    simulated = not spec.on_nodes
    spec = on_nodes(spec)
    job = Job(spec)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,31}", out.name):
        hint = "its last part must be a name of letters, digits and hyphens, 32 at the most"
        raise InputError("--out", str(out), hint)
    package = re.sub(r"\W", "_", out.name.lower()).strip("_").removesuffix("_app") + "_app"
    tables = spec.plain()
    facts = {
        "name": package.replace("_", "-"),
        "package": package,
        "version": __version__,
        "rounds": job.run.rounds,
        "algorithm": tables["algorithm"]["name"],
    }
    files = {
        "pyproject.toml": PROJECT.substitute(facts),
        "README.md": _readme({**facts, "simulated": simulated}, job),
        f"{package}/__init__.py": "",
        f"{package}/server_app.py": SERVER,
        f"{package}/client_app.py": CLIENT,
        f"{package}/spec.toml": tomli_w.dumps(tables),
    }
    try:
        with writing():
            for name, content in files.items():
                target = out / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content, encoding="utf-8")
    except OSError as error:
        shutil.rmtree(out, ignore_errors=True)
        raise InputError("--out", str(out), f"cannot be written ({error.strerror})") from None
    return out


def _readme(facts: dict[str, Any], job: Job) -> str:
    """What to run, on which machine."""
    clients = list(range(job.fleet)) if isinstance(job.fleet, int) else job.fleet
    data = job.spec.tables["data"]
    files = {name: data[name] for name in ("server", "test")} if job.spec.on_nodes else {}
    loader = PackageLoader("safari.flower", ".")
    template = Environment(loader=loader, undefined=StrictUndefined).get_template("app_readme.md.jinja")
    return template.render(**{"server": None, "test": None, **files}, **facts, clients=clients) + "\n"


def on_nodes(spec: Spec) -> Spec:
    """The spec with the samples on the nodes, if it has them in a file; what it tells is written down."""
    given = spec.tables["data"]
    if source_class(given["source"]) is not File:
        return spec
    server = given["server"]
    check(isinstance(server, str), "data.server", server, "must be a file, which lies at the server")
    hint = "cannot run on Flower: nobody sees the clients' samples"
    check(not given["client_test"], "data.client_test", given["client_test"], hint)
    federation = spec.federation()
    names = federation.client_names or tuple(map(str, range(federation.size)))
    kept = {key: given[key] for key in (*keys_of(Nodes), *keys_of(at_server)) if key in given}
    data = {**kept, "source": "nodes", "client_names": names, "labels": federation.dataset.labels}
    algorithm = spec.tables["algorithm"]
    bound = spec.prepare(federation).algorithm
    if isinstance(bound, Safari) and algorithm["server"]["steps"] == "match":
        algorithm = {**algorithm, "server": {**algorithm["server"], "steps": bound.server.steps}}
    return complete({**spec.tables, "data": data, "algorithm": algorithm})
