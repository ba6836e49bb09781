"""One of Flower's example apps, played in one process: python play.py APP CLIENTS SEED KEY=VALUE...

APP is the folder of the app. Its ServerApp and ClientApp run as they are; the messages are Flower's, without
its transport. In the end the model that the app left in the working directory is scored on the test set; the
last line that is printed is its accuracy.
"""

import random
import sys
import tomllib
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


def main(folder: Path, clients: int, seed: int, given: list[str]) -> None:
    np.random.seed(seed)
    random.seed(seed)  # Flower shuffles the nodes by it
    if "pytorch" in folder.name:
        import torch

        torch.manual_seed(seed)
    sys.path.insert(0, str(folder))
    told = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    config = dict(told["config"]) | {key: float(value) for key, value in (one.split("=") for one in given)}
    config["num-server-rounds"] = int(config["num-server-rounds"])
    package = told["components"]["serverapp"].split(".")[0]
    server, client = (import_module(f"{package}.{side}_app").app for side in ("server", "client"))

    def answer(message, context):
        context.run_config = config
        return client(message, context)

    nodes = {
        100 + number: {"partition-id": number, "num-partitions": PARTITIONS} for number in range(clients)
    }
    SafariStrategy.__init__.__kwdefaults__["round_deadline"] = 1e6  # nobody is late on a busy machine
    context = Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=config)
    server(LocalGrid(answer, nodes), context)
    print(SCORES[package](import_module(f"{package}.task")))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
