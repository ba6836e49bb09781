"""`safari league`: every method in one table, tuned alike."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safari.cli import signals
from safari.cli.places import On, Processes, place_for
from safari.cli.session import check_either, command, say, show
from safari.errors import InputError

if TYPE_CHECKING:
    from safari.experiment.sweep.places import Place
    from safari.league import Asked


def league_command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="digits, hospitals, mnist, cifar10, irregular, fedawe, one of their settings such as "
            "mnist-p1-n100, or a TOML file; then key=value overrides.",
            metavar="SETTING | SPEC [KEY=VALUE]...",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Names, separated by commas; `all`, `forms`.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="How many seeds (default: 5).")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The directory to make.")] = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="A directory to go on with.")] = None,
    share: Annotated[
        str | None, typer.Option("--share", help="Only the part k/n of the methods, for several machines.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan of the tuning and stop.")] = False,
    processes: Processes = None,
    on: On = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Put all methods side by side: tuned on held-out samples of the server, with what they cost."""
    with command(), place_for(processes, on) as place:
        check_either("league", what, resume, "digits, mnist, ..., or a SPEC")
        given = (methods, seeds, out, share)
        if resume is not None and (dry_run or any(one is not None for one in given)):
            hint = "goes with none of --methods, --seeds, --out, --share, --dry-run"
            raise InputError("--resume", str(resume), hint)
        asked = _asked(what, methods, seeds, share) if what else None
        _league(asked, what[0] if what else "", out, resume, dry_run, place, quiet)


def _asked(what: list[str], methods: str | None, seeds: int | None, share: str | None) -> "Asked":
    from dataclasses import replace

    from safari.errors import check_count
    from safari.league import asked_of, labels_of

    asked = asked_of(what[0], what[1:])
    if methods is not None:
        names = [name.strip() for name in methods.split(",") if name.strip()]
        asked = replace(asked, methods=labels_of(names))
    if seeds is not None:
        check_count("--seeds", seeds, most=1000)
        asked = replace(asked, seeds=seeds)
    return asked.share(share) if share else asked


def _league(
    asked: "Asked | None",
    name: str,
    out: Path | None,
    resume: Path | None,
    dry_run: bool,
    place: "Place | None",
    quiet: bool,
) -> None:
    from safari.cli.run import free_folder
    from safari.cli.sweep import carry_out
    from safari.experiment.directory import write_file
    from safari.experiment.sweep import plan_sweep
    from safari.league import begin, check_league, drop_if_empty, read_league, to_finish, to_tune, tunes
    from safari.league.directory import FINAL, TUNING, about_league
    from safari.league.plan import tuning_plan
    from safari.league.table import flat_table, rows_of
    from safari.league.terminal import findings, tables_of
    from safari.report.tables import plan_table

    if asked is not None and dry_run:
        show(plan_table(plan_sweep(tuning_plan(asked).sweep).table()))
        return
    path = resume or out or free_folder(Path("runs"), f"league-{Path(name).stem}")
    signals.tell(path, f"go on with: safari league --resume {path}", new=resume is None)
    if asked is None:
        check_league(path)
    else:
        begin(path, asked)
    try:
        if tunes(path):
            carry_out(path / TUNING, to_tune(path), about_league(path), quiet, place=place)
        carry_out(path / FINAL, to_finish(path), about_league(path), quiet, place=place)
    finally:
        drop_if_empty(path)
    found = read_league(path)
    rows = {setting.key: rows_of(found, setting.key) for setting in found.settings}
    write_file(
        path / "league.csv", flat_table([row for some in rows.values() for row in some]).write_csv().encode()
    )
    for setting in found.settings:
        show(*tables_of(setting, rows[setting.key]))
        print(findings(rows[setting.key]))
    diverged = sum(row.diverged for some in rows.values() for row in some)
    if diverged:
        say(f"safari: {diverged} tuned runs diverged; they are left out of the numbers")
    print(path)
