"""`safari advise`: measure, then recommend."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safari.cli import signals
from safari.cli.places import On, Processes, place_for
from safari.cli.session import command, show
from safari.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from safari.experiment import Spec


def advise_command(
    spec: Annotated[
        list[str],
        typer.Argument(help="A TOML file, then key=value overrides.", metavar="SPEC [KEY=VALUE]..."),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="The directory to make.")] = None,
    pilot: Annotated[
        Path | None,
        typer.Option("--pilot", help="A run of SPEC with diagnostics, to take bias and noise from."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option("--metric", help="What to make better, as in `safari compare`."),
    ] = "balanced_accuracy",
    seconds: Annotated[float, typer.Option("--seconds", help="About how long the pilot may take.")] = 90.0,
    processes: Processes = None,
    on: On = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Say whether another algorithm, q or number of server steps beats SPEC (into runs/advise-NAME)."""
    with command(), place_for(processes, on) as place:
        from safari.advise import Pilot, advise
        from safari.advise.advice import named, reasons
        from safari.advise.goal import Goal
        from safari.advise.report import ADVICE, write_advice
        from safari.cli.run import free_folder
        from safari.cli.sweep import carry_out
        from safari.errors import check_positive
        from safari.experiment.directory import refuse_existing
        from safari.experiment.spec import apply_overrides, complete, read_toml
        from safari.experiment.sweep import SweepSpec
        from safari.report.advice import advice_table
        from safari.report.metric_names import with_own

        check_positive("--seconds", seconds)
        given = apply_overrides(read_toml(Path(spec[0])), spec[1:])
        goal = Goal.named(metric)
        given = with_own(given, [goal.metric])
        described = complete(given)
        path = out or free_folder(Path("runs"), f"advise-{Path(spec[0]).stem}")
        refuse_existing(path)
        observed = _diagnostics(pilot, described) if pilot is not None else None
        signals.tell(path, f"there is no advice yet, and {path} may be deleted", new=True)

        def sweep(cells: SweepSpec, folder: Path) -> "pl.DataFrame":
            return carry_out(folder, cells, given, quiet, place=place)

        runs = Pilot(given, path, sweep, seconds, goal)
        found = advise(runs, observed)
        changed = {override.partition("=")[0] for override in found.overrides}
        kept = [override for override in spec[1:] if override.partition("=")[0] not in changed]
        again = shlex.join(["safari", "run", spec[0], *kept, *found.overrides])
        write_advice(path, {**found.to_json(), "spec": spec[0], "command": again})
        show(advice_table(found.scores, found.over_own, goal.words, named))
        print(found.verdict)
        for line in reasons(found):
            print(f"- {line}")
        print(again)
        print(path / ADVICE)


def _diagnostics(run: Path, described: "Spec") -> "pl.DataFrame":
    """What an observer saw of a run of the same federation."""
    from safari.experiment.checksums import read_spec, read_table
    from safari.experiment.directory import DIAGNOSTICS
    from safari.experiment.spec import complete

    if not run.is_dir():
        raise InputError("--pilot", str(run), "no such directory")
    if not (run / DIAGNOSTICS).is_file():
        raise InputError("--pilot", str(run), "has no diagnostics; train it with train.diagnostics=true")
    theirs = complete(read_spec(run)).tables
    for table in ("data", "participation", "model"):
        if theirs[table] != described.tables[table]:
            raise InputError("--pilot", str(run), f"is a run of another spec: its [{table}] differs")
    return read_table(run / DIAGNOSTICS)
