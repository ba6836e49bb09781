"""`safari evaluate`: how good a trained model is on labelled samples."""

import json
from pathlib import Path
from typing import Annotated

import typer

from safari.cli.session import command, show

MODEL_HELP = "A run directory, or a model.safetensors."


def evaluate_command(
    model: Annotated[Path, typer.Argument(help=MODEL_HELP, metavar="MODEL")],
    file: Annotated[
        Path | None,
        typer.Argument(help="Labelled samples, in a file as for data.source (default: the run's test set)."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="The column of the labels (default: the run's).")
    ] = None,
    client: Annotated[
        str | None,
        typer.Option("--client", help="The column of the clients (default: the run's, if FILE has it)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score MODEL on the samples in FILE: on average, by class, and by client if the file names clients."""
    with command():
        from safari.experiment.applied import evaluated
        from safari.report.metrics import metrics_tables

        metrics = evaluated(model, file, label, client)
        if as_json:
            print(json.dumps(metrics.to_dict(), indent=2))
        else:
            show(*metrics_tables(metrics))
