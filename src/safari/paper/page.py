"""The report page of a reproduction: the paper's tables beside ours."""

from typing import Any

from safari.paper.compare import Comparison, Results
from safari.paper.directory import Reproduction
from safari.paper.effects import SIZES, Effect
from safari.paper.numbers import paper_tables
from safari.paper.protocol import DATASETS, Method, Setting
from safari.paper.recipes import FIGURE, FIGURE_SIZES, figure_setting
from safari.paper.terminal import NAMES, VERDICT, comparison_columns, difference_summary
from safari.report.page import Curves, Entry, Heat, Line, Page, Table, Text
from safari.report.statistics import Estimate
from safari.report.sweep_figures import PERCENT, ROUNDS, line_of
from safari.report.tables import mean_deviation

CLASSES, EXCLUDED, PROBABILITIES = (10, 5, 2, 1), (0, 2, 4), (0.4, 0.6, 0.8)
SHOWN: tuple[Method, ...] = ("fedavg", "server-only", "safari", "literal")


def reproduction_page(found: Reproduction, spec: str, facts: dict[str, str]) -> Page:
    """All that a reproduction has so far; what is missing is shown as missing."""
    blocks: list[Any] = [_intro(found)]
    blocks += [_comparison(key, rows) for key, rows in found.comparisons().items()]
    if "mnist" in found.datasets and found.results.coverage():
        blocks.append(_coverage(found.results))
    effects = [one for one in found.effects() if one.present is not None or found.whole]
    if effects:
        blocks.append(_effects(effects))
    for dataset in ("mnist", "cifar10"):
        if dataset in found.datasets:
            heats = [heat for heat in _heats(dataset, found.results) if _known(heat) > 2]
            blocks += [*heats, *_curves(dataset, found.results)]
    if FIGURE in found.tables:
        blocks += _figure(found.results)
    title = "The paper's tables redone: " + ", ".join(sorted(found.datasets))
    subtitle = f"{len(found.finished)} of {found.planned} runs finished"
    return Page(title, subtitle, tuple(blocks), spec, facts)


def _intro(found: Reproduction) -> Text:
    protocol = (
        "one partition and one set of excluded clients for all seeds, as the paper had it"
        if found.results.fixed_partition
        else "every seed draws its own partition and excluded clients"
    )
    missing = found.planned - len(found.finished)
    return Text(
        "about", "How to read this",
        (
            "Each number of Yang et al. (ICML 2024), ours beside it. Accuracies are percent of the test set, "
            "gains are points over FedAvg under the same seed. Differences are ours minus the paper's.",
            f"Protocol: {protocol}. FedAvg is scored by the mean of the last ten evaluated rounds, SAFARI by "
            "the model that the last server round left. 'Server only' is q = 0; 'one (server) step' "
            "is Algorithm 1 as printed. The paper shows neither.",
            f"{missing} of {found.planned} runs are missing." if missing else "No run is missing.",
        ),
    )  # fmt: skip


def _comparison(key: str, comparisons: list[Comparison]) -> Table:
    table = paper_tables()[key]
    columns = comparison_columns(comparisons)
    rows = tuple(
        tuple(_shaded(name, *pair) for name, pair in zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    )
    unit = "Points over FedAvg" if table.metric == "gain" else "Accuracy in %"
    caption = f"{unit}; {difference_summary(comparisons)}."
    if table.metric == "gain":
        caption += " 'accuracy' is SAFARI's own, beside the paper's FedAvg plus its gain."
    return Table(key, table.title, caption, tuple(columns), rows)


def _shaded(name: str, text: str, value: float | None) -> Entry:
    return Entry(text, value, shade=value if name == "difference" else None)


def _coverage(results: Results) -> Table:
    rows = tuple(
        (
            Entry(NAMES[method]),
            Entry(str(covered), covered),
            Entry(str(found.count), found.count),
            _entry(found),
        )
        for method, covered, found in results.coverage()
    )
    caption = (
        "Six clients of two classes each may hold seven to ten of the ten classes together; how many is "
        "random, and decides what FedAvg can reach. The paper's 77.8 % is near nine."
    )
    columns = ("method", "classes covered", "runs", "accuracy in %")
    return Table("coverage", "MNIST, p = 2, s = 4, by the classes that are covered", caption, columns, rows)


def _effects(effects: list[Effect]) -> Table:
    rows = tuple(
        (
            Entry(one.dataset),
            Entry(one.claim),
            Entry(", ".join("missing" if value is None else f"{value:.2f}" for value in one.values)),
            Entry(VERDICT[one.present]),
        )
        for one in effects
    )
    caption = "What the paper's text says about its numbers, and whether ours show it."
    return Table("effects", "Effects", caption, ("data", "claim", "ours", "verdict"), rows)


def _heats(dataset: str, results: Results) -> list[Heat]:
    most = DATASETS[dataset].server_samples

    def accuracy(method: Any, p: int, s: int, q: float, size: int) -> float | None:
        found = results.accuracy(Setting(dataset, method, p, s, 5, q, size))
        return None if found is None else found.mean

    by_method = [
        _heat(
            f"{dataset}-{method}", f"{dataset}: {NAMES[method]} by s and p", "p, classes per client",
            "s, excluded clients", CLASSES, EXCLUDED,
            [[accuracy(method, p, s, 0.8, most) for p in CLASSES] for s in EXCLUDED],
        )
        for method in ("fedavg", "safari")
    ]  # fmt: skip
    by_q = _heat(
        f"{dataset}-q", f"{dataset}: SAFARI by q and n_T (p = 1, s = 4)", "n_T, server samples",
        "q, client probability", SIZES[dataset], PROBABILITIES,
        [[accuracy("safari", 1, 4, q, size) for size in SIZES[dataset]] for q in PROBABILITIES],
    )  # fmt: skip
    return [*by_method, by_q]


def _known(heat: Heat) -> int:
    return sum(value is not None for row in heat.values for value in row)


def _heat(key: str, title: str, x_label: str, y_label: str, x: Any, y: Any, values: Any) -> Heat:
    known = [value for row in values for value in row if value is not None]
    span = f"from {min(known):.1f} to {max(known):.1f} %" if known else "none yet"
    caption = "Mean test accuracy in %; missing where the paper has no number or the run is not finished."
    return Heat(
        f"heat-{key}", title, caption, f"Heat map of test accuracy, {span}.", x_label, y_label,
        tuple(f"{one:g}" for one in x), tuple(f"{one:g}" for one in y), tuple(tuple(row) for row in values),
    )  # fmt: skip


def _curves(dataset: str, results: Results) -> list[Curves]:
    """The four methods at p = 1, s = 4."""
    most = DATASETS[dataset].server_samples
    settings = {NAMES[method]: Setting(dataset, method, 1, 4, 5, 0.8, most) for method in SHOWN}
    title = f"{dataset}: accuracy over the rounds (p = 1, s = 4, q = 0.8, n_T = {most})"
    return _drawn(f"curves-{dataset}", title, settings, results)


def _figure(results: Results) -> list[Curves]:
    settings = {f"n_T = {size}": figure_setting(size) for size in FIGURE_SIZES}
    title = "The paper's figure: SAFARI on CIFAR-10 by server samples (s = 4, p = 1, q = 0.4)"
    return _drawn("figure", title, settings, results)


def _drawn(key: str, title: str, settings: dict[str, Setting], results: Results) -> list[Curves]:
    lines: list[Line] = []
    for label, setting in settings.items():
        runs = [run for run in results.runs(setting).values() if run["diverged_at"] is None]
        if runs:
            lines.append(line_of(label, runs))
    if not lines:
        return []
    ends = "; ".join(f"{line.label}: {line.mean[-1]:.1f} %" for line in lines)
    missing = [label for label in settings if label not in {line.label for line in lines}]
    caption = "The delivered model: mean over the seeds, band of one deviation."
    caption += f" Missing: {', '.join(missing)}." if missing else ""
    alt = f"Test accuracy over the rounds. At the end, {ends}."
    return [Curves(key, title, caption, alt, ROUNDS, PERCENT, tuple(lines))]


def _entry(found: Estimate | None) -> Entry:
    if found is None:
        return Entry("missing")
    hint = "" if found.count < 2 else f"95 % interval {found.low:.2f} to {found.high:.2f}, {found.count} runs"
    return Entry(
        mean_deviation(found.mean, found.deviation if found.count > 1 else None), found.mean, hint=hint
    )
