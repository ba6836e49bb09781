"""`safari reproduce`: the paper's tables redone, beside its own numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safari.cli import signals
from safari.cli.places import On, Processes, place_for
from safari.cli.session import check_either, command, show
from safari.errors import InputError

if TYPE_CHECKING:
    from safari.experiment.sweep.places import Place


def reproduce_command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="mnist, cifar10, fashion-mnist, all, or tables: fedavg, safari_improvement, safari_q, "
            "mnist_server_size, mnist_random_init, mnist_m, mnist_coverage, cifar10_server_size, "
            "cifar10_random_init, cifar10_m, cifar10_curves, fashion_s, fashion_server_share."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The directory to make.")] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", help="A directory to go on with; what is named is added to its plan."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds; default: as many as the paper.")
    ] = None,
    fixed_partition: Annotated[
        bool,
        typer.Option("--fixed-partition", help="One partition for all seeds, as the paper had it."),
    ] = False,
    without_companions: Annotated[
        bool,
        typer.Option(
            "--without-companions",
            help="Only the paper's own numbers: no server-only training, no one server step.",
        ),
    ] = False,
    share: Annotated[
        str | None, typer.Option("--share", help="Only the part k/n of the runs, for several machines.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")] = False,
    processes: Processes = None,
    on: On = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Redo tables of the paper (default: into runs/reproduce-NAME)."""
    with command(), place_for(processes, on) as place:
        if resume is None or not what:
            check_either("reproduce", what, resume, "mnist, cifar10, fashion-mnist, a table or all")
        if resume is not None and (out is not None or share is not None or (dry_run and not what)):
            raise InputError("--resume", str(resume), "goes with none of --out, --share, --dry-run")
        asked = Asked(tuple(what or ()), seeds, fixed_partition, not without_companions)
        _reproduce(asked, out, resume, share, dry_run, place, quiet)


@dataclass(frozen=True)
class Asked:
    """What is to be redone."""

    names: tuple[str, ...]
    seeds: int | None
    fixed_partition: bool
    companions: bool


def _reproduce(
    asked: Asked,
    out: Path | None,
    resume: Path | None,
    share: str | None,
    dry_run: bool,
    place: "Place | None",
    quiet: bool,
) -> None:
    from safari.cli.run import free_folder
    from safari.cli.sweep import carry_out, finish
    from safari.experiment.directory import write_file
    from safari.experiment.sweep import plan_sweep
    from safari.paper.directory import describe, extend_reproduction, missing_runs, read_reproduction
    from safari.paper.recipes import reproduction
    from safari.paper.terminal import flat_table, terminal_tables
    from safari.report.tables import plan_table

    names = list(asked.names)
    path = resume or out or free_folder(Path("runs"), f"reproduce-{'-'.join(names)}")
    spec, about = None, {}
    if resume is not None:
        read_reproduction(path)
    if names:
        spec, tables = reproduction(names, asked.seeds, asked.fixed_partition, asked.companions)
        if not tables:
            raise InputError("reproduce", " ".join(names), "no such table has numbers for that data set")
        spec = spec.share(share) if share else spec
        about = describe(names, tables, asked.seeds, asked.fixed_partition)
    if dry_run and spec is not None:
        show(plan_table(plan_sweep(missing_runs(path, spec) if resume else spec).table()))
        return
    signals.tell(path, f"go on with: safari reproduce --resume {path}", new=resume is None)
    if resume is not None and spec is not None:
        extend_reproduction(path, spec, about)
    results = carry_out(path, None if resume else spec, about, quiet, place=place)
    found = read_reproduction(path)
    write_file(path / "comparison.csv", flat_table(found).write_csv().encode())
    show(*terminal_tables(found))
    print(path)
    finish(results)
