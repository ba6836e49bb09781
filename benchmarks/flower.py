"""What SAFARI costs over stock FedAvg, in Flower's own simulation: make bench-flower

Both strategies train examples/flower/pytorch over the same simulated nodes, in turn, in one run.
A client round is timed from the draw of the cohort to the averaged model; SAFARI saves its state
after every round, stock FedAvg saves nothing. Server rounds are timed apart, and their bytes counted.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples" / "flower" / "pytorch"))
os.environ["PYTHONPATH"] = f"{sys.path[0]}:{os.environ.get('PYTHONPATH', '')}"

from flwr.app import ArrayRecord  # noqa: E402
from flwr.serverapp import ServerApp  # noqa: E402
from flwr.serverapp.strategy import FedAvg  # noqa: E402
from flwr.simulation import run_simulation  # noqa: E402

from safari.experiment.versions import provenance  # noqa: E402
from safari.flower import SafariStrategy, torch_server_step  # noqa: E402
from torchapp.client_app import app as client_app  # noqa: E402
from torchapp.task import Net, server_loader  # noqa: E402

NODES, PER_ROUND, ROUNDS, REPEATS = 10, 5, 25, 5
RESULT = ROOT / "benchmarks" / "results" / "flower.json"
found: dict[str, list[float]] = {"fedavg": [], "safari": [], "server": []}
facts: dict[str, int] = {}
server_app = ServerApp()


class TimedStep:
    """A server step that notes how long it takes."""

    def __init__(self, step):
        self.step, self.seconds, self.rate = step, 0.0, step.rate

    def __call__(self, arrays, round):
        began = time.perf_counter()
        made = self.step(arrays, round)
        self.seconds += time.perf_counter() - began
        return made


def fedavg(grid) -> None:
    strategy = FedAvg(fraction_train=PER_ROUND / NODES, fraction_evaluate=0.0)
    began = time.perf_counter()
    strategy.start(grid, initial_arrays=ArrayRecord(Net().state_dict()), num_rounds=ROUNDS)
    found["fedavg"].append((time.perf_counter() - began) / ROUNDS)


def safari(grid, seed: int) -> None:
    model = Net()
    step = TimedStep(torch_server_step(model, server_loader(), lr=0.1, steps=20))
    with tempfile.TemporaryDirectory() as folder:
        strategy = SafariStrategy(
            0.8, step, fleet=NODES, per_round=PER_ROUND, seed=seed, checkpoint=Path(folder) / "state"
        )
        strategy.fleet.online(grid)
        began = time.perf_counter()
        strategy.start(grid, initial_arrays=ArrayRecord(model.state_dict()), num_rounds=ROUNDS)
        seconds = time.perf_counter() - began - step.seconds
    history = strategy.journal.history()
    clients = history.filter(history["kind"] == "client")
    server = history.filter(history["kind"] == "server")
    found["safari"].append(seconds / len(clients))
    found["server"].append(step.seconds / len(server))
    facts["bytes_down_client_round"] = int(clients["bytes_down"].to_numpy().mean())
    facts["bytes_server_rounds"] = int(server["bytes_down"].sum() + server["bytes_up"].sum())


@server_app.main()
def main(grid, context):
    fedavg(grid)
    safari(grid, 0)
    for times in found.values():
        times.clear()
    for repeat in range(REPEATS):
        fedavg(grid)
        safari(grid, repeat)


if __name__ == "__main__":
    resources = {"client_resources": {"num_cpus": 1}}
    run_simulation(server_app, client_app, num_supernodes=NODES, backend_config=resources)
    medians = {name: statistics.median(times) for name, times in found.items()}
    ratios = [ours / stock for ours, stock in zip(found["safari"], found["fedavg"], strict=True)]
    result = {
        "seconds": found,
        "median_seconds": medians,
        "ratio_per_client_round": statistics.median(ratios),
        **facts,
        "made": {**provenance(), "command": "make bench-flower"},
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(f"stock FedAvg     {1e3 * medians['fedavg']:7.1f} ms a client round")
    print(f"SAFARI, q = 0.8  {1e3 * medians['safari']:7.1f} ms a client round, state saved")
    print(f"ratio            {result['ratio_per_client_round']:7.3f}")
    print(f"server round     {1e3 * medians['server']:7.1f} ms, {facts['bytes_server_rounds']} bytes sent")
