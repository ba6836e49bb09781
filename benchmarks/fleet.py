"""A hundred nodes in Flower's simulation for 200 rounds, saved after each: make bench-fleet

The model is softmax regression on the digits (650 numbers); in a client round all hundred nodes are asked.
The result holds every round's time, bytes and seconds to save it, and slopes over the number of the round
(Theil and Sen, with 95 % intervals): what a round costs must not grow with the rounds before it. `cpu` is the
processor time of the server's process, which other programs on the machine disturb less than the time
on the clock. With --in-process the clients answer within the server's process, without Ray: this measures the
server and its checkpoint, and no transport; the result is benchmarks/results/fleet-in-process.json.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "flower"), str(ROOT / "benchmarks")]
os.environ["PYTHONPATH"] = f"{sys.path[0]}:{sys.path[1]}:{os.environ.get('PYTHONPATH', '')}"

import digits_app  # noqa: E402
import polars as pl  # noqa: E402
from flwr.serverapp import ServerApp  # noqa: E402
from flwr.simulation import run_simulation  # noqa: E402
from local_grid import LocalGrid  # noqa: E402
from numpy_app import nodes  # noqa: E402
from scipy.stats import theilslopes  # noqa: E402

from safari.experiment.versions import provenance  # noqa: E402
from safari.flower import SafariStrategy  # noqa: E402
from safari.flower.state import Folder  # noqa: E402

NODES, ROUNDS = 100, 200
MEASURED = ("seconds", "cpu", "checkpoint_seconds", "checkpoint_cpu", "checkpoint_bytes", "journal_bytes")
RESULTS, COMMAND = ROOT / "benchmarks" / "results", "python benchmarks/fleet.py"
digits_app.CLIENTS = NODES
digits = digits_app.Digits()


def cpu_of_saves() -> list[float]:
    """The processor time of every save from now on, as they come: waiting for a disk adds nothing to it."""
    found, save = [], Folder.save

    def timed(*given: Any) -> None:
        began = time.thread_time()
        save(*given)
        found.append(time.thread_time() - began)

    Folder.save = timed
    return found


class Meter:
    """What is measured after every round, as the strategy's `on_progress`."""

    def __init__(self, state: Path):
        self.state, self.cpu, self.journal, self.folder = state, [], [], []
        self._cpu = time.process_time()

    def __call__(self, federation) -> None:
        spent, self._cpu = time.process_time() - self._cpu, time.process_time()
        self.cpu.append(spent)
        self.journal.append((self.state / "checkpoint" / "journal.jsonl").stat().st_size)
        newest = max((self.state / "checkpoint").glob("round-*"))
        self.folder.append(sum(file.stat().st_size for file in newest.iterdir()))
        self.history = federation.history
        self._cpu = time.process_time()


def carried_out(rounds: int, in_process: bool) -> dict[str, list[Any]]:
    """The columns that were measured, a number a round."""
    app, saves = ServerApp(), cpu_of_saves()
    found: dict[str, list[Any]] = {}

    def measure(grid):
        with tempfile.TemporaryDirectory() as folder:
            meter = Meter(Path(folder) / "state")
            strategy = SafariStrategy(
                0.7, digits.server_step, fleet=NODES, start_deadline=60.0, round_deadline=120.0,
                checkpoint=meter.state, on_progress=meter,
            )  # fmt: skip
            strategy.start(grid, digits.start(), num_rounds=rounds, evaluate_fn=digits.evaluate)
            metrics = pl.read_parquet(meter.state / "metrics.parquet")
        for name in ("kind", "seconds", "checkpoint_seconds", "bytes_down", "bytes_up", "accuracy"):
            found[name] = metrics[name].to_list()
        found["answered"] = metrics["reported"].list.len().to_list()
        found["cpu"], found["checkpoint_cpu"] = meter.cpu, saves
        found["checkpoint_bytes"] = meter.folder
        found["journal_bytes"] = [b - a for a, b in zip([0, *meter.journal], meter.journal, strict=False)]

    if in_process:
        measure(LocalGrid(digits.app(), nodes(NODES)))
        return found

    @app.main()
    def main(grid, context):
        measure(grid)

    resources = {"client_resources": {"num_cpus": 1}}
    run_simulation(app, digits.app(), num_supernodes=NODES, backend_config=resources)
    return found


def cost(values: list[float], rounds: list[int]) -> dict[str, float]:
    """The median of a cost, and by how many per cent of it the line through it rises over all rounds."""
    middle = statistics.median(values)
    slope, _, low, high = theilslopes(values, rounds)
    share = 100 * (max(rounds) - min(rounds)) / middle
    return {"median": middle, "rise_percent": slope * share, "low": low * share, "high": high * share}


def costs(found: dict[str, list[Any]]) -> dict[str, dict[str, float]]:
    """Of client rounds and of server rounds apart; the first client round, which warms up, is left out."""
    rows = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
    result = {}
    for kind in ("client", "server"):
        rounds = [number for number, row in enumerate(rows) if row["kind"] == kind][1:]
        for name in MEASURED:
            result[f"{kind} {name}"] = cost([rows[number][name] for number in rounds], rounds)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = carried_out(options.rounds, options.in_process)
    table = costs(found)
    client = [number for number, kind in enumerate(found["kind"]) if kind == "client"]
    facts = {
        "nodes": NODES,
        "rounds": options.rounds,
        "client_rounds": len(client),
        "accuracy": found["accuracy"][-1],
        "bytes_down_client_round": statistics.median(found["bytes_down"][number] for number in client),
        "bytes_up_client_round": statistics.median(found["bytes_up"][number] for number in client),
        "load": [round(one, 1) for one in os.getloadavg()],
        "made": {**provenance(), "command": COMMAND + (" --in-process" if options.in_process else "")},
    }
    out = options.out or RESULTS / f"fleet{'-in-process' if options.in_process else ''}.json"
    out.write_text(json.dumps({**facts, "costs": table, "by_round": found}, indent=1) + "\n")
    print(f"{'':28}     median   rise over all rounds, % (95 % interval)")
    for name, one in table.items():
        interval = f"{one['rise_percent']:8.1f}  ({one['low']:.1f} to {one['high']:.1f})"
        print(f"{name:28} {one['median']:10.4g}   {interval}")


if __name__ == "__main__":
    main()
