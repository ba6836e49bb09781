"""Flower's own example apps with and without SAFARI: python benchmarks/flower_examples/run.py FLOWER

FLOWER is a checkout of Flower's repository. Its apps run as they are; `standin` takes the place of the
packages that would download data. quickstart-pytorch (CIFAR-10), quickstart-jax (MNIST) and
quickstart-sklearn-tabular (iris) run in one process (play.py) with ten clients, and with clients 5 to 9
absent; then SAFARI is switched on by the patches beside this file, clients 5 to 9 absent, with q as in the
patch and with q = 0 (server only). A seed draws the samples of all parties and the first model.

With `classes` a client holds two of ten classes; four classes are with clients 5 to 9 alone (of iris, most of
the last species). With `iid` the samples are shared out at random. Accuracy is that of the model that the app
itself saves, on a test set that neither clients nor server hold. FLOWER_EXAMPLES_SPLITS="classes" does one.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

from safari.data.sources.catalog import CATALOG  # noqa: E402
from safari.experiment.versions import provenance  # noqa: E402

CLIENTS, PRESENT = 10, 5
RESULT = ROOT / "benchmarks" / "results" / "flower-examples.json"
SEEDS = (0, 1, 2)
APPS = {"quickstart-sklearn-tabular": 100, "quickstart-jax": 15, "quickstart-pytorch": 15}
"""Each with its number of rounds: a client of the first takes one step over its samples in a round."""
RUNS = {
    "FedAvg, all clients": (False, CLIENTS, []),
    "FedAvg, half absent": (False, PRESENT, []),
    "SAFARI, half absent": (True, PRESENT, ["q=0.8"]),
    "server only": (True, PRESENT, ["q=0.0"]),
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
        pyproject = app / "pyproject.toml"
        if name == "quickstart-jax":  # the stored version is older than the code
            text = pyproject.read_text()
            pyproject.write_text(text.replace("learning-rate", "fraction-evaluate = 1.0\nlearning-rate"))
        yield app


def accuracy(flower: Path, name: str, run: str, data: Path, seed: int) -> float:
    patched, clients, config = RUNS[run]
    more = {
        "FLOWER_EXAMPLES_DATA": str(data),
        "PYTHONWARNINGS": "ignore",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(data),  # the app compiles in every round of every client
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    given = [f"num-server-rounds={APPS[name]}", *config]
    with app_of(flower, name, patched) as app, tempfile.TemporaryDirectory() as work:
        command = [sys.executable, HERE / "play.py", app, str(clients), str(seed), *given]
        done = subprocess.run(command, cwd=work, env=os.environ | more, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-6000:])
    return float(done.stdout.split()[-1])


def lines(name: str) -> dict[str, int]:
    """How many lines a patch adds and removes, blank ones left out."""
    text = (HERE / f"{name}.patch").read_text().splitlines()
    found = [line for line in text if line[:3] not in ("+++", "---") and line[1:].strip()]
    return {"added": sum(line[0] == "+" for line in found), "removed": sum(line[0] == "-" for line in found)}


def main(flower: Path, names: list[str]) -> None:
    apps = names or list(APPS)
    rows = {(split, name): row_of(name, split) for split in SPLITS for name in apps}
    for split in SPLITS:
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as data:
                for one in SIZES:
                    prepare(one, split, Path(data), seed)
                for name in apps:
                    row = rows[split, name]
                    for run in RUNS:
                        row[run].append(round(accuracy(flower, name, run, Path(data), seed), 4))
                        print(name, split, run, row[run], flush=True)
                    keep(row)


def row_of(name: str, split: str) -> dict:
    """A row without results."""
    return {"app": name, "data": split, **lines(name), **{run: [] for run in RUNS}}


def keep(row: dict) -> None:
    """Put a row in the place of what was measured of its app before."""
    found = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    found = [other for other in found if (other["app"], other["data"]) != (row["app"], row["data"])]
    made = provenance() | {"command": "python benchmarks/flower_examples/run.py FLOWER"}
    facts = {"rounds": APPS, "seeds": SEEDS, "sizes": SIZES, "made": made}
    RESULT.write_text(json.dumps({**facts, "rows": [*found, row]}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
