"""Which runs redo which tables."""

from collections.abc import Iterable, Sequence

import jax
import numpy as np

from safari.data import Federation
from safari.errors import InputError, check_count
from safari.experiment.sweep import Cell, SweepSpec
from safari.paper.numbers import PaperRow, PaperTable, paper_tables
from safari.paper.protocol import DATASETS, Method, Setting, cell_of
from safari.randomness import host_stream

FIGURE = "cifar10_curves"
FIGURE_SIZES = (500, 5000, 10_000)
COVERAGE = "mnist_coverage"
COMPANIONS: tuple[Method, ...] = ("server-only", "literal")
MOST_SEEDS = 1000
COVERED = (7, 8, 9, 10)
"""How many classes six clients of two classes each may hold together."""


def tables_named(names: Sequence[str]) -> tuple[str, ...]:
    """Keys of tables (and of the figure, and the coverage table) for what the user named.

    Data sets alone name all their tables; beside tables they say for which data.
    """
    known = (*paper_tables(), FIGURE, COVERAGE)
    for name in names:
        if name not in ("all", *DATASETS, *known):
            choices = ", ".join(("all", *DATASETS, *known))
            raise InputError("what", name, f"must be among {choices}")
    datasets = {name for name in names if name in DATASETS} or set(DATASETS)
    tables = [name for name in names if name in known]
    if "all" in names or not tables:
        tables = list(known)
    return tuple(dict.fromkeys(key for key in tables if datasets_of(key) & datasets))


def datasets_of(table: str) -> set[str]:
    if table in (FIGURE, COVERAGE):
        return {"cifar10" if table == FIGURE else "mnist"}
    return {row.dataset for row in paper_tables()[table].rows}


def setting_of(row: PaperRow) -> Setting:
    """The setting behind a printed number."""
    dataset = DATASETS[row.dataset]
    method: Method = "safari" if row.method == "safari" else "fedavg"
    return Setting(
        row.dataset, method, row.p or dataset.p, row.s, row.m or dataset.m, row.q,
        row.server_samples or dataset.server_samples,
    ).plain()  # fmt: skip


def settings_of(table: str, datasets: Iterable[str], companions: bool = True) -> list[Setting]:
    """All settings that a table needs, each once; `companions` are those that the paper never shows."""
    if table == FIGURE:
        return [figure_setting(size) for size in FIGURE_SIZES]
    if table == COVERAGE:
        return []
    found: list[Setting] = []
    for row in paper_tables()[table].rows:
        if row.dataset in datasets:
            found += [setting_of(row).by(method) for method in _methods(paper_tables()[table], row)]
    if not companions:
        found = [setting for setting in found if setting.method not in COMPANIONS]
    return list(dict.fromkeys(found))


def _methods(table: PaperTable, row: PaperRow) -> tuple[Method, ...]:
    """Whose runs a printed number needs: its own, the baseline's of a gain, our companions'."""
    if row.method == "fedavg":
        return ("fedavg",)
    assisted: tuple[Method, ...] = ("safari", "server-only", "literal")
    return ("fedavg", *assisted) if table.metric == "gain" else assisted


def figure_setting(size: int) -> Setting:
    return Setting("cifar10", "safari", 1, 4, 5, 0.4, size)


def reproduction(
    names: Sequence[str], seeds: int | None, fixed_partition: bool, companions: bool = True
) -> tuple[SweepSpec, tuple[str, ...]]:
    """The runs that redo what was named, the first seed of everything first; and its tables."""
    if seeds is not None:
        check_count("--seeds", seeds, most=MOST_SEEDS)
    tables = tables_named(names)
    asked = {name for name in names if name in DATASETS} or set(DATASETS)
    settings = [setting for table in tables for setting in settings_of(table, asked, companions)]
    settings = sorted(dict.fromkeys(settings), key=_priority)
    cells = [
        cell_of(setting, seed, fixed_partition)
        for seed in range(seeds or max(entry.seeds for entry in DATASETS.values()))
        for setting in settings
        if seeds is not None or seed < DATASETS[setting.dataset].seeds
    ]
    if COVERAGE in tables:
        cells += [cell for _, _, cell in coverage_cells(seeds or DATASETS["mnist"].seeds)]
    return SweepSpec({}, tuple(cell.settings for cell in cells)), tables


def _priority(setting: Setting) -> tuple[bool, bool, bool]:
    """Where time may run out: the corners of the main tables and the figure first."""
    dataset = DATASETS[setting.dataset]
    corner = setting.m is None or (setting.m == dataset.m and setting.p in (1, 10) and setting.s != 2)
    usual = setting.q in (None, 0.8) and setting.server_samples in (None, dataset.server_samples)
    in_figure = setting in [figure_setting(size) for size in FIGURE_SIZES]
    literal = setting.method == "literal"
    main = (corner and usual and not literal) or in_figure
    return (not main, literal, setting.m not in (None, dataset.m))


def coverage_cells(seeds: int) -> list[tuple[Method, int, Cell]]:
    """FedAvg and SAFARI at p = 2, s = 4 with excluded clients that leave k classes covered."""
    found: list[tuple[Method, int, Cell]] = []
    for seed in range(seeds):
        plain = Setting("mnist", "safari", 2, 4, 5, 0.8, 1000)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            federation = cell_of(plain, seed).spec.federation()
        for covered in COVERED:
            excluded = excluded_covering(federation, 4, covered, seed)
            if excluded is not None:
                methods: tuple[Method, ...] = ("fedavg", "safari")
                for method in methods:
                    setting = Setting("mnist", "safari", 2, 4, 5, 0.8, 1000, excluded).by(method)
                    found.append((method, covered, cell_of(setting, seed)))
    return found


def excluded_covering(
    federation: Federation, excluded: int, covered: int, seed: int
) -> tuple[int, ...] | None:
    """A random set of `excluded` clients without whom `covered` classes are left; None if rare."""
    labels = np.asarray(federation.dataset.y)
    holds = np.array(
        [
            np.bincount(labels[federation.held_by(client)], minlength=federation.dataset.classes) > 0
            for client in range(federation.size)
        ]
    )
    rng = host_stream(seed, "coverage")
    for _ in range(2000):
        out = np.sort(rng.permutation(federation.size)[:excluded])
        if np.delete(holds, out, axis=0).any(axis=0).sum() == covered:
            return tuple(int(client) for client in out)
    return None
