"""`safari report`: one HTML page of a run, a comparison, a sweep or a reproduction."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command
from safari.errors import InputError


def report_command(
    directory: Annotated[Path, typer.Argument(help="What safari run, compare, sweep or reproduce made.")],
    out: Annotated[Path | None, typer.Option("--out", help="The file to write (default: in it).")] = None,
) -> None:
    """Write one self-contained HTML page (default: DIRECTORY/report.html)."""
    with command():
        from safari.experiment.directory import write_file
        from safari.paper.report import page_of
        from safari.report.page import render

        target = out or directory / "report.html"
        html = render(page_of(directory))
        try:
            if target.exists() and not target.is_file():
                target.write_text(html, encoding="utf-8")
            else:
                write_file(target.resolve(), html.encode())
        except OSError as error:
            raise InputError("--out", str(target), f"cannot be written ({error.strerror})") from None
        print(target)
