"""`safari flower`: from a spec to a Flower app."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command
from safari.errors import InputError

flower_app = typer.Typer(no_args_is_help=True, help="SAFARI on real clients, through Flower.")


@flower_app.callback()
def _group() -> None:
    """SAFARI on real clients, through Flower."""


@flower_app.command("deploy")
def deploy_command(
    spec: Annotated[
        list[str],
        typer.Argument(help="A TOML file, then key=value overrides.", metavar="SPEC [KEY=VALUE]..."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to make (default: by the spec)")
    ] = None,
) -> None:
    """Write a spec as a Flower app: server and client, pyproject, README."""
    with command():
        try:
            import flwr  # noqa: F401
        except ImportError:
            hint = "is not installed; pip install 'safari-fl[flower]'"
            raise InputError("flower", "flwr", hint) from None
        from safari.experiment.spec import load_spec
        from safari.flower.deploy import write_app

        folder = out or Path(f"{Path(spec[0]).stem}-fleet".replace("_", "-"))
        made = write_app(load_spec(Path(spec[0]), spec[1:]), folder)
        print(f"{made}: a Flower app; its README.md has the commands that start it")
