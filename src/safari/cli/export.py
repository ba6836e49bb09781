"""`safari export`: a trained model for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.evaluate import MODEL_HELP
from safari.cli.session import command


def export_command(
    model: Annotated[Path, typer.Argument(help=MODEL_HELP, metavar="MODEL")],
    out: Annotated[Path, typer.Argument(help="The .onnx file to write.")],
) -> None:
    """Write MODEL as ONNX: from raw samples to the probabilities of the classes."""
    with command():
        from safari.engine import load

        load(model).export(out)
        print(out)
