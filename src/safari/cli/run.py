"""`safari run`: train what a spec describes, or go on with a run."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safari.cli import signals
from safari.cli.session import STOPPED, TRACK, check_either, command, say, show
from safari.errors import InputError

if TYPE_CHECKING:
    from safari.engine import Training
    from safari.experiment.run import Watcher


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
    track: Annotated[str | None, typer.Option("--track", help=TRACK)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Train what SPEC describes, into a run directory (default: runs/NAME)."""
    with command():
        changes = bool(spec) and all("=" in one for one in spec or [])
        check_either("run", None if resume and changes else spec, resume)
        if resume is not None and out is not None:
            raise InputError("--out", str(out), "cannot go with --resume: the directory is known")
        _run(spec or [], out, resume, track, quiet)


def _run(spec: list[str], out: Path | None, resume: Path | None, track: str | None, quiet: bool) -> None:
    from safari.cli.progress import Watch
    from safari.experiment import Interrupted, load_spec, new_run, resume_run
    from safari.experiment.checksums import read_spec
    from safari.experiment.run import read_summary, stopped_early

    path = resume or out or free_folder(Path("runs"), Path(spec[0]).stem)
    signals.tell(path, f"go on with: safari run --resume {path}", new=resume is None)
    with ExitStack() as stack:
        watch = stack.enter_context(Watch(quiet)).follow(path.name)
        try:
            if resume is not None:
                watch = tracked(watch, path, track, lambda: read_spec(path), stack)
                if resume_run(path, watch, say, spec) is None:
                    ended = stopped_early(path)
                    say(f"{path} is finished already{f': {ended}' if ended else ''}")
            else:
                whole = load_spec(Path(spec[0]), spec[1:])
                new_run(whole, path, tracked(watch, path, track, whole.plain, stack))
        except Interrupted:
            signals.say_the_end()
            raise typer.Exit(STOPPED) from None
    if not quiet:
        from safari.report.tables import class_table, client_table, summary_table

        summary = read_summary(path)
        tables = (summary_table(summary), class_table(summary), client_table(summary))
        show(*(table for table in tables if table is not None))
    print(path)


def tracked(
    watch: "Watcher", path: Path, track: str | None, spec: "Callable[[], dict[str, Any]]", stack: ExitStack
) -> "Watcher":
    """`watch`, which also tells a tracker of the run in `path`, until `stack` closes."""
    if track is None:
        return watch
    from safari.experiment.tracking import TrackedRun, settings_of

    tell = TrackedRun(path, track, settings_of(spec()))
    stack.callback(tell.close)

    def both(training: "Training") -> None:
        tell(training)
        watch(training)

    return both


def free_folder(parent: Path, stem: str) -> Path:
    """runs/NAME, or runs/NAME-2, ... if that is taken."""
    names = [stem, *(f"{stem}-{number}" for number in range(2, 10_000))]
    return next(parent / name for name in names if not (parent / name).exists())
