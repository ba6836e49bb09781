"""`safari report`: one HTML page of whatever a command of safari made."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safari.cli.session import command
from safari.errors import InputError, check

if TYPE_CHECKING:
    from safari.report.page import Page

PORT = 8765


def report_command(
    directory: Annotated[
        Path,
        typer.Argument(
            help="What safari run, compare, sweep, league, advise or reproduce made, or a fleet's state."
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="The file to write (default: in it).")] = None,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Show the page at an address of this machine, current, until Ctrl-C."),
    ] = False,
    port: Annotated[
        int | None, typer.Option("--port", help=f"Of that address (default: {PORT}; 0: any that is free).")
    ] = None,
) -> None:
    """Write one self-contained HTML page (default: DIRECTORY/report.html), or serve it."""
    with command():
        if serve:
            check(out is None, "--out", str(out), "does not go with --serve, which writes no file")
            _serve(directory, PORT if port is None else port)
            return
        check(port is None, "--port", port, "goes with --serve")
        _write(directory, out or directory / "report.html")


def _write(directory: Path, target: Path) -> None:
    from safari.experiment.directory import write_file

    html = _html(directory)
    try:
        if target.exists() and not target.is_file():
            target.write_text(html, encoding="utf-8")
        else:
            write_file(target.resolve(), html.encode())
    except OSError as error:
        raise InputError("--out", str(target), f"cannot be written ({error.strerror})") from None
    print(target)


def _serve(directory: Path, port: int) -> None:
    from safari.report.serving import serve

    _check_ours(directory)
    serve(directory, _html, port, lambda address: print(address, flush=True))


def _html(directory: Path) -> str:
    from safari.report.page import render

    return render(page_of(directory))


def _check_ours(directory: Path) -> None:
    from safari.advise.report import is_advice
    from safari.experiment.checksums import SPEC

    if not (directory / SPEC).is_file() and not is_advice(directory):
        hint = "is not a directory that safari made (no spec.toml in it)"
        raise InputError("directory", str(directory), hint)


def page_of(directory: Path) -> "Page":
    """The page of whatever safari left in `directory`.

    Raises:
        InputError: if it left nothing there.
    """
    from safari.advise import report as advise
    from safari.advise.report import is_advice
    from safari.experiment import report as experiment
    from safari.flower import report as flower
    from safari.flower.last_saved import is_fleet
    from safari.league import is_league, league_page, read_league
    from safari.paper import report as paper
    from safari.paper.directory import is_reproduction

    _check_ours(directory)
    if is_advice(directory):
        return advise.page_of(directory)
    if is_fleet(directory):
        return flower.page_of(directory)
    if is_reproduction(directory):
        return paper.page_of(directory)
    if is_league(directory):
        return league_page(read_league(directory))
    return experiment.page_of(directory)
