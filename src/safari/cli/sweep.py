"""`safari sweep`: a grid of runs, planned into few programs, in one directory."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safari.cli import signals
from safari.cli.places import On, Processes, place_for
from safari.cli.session import (
    FAILED,
    METRIC_DEFAULT,
    METRIC_HELP,
    STOPPED,
    TRACK,
    check_either,
    command,
    say,
    show,
)
from safari.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from safari.experiment.sweep import SweepSpec
    from safari.experiment.sweep.places import Place


def sweep_command(
    spec: Annotated[
        list[str] | None,
        typer.Argument(
            help="A TOML file with a [sweep] table, then key=value overrides.", metavar="SPEC [KEY=VALUE]..."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The directory to make.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="A directory to go on with.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help=METRIC_HELP, show_default=METRIC_DEFAULT)
    ] = None,
    share: Annotated[
        str | None, typer.Option("--share", help="Only the part k/n of the runs, for several machines.")
    ] = None,
    ties: Annotated[
        bool, typer.Option("--ties", help="Write '-' for differences within two points, as the paper does.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")] = False,
    track: Annotated[str | None, typer.Option("--track", help=TRACK)] = None,
    processes: Processes = None,
    on: On = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train every cell of a grid under every seed (default: into runs/sweep-NAME)."""
    with command(), place_for(processes, on) as place:
        check_either("sweep", spec, resume)
        if resume is not None and (out is not None or dry_run or share is not None):
            raise InputError("--resume", str(resume), "goes with none of --out, --share, --dry-run")
        _sweep(spec or [], metric or [], out, resume, share, ties, dry_run, track, place, quiet)


def _sweep(
    spec: list[str],
    metric: list[str],
    out: Path | None,
    resume: Path | None,
    share: str | None,
    ties: bool,
    dry_run: bool,
    track: str | None,
    place: "Place | None",
    quiet: bool,
) -> None:
    from safari.cli.run import free_folder
    from safari.experiment.compare import is_comparison
    from safari.experiment.directory import write_file
    from safari.experiment.spec import apply_overrides, read_toml
    from safari.experiment.sweep import load_sweep, plan_sweep
    from safari.paper.directory import is_reproduction
    from safari.report.metric_names import check_known, metrics_named, with_own
    from safari.report.sweeps import differences, grouped
    from safari.report.tables import difference_table, plan_table, sweep_table

    metrics = metrics_named(metric)
    whole = load_sweep(Path(spec[0]), spec[1:]) if spec else None
    if whole is not None:
        whole = replace(whole, base=with_own(whole.base, metrics))
        first = whole.cells()[0]
        check_known(metrics, first.spec.federation)
    chosen = whole.share(share) if whole and share else whole
    if dry_run and chosen is not None:
        show(plan_table(plan_sweep(chosen).table()))
        return
    path = resume or out or free_folder(Path("runs"), f"sweep-{Path(spec[0]).stem}")
    if resume is not None and is_reproduction(resume):
        raise InputError("--resume", str(resume), "is a reproduction; use `safari reproduce --resume`")
    if resume is not None and is_comparison(resume):
        raise InputError("--resume", str(resume), "is a comparison; use `safari compare --resume`")
    about = apply_overrides(read_toml(Path(spec[0])), spec[1:]) if spec else {}
    signals.tell(path, f"go on with: safari sweep --resume {path}", new=resume is None)
    results = carry_out(path, chosen, about, quiet, track, place)
    groups = grouped(results, metrics)
    write_file(path / "table.csv", groups.write_csv().encode())
    apart = differences(results, metrics)
    if apart is not None:
        write_file(path / "differences.csv", apart.write_csv().encode())
    show(sweep_table(groups, metrics))
    if apart is not None:
        show(difference_table(apart, ties))
    print(path)
    finish(results)


def carry_out(
    path: Path,
    spec: "SweepSpec | None",
    about: dict[str, Any],
    quiet: bool,
    track: str | None = None,
    place: "Place | None" = None,
) -> "pl.DataFrame":
    """Start the sweep `spec` in `path`, or go on with the one that is there; `place` is from `place_for`."""
    from safari.cli.progress import SweepWatch
    from safari.experiment import Interrupted
    from safari.experiment.sweep import new_sweep, resume_sweep

    tell = None
    if track is not None:
        from safari.experiment.tracking import TrackedSweep

        tell = TrackedSweep(path, track)
    try:
        with SweepWatch(quiet, tell) as watch:
            if spec is None:
                done = resume_sweep(path, watch, say, place)
            else:
                done = new_sweep(spec, path, watch, about, place)
    except Interrupted:
        signals.say_the_end()
        raise typer.Exit(STOPPED) from None
    if tell is not None:
        tell()
    return done


def finish(results: "pl.DataFrame") -> None:
    """Exit with an error if runs diverged."""
    diverged = int(results["diverged_at"].is_not_null().sum())
    if diverged:
        say(f"safari: {diverged} of {len(results)} runs diverged; see diverged_at in results.parquet")
        raise typer.Exit(FAILED)
