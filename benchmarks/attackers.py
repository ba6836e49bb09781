"""Accuracy under attack, by strategy and by number of attackers: python benchmarks/attackers.py

Ten clients hold digits (tests/flower/digits_app.py: unequal in size and classes, softmax regression), the
server holds 100 samples. All clients are asked in every client round; the messages are Flower's, within one
process. The first 1 or 3 clients attack in every round:

scaled     their change, a million times as long      tenfold    ten times as long
flipped    their change with its sign turned          nan, shape not numbers; wrong shapes
weight     num-examples = 1e12                         replayed   the change of their first round, again
hidden     turned and four times as long: just below the default bound

`open` is SAFARI with no bound at all, `default` with its own. Every cell is a mean over seeds of the
accuracy of the delivered model; `last` in the result is that of the model after the last round, which no
server round has mended.
"""

import gc
import json
import logging
import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "flower"))

from digits_app import ATTACKS, CLIENTS, Digits  # noqa: E402
from flwr.serverapp import strategy as shipped  # noqa: E402
from local_grid import LocalGrid  # noqa: E402
from numpy_app import nodes  # noqa: E402

from safari.experiment.versions import provenance  # noqa: E402
from safari.flower import SafariStrategy  # noqa: E402

ROUNDS, SEEDS = 20, (0, 1)
RESULT = ROOT / "benchmarks" / "results" / "attackers.json"
QUIET = {"fraction_evaluate": 0.0}
FREE = {"norm_bound": None, "weight_bound": None}


def strategies(attackers: int) -> dict:
    """Each with the number of attackers that it is told to expect."""
    made = {
        "open": (lambda: shipped.FedAvg(**QUIET), FREE),
        "default": (lambda: shipped.FedAvg(**QUIET), {}),
        "FedTrimmedAvg(beta=0.3)": (lambda: shipped.FedTrimmedAvg(beta=0.3, **QUIET), {}),
        "FedMedian": (lambda: shipped.FedMedian(**QUIET), {}),
        "Krum": (lambda: shipped.Krum(num_malicious_nodes=attackers, **QUIET), {}),
    }
    if 4 * attackers + 3 <= CLIENTS:
        made["Bulyan"] = (lambda: shipped.Bulyan(num_malicious_nodes=attackers, **QUIET), {})
    return made


def accuracy(clients, keys: dict, q: float, attack: str, attackers: int, seed: int) -> tuple[float, float]:
    """Of the delivered model, and of the model after the last round."""
    digits = Digits(seed)
    made = SafariStrategy(
        q, digits.server_step, clients=clients, fleet=CLIENTS, start_deadline=0.0, seed=seed,
        silent_rounds=None, **keys,
    )  # fmt: skip
    grid = LocalGrid(digits.app(attack, attackers), nodes(CLIENTS))
    result = made.start(grid, digits.start(), num_rounds=ROUNDS, evaluate_fn=digits.evaluate)
    delivered = digits.evaluate(0, result.arrays)["accuracy"]
    return delivered, made.journal.rounds[-1]["accuracy_round"]


def cells() -> Iterator[tuple[float, int, str, str]]:
    """q, the number of attackers, the attack, the strategy; NaN and wrong shapes meet one gate everywhere."""
    for q in (0.7, 1.0):
        for attackers in (0, 1, 3):
            for name in strategies(attackers):
                for attack in ("none",) if attackers == 0 else (*ATTACKS, "tenfold", "hidden"):
                    if attack not in ("nan", "shape") or name in ("open", "default"):
                        yield q, attackers, attack, name


def measured(cell: tuple[float, int, str, str]) -> dict:
    """The row of a cell."""
    q, attackers, attack, name = cell
    clients, keys = strategies(attackers)[name]
    found = [accuracy(clients(), keys, q, attack, attackers, seed) for seed in SEEDS]
    delivered, last = (round(statistics.mean(part), 4) for part in zip(*found, strict=True))
    row = {"q": q, "attackers": attackers, "attack": attack, "strategy": name}
    return {**row, "accuracy": delivered, "last": last}


def main() -> None:
    logging.getLogger("flwr").setLevel(logging.ERROR)
    gc.freeze()  # Flower's Bulyan collects garbage after every reply
    rows = []
    for cell in cells():
        rows.append(measured(cell))
        print(*rows[-1].values(), flush=True)
    facts = {"rounds": ROUNDS, "seeds": list(SEEDS), "clients": CLIENTS}
    made = provenance() | {"command": "python benchmarks/attackers.py"}
    RESULT.write_text(json.dumps({**facts, "made": made, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
