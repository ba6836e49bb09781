"""`safari run`: train what a spec describes, or go on with a run."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli import signals
from safari.cli.session import STOPPED, check_either, command, say, show
from safari.errors import InputError


def run_command(
    spec: Annotated[
        list[str] | None,
        typer.Argument(
            help="A TOML file, then key=value overrides; with --resume train.rounds=N, to go on to more.",
            metavar="SPEC [KEY=VALUE]...",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The run directory to make.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="A run directory to go on with.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train what SPEC describes, into a run directory (default: runs/NAME)."""
    with command():
        changes = bool(spec) and all("=" in one for one in spec or [])
        check_either("run", None if resume and changes else spec, resume)
        if resume is not None and out is not None:
            raise InputError("--out", str(out), "cannot go with --resume: the directory is known")
        _run(spec or [], out, resume, quiet)


def _run(spec: list[str], out: Path | None, resume: Path | None, quiet: bool) -> None:
    from safari.cli.progress import Watch
    from safari.experiment import Interrupted, load_spec, new_run, resume_run
    from safari.experiment.run import read_summary

    path = resume or out or free_folder(Path("runs"), Path(spec[0]).stem)
    signals.tell(path, f"go on with: safari run --resume {path}", new=resume is None)
    with Watch(quiet) as watch:
        try:
            if resume is not None:
                if resume_run(path, watch.follow(path.name), say, spec) is None:
                    say(f"{path} is finished already")
            else:
                new_run(load_spec(Path(spec[0]), spec[1:]), path, watch.follow(path.name))
        except Interrupted:
            signals.say_the_end()
            raise typer.Exit(STOPPED) from None
    if not quiet:
        from safari.report.tables import class_table, summary_table

        summary = read_summary(path)
        show(summary_table(summary))
        by_class = class_table(summary)
        if by_class is not None:
            show(by_class)
    print(path)


def free_folder(parent: Path, stem: str) -> Path:
    """runs/NAME, or runs/NAME-2, ... if that is taken."""
    names = [stem, *(f"{stem}-{number}" for number in range(2, 10_000))]
    return next(parent / name for name in names if not (parent / name).exists())
