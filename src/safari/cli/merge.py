"""`safari merge`: one directory from what several machines or sittings did of a sweep."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command


def merge_command(
    parts: Annotated[
        list[Path], typer.Argument(help="Directories of `safari sweep`, `reproduce` or `league`.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The directory to make.")],
) -> None:
    """Put the parts of a shared-out sweep together; go on with what is missing by --resume."""
    with command():
        from safari.experiment.sweep import merge
        from safari.league import is_league, merge_leagues

        planned, finished = (merge_leagues if is_league(parts[0]) else merge)(parts, out)
        print(f"{finished} of {planned} runs finished")
        print(out)
