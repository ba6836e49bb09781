"""Which reading of a server round fits the paper's CIFAR-10 numbers at all three sizes of the server set?

python docs/search_server_size.py run OUT [READING ...]   one sweep of three runs a reading (on a GPU)
python docs/search_server_size.py table OUT FILE.csv      their scores

p = 1, s = 4, m = 5, q = 0.8, seed 0. The committed docs/reproduction/server-size-search.csv also has two
changes that no spec can express: no crops and flips in server rounds ("server not augmented"), and weight
decay of 1e-3 in every loss. Each is a patch of a few lines over the commit that its rows name.
"""

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

from safari.experiment.sweep import SweepSpec, new_sweep
from safari.paper.protocol import Setting, cell_of

SIZES = (500, 5000, 10_000)
ROUNDS = 1500
READINGS: dict[str, dict[str, Any]] = {
    "match": {},
    "1 step": {"algorithm.server.steps": 1},
    "2 steps": {"algorithm.server.steps": 2},
    "5 steps": {"algorithm.server.steps": 5},
    "epoch": {"algorithm.server.steps": "epoch"},
    "match, rate 0.01": {"algorithm.server.rate": 0.01},
    "match, rate 0.03": {"algorithm.server.rate": 0.03},
    "match, batch 50": {"algorithm.server.batch_size": 50},
    "match, batch 50, rate 0.01": {"algorithm.server.batch_size": 50, "algorithm.server.rate": 0.01},
    "match, no augmentation": {"data.augment": False},
    "1 step, no augmentation": {"algorithm.server.steps": 1, "data.augment": False},
}


def candidate(reading: str) -> SweepSpec:
    settings = [
        {**cell_of(Setting("cifar10", "safari", 1, 4, 5, 0.8, size), 0).settings, **READINGS[reading]}
        for size in SIZES
    ]
    return SweepSpec({}, tuple({**one, "train.rounds": ROUNDS} for one in settings))


def scores(folder: Path) -> list[dict[str, Any]]:
    rows = pl.concat([pl.read_parquet(file) for file in sorted(folder.glob("finished/*.parquet"))])
    return [
        {
            "reading": folder.name,
            "n_T": json.loads(row["settings"])["data.server.samples"],
            "rounds": row["rounds"],
            "last_server_model": round(100 * row["accuracy"], 2),
            "mean_last10": round(100 * sum(row["curve_accuracy"][-10:]) / 10, 2),
            "commit": row["commit"],
        }
        for row in rows.iter_rows(named=True)
    ]


def main() -> None:
    match sys.argv[1:]:
        case ["run", out, *names]:
            for name in names or READINGS:
                new_sweep(candidate(name), Path(out) / name, lambda progress: None, {})
                print(name, flush=True)
        case ["table", out, file]:
            rows = [row for folder in sorted(Path(out).iterdir()) for row in scores(folder)]
            pl.DataFrame(rows).write_csv(file)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
