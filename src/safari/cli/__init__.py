"""The command `safari`: one file a command, no logic."""

import typer

from safari.cli.compare import compare_command
from safari.cli.data import data_app
from safari.cli.run import run_command

app = typer.Typer(
    name="safari",
    help="Federated learning that stays right when some clients never show up.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run_command)
app.command("compare")(compare_command)
app.add_typer(data_app, name="data")


@app.callback()
def _root() -> None:
    """Federated learning that stays right when some clients never show up."""


def main() -> None:
    app()
