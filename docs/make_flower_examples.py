"""Writes docs/flower-examples.md: python docs/make_flower_examples.py

Its figures come from benchmarks/results/flower-examples.json, as benchmarks/flower_examples/run.py
measured them.
"""

import json
from pathlib import Path

from safari.report.statistics import Estimate, estimate, paired

FOLDER = Path(__file__).parent
PAGE = FOLDER / "flower-examples.md"
RESULT = FOLDER.parent / "benchmarks" / "results" / "flower-examples.json"
FEDAVG, SAFARI, SERVER = "FedAvg, half absent", "SAFARI, half absent", "server only"
CLIENTS = "SAFARI's clients alone, half absent"
RUNS = ("FedAvg, all clients", FEDAVG, CLIENTS, SAFARI, SERVER)
KINDS = {"classes": "by class", "iid": "i.i.d."}
APPS = {
    "quickstart-pytorch": "CIFAR-10",
    "quickstart-jax": "MNIST",
    "quickstart-sklearn-tabular": "iris",
}
HEAD = """# Flower's own examples

Three of the examples in Flower's repository, as they are but for their data, with and without SAFARI. `python
docs/make_flower_examples.py` writes this page from `benchmarks/results/flower-examples.json`. To measure it
yourself, with a checkout of Flower's repository in FLOWER and `flax` installed:

    python benchmarks/flower_examples/run.py FLOWER

## What has to be written

The patches are in `benchmarks/flower_examples`. They follow [On real clients](flower.md): the client app is
identified, the server's samples are loaded, the server's step is given, q = 0.8 is in the config.

"""
SCORES = """
## Accuracy

Ten clients; *half absent* means that clients 5 to 9 never connect. *By class*: of MNIST and CIFAR-10 a
client holds two of ten classes, and four classes are with absent clients alone; of iris, most of the last
species is with absent clients. *I.i.d.*: the samples are shared out at random. Accuracy is that of the model
that the app saves, in %, on a test set that neither clients nor server hold; means over the seeds, each of
which draws the samples of everyone. The last two columns are differences in points, paired over the seeds,
with a 95 % interval, bold where it excludes zero.

Rates, batches and passes are those of the apps, q and the server's steps those of the patches; nothing was
tuned. FedAvg in quickstart-jax asks 40 % of the connected clients in a round, so 2 of 5; with the patch's
`per_round=4` it is 4 of 5, with or without the server (*SAFARI's clients alone* is q = 1). A seed also draws
the coins, but for the rows of 15 rounds, which were measured first: there the server has the same 2 rounds in
every seed, and FedAvg with all clients has hardly learnt from samples by class. The server alone trains in
every round, SAFARI's server in a fifth of them. Here its 320 samples of MNIST or CIFAR-10 are as many as a
client has, and of all classes, so that nothing is gained over training on them alone. [The league](league.md)
has federations in which SAFARI beats both FedAvg and the server alone.

"""


def lines(found: dict) -> str:
    rows = {row["app"]: row for row in found["rows"]}
    table = ["| app | data | lines added | lines removed |", "|---|---|---:|---:|"]
    for name, data in APPS.items():
        table.append(f"| {name} | {data} | {rows[name]['added']} | {rows[name]['removed']} |")
    return "\n".join(table) + "\n"


def difference(row: dict, other: str) -> Estimate:
    """SAFARI minus another run, in points, with a 95 % interval over the seeds."""
    ours, theirs = ({seed: 100 * value for seed, value in enumerate(row[run])} for run in (SAFARI, other))
    found = paired(ours, theirs)
    assert found is not None
    return found


def said(found: Estimate) -> str:
    mark = "**" if found.low > 0 or found.high < 0 else ""
    return f"{mark}{found.mean:+.1f}{mark} ({found.low:+.1f} to {found.high:+.1f})"


def scores(found: dict) -> str:
    beside = ["SAFARI minus FedAvg, half absent", "SAFARI minus server only"]
    head = ["app", "samples", "rounds", "seeds", *RUNS, *beside]
    places = list(APPS), list(KINDS)

    def place(row: dict) -> tuple[int, int, int]:
        return places[0].index(row["app"]), places[1].index(row["data"]), -row["rounds"]

    rows = sorted(found["rows"], key=place)
    table = [head, ["---", "---", *["---:"] * (len(head) - 2)]]
    for row in rows:
        means = [f"{100 * estimate(row[run]).mean:.1f}" if run in row else "" for run in RUNS]
        apart = [said(difference(row, other)) for other in (FEDAVG, SERVER)]
        counts = [str(row["rounds"]), str(len(row[SERVER]))]
        table.append([row["app"], KINDS[row["data"]], *counts, *means, *apart])
    return "\n".join("| " + " | ".join(line) + " |" for line in table) + "\n" + findings(rows)


def findings(rows: list[dict]) -> str:
    """In which rows an interval excludes zero."""
    told = []
    for other, name in ((FEDAVG, "FedAvg with half of the clients absent"), (SERVER, "the server alone")):
        found = [difference(row, other) for row in rows]
        better, worse = sum(one.low > 0 for one in found), sum(one.high < 0 for one in found)
        told.append(f"beside {name}, SAFARI is better in {better} of {len(rows)} rows and worse in {worse}")
    return f"\nWhere the interval excludes zero: {'; '.join(told)}.\n"


def source(found: dict) -> str:
    made = [row["made"] for row in found["rows"]]
    commits, dates = sorted({one["commit"] for one in made}), sorted({one["date"][:10] for one in made})
    said = f"`{made[0]['command']}`, commit {', '.join(commits)}, {', '.join(dates)}, {made[0]['machine']}."
    return f"\n{said}\nThe file names the commit of Flower that each file of an app is from.\n"


def page() -> str:
    found = json.loads(RESULT.read_text())
    return HEAD + lines(found) + SCORES + scores(found) + source(found)


if __name__ == "__main__":
    PAGE.write_text(page())
