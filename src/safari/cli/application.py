"""All commands: one file a command, no logic."""

from typing import Annotated

import typer

from safari.cli.advise import advise_command
from safari.cli.algorithms import algorithms_command
from safari.cli.compare import compare_command
from safari.cli.data import data_app
from safari.cli.evaluate import evaluate_command
from safari.cli.export import export_command
from safari.cli.flower import flower_app
from safari.cli.league import league_command
from safari.cli.merge import merge_command
from safari.cli.migrate import migrate_command
from safari.cli.predict import predict_command
from safari.cli.report import report_command
from safari.cli.reproduce import reproduce_command
from safari.cli.run import run_command
from safari.cli.sweep import sweep_command
from safari.cli.theory import theory_app
from safari.version import __version__

app = typer.Typer(
    name="safari",
    help="Federated learning that stays right when some clients never show up.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run_command)
app.command("compare")(compare_command)
app.command("sweep")(sweep_command)
app.command("evaluate")(evaluate_command)
app.command("predict")(predict_command)
app.command("export")(export_command)
app.command("reproduce")(reproduce_command)
app.command("league")(league_command)
app.command("merge")(merge_command)
app.command("report")(report_command)
app.command("migrate")(migrate_command)
app.command("advise")(advise_command)
app.command("algorithms")(algorithms_command)
app.add_typer(data_app, name="data")
app.add_typer(theory_app, name="theory")
app.add_typer(flower_app, name="flower")


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Federated learning that stays right when some clients never show up."""
