"""What sharing a little data gains: python benchmarks/sharing.py

Zhao et al. (2018) claim about 30 points of accuracy on CIFAR-10 if each of ten clients, who hold one class
each, also trains on a set that all share, as large as 5 % of their samples together. This is a coarse check:
500 samples a client where the paper has 5,000, a small network, 60 rounds of one pass; everybody takes part
in every round. Beside it stands FedAvg on the same samples shared out at random. Nothing was tuned. Needs
CIFAR-10 (SAFARI_DATA); writes benchmarks/results/sharing.json.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

import safari
from safari.experiment.versions import provenance
from safari.report.statistics import estimate, paired

RESULT = Path(__file__).parent / "results" / "sharing.json"
CLIENTS, SAMPLES, SHARED, ROUNDS, SEEDS = 10, 500, 250, 60, range(3)
LOCAL = {"local_rate": 0.1, "batch_size": 50, "clip": 10.0}
ONE_CLASS = safari.Classes(clients=CLIENTS, classes_per_client=1, samples_per_client=SAMPLES)
RUNS = {
    "FedAvg": (ONE_CLASS, safari.FedAvg(**LOCAL)),
    "data sharing": (ONE_CLASS, safari.DataSharing(share=1.0, **LOCAL)),
    "FedAvg, shared out at random": (
        safari.IID(clients=CLIENTS, samples_per_client=SAMPLES),
        safari.FedAvg(**LOCAL),
    ),
}


def accuracy(name: str, seed: int) -> float:
    """Test accuracy after the last round, in per cent."""
    partition, algorithm = RUNS[name]
    federation = safari.federate("cifar10", partition, safari.ServerSet(SHARED), augment=False, seed=seed)
    model = safari.CNN(channels=(16, 32), kernel=3, hidden=64)
    result = safari.train(
        federation, algorithm, model=model, rounds=ROUNDS, seed=seed, evaluate_every=ROUNDS, deliver="last"
    )
    return 100 * result.accuracy


def main() -> None:
    found = {name: {seed: round(accuracy(name, seed), 2) for seed in SEEDS} for name in RUNS}
    rows = []
    for name, scores in found.items():
        apart = paired(scores, found["FedAvg"])
        assert apart is not None
        rows.append(
            {"run": name, "accuracy": asdict(estimate(list(scores.values()))), "over_fedavg": asdict(apart)}
        )
        print(rows[-1], flush=True)
    made = {**provenance(), "command": "python benchmarks/sharing.py", "load": os.getloadavg()[0]}
    facts = {"clients": CLIENTS, "samples": SAMPLES, "shared": SHARED, "rounds": ROUNDS, "seeds": len(SEEDS)}
    RESULT.write_text(json.dumps({**facts, "rows": rows, "made": made}, indent=1) + "\n")


if __name__ == "__main__":
    main()
