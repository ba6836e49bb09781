"""`safari migrate`: specs and directories of older versions, brought up to date."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command


def migrate_command(
    paths: Annotated[list[Path], typer.Argument(help="Specs, or directories that safari made.")],
) -> None:
    """Rewrite specs and result directories of older versions by today's keys and columns."""
    with command():
        from safari.experiment.migrate import migrate

        for path in paths:
            print(migrate(path))
