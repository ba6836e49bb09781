"""Sweeps with classes of a user's own, to be trained in any place; and whether two directories are equal."""

from pathlib import Path

import polars as pl

SPEC = """
[data.partition]
samples_per_client = 100
[participation]
excluded = 4
per_round = 5
availability = {name = "extra/when.py:Often"}
[algorithm.clients]
name = "mine:Patient"
batch_size = 10
[train]
rounds = 30
[sweep]
seeds = 2
[sweep.grid]
algorithm.clients.patience = [1.0, 0.5]
"""
MINE = """
import safari
from helpers import half

class Patient(safari.FedAvg):
    patience: float = 1.0

    def direction(self, gradient, params, start, broadcast, own):
        return half(super().direction(gradient, params, start, broadcast, own), self.patience)
"""
HELPERS = """
import jax

def half(tree, patience):
    return jax.tree.map(lambda leaf: leaf * patience / 2, tree)
"""
WHEN = """
import safari

class Often(safari.Bernoulli):
    pass
"""


def write_own(folder: Path, rounds: int = 30) -> None:
    """A spec of four runs, and the modules that it names."""
    (folder / "extra").mkdir()
    files = {"mine.py": MINE, "helpers.py": HELPERS, "extra/when.py": WHEN}
    for name, text in {**files, "sweep.toml": SPEC.replace("rounds = 30", f"rounds = {rounds}")}.items():
        (folder / name).write_text(text)


def numbers(folder: Path) -> pl.DataFrame:
    """The results of a sweep, all but how long they took."""
    results = pl.read_parquet(folder / "results.parquet")
    return results.drop(name for name in results.columns if "seconds" in name)


def names(folder: Path) -> set[str]:
    """The files of a sweep, without the checksums in their names."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path.with_name(path.name.partition(".")[0])) for path in files}


def assert_equal(one: Path, two: Path) -> None:
    assert numbers(one).equals(numbers(two))
    assert (one / "table.csv").read_bytes() == (two / "table.csv").read_bytes()
    assert names(one) == names(two)
