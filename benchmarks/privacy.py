"""What privacy costs: accuracy at epsilon 1, 2, 4 and 8 for FedAvg, SAFARI and the server alone.

python benchmarks/privacy.py [--seeds 3] [--settings digits,mnist] [--rounds 60]

It writes docs/privacy/privacy.csv and docs/privacy/privacy.png. Every client holds one class; the clients of
four of the ten classes never come. All others are asked in every round, so nothing amplifies, and two
federations are neighbours if they differ in whether one client exists. The noise is calibrated to the number
of client rounds: SAFARI with q = 0.5 has half of them and needs less. Its coins depend on nobody's samples,
so that their number may be known. No rate was tuned.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
import polars as pl
from dp_accounting import dp_event
from dp_accounting.mechanism_calibration import ExplicitBracketInterval, calibrate_dp_mechanism
from dp_accounting.rdp import RdpAccountant
from matplotlib.figure import Figure

import safari
from safari.engine.privacy import ORDERS
from safari.experiment.versions import provenance
from safari.randomness import streams_of

FOLDER = Path(__file__).parents[1] / "docs" / "privacy"
EPSILONS = (1.0, 2.0, 4.0, 8.0)
MISSING = (6, 7, 8, 9)
Q = 0.5


@dataclass(frozen=True)
class Setting:
    """A federation, and how long it is trained."""

    source: str
    clients: int
    server: int
    rounds: int
    local: safari.FedAvg
    clip: float


SETTINGS = {
    "digits": Setting(
        "digits", 200, 50, 60, safari.FedAvg(local_rate=0.1, local_epochs=2, batch_size=2), clip=0.3
    ),
    "mnist": Setting("mnist", 1000, 500, 60, safari.FedAvg(local_rate=0.05, batch_size=10), clip=0.3),
}
SERVER = safari.ServerSGD(rate=0.1, steps=10, batch_size=50)


def client_rounds(q: float, rounds: int, seed: int) -> int:
    """How many rounds of a run the coins make the clients'."""
    key = streams_of(seed).coin
    coins = jax.vmap(lambda number: jax.random.uniform(jax.random.fold_in(key, number)))(np.arange(rounds))
    return int((coins < q).sum())


def noise_for(epsilon: float, delta: float, rounds: int) -> float:
    """The noise multiplier with which so many rounds spend epsilon."""
    return calibrate_dp_mechanism(
        lambda: RdpAccountant(ORDERS),
        lambda noise: dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(noise), rounds),
        epsilon, delta, ExplicitBracketInterval(0.1, 1000.0),
    )  # fmt: skip


def runs_of(setting: Setting, seed: int):
    """The name, the epsilon (None: not private, 0: no client is asked) and the algorithm of every run."""
    yield "server-only", 0.0, safari.ServerOnly(server=SERVER)
    for name, q in (("fedavg", 1.0), ("safari", Q)):
        yield name, None, safari.Safari(setting.local, SERVER, q=q)
        for epsilon in EPSILONS:
            rounds = client_rounds(q, setting.rounds, seed)
            noise = noise_for(epsilon, setting.clients**-1.1, rounds)
            private = safari.Private(setting.local, clip=setting.clip, noise=noise)
            yield name, epsilon, safari.Safari(private, SERVER, q=q)


def measured(name: str, setting: Setting, seed: int) -> list[dict]:
    federation = safari.federate(
        setting.source, safari.Classes(setting.clients), safari.ServerSet(setting.server), seed=seed
    )
    labels = np.asarray(federation.dataset.y)
    absent = [i for i in range(federation.size) if labels[federation.held_by(i)[0]] in MISSING]
    rows = []
    for method, epsilon, algorithm in runs_of(setting, seed):
        began = time.perf_counter()
        result = safari.train(
            federation, algorithm, participation=safari.Participation(excluded=absent), rounds=setting.rounds,
            seed=seed, evaluate_every=setting.rounds,
        )  # fmt: skip
        summary = result.summary()
        row = {
            "setting": name, "method": method, "seed": seed, "target_epsilon": epsilon,
            "epsilon": summary.get("epsilon"), "delta": summary.get("delta"),
            "client_rounds": summary["client_rounds"], "rounds": setting.rounds, "clip": setting.clip,
            "noise": result.history["noise"].drop_nulls().first() if "noise" in result.history else None,
            "accuracy": result.accuracy,
        }  # fmt: skip
        rows.append(row)
        seconds = time.perf_counter() - began
        print(f"{name} {method} epsilon {epsilon}: {result.accuracy:.4f} ({seconds:.0f} s)", flush=True)
    return rows


def draw(table: pl.DataFrame) -> Figure:
    """Accuracy against epsilon, a panel for each setting; without privacy dashed."""
    settings = table["setting"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(4.6 * len(settings), 3.6), layout="constrained")
    for place, name in enumerate(settings, start=1):
        axes = figure.add_subplot(1, len(settings), place)
        for colour, method in (("tab:blue", "fedavg"), ("tab:orange", "safari")):
            mine = table.filter((pl.col("setting") == name) & (pl.col("method") == method))
            by_epsilon = mine.drop_nulls("target_epsilon").group_by("target_epsilon", maintain_order=True)
            accuracy = pl.col("accuracy")
            spread = by_epsilon.agg(mean=accuracy.mean(), std=accuracy.std().fill_null(0))
            label = "SAFARI, q = 0.5" if method == "safari" else "FedAvg"
            points = (spread["target_epsilon"], 100 * spread["mean"], 100 * spread["std"])
            axes.errorbar(*points, color=colour, label=label, marker="o", capsize=3)
            free = mine.filter(pl.col("target_epsilon").is_null())["accuracy"].mean()
            axes.axhline(100 * free, color=colour, linestyle="--", linewidth=1)
        alone = table.filter((pl.col("setting") == name) & (pl.col("method") == "server-only"))
        axes.axhline(100 * alone["accuracy"].mean(), color="tab:green", label="server only")
        axes.set_xscale("log", base=2)
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.set(title=name, xlabel="epsilon (dashed: not private)", ylabel="test accuracy, %")
        axes.grid(alpha=0.3)
    figure.axes[0].legend(loc="best", fontsize="small")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", default="digits,mnist")
    parser.add_argument("--rounds", type=int, help="instead of those of the setting")
    given = parser.parse_args()
    rows = []
    for name in given.settings.split(","):
        setting = SETTINGS[name]
        setting = replace(setting, rounds=given.rounds or setting.rounds)
        for seed in range(given.seeds):
            rows += measured(name, setting, seed)
    table = pl.DataFrame(rows, infer_schema_length=None)
    FOLDER.mkdir(exist_ok=True)
    table.write_csv(FOLDER / "privacy.csv", float_precision=4)
    made = {**provenance(), "command": f"python {' '.join(sys.argv)}"}
    (FOLDER / "made.json").write_text(json.dumps(made, indent=1) + "\n")
    draw(table).savefig(FOLDER / "privacy.png", dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    main()
