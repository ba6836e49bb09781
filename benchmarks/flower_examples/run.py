"""Flower's own example apps with and without SAFARI: python benchmarks/flower_examples/run.py FLOWER

FLOWER is a checkout of Flower's repository, or a folder with these apps and a COMMITS.json, which names the
commit of every file. The apps run as they are; `standin` takes the place of the packages that would download
data. quickstart-pytorch (CIFAR-10), quickstart-jax (MNIST) and quickstart-sklearn-tabular (iris) run in one
process (play.py) with ten clients, and with clients 5 to 9 absent; then SAFARI is switched on by the patches
beside this file, clients 5 to 9 absent, with q as in the patch, with q = 1 (clients only) and with q = 0
(server only). A seed draws the samples of all parties, the first model and the coins.

With `classes` a client holds two of ten classes; four classes are with clients 5 to 9 alone (of iris, most of
the last species). With `iid` the samples are shared out at random. Accuracy is that of the model that the app
itself saves, on a test set that neither clients nor server hold. FLOWER_EXAMPLES_SPLITS="classes" does one.
"""

import contextlib
import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

from safari.data.sources.catalog import CATALOG  # noqa: E402
from safari.experiment.versions import provenance  # noqa: E402

CLIENTS, PRESENT = 10, 5
RESULT = ROOT / "benchmarks" / "results" / "flower-examples.json"
APPS = {"quickstart-sklearn-tabular": 100, "quickstart-jax": 60, "quickstart-pytorch": 60}
"""Each with its number of rounds. The first measurement took 15 for the last two: after those, FedAvg with
all clients had hardly learnt from samples by class (10 and 26 %), so that little could be compared."""
SEEDS = {"quickstart-sklearn-tabular": 8, "quickstart-jax": 5, "quickstart-pytorch": 5}
"""How many: chosen by how long a run takes, before any was compared."""
RUNS = {
    "FedAvg, all clients": (False, CLIENTS, {}),
    "FedAvg, half absent": (False, PRESENT, {}),
    "SAFARI's clients alone, half absent": (True, PRESENT, {"q": 1.0}),
    "SAFARI, half absent": (True, PRESENT, {"q": 0.8}),
    "server only": (True, PRESENT, {"q": 0.0}),
}
SPLITS = os.environ.get("FLOWER_EXAMPLES_SPLITS", "classes iid").split()
SIZES = {"cifar10": (4000, 320, 1000), "mnist": (3000, 320, 2000), "iris": (90, 15, 45)}
"""Samples of all clients, of the server, in the test set."""


def samples(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "iris":
        from sklearn.datasets import load_iris

        return load_iris(return_X_y=True)
    found = CATALOG[name].load(None)
    shape = (-1, 32, 32, 3) if name == "cifar10" else (-1, 28, 28)
    return np.asarray(found.x).reshape(shape), np.asarray(found.y, np.int64)


def holders(name: str, split: str, y: np.ndarray) -> np.ndarray:
    """Who holds each of the clients' samples `y`, which are shuffled."""
    if split == "iid":
        return np.arange(len(y)) % CLIENTS
    found = np.zeros(len(y), int)
    classes = int(y.max()) + 1
    for label in range(classes):
        where = np.flatnonzero(y == label)
        if name == "iris":  # every client needs all species; the last is rare in the first half
            first = 1 if label == classes - 1 else 4
            shares = np.repeat(np.arange(CLIENTS), [first] * PRESENT + [6 - first] * PRESENT)
        else:
            shares = np.repeat(
                [label, (label + 1) % CLIENTS], [len(where) // 2, len(where) - len(where) // 2]
            )
        found[where] = shares
    return found


def prepare(name: str, split: str, folder: Path, seed: int) -> None:
    """The file that the stand-in reads; which samples are tested does not depend on the split."""
    x, y = samples(name)
    random = np.random.default_rng(seed)
    order = random.permutation(len(y))
    if name == "iris":  # as many of each species in every part
        order = order[np.argsort(y[order], kind="stable")].reshape(3, -1).T.ravel()
    held, server, tested = np.split(order[: sum(SIZES[name])], np.cumsum(SIZES[name])[:-1])
    holder = np.concatenate(
        [holders(name, split, y[held]), np.full(len(server), -1), np.full(len(tested), -2)]
    )
    chosen = np.concatenate([held, server, tested])
    np.savez(folder / f"{name}.npz", x=x[chosen], y=y[chosen], holder=holder)


@contextlib.contextmanager
def app_of(flower: Path, name: str, patched: bool) -> Iterator[Path]:
    """A copy of an app, with SAFARI or without."""
    with tempfile.TemporaryDirectory() as folder:
        app = shutil.copytree(flower / "examples" / name, Path(folder) / name)
        if patched:
            with (HERE / f"{name}.patch").open() as patch:
                subprocess.run(["patch", "-s", "-p0"], cwd=folder, stdin=patch, check=True)
        yield app


def accuracy(flower: Path, name: str, run: str, data: Path, seed: int) -> float:
    """Called in a process of its app: what a run draws does not depend on the runs before it."""
    from play import play

    patched, clients, config = RUNS[run]
    # Clients that score a model do not change it: none is asked to, where the app has a setting for that.
    given = {"num-server-rounds": APPS[name], "fraction-evaluate": 0.0, **config}
    with app_of(flower, name, patched) as app:
        return play(app, data, clients, seed, given)


def quiet(log: str) -> None:
    """Whatever an app prints goes to a file, which is shown if the app fails."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)


@contextlib.contextmanager
def processes(apps: list[str]) -> Iterator[Callable[..., float]]:
    """A process for each app, which has imported all that it needs after its first run."""
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ |= {
            "PYTHONWARNINGS": "ignore",
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(work / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        spawn = multiprocessing.get_context("spawn")
        logs = {name: str(work / f"{name}.log") for name in apps}
        pools = {
            name: stack.enter_context(spawn.Pool(1, initializer=quiet, initargs=[logs[name]]))
            for name in apps
        }

        def carry_out(flower: Path, name: str, *rest) -> float:
            try:
                return pools[name].apply(accuracy, (flower, name, *rest))
            except Exception:
                print(Path(logs[name]).read_text()[-6000:], file=sys.stderr)
                raise

        yield carry_out


def lines(name: str) -> dict[str, int]:
    """How many lines a patch adds and removes, blank ones left out."""
    text = (HERE / f"{name}.patch").read_text().splitlines()
    found = [line for line in text if line[:3] not in ("+++", "---") and line[1:].strip()]
    return {"added": sum(line[0] == "+" for line in found), "removed": sum(line[0] == "-" for line in found)}


def main(flower: Path, names: list[str]) -> None:
    apps = names or list(APPS)
    rows = {(split, name): row_of(name, split, flower) for split in SPLITS for name in apps}
    with processes(apps) as carry_out:
        for split in SPLITS:
            for seed in range(max(SEEDS[name] for name in apps)):
                with tempfile.TemporaryDirectory() as data:
                    for one in SIZES:
                        prepare(one, split, Path(data), seed)
                    for name in [name for name in apps if seed < SEEDS[name]]:
                        row = rows[split, name]
                        for run in RUNS:
                            row[run].append(round(carry_out(flower, name, run, Path(data), seed), 4))
                            print(name, split, run, row[run], flush=True)
                        keep(row)


def files_of(flower: Path, name: str) -> dict[str, dict[str, str]]:
    """Every file of an app: the commit of Flower that it is from, and its SHA-256."""
    app = flower / "examples" / name
    found = sorted([*app.glob("*.toml"), *app.glob("*/*.py")])
    listed = flower / "COMMITS.json"
    if listed.exists():
        commits = json.loads(listed.read_text())
    else:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=flower, capture_output=True, text=True, check=True
        )
        commits = {str(path.relative_to(flower)): head.stdout.strip() for path in found}
    paths = {str(path.relative_to(flower)): path for path in found}
    return {
        path: {"commit": commits[path], "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for path, file in paths.items()
    }


def row_of(name: str, split: str, flower: Path) -> dict:
    """A row without results."""
    facts = {"app": name, "data": split, "rounds": APPS[name], "coins": "by seed"}
    facts |= {"files": files_of(flower, name), **lines(name)}
    return {**facts, **{run: [] for run in RUNS}}


def keep(row: dict) -> None:
    """Put a row in the place of what was measured of its app before."""
    found = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    which = ("app", "data", "rounds")
    found = [other for other in found if any(other[key] != row[key] for key in which)]
    row["made"] = provenance() | {"command": "python benchmarks/flower_examples/run.py FLOWER"}
    RESULT.write_text(json.dumps({"sizes": SIZES, "rows": [*found, row]}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
