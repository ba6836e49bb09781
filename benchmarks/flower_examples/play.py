"""One of Flower's example apps, played in this process; run.py does so many times in one.

The app's ServerApp and ClientApp run as they are; the messages are Flower's, without its transport. In the
end the model that the app left in the working directory is scored on the test set.

The JAX app builds its first state anew for every client, and JAX then compiles anew; here the state is built
once for each learning rate. It depends on nothing else and is never altered.
"""

import contextlib
import functools
import os
import random
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests" / "flower"), str(Path(__file__).parent / "standin")]

import flwr_datasets  # noqa: E402  (the stand-in)
import numpy as np  # noqa: E402
from flwr.app import Context, RecordDict  # noqa: E402
from local_grid import LocalGrid  # noqa: E402

from safari.flower import SafariStrategy  # noqa: E402

PARTITIONS = 10


def pytorch(task) -> float:
    import torch

    net = task.Net()
    net.load_state_dict(torch.load("final_model.pt"))
    return task.test(net, task.load_centralized_dataset(), "cpu")[1]["accuracy"]


def jax(task) -> float:
    arrays = list(np.load("final_model.npz").values())
    state = task.set_params(task.create_train_state(0.1), arrays)

    data = flwr_datasets.load_dataset("mnist", split="test").with_format("numpy")[:]
    return float(task.apply_model(state, data["image"][..., None] / np.float32(255), data["label"])[2])


def sklearn(task) -> float:
    import joblib

    data = flwr_datasets.load_dataset("hitorilabs/iris", split="test").with_format("pandas")[:]
    model = joblib.load("logreg_model.pkl")
    return float(model.score(data[task.FEATURES].values, data["species"].values))


SCORES = {"pytorchexample": pytorch, "jaxexample": jax, "sklearnexample": sklearn}


@contextlib.contextmanager
def modules_of(folder: Path, package: str) -> Iterator[None]:
    """The app can be imported, and is forgotten afterwards: the next run begins as in a new process."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]


def seed_everything(seed: int, folder: Path) -> None:
    np.random.seed(seed)
    random.seed(seed)  # Flower shuffles the nodes by it
    if "pytorch" in folder.name:
        import torch

        torch.manual_seed(seed)


def play(folder: Path, data: Path, clients: int, seed: int, given: dict[str, float]) -> float:
    """The accuracy of the app in `folder`, whose first `clients` clients are there."""
    os.environ["FLOWER_EXAMPLES_DATA"] = str(data)
    flwr_datasets.table.cache_clear()
    told = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    config = {**told["config"], **given}
    package = told["components"]["serverapp"].split(".")[0]
    seed_everything(seed, folder)
    with modules_of(folder, package), tempfile.TemporaryDirectory() as work, contextlib.chdir(work):
        task = import_module(f"{package}.task")
        if package == "jaxexample":
            task.create_train_state = functools.cache(task.create_train_state)
        server, client = (import_module(f"{package}.{side}_app").app for side in ("server", "client"))

        def answer(message, context):
            context.run_config = config
            return client(message, context)

        nodes = {
            100 + number: {"partition-id": number, "num-partitions": PARTITIONS} for number in range(clients)
        }
        # Nobody is late on a busy machine, nobody connects later than at the start, every seed has its coins.
        SafariStrategy.__init__.__kwdefaults__.update(round_deadline=1e6, start_deadline=0.0, seed=seed)
        context = Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=config)
        server(LocalGrid(answer, nodes), context)
        return SCORES[package](task)
