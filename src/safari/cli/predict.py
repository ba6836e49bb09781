"""`safari predict`: what a trained model says of new samples."""

from pathlib import Path
from typing import Annotated

import typer

from safari.cli.evaluate import MODEL_HELP
from safari.cli.session import command
from safari.errors import check


def predict_command(
    model: Annotated[Path, typer.Argument(help=MODEL_HELP, metavar="MODEL")],
    file: Annotated[Path, typer.Argument(help="Samples, in a file as for data.source; needs no labels.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A .csv, .parquet or .arrow file to write (default: print CSV)."),
    ] = None,
) -> None:
    """Predict the class of every sample in FILE: its columns, then `predicted`, `probability_CLASS`, ..."""
    with command():
        from safari.experiment.applied import check_table_name, predicted, write_table

        if out is not None:
            check_table_name(out)
            same = out.exists() and file.exists() and out.samefile(file)
            check(not same, "--out", str(out), "is the file of the samples; name another")
        table = predicted(model, file)
        if out is None:
            print(table.write_csv(), end="")
        else:
            write_table(table, out)
            print(out)
