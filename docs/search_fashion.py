"""Which protocol comes closest to the paper's Fashion-MNIST table? It says M = 150 and no more.

    python docs/search_fashion.py run runs/search p2m20E10 p5m10E10 d0.1m10E10 p2mallE1 p5m20E5n60
    python docs/search_fashion.py table runs/search docs/reproduction/fashion-search.csv

A candidate is named by its classes per client p (or the Dirichlet alpha d), clients a round m,
local epochs E and, where it is not 400, the samples of a client n (then in batches of 10).
Every candidate is FedAvg over s = 0, 30, 60, 90, 120; `table` scores it as the paper's table is
scored, at several numbers of rounds.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from safari.experiment.sweep import SweepSpec, new_sweep
from safari.paper.numbers import paper_tables

SEEDS, ROUNDS, EVERY = 2, 600, 10
EXCLUDED = (0, 30, 60, 90, 120)
SCORED_AT = (150, 300, 450, 600, 1000)
NAME = re.compile(r"(?P<split>[pd])(?P<level>[\d.]+)m(?P<m>\d+|all)E(?P<epochs>\d+)(n(?P<samples>\d+))?")


def candidate(name: str) -> SweepSpec:
    parts = NAME.fullmatch(name)
    if parts is None:
        raise SystemExit(f"{name}: no candidate; the name of one looks like p2m20E10")
    samples = int(parts["samples"] or 400)
    partition: dict[str, Any] = {"clients": 150, "samples_per_client": samples}
    if parts["split"] == "p":
        partition["classes_per_client"] = int(parts["level"])
    else:
        partition |= {"name": "dirichlet", "alpha": float(parts["level"])}
    clients = {"local_epochs": int(parts["epochs"]), "batch_size": 64 if samples == 400 else 10}
    base = {
        "data": {"source": "fashion-mnist", "partition": partition},
        "model": {"name": "mlp"},
        "algorithm": {"name": "fedavg", "clients": clients},
        "train": {"rounds": ROUNDS, "evaluate_every": EVERY},
    }
    cells = tuple(
        {
            "train.seed": seed,
            "participation.excluded": s,
            "participation.per_round": 150 - s if parts["m"] == "all" else int(parts["m"]),
        }
        for seed in range(SEEDS)
        for s in EXCLUDED
    )
    return SweepSpec(base, cells)


def scores(folder: Path) -> Iterator[dict[str, Any]]:
    """A row for every number of rounds at which the candidate in `folder` can be scored."""
    files = sorted(folder.glob("finished/*.parquet"))
    runs = [
        run for file in files for run in pl.read_parquet(file, columns=["settings", "curve_accuracy"]).rows()
    ]
    runs = [(json.loads(settings), curve) for settings, curve in runs]
    runs = [run for run in runs if run[0]["algorithm.name"] == "fedavg"]
    first = runs[0][0]
    everyone = len({settings["participation.per_round"] for settings, _ in runs}) > 1
    paper = {row.s: row.mean for row in paper_tables()["fashion_s"].rows}
    for rounds in SCORED_AT:
        last = rounds // EVERY
        if last > len(runs[0][1]):
            continue
        ours = {}
        for s in EXCLUDED:
            found = [
                curve[last - 10 : last] for settings, curve in runs if settings["participation.excluded"] == s
            ]
            ours[s] = 100 * sum(map(sum, found)) / max(sum(map(len, found)), 1)
        yield {
            "p": first.get("data.partition.classes_per_client"),
            "dirichlet": first.get("data.partition.alpha"),
            "m": "all" if everyone else str(first["participation.per_round"]),
            "local_epochs": first.get("algorithm.clients.local_epochs", 1),
            "batch_size": first.get("algorithm.clients.batch_size", 64),
            "samples_per_client": first.get("data.partition.samples_per_client", 400),
            "rounds": rounds,
            "seeds": len(runs) // len(EXCLUDED),
            **{f"s{s}": round(value, 2) for s, value in ours.items()},
            "mean_difference": round(sum(abs(ours[s] - paper[s]) for s in EXCLUDED) / len(EXCLUDED), 2),
        }


def main() -> None:
    match sys.argv[1:]:
        case ["run", out, *names]:
            for name in names:
                new_sweep(candidate(name), Path(out) / name, lambda progress: None, {})
                print(name, flush=True)
        case ["table", out, file]:
            rows = [row for folder in sorted(Path(out).iterdir()) for row in scores(folder)]
            pl.DataFrame(rows, infer_schema_length=None).sort("mean_difference").write_csv(file)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
