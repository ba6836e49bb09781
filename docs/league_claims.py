"""The part of docs/league.md that tries what papers claim: FLTrust under attack, and a little shared data."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from make_performance import made as made_by

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
FLTRUST, SHARING = RESULTS / "fltrust.json", RESULTS / "sharing.json"
ATTACKS = {
    "none": "no attack",
    "labels": "labels turned around",
    "reversed": "update turned around",
    "scaled": "the same, 100 times as long",
}
ABOUT_FLTRUST = """
## What two papers claim, tried

**FLTrust** under attack, in the federation of its paper (MNIST-0.5): {clients} clients in ten groups,
{attackers} of them attackers, {root} samples at the server. A perceptron of 64 hidden units stands where the
paper has a convolutional network, and there are {rounds} rounds for its 2,000. The paper claims that under
attack FLTrust errs about as often as FedAvg without one. Its attacks that adapt to the rule, and the
backdoor, are not tried.

"""
ABOUT_SHARING = """
**Data sharing**: Zhao et al. claim about 30 points on CIFAR-10 if {clients} clients of one class each also
train on a set that all share, as large as 5 % of their samples. Here a client has {samples} samples for the
paper's 5,000, the network is small, and there are {rounds} rounds. The last row is FedAvg on samples shared
out at random.

"""


def claims() -> Iterator[str]:
    """The section."""
    found = json.loads(FLTRUST.read_text())
    yield ABOUT_FLTRUST.format(**found)
    rows = {(row["method"], row["attack"]): row for row in found["rows"]}
    errors = [
        (method, *(error_of(rows[method, attack]) for attack in ATTACKS)) for method in ("fedavg", "fltrust")
    ]
    yield from table(("test error, %", *ATTACKS.values()), errors)
    yield f"{made_by(found['made'])}\n"
    found = json.loads(SHARING.read_text())
    yield ABOUT_SHARING.format(**found)
    yield from table(
        ("", "accuracy, %", "minus FedAvg", "95 % interval"), [gained(row) for row in found["rows"]]
    )
    yield f"{made_by(found['made'])}\n"


def error_of(row: dict) -> str:
    return mean_of(row["error"], row["deviation"])


def gained(row: dict) -> tuple[str, str, str, str]:
    score, apart = row["accuracy"], row["over_fedavg"]
    shown = (row["run"], mean_of(score["mean"], score["deviation"]))
    if row["run"] == "FedAvg":
        return (*shown, "", "")
    return (*shown, f"{apart['mean']:+.1f}", f"{apart['low']:+.1f} to {apart['high']:+.1f}")


def mean_of(mean: float, deviation: float) -> str:
    return f"{mean:.1f} ± {deviation:.1f}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Iterator[str]:
    if caption:
        yield f"{caption}:\n\n"
    yield f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}\n"
    for row in rows:
        yield f"| {' | '.join(row)} |\n"
    yield "\n"
