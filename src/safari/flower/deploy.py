"""A spec written out as a Flower app: server, clients, pyproject, README."""

import re
import shutil
from pathlib import Path
from string import Template

import tomli_w

from safari.errors import InputError
from safari.experiment.directory import refuse_existing
from safari.experiment.spec import Spec
from safari.experiment.writing import writing
from safari.flower.spec_job import Job
from safari.version import __version__

SERVER = '''"""The server: SAFARI over the clients of spec.toml."""

from pathlib import Path

from safari.flower.spec_server import server_app

app = server_app(Path(__file__).with_name("spec.toml"))
'''
CLIENT = '''"""A client: the partition of spec.toml that its node is told to be."""

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
dependencies = ["safari-fl[flower]==$version"]

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
simulate-absence = false  # true: do not ask the clients that the spec excludes, though connected
checkpoint = ""           # a folder on the server; its state is saved there after every round
overrides = ""            # keys of the spec, such as "algorithm.q=0.6 train.seed=1"
""")
README = Template("""# $name

A Flower app, written by `safari flower deploy` from `$package/spec.toml`: $clients clients,
algorithm $algorithm, $rounds rounds. What was simulated by `safari run` runs here on real clients:
the same coins and batches, and the same cohorts if the same clients are there (those that the spec
excludes are asked if they connect, unless `simulate-absence=true`).

Everywhere: safari with the extra `flower`, version $version.

**On one machine, simulated by Flower** (which leaves a SuperLink running in the background):

    export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1
    flwr federation simulation-config @none/default local --num-supernodes $clients
    flwr run . local --stream

**On real machines.** The server:

    flower-superlink --insecure --disable-runtime-dependency-installation --database superlink.db

(a SuperLink that is killed and started again with its database knows the runs and keys that it had),
every client, with its own number from 0 to $last:

    flower-supernode --insecure --superlink SERVER:9092 --node-config "partition-id=0"

and whoever starts the training, with the SuperLink's address under `[superlink.fleet]` in Flower's
configuration:

    flwr run . fleet --stream --run-config 'checkpoint="/var/lib/$name"'

Clients that never connect, leave or hang do not stop it. In the end the checkpoint folder holds the
model, the history and who took part; `safari report /var/lib/$name` draws it, `safari compare` sets it
beside a simulated run. Start the same command again after a crash: it goes on with the next round.

`--insecure` is for trials. safari's `examples/flower/deploy.sh --secure` shows TLS and
authenticated nodes, from making the certificates to turning strangers away.
""")


def write_app(spec: Spec, out: Path) -> Path:
    """Write the Flower app of a spec into the new folder `out`. Nothing is written unless it is sound."""
    refuse_existing(out)
    job = Job(spec)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,31}", out.name):
        hint = "its last part must be a name of letters, digits and hyphens, 32 at the most"
        raise InputError("--out", str(out), hint)
    package = re.sub(r"\W", "_", out.name.lower()).strip("_").removesuffix("_app") + "_app"
    tables = spec.plain()
    source = Path(str(tables["data"]["source"]))
    if source.suffix and source.exists():
        tables["data"]["source"] = str(source.resolve())
    facts = {
        "name": package.replace("_", "-"),
        "package": package,
        "version": __version__,
        "rounds": job.run.rounds,
        "clients": job.run.task.federation.size,
        "last": job.run.task.federation.size - 1,
        "algorithm": tables["algorithm"]["name"],
    }
    files = {
        "pyproject.toml": PROJECT.substitute(facts),
        "README.md": README.substitute(facts),
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
