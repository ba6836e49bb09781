"""Writes docs/reproduction.md from the directories in docs/reproduction: python docs/make_reproduction.py

Each of them was made by `safari reproduce`; its spec.toml says by which command, commit,
machine and when. `safari report docs/reproduction/mnist` makes the page with curves of it.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from safari.paper.compare import Comparison
from safari.paper.directory import Reproduction, read_reproduction
from safari.paper.numbers import paper_tables
from safari.paper.protocol import DATASETS
from safari.paper.recipes import FIGURE_SIZES, figure_setting
from safari.paper.terminal import NAMES, VERDICT, comparison_columns, difference_summary
from safari.report.tables import mean_deviation

FOLDER = Path(__file__).parent / "reproduction"
LAST = 20
FIGURE_ROUNDS = (500, 1000, 2000, 3000, 4000, 5000)
HEAD = """# The paper's tables, redone

Every number of Yang et al. (ICML 2024), ours beside it. This page is written by
`python docs/make_reproduction.py` from the directories in `docs/reproduction`, which
`safari reproduce` made. Nothing in it is filled in by hand, and what is missing is shown as
missing. To redo it: `safari reproduce mnist` (or `cifar10`, `fashion-mnist`, a table's key);
`safari report DIRECTORY` gives the tables with curves and heat maps as one HTML page.

## How the numbers are made

The paper leaves much open; `safari.paper.protocol` says what was chosen, and why:

- **Partition.** Every class goes to exactly p clients, all clients are of one size (5400
  samples on MNIST, 5000 on CIFAR-10). Unless a heading says otherwise, every seed draws its own
  partition and its own excluded clients. The paper fixed one of each (`--fixed-partition`).
- **Server round.** As many steps as a client's epoch. Algorithm 1 as printed takes one step:
  the column *one step*. It does not give the paper's numbers.
- **Server set.** Drawn from the training set, and left with the clients: whatever the server
  holds, the clients are the same.
- **Score.** FedAvg: mean of the last ten evaluated rounds. SAFARI: the model that the last
  server round left. *server only* is q = 0, which the paper never shows.
- **CIFAR-10.** Two 5 x 5 convolutions (32 and 64 channels, each halved by max-pooling), a dense
  layer of 512; random crops and flips; bfloat16 products, float32 weights. Minibatch gradients
  longer than 10 are scaled down to 10: at rate 0.1 runs with p = 10 blow up otherwise, in
  bfloat16 as in tf32, between rounds 800 and 1400, long after they have reached the paper's
  accuracy.
- **Fashion-MNIST.** The paper names no model, no p, no m and no number of rounds. Of 24 settings,
  each scored at several numbers of rounds (`docs/search_fashion.py`; results in
  `docs/reproduction/fashion-search.csv`), this one comes closest: a hidden layer of 200, p = 2,
  m = 20, ten local epochs in batches of 64, 300 rounds, 400 samples a client. No setting falls
  by as much as the paper's FedAvg; its own deviations there are up to 5.8 points.
- `±` is the deviation over the seeds; gains are paired, seed by seed; `-` is the paper's "no
  difference within two points".
"""


def markdown_table(columns: dict[str, list[tuple[str, float | None]]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---:|" * len(columns)
    for row in zip(*columns.values(), strict=True):
        yield "| " + " | ".join(text for text, _ in row) + " |"


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def section(path: Path) -> Iterator[str]:
    found = read_reproduction(path)
    yield f"\n## {path.name}\n"
    yield from made(path, found)
    for key, comparisons in found.comparisons().items():
        yield f"\n### {paper_tables()[key].title}\n"
        yield f"`{key}`: {difference_summary(comparisons)}.\n"
        yield from markdown_table(comparison_columns(comparisons))
    yield from figure(found)
    yield from swings(found)
    yield from coverage(found)
    yield "\n### What the paper's text says of its numbers\n"
    rows = [
        (one.dataset, one.claim, ", ".join(number(value) for value in one.values), VERDICT[one.present])
        for one in found.effects()
    ]
    yield from plain_table(("data", "claim", "ours", "verdict"), rows)


def made(path: Path, found: Reproduction) -> Iterator[str]:
    tables = tomllib.loads((path / "spec.toml").read_text(encoding="utf-8"))
    facts = tables.get("made", {})
    yield f"{len(found.finished)} of {found.planned} runs. " + "; ".join(
        f"{name}: `{value}`" for name, value in facts.items()
    )
    yield "\n" + closeness(found)


def closeness(found: Reproduction) -> str:
    """How near the random-initialisation table is, p = 2 with s = 4 apart: there coverage is luck."""
    lines = []
    for key in ("mnist_random_init", "cifar10_random_init"):
        rows = [one for one in found.comparisons().get(key, []) if one.difference is not None]
        steady = [one for one in rows if (one.paper.p, one.paper.s) != (2, 4)]
        if steady:
            mean = sum(abs(one.difference or 0) for one in steady) / len(steady)
            worst = max(abs(one.difference or 0) for one in rows if one.paper.method == "safari")
            lines.append(
                f"`{key}`: mean absolute difference {mean:.2f} points over the {len(steady)} cells without "
                f"p = 2, s = 4 (how many classes are covered there is luck); of all cells of SAFARI, none is "
                f"further off than {worst:.2f}."
            )
    sizes: list[Comparison] = [
        one
        for one in found.comparisons().get("mnist_server_size", [])
        if one.setting.p == 1 and one.accuracy is not None and one.paper_accuracy is not None
    ]
    if sizes:
        apart = ", ".join(f"{one.accuracy.mean - one.paper_accuracy:+.2f}" for one in sizes)
        lines.append(f"`mnist_server_size` at p = 1, accuracies (FedAvg plus gain): {apart} points.")
    return " ".join(lines)


def figure(found: Reproduction) -> Iterator[str]:
    """The CIFAR-10 curves at some rounds: what the server's last round left."""
    runs = {size: list(found.results.runs(figure_setting(size)).values()) for size in FIGURE_SIZES}
    if not any(runs.values()):
        return
    yield "\n### CIFAR-10, p = 1, s = 4, q = 0.4, by server samples (the paper's figure)\n"
    yield "Accuracy of the model that the last server round left. The paper gives this as a plot only.\n"
    rows = []
    for size, some in runs.items():
        curves = [dict(zip(run["curve_round"], run["curve_accuracy"], strict=True)) for run in some]
        means = [
            f"{100 * sum(curve[at] for curve in curves) / len(curves):.2f}" if curves else "missing"
            for at in FIGURE_ROUNDS
        ]
        rows.append((str(size), str(len(some)), *means))
    yield from plain_table(("n_T", "runs", *(f"round {at}" for at in FIGURE_ROUNDS)), rows)


def coverage(found: Reproduction) -> Iterator[str]:
    rows = [
        (NAMES[method], str(covered), str(one.count), mean_deviation(one.mean, one.deviation))
        for method, covered, one in found.results.coverage()
    ]
    if rows:
        yield "\n### MNIST, p = 2, s = 4, by the classes that are covered\n"
        yield "Excluded clients chosen so that the other six hold so many classes together.\n"
        yield from plain_table(("method", "classes covered", "runs", "accuracy"), rows)


def swings(found: Reproduction) -> Iterator[str]:
    """How far single rounds of FedAvg lie apart near the end, beside the paper's single numbers."""
    rows = []
    for one in found.comparisons().get("mnist_m", []):
        runs = found.results.runs(one.setting).values()
        if one.paper.method == "fedavg" and one.setting.p in (5, 2, 1) and runs:
            last = [100 * value for run in runs for value in run["curve_accuracy"][-LAST:]]
            inside = min(last) <= (one.paper.mean or 0) <= max(last)
            numbers = (f"{min(last):.1f} to {max(last):.1f}", f"{one.paper.mean}", "yes" if inside else "no")
            rows.append((str(one.setting.m), str(one.setting.p), *numbers))
    if rows:
        yield f"\n### How much single rounds swing: FedAvg on MNIST, s = 4, the last {LAST} rounds\n"
        yield (
            "With few clients a round, each of few classes, a single round's accuracy is luck. The paper's "
            "numbers by m are single runs, and it does not say of which round.\n"
        )
        yield from plain_table(("m", "p", "ours, all runs", "paper", "inside"), rows)


def number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.2f}"


def reproduction() -> str:
    folders = sorted(path for path in FOLDER.iterdir() if (path / "spec.toml").is_file())
    missing = [
        name for name in DATASETS if not any(name in read_reproduction(path).datasets for path in folders)
    ]
    lines = [HEAD, *(line for path in folders for line in section(path))]
    if missing:
        lines.append(f"\n## {', '.join(missing)}\n\nMissing: no results are committed yet.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (FOLDER.parent / "reproduction.md").write_text(reproduction(), encoding="utf-8")
