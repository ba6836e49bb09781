"""`safari data`: which data sets there are, and fetching them."""

from typing import Annotated

import typer

from safari.cli.session import command, show
from safari.errors import InputError

data_app = typer.Typer(help="Data sets: list and fetch.", no_args_is_help=True, rich_markup_mode=None)


@data_app.command("list")
def list_command() -> None:
    """Show the named data sets and whether they are on this machine."""
    from rich.table import Table

    from safari.data.sources import CATALOG

    with command():
        table = Table("name", "what", "where")
        for entry in CATALOG.values():
            place = (
                "embedded"
                if entry.published is None
                else str(entry.find(None) or "not here; safari data fetch")
            )
            table.add_row(entry.name, entry.about, place)
        show(table)


@data_app.command("fetch")
def fetch_command(
    names: Annotated[list[str], typer.Argument(help="Names from `safari data list`.")],
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Download data sets, checked against their published checksums."""
    from safari.data.sources import CATALOG

    with command():
        for name in names:
            if name not in CATALOG:
                raise InputError("name", name, f"must be one of {', '.join(CATALOG)}")
        for name in names:
            print(CATALOG[name].fetch(progress=not quiet))
