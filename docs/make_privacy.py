"""Writes docs/privacy.md from docs/privacy/privacy.csv: python docs/make_privacy.py"""

import json
from pathlib import Path

import polars as pl

from safari.report.statistics import Estimate, estimate, paired

HERE = Path(__file__).parent
DATA = HERE / "privacy" / "privacy.csv"
NAMES = {"digits": "digits", "mnist": "MNIST"}
START = """# What privacy costs

`Private(clients, clip, noise)` clips what every client sends and adds noise to the sum. Epsilon bounds what
anybody who sees every model can learn about whether one client exists. Rounds in which the server trains on
its own samples look at no client and spend nothing. SAFARI with q = 0.5 has half as many rounds to make
private, and needs less noise for the same epsilon.

![Test accuracy against epsilon on digits and MNIST: SAFARI far above FedAvg](privacy/privacy.png)

"""
SETTING = """`python benchmarks/privacy.py` makes the figure and `docs/privacy/privacy.csv` (commit
{commit}, {date}); `python docs/make_privacy.py` makes this page from the table. Every client holds one class;
the clients of four of the ten classes never come, and all others are asked in every round. There are 200
clients and 50 server samples on digits, 1000 clients and 500 server samples on MNIST, 60 rounds, and delta =
1 / clients^1.1. No rate was tuned, and {seeds} seeds are few. Accuracies are percent of the test set. The
last column is SAFARI less server-only training, paired over the seeds, with the 95 % interval.
"""
END = """
## What follows

- FedAvg pays for privacy and stays under its ceiling: nobody who takes part holds four of the classes.
- SAFARI pays less, and its server rounds bring the missing classes.
- {beaten}
- The epsilon is that of the clients. The server trains on its own samples without noise: whoever sees the
  model may learn something about them.

How the accountant counts: the docstring of [`Private`](methods.md#private).
"""
HEAD = "| epsilon | FedAvg | SAFARI, q = 0.5 | server only | SAFARI - server only |"


def page() -> str:
    table = pl.read_csv(DATA)
    made = json.loads(DATA.with_name("made.json").read_text())
    seeds = table["seed"].n_unique()
    parts = [START, SETTING.format(commit=made["commit"], date=made["date"][:10], seeds=words(seeds))]
    verdicts = []
    for name in table["setting"].unique(maintain_order=True):
        of_setting = table.filter(pl.col("setting") == name)
        parts.append(f"\n## {NAMES[name]}\n\n{HEAD}\n|---|---|---|---|---|\n")
        epsilons = [None, *sorted(set(of_setting["target_epsilon"].drop_nulls()) - {0.0}, reverse=True)]
        for epsilon in epsilons:
            cells = {
                method: scores(of_setting, method, epsilon) for method in ("fedavg", "safari", "server-only")
            }
            apart = paired(cells["safari"], cells["server-only"])
            assert apart is not None
            verdicts.append((name, epsilon, apart))
            shown = " | ".join(mean(cells[method]) for method in cells)
            parts.append(
                f"| {'not private' if epsilon is None else f'{epsilon:g}'} | {shown} | {interval(apart)} |\n"
            )
    return "".join([*parts, END.format(beaten=beaten(verdicts))])


def beaten(verdicts: list[tuple[str, float | None, Estimate]]) -> str:
    """Where privacy leaves no proof that clients help."""
    private = [one for one in verdicts if one[1] is not None]
    sure = [one for one in private if one[2].low > 0]
    below = [
        f"{NAMES[name]} at epsilon {epsilon:g} ({apart.mean:+.1f})"
        for name, epsilon, apart in private
        if apart.mean < 0
    ]
    text = (
        f"SAFARI beats server-only training by an interval above zero in {len(sure)} of the {len(private)} "
        "private cells. Where it does not, the clients may not be worth their noise."
    )
    return text + (f" It is below server-only training on {', '.join(below)}." if below else "")


def scores(table: pl.DataFrame, method: str, epsilon: float | None) -> dict[int, float]:
    """Accuracy by seed, in per cent; the server alone spends nothing, whatever is asked."""
    epsilon = 0.0 if method == "server-only" else epsilon
    wanted = pl.col("target_epsilon").is_null() if epsilon is None else pl.col("target_epsilon") == epsilon
    found = table.filter((pl.col("method") == method) & wanted)
    return {row["seed"]: 100 * row["accuracy"] for row in found.iter_rows(named=True)}


def mean(found: dict[int, float]) -> str:
    known = estimate(list(found.values()))
    return f"{known.mean:.1f} ± {known.deviation:.1f}"


def interval(found: Estimate) -> str:
    return f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def words(count: int) -> str:
    return {2: "two", 3: "three", 4: "four", 5: "five"}.get(count, str(count))


if __name__ == "__main__":
    (HERE / "privacy.md").write_text(page())
