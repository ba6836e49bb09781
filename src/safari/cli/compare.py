"""`safari compare`: several algorithms under the same seeds, one table, one picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safari.cli import signals
from safari.cli.places import On, Processes, place_for
from safari.cli.session import FAILED, METRIC_DEFAULT, METRIC_HELP, TRACK, check_either, command, say, show
from safari.errors import InputError

if TYPE_CHECKING:
    from safari.experiment.sweep.places import Place


def compare_command(
    spec: Annotated[
        list[str] | None,
        typer.Argument(
            help="A TOML file, then key=value overrides; or run directories that are finished.",
            metavar="SPEC [KEY=VALUE]... | DIRECTORY...",
        ),
    ] = None,
    algorithms: Annotated[
        str, typer.Option("--algorithms", help="Names, separated by commas.")
    ] = "fedavg,server-only,safari",
    seeds: Annotated[int, typer.Option("--seeds", help="How many seeds, counted from train.seed.")] = 5,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help=METRIC_HELP, show_default=METRIC_DEFAULT)
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The directory to make.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="A directory to go on with.")] = None,
    track: Annotated[str | None, typer.Option("--track", help=TRACK)] = None,
    processes: Processes = None,
    on: On = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train several algorithms under the same seeds, or take finished runs; compare what they deliver."""
    with command(), place_for(processes, on) as place:
        check_either("compare", spec, resume)
        names = [name.strip() for name in algorithms.split(",") if name.strip()]
        _compare(spec or [], names, seeds, metric or [], out, resume, track, place, quiet)


def _compare(
    spec: list[str],
    algorithms: list[str],
    seeds: int,
    metric: list[str],
    out: Path | None,
    resume: Path | None,
    track: str | None,
    place: "Place | None",
    quiet: bool,
) -> None:
    from safari.cli.run import free_folder
    from safari.cli.sweep import carry_out
    from safari.experiment.compare import (
        about_comparison,
        compare_finished,
        comparison_spec,
        is_comparison,
        write_comparison,
    )
    from safari.experiment.spec import apply_overrides, read_toml
    from safari.report.metric_names import check_known, metrics_named, with_own
    from safari.report.tables import comparison_table, difference_table, exposure_line

    metrics = metrics_named(metric)
    path = resume or out or free_folder(Path("runs"), f"compare-{Path(spec[0]).stem}")
    if spec and Path(spec[0]).is_dir():
        if track is not None:
            raise InputError("--track", track, "is for runs that are trained; these are finished")
        show(comparison_table(compare_finished([Path(one) for one in spec], path, metrics).table, metrics))
        print(path / "curves.png")
        return
    if resume is not None and not is_comparison(resume):
        hint = "is no comparison; use `safari run --resume` or `safari sweep --resume`"
        raise InputError("--resume", str(resume), hint)
    given = {} if resume else with_own(apply_overrides(read_toml(Path(spec[0])), spec[1:]), metrics)
    cells = None if resume else comparison_spec(given, algorithms, seeds)
    if cells is not None:
        check_known(metrics, lambda: cells.cells()[0].spec.federation())
    about = about_comparison(given, algorithms, seeds)
    signals.tell(path, f"go on with: safari compare --resume {path}", new=resume is None)
    results = carry_out(path, cells, about, quiet, track, place)
    found = write_comparison(path, results, metrics)
    show(comparison_table(found.table, metrics))
    if line := exposure_line(results):
        print(line)
    if found.differences is not None:
        show(difference_table(found.differences, ties=False))
    print(path / "curves.png")
    if found.diverged:
        say(f"safari: diverged: {'; '.join(found.diverged)}")
        raise typer.Exit(FAILED)
