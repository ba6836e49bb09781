"""`safari reproduce`: the paper's tables redone, beside its own numbers."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli import signals
from safari.cli.session import check_either, command, show
from safari.errors import InputError


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
    resume: Annotated[Path | None, typer.Option("--resume", help="A directory to go on with.")] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds; default: as many as the paper.")
    ] = None,
    fixed_partition: Annotated[
        bool,
        typer.Option("--fixed-partition", help="One partition for all seeds, as the paper had it."),
    ] = False,
    share: Annotated[
        str | None, typer.Option("--share", help="Only the part k/n of the runs, for several machines.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Redo tables of the paper (default: into runs/reproduce-NAME)."""
    with command():
        check_either("reproduce", what, resume, "mnist, cifar10, fashion-mnist, a table or all")
        if resume is not None and (out is not None or dry_run or share is not None):
            raise InputError("--resume", str(resume), "goes with none of --out, --share, --dry-run")
        _reproduce(what or [], out, resume, seeds, fixed_partition, share, dry_run, quiet)


def _reproduce(
    what: list[str],
    out: Path | None,
    resume: Path | None,
    seeds: int | None,
    fixed_partition: bool,
    share: str | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    from safari.cli.run import free_folder
    from safari.cli.sweep import carry_out, finish
    from safari.experiment.directory import write_file
    from safari.experiment.sweep import plan_sweep
    from safari.paper.directory import describe, read_reproduction
    from safari.paper.recipes import reproduction
    from safari.paper.terminal import flat_table, terminal_tables
    from safari.report.tables import plan_table

    if resume is not None:
        path, spec, about = resume, None, {}
        read_reproduction(path)
    else:
        spec, tables = reproduction(what, seeds, fixed_partition)
        if not tables:
            raise InputError("reproduce", " ".join(what), "no such table has numbers for that data set")
        spec = spec.share(share) if share else spec
        about = describe(what, tables, seeds, fixed_partition)
        path = out or free_folder(Path("runs"), f"reproduce-{'-'.join(what)}")
    if dry_run and spec is not None:
        show(plan_table(plan_sweep(spec).table()))
        return
    signals.tell(path, f"go on with: safari reproduce --resume {path}", new=resume is None)
    results = carry_out(path, spec, about, quiet)
    found = read_reproduction(path)
    write_file(path / "comparison.csv", flat_table(found).write_csv().encode())
    show(*terminal_tables(found))
    print(path)
    finish(results)
