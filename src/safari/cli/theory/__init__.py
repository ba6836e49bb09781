"""`safari theory`: one file a command."""

import typer

from safari.cli.theory.convergence import convergence_command
from safari.cli.theory.counterexample import counterexample_command
from safari.cli.theory.generalization import generalization_command
from safari.cli.theory.impossibility import impossibility_command
from safari.cli.theory.rates import rates_command
from safari.cli.theory.thresholds import thresholds_command

theory_app = typer.Typer(
    help="The paper's theorems on numbers, corrected.", no_args_is_help=True, rich_markup_mode=None
)
theory_app.command("impossibility")(impossibility_command)
theory_app.command("generalization")(generalization_command)
theory_app.command("thresholds")(thresholds_command)
theory_app.command("counterexample")(counterexample_command)
theory_app.command("convergence")(convergence_command)
theory_app.command("rates")(rates_command)
